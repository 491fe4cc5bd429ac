/*
 * Plain loops over queries i and keys j: biases of attention scores.
 *
 *   alibi          -slope |i - j|                                 Press et al. 2108.12409
 *   t5             table[bucket(j - i)]                           Raffel et al. 1910.10683, 2.1
 *   distance       values[i - j]                                  KERPLE 2205.09921, Sandwich 2212.10356
 *   window         table[index[i, j]]                             Swin 2103.14030, BEiT 2106.08254
 *   relative       c2p[i, c] + p2c[j, c], c = index[i - j]        DeBERTa 2006.03654, Shaw 1803.02155
 *   relative_sum   sums of x[i, j] over the keys j with the same c
 *
 * Queries of the first three count from query_offset, and values from `first`. A bias is added to x * x_scale, if the call
 * has scores x.
 */
#ifndef POSENC_BACKENDS_PLAIN_SCORES_H
#define POSENC_BACKENDS_PLAIN_SCORES_H

#include "plain.h"

/* Writes a bias, or adds it to the scores x unless they are NULL. */
TYPED void put_bias(enum posenc_dtype type, const void *x, float x_scale, void *out, int64_t j,
                    float bias)
{
    posenc_put(type, out, j, x ? add(posenc_get(type, x, j), x_scale, bias) : bias);
}

/* Returns row (b, h, i) of scores, or NULL if the call has none. */
static const void *scores_at(const struct posenc_const_tensor *x, int64_t b, int64_t h,
                             int64_t i)
{
    return x->data ? input_row(x, b, h, i) : NULL;
}

/* Writes -slope |i - j|. Adding +0 turns the -0 of a negative slope at distance 0 into +0. */
TYPED void alibi_rows(enum posenc_dtype type, const struct posenc_alibi_args *args)
{
    int64_t keys = args->out.shape[3];
    float x_scale = args->x_scale;
    bool causal = args->causal;

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++) {
                const void *x = scores_at(&args->x, b, h, i);
                void *out = output_row(&args->out, b, h, i);
                float slope = args->slopes[b * args->slopes_stride_batch + h];
                int64_t query = i + args->query_offset;
                PLAIN_INDEPENDENT
                for (int64_t j = 0; j < keys; j++) {
                    float distance = (float)(j < query ? j - query : query - j);
                    float bias = causal && j > query ? -INFINITY : slope * distance + 0.0f;
                    put_bias(type, x, x_scale, out, j, bias);
                }
            }
}

#define plain_alibi_add plain_alibi
static enum posenc_status plain_alibi(const struct posenc_alibi_args *args)
{
    FOR_TYPE(args->out.dtype, alibi_rows, args);
    return POSENC_OK;
}

static int64_t t5_bucket(const struct posenc_t5_args *args, int64_t relative)
{
    int64_t buckets =
        args->buckets.bidirectional ? args->buckets.num_buckets / 2 : args->buckets.num_buckets;
    int64_t distance = relative < 0 ? -relative : args->buckets.bidirectional ? relative : 0;
    int64_t bucket = buckets - 1;

    while (args->buckets.thresholds[bucket] > distance)
        bucket--;
    return bucket + (args->buckets.bidirectional && relative > 0 ? buckets : 0);
}

#define plain_t5_bias_add plain_t5_bias
static enum posenc_status plain_t5_bias(const struct posenc_t5_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++) {
                const void *x = scores_at(&args->x, b, h, i);
                void *out = output_row(&args->out, b, h, i);
                for (int64_t j = 0; j < args->out.shape[3]; j++) {
                    int64_t bucket = t5_bucket(args, j - i - args->query_offset);
                    const float *row =
                        (const float *)args->table.data + bucket * args->table.stride[0];
                    put_bias(args->out.dtype, x, args->x_scale, out, j, row[h]);
                }
            }
    return POSENC_OK;
}

/* Values are read backwards, as the distance i - j decreases from key to key. */
TYPED void distance_rows(enum posenc_dtype type, const struct posenc_distance_args *args)
{
    int64_t keys = args->out.shape[3];
    float x_scale = args->x_scale;

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++) {
                const void *x = scores_at(&args->x, b, h, i);
                void *out = output_row(&args->out, b, h, i);
                const float *values =
                    (const float *)args->values.data + h * args->values.stride[0];
                int64_t nearest = i + args->query_offset - args->first;
                PLAIN_INDEPENDENT
                for (int64_t j = 0; j < keys; j++)
                    put_bias(type, x, x_scale, out, j, values[nearest - j]);
            }
}

#define plain_distance_bias_add plain_distance_bias
static enum posenc_status plain_distance_bias(const struct posenc_distance_args *args)
{
    FOR_TYPE(args->out.dtype, distance_rows, args);
    return POSENC_OK;
}

TYPED void window_rows(enum posenc_dtype type, const struct posenc_window_args *args)
{
    int64_t keys = args->out.shape[3], stride = args->table.stride[0];
    float x_scale = args->x_scale;

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++) {
                const void *x = scores_at(&args->x, b, h, i);
                void *out = output_row(&args->out, b, h, i);
                const float *column = (const float *)args->table.data + h;
                const int32_t *index = args->index + i * keys;
                PLAIN_INDEPENDENT
                for (int64_t j = 0; j < keys; j++)
                    put_bias(type, x, x_scale, out, j, column[index[j] * stride]);
            }
}

#define plain_window_bias_add plain_window_bias
static enum posenc_status plain_window_bias(const struct posenc_window_args *args)
{
    FOR_TYPE(args->out.dtype, window_rows, args);
    return POSENC_OK;
}

/* Computes a row of scale (c2p + p2c): the product with c2p is rounded, that with p2c fused. A product
 * without the other one is rounded. */
TYPED void relative_row(enum posenc_dtype type, const struct posenc_relative_args *args,
                        int64_t b, int64_t h, int64_t i)
{
    int64_t keys = args->out.shape[3];
    float scale = args->scale;
    const void *x = scores_at(&args->x, b, h, i), *c2p = scores_at(&args->c2p, b, h, i);
    void *out = output_row(&args->out, b, h, i);

    for (int64_t j = 0; j < keys; j++) {
        const void *p2c = scores_at(&args->p2c, b, h, j);
        int64_t c = args->index[i - j + keys - 1];
        float bias = scale * posenc_get(type, c2p ? c2p : p2c, c);
        if (c2p && p2c)
            bias = fmaf(scale, posenc_get(type, p2c, c), bias);
        put_bias(type, x, args->x_scale, out, j, bias);
    }
}

TYPED void relative_rows(enum posenc_dtype type, const struct posenc_relative_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++)
                relative_row(type, args, b, h, i);
}

#define plain_relative_bias_add plain_relative_bias
static enum posenc_status plain_relative_bias(const struct posenc_relative_args *args)
{
    FOR_TYPE(args->out.dtype, relative_rows, args);
    return POSENC_OK;
}

/* Columns per pass. Their sums stay in f32 on the stack, as each is rounded to the dtype only once. */
enum { PLAIN_SUMS = 2048 };

TYPED void relative_sum_row(enum posenc_dtype type, const struct posenc_relative_sum_args *args,
                            int64_t i, const void *x, void *out)
{
    int64_t keys = args->x.shape[3], columns = args->out.shape[3];

    for (int64_t from = 0; from < columns; from += PLAIN_SUMS) {
        int64_t n = columns - from < PLAIN_SUMS ? columns - from : PLAIN_SUMS;
        float sums[PLAIN_SUMS] = { 0 };
        for (int64_t j = 0; j < keys; j++) {
            int64_t c = args->index[i - j + keys - 1] - from;
            if (c >= 0 && c < n)
                sums[c] += posenc_get(type, x, j);
        }
        for (int64_t c = 0; c < n; c++)
            posenc_put(type, out, from + c, sums[c]);
    }
}

TYPED void relative_sum_rows(enum posenc_dtype type,
                             const struct posenc_relative_sum_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++)
                relative_sum_row(type, args, i, input_row(&args->x, b, h, i),
                                 output_row(&args->out, b, h, i));
}

static enum posenc_status plain_relative_sum(const struct posenc_relative_sum_args *args)
{
    FOR_TYPE(args->out.dtype, relative_sum_rows, args);
    return POSENC_OK;
}

#endif
