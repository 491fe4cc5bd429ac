/*
 * Calls: made from a problem in the caller's kind of memory, run, reset, read, destroyed.
 */
#include "call_parts.h"
#include "plans.h"

#include <stdlib.h>
#include <string.h>

/* owned[0..7] came from struct memory, the rest from malloc. */
enum { BOUNDARY = 64, OWNED_MEMORY = 8, OWNED = 24 };

/* ---- Memory ---- */

static void *plain_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    (void)user, (void)role;
    size_t offset = (size_t)offset_bytes % BOUNDARY;
    size_t size = BOUNDARY + offset + bytes;
    if (size < bytes)
        return NULL;
    char *base = aligned_alloc(BOUNDARY, (size + BOUNDARY - 1) / BOUNDARY * BOUNDARY);
    return base ? base + BOUNDARY + offset : NULL;
}

/* The first boundary below the data is one boundary after the start of the allocation. */
static void plain_free(void *user, void *data)
{
    (void)user;
    if (data)
        free((char *)data - (uintptr_t)data % BOUNDARY - BOUNDARY);
}

const struct memory memory_plain = { .get = plain_get, .free = plain_free };

static void *own(struct call *call, int from, int to, void *data)
{
    for (int i = from; i < to && data; i++)
        if (!call->owned[i])
            return call->owned[i] = data;
    return NULL;
}

void *call_memory(struct call *call, int64_t n, size_t item, int64_t offset_bytes, char role)
{
    int64_t size = (int64_t)item, offset = offset_bytes / size * size;
    void *data = call->memory.get(call->memory.user, (size_t)n * item, offset, role);
    return own(call, 0, OWNED_MEMORY, data);
}

void *call_keep(struct call *call, size_t bytes)
{
    return own(call, OWNED_MEMORY, OWNED, malloc(bytes ? bytes : 1));
}

float *call_keep_floats(struct call *call, int64_t n)
{
    return call_keep(call, (size_t)n * sizeof(float));
}

enum posenc_status call_refuse(struct call *call, enum posenc_status status, const char *what,
                               int64_t value, int64_t least, int64_t most)
{
    call->error =
        (struct posenc_error){ status, what, (double)value, (double)least, (double)most };
    return status;
}

const struct subject *call_subject(const struct call *call)
{
    return call->subject ? call->subject : &subject_library;
}

/* ---- Calls ---- */

static enum posenc_status check_problem(struct call *call)
{
    const struct problem *p = &call->problem;
    const enum posenc_dtype types[] = { p->dtype, p->table_dtype, p->values };
    for (int i = 0; i < 3; i++)
        if ((unsigned)types[i] > POSENC_BF16)
            return call_refuse(call, POSENC_ERR_DTYPE, "a type", (int64_t)types[i], POSENC_F32,
                               POSENC_BF16);
    bool halves = p->dtype != POSENC_F32 || p->table_dtype != POSENC_F32;
    for (int i = 0; i < LAYOUTS; i++)
        if (p->layouts[i].offset_bytes < 0)
            return call_refuse(call, POSENC_ERR_ARGUMENT, "offset_bytes of a tensor",
                               p->layouts[i].offset_bytes, 0, INT64_MAX);
    if (p->offset_bytes < 0 || p->offset_bytes % (halves ? 2 : 4))
        return call_refuse(call, POSENC_ERR_ARGUMENT, "offset_bytes", p->offset_bytes, 0,
                           INT64_MAX);
    return POSENC_OK;
}

enum posenc_status call_create_by(const struct subject *subject, struct call *call,
                                  const struct problem *problem, const struct memory *memory)
{
    *call = (struct call){ .problem = *problem,
                           .subject = subject,
                           .memory = memory ? *memory : memory_plain };
    enum posenc_status status = check_problem(call);
    if (status == POSENC_OK)
        status = make_arguments(call);
    if (status != POSENC_OK) {
        struct posenc_error error = call->error;
        error.status = status;
        call_destroy(call);
        call->error = error;
        return status;
    }
    call_reset(call);
    if (call->memory.seal)
        call->memory.seal(call->memory.user);
    return POSENC_OK;
}

enum posenc_status call_create(struct call *call, const struct problem *problem,
                               const struct memory *memory)
{
    return call_create_by(NULL, call, problem, memory);
}

enum posenc_status call_run(struct call *call, const struct posenc_backend *backend)
{
    call->error = (struct posenc_error){ 0 };
    switch (call->problem.kernel) {
#define POSENC_KERNEL(name, signature, ...)                                                    \
    case POSENC_KERNEL_##name:                                                                 \
        call->args.signature.error = &call->error;                                             \
        return call_subject(call)->name(backend, &call->args.signature);
#include "posenc_kernels.def"
    case POSENC_KERNEL_COUNT:
        break;
    }
    return POSENC_ERR_ARGUMENT;
}

static void fill_canary(const struct output *output)
{
    const enum posenc_dtype dtype = output->tensor.dtype;
    const uint32_t wide = CALL_CANARY;
    const uint16_t narrow = dtype == POSENC_F16 ? CALL_CANARY_F16 : CALL_CANARY_BF16;
    for (int64_t r = 0; r < output->rows && output->width; r++) {
        char *row = storage_row(&output->tensor, r);
        for (int64_t c = 0; dtype == POSENC_F32 && c < output->width; c++)
            memcpy(row + c * (int64_t)sizeof wide, &wide, sizeof wide);
        for (int64_t c = 0; dtype != POSENC_F32 && c < output->width; c++)
            memcpy(row + c * (int64_t)sizeof narrow, &narrow, sizeof narrow);
    }
}

void call_reset(struct call *call)
{
    const struct problem *p = &call->problem;
    if (p->in_place && kernel_in_place(p->kernel))
        tensor_scatter(&call->outputs[0].tensor, call->x);
    else if (problem_accumulates(p))
        tensor_scatter(&call->outputs[0].tensor, call->table);
    else
        for (int o = 0; o < call->n_outputs; o++)
            fill_canary(&call->outputs[o]);
}

void call_destroy(struct call *call)
{
    for (int i = 0; i < OWNED; i++) {
        if (!call->owned[i])
            continue;
        if (i < OWNED_MEMORY)
            call->memory.free(call->memory.user, call->owned[i]);
        else
            free(call->owned[i]);
    }
    plan_give_back(call->freqs);
    *call = (struct call){ 0 };
}

const float *call_row(const struct call *call, int o, int64_t r)
{
    const struct output *output = &call->outputs[o];
    const enum posenc_dtype dtype = output->tensor.dtype;
    const uint16_t canary = dtype == POSENC_F16 ? CALL_CANARY_F16 : CALL_CANARY_BF16;
    const uint32_t shown = CALL_CANARY;
    const void *row = storage_row(&output->tensor, r);
    if (dtype == POSENC_F32)
        return row;
    float *wide = call->wide[o] + r * output->width;
    for (int64_t c = 0; c < output->width; c++) {
        const uint16_t bits = ((const uint16_t *)row)[c];
        wide[c] = storage_widen(dtype, bits);
        if (bits == canary)
            memcpy(wide + c, &shown, sizeof shown);
    }
    return wide;
}
