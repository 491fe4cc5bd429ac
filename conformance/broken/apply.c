/*
 * Broken kernels that work on activations: see broken.def.
 */
#define _POSIX_C_SOURCE 200809L
#include "broken.h"

#include "conformance/problem/storage.h"
#include "wide.h"

#include <math.h>

/* ---- Learned ---- */

/* The row `back` rows before the one asked for, its values rounded to a type. */
static enum posenc_status add_rows(const struct posenc_learned_args *args, int64_t back,
                                   enum posenc_dtype type)
{
    struct wide wide = { 0 };
    struct posenc_learned_args a = *args;
    wide_input(&wide, &a.x);
    wide_output(&wide, &a.out);
    for (int64_t b = 0; b < a.out.shape[0]; b++)
        for (int64_t t = 0; t < a.out.shape[1]; t++) {
            const int64_t row = broken_position(&a.positions, b, t) - back;
            const float *table = storage_row(owned(&a.table), row < 0 ? 0 : row);
            const float *x = broken_input(&a.x, b, t, 0);
            float *out = broken_row(&a.out, b, t, 0);
            for (int64_t c = 0; c < a.out.shape[3]; c++)
                out[c] = fmaf(x[c], a.x_scale, round_to(type, table[c]));
        }
    wide_close(&wide);
    return POSENC_OK;
}

enum posenc_status learned_add_previous_row(const struct posenc_learned_args *args)
{
    return add_rows(args, 1, POSENC_F32);
}

/* What a framework does that keeps the table in the type of the activations. */
enum posenc_status learned_add_narrow_table(const struct posenc_learned_args *args)
{
    return add_rows(args, 0, args->out.dtype);
}

/* ---- Rotations ---- */

/* What the edit of a row may need: half the channels that turn, how many there are from the
 * first of them to the end of the head, the type of x and out. */
struct rotation {
    int64_t half, rest;
    bool transpose;
    enum posenc_dtype stored;
};

/* Calls `edit` with the turning part of each row of x and of out, in f32, and the rows of cos
 * and sin; copies what lies before that part. */
typedef void row_edit(const struct rotation *r, const float *x, float *out,
                      const float *cosines, const float *sines);

static enum posenc_status for_rows(const struct posenc_rope_args *args, row_edit *edit)
{
    struct wide wide = { 0 };
    struct posenc_rope_args a = *args;
    const int64_t from = args->rotary_offset;
    const struct rotation r = { args->cos.shape[1], args->out.shape[3] - from, args->transpose,
                                args->out.dtype };
    struct posenc_const_tensor *const inputs[] = { &a.cos, &a.sin, &a.x };
    for (int i = 0; i < 3; i++)
        wide_input(&wide, inputs[i]);
    wide_output(&wide, &a.out);
    for (int64_t b = 0; b < a.out.shape[0]; b++)
        for (int64_t t = 0; t < a.out.shape[1]; t++)
            for (int64_t h = 0; h < a.out.shape[2]; h++) {
                const int64_t row = broken_position(&a.positions, b, t);
                const float *x = broken_input(&a.x, b, t, h);
                float *out = broken_row(&a.out, b, t, h);
                for (int64_t k = 0; k < from; k++)
                    out[k] = x[k];
                edit(&r, x + from, out + from, storage_row(owned(&a.cos), row),
                     storage_row(owned(&a.sin), row));
            }
    wide_close(&wide);
    return POSENC_OK;
}

/* Rotates pair (a, b); in real kernels both inputs are read before either output is written. */
static void rotate(const float *x, float *out, int64_t a, int64_t b, float c, float s)
{
    float x0 = x[a], x1 = x[b];
    out[a] = fmaf(x0, c, -(x1 * s));
    out[b] = fmaf(x1, c, x0 * s);
}

static float sine_of(const struct rotation *r, const float *s, int64_t i)
{
    return r->transpose ? -s[i] : s[i];
}

static void copy_from(const struct rotation *r, int64_t k, const float *x, float *out)
{
    for (; k < r->rest; k++)
        out[k] = x[k];
}

enum posenc_status rope_half_other_pairing(const struct posenc_rope_args *args)
{
    return broken_base->rope_interleaved(args);
}

static void skip_tail(const struct rotation *r, const float *x, float *out, const float *c,
                      const float *s)
{
    for (int64_t i = 0; i < r->half - r->half % 4; i++)
        rotate(x, out, i, i + r->half, c[i], sine_of(r, s, i));
    copy_from(r, 2 * r->half, x, out);
}
enum posenc_status rope_half_skipped_tail(const struct posenc_rope_args *args)
{
    return for_rows(args, skip_tail);
}

static void leak(const struct rotation *r, const float *x, float *out, const float *c,
                 const float *s)
{
    for (int64_t i = 0; i < r->half; i++) {
        float next = i + 1 < r->half ? x[i + 1] : 0.0f;
        rotate(x, out, i, i + r->half, c[i], sine_of(r, s, i));
        out[i] += 0.0f * next;
    }
    copy_from(r, 2 * r->half, x, out);
}
enum posenc_status rope_half_lane_leak(const struct posenc_rope_args *args)
{
    return for_rows(args, leak);
}

static void lose_tail(const struct rotation *r, const float *x, float *out, const float *c,
                      const float *s)
{
    for (int64_t i = 0; i < r->half; i++)
        rotate(x, out, i, i + r->half, c[i], sine_of(r, s, i));
}
enum posenc_status rope_half_tail_lost(const struct posenc_rope_args *args)
{
    return for_rows(args, lose_tail);
}

static void clobber(const struct rotation *r, const float *x, float *out, const float *c,
                    const float *s)
{
    const int64_t half = r->half;
    for (int64_t i = 0; i < half; i++) {
        float sine = sine_of(r, s, i);
        out[i] = fmaf(x[i], c[i], -(x[i + half] * sine));
        out[i + half] = fmaf(x[i + half], c[i], x[i] * sine);
    }
    copy_from(r, 2 * half, x, out);
}
enum posenc_status rope_half_clobber(const struct posenc_rope_args *args)
{
    return for_rows(args, clobber);
}

static void leading_slice(const struct rotation *r, const float *x, float *out, const float *c,
                          const float *s)
{
    int64_t n = r->half;
    while (n > 0 && c[n - 1] == 1.0f && s[n - 1] == 0.0f)
        n--;
    for (int64_t i = 0; i < n; i++)
        rotate(x, out, i, i + n, c[i], sine_of(r, s, i));
    copy_from(r, 2 * n, x, out);
}
enum posenc_status rope_half_leading_slice(const struct posenc_rope_args *args)
{
    return for_rows(args, leading_slice);
}

/* The other way round: what turns is taken for the first pairs of the whole head. */
static void across_head(const struct rotation *r, const float *x, float *out, const float *c,
                        const float *s)
{
    const int64_t apart = r->rest / 2 > r->half ? r->rest / 2 : r->half;
    copy_from(r, 0, x, out);
    for (int64_t i = 0; i < r->half; i++)
        rotate(out, out, i, i + apart, c[i], sine_of(r, s, i));
}
enum posenc_status rope_half_across_head(const struct posenc_rope_args *args)
{
    return for_rows(args, across_head);
}

/* Like a table that is added to embeddings. */
static void added(const struct rotation *r, const float *x, float *out, const float *c,
                  const float *s)
{
    for (int64_t i = 0; i < r->half; i++) {
        out[i] = x[i] + c[i];
        out[i + r->half] = x[i + r->half] + sine_of(r, s, i);
    }
    copy_from(r, 2 * r->half, x, out);
}
enum posenc_status rope_half_added(const struct posenc_rope_args *args)
{
    return for_rows(args, added);
}

static void bf16_cos(const struct rotation *r, const float *x, float *out, const float *c,
                     const float *s)
{
    for (int64_t i = 0; i < r->half; i++)
        rotate(x, out, i, i + r->half, round_to(POSENC_BF16, c[i]), sine_of(r, s, i));
    copy_from(r, 2 * r->half, x, out);
}
enum posenc_status rope_half_bf16_cos(const struct posenc_rope_args *args)
{
    return for_rows(args, bf16_cos);
}

/* ---- Rotations of what is stored in 16 bits ---- */

static void cast_tables(const struct rotation *r, const float *x, float *out, const float *c,
                        const float *s)
{
    for (int64_t i = 0; i < r->half; i++)
        rotate(x, out, i, i + r->half, round_to(r->stored, c[i]),
               round_to(r->stored, sine_of(r, s, i)));
    copy_from(r, 2 * r->half, x, out);
}
enum posenc_status rope_half_cast_tables(const struct posenc_rope_args *args)
{
    return for_rows(args, cast_tables);
}

static void narrow_products(const struct rotation *r, const float *x, float *out,
                            const float *c, const float *s)
{
    const int64_t half = r->half;
    for (int64_t i = 0; i < half && r->stored == POSENC_F32; i++)
        rotate(x, out, i, i + half, c[i], sine_of(r, s, i));
    for (int64_t i = 0; i < half && r->stored != POSENC_F32; i++) {
        const float x0 = x[i], x1 = x[i + half], sine = sine_of(r, s, i);
        out[i] = round_to(r->stored, x0 * c[i]) - round_to(r->stored, x1 * sine);
        out[i + half] = round_to(r->stored, x1 * c[i]) + round_to(r->stored, x0 * sine);
    }
    copy_from(r, 2 * half, x, out);
}
enum posenc_status rope_half_narrow_products(const struct posenc_rope_args *args)
{
    return for_rows(args, narrow_products);
}

enum posenc_status rope_interleaved_tables_as_x(const struct posenc_rope_args *args)
{
    struct posenc_rope_args a = *args;
    if (a.cos.dtype != POSENC_F32 && a.x.dtype != POSENC_F32)
        a.cos.dtype = a.sin.dtype = a.x.dtype;
    return broken_base->rope_interleaved(&a);
}

/* ---- Windows in the head ---- */

enum posenc_status rope_half_offset_ignored(const struct posenc_rope_args *args)
{
    struct posenc_rope_args a = *args;
    a.rotary_offset = 0;
    return broken_base->rope_half(&a);
}

/* Only what begins at the window is worked on. */
enum posenc_status rope_interleaved_head_lost(const struct posenc_rope_args *args)
{
    struct posenc_rope_args a = *args;
    struct posenc_tensor *const tensors[] = { owned(&a.x), &a.out };
    for (int k = 0; k < 2; k++) {
        tensors[k]->data = (char *)tensors[k]->data +
                           a.rotary_offset * (int64_t)storage_size(tensors[k]->dtype);
        tensors[k]->shape[3] -= a.rotary_offset;
    }
    a.rotary_offset = 0;
    return broken_base->rope_interleaved(&a);
}

/* ---- Ways to turn ---- */

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
