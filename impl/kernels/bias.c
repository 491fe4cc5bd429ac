/*
 * Kernels alibi, distance_bias and their _add: biases that depend on the distance of a key from its query. The query at
 * row i has position i + query_offset, the key at column j has position j. Shapes: out and x [batch, heads, queries,
 * keys].
 *
 *   alibi     out = -slope[b, h] |query - key|, and -infinity for later keys if causal     slopes [batch or 1, heads]
 *   distance  out = values[h, query - key - first]                                         values [heads, distances]
 *   *_add     out = fma(x, x_scale, the bias)
 *
 * Sources: Press et al. 2108.12409 (ALiBi); Chi et al. 2205.09921 (KERPLE), 2212.10356 (Sandwich).
 *
 * Both read next to nothing and are bound by stores. An alibi row is cut at the query's position, so that each side is
 * one product per key, without the absolute value and the comparison of the mask. A row of distance_bias is a
 * contiguous piece of values[h], read backwards: the row of the next query starts one element later.
 */
#include "biases.h"

/* Returns the biases of keys at `offset` = key position - query position, any sign. Offsets are below 2^24, hence
 * exact in f32. fma(-slope, |offset|, 0) is the product rounded once, and +0 at offset 0. */
SIMD_INLINE vf alibi_bias(bool causal, vf minus_slope, vf offset)
{
    vf zero = vf_set1(0.0f), bias = vf_fma(minus_slope, vf_abs(offset), zero);

    return causal ? vf_select_lt(zero, offset, vf_set1(-INFINITY), bias) : bias;
}

/* Puts four vectors of keys from j on, all on one side of the query. `a` holds the offsets of the first vector. */
SIMD_INLINE void alibi_four(enum posenc_dtype type, enum store_mode mode, vf slopes, vf a,
                            vf x_scale, const void *x, void *out, int64_t j)
{
    const vf zero = vf_set1(0.0f), width = vf_set1((float)vf_lanes());
    const vf b = vf_add(a, width), c = vf_add(a, vf_add(width, width));
    const vf d = vf_add(b, vf_add(width, width));

    put_four(type, mode, x, x_scale, out, j, vf_fma(slopes, a, zero), vf_fma(slopes, b, zero),
             vf_fma(slopes, c, zero), vf_fma(slopes, d, zero));
}

/* Puts the biases slope * offset of n keys from j on, in whole groups of four vectors; from DRAM in place, of 16
 * vectors. `offset` is that of key j; slope is negative for later keys. Returns the first key that is left. */
SIMD_INLINE int64_t alibi_side(enum posenc_dtype type, enum store_mode mode, float slope,
                               int64_t offset, int64_t j, int64_t n, float x_scale,
                               const void *x, void *out)
{
    const int64_t w = vf_lanes(), end = j + n;
    const vf scale = vf_set1(x_scale), slopes = vf_set1(slope);
    const vf four = vf_set1(4.0f * (float)w);
    vf a = vf_add(vf_iota(), vf_set1((float)offset));

    for (; mode == ADD_PREFETCH && j + 16 * w <= end; j += 16 * w)
        for (int64_t k = 0; k < 16 * w; k += 4 * w, a = vf_add(a, four))
            alibi_four(type, mode, slopes, a, scale, x, out, j + k);
    for (; j + 4 * w <= end; j += 4 * w, a = vf_add(a, four))
        alibi_four(type, mode, slopes, a, scale, x, out, j);
    return j;
}

/* Puts vectors of keys from j on, on either side of the query, until one begins at `end` or later. */
SIMD_INLINE int64_t alibi_around(enum posenc_dtype type, enum store_mode mode, bool causal,
                                 float slope, int64_t query, int64_t j, int64_t end,
                                 int64_t keys, float x_scale, const void *x, void *out)
{
    int64_t w = vf_lanes();

    for (; j < end; j += w)
        put_bias(
            type, mode, x, vf_set1(x_scale), out, j,
            alibi_bias(causal, vf_set1(-slope), vf_add(vf_iota(), vf_set1((float)(j - query)))),
            min_i64(keys - j, w));
    return j;
}

/* Puts the biases up to the next cache line of `out` before streaming stores. Returns the first key that is left. */
SIMD_INLINE int64_t alibi_to_line(enum posenc_dtype type, enum store_mode mode, bool causal,
                                  float slope, int64_t query, int64_t j, int64_t keys,
                                  float x_scale, const void *x, void *out)
{
    const int64_t line = mode_streams(mode) ? j + to_line_boundary(type, out, j, keys - j) : j;

    alibi_around(type, mode, causal, slope, query, j, line, line, x_scale, x, out);
    return line;
}

/* Puts a row of keys for a query at position `query`: earlier keys, the vectors around the query, later keys. */
SIMD_INLINE void alibi_row(enum posenc_dtype type, enum store_mode mode, bool causal,
                           float slope, int64_t query, int64_t keys, float x_scale,
                           const void *x, void *out)
{
    const float masked = -INFINITY;
    int64_t known = query < 0 ? 0 : min_i64(query + 1, keys);
    int64_t j = alibi_to_line(type, mode, causal, slope, query, 0, keys, x_scale, x, out);

    j = alibi_side(type, mode, slope, j - query, j, known - j, x_scale, x, out);
    j = alibi_around(type, mode, causal, slope, query, j, known, keys, x_scale, x, out);
    if (causal) {
        if (j < keys)
            put_biases(type, mode, ONE_VALUE, &masked, x_scale, x, out, j, keys - j);
        return;
    }
    j = alibi_to_line(type, mode, causal, slope, query, j, keys, x_scale, x, out);
    j = alibi_side(type, mode, -slope, j - query, j, keys - j, x_scale, x, out);
    alibi_around(type, mode, causal, slope, query, j, keys, keys, x_scale, x, out);
}

/* Puts n consecutive rows: the heads of one query (next_slope 1), or the queries of one head (next_query 1). */
SIMD_INLINE void alibi_consecutive_rows(enum posenc_dtype type, enum store_mode mode,
                                        bool causal, int64_t n, const float *slope,
                                        int64_t next_slope, int64_t query, int64_t next_query,
                                        int64_t keys, float x_scale, const char *x,
                                        int64_t x_next, char *out, int64_t out_next)
{
    for (int64_t k = 0; k < n; k++, slope += next_slope, query += next_query) {
        alibi_row(type, mode, causal, *slope, query, keys, x_scale, x, out);
        out += out_next;
        if (mode_adds(mode))
            x += x_next;
    }
}

/* For a single query (decode), the heads are the inner loop: a loop over one query per head costs more than its
 * short row. Otherwise rows are put in the order of memory. */
SIMD_INLINE void alibi_rows(enum posenc_dtype type, enum store_mode mode, bool causal,
                            const struct posenc_alibi_args *args)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), keys = args->out.shape[3];
    const int64_t heads = args->out.shape[1], queries = args->out.shape[2];
    const int64_t *x_stride = args->x.stride, *out_stride = args->out.stride;

    for (int64_t b = 0; b < args->out.shape[0]; b++) {
        const float *slopes = args->slopes + b * args->slopes_stride_batch;

        if (queries == 1) {
            alibi_consecutive_rows(
                type, mode, causal, heads, slopes, 1, args->query_offset, 0, keys,
                args->x_scale, mode_adds(mode) ? input_row(&args->x, b, 0, 0) : NULL,
                x_stride[1] * size, output_row(&args->out, b, 0, 0), out_stride[1] * size);
            continue;
        }
        for (int64_t h = 0; h < heads; h++)
            alibi_consecutive_rows(
                type, mode, causal, queries, slopes + h, 0, args->query_offset, 1, keys,
                args->x_scale, mode_adds(mode) ? input_row(&args->x, b, h, 0) : NULL,
                x_stride[2] * size, output_row(&args->out, b, h, 0), out_stride[2] * size);
    }
}

SIMD_INLINE void alibi_causal(enum posenc_dtype type, enum store_mode mode,
                              const struct posenc_alibi_args *args)
{
    alibi_rows(type, mode, true, args);
}

SIMD_INLINE void alibi_both_sides(enum posenc_dtype type, enum store_mode mode,
                                  const struct posenc_alibi_args *args)
{
    alibi_rows(type, mode, false, args);
}

INSTANCES_WRITING(alibi_causal, posenc_alibi_args)
INSTANCES_WRITING(alibi_both_sides, posenc_alibi_args)
INSTANCES_ADDING(alibi_causal, posenc_alibi_args)
INSTANCES_ADDING(alibi_both_sides, posenc_alibi_args)

enum posenc_status KERNEL(alibi)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        RUN_WRITING(alibi_causal, args);
    else
        RUN_WRITING(alibi_both_sides, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(alibi_add)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        RUN_ADDING(alibi_causal, args);
    else
        RUN_ADDING(alibi_both_sides, args);
    return POSENC_OK;
}

/* ---- By distance ---- */

/* Puts all rows. As keys rise distances fall, so a row reads its piece of values[h] backwards (REVERSED). */
SIMD_INLINE void distance_rows(enum posenc_dtype type, enum store_mode mode,
                               const struct posenc_distance_args *given)
{
    const struct posenc_distance_args copy = *given, *args = &copy;
    const struct posenc_tensor *out = &args->out;

    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t h = 0; h < out->shape[1]; h++) {
            const float *values =
                (const float *)args->values.data +
                (h * args->values.stride[0] + args->query_offset - args->first);

            for (int64_t i = 0; i < out->shape[2]; i++)
                put_biases(type, mode, REVERSED, values + i, args->x_scale,
                           mode_adds(mode) ? input_row(&args->x, b, h, i) : NULL,
                           output_row(out, b, h, i), 0, out->shape[3]);
        }
}

INSTANCES_WRITING(distance_rows, posenc_distance_args)
INSTANCES_ADDING(distance_rows, posenc_distance_args)

enum posenc_status KERNEL(distance_bias)(const struct posenc_distance_args *args)
{
    RUN_WRITING(distance_rows, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(distance_bias_add)(const struct posenc_distance_args *args)
{
    RUN_ADDING(distance_rows, args);
    return POSENC_OK;
}
