/*
 * Backend libm: the plainest loops, with the C library's sin, cos and fmaf.  Read this file to
 * learn what the kernels compute.  The autovec backends are this same source at -O3 for wider
 * CPUs (PLAIN_NAME and PLAIN_NEEDS come from the build), with contraction left to the compiler.
 *
 *   sinusoidal   sin, cos of position * theta^(-2i/dim)          Vaswani et al. 1706.03762, 3.5
 *   rope         (x0, x1) -> (x0 c - x1 s, x1 c + x0 s)          Su et al. 2104.09864, 3.4
 *   alibi        -slope |i - j|                                   Press et al. 2108.12409
 *   t5           table[bucket(j - i)]                             Raffel et al. 1910.10683, 2.1
 *
 * Profile exact forms the angle in f64 and rounds the sine once: right to 0.5 ulp at small
 * positions, and off by about position * 2^-53 at large ones.
 */
#include "../kernels/common.h"

#include <math.h>

#ifndef PLAIN_NAME
#define PLAIN_NAME        libm
#define PLAIN_FAMILY      "libm"
#define PLAIN_NEEDS       ""
#define PLAIN_DESCRIPTION "plain loops over the C library's sin, cos and fma"
#endif

/* Element i is read and written at index i only, in place or not.  (Without vectors clang would
 * warn that it has none.) */
#if defined(__riscv) && !defined(__riscv_vector)
#define PLAIN_INDEPENDENT
#elif defined(__clang__)
#define PLAIN_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PLAIN_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Pairs of a row in ascending order; `phi` is the row's own, first the position. */
static void sincos_pair(const struct posenc_freqs *freqs, double scale, double position,
                        int64_t pair, float *phi, float *sine, float *cosine)
{
    if (freqs->view.profile != POSENC_EXACT) {
        float angle = (float)position * freqs->view.omega_f32[pair];
        if (freqs->view.profile == POSENC_GGML_F32)
            *phi = posenc_ggml_f32_angles(freqs, *phi, pair, 1, &angle);
        *sine = (float)scale * sinf(angle);
        *cosine = (float)scale * cosf(angle);
    } else {
        double angle = position * freqs->view.omega[pair];
        *sine = (float)(scale * sin(angle));
        *cosine = (float)(scale * cos(angle));
    }
}

/* x scale + value, rounded once; a sum is all it takes where the scale is 1. */
static float add(float x, float scale, float value)
{
    return scale == 1.0f ? x + value : fmaf(x, scale, value);
}

/* One element of a sinusoidal row, onto x where there is one. */
static void put(const struct posenc_sinusoidal_args *args, const float *x, float *out,
                int64_t column, float value)
{
    out[column] = x ? add(x[column], args->x_scale, value) : value;
}

static void sinusoidal_row(const struct posenc_sinusoidal_args *args, double position,
                           const float *x, float *out)
{
    int64_t dim = args->out.shape[3], half = dim / 2;
    bool interleaved = args->layout == POSENC_INTERLEAVED;
    float phi = (float)position;

    for (int64_t i = 0; i < half + (interleaved ? dim % 2 : 0); i++) {
        float sine, cosine;
        sincos_pair(args->freqs, args->scale, position, i, &phi, &sine, &cosine);
        if (interleaved) {
            put(args, x, out, 2 * i, sine);
            if (2 * i + 1 < dim)
                put(args, x, out, 2 * i + 1, cosine);
        } else {
            put(args, x, out, i, args->layout == POSENC_SIN_COS ? sine : cosine);
            put(args, x, out, half + i, args->layout == POSENC_SIN_COS ? cosine : sine);
        }
    }
    if (!interleaved && dim % 2)
        put(args, x, out, dim - 1, 0.0f);
}

static enum posenc_status sinusoidal(const struct posenc_sinusoidal_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++)
            sinusoidal_row(args, posenc_time(&args->positions, b, t),
                           args->x.data ? posenc_row(&args->x, b, t, 0) : NULL,
                           posenc_row(&args->out, b, t, 0));
    return POSENC_OK;
}

static enum posenc_status rope_table(const struct posenc_rope_table_args *args)
{
    const struct posenc_freqs_view *plan = &args->freqs->view;
    int32_t n_axes = args->positions.stride_axis == 0 ? 1 : plan->n_axes;

    for (int32_t axis = 0; axis < n_axes; axis++) {
        struct posenc_positions positions = posenc_axis(&args->positions, axis);
        for (int64_t b = 0; b < args->cos.shape[0]; b++)
            for (int64_t t = 0; t < args->cos.shape[1]; t++) {
                double position = posenc_time(&positions, b, t);
                float *cosine = posenc_row(&args->cos, b, t, 0),
                      *sine = posenc_row(&args->sin, b, t, 0);
                float phi = (float)position, c, s;
                for (int64_t i = 0; i < args->cos.shape[3]; i++) {
                    sincos_pair(args->freqs, plan->attention_factor, position, i, &phi, &s, &c);
                    if (n_axes == 1 || plan->axis[i] == axis) {
                        cosine[i] = c;
                        sine[i] = s;
                    }
                }
            }
    }
    return POSENC_OK;
}

static enum posenc_status learned_add(const struct posenc_learned_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            const float *x = posenc_row(&args->x, b, t, 0);
            const float *row = (const float *)args->table.data + id * args->table.stride[0];
            float *out = posenc_row(&args->out, b, t, 0);
            PLAIN_INDEPENDENT
            for (int64_t i = 0; i < args->out.shape[3]; i++)
                out[i] = add(x[i], args->x_scale, row[i]);
        }
    return POSENC_OK;
}

/* One head of n pairs, in either pairing; sign -1 is the transpose. */
static void rotate_half(int64_t n, const float *cosine, const float *sine, float sign,
                        const float *x, float *out)
{
    PLAIN_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float x0 = x[i], x1 = x[i + n], c = cosine[i], s = sign * sine[i];
        out[i] = x0 * c - x1 * s;
        out[i + n] = x1 * c + x0 * s;
    }
}

static void rotate_interleaved(int64_t n, const float *cosine, const float *sine, float sign,
                               const float *x, float *out)
{
    PLAIN_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float x0 = x[2 * i], x1 = x[2 * i + 1], c = cosine[i], s = sign * sine[i];
        out[2 * i] = x0 * c - x1 * s;
        out[2 * i + 1] = x1 * c + x0 * s;
    }
}

typedef void rotation(int64_t n, const float *cosine, const float *sine, float sign,
                      const float *x, float *out);

static enum posenc_status rope(const struct posenc_rope_args *args, rotation *rotate)
{
    int64_t n = args->cos.shape[1];
    float sign = args->transpose ? -1.0f : 1.0f;

    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            const float *cosine = (const float *)args->cos.data + id * args->cos.stride[0];
            const float *sine = (const float *)args->sin.data + id * args->sin.stride[0];
            for (int64_t h = 0; h < args->x.shape[2]; h++) {
                const float *x = posenc_row(&args->x, b, t, h);
                float *out = posenc_row(&args->out, b, t, h);
                rotate(n, cosine, sine, sign, x, out);
                for (int64_t i = 2 * n; out != x && i < args->x.shape[3]; i++)
                    out[i] = x[i];
            }
        }
    return POSENC_OK;
}

static enum posenc_status rope_half(const struct posenc_rope_args *args)
{
    return rope(args, rotate_half);
}

static enum posenc_status rope_interleaved(const struct posenc_rope_args *args)
{
    return rope(args, rotate_interleaved);
}

/* One row of a bias, onto scores where there are some. */
static void put_bias(const float *x, float x_scale, float *out, int64_t j, float bias)
{
    out[j] = x ? add(x[j], x_scale, bias) : bias;
}

static enum posenc_status alibi(const struct posenc_alibi_args *args)
{
    int64_t keys = args->out.shape[3];

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++) {
                const float *x = args->x.data ? posenc_row(&args->x, b, h, i) : NULL;
                float *out = posenc_row(&args->out, b, h, i);
                int64_t query = i + args->query_offset;
                PLAIN_INDEPENDENT
                for (int64_t j = 0; j < keys; j++) {
                    float distance = (float)(j < query ? j - query : query - j);
                    float bias =
                        args->causal && j > query ? -INFINITY : args->slopes[h] * distance;
                    put_bias(x, args->x_scale, out, j, bias);
                }
            }
    return POSENC_OK;
}

static int64_t t5_bucket(const struct posenc_t5_args *args, int64_t relative)
{
    int64_t buckets = args->bidirectional ? args->num_buckets / 2 : args->num_buckets;
    int64_t distance = relative < 0 ? -relative : args->bidirectional ? relative : 0;
    int64_t bucket = buckets - 1;

    while (args->thresholds[bucket] > distance)
        bucket--;
    return bucket + (args->bidirectional && relative > 0 ? buckets : 0);
}

static enum posenc_status t5_bias(const struct posenc_t5_args *args)
{
    int64_t keys = args->out.shape[3];

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++) {
                const float *x = args->x.data ? posenc_row(&args->x, b, h, i) : NULL;
                float *out = posenc_row(&args->out, b, h, i);
                for (int64_t j = 0; j < keys; j++) {
                    int64_t bucket = t5_bucket(args, j - i - args->query_offset);
                    const float *row =
                        (const float *)args->table.data + bucket * args->table.stride[0];
                    put_bias(x, args->x_scale, out, j, row[h]);
                }
            }
    return POSENC_OK;
}

#define PLAIN_GLUE(a, b)   a##b
#define PLAIN_SYMBOL(name) PLAIN_GLUE(posenc_backend_, name)
#define PLAIN_TEXT(name)   #name
#define PLAIN_STRING(name) PLAIN_TEXT(name)

const struct posenc_backend PLAIN_SYMBOL(PLAIN_NAME) = {
    .size = sizeof(struct posenc_backend),
    .abi = POSENC_ABI,
    .name = PLAIN_STRING(PLAIN_NAME),
    .family = PLAIN_FAMILY,
    .description = PLAIN_DESCRIPTION,
    .needs = PLAIN_NEEDS,
    .sinusoidal = sinusoidal,
    .sinusoidal_add = sinusoidal,
    .learned_add = learned_add,
    .rope_table = rope_table,
    .rope_half = rope_half,
    .rope_interleaved = rope_interleaved,
    .alibi = alibi,
    .alibi_add = alibi,
    .t5_bias = t5_bias,
    .t5_bias_add = t5_bias,
};
