/*
 * Rows of groups of eight positions, as sincos.h tells: two middle rows from an anchor, and from these
 * the three on either side. Any of them one by one; those of whole groups two by two.
 */
#ifndef POSENC_KERNELS_GROUPS_H
#define POSENC_KERNELS_GROUPS_H

#include "sincos.h"
#include "sinks.h"

/* Pairs of a strip where x is read: whole rows of most models, for x comes in the order of memory
 * then (0.8 of the time for rows of 512, Zen 3). What a plan has for them stays in L2. */
enum { ADDED_STRIP_PAIRS = 640, ADDED_CHANNELS = 2 * ADDED_STRIP_PAIRS };

/* A strip's cosines and sines at the first position of a block. Not aligned, they cost a call
 * 80 ns on Zen 5. */
struct anchors {
    _Alignas(64) double cosine[ADDED_STRIP_PAIRS], sine[ADDED_STRIP_PAIRS];
};

/* The k-th vector of the anchors, turned by an angle; sines with the sign of the run's. */
SIMD_INLINE void turn_anchor(const struct anchors *anchors, int64_t k, const double *cosine,
                             const double *sine, vd sign, vd *c, vd *s)
{
    vd from_c = vd_load(anchors->cosine + k), from_s = vd_load(anchors->sine + k);
    vd by_c = vd_load(cosine), by_s = vd_load(sine);

    *c = vd_fnma(from_s, by_s, vd_mul(from_c, by_c));
    *s = vd_mul(sign, vd_fma(from_c, by_s, vd_mul(from_s, by_c)));
}

/* The middle rows of a group, whose angles are from `middle` on, `stride` apart. */
SIMD_INLINE void middle_rows(const double *middle, int64_t stride, vd sign,
                             const struct anchors *anchors, int64_t k, vd *lower_c, vd *lower_s,
                             vd *upper_c, vd *upper_s)
{
    turn_anchor(anchors, k, middle, middle + stride, sign, lower_c, lower_s);
    turn_anchor(anchors, k, middle + 2 * stride, middle + 3 * stride, sign, upper_c, upper_s);
}

/* ---- Some rows, one by one ---- */

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

/* One row's vector of n pairs: rounded, mended, written. `limit` holds in its first n lanes
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

/* One half of a group: its middle row (c, s) and those outward by `step`, as far as they are in
 * [begin, end). (c_before, s_before) is the middle row of the other half. */
SIMD_INLINE void half_group(const struct run *run, enum sink sink, enum how how, bool scaled,
                            int64_t row, int64_t step, int64_t begin, int64_t end, int64_t i,
                            int64_t n, vf limit, vd c, vd s, vd c_before, vd s_before)
{
    const int64_t last = row + POSENC_GROUP / 2 * step;
    vd twice = vd_load(run->freqs->twice_cos + i);

    for (; row != last; row += step) {
        if (row >= begin && row < end)
            put_row(run, sink, how, scaled, row, i, n, limit, c, s);
        vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);
        c_before = c;
        s_before = s;
        c = c_next;
        s = s_next;
    }
}

/* Rows [begin, end) of the group that begins at row `group`: one vector, n pairs from i on. Its angles
 * are at `at` in the plan, and anchors are those of pairs from `from` on. */
SIMD_INLINE void group_rows(const struct run *run, enum sink sink, enum how how, bool scaled,
                            int64_t group, int64_t begin, int64_t end, int64_t at, int64_t i,
                            int64_t n, const struct anchors *anchors, int64_t from)
{
    const int64_t upper = group + POSENC_GROUP / 2;
    vf limit = vf_set1(small_limit(run->scale));
    vd lower_c, lower_s, upper_c, upper_s;

    if (n < vf_lanes())
        limit = vf_select_lt(vf_iota(), vf_set1((float)n), limit, vf_set1(0.0f));
    middle_rows(run->freqs->middle + at + i, run->freqs->stride, vd_from_vf(sign_of(run)),
                anchors, i - from, &lower_c, &lower_s, &upper_c, &upper_s);
    if (begin < upper)
        half_group(run, sink, how, scaled, upper - 1, -1, begin, end, i, n, limit, lower_c,
                   lower_s, upper_c, upper_s);
    if (end > upper)
        half_group(run, sink, how, scaled, upper, 1, begin, end, i, n, limit, upper_c, upper_s,
                   lower_c, lower_s);
}

/* ---- Whole groups of whole vectors ---- */

/* Two rows, the first one step from `spot`, the second two. False: something may be small, and neither
 * is written. `zero`: the second row is position 0, whose values are known, and of a run upward. The
 * other one, position 1, then has nothing to mend: position 3 was seen before, and where a value at 1
 * is below 2^-21 one at 3 is below 2^-19. */
SIMD_INLINE bool put_two(const struct run *run, enum sink sink, enum how how, struct spot *spot,
                         const struct pitch *pitch, int64_t step, bool zero, float x_scale,
                         vd c, vd s, vd other_c, vd other_s)
{
    vf a, b, other_a, other_b;

    round_whole(sink, c, s, &a, &b);
    round_whole(sink, other_c, other_s, &other_a, &other_b);
    if (__builtin_expect(!vf_none_small(a, b, other_a, other_b), 0)) {
        if (!zero)
            return false;
        round_whole(sink, vd_set1(run->scale), vd_set1(0.0 * run->scale), &other_a, &other_b);
    }
    put_next(how, spot, pitch, step, x_scale, a, b);
    put_next(how, spot, pitch, step, x_scale, other_a, other_b);
    return true;
}

/* Half of a group, its middle row being one step from `spot`. Returns how many of the outer rows are
 * left. */
SIMD_INLINE int64_t whole_half(const struct run *run, enum sink sink, enum how how,
                               struct spot spot, const struct pitch *pitch, int64_t step,
                               bool zero, float x_scale, vd twice, vd c, vd s, vd c_before,
                               vd s_before)
{
    _Static_assert(POSENC_GROUP == 8, "half a group is two times two rows");
    vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);

    if (!put_two(run, sink, how, &spot, pitch, step, false, x_scale, c, s, c_next, s_next))
        return 4;
    c = vd_fms(twice, c_next, c);
    s = vd_fms(twice, s_next, s);
    c_next = vd_fms(twice, c, c_next);
    s_next = vd_fms(twice, s, s_next);
    return put_two(run, sink, how, &spot, pitch, step, zero, x_scale, c, s, c_next, s_next) ? 0
                                                                                            : 2;
}

/* Puts the rest of one vector's column: `lower` rows from the first on, and the last `upper`. */
static __attribute__((noinline)) void rest_of_column(const struct run *run, enum sink sink,
                                                     enum how how, int64_t row, int64_t lower,
                                                     int64_t upper, int64_t at, int64_t i,
                                                     const struct anchors *anchors,
                                                     int64_t from)
{
    const int64_t w = vf_lanes(), end = row + POSENC_GROUP;

    if (lower > 0)
        group_rows(run, sink, how, false, row, row, row + lower, at, i, w, anchors, from);
    if (upper > 0)
        group_rows(run, sink, how, false, row, end - upper, end, at, i, w, anchors, from);
}

/* A group's rows of whole vectors of pairs [from, to). What leads from vector to vector and from row to
 * row has to be in registers (strips.h): one address of what is written, of the plan and of the
 * anchors, which walk. */
SIMD_INLINE void whole_group(const struct run *run, enum sink sink, enum how how, int64_t row,
                             int64_t from, int64_t to, int64_t at, vd sign, float x_scale,
                             const struct pitch *pitch, const struct anchors *anchors)
{
    const int64_t stride = run->freqs->stride, w = vf_lanes();
    const double *middle = run->freqs->middle + at + from,
                 *twice_cos = run->freqs->twice_cos + from;
    const bool zero = run->first + (uint32_t)row == 0;
    struct spot upper_middle = spot_of(run, sink, how, row + POSENC_GROUP / 2, from);

    for (int64_t k = 0; k < to - from; k += w, middle += w) {
        vd lower_c, lower_s, upper_c, upper_s, twice = vd_load(twice_cos + k);
        struct spot lower_middle = upper_middle;

        middle_rows(middle, stride, sign, anchors, k, &lower_c, &lower_s, &upper_c, &upper_s);
        /* each half begins one step from the middle row of the other */
        int64_t lower = whole_half(run, sink, how, upper_middle, pitch, -1, zero, x_scale,
                                   twice, lower_c, lower_s, upper_c, upper_s);
        move_rows(&lower_middle, pitch, -1);
        int64_t upper = whole_half(run, sink, how, lower_middle, pitch, 1, false, x_scale,
                                   twice, upper_c, upper_s, lower_c, lower_s);
        if (__builtin_expect(lower + upper > 0, 0))
            rest_of_column(run, sink, how, row, lower, upper, at, from + k, anchors, from);
        move_pairs(&upper_middle, sink, w);
    }
}

/* Groups of rows [row, end). */
SIMD_INLINE void whole_groups(const struct run *run, enum sink sink, enum how how, int64_t row,
                              int64_t end, int64_t from, int64_t to,
                              const struct anchors *anchors)
{
    const int64_t next = 4 * run->freqs->stride;
    const vd sign = vd_from_vf(sign_of(run));
    const float x_scale = run->x_scale;
    const struct pitch pitch = pitch_of(run, sink);
    int64_t at = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK) / POSENC_GROUP * next;

    for (; row < end; row += POSENC_GROUP, at += next)
        whole_group(run, sink, how, row, from, to, at, sign, x_scale, &pitch, anchors);
}

typedef void groups(const struct run *run, int64_t row, int64_t end, int64_t from, int64_t to,
                    const struct anchors *anchors);
#define GROUPS(sink, how)                                                                      \
    static __attribute__((noinline)) void sink##_##how(const struct run *run, int64_t row,     \
                                                       int64_t end, int64_t from, int64_t to,  \
                                                       const struct anchors *anchors)          \
    {                                                                                          \
        whole_groups(run, sink, how, row, end, from, to, anchors);                             \
    }
GROUPS(TO_COS_AND_SIN, STORED)
GROUPS(TO_COS_AND_SIN, STREAMED)
GROUPS(TO_INTERLEAVED, STORED)
GROUPS(TO_INTERLEAVED, STREAMED)
GROUPS(TO_INTERLEAVED, ASKED)
GROUPS(TO_INTERLEAVED, ADDED)
GROUPS(TO_HALVES, STORED)
GROUPS(TO_HALVES, STREAMED)
GROUPS(TO_HALVES, ASKED)
GROUPS(TO_HALVES, ADDED)
GROUPS(TO_TILE, STORED)
#undef GROUPS
static groups *const all_groups[][ADDED + 1] = {
    [TO_COS_AND_SIN] = { [STORED] = TO_COS_AND_SIN_STORED,
                         [STREAMED] = TO_COS_AND_SIN_STREAMED },
    [TO_INTERLEAVED] = { [STORED] = TO_INTERLEAVED_STORED,
                         [STREAMED] = TO_INTERLEAVED_STREAMED,
                         [ASKED] = TO_INTERLEAVED_ASKED,
                         [ADDED] = TO_INTERLEAVED_ADDED },
    [TO_HALVES] = { [STORED] = TO_HALVES_STORED,
                    [STREAMED] = TO_HALVES_STREAMED,
                    [ASKED] = TO_HALVES_ASKED,
                    [ADDED] = TO_HALVES_ADDED },
    [TO_TILE] = { [STORED] = TO_TILE_STORED },
};

#endif
