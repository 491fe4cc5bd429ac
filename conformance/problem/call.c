/*
 * Calls: made from a problem in the caller's kind of memory, run, reset, read, destroyed.
 */
#include "call_parts.h"
#include "reserve.h"

#include <stdlib.h>
#include <string.h>

enum { BOUNDARY = 64 };

/* ---- Memory ---- */

/* What stands at the start of an allocation. */
struct plain {
    size_t reserved; /* bytes; 0: allocated */
};

static void *plain_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    (void)user, (void)role;
    const size_t offset = (size_t)offset_bytes % BOUNDARY, size = BOUNDARY + offset + bytes;
    if (size < bytes || size > SIZE_MAX - BOUNDARY)
        return NULL;
    const size_t all = (size + BOUNDARY - 1) / BOUNDARY * BOUNDARY,
                 large = all < RESERVE_FROM ? 0 : all;
    struct plain *base = large ? reserve(all) : aligned_alloc(BOUNDARY, all);
    if (!base)
        return NULL;
    base->reserved = large;
    return (char *)base + BOUNDARY + offset;
}

/* The first boundary below the data is one boundary after the start of the allocation. */
static void plain_free(void *user, void *data)
{
    (void)user;
    struct plain *base =
        data ? (void *)((char *)data - (uintptr_t)data % BOUNDARY - BOUNDARY) : NULL;
    if (base && base->reserved)
        reserve_end(base, base->reserved);
    else
        free(base);
}

const struct memory memory_plain = { .get = plain_get, .free = plain_free };

const struct subject subject_library = {
#define FUNCTION(name) .name = posenc_##name,
    SUBJECT_BUILDERS(FUNCTION)
#define POSENC_KERNEL(name, ...) FUNCTION(name)
#include <posenc_kernels.def>
#undef FUNCTION
};

struct subject subject_of(const struct posenc_backend *backend)
{
    struct subject subject = subject_library;
    subject.backend = backend;
    return subject;
}

void (*subject_entry(const struct subject *subject, enum posenc_kernel kernel))(void)
{
    switch (kernel) {
#define POSENC_KERNEL(name, ...)                                                               \
    case POSENC_KERNEL_##name:                                                                 \
        return (void (*)(void))subject->name;
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
        break;
    }
    return NULL;
}

void (*backend_entry(const struct posenc_backend *backend, enum posenc_kernel kernel))(void)
{
    switch (kernel) {
#define POSENC_KERNEL(name, ...)                                                               \
    case POSENC_KERNEL_##name:                                                                 \
        return (void (*)(void))backend->name;
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
        break;
    }
    return NULL;
}

bool call_check(struct call *call, enum posenc_status status, const char *what, int64_t value,
                int64_t least, int64_t most)
{
    const bool within =
        least <= value && value <= most; /* then it is not the range that refuses */
    if (status != POSENC_OK)
        call->error =
            (struct posenc_error){ status, what, (double)value, within ? 1.0 : (double)least,
                                   within ? 0.0 : (double)most };
    return status == POSENC_OK;
}

bool call_within(struct call *call, enum posenc_status otherwise, const char *what,
                 int64_t value, int64_t least, int64_t most)
{
    const bool within = least <= value && value <= most;
    return call_check(call, within ? POSENC_OK : otherwise, what, value, least, most);
}

void *call_keep(struct call *call, int64_t n, size_t item)
{
    void *kept = arena_get(&call->kept, (size_t)n * item);
    call_check(call, kept ? POSENC_OK : POSENC_ERR_MEMORY, "memory of a call", n, 1, 0);
    return kept;
}

/* ---- Calls ---- */

static bool check_problem(struct call *call)
{
    const struct problem *p = &call->problem;
    const enum posenc_dtype types[] = { p->dtype, p->table_dtype, p->values };
    const int64_t item = p->dtype != POSENC_F32 || p->table_dtype != POSENC_F32 ? 2 : 4;
    bool good = true;
    for (int i = 0; i < 3 && good; i++)
        good = call_within(call, POSENC_ERR_DTYPE, "a type", (int64_t)types[i], POSENC_F32,
                           POSENC_BF16);
    for (int i = 0; i < LAYOUTS && good; i++)
        good = call_within(call, POSENC_ERR_ARGUMENT, "offset_bytes of a tensor",
                           p->layouts[i].offset_bytes, 0, INT64_MAX);
    const bool whole = p->offset_bytes >= 0 && p->offset_bytes % item == 0;
    return good && call_check(call, whole ? POSENC_OK : POSENC_ERR_ARGUMENT, "offset_bytes",
                              p->offset_bytes, 0, INT64_MAX);
}

enum posenc_status call_create_by(const struct subject *subject, struct call *call,
                                  const struct problem *problem, const struct memory *memory)
{
    *call = (struct call){ .problem = *problem,
                           .subject = subject ? subject : &subject_library,
                           .memory = memory ? *memory : memory_plain };
    if (!check_problem(call) || !make_arguments(call)) {
        const struct posenc_error error = call->error;
        call_destroy(call);
        call->error = error;
        return error.status;
    }
    call_reset(call);
    if (call->memory.seal)
        call->memory.seal(call->memory.user);
    return POSENC_OK;
}

enum posenc_status call_share(const struct call *call, const struct subject *subject,
                              struct call *copy)
{
    const struct signature *s = signature_of(call->problem.kernel);
    *copy = *call;
    copy->subject = subject;
    copy->freqs = NULL;
    return !s->freqs || make_plan(copy, s) ? POSENC_OK : copy->error.status;
}

void call_unshare(struct call *copy)
{
    destroy_plan(copy);
    *copy = (struct call){ 0 };
}

enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct memory *memory)
{
    return call_create_by(NULL, call, problem, memory);
}

static enum posenc_status run_kernel(struct call *call, const struct posenc_backend *backend)
{
    switch (call->problem.kernel) {
#define POSENC_KERNEL(name, signature, ...)                                                    \
    case POSENC_KERNEL_##name:                                                                 \
        call->args.signature.error = &call->error;                                             \
        return call->subject->name(backend, &call->args.signature);
#include "posenc_kernels.def"
    case POSENC_KERNEL_COUNT:
        break;
    }
    return POSENC_ERR_ARGUMENT;
}

enum posenc_status call_run(struct call *call, const struct posenc_backend *backend)
{
    call->error = (struct posenc_error){ 0 };
    enum posenc_status status = run_kernel(call, backend);
    if (!call->error.what) /* a kernel of somebody else may refuse without a word */
        call->error.status = status;
    return status;
}

/* Rows may overlap: only the library rejects that, later. */
static void fill_canary(const struct output *output)
{
    const enum posenc_dtype dtype = output->tensor.dtype;
    for (int64_t r = 0; r < output->rows && output->width; r++) {
        void *first = storage_row(&output->tensor, 0), *row = storage_row(&output->tensor, r);
        for (int64_t c = 0; r == 0 && c < output->width; c++)
            storage_put(dtype, first, c, of_bits(CALL_CANARY));
        if (r > 0)
            memmove(row, first, (size_t)output->width * storage_size(dtype));
    }
}

void call_reset(struct call *call)
{
    const struct problem *p = &call->problem;
    if (p->in_place)
        tensor_scatter(&call->outputs[0].tensor, call->x);
    else if (problem_accumulates(p))
        tensor_scatter(&call->outputs[0].tensor, call->table);
    else
        for (int o = 0; o < call->n_outputs; o++)
            fill_canary(&call->outputs[o]);
}

void call_destroy(struct call *call)
{
    for (int i = 0; i < call->n_owned; i++)
        call->memory.free(call->memory.user, call->owned[i]);
    arena_free(&call->kept);
    destroy_plan(call);
    *call = (struct call){ 0 };
}

const float *call_row(const struct call *call, int o, int64_t r)
{
    const struct output *output = &call->outputs[o];
    const void *row = storage_row(&output->tensor, r);
    if (output->tensor.dtype == POSENC_F32)
        return row;
    float *wide = call->wide[o] + r * output->width;
    for (int64_t c = 0; c < output->width; c++)
        wide[c] = storage_get(output->tensor.dtype, row, c);
    return wide;
}
