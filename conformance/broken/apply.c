/*
 * Broken kernels that work on activations: see broken.def.
 */
#define _POSIX_C_SOURCE 200809L
#include "broken.h"

#include <math.h>

/* ---- Learned ---- */

static void learned_row(const struct posenc_learned_args *a, int64_t b, int64_t t, int64_t row,
                        float *out)
{
    const float *x = broken_row(&a->x, b, t, 0),
                *table = (const float *)a->table.data + row * a->table.stride[0];
    for (int64_t c = 0; c < a->out.shape[3]; c++)
        out[c] = fmaf(x[c], a->x_scale, table[c]);
}

enum posenc_status learned_add_previous_row(const struct posenc_learned_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++) {
            int64_t row = broken_position(&args->positions, b, t);
            learned_row(args, b, t, row > 0 ? row - 1 : 0, broken_row(&args->out, b, t, 0));
        }
    return POSENC_OK;
}

/* ---- Rotations ---- */

/* Calls `edit` with each row of x, of out, of cos and of sin; what it needs besides is
 * in args. */
typedef void row_edit(const struct posenc_rope_args *args, const float *x, float *out,
                      const float *cosines, const float *sines);

static void for_rows(const struct posenc_rope_args *args, row_edit *edit)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++)
            for (int64_t h = 0; h < args->out.shape[2]; h++) {
                int64_t row = broken_position(&args->positions, b, t);
                edit(args, broken_row(&args->x, b, t, h), broken_row(&args->out, b, t, h),
                     (const float *)args->cos.data + row * args->cos.stride[0],
                     (const float *)args->sin.data + row * args->sin.stride[0]);
            }
}

/* Rotates pair (a, b); in real kernels both inputs are read before either output is written. */
static void rotate(const float *x, float *out, int64_t a, int64_t b, float c, float s)
{
    float x0 = x[a], x1 = x[b];
    out[a] = fmaf(x0, c, -(x1 * s));
    out[b] = fmaf(x1, c, x0 * s);
}

enum posenc_status rope_half_other_pairing(const struct posenc_rope_args *args)
{
    return broken_base->rope_interleaved(args);
}

static void skip_tail(const struct posenc_rope_args *args, const float *x, float *out,
                      const float *c, const float *s)
{
    int64_t half = args->cos.shape[1];
    for (int64_t i = 0; i < half - half % 4; i++)
        rotate(x, out, i, i + half, c[i], args->transpose ? -s[i] : s[i]);
    for (int64_t k = 2 * half; k < args->out.shape[3]; k++)
        out[k] = x[k];
}
enum posenc_status rope_half_skipped_tail(const struct posenc_rope_args *args)
{
    for_rows(args, skip_tail);
    return POSENC_OK;
}

static void leak(const struct posenc_rope_args *args, const float *x, float *out,
                 const float *c, const float *s)
{
    int64_t half = args->cos.shape[1];
    for (int64_t i = 0; i < half; i++) {
        float next = i + 1 < half ? x[i + 1] : 0.0f;
        rotate(x, out, i, i + half, c[i], args->transpose ? -s[i] : s[i]);
        out[i] += 0.0f * next;
    }
    for (int64_t k = 2 * half; k < args->out.shape[3]; k++)
        out[k] = x[k];
}
enum posenc_status rope_half_lane_leak(const struct posenc_rope_args *args)
{
    for_rows(args, leak);
    return POSENC_OK;
}

static void lose_tail(const struct posenc_rope_args *args, const float *x, float *out,
                      const float *c, const float *s)
{
    int64_t half = args->cos.shape[1];
    for (int64_t i = 0; i < half; i++)
        rotate(x, out, i, i + half, c[i], args->transpose ? -s[i] : s[i]);
}
enum posenc_status rope_half_tail_lost(const struct posenc_rope_args *args)
{
    for_rows(args, lose_tail);
    return POSENC_OK;
}

static void clobber(const struct posenc_rope_args *args, const float *x, float *out,
                    const float *c, const float *s)
{
    int64_t half = args->cos.shape[1];
    for (int64_t i = 0; i < half; i++) {
        float sine = args->transpose ? -s[i] : s[i];
        out[i] = fmaf(x[i], c[i], -(x[i + half] * sine));
        out[i + half] = fmaf(x[i + half], c[i], x[i] * sine);
    }
    for (int64_t k = 2 * half; k < args->out.shape[3]; k++)
        out[k] = x[k];
}
enum posenc_status rope_half_clobber(const struct posenc_rope_args *args)
{
    for_rows(args, clobber);
    return POSENC_OK;
}

static void leading_slice(const struct posenc_rope_args *args, const float *x, float *out,
                          const float *c, const float *s)
{
    int64_t n = args->cos.shape[1];
    while (n > 0 && c[n - 1] == 1.0f && s[n - 1] == 0.0f)
        n--;
    for (int64_t i = 0; i < n; i++)
        rotate(x, out, i, i + n, c[i], args->transpose ? -s[i] : s[i]);
    for (int64_t k = 2 * n; k < args->out.shape[3]; k++)
        out[k] = x[k];
}
enum posenc_status rope_half_leading_slice(const struct posenc_rope_args *args)
{
    for_rows(args, leading_slice);
    return POSENC_OK;
}

static void bf16_cos(const struct posenc_rope_args *args, const float *x, float *out,
                     const float *c, const float *s)
{
    int64_t half = args->cos.shape[1];
    for (int64_t i = 0; i < half; i++)
        rotate(x, out, i, i + half, broken_bf16(c[i]), args->transpose ? -s[i] : s[i]);
    for (int64_t k = 2 * half; k < args->out.shape[3]; k++)
        out[k] = x[k];
}
enum posenc_status rope_half_bf16_cos(const struct posenc_rope_args *args)
{
    for_rows(args, bf16_cos);
    return POSENC_OK;
}

enum posenc_status rope_interleaved_other_way(const struct posenc_rope_args *args)
{
    struct posenc_rope_args a = *args;
    a.transpose = !args->transpose;
    return broken_base->rope_interleaved(&a);
}

enum posenc_status rope_interleaved_no_transpose(const struct posenc_rope_args *args)
{
    struct posenc_rope_args a = *args;
    a.transpose = false;
    return broken_base->rope_interleaved(&a);
}

enum posenc_status rope_interleaved_traps(const struct posenc_rope_args *args)
{
    if (args->cos.shape[1] >= 4)
        __builtin_trap();
    return broken_base->rope_interleaved(args);
}
