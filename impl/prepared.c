/*
 * Prepared calls: checked once by posenc_prepare(), then run with other pointers and positions, for example by
 * posenc_run(prepared, q, q, position, &error) at each step of decoding.
 *
 * A run only checks what may have changed: the position must be in range, out must not overlap an input, and x must be
 * out or disjoint from it. A run that does not pass this fast check goes through posenc_<kernel>(), which runs the call
 * or reports what is wrong.
 */
#include "checks.h"
#include "versioned.h"
#include "registry.h"

#include <stdlib.h>
#include <string.h>

/* Arguments of the signatures that can be prepared. */
union prepared_args {
    struct posenc_sinusoidal_args sinusoidal;
    struct posenc_learned_args learned;
    struct posenc_rope_args rope;
    struct posenc_rope_qk_norm_args rope_qk_norm;
};

/* Bytes that a tensor occupies, relative to the address of its first element. */
struct tensor_extent {
    uintptr_t before, after;
};

struct posenc_prepared {
    enum posenc_status (*run_kernel)(struct posenc_prepared *prepared); /* of the backend */
    /* posenc_<kernel>() */
    enum posenc_status (*run_public)(struct posenc_prepared *prepared,
                                     struct posenc_error *error);
    /* The members of `call` and `original` that each run sets. */
    struct run_members {
        const void **x;
        void **out;
        struct posenc_positions *positions;
    } call_members, original_members;
    struct tensor_extent x, out;
    struct span inputs[3];    /* inputs other than x: cos, sin and a weight, or a table */
    struct span all_inputs;   /* the smallest span that contains them */
    uintptr_t alignment_mask; /* bits that must be 0 in the addresses of x and out */
    int64_t least, most;      /* offsets of the positions */
    int64_t tokens;
    bool takes_x, may_be_same;
    const struct posenc_backend *backend;
    enum posenc_kernel kernel;
    _Alignas(64) union prepared_args call; /* canonical; cache-aligned, as each run reads it */
    union prepared_args original;          /* as the caller passed them */
};

/* ---- Preparing ---- */

/* Returns the extent of a canonical tensor of rank 4, whose elements have `item` bytes. */
static struct tensor_extent tensor_extent(const int64_t *shape, const int64_t *stride,
                                          size_t item)
{
    struct tensor_extent extent = { 0, item };
    for (int i = 0; i < 4; i++) {
        int64_t bytes = (shape[i] - 1) * stride[i] * (int64_t)item; /* checked: no overflow */
        extent.before += bytes < 0 ? (uintptr_t)-bytes : 0;
        extent.after += bytes > 0 ? (uintptr_t)bytes : 0;
    }
    return extent;
}

/* Returns the span of a table of rank 2. */
static struct span table_span(const struct posenc_const_tensor *table)
{
    const int64_t shape[4] = { 1, 1, table->shape[0], table->shape[1] };
    const int64_t stride[4] = { 0, 0, table->stride[0], 1 };
    struct tensor_extent extent = tensor_extent(shape, stride, posenc_dtype_size(table->dtype));
    uintptr_t first = (uintptr_t)table->data;
    return (struct span){ first - extent.before, first + extent.after };
}

/* Records what the fast check of a run needs to know about x and out. */
static void record_activations(struct posenc_prepared *p, const struct posenc_const_tensor *x,
                               const struct posenc_tensor *out)
{
    size_t item = posenc_dtype_size(out->dtype);
    p->out = tensor_extent(out->shape, out->stride, item);
    p->takes_x = x->data != NULL;
    if (p->takes_x)
        p->x = tensor_extent(x->shape, x->stride, item);
    p->may_be_same = true;
    for (int i = 0; i < 4; i++)
        p->may_be_same &= x->stride[i] == out->stride[i];
    p->alignment_mask = item - 1;
    p->tokens = out->shape[1];
}

/* Returns the smallest span that contains all spans that are set. */
static struct span enclosing_span(const struct span *spans, int n)
{
    struct span all = { 0, 0 };
    for (int i = 0; i < n; i++) {
        if (spans[i].end == 0)
            continue;
        if (all.end == 0 || spans[i].first < all.first)
            all.first = spans[i].first;
        if (spans[i].end > all.end)
            all.end = spans[i].end;
    }
    return all;
}

/* Records the offsets at which all tokens are at positions from least to most. */
static void record_positions(struct posenc_prepared *p, int64_t least, int64_t most)
{
    p->least = least;
    p->most = most - (p->tokens - 1);
}

#define RUN_FUNCTIONS(name, signature)                                                         \
    static enum posenc_status run_##name(struct posenc_prepared *p)                            \
    {                                                                                          \
        return p->backend->name(&p->call.signature);                                           \
    }                                                                                          \
    static enum posenc_status run_public_##name(struct posenc_prepared *p,                     \
                                                struct posenc_error *error)                    \
    {                                                                                          \
        return posenc_##name(p->backend, &p->original.signature, error);                       \
    }
RUN_FUNCTIONS(sinusoidal, sinusoidal)
RUN_FUNCTIONS(sinusoidal_add, sinusoidal)
RUN_FUNCTIONS(learned_add, learned)
RUN_FUNCTIONS(rope_half, rope)
RUN_FUNCTIONS(rope_interleaved, rope)
RUN_FUNCTIONS(rope_qk_norm, rope_qk_norm)
#undef RUN_FUNCTIONS

/* Gives an x that was left zero the form of out, as a run may pass another x. */
static void complete_x(struct posenc_const_tensor *x, const struct posenc_tensor *out)
{
    if (x->rank == 0)
        *x = posenc_const_view(*out);
}

#define RUN_MEMBERS(args)                                                                      \
    (struct run_members) { &(args).x.data, &(args).out.data, &(args).positions }

static enum posenc_status prepare_sinusoidal(struct posenc_prepared *p, const void *args,
                                             bool *empty, struct posenc_error *error)
{
    struct posenc_sinusoidal_args *call = &p->call.sinusoidal;
    bool add = p->kernel == POSENC_KERNEL_SINUSOIDAL_ADD;
    enum posenc_status status =
        posenc_setup_sinusoidal(&p->backend, p->kernel, add, args, call, empty, error);
    if (status || *empty)
        return status;
    if (call->freqs->view.n_axes != 1)
        return reject_range(error, POSENC_ERR_NOT_PROVIDED,
                            "axes of the frequencies (a prepared call has one)",
                            (double)call->freqs->view.n_axes, 1.0, 1.0);
    (void)posenc_versioned_copy(&posenc_versioned_sinusoidal_args, &p->original, args);
    p->call_members = RUN_MEMBERS(*call);
    p->original_members = RUN_MEMBERS(p->original.sinusoidal);
    if (add)
        complete_x(&p->original.sinusoidal.x, &p->original.sinusoidal.out);
    record_activations(p, &call->x, &call->out);
    record_positions(p, -(int64_t)INT32_MAX, INT32_MAX);
    p->run_kernel = add ? run_sinusoidal_add : run_sinusoidal;
    p->run_public = add ? run_public_sinusoidal_add : run_public_sinusoidal;
    return POSENC_OK;
}

static enum posenc_status prepare_learned(struct posenc_prepared *p, const void *args,
                                          bool *empty, struct posenc_error *error)
{
    struct posenc_learned_args *call = &p->call.learned;
    enum posenc_status status =
        posenc_setup_learned(&p->backend, p->kernel, true, args, call, empty, error);
    if (status || *empty)
        return status;
    (void)posenc_versioned_copy(&posenc_versioned_learned_args, &p->original, args);
    p->call_members = RUN_MEMBERS(*call);
    p->original_members = RUN_MEMBERS(p->original.learned);
    complete_x(&p->original.learned.x, &p->original.learned.out);
    record_activations(p, &call->x, &call->out);
    record_positions(p, 0, call->table.shape[0] - 1);
    p->inputs[0] = table_span(&call->table);
    p->run_kernel = run_learned_add;
    p->run_public = run_public_learned_add;
    return POSENC_OK;
}

static enum posenc_status prepare_rope(struct posenc_prepared *p, const void *args, bool *empty,
                                       struct posenc_error *error)
{
    struct posenc_rope_args *call = &p->call.rope;
    bool half = p->kernel == POSENC_KERNEL_ROPE_HALF;
    enum posenc_status status =
        posenc_setup_rope(&p->backend, p->kernel, true, args, call, empty, error);
    if (status || *empty)
        return status;
    (void)posenc_versioned_copy(&posenc_versioned_rope_args, &p->original, args);
    p->call_members = RUN_MEMBERS(*call);
    p->original_members = RUN_MEMBERS(p->original.rope);
    complete_x(&p->original.rope.x, &p->original.rope.out);
    record_activations(p, &call->x, &call->out);
    record_positions(p, 0, call->cos.shape[0] - 1);
    p->inputs[0] = table_span(&call->cos);
    p->inputs[1] = table_span(&call->sin);
    p->run_kernel = half ? run_rope_half : run_rope_interleaved;
    p->run_public = half ? run_public_rope_half : run_public_rope_interleaved;
    return POSENC_OK;
}

static enum posenc_status prepare_norm(struct posenc_prepared *p, const void *args, bool *empty,
                                       struct posenc_error *error)
{
    struct posenc_rope_qk_norm_args *call = &p->call.rope_qk_norm;
    enum posenc_status status =
        posenc_setup_rope_qk_norm(&p->backend, p->kernel, true, args, call, empty, error);
    if (status || *empty)
        return status;
    (void)posenc_versioned_copy(&posenc_versioned_rope_qk_norm_args, &p->original, args);
    p->call_members = RUN_MEMBERS(*call);
    p->original_members = RUN_MEMBERS(p->original.rope_qk_norm);
    complete_x(&p->original.rope_qk_norm.x, &p->original.rope_qk_norm.out);
    record_activations(p, &call->x, &call->out);
    record_positions(p, 0, call->cos.shape[0] - 1);
    p->inputs[0] = table_span(&call->cos);
    p->inputs[1] = table_span(&call->sin);
    p->inputs[2] = table_span(&call->weight);
    p->run_kernel = run_rope_qk_norm;
    p->run_public = run_public_rope_qk_norm;
    return POSENC_OK;
}

static enum posenc_status prepare(struct posenc_prepared *p, const void *args, bool *empty,
                                  struct posenc_error *error)
{
    switch ((int)p->kernel) {
    case POSENC_KERNEL_SINUSOIDAL:
    case POSENC_KERNEL_SINUSOIDAL_ADD:
        return prepare_sinusoidal(p, args, empty, error);
    case POSENC_KERNEL_LEARNED_ADD:
        return prepare_learned(p, args, empty, error);
    case POSENC_KERNEL_ROPE_HALF:
    case POSENC_KERNEL_ROPE_INTERLEAVED:
        return prepare_rope(p, args, empty, error);
    case POSENC_KERNEL_ROPE_QK_NORM:
        return prepare_norm(p, args, empty, error);
    }
    return reject_value(error, POSENC_ERR_NOT_PROVIDED, "kernel (it cannot be prepared)",
                        (double)p->kernel);
}

enum posenc_status posenc_prepare(const struct posenc_backend *backend,
                                  enum posenc_kernel kernel, const void *args,
                                  struct posenc_prepared **prepared, struct posenc_error *error)
{
    bool empty = false;
    if (!args || !prepared)
        return reject(error, POSENC_ERR_ARGUMENT, "args or prepared (NULL)");
    struct posenc_prepared *p = aligned_alloc(_Alignof(struct posenc_prepared), sizeof *p);
    if (!p)
        return reject(error, POSENC_ERR_MEMORY, "memory for a prepared call");
    memset(p, 0, sizeof *p);
    p->backend = backend;
    p->kernel = kernel;
    enum posenc_status status = prepare(p, args, &empty, error);
    if (!status && empty)
        status = reject(error, POSENC_ERR_SHAPE, "out (it has no elements)");
    if (status) {
        free(p);
        return status;
    }
    p->all_inputs = enclosing_span(p->inputs, sizeof p->inputs / sizeof *p->inputs);
    *prepared = p;
    return POSENC_OK;
}

void posenc_prepared_destroy(struct posenc_prepared *prepared) { free(prepared); }

/* ---- Running ---- */

/* Returns true if the output overlaps an input other than x. Most outputs do not even overlap the span that contains
 * all inputs. */
static inline bool overlaps_inputs(const struct posenc_prepared *p, struct span written)
{
    return posenc_spans_overlap(written, p->all_inputs) &&
           (posenc_spans_overlap(written, p->inputs[0]) ||
            posenc_spans_overlap(written, p->inputs[1]) ||
            posenc_spans_overlap(written, p->inputs[2]));
}

/* Returns true if the addresses of x and out pass the fast check. */
static inline bool pass_fast_check(const struct posenc_prepared *p, const void *x,
                                   const void *out)
{
    uintptr_t to = (uintptr_t)out, from = (uintptr_t)x;
    struct span written = { to - p->out.before, to + p->out.after };
    struct span read = { from - p->x.before, from + p->x.after };
    if (to <= p->out.before || written.end <= to || overlaps_inputs(p, written) ||
        ((to | from) & p->alignment_mask) != 0)
        return false;
    if (!p->takes_x)
        return from == 0;
    return from > p->x.before && read.end > from &&
           ((from == to && p->may_be_same) || !posenc_spans_overlap(written, read));
}

/* Runs the original arguments with another x and out, with all checks. */
static enum posenc_status run_with_checks(struct posenc_prepared *p, const void *x, void *out,
                                          struct posenc_error *error)
{
    *p->original_members.x = x;
    *p->original_members.out = out;
    return p->run_public(p, error);
}

/* Rejects positions of another kind than those of the prepared call. */
static enum posenc_status reject_kind(struct posenc_error *error)
{
    return reject(error, POSENC_ERR_ARGUMENT,
                  "kind of the positions (that of the prepared call)");
}

enum posenc_status posenc_run(struct posenc_prepared *prepared, const void *x, void *out,
                              int64_t offset, struct posenc_error *error)
{
    struct posenc_positions *positions = prepared->call_members.positions;
    if (!x && prepared->takes_x)
        x = out;
    if (positions->kind == POSENC_POSITIONS_OFFSET && offset >= prepared->least &&
        offset <= prepared->most && pass_fast_check(prepared, x, out)) {
        *prepared->call_members.x = x;
        *prepared->call_members.out = out;
        positions->offset = offset;
        return prepared->run_kernel(prepared);
    }
    if (positions->kind != POSENC_POSITIONS_OFFSET)
        return reject_kind(error);
    prepared->original_members.positions->offset = offset;
    return run_with_checks(prepared, x, out, error);
}

enum posenc_status posenc_run_at(struct posenc_prepared *prepared, const void *x, void *out,
                                 const void *positions, struct posenc_error *error)
{
    if (prepared->call_members.positions->kind == POSENC_POSITIONS_OFFSET)
        return reject_kind(error);
    prepared->original_members.positions->data = positions;
    return run_with_checks(prepared, !x && prepared->takes_x ? out : x, out, error);
}
