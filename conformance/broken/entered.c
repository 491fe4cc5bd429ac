/*
 * A kernel that was entered with a mistake: see mistake.h.  What the mistake's function is told
 * of an element, a pair or a row is found out here.
 */
#include "mistake.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What kernels have in common ---- */

/* One to write: the first tensor that is an input, else x, else positions. */
static const void *an_input(const struct signature *s, const union arguments *a)
{
    const void *other = NULL;
    for (EACH_TENSOR(row, s)) {
        const void *data = row_data(a, row);
        if (row->role == ROLE_INPUT && row->form != FORM_POSITIONS && data)
            return data;
        if (row->role == ROLE_X || (row->form == FORM_POSITIONS && !other))
            other = data;
    }
    return other;
}

static struct parts parts_of(enum posenc_kernel kernel, union arguments *a)
{
    const struct signature *s = signature_of(kernel);
    const size_t x_scale = signature_argument(s, MEMBER(x_scale));
    struct parts parts = { .input = an_input(s, a) };
    int n = 0;
    for (EACH_TENSOR(row, s)) {
        void *at = row_argument(a, row);
        if (row->role == ROLE_X)
            parts.x = at;
        else if (row->role == ROLE_OUTPUT && parts.out)
            parts.second = at;
        else if (row->role == ROLE_OUTPUT)
            parts.out = at;
        else if (row->form == FORM_POSITIONS)
            parts.positions = at;
        else if (row->form == FORM_TENSOR && row->type != TYPE_F32)
            parts.terms[n++] = at;
    }
    if (s->freqs)
        memcpy(&parts.freqs, (const char *)a + s->freqs, sizeof parts.freqs);
    if (x_scale)
        memcpy(&parts.x_scale, (const char *)a + x_scale, sizeof parts.x_scale);
    return parts;
}

float *row_at(const struct posenc_tensor *t, int64_t b, int64_t i1, int64_t i2)
{
    return (float *)t->data + b * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
}

double position_on(const struct posenc_positions *p, int64_t b, int64_t t, int axis)
{
    const int64_t at = b * p->stride_batch + t * p->stride_token + axis * p->stride_axis;
    return p->kind == POSENC_OFFSET          ? (double)(p->offset + t)
           : p->kind == POSENC_POSITIONS_I32 ? (double)((const int32_t *)p->data)[at]
           : p->kind == POSENC_POSITIONS_I64 ? (double)((const int64_t *)p->data)[at]
                                             : (double)((const float *)p->data)[at];
}

void *enter_keep(struct entered *e, int64_t n, size_t size)
{
    e->kept = calloc((size_t)n + 1, size);
    if (!e->kept)
        exit(2);
    return e->kept;
}

float other_last_bit(float x) { return of_bits(bits_of(x) ^ 1u); }

/* ---- Other positions ---- */

/* An array of each axis; times stay times. */
static void change_positions(struct entered *e)
{
    struct posenc_positions *p = e->parts.positions;
    const bool times = p->kind == POSENC_POSITIONS_F32;
    const int axes = e->parts.second ? posenc_freqs_view(e->parts.freqs).n_axes : 1;
    const int64_t tokens = e->parts.out->shape[1], all = e->parts.out->shape[0] * tokens;
    int64_t *data = enter_keep(e, axes * all, sizeof *data);
    for (int64_t k = 0; k < axes * all; k++) {
        struct position at = { p, k % all / tokens, k % tokens, (int)(k / all), axes, 0.0 };
        at.value = position_on(p, at.b, at.t, at.axis);
        const double changed = mistake_now->position(&at);
        if (times)
            ((float *)data)[k] = (float)changed;
        else
            data[k] = (int64_t)changed;
    }
    *p = (struct posenc_positions){ .kind = times ? p->kind : POSENC_POSITIONS_I64,
                                    .data = data,
                                    .stride_batch = tokens,
                                    .stride_token = 1,
                                    .stride_axis = axes > 1 ? all : 0 };
}

/* ---- Tables: an edit of each pair ---- */

/* Where a row of sines and cosines has those of pair i. */
static void find_sinusoidal(struct pair *p, float *row)
{
    const enum posenc_layout layout = p->e->args.sinusoidal.layout;
    const bool interleaved = layout == POSENC_INTERLEAVED, swapped = layout == POSENC_COS_SIN;
    float *first = row + (interleaved ? 2 * p->i : p->i);
    float *second = first + (interleaved ? 1 : p->view.dim / 2);
    p->cosine = swapped ? first : second;
    p->sine = swapped ? second : first;
}

static void edit_pairs(struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out, *sines = e->parts.second;
    struct pair p = { .e = e, .view = posenc_freqs_view(e->parts.freqs) };
    const int64_t pairs = sines ? out->shape[3] : p.view.dim / 2;
    for (p.b = 0; p.b < out->shape[0]; p.b++)
        for (p.t = 0; p.t < out->shape[1]; p.t++)
            for (p.i = pairs - 1; p.i >= 0; p.i--) {
                p.time = position_on(e->parts.positions, p.b, p.t,
                                     p.view.axis && sines ? p.view.axis[p.i] : 0);
                p.cosines = row_at(out, p.b, p.t, 0);
                if (sines) {
                    p.sines = row_at(sines, p.b, p.t, 0);
                    p.cosine = p.cosines + p.i;
                    p.sine = p.sines + p.i;
                } else {
                    find_sinusoidal(&p, p.cosines);
                }
                mistake_now->pair(&p);
            }
}

/* ---- Instead of the kernel ---- */

static void each_element(struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    const int32_t *index =
        kernel_signature(e->kernel) == SIGNATURE_relative ? e->args.relative.index : NULL;
    struct place at = { .e = e };
    for (at.b = 0; at.b < out->shape[0]; at.b++)
        for (at.h = 0; at.h < out->shape[1]; at.h++)
            for (at.i = 0; at.i < out->shape[2]; at.i++)
                for (at.j = 0; at.j < out->shape[3]; at.j++) {
                    at.column = index ? index[at.i - at.j + out->shape[3] - 1] : 0;
                    const float value = mistake_now->element(at);
                    row_at(out, at.b, at.h, at.i)[at.j] =
                        x->data
                            ? fmaf(row_at(x, at.b, at.h, at.i)[at.j], e->parts.x_scale, value)
                            : value;
                }
}

/* What lies before and after the channels that turn is copied. */
static void each_rotation(struct entered *e)
{
    const struct posenc_rope_args *a = &e->args.rope;
    const int64_t from = a->rotary_offset, heads = a->out.shape[2], tokens = a->out.shape[1];
    struct rotation r = { .half = a->cos.shape[1],
                          .rest = a->out.shape[3] - from,
                          .transpose = a->transpose,
                          .stored = e->given->rope.out.dtype };
    for (int64_t k = 0; k < a->out.shape[0] * tokens * heads; k++) {
        const int64_t b = k / heads / tokens, t = k / heads % tokens;
        const int64_t row = (int64_t)position_on(&a->positions, b, t, 0);
        r.x = row_at(owned(&a->x), b, t, k % heads) + from;
        r.out = row_at(&a->out, b, t, k % heads) + from;
        r.cosines = storage_row(owned(&a->cos), row);
        r.sines = storage_row(owned(&a->sin), row);
        for (int64_t c = -from; c < r.rest; c++)
            if (c < 0 || c >= 2 * r.half)
                r.out[c] = r.x[c];
        mistake_now->rotation(&r);
    }
}

/* Row r of a gradient is the sum of the rows of x at position r. */
static void each_gradient(struct entered *e)
{
    const struct posenc_learned_grad_args *a = &e->args.learned_grad;
    const int64_t tokens = a->x.shape[1], all = a->x.shape[0] * tokens;
    const float **rows = malloc((size_t)(all + 1) * sizeof *rows);
    float *terms = enter_keep(e, all, sizeof *terms);
    struct sum s = { .terms = terms, .onto = a->accumulate };
    s.stored = e->given->learned_grad.x.dtype;
    if (!rows)
        exit(2);
    for (int64_t r = 0; r < a->out.shape[0]; r++) {
        float *out = storage_row(&a->out, r);
        s.n = 0;
        for (int64_t k = 0; k < all; k++)
            if ((int64_t)position_on(&a->positions, k / tokens, k % tokens, 0) == r)
                rows[s.n++] = row_at(owned(&a->x), k / tokens, k % tokens, 0);
        for (int64_t c = 0; c < a->out.shape[1]; c++) {
            for (int64_t k = 0; k < s.n; k++)
                terms[k] = rows[k][c];
            s.held = out[c];
            out[c] = mistake_now->sum(&s);
        }
    }
    free(rows);
}

/* Column c of a query is the sum of what it has for keys at that distance. */
static void each_column(struct entered *e)
{
    const struct posenc_relative_sum_args *a = &e->args.relative_sum;
    const int64_t keys = a->x.shape[3], queries = a->x.shape[2];
    float *terms = enter_keep(e, keys, sizeof *terms);
    struct sum s = { .terms = terms, .stored = e->given->relative_sum.x.dtype };
    for (int64_t r = 0; r < storage_rows(&a->out); r++)
        for (int64_t c = 0; c < a->out.shape[3]; c++) {
            const float *x = storage_row(owned(&a->x), r);
            float *out = (float *)storage_row(&a->out, r) + c;
            s.n = 0;
            s.held = *out;
            for (int64_t j = 0; j < keys; j++)
                if (a->index[r % queries - j + keys - 1] == c)
                    terms[s.n++] = x[j];
            *out = mistake_now->sum(&s);
        }
}

/* A token is read before any of it is written. */
static void each_norm(struct entered *e)
{
    const struct posenc_rope_qk_norm_args *a = &e->args.rope_qk_norm;
    const int64_t *shape = a->out.shape, heads = shape[2], dim = shape[3];
    float *token = enter_keep(e, heads * dim, sizeof *token);
    struct normed n = { .args = a, .token = token, .stored = e->given->rope_qk_norm.x.dtype };
    for (int64_t k = 0; k < shape[0] * shape[1]; k++) {
        const int64_t b = k / shape[1], t = k % shape[1];
        const int64_t row = (int64_t)position_on(&a->positions, b, t, 0);
        n.cosines = storage_row(owned(&a->cos), row);
        n.sines = storage_row(owned(&a->sin), row);
        for (int64_t h = 0; h < heads; h++)
            memcpy(token + h * dim, row_at(owned(&a->x), b, t, h), (size_t)dim * sizeof *token);
        for (n.head = 0; n.head < heads; n.head++) {
            n.weight = (const float *)a->weight.data + n.head * a->weight.stride[0];
            n.out = row_at(&a->out, b, t, n.head);
            mistake_now->norm(&n);
        }
    }
}

/* ---- The kernel ---- */

void enter_kernel(struct entered *e)
{
    switch (e->kernel) {
#define POSENC_KERNEL(name, signature, ...)                                                    \
    case POSENC_KERNEL_##name:                                                                 \
        e->status = mistake_base->name(&e->args.signature);                                    \
        break;
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
        break;
    }
}

static void enter_or_replace(struct entered *e)
{
    if (mistake_now->around)
        mistake_now->around(e);
    else if (mistake_now->element)
        each_element(e);
    else if (mistake_now->rotation)
        each_rotation(e);
    else if (mistake_now->norm)
        each_norm(e);
    else if (mistake_now->sum && kernel_on_scores(e->kernel))
        each_column(e);
    else if (mistake_now->sum)
        each_gradient(e);
    else
        enter_kernel(e);
}

enum posenc_status enter(enum posenc_kernel kernel, const union arguments *args)
{
    const struct mistake *m = mistake_now;
    struct entered e = { .kernel = kernel, .given = args, .args = *args };
    e.parts = parts_of(kernel, &e.args);
    mistake_made();
    if (m->pair || m->element || m->rotation || m->sum || m->norm || m->store || m->load)
        in_f32_open(&e);
    if (m->position)
        change_positions(&e);
    if (m->arguments)
        m->arguments(&e);
    enter_or_replace(&e);
    if (m->pair)
        edit_pairs(&e);
    if (m->after)
        m->after(&e, e.parts.out);
    in_f32_close(&e);
    posenc_freqs_destroy(e.freqs);
    free(e.kept);
    return e.status;
}
