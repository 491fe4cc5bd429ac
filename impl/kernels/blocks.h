/*
 * Runs of profile exact, by blocks of positions that share anchors.
 */
#ifndef POSENC_KERNELS_BLOCKS_H
#define POSENC_KERNELS_BLOCKS_H

#include "groups.h"

/* At position 0, where each fresh sequence begins, they are known. */
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

/* Finds the anchors of pairs [from, to) of the block that row `row` is in. */
SIMD_INLINE void block_anchors(const struct run *run, int64_t row, int64_t from, int64_t to,
                               struct anchors *anchors)
{
    find_anchors(run, (run->first + (uint32_t)row) / POSENC_BLOCK * POSENC_BLOCK, from, to,
                 anchors);
}

/* Rows [row, end) within one group, pairs [i, to), of the strip that begins at `from`. */
SIMD_INLINE void strip_rows(const struct run *run, enum sink sink, enum how how, bool scaled,
                            int64_t row, int64_t end, int64_t i, int64_t to,
                            const struct anchors *anchors, int64_t from)
{
    const int64_t into = (int64_t)((run->first + (uint32_t)row) % POSENC_BLOCK);
    const int64_t at = into / POSENC_GROUP * 4 * run->freqs->stride;

    for (; i < to; i += vf_lanes())
        group_rows(run, sink, how, scaled, row - into % POSENC_GROUP, row, end, at, i,
                   least(vf_lanes(), to - i), anchors, from);
}

/* Rows [row, end) within one block of POSENC_BLOCK positions, pairs [from, to), of which the anchors
 * are. */
SIMD_INLINE void block_rows(const struct run *run, enum sink sink, enum how how, bool scaled,
                            int64_t row, int64_t end, int64_t from, int64_t to,
                            const struct anchors *anchors)
{
    /* All values are below 2 then, and what is small is below 2^-15 (vf_none_small). */
    const bool usual = !scaled && fabs(run->scale) < 2.0;
    const int64_t whole = usual ? whole_to(run, sink, from, to) : from;

    for (int64_t next; row < end; row = next) {
        int64_t i = from;

        next = group_end(run, row, end);
        if (next - row == POSENC_GROUP && whole > from) {
            next = end - (end - row) % POSENC_GROUP;
            all_groups[sink][how](run, row, next, from, whole, anchors);
            i = whole;
        }
        for (int64_t k = row, k_end; k < next && i < to; k = k_end) {
            k_end = group_end(run, k, next);
            strip_rows(run, sink, how, scaled, k, k_end, i, to, anchors, from);
        }
    }
}

SIMD_INLINE void run_blocks(const struct run *run, enum sink sink, enum how how, bool scaled)
{
    const int64_t strip = how == ADDED ? ADDED_STRIP_PAIRS : STRIP_PAIRS;
    struct anchors anchors;

    for (int64_t row = 0, end; row < run->count; row = end) {
        end = block_end(run, row);
        for (int64_t from = run->from, to; from < run->pairs; from = to) {
            to = least(from + strip, run->pairs);
            block_anchors(run, row, from, to, &anchors);
            block_rows(run, sink, how, scaled, row, end, from, to, &anchors);
        }
    }
}

#endif
