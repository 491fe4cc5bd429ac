/*
 * Kernels alibi, distance_bias and their _add: biases that depend on how far a key is from its query,
 * written out or added to scores as they pass.
 *
 *     alibi     -slope |query - key|, -infinity for later keys where causal    (2108.12409)
 *     distance  values[head, query - key - first]                  (2205.09921, 2212.10356)
 *
 * A row of those by distance is the row before it moved by one key.
 */
#include "scores.h"

/* Biases of keys whose positions less the query's are `ahead`. Distances are below 2^24, exact
 * in f32. 0 - slope |d| with one fma is the product rounded once, and +0 at distance 0. */
SIMD_INLINE vf alibi_bias(bool causal, vf minus_slope, vf ahead)
{
    vf zero = vf_set1(0.0f), bias = vf_fma(minus_slope, vf_abs(ahead), zero);

    return causal ? vf_select_lt(zero, ahead, vf_set1(-INFINITY), bias) : bias;
}

/* Four vectors of keys from j on, all on one side of the query, a being how far those of the first are
 * ahead. */
SIMD_INLINE void alibi_four(enum posenc_dtype type, enum how how, vf slopes, vf a, vf x_scale,
                            const void *x, void *out, int64_t j)
{
    const vf zero = vf_set1(0.0f), width = vf_set1((float)vf_lanes());
    const vf b = vf_add(a, width), c = vf_add(a, vf_add(width, width));
    const vf d = vf_add(b, vf_add(width, width));

    put_four(type, how, x, x_scale, out, j, vf_fma(slopes, a, zero), vf_fma(slopes, b, zero),
             vf_fma(slopes, c, zero), vf_fma(slopes, d, zero));
}

/* Puts the slope times the distance of n keys from j on, four vectors at a time, or sixteen from DRAM.
 * `ahead` is the distance of key j. Returns the first remaining key. */
SIMD_INLINE int64_t alibi_side(enum posenc_dtype type, enum how how, float slope, int64_t ahead,
                               int64_t j, int64_t n, float x_scale, const void *x, void *out)
{
    const int64_t w = vf_lanes(), end = j + n;
    const vf scale = vf_set1(x_scale), slopes = vf_set1(slope);
    const vf four = vf_set1(4.0f * (float)w);
    vf a = vf_add(vf_iota(), vf_set1((float)ahead));

    for (; how == ADDED_FAR && j + 16 * w <= end; j += 16 * w)
        for (int64_t k = 0; k < 16 * w; k += 4 * w, a = vf_add(a, four))
            alibi_four(type, how, slopes, a, scale, x, out, j + k);
    for (; j + 4 * w <= end; j += 4 * w, a = vf_add(a, four))
        alibi_four(type, how, slopes, a, scale, x, out, j);
    return j;
}

/* Vectors of keys from j on, on either side, until one begins at `end` or later. */
SIMD_INLINE int64_t alibi_around(enum posenc_dtype type, enum how how, bool causal, float slope,
                                 int64_t query, int64_t j, int64_t end, int64_t keys,
                                 float x_scale, const void *x, void *out)
{
    int64_t w = vf_lanes();

    for (; j < end; j += w)
        put_bias(
            type, how, x, vf_set1(x_scale), out, j,
            alibi_bias(causal, vf_set1(-slope), vf_add(vf_iota(), vf_set1((float)(j - query)))),
            least(keys - j, w));
    return j;
}

/* Puts the biases up to the next line of the output, if streaming stores follow. */
SIMD_INLINE int64_t alibi_to_line(enum posenc_dtype type, enum how how, bool causal,
                                  float slope, int64_t query, int64_t j, int64_t keys,
                                  float x_scale, const void *x, void *out)
{
    const int64_t line = streams(how) ? j + to_line(type, out, j, keys - j) : j;

    alibi_around(type, how, causal, slope, query, j, line, line, x_scale, x, out);
    return line;
}

/* One row of keys for the query at position `query` (that of key 0 being 0). */
SIMD_INLINE void alibi_row(enum posenc_dtype type, enum how how, bool causal, float slope,
                           int64_t query, int64_t keys, float x_scale, const void *x, void *out)
{
    const float later = -INFINITY;
    int64_t known = query < 0 ? 0 : least(query + 1, keys);
    int64_t j = alibi_to_line(type, how, causal, slope, query, 0, keys, x_scale, x, out);

    j = alibi_side(type, how, slope, j - query, j, known - j, x_scale, x, out);
    j = alibi_around(type, how, causal, slope, query, j, known, keys, x_scale, x, out);
    if (causal) {
        if (j < keys)
            put_biases(type, how, SAME, &later, x_scale, x, out, j, keys - j);
        return;
    }
    j = alibi_to_line(type, how, causal, slope, query, j, keys, x_scale, x, out);
    j = alibi_side(type, how, -slope, j - query, j, keys - j, x_scale, x, out);
    alibi_around(type, how, causal, slope, query, j, keys, keys, x_scale, x, out);
}

/* n rows one after the other, of one query's heads or of one head's queries. */
SIMD_INLINE void alibi_some(enum posenc_dtype type, enum how how, bool causal, int64_t n,
                            const float *slope, int64_t next_slope, int64_t query,
                            int64_t next_query, int64_t keys, float x_scale, const char *x,
                            int64_t x_next, char *out, int64_t out_next)
{
    for (int64_t k = 0; k < n; k++, slope += next_slope, query += next_query) {
        alibi_row(type, how, causal, *slope, query, keys, x_scale, x, out);
        out += out_next;
        if (adds(how))
            x += x_next;
    }
}

/* A single query's heads follow one another without a loop over queries in between: of 32 heads of 128
 * keys, 0.75 of the time; side by side, as those of T5 are, they took 1.1 times as long. More queries go
 * in the order of memory. */
SIMD_INLINE void alibi_rows(enum posenc_dtype type, enum how how, bool causal,
                            const struct posenc_alibi_args *args)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), keys = args->out.shape[3];
    const int64_t heads = args->out.shape[1], queries = args->out.shape[2];
    const int64_t *x_stride = args->x.stride, *out_stride = args->out.stride;

    for (int64_t b = 0; b < args->out.shape[0]; b++) {
        const float *slopes = args->slopes + b * args->slopes_stride_batch;

        if (queries == 1) {
            alibi_some(type, how, causal, heads, slopes, 1, args->query_offset, 0, keys,
                       args->x_scale, adds(how) ? input_at(&args->x, b, 0, 0) : NULL,
                       x_stride[1] * size, row_at(&args->out, b, 0, 0), out_stride[1] * size);
            continue;
        }
        for (int64_t h = 0; h < heads; h++)
            alibi_some(type, how, causal, queries, slopes + h, 0, args->query_offset, 1, keys,
                       args->x_scale, adds(how) ? input_at(&args->x, b, h, 0) : NULL,
                       x_stride[2] * size, row_at(&args->out, b, h, 0), out_stride[2] * size);
    }
}

SIMD_INLINE void alibi_causal(enum posenc_dtype type, enum how how,
                              const struct posenc_alibi_args *args)
{
    alibi_rows(type, how, true, args);
}

SIMD_INLINE void alibi_both_sides(enum posenc_dtype type, enum how how,
                                  const struct posenc_alibi_args *args)
{
    alibi_rows(type, how, false, args);
}

FORMS_WRITTEN(alibi_causal, posenc_alibi_args)
FORMS_WRITTEN(alibi_both_sides, posenc_alibi_args)
FORMS_ADDED(alibi_causal, posenc_alibi_args)
FORMS_ADDED(alibi_both_sides, posenc_alibi_args)

enum posenc_status KERNEL(alibi)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        RUN_WRITTEN(alibi_causal, args);
    else
        RUN_WRITTEN(alibi_both_sides, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(alibi_add)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        RUN_ADDED(alibi_causal, args);
    else
        RUN_ADDED(alibi_both_sides, args);
    return POSENC_OK;
}

/* ---- By distance ---- */

/* As the key rises the distance falls: the values backwards. */
SIMD_INLINE void distance_rows(enum posenc_dtype type, enum how how,
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
                put_biases(type, how, AGAINST, values + i, args->x_scale,
                           adds(how) ? input_at(&args->x, b, h, i) : NULL, row_at(out, b, h, i),
                           0, out->shape[3]);
        }
}

FORMS_WRITTEN(distance_rows, posenc_distance_args)
FORMS_ADDED(distance_rows, posenc_distance_args)

enum posenc_status KERNEL(distance_bias)(const struct posenc_distance_args *args)
{
    RUN_WRITTEN(distance_rows, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(distance_bias_add)(const struct posenc_distance_args *args)
{
    RUN_ADDED(distance_rows, args);
    return POSENC_OK;
}
