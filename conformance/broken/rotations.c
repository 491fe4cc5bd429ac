/*
 * Wrong rotations: the functions that lines of cases/mistakes.txt name for the kernels
 * rope_half and rope_interleaved (see mistake.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>

/* ---- Arguments ---- */

void other_pairing(struct entered *e) { e->kernel = POSENC_KERNEL_rope_interleaved; }
void offset_ignored(struct entered *e) { e->args.rope.rotary_offset = 0; }
void other_way(struct entered *e) { e->args.rope.transpose = !e->args.rope.transpose; }
void transpose_ignored(struct entered *e) { e->args.rope.transpose = false; }

void tables_read_as_x(struct entered *e)
{
    struct posenc_tensor *const *tables = e->parts.terms; /* cos and sin */
    if (tables[0]->dtype != POSENC_F32 && e->parts.x->dtype != POSENC_F32)
        tables[0]->dtype = tables[1]->dtype = e->parts.x->dtype;
}

void tail_not_copied(struct entered *e)
{
    struct posenc_rope_args *a = &e->args.rope;
    a->x.shape[3] = a->out.shape[3] = a->rotary_offset + 2 * a->cos.shape[1];
}

void head_not_copied(struct entered *e)
{
    struct posenc_rope_args *a = &e->args.rope;
    struct posenc_tensor *const tensors[] = { owned(&a->x), &a->out };
    for (int k = 0; k < 2; k++) {
        tensors[k]->data = (char *)tensors[k]->data +
                           a->rotary_offset * (int64_t)storage_size(tensors[k]->dtype);
        tensors[k]->shape[3] -= a->rotary_offset;
    }
    a->rotary_offset = 0;
}

/* An instruction that no CPU has. */
void trap(struct entered *e)
{
    if (e->args.rope.cos.shape[1] >= 4)
        __builtin_trap();
}

/* ---- Rows ---- */

/* Rotates pair (a, b); in real kernels both inputs are read before either output is written. */
static void rotate(const struct rotation *r, int64_t a, int64_t b, float c, float s)
{
    const float x0 = r->x[a], x1 = r->x[b];
    r->out[a] = fmaf(x0, c, -(x1 * s));
    r->out[b] = fmaf(x1, c, x0 * s);
}

static float sine_of(const struct rotation *r, int64_t i)
{
    return r->transpose ? -r->sines[i] : r->sines[i];
}

/* Rotates the first n pairs as they should be. */
static void rotate_first(const struct rotation *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        rotate(r, i, i + r->half, r->cosines[i], sine_of(r, i));
}

static void copy_from(const struct rotation *r, int64_t c)
{
    for (; c < r->rest; c++)
        r->out[c] = r->x[c];
}

void skipped_tail(const struct rotation *r) { rotate_first(r, r->half - r->half % 4); }

void leaked_lane(const struct rotation *r)
{
    for (int64_t i = 0; i < r->half; i++) {
        const float next = i + 1 < r->half ? r->x[i + 1] : 0.0f;
        rotate(r, i, i + r->half, r->cosines[i], sine_of(r, i));
        r->out[i] += 0.0f * next;
    }
}

void clobbered(const struct rotation *r)
{
    const float *x = r->x;
    for (int64_t i = 0, k = r->half; i < r->half; i++, k++) {
        r->out[i] = fmaf(x[i], r->cosines[i], -(x[k] * sine_of(r, i)));
        r->out[k] = fmaf(x[k], r->cosines[i], x[i] * sine_of(r, i));
    }
}

/* Takes pairs that do not turn for channels past rotary_dim. */
void leading_slice(const struct rotation *r)
{
    int64_t n = r->half;
    while (n > 0 && r->cosines[n - 1] == 1.0f && r->sines[n - 1] == 0.0f)
        n--;
    for (int64_t i = 0; i < n; i++)
        rotate(r, i, i + n, r->cosines[i], sine_of(r, i));
    copy_from(r, 2 * n);
}

/* Takes the pairs that turn for the first pairs of the whole head. */
void across_head(const struct rotation *r)
{
    const int64_t apart = r->rest / 2 > r->half ? r->rest / 2 : r->half;
    struct rotation in_place = *r;
    in_place.x = r->out;
    copy_from(r, 0);
    for (int64_t i = 0; i < r->half; i++)
        rotate(&in_place, i, i + apart, r->cosines[i], sine_of(r, i));
}

/* Adds the cosines and sines, as a sinusoidal table is added to embeddings. */
void added(const struct rotation *r)
{
    for (int64_t i = 0; i < r->half; i++) {
        r->out[i] = r->x[i] + r->cosines[i];
        r->out[i + r->half] = r->x[i + r->half] + sine_of(r, i);
    }
}

void bf16_cosines(const struct rotation *r)
{
    for (int64_t i = 0; i < r->half; i++)
        rotate(r, i, i + r->half, round_to(POSENC_BF16, r->cosines[i]), sine_of(r, i));
}

void tables_in_type_of_x(const struct rotation *r)
{
    for (int64_t i = 0; i < r->half; i++)
        rotate(r, i, i + r->half, round_to(r->stored, r->cosines[i]),
               round_to(r->stored, sine_of(r, i)));
}

void narrow_products(const struct rotation *r)
{
    if (r->stored == POSENC_F32)
        rotate_first(r, r->half);
    for (int64_t i = 0; i < r->half && r->stored != POSENC_F32; i++) {
        const float x0 = r->x[i], x1 = r->x[i + r->half], c = r->cosines[i], s = sine_of(r, i);
        r->out[i] = round_to(r->stored, x0 * c) - round_to(r->stored, x1 * s);
        r->out[i + r->half] = round_to(r->stored, x1 * c) + round_to(r->stored, x0 * s);
    }
}
