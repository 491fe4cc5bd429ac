/*
 * Kernels alibi, alibi_add, t5_bias and t5_bias_add: biases that depend on the distance between query
 * and key alone, written out or added to scores as they pass.
 *
 *     alibi   -slope |query - key|, -infinity for later keys where causal      (2108.12409)
 *     t5      table[bucket(key - query), head]                                 (1910.10683)
 *
 * A T5 row is the row before it moved by one key, so a tile of queries reads one short line of
 * biases by distance, filled once, at a moving start.
 */
#ifndef POSENC_BIAS_TMPL_H
#define POSENC_BIAS_TMPL_H

#include "../simd/simd.h"
#include "common.h"

/* n biases to out, onto scores where there are some. */
SIMD_INLINE void put_bias(bool add, const float *x, vf x_scale, float *out, vf bias, int64_t n)
{
    bool whole = n == vf_lanes();

    if (add)
        bias = vf_fma(whole ? vf_load(x) : vf_load_n(x, n), x_scale, bias);
    if (whole)
        vf_store(out, bias);
    else
        vf_store_n(out, bias, n);
}

/* One row of keys for the query at position `query` (relative to key 0).  Distances are below 2^24:
 * exact in f32.  min(d, -d) with both signs computed is +0 at distance 0, and so is the bias. */
SIMD_INLINE void alibi_row(const struct posenc_alibi_args *args, bool add, float slope, int64_t query,
                           int64_t keys, const float *x, float *out)
{
    vf scale = vf_set1(args->x_scale), slopes = vf_set1(slope), q = vf_set1((float)query);
    vf later = vf_set1(args->causal ? -INFINITY : 0.0f), zero = vf_set1(0.0f);

    for (int64_t j = 0; j < keys; j += vf_lanes()) {
        int64_t n = keys - j < vf_lanes() ? keys - j : vf_lanes();
        vf key = vf_add(vf_set1((float)j), vf_iota());
        vf ahead = vf_sub(key, q), behind = vf_sub(q, key);
        vf bias = vf_mul(slopes, vf_min(ahead, behind));

        if (args->causal)
            bias = vf_select_lt(zero, ahead, later, bias);
        put_bias(add, add ? x + j : NULL, scale, out + j, bias, n);
    }
}

SIMD_INLINE void alibi_rows(const struct posenc_alibi_args *args, bool add)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++)
                alibi_row(args, add, args->slopes[h], i + args->query_offset, args->out.shape[3],
                          add ? posenc_row(&args->x, b, h, i) : NULL, posenc_row(&args->out, b, h, i));
}

static enum posenc_status alibi(const struct posenc_alibi_args *args)
{
    alibi_rows(args, false);
    return POSENC_OK;
}

static enum posenc_status alibi_add(const struct posenc_alibi_args *args)
{
    alibi_rows(args, true);
    return POSENC_OK;
}

/* A tile of T5: at most so many queries and keys; its line of biases lives on the stack. */
enum { TILE_QUERIES = 64, TILE_KEYS = 1024 };

/* line[k] = table[bucket(first + k), head] for n relative positions key - query. */
static void t5_line(const struct posenc_t5_args *args, int64_t head, int64_t first, int64_t n,
                    float *line)
{
    int64_t buckets = args->bidirectional ? args->num_buckets / 2 : args->num_buckets;
    int64_t bucket = buckets - 1, stride = args->table.stride[0];
    const float *table = (const float *)args->table.data + head;
    int64_t k = 0;

    for (; k < n && first + k <= 0; k++) { /* keys at or before the query: distance falls */
        while (args->thresholds[bucket] > -(first + k))
            bucket--;
        line[k] = table[bucket * stride];
    }
    bucket = 0;
    for (; k < n; k++) { /* later keys: distance rises, or all share bucket 0 */
        while (args->bidirectional && bucket + 1 < buckets && args->thresholds[bucket + 1] <= first + k)
            bucket++;
        line[k] = table[(args->bidirectional ? bucket + buckets : 0) * stride];
    }
}

SIMD_INLINE void t5_tile(const struct posenc_t5_args *args, bool add, int64_t b, int64_t h, int64_t i0,
                         int64_t i1, int64_t j0, int64_t j1)
{
    float line[TILE_QUERIES + TILE_KEYS];
    vf scale = vf_set1(args->x_scale);

    t5_line(args, h, j0 - (i1 - 1) - args->query_offset, (i1 - i0) + (j1 - j0) - 1, line);
    for (int64_t i = i0; i < i1; i++) {
        const float *bias = line + (i1 - 1 - i);
        const float *x = add ? posenc_row(&args->x, b, h, i) + j0 : NULL;
        float *out = posenc_row(&args->out, b, h, i) + j0;

        for (int64_t j = 0; j < j1 - j0; j += vf_lanes()) {
            int64_t n = j1 - j0 - j < vf_lanes() ? j1 - j0 - j : vf_lanes();
            vf value = n == vf_lanes() ? vf_load(bias + j) : vf_load_n(bias + j, n);
            put_bias(add, add ? x + j : NULL, scale, out + j, value, n);
        }
    }
}

SIMD_INLINE void t5_tiles(const struct posenc_t5_args *args, bool add)
{
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < queries; i += TILE_QUERIES)
                for (int64_t j = 0; j < keys; j += TILE_KEYS)
                    t5_tile(args, add, b, h, i, i + TILE_QUERIES < queries ? i + TILE_QUERIES : queries,
                            j, j + TILE_KEYS < keys ? j + TILE_KEYS : keys);
}

static enum posenc_status t5_bias(const struct posenc_t5_args *args)
{
    t5_tiles(args, false);
    return POSENC_OK;
}

static enum posenc_status t5_bias_add(const struct posenc_t5_args *args)
{
    t5_tiles(args, true);
    return POSENC_OK;
}

#endif
