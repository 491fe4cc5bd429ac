/*
 * Runs of profile exact, by blocks of positions: anchors, middle rows of groups and the rows
 * beside them, as sincos.h tells.
 */
#ifndef POSENC_KERNELS_BLOCKS_H
#define POSENC_KERNELS_BLOCKS_H

#include "sincos.h"
#include "sinks.h"

/* Evaluates anew what is small of one row's n pairs from i on. */
static __attribute__((noinline)) void mend_row(const struct run *run, int64_t row, int64_t i,
                                               int64_t n, float *cosines, float *sines)
{
    mend_small(run->freqs, run->first + (uint32_t)row, i, n, run->scale,
               run->scales ? scales_at(run, row, i) : NULL, cosines, sines);
    for (int64_t k = 0; k < n && run->negative; k++)
        sines[k] = -sines[k];
}

/* At position 0, where every call of a fresh sequence begins, all cosines are the scale. */
SIMD_INLINE void mend_vectors(const struct run *run, int64_t row, int64_t i, int64_t n,
                              vf *cosine, vf *sine)
{
    float cosines[POSENC_PLAN_PAD], sines[POSENC_PLAN_PAD];

    if (run->first + (uint32_t)row == 0 && !run->scales) {
        *cosine = vf_set1((float)run->scale);
        *sine = vf_mul(vf_set1((float)(0.0 * run->scale)), sign_of(run));
        return;
    }
    vf_store(cosines, *cosine);
    vf_store(sines, vf_mul(*sine, sign_of(run)));
    mend_row(run, row, i, n, cosines, sines);
    *cosine = vf_load(cosines);
    *sine = vf_load(sines);
}

/* One row's vector of n pairs: rounded, mended, written.  `limit` holds in its first n lanes
 * what is small, and zero past them. */
SIMD_INLINE void put_row(const struct run *run, enum sink sink, enum how how, bool scaled,
                         int64_t row, int64_t i, int64_t n, vf limit, vd c, vd s)
{
    if (scaled) {
        vd scale = vd_load(scales_at(run, row, i));
        c = vd_mul(c, scale);
        s = vd_mul(s, scale);
        limit = vf_from_vd(vd_mul(scale, vd_set1(POSENC_SMALL)));
    }
    vf cosine = vf_from_vd(c), sine = vf_from_vd(s);
    if (__builtin_expect(vf_any_lt(vf_min_abs(cosine, sine), limit), 0))
        mend_vectors(run, row, i, n, &cosine, &sine);
    emit(run, sink, how, row, i, n, cosine, sine);
}

/* A row's whole vectors once more, with what is small of them mended. */
SIMD_INLINE void mend_whole_row(const struct run *run, enum sink sink, int64_t row, int64_t i,
                                vf limit, vd c, vd s, vf *a, vf *b)
{
    vf cosine = vf_from_vd(c), sine = vf_from_vd(s);

    if (!vf_any_lt(vf_min_abs(cosine, sine), limit))
        return;
    mend_vectors(run, row, i, vf_lanes(), &cosine, &sine);
    *a = sink == TO_INTERLEAVED ? vf_zip_lo(sine, cosine) : cosine;
    *b = sink == TO_INTERLEAVED ? vf_zip_hi(sine, cosine) : sine;
}

/* Two rows of whole vectors, looked at together: first whether anything is below 2^-15, which
 * takes half the time of asking for what is small. */
SIMD_INLINE void put_two(const struct run *run, enum sink sink, enum how how, int64_t row,
                         int64_t other, int64_t i, vf limit, vd c, vd s, vd other_c, vd other_s)
{
    vf a, b, other_a, other_b;

    round_whole(sink, c, s, &a, &b);
    round_whole(sink, other_c, other_s, &other_a, &other_b);
    if (__builtin_expect(!vf_none_small(a, b, other_a, other_b), 0)) {
        mend_whole_row(run, sink, row, i, limit, c, s, &a, &b);
        mend_whole_row(run, sink, other, i, limit, other_c, other_s, &other_a, &other_b);
    }
    emit_whole(run, sink, how, row, i, a, b);
    emit_whole(run, sink, how, other, i, other_a, other_b);
}

/* One half of a group: its middle row (c, s) and those outward by `step`, as far as they are in
 * [begin, end).  (c_before, s_before) is the middle row of the other half.  `whole`: all of the
 * vectors are, and all rows are there. */
SIMD_INLINE void half_group(const struct run *run, enum sink sink, enum how how, bool scaled,
                            bool whole, int64_t row, int64_t step, int64_t begin, int64_t end,
                            int64_t i, int64_t n, vf limit, vd c, vd s, vd c_before,
                            vd s_before)
{
    _Static_assert(POSENC_GROUP == 8, "half a group is two times two rows");
    const int64_t last = row + 3 * step;
    vd twice = vd_load(run->freqs->twice_cos + i);

    if (whole) {
        vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);
        put_two(run, sink, how, row, row + step, i, limit, c, s, c_next, s_next);
        c = vd_fms(twice, c_next, c);
        s = vd_fms(twice, s_next, s);
        c_next = vd_fms(twice, c, c_next);
        s_next = vd_fms(twice, s, s_next);
        put_two(run, sink, how, row + 2 * step, last, i, limit, c, s, c_next, s_next);
        return;
    }
    for (; row != last + step; row += step) {
        if (row >= begin && row < end)
            put_row(run, sink, how, scaled, row, i, n, limit, c, s);
        vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);
        c_before = c;
        s_before = s;
        c = c_next;
        s = s_next;
    }
}

/* Pairs of a strip where x is read: whole rows of most models, for x comes in the order of memory
 * then (0.8 of the time for rows of 512, Zen 3).  What a plan has for them stays in L2. */
enum { ADDED_STRIP_PAIRS = 640, ADDED_CHANNELS = 2 * ADDED_STRIP_PAIRS };

/* A strip's cosines and sines at the first position of a block.  Not aligned, they cost a call
 * 80 ns on Zen 5. */
struct anchors {
    _Alignas(64) double cosine[ADDED_STRIP_PAIRS], sine[ADDED_STRIP_PAIRS];
};

SIMD_INLINE void find_anchors(const struct run *run, uint32_t position, int64_t from,
                              int64_t to, struct anchors *anchors)
{
    for (int64_t i = from; i < to; i += vf_lanes()) {
        vd c, s, scale = vd_set1(run->scale);
        vq q;
        vd r = phase_reduced(run->freqs, position, i, &q);
        sincos_reduced(r, &c, &s);
        vd_quadrant(q, c, s, &c, &s);
        vd_store(anchors->cosine + (i - from), vd_mul(c, scale));
        vd_store(anchors->sine + (i - from), vd_mul(s, scale));
    }
}

/* The k-th vector of the anchors, turned by an angle; sines with the sign of the run's. */
SIMD_INLINE void turn_anchor(const struct anchors *anchors, int64_t k, const double *cosine,
                             const double *sine, vd sign, vd *c, vd *s)
{
    vd from_c = vd_load(anchors->cosine + k), from_s = vd_load(anchors->sine + k);
    vd by_c = vd_load(cosine), by_s = vd_load(sine);

    *c = vd_fnma(from_s, by_s, vd_mul(from_c, by_c));
    *s = vd_mul(sign, vd_fma(from_c, by_s, vd_mul(from_s, by_c)));
}

/* Rows [begin, end), one vector of n pairs from i on, of a group of which row `group` would be the
 * first; its angles are at `at` in the plan. */
SIMD_INLINE void group_rows(const struct run *run, enum sink sink, enum how how, bool scaled,
                            bool whole, int64_t group, int64_t begin, int64_t end, int64_t at,
                            int64_t i, int64_t n, vf limit, vd sign,
                            const struct anchors *anchors, int64_t k)
{
    const struct posenc_freqs *freqs = run->freqs;
    const int64_t upper = group + POSENC_GROUP / 2;
    vd lower_c, lower_s, upper_c, upper_s;

    turn_anchor(anchors, k, freqs->lower_cos + at, freqs->lower_sin + at, sign, &lower_c,
                &lower_s);
    turn_anchor(anchors, k, freqs->upper_cos + at, freqs->upper_sin + at, sign, &upper_c,
                &upper_s);
    if (begin < upper)
        half_group(run, sink, how, scaled, whole && begin <= group && end >= upper, upper - 1,
                   -1, begin, end, i, n, limit, lower_c, lower_s, upper_c, upper_s);
    if (end > upper)
        half_group(run, sink, how, scaled,
                   whole && begin <= upper && end == group + POSENC_GROUP, upper, 1, begin, end,
                   i, n, limit, upper_c, upper_s, lower_c, lower_s);
}

/* Rows [row, end) within one group, pairs [from, to), of which the anchors are. */
SIMD_INLINE void group_strip(const struct run *run, enum sink sink, enum how how, bool scaled,
                             int64_t row, int64_t end, int64_t from, int64_t to,
                             const struct anchors *anchors)
{
    const vd sign = vd_from_vf(sign_of(run));
    /* All values are below 2 then, and what is small is below 2^-15 (vf_none_small). */
    const bool usual = !scaled && fabs(run->scale) < 2.0;
    int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK);
    int64_t group = row - into % POSENC_GROUP;
    int64_t at = into / POSENC_GROUP * run->freqs->stride;

    for (int64_t i = from; i < to; i += vf_lanes()) {
        int64_t n = least(vf_lanes(), to - i);
        vf limit = vf_set1(small_limit(run->scale));
        if (n < vf_lanes())
            limit = vf_select_lt(vf_iota(), vf_set1((float)n), limit, vf_set1(0.0f));
        group_rows(run, sink, how, scaled, usual && is_whole(run, sink, i, n), group, row, end,
                   at + i, i, n, limit, sign, anchors, i - from);
    }
}

/* Rows from `row` on up to the end of its group, or of the rows. */
SIMD_INLINE int64_t group_end(const struct run *run, int64_t row, int64_t end)
{
    int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_GROUP);

    return least(end, row - into + POSENC_GROUP);
}

/* The same within its block. */
SIMD_INLINE int64_t block_end(const struct run *run, int64_t row)
{
    int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK);

    return least(run->count, row - into + POSENC_BLOCK);
}

/* Those of pairs [from, to) of the block that row `row` is in. */
SIMD_INLINE void block_anchors(const struct run *run, int64_t row, int64_t from, int64_t to,
                               struct anchors *anchors)
{
    find_anchors(run, (run->first + (uint32_t)row) / POSENC_BLOCK * POSENC_BLOCK, from, to,
                 anchors);
}

/* Rows [row, end) within one block of POSENC_BLOCK positions, pairs [from, to). */
SIMD_INLINE void block_strip(const struct run *run, enum sink sink, enum how how, bool scaled,
                             int64_t row, int64_t end, int64_t from, int64_t to)
{
    struct anchors anchors;

    block_anchors(run, row, from, to, &anchors);
    for (int64_t next; row < end; row = next) {
        next = group_end(run, row, end);
        group_strip(run, sink, how, scaled, row, next, from, to, &anchors);
    }
}

SIMD_INLINE void run_blocks(const struct run *run, enum sink sink, enum how how, bool scaled)
{
    const int64_t strip = how == ADDED ? ADDED_STRIP_PAIRS : STRIP_PAIRS;

    for (int64_t row = 0, end; row < run->count; row = end) {
        end = block_end(run, row);
        for (int64_t from = run->from; from < run->pairs; from += strip)
            block_strip(run, sink, how, scaled, row, end, from,
                        least(from + strip, run->pairs));
    }
}

#endif
