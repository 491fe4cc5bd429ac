/*
 * Kernels alibi, alibi_add, t5_bias and t5_bias_add: biases that depend on the distance between
 * query and key alone, written out or added to scores as they pass.
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

/* Biases of keys whose positions less the query's are `ahead`.  Distances are below 2^24, exact
 * in f32.  0 - slope |d| with one fma is the product rounded once, and +0 at distance 0. */
SIMD_INLINE vf alibi_bias(bool causal, vf minus_slope, vf ahead)
{
    vf zero = vf_set1(0.0f), bias = vf_fma(minus_slope, vf_abs(ahead), zero);

    return causal ? vf_select_lt(zero, ahead, vf_set1(-INFINITY), bias) : bias;
}

/* One row of keys for the query at position `query` (that of key 0 being 0), four vectors at a
 * time so that no addition waits for the one before it. */
SIMD_INLINE void alibi_row(bool add, bool causal, float slope, int64_t query, int64_t keys,
                           float x_scale, const float *x, float *out)
{
    int64_t w = vf_lanes(), j = 0;
    int64_t mixed =
        causal && query + 1 < keys ? (query < 0 ? 0 : query + 1) : keys; /* then all -inf */
    vf scale = vf_set1(x_scale), minus_slope = vf_set1(-slope), width = vf_set1((float)w);
    vf ahead = vf_sub(vf_iota(), vf_set1((float)query));

    for (; j + 4 * w <= keys && j < mixed; j += 4 * w) {
        vf second = vf_add(ahead, width), third = vf_add(ahead, vf_add(width, width));
        vf fourth = vf_add(second, vf_add(width, width));
        put_bias(add, x + j, scale, out + j, alibi_bias(causal, minus_slope, ahead), w);
        put_bias(add, x + j + w, scale, out + j + w, alibi_bias(causal, minus_slope, second),
                 w);
        put_bias(add, x + j + 2 * w, scale, out + j + 2 * w,
                 alibi_bias(causal, minus_slope, third), w);
        put_bias(add, x + j + 3 * w, scale, out + j + 3 * w,
                 alibi_bias(causal, minus_slope, fourth), w);
        ahead = vf_add(ahead, vf_mul(width, vf_set1(4.0f)));
    }
    for (; j < keys && j < mixed; j += w, ahead = vf_add(ahead, width)) {
        int64_t n = keys - j < w ? keys - j : w;
        put_bias(add, x + j, scale, out + j, alibi_bias(causal, minus_slope, ahead), n);
    }
    for (; j < keys; j += w)
        put_bias(add, x + j, scale, out + j, vf_set1(-INFINITY), keys - j < w ? keys - j : w);
}

SIMD_INLINE void alibi_rows(const struct posenc_alibi_args *args, bool add, bool causal)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++)
                alibi_row(add, causal, args->slopes[h], i + args->query_offset,
                          args->out.shape[3], args->x_scale,
                          posenc_row(add ? &args->x : &args->out, b, h, i),
                          posenc_row(&args->out, b, h, i));
}

static enum posenc_status alibi(const struct posenc_alibi_args *args)
{
    if (args->causal)
        alibi_rows(args, false, true);
    else
        alibi_rows(args, false, false);
    return POSENC_OK;
}

static enum posenc_status alibi_add(const struct posenc_alibi_args *args)
{
    if (args->causal)
        alibi_rows(args, true, true);
    else
        alibi_rows(args, true, false);
    return POSENC_OK;
}

/* A tile of T5: at most so many queries and keys; its line of biases lives on the stack. */
enum { TILE_QUERIES = 32, TILE_KEYS = 4096 };

static void fill(float *line, int64_t from, int64_t to, float value)
{
    for (int64_t k = from; k < to; k++)
        line[k] = value;
}

static int64_t clamp(int64_t k, int64_t n) { return k < 0 ? 0 : k > n ? n : k; }

/* line[k] = table[bucket(first + k), head] for n relative positions key - query, bucket by
 * bucket: bucket b holds the distances from thresholds[b] to below thresholds[b + 1]. */
static void t5_line(const struct posenc_t5_args *args, int64_t head, int64_t first, int64_t n,
                    float *line)
{
    int64_t buckets = args->bidirectional ? args->num_buckets / 2 : args->num_buckets;
    int64_t stride = args->table.stride[0];
    const float *table = (const float *)args->table.data + head;

    for (int64_t bucket = 0; bucket < buckets; bucket++) {
        int64_t nearest = args->thresholds[bucket];
        int64_t beyond = bucket + 1 < buckets ? args->thresholds[bucket + 1] : INT64_C(1) << 40;
        int64_t nearest_later = nearest > 0 ? nearest : 1; /* distance 0 is not a later key */

        fill(line, clamp(1 - beyond - first, n), clamp(1 - nearest - first, n),
             table[bucket * stride]);
        if (args->bidirectional)
            fill(line, clamp(nearest_later - first, n), clamp(beyond - first, n),
                 table[(bucket + buckets) * stride]);
    }
    if (!args->bidirectional)
        fill(line, clamp(1 - first, n), n, table[0]);
}

/* One row of a tile: n biases of the line, onto scores where there are some. */
SIMD_INLINE void t5_row(bool add, const float *bias, float x_scale, const float *x, float *out,
                        int64_t n)
{
    int64_t w = vf_lanes(), j = 0;
    vf scale = vf_set1(x_scale);

    for (; j + 4 * w <= n; j += 4 * w) {
        put_bias(add, x + j, scale, out + j, vf_load(bias + j), w);
        put_bias(add, x + j + w, scale, out + j + w, vf_load(bias + j + w), w);
        put_bias(add, x + j + 2 * w, scale, out + j + 2 * w, vf_load(bias + j + 2 * w), w);
        put_bias(add, x + j + 3 * w, scale, out + j + 3 * w, vf_load(bias + j + 3 * w), w);
    }
    for (; j + w <= n; j += w)
        put_bias(add, x + j, scale, out + j, vf_load(bias + j), w);
    if (j < n)
        put_bias(add, x + j, scale, out + j, vf_load_n(bias + j, n - j), n - j);
}

SIMD_INLINE void t5_tile(const struct posenc_t5_args *args, bool add, int64_t b, int64_t h,
                         int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    float line[TILE_QUERIES + TILE_KEYS];

    t5_line(args, h, j0 - (i1 - 1) - args->query_offset, (i1 - i0) + (j1 - j0) - 1, line);
    for (int64_t i = i0; i < i1; i++)
        t5_row(add, line + (i1 - 1 - i), args->x_scale,
               posenc_row(add ? &args->x : &args->out, b, h, i) + j0,
               posenc_row(&args->out, b, h, i) + j0, j1 - j0);
}

SIMD_INLINE void t5_tiles(const struct posenc_t5_args *args, bool add)
{
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < queries; i += TILE_QUERIES)
                for (int64_t j = 0; j < keys; j += TILE_KEYS)
                    t5_tile(args, add, b, h, i,
                            i + TILE_QUERIES < queries ? i + TILE_QUERIES : queries, j,
                            j + TILE_KEYS < keys ? j + TILE_KEYS : keys);
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
