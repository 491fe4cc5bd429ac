/*
 * Prepared calls: checked when they are made, run with other pointers and positions.
 *
 * A run compares addresses and a position with what was found when the call was made: out must
 * lie apart from what the kernel only reads, from x unless it is x, and the positions in their
 * range. Whatever does not pass at a glance is handed to the kernel's front door, which says
 * what is wrong, or runs it.
 */
#include "checks.h"
#include "grow.h"
#include "registry.h"

#include <stdlib.h>
#include <string.h>

union args {
    struct posenc_sinusoidal_args sinusoidal;
    struct posenc_learned_args learned;
    struct posenc_rope_args rope;
    struct posenc_rope_qk_norm_args rope_qk_norm;
};

/* Bytes before and from the first element on. */
struct reach {
    uintptr_t before, after;
};

struct posenc_prepared {
    enum posenc_status (*run)(struct posenc_prepared *prepared);
    enum posenc_status (*front)(struct posenc_prepared *prepared);
    /* Pointers to members of `call` and `given`: data and positions. */
    struct place {
        const void **x;
        void **out;
        struct posenc_positions *positions;
    } call_at, given_at;
    struct reach x, out;
    struct span read[3]; /* what is read beside x: cos, sin and a weight, or a table */
    struct span around;  /* and the least that has them all */
    uintptr_t misaligned;
    int64_t least, most; /* offsets */
    int64_t batch, tokens;
    bool takes_x, may_be_same;
    const struct posenc_backend *backend;
    enum posenc_kernel kernel;
    _Alignas(64) union args call; /* as kernels take it: read at each run, line by line */
    union args given;             /* as the caller gave it */
};

/* ---- Making one ----
 *
 * Of a call that is empty nothing is noted: nobody has looked at its strides. */

static struct reach reach_of(const int64_t *shape, const int64_t *stride, size_t item)
{
    struct reach reach = { 0, item };
    for (int i = 0; i < 4; i++) {
        int64_t bytes = (shape[i] - 1) * stride[i] * (int64_t)item; /* checked: in memory */
        reach.before += bytes < 0 ? (uintptr_t)-bytes : 0;
        reach.after += bytes > 0 ? (uintptr_t)bytes : 0;
    }
    return reach;
}

/* The bytes of a table of rank 2. */
static struct span bytes_of(const struct posenc_const_tensor *table)
{
    const int64_t shape[4] = { 1, 1, table->shape[0], table->shape[1] };
    const int64_t stride[4] = { 0, 0, table->stride[0], 1 };
    struct reach reach = reach_of(shape, stride, posenc_dtype_size(table->dtype));
    uintptr_t first = (uintptr_t)table->data;
    return (struct span){ first - reach.before, first + reach.after };
}

static void note_activations(struct posenc_prepared *p, const struct posenc_const_tensor *x,
                             const struct posenc_tensor *out)
{
    size_t item = posenc_dtype_size(out->dtype);
    p->out = reach_of(out->shape, out->stride, item);
    p->takes_x = x->data != NULL;
    if (p->takes_x)
        p->x = reach_of(x->shape, x->stride, item);
    p->may_be_same = true;
    for (int i = 0; i < 4; i++)
        p->may_be_same &= x->stride[i] == out->stride[i];
    p->misaligned = item - 1;
    p->batch = out->shape[0];
    p->tokens = out->shape[1];
}

/* The least span that has all that are there. */
static struct span span_around(const struct span *spans, int n)
{
    struct span around = { 0, 0 };
    for (int i = 0; i < n; i++) {
        if (spans[i].end == 0)
            continue;
        if (around.end == 0 || spans[i].first < around.first)
            around.first = spans[i].first;
        if (spans[i].end > around.end)
            around.end = spans[i].end;
    }
    return around;
}

/* Notes the positions of the kernel's table, or of a plan: least to most. */
static void note_positions(struct posenc_prepared *p, int64_t least, int64_t most)
{
    p->least = least;
    p->most = most - (p->tokens - 1);
}

#define PREPARES(name, signature)                                                              \
    static enum posenc_status run_##name(struct posenc_prepared *p)                            \
    {                                                                                          \
        return p->backend->name(&p->call.signature);                                           \
    }                                                                                          \
    static enum posenc_status front_##name(struct posenc_prepared *p)                          \
    {                                                                                          \
        return posenc_##name(p->backend, &p->given.signature);                                 \
    }
PREPARES(sinusoidal, sinusoidal)
PREPARES(sinusoidal_add, sinusoidal)
PREPARES(learned_add, learned)
PREPARES(rope_half, rope)
PREPARES(rope_interleaved, rope)
PREPARES(rope_qk_norm, rope_qk_norm)
#undef PREPARES

#define PLACE(args)                                                                            \
    (struct place) { &(args).x.data, &(args).out.data, &(args).positions }

static enum posenc_status prepare_sinusoidal(struct posenc_prepared *p, const void *args,
                                             bool *empty)
{
    struct posenc_sinusoidal_args *call = &p->call.sinusoidal;
    bool add = p->kernel == POSENC_KERNEL_sinusoidal_add;
    enum posenc_status status =
        posenc_enter_sinusoidal(&p->backend, p->kernel, add, args, call, empty);
    if (status || *empty)
        return status;
    if (call->freqs->view.n_axes != 1)
        return posenc_refuse(call->error, POSENC_ERR_NOT_PROVIDED,
                             "axes of the plan (a prepared call has one)",
                             (double)call->freqs->view.n_axes, 1.0, 1.0);
    (void)posenc_grow(&posenc_grown_sinusoidal_args, &p->given, args);
    p->call_at = PLACE(*call);
    p->given_at = PLACE(p->given.sinusoidal);
    note_activations(p, &call->x, &call->out);
    note_positions(p, -(int64_t)INT32_MAX, INT32_MAX);
    p->run = add ? run_sinusoidal_add : run_sinusoidal;
    p->front = add ? front_sinusoidal_add : front_sinusoidal;
    return POSENC_OK;
}

static enum posenc_status prepare_learned(struct posenc_prepared *p, const void *args,
                                          bool *empty)
{
    struct posenc_learned_args *call = &p->call.learned;
    enum posenc_status status =
        posenc_enter_learned(&p->backend, p->kernel, true, args, call, empty);
    if (status || *empty)
        return status;
    (void)posenc_grow(&posenc_grown_learned_args, &p->given, args);
    p->call_at = PLACE(*call);
    p->given_at = PLACE(p->given.learned);
    note_activations(p, &call->x, &call->out);
    note_positions(p, 0, call->table.shape[0] - 1);
    p->read[0] = bytes_of(&call->table);
    p->run = run_learned_add;
    p->front = front_learned_add;
    return POSENC_OK;
}

static enum posenc_status prepare_rope(struct posenc_prepared *p, const void *args, bool *empty)
{
    struct posenc_rope_args *call = &p->call.rope;
    bool half = p->kernel == POSENC_KERNEL_rope_half;
    enum posenc_status status =
        posenc_enter_rope(&p->backend, p->kernel, true, args, call, empty);
    if (status || *empty)
        return status;
    (void)posenc_grow(&posenc_grown_rope_args, &p->given, args);
    p->call_at = PLACE(*call);
    p->given_at = PLACE(p->given.rope);
    note_activations(p, &call->x, &call->out);
    note_positions(p, 0, call->cos.shape[0] - 1);
    p->read[0] = bytes_of(&call->cos);
    p->read[1] = bytes_of(&call->sin);
    p->run = half ? run_rope_half : run_rope_interleaved;
    p->front = half ? front_rope_half : front_rope_interleaved;
    return POSENC_OK;
}

static enum posenc_status prepare_norm(struct posenc_prepared *p, const void *args, bool *empty)
{
    struct posenc_rope_qk_norm_args *call = &p->call.rope_qk_norm;
    enum posenc_status status =
        posenc_enter_rope_qk_norm(&p->backend, p->kernel, true, args, call, empty);
    if (status || *empty)
        return status;
    (void)posenc_grow(&posenc_grown_rope_qk_norm_args, &p->given, args);
    p->call_at = PLACE(*call);
    p->given_at = PLACE(p->given.rope_qk_norm);
    note_activations(p, &call->x, &call->out);
    note_positions(p, 0, call->cos.shape[0] - 1);
    p->read[0] = bytes_of(&call->cos);
    p->read[1] = bytes_of(&call->sin);
    p->read[2] = bytes_of(&call->weight);
    p->run = run_rope_qk_norm;
    p->front = front_rope_qk_norm;
    return POSENC_OK;
}

static enum posenc_status prepare(struct posenc_prepared *p, const void *args, bool *empty)
{
    switch ((int)p->kernel) {
    case POSENC_KERNEL_sinusoidal:
    case POSENC_KERNEL_sinusoidal_add:
        return prepare_sinusoidal(p, args, empty);
    case POSENC_KERNEL_learned_add:
        return prepare_learned(p, args, empty);
    case POSENC_KERNEL_rope_half:
    case POSENC_KERNEL_rope_interleaved:
        return prepare_rope(p, args, empty);
    case POSENC_KERNEL_rope_qk_norm:
        return prepare_norm(p, args, empty);
    }
    return POSENC_ERR_NOT_PROVIDED;
}

enum posenc_status posenc_prepare(const struct posenc_backend *backend,
                                  enum posenc_kernel kernel, const void *args,
                                  struct posenc_prepared **prepared)
{
    bool empty = false;
    if (!args || !prepared)
        return POSENC_ERR_ARGUMENT;
    struct posenc_prepared *made =
        aligned_alloc(_Alignof(struct posenc_prepared), sizeof *made);
    if (!made)
        return POSENC_ERR_MEMORY;
    memset(made, 0, sizeof *made);
    made->backend = backend;
    made->kernel = kernel;
    enum posenc_status status = prepare(made, args, &empty);
    if (!status && empty)
        status = POSENC_ERR_SHAPE; /* there is nothing to prepare */
    if (status) {
        free(made);
        return status;
    }
    made->around = span_around(made->read, sizeof made->read / sizeof *made->read);
    *prepared = made;
    return POSENC_OK;
}

void posenc_prepared_destroy(struct posenc_prepared *prepared) { free(prepared); }

/* ---- Running it ---- */

static inline bool meet(struct span a, struct span b)
{
    return a.first < b.end && b.first < a.end;
}

/* Returns true if the output meets another input than x. Mostly it is outside the span of all. */
static inline bool meets_any(const struct posenc_prepared *p, struct span written)
{
    return meet(written, p->around) && (meet(written, p->read[0]) ||
                                        meet(written, p->read[1]) || meet(written, p->read[2]));
}

/* Returns true if a fast check accepts x and out. */
static inline bool is_fine(const struct posenc_prepared *p, const void *x, const void *out)
{
    uintptr_t to = (uintptr_t)out, from = (uintptr_t)x;
    struct span written = { to - p->out.before, to + p->out.after };
    struct span taken = { from - p->x.before, from + p->x.after };
    if (to <= p->out.before || written.end <= to || meets_any(p, written) ||
        ((to | from) & p->misaligned) != 0)
        return false;
    if (!p->takes_x)
        return from == 0;
    return from > p->x.before && taken.end > from &&
           ((from == to && p->may_be_same) || !meet(written, taken));
}

static enum posenc_status run_front(struct posenc_prepared *p, const void *x, void *out)
{
    *p->given_at.x = x;
    *p->given_at.out = out;
    return p->front(p);
}

enum posenc_status posenc_run(struct posenc_prepared *prepared, const void *x, void *out,
                              int64_t offset)
{
    struct posenc_positions *positions = prepared->call_at.positions;
    if (positions->kind == POSENC_OFFSET && offset >= prepared->least &&
        offset <= prepared->most && is_fine(prepared, x, out)) {
        *prepared->call_at.x = x;
        *prepared->call_at.out = out;
        positions->offset = offset;
        return prepared->run(prepared);
    }
    if (positions->kind != POSENC_OFFSET)
        return POSENC_ERR_ARGUMENT;
    prepared->given_at.positions->offset = offset;
    return run_front(prepared, x, out);
}

enum posenc_status posenc_run_at(struct posenc_prepared *prepared, const void *x, void *out,
                                 const void *positions)
{
    if (prepared->call_at.positions->kind == POSENC_OFFSET)
        return POSENC_ERR_ARGUMENT;
    prepared->given_at.positions->data = positions;
    return run_front(prepared, x, out);
}
