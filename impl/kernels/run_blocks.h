/*
 * Blocks of 64 and groups of 8 consecutive positions, in numerics mode exact (sincos.h). A block begins with its
 * anchor. A group has two middle rows, rotated from the anchor, and three rows outward from each of them. group_rows()
 * puts any rows of a group with checks; put_whole_groups() is the fast path for whole groups of whole vectors.
 *
 * Vectors of cosines and sines are c and s. An outward step needs two neighbouring rows: (c, s) and (c_before,
 * s_before).
 */
#ifndef POSENC_KERNELS_RUN_BLOCKS_H
#define POSENC_KERNELS_RUN_BLOCKS_H

#include "sincos.h"
#include "run_output.h"

/* Pairs of a strip if x is read: whole rows of most models, so that x is read in the order of memory. */
enum { WIDE_STRIP_PAIRS = 640, WIDE_STRIP_CHANNELS = 2 * WIDE_STRIP_PAIRS };

/* Cosines and sines of a strip at the first position of a block. An alignment to cache lines matters. */
struct anchors {
    _Alignas(64) double cosine[WIDE_STRIP_PAIRS], sine[WIDE_STRIP_PAIRS];
};

/* Rotates the k-th pair's vector of the anchors by an angle; `sign` is that of the run's sines. */
SIMD_INLINE void rotate_anchor(const struct anchors *anchors, int64_t k, const double *cosine,
                               const double *sine, vd sign, vd *c, vd *s)
{
    vd from_c = vd_load(anchors->cosine + k), from_s = vd_load(anchors->sine + k);
    vd by_c = vd_load(cosine), by_s = vd_load(sine);

    *c = vd_fnma(from_s, by_s, vd_mul(from_c, by_c));
    *s = vd_mul(sign, vd_fma(from_c, by_s, vd_mul(from_s, by_c)));
}

/* Returns the two middle rows of a group. `middle` holds four arrays, `stride` apart: cos and sin of both rotations. */
SIMD_INLINE void middle_rows(const double *middle, int64_t stride, vd sign,
                             const struct anchors *anchors, int64_t k, vd *lower_c, vd *lower_s,
                             vd *upper_c, vd *upper_s)
{
    rotate_anchor(anchors, k, middle, middle + stride, sign, lower_c, lower_s);
    rotate_anchor(anchors, k, middle + 2 * stride, middle + 3 * stride, sign, upper_c, upper_s);
}

/* ---- Some rows, one by one ---- */

/* Evaluates the small values of a row's n pairs again (sincos.h), from pair i on. */
static __attribute__((noinline)) void fix_row(const struct run *run, int64_t row, int64_t i,
                                              int64_t n, float *cosines, float *sines)
{
    fix_small(run->freqs, run->first + (uint32_t)row, i, n, run->scale,
              run->scales ? scales_at(run, row, i) : NULL, cosines, sines);
    for (int64_t k = 0; k < n && run->negative; k++)
        sines[k] = -sines[k];
}

/* Does the same for vectors. At position 0, where each fresh sequence begins, all values are known. */
SIMD_INLINE void fix_vectors(const struct run *run, int64_t row, int64_t i, int64_t n,
                             vf *cosine, vf *sine)
{
    float cosines[POSENC_FREQS_PAD], sines[POSENC_FREQS_PAD];

    if (run->first + (uint32_t)row == 0 && !run->scales) {
        *cosine = vf_set1((float)run->scale);
        *sine = vf_mul(vf_set1((float)(0.0 * run->scale)), sine_sign(run));
        return;
    }
    vf_store(cosines, *cosine);
    vf_store(sines, vf_mul(*sine, sine_sign(run)));
    fix_row(run, row, i, n, cosines, sines);
    *cosine = vf_load(cosines);
    *sine = vf_load(sines);
}

/* Rounds and stores a row's vector of n pairs, and evaluates small values again. `limit` is the bound of small
 * values in its first n lanes, and zero past them. */
SIMD_INLINE void put_row(const struct run *run, enum sink sink, enum store_mode mode,
                         bool scaled, int64_t row, int64_t i, int64_t n, vf limit, vd c, vd s)
{
    if (scaled) {
        vd scale = vd_load(scales_at(run, row, i));
        c = vd_mul(c, scale);
        s = vd_mul(s, scale);
        limit = vf_from_vd(vd_mul(scale, vd_set1(POSENC_SMALL)));
    }
    vf cosine = vf_from_vd(c), sine = vf_from_vd(s);
    if (__builtin_expect(vf_any_lt(vf_min_abs(cosine, sine), limit), 0))
        fix_vectors(run, row, i, n, &cosine, &sine);
    put_cos_sin(run, sink, mode, row, i, n, cosine, sine);
}

/* Puts half of a group: its middle row (c, s) and the rows outward by `step` (1 or -1), as far as they are in
 * [begin, end). (c_before, s_before) is the middle row of the other half. */
SIMD_INLINE void half_group(const struct run *run, enum sink sink, enum store_mode mode,
                            bool scaled, int64_t row, int64_t step, int64_t begin, int64_t end,
                            int64_t i, int64_t n, vf limit, vd c, vd s, vd c_before,
                            vd s_before)
{
    const int64_t last = row + POSENC_GROUP / 2 * step;
    vd twice = vd_load(run->freqs->twice_cos + i);

    for (; row != last; row += step) {
        if (row >= begin && row < end)
            put_row(run, sink, mode, scaled, row, i, n, limit, c, s);
        vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);
        c_before = c;
        s_before = s;
        c = c_next;
        s = s_next;
    }
}

/* Puts rows [begin, end) of the group that begins at row `group`, for a vector of n pairs from pair i on. `at` is
 * the offset of the group's rotations in freqs->middle; the anchors begin at pair `from`. */
SIMD_INLINE void group_rows(const struct run *run, enum sink sink, enum store_mode mode,
                            bool scaled, int64_t group, int64_t begin, int64_t end, int64_t at,
                            int64_t i, int64_t n, const struct anchors *anchors, int64_t from)
{
    const int64_t upper = group + POSENC_GROUP / 2;
    vf limit = vf_set1(small_limit(run->scale));
    vd lower_c, lower_s, upper_c, upper_s;

    if (n < vf_lanes())
        limit = vf_select_lt(vf_iota(), vf_set1((float)n), limit, vf_set1(0.0f));
    middle_rows(run->freqs->middle + at + i, run->freqs->stride, vd_from_vf(sine_sign(run)),
                anchors, i - from, &lower_c, &lower_s, &upper_c, &upper_s);
    if (begin < upper)
        half_group(run, sink, mode, scaled, upper - 1, -1, begin, end, i, n, limit, lower_c,
                   lower_s, upper_c, upper_s);
    if (end > upper)
        half_group(run, sink, mode, scaled, upper, 1, begin, end, i, n, limit, upper_c, upper_s,
                   lower_c, lower_s);
}

/* ---- Whole groups of whole vectors ---- */

/* Puts two rows, one and two steps from `cursor`. Returns false, and stores neither, if a value may be small.
 * `zero`: the second row is position 0, whose values are known. The first row, position 1, then needs no check:
 * where a value at 1 is below 2^-21, one at 3 is below 2^-19, and position 3 was checked before. */
SIMD_INLINE bool put_two_rows(const struct run *run, enum sink sink, enum store_mode mode,
                              struct row_cursor *cursor, const struct row_layout *layout,
                              int64_t step, bool zero, float x_scale, vd c, vd s, vd other_c,
                              vd other_s)
{
    vf a, b, other_a, other_b;

    round_to_vectors(sink, c, s, &a, &b);
    round_to_vectors(sink, other_c, other_s, &other_a, &other_b);
    if (__builtin_expect(!vf_none_small(a, b, other_a, other_b), 0)) {
        if (!zero)
            return false;
        round_to_vectors(sink, vd_set1(run->scale), vd_set1(0.0 * run->scale), &other_a,
                         &other_b);
    }
    put_next_row(mode, cursor, layout, step, x_scale, a, b);
    put_next_row(mode, cursor, layout, step, x_scale, other_a, other_b);
    return true;
}

/* Puts half of a group, whose middle row is one step from `cursor`. Returns how many outer rows are left. */
SIMD_INLINE int64_t put_half_group(const struct run *run, enum sink sink, enum store_mode mode,
                                   struct row_cursor cursor, const struct row_layout *layout,
                                   int64_t step, bool zero, float x_scale, vd twice, vd c, vd s,
                                   vd c_before, vd s_before)
{
    _Static_assert(POSENC_GROUP == 8, "half a group is two times two rows");
    vd c_next = vd_fms(twice, c, c_before), s_next = vd_fms(twice, s, s_before);

    if (!put_two_rows(run, sink, mode, &cursor, layout, step, false, x_scale, c, s, c_next,
                      s_next))
        return 4;
    c = vd_fms(twice, c_next, c);
    s = vd_fms(twice, s_next, s);
    c_next = vd_fms(twice, c, c_next);
    s_next = vd_fms(twice, s, s_next);
    return put_two_rows(run, sink, mode, &cursor, layout, step, zero, x_scale, c, s, c_next,
                        s_next)
               ? 0
               : 2;
}

/* Puts the rows that put_half_group() left: the first `lower` and the last `upper` of the group. */
static __attribute__((noinline)) void
put_remaining_rows(const struct run *run, enum sink sink, enum store_mode mode, int64_t row,
                   int64_t lower, int64_t upper, int64_t at, int64_t i,
                   const struct anchors *anchors, int64_t from)
{
    const int64_t w = vf_lanes(), end = row + POSENC_GROUP;

    if (lower > 0)
        group_rows(run, sink, mode, false, row, row, row + lower, at, i, w, anchors, from);
    if (upper > 0)
        group_rows(run, sink, mode, false, row, end - upper, end, at, i, w, anchors, from);
}

/* Puts a group of whole vectors of pairs [from, to). Pointers advance by vectors, and stay in registers. */
SIMD_INLINE void put_whole_group(const struct run *run, enum sink sink, enum store_mode mode,
                                 int64_t row, int64_t from, int64_t to, int64_t at, vd sign,
                                 float x_scale, const struct row_layout *layout,
                                 const struct anchors *anchors)
{
    const int64_t stride = run->freqs->stride, w = vf_lanes();
    const double *middle = run->freqs->middle + at + from,
                 *twice_cos = run->freqs->twice_cos + from;
    const bool zero = run->first + (uint32_t)row == 0;
    struct row_cursor upper_middle =
        row_cursor_at(run, sink, mode, row + POSENC_GROUP / 2, from);

    for (int64_t k = 0; k < to - from; k += w, middle += w) {
        vd lower_c, lower_s, upper_c, upper_s, twice = vd_load(twice_cos + k);
        struct row_cursor lower_middle = upper_middle;

        middle_rows(middle, stride, sign, anchors, k, &lower_c, &lower_s, &upper_c, &upper_s);
        /* each half begins one step from the other's middle row */
        int64_t lower = put_half_group(run, sink, mode, upper_middle, layout, -1, zero, x_scale,
                                       twice, lower_c, lower_s, upper_c, upper_s);
        move_rows(&lower_middle, layout, -1);
        int64_t upper = put_half_group(run, sink, mode, lower_middle, layout, 1, false, x_scale,
                                       twice, upper_c, upper_s, lower_c, lower_s);
        if (__builtin_expect(lower + upper > 0, 0))
            put_remaining_rows(run, sink, mode, row, lower, upper, at, from + k, anchors, from);
        move_pairs(&upper_middle, sink, w);
    }
}

/* Puts the whole groups of rows [row, end). */
SIMD_INLINE void put_whole_groups(const struct run *run, enum sink sink, enum store_mode mode,
                                  int64_t row, int64_t end, int64_t from, int64_t to,
                                  const struct anchors *anchors)
{
    const int64_t next = 4 * run->freqs->stride;
    const vd sign = vd_from_vf(sine_sign(run));
    const float x_scale = run->x_scale;
    const struct row_layout layout = row_layout_of(run, sink);
    int64_t at = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK) / POSENC_GROUP * next;

    for (; row < end; row += POSENC_GROUP, at += next)
        put_whole_group(run, sink, mode, row, from, to, at, sign, x_scale, &layout, anchors);
}

/* Instances of put_whole_groups() by sink and mode, TO_HALVES_ADD for example. */
typedef void group_function(const struct run *run, int64_t row, int64_t end, int64_t from,
                            int64_t to, const struct anchors *anchors);
#define GROUP_FUNCTION(sink, mode)                                                             \
    static __attribute__((noinline)) void sink##_##mode(const struct run *run, int64_t row,    \
                                                        int64_t end, int64_t from, int64_t to, \
                                                        const struct anchors *anchors)         \
    {                                                                                          \
        put_whole_groups(run, sink, mode, row, end, from, to, anchors);                        \
    }
GROUP_FUNCTION(TO_COS_AND_SIN, STORE)
GROUP_FUNCTION(TO_COS_AND_SIN, STREAM)
GROUP_FUNCTION(TO_INTERLEAVED, STORE)
GROUP_FUNCTION(TO_INTERLEAVED, STREAM)
GROUP_FUNCTION(TO_INTERLEAVED, STORE_PREFETCH)
GROUP_FUNCTION(TO_INTERLEAVED, ADD)
GROUP_FUNCTION(TO_HALVES, STORE)
GROUP_FUNCTION(TO_HALVES, STREAM)
GROUP_FUNCTION(TO_HALVES, STORE_PREFETCH)
GROUP_FUNCTION(TO_HALVES, ADD)
GROUP_FUNCTION(TO_TILE, STORE)
#undef GROUP_FUNCTION
static group_function *const group_functions[][ADD + 1] = {
    [TO_COS_AND_SIN] = { [STORE] = TO_COS_AND_SIN_STORE, [STREAM] = TO_COS_AND_SIN_STREAM },
    [TO_INTERLEAVED] = { [STORE] = TO_INTERLEAVED_STORE,
                         [STREAM] = TO_INTERLEAVED_STREAM,
                         [STORE_PREFETCH] = TO_INTERLEAVED_STORE_PREFETCH,
                         [ADD] = TO_INTERLEAVED_ADD },
    [TO_HALVES] = { [STORE] = TO_HALVES_STORE,
                    [STREAM] = TO_HALVES_STREAM,
                    [STORE_PREFETCH] = TO_HALVES_STORE_PREFETCH,
                    [ADD] = TO_HALVES_ADD },
    [TO_TILE] = { [STORE] = TO_TILE_STORE },
};

/* ---- Blocks ---- */

/* Evaluates the anchors of pairs [from, to) at a position. The anchors of position 0 are known. */
SIMD_INLINE void find_anchors(const struct run *run, uint32_t position, int64_t from,
                              int64_t to, struct anchors *anchors)
{
    const vd scale = vd_set1(run->scale);

    for (int64_t i = from; i < to; i += vf_lanes()) {
        vd c = scale, s = vd_set1(0.0 * run->scale);

        if (position != 0) {
            vq q;
            vd r = phase_reduced(run->freqs, position, i, &q);
            sincos_reduced(r, &c, &s);
            vd_quadrant(q, c, s, &c, &s);
            c = vd_mul(c, scale);
            s = vd_mul(s, scale);
        }
        vd_store(anchors->cosine + (i - from), c);
        vd_store(anchors->sine + (i - from), s);
    }
}

/* Return the end of the group and of the block that row `row` is in, or the end of the rows. */
SIMD_INLINE int64_t group_end(const struct run *run, int64_t row, int64_t end)
{
    int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_GROUP);

    return min_i64(end, row - into + POSENC_GROUP);
}

SIMD_INLINE int64_t block_end(const struct run *run, int64_t row)
{
    int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK);

    return min_i64(run->count, row - into + POSENC_BLOCK);
}

/* Evaluates the anchors of pairs [from, to) for the block that row `row` is in. */
SIMD_INLINE void block_anchors(const struct run *run, int64_t row, int64_t from, int64_t to,
                               struct anchors *anchors)
{
    find_anchors(run, (run->first + (uint32_t)row) / POSENC_BLOCK * POSENC_BLOCK, from, to,
                 anchors);
}

/* Puts rows [row, end), which lie within one group, for pairs [i, to) of the strip that begins at pair `from`. */
SIMD_INLINE void strip_rows(const struct run *run, enum sink sink, enum store_mode mode,
                            bool scaled, int64_t row, int64_t end, int64_t i, int64_t to,
                            const struct anchors *anchors, int64_t from)
{
    const int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK);
    const int64_t at = into / POSENC_GROUP * 4 * run->freqs->stride;

    for (; i < to; i += vf_lanes())
        group_rows(run, sink, mode, scaled, row - into % POSENC_GROUP, row, end, at, i,
                   min_i64(vf_lanes(), to - i), anchors, from);
}

/* Puts rows [row, end), which lie within one block, for pairs [from, to), whose anchors are given. */
SIMD_INLINE void block_rows(const struct run *run, enum sink sink, enum store_mode mode,
                            bool scaled, int64_t row, int64_t end, int64_t from, int64_t to,
                            const struct anchors *anchors)
{
    /* vf_none_small() needs values below 2, and finds those below 2^-15. */
    const bool is_bounded = !scaled && fabs(run->scale) < 2.0;
    const int64_t whole = is_bounded ? whole_vector_end(run, sink, from, to) : from;

    for (int64_t next; row < end; row = next) {
        int64_t i = from;

        next = group_end(run, row, end);
        if (next - row == POSENC_GROUP && whole > from) {
            next = end - (end - row) % POSENC_GROUP;
            group_functions[sink][mode](run, row, next, from, whole, anchors);
            i = whole;
        }
        for (int64_t k = row, k_end; k < next && i < to; k = k_end) {
            k_end = group_end(run, k, next);
            strip_rows(run, sink, mode, scaled, k, k_end, i, to, anchors, from);
        }
    }
}

/* Evaluates and stores a whole run. */
SIMD_INLINE void run_blocks(const struct run *run, enum sink sink, enum store_mode mode,
                            bool scaled)
{
    const int64_t strip = mode == ADD ? WIDE_STRIP_PAIRS : STRIP_PAIRS;
    struct anchors anchors;

    for (int64_t row = 0, end; row < run->count; row = end) {
        end = block_end(run, row);
        for (int64_t from = run->from, to; from < run->pairs; from = to) {
            to = min_i64(from + strip, run->pairs);
            block_anchors(run, row, from, to, &anchors);
            block_rows(run, sink, mode, scaled, row, end, from, to, &anchors);
        }
    }
}

#endif
