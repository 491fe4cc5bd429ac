/*
 * Plain loops over tokens: sinusoidal and learned encodings, rotations.
 *
 *   sinusoidal   sin, cos of position * theta^(-2i/dim)          Vaswani et al. 1706.03762, 3.5
 *   learned      x + table[position], and the table's gradient
 *   rope         (x0, x1) -> (x0 c - x1 s, x1 c + x0 s)          Su et al. 2104.09864, 3.4
 *   rope_qk_norm rotation of x (weight + offset) / rms(x)        Qwen3 2505.09388
 *
 * In numerics mode exact the angle is an f64 product, and its sine is rounded once. The error is 0.5 ulp at small
 * positions, and about position * 2^-53 more at large ones.
 */
#ifndef POSENC_BACKENDS_PLAIN_TOKENS_H
#define POSENC_BACKENDS_PLAIN_TOKENS_H

#include "plain.h"

/* Computes sine and cosine of a pair, times `scale`. Pairs of a row must come in ascending order: `phi`, which is the
 * position before the first, is ggml's iterated product. */
static void sincos_pair(const struct posenc_freqs *freqs, double scale, double position,
                        int64_t pair, float *phi, float *sine, float *cosine)
{
    if (freqs->view.numerics != POSENC_NUMERICS_EXACT) {
        float angle = (float)position * freqs->view.omega_f32[pair];
        if (freqs->view.numerics == POSENC_NUMERICS_GGML_F32)
            *phi = posenc_ggml_f32_angles(freqs, *phi, pair, 1, &angle);
        *sine = (float)scale * sinf(angle);
        *cosine = (float)scale * cosf(angle);
    } else {
        double omega = freqs->view.omega[pair], angle = position * omega;
        double s = sin(angle), c = cos(angle);
        bool whole = freqs->whole && position == floor(position);
        if (whole && posenc_whole_zero(s, omega, 1.0))
            s = copysign(0.0, position);
        if (whole && posenc_whole_zero(c, omega, 1.0))
            c = 0.0;
        *sine = (float)(scale * s);
        *cosine = (float)(scale * c);
    }
}

/* ---- sinusoidal ---- */

/* Writes an element of a sinusoidal row, or adds it to x unless that is NULL. */
static void put(const struct posenc_sinusoidal_args *args, const void *x, void *out,
                int64_t column, float value)
{
    enum posenc_dtype type = args->out.dtype;

    posenc_put(type, out, column,
               x ? add(posenc_get(type, x, column), args->x_scale, value) : value);
}

static void sinusoidal_row(const struct posenc_sinusoidal_args *args, double position,
                           const void *x, void *out)
{
    int64_t dim = args->out.shape[3], half = dim / 2;
    bool interleaved = args->layout == POSENC_LAYOUT_INTERLEAVED;
    float phi = (float)position;

    for (int64_t i = 0; i < half + (interleaved ? dim % 2 : 0); i++) {
        float sine, cosine;
        sincos_pair(args->freqs, args->scale, position, i, &phi, &sine, &cosine);
        if (interleaved) {
            put(args, x, out, 2 * i, sine);
            if (2 * i + 1 < dim)
                put(args, x, out, 2 * i + 1, cosine);
        } else {
            put(args, x, out, i, args->layout == POSENC_LAYOUT_SIN_COS ? sine : cosine);
            put(args, x, out, half + i, args->layout == POSENC_LAYOUT_SIN_COS ? cosine : sine);
        }
    }
    if (!interleaved && dim % 2)
        put(args, x, out, dim - 1, 0.0f);
}

#define plain_sinusoidal_add plain_sinusoidal
static enum posenc_status plain_sinusoidal(const struct posenc_sinusoidal_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++)
            sinusoidal_row(args, posenc_time(&args->positions, b, t),
                           args->x.data ? input_row(&args->x, b, t, 0) : NULL,
                           output_row(&args->out, b, t, 0));
    return POSENC_OK;
}

/* ---- learned ---- */

TYPED void learned_rows(enum posenc_dtype type, const struct posenc_learned_args *args)
{
    int64_t dim = args->out.shape[3];
    float x_scale = args->x_scale;

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            const float *row = (const float *)args->table.data + id * args->table.stride[0];
            const void *x = input_row(&args->x, b, t, 0);
            void *out = output_row(&args->out, b, t, 0);
            PLAIN_INDEPENDENT
            for (int64_t i = 0; i < dim; i++)
                posenc_put(type, out, i, add(posenc_get(type, x, i), x_scale, row[i]));
        }
}

static enum posenc_status plain_learned_add(const struct posenc_learned_args *args)
{
    FOR_TYPE(args->out.dtype, learned_rows, args);
    return POSENC_OK;
}

/* Tokens are added in ascending order, which posenc.h promises for each sum. */
TYPED void gradient_rows(enum posenc_dtype type, const struct posenc_learned_grad_args *args)
{
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            const void *x = input_row(&args->x, b, t, 0);
            float *out = (float *)args->out.data + id * args->out.stride[0];
            PLAIN_INDEPENDENT
            for (int64_t i = 0; i < args->out.shape[1]; i++)
                out[i] += posenc_get(type, x, i);
        }
}

static enum posenc_status plain_learned_grad(const struct posenc_learned_grad_args *args)
{
    for (int64_t r = 0; !args->accumulate && r < args->out.shape[0]; r++)
        memset((float *)args->out.data + r * args->out.stride[0], 0,
               (size_t)args->out.shape[1] * sizeof(float));
    FOR_TYPE(args->x.dtype, gradient_rows, args);
    return POSENC_OK;
}

/* ---- rope ---- */

/* Returns the factor of a pair's cosine and sine. */
static double table_scale(const struct posenc_freqs *freqs, double position, int64_t pair)
{
    double scale = freqs->view.attention_factor;

    if (freqs->xpos_step)
        posenc_xpos_scale(freqs, position, pair, 1, &scale);
    return scale;
}

static enum posenc_status plain_rope_table(const struct posenc_rope_table_args *args)
{
    const struct posenc_freqs_view *view = &args->freqs->view;
    int32_t n_axes = args->positions.stride_axis == 0 ? 1 : view->n_axes;

    for (int32_t axis = 0; axis < n_axes; axis++) {
        struct posenc_positions positions = posenc_positions_on_axis(&args->positions, axis);
        for (int64_t b = 0; b < args->cos.shape[0]; b++)
            for (int64_t t = 0; t < args->cos.shape[1]; t++) {
                double position = posenc_time(&positions, b, t);
                void *cosine = output_row(&args->cos, b, t, 0),
                     *sine = output_row(&args->sin, b, t, 0);
                float phi = (float)position, c, s;
                for (int64_t i = 0; i < args->cos.shape[3]; i++) {
                    sincos_pair(args->freqs, table_scale(args->freqs, position, i), position, i,
                                &phi, &s, &c);
                    if (n_axes == 1 || view->axis[i] == axis) {
                        posenc_put(args->cos.dtype, cosine, i, c);
                        posenc_put(args->sin.dtype, sine, i, s);
                    }
                }
            }
    }
    return POSENC_OK;
}

/* Rotate n pairs of one head from channel `first` on. A sign of -1 rotates backwards (transpose). */
TYPED void rotate_half(enum posenc_dtype type, enum posenc_dtype angles, int64_t first,
                       int64_t n, const void *cosine, const void *sine, float sign,
                       const void *x, void *out)
{
    PLAIN_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float x0 = posenc_get(type, x, first + i), x1 = posenc_get(type, x, first + n + i);
        float c = posenc_get(angles, cosine, i), s = sign * posenc_get(angles, sine, i);
        posenc_put(type, out, first + i, x0 * c - x1 * s);
        posenc_put(type, out, first + n + i, x1 * c + x0 * s);
    }
}

TYPED void rotate_interleaved(enum posenc_dtype type, enum posenc_dtype angles, int64_t first,
                              int64_t n, const void *cosine, const void *sine, float sign,
                              const void *x, void *out)
{
    PLAIN_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float x0 = posenc_get(type, x, first + 2 * i);
        float x1 = posenc_get(type, x, first + 2 * i + 1);
        float c = posenc_get(angles, cosine, i), s = sign * posenc_get(angles, sine, i);
        posenc_put(type, out, first + 2 * i, x0 * c - x1 * s);
        posenc_put(type, out, first + 2 * i + 1, x1 * c + x0 * s);
    }
}

/* Copies the channels [from, to) of one head. */
static void copy(enum posenc_dtype type, int64_t from, int64_t to, const void *x, void *out)
{
    int64_t size = (int64_t)posenc_dtype_size(type);

    if (from < to)
        memcpy((char *)out + from * size, (const char *)x + from * size,
               (size_t)((to - from) * size));
}

TYPED void rope_rows(enum posenc_dtype angles, enum posenc_dtype type,
                     const struct posenc_rope_args *args, bool interleaved)
{
    int64_t n = args->cos.shape[1], first = args->rotary_offset, dim = args->x.shape[3];
    float sign = args->transpose ? -1.0f : 1.0f;

    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            const void *cosine = input_row(&args->cos, id, 0, 0);
            const void *sine = input_row(&args->sin, id, 0, 0);
            for (int64_t h = 0; h < args->x.shape[2]; h++) {
                const void *x = input_row(&args->x, b, t, h);
                void *out = output_row(&args->out, b, t, h);
                if (interleaved)
                    rotate_interleaved(type, angles, first, n, cosine, sine, sign, x, out);
                else
                    rotate_half(type, angles, first, n, cosine, sine, sign, x, out);
                if (out != x) {
                    copy(type, 0, first, x, out);
                    copy(type, first + 2 * n, dim, x, out);
                }
            }
        }
}

TYPED void rope(enum posenc_dtype type, const struct posenc_rope_args *args, bool interleaved)
{
    FOR_TYPE(args->cos.dtype, rope_rows, type, args, interleaved);
}

static enum posenc_status plain_rope_half(const struct posenc_rope_args *args)
{
    FOR_TYPE(args->x.dtype, rope, args, false);
    return POSENC_OK;
}

static enum posenc_status plain_rope_interleaved(const struct posenc_rope_args *args)
{
    FOR_TYPE(args->x.dtype, rope, args, true);
    return POSENC_OK;
}

/* ---- rope_qk_norm ---- */

/* Returns the sum of the squares of one head, added in the order that posenc.h promises. */
TYPED float sum_squares(enum posenc_dtype type, int64_t dim, const void *x)
{
    float sums[64] = { 0.0f };

    for (int64_t i = 0; i < dim; i += 64)
        for (int64_t k = 0, n = min_i64(dim - i, 64); k < n; k++) {
            float value = posenc_get(type, x, i + k);
            sums[k] += value * value;
        }
    for (int n = 32; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            sums[i] += sums[i + n];
    return sums[0];
}

/* Returns channel i of a head after the norm; r is 1 / its root mean square. */
TYPED float normed(enum posenc_dtype type, const float *weight, float offset, float r,
                   const void *x, int64_t i)
{
    return posenc_get(type, x, i) * r * (weight[i] + offset);
}

TYPED void norm_head(enum posenc_dtype angles, enum posenc_dtype type,
                     const struct posenc_rope_qk_norm_args *args, int64_t id,
                     const float *weight, float r, const void *x, void *out)
{
    const void *cosine = input_row(&args->cos, id, 0, 0),
               *sine = input_row(&args->sin, id, 0, 0);
    int64_t n = args->cos.shape[1], first = args->rotary_offset;
    float offset = args->weight_offset;

    PLAIN_INDEPENDENT
    for (int64_t i = 0; i < first; i++)
        posenc_put(type, out, i, normed(type, weight, offset, r, x, i));
    PLAIN_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        float v0 = normed(type, weight, offset, r, x, first + i);
        float v1 = normed(type, weight, offset, r, x, first + n + i);
        float c = posenc_get(angles, cosine, i), s = posenc_get(angles, sine, i);
        posenc_put(type, out, first + i, v0 * c - v1 * s);
        posenc_put(type, out, first + n + i, v1 * c + v0 * s);
    }
    PLAIN_INDEPENDENT
    for (int64_t i = first + 2 * n; i < args->x.shape[3]; i++)
        posenc_put(type, out, i, normed(type, weight, offset, r, x, i));
}

TYPED void norm_token(enum posenc_dtype angles, enum posenc_dtype type,
                      const struct posenc_rope_qk_norm_args *args, int64_t b, int64_t t)
{
    int64_t heads = args->x.shape[2], dim = args->x.shape[3];
    int64_t n = args->across_heads ? heads * dim : dim;
    float of_token = 0.0f;

    for (int64_t h = 0; args->across_heads && h < heads; h++)
        of_token += sum_squares(type, dim, input_row(&args->x, b, t, h));
    for (int64_t h = 0; h < heads; h++) {
        const void *x = input_row(&args->x, b, t, h);
        float sum = args->across_heads ? of_token : sum_squares(type, dim, x);
        float r = 1.0f / sqrtf(sum / (float)n + args->epsilon);
        norm_head(angles, type, args, posenc_position(&args->positions, b, t),
                  (const float *)args->weight.data + h * args->weight.stride[0], r, x,
                  output_row(&args->out, b, t, h));
    }
}

TYPED void norm_rows(enum posenc_dtype angles, enum posenc_dtype type,
                     const struct posenc_rope_qk_norm_args *args)
{
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++)
            norm_token(angles, type, args, b, t);
}

TYPED void norm(enum posenc_dtype type, const struct posenc_rope_qk_norm_args *args)
{
    FOR_TYPE(args->cos.dtype, norm_rows, type, args);
}

static enum posenc_status plain_rope_qk_norm(const struct posenc_rope_qk_norm_args *args)
{
    FOR_TYPE(args->x.dtype, norm, args);
    return POSENC_OK;
}

#endif
