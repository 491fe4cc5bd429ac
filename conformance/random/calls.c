/*
 * Makes a call with changed arguments in several ways, and compares the answers; see calls.h.
 *
 * The front-end checks arguments before any kernel runs. So the first calls use a backend that does nothing, with and
 * without a struct for errors. If all operands lie in memory, the call is repeated by the backend under test, by the
 * backend scalar, and as a prepared call if its kernel allows that.
 */
#define _GNU_SOURCE
#include "calls.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Arguments in memory of their own ---- */

/* The arguments of the current call: as many bytes as they claim, up to a page that faults. */
struct argument_block {
    const char *args;
    size_t bytes;
    struct posenc_error error;  /* filled with a pattern until it is written */
    struct posenc_error *given; /* `error`, or NULL */
};

/* State of the current call. It is static because the functions of kernels have no argument for it. */
static struct argument_block current_block;
static const struct implementation *current_implementation;
static bool current_is_prepared; /* prepares the call, and runs what was prepared */

/* Prepares a call with the current block, and runs it with the same x, out and positions. */
static enum posenc_status prepare_and_run(const struct posenc_backend *backend,
                                          enum posenc_kernel kernel)
{
    const struct argument_block *block = &current_block;
    const struct signature *s = signature_of(kernel);
    const struct posenc_positions *positions = NULL;
    struct posenc_prepared *prepared = NULL;
    union arguments args;
    const void *x = NULL;
    void *out = NULL;
    enum posenc_status status =
        posenc_prepare(backend, kernel, block->args, &prepared, block->given);
    if (status != POSENC_OK)
        return status;
    s->blank(&args);
    memcpy(&args, block->args, block->bytes < s->size ? block->bytes : s->size);
    for (EACH_TENSOR(row, s)) {
        if (row->form == FORM_POSITIONS)
            positions = arguments_get(&args, row);
        else if (row->role == ROLE_OUTPUT)
            out = ((struct posenc_tensor *)arguments_get(&args, row))->data;
        else if (row->role == ROLE_X)
            x = arguments_data(&args, row);
    }
    x = kernel_takes_x(kernel) && x == out ? NULL : x; /* NULL means in place */
    status = positions->kind == POSENC_POSITIONS_OFFSET
                 ? posenc_run(prepared, x, out, positions->offset, block->given)
                 : posenc_run_at(prepared, x, out, positions->data, block->given);
    posenc_prepared_destroy(prepared);
    return status;
}

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    static enum posenc_status enter_##name(const struct posenc_backend *backend,               \
                                           const struct posenc_##signature##_args *args,       \
                                           struct posenc_error *error)                         \
    {                                                                                          \
        (void)args;                                                                            \
        (void)error;                                                                           \
        if (current_is_prepared)                                                               \
            return prepare_and_run(backend, POSENC_KERNEL_##ID);                               \
        return current_implementation->name(backend, (const void *)current_block.args,         \
                                            current_block.given);                              \
    }
#include <posenc_kernels.def>
#undef POSENC_KERNEL

/* An implementation that ignores the arguments of the engine and uses the current block. */
static const struct implementation block_implementation = {
#define POSENC_KERNEL(ID, name, ...) .name = enter_##name,
#include <posenc_kernels.def>
#undef POSENC_KERNEL
};

enum { ERROR_PATTERN = 0x5a, FILLED_PATTERN = 0x40 };

/* Copies the arguments to the end of a page that an inaccessible one follows. Bytes beyond the known struct are 0
 * unless the test fills them. Returns false if out of memory. */
static bool fill_block(const struct call_test *t, bool with_error)
{
    enum { PAGE_BYTES = 1 << 15 };
    static char *page;
    struct argument_block *block = &current_block;
    const size_t known = t->after.signature->size;
    const size_t bytes = t->size <= 8 * known ? t->size : known;
    if (!page) {
        page =
            mmap(NULL, 2 * (size_t)PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED || mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE) != 0)
            return false;
    }
    block->bytes = bytes < sizeof(size_t) ? sizeof(size_t) : bytes;
    char *at = page + PAGE_BYTES - (block->bytes + 7) / 8 * 8;
    memset(at, t->filled ? FILLED_PATTERN : 0, block->bytes);
    memcpy(at, &t->after.args, block->bytes < known ? block->bytes : known);
    memset(&block->error, ERROR_PATTERN, sizeof block->error);
    block->given = with_error ? &block->error : NULL;
    block->args = at;
    return true;
}

struct call_answer {
    struct guard_result result;
    struct posenc_error error;
    bool error_written;
    float *values; /* of all outputs, in the arena of the test; NULL: the call gave none */
    int64_t n;
};

/* Lists the outputs and, if the call may write, their rows. An empty output allows any strides of another one, since
 * then nothing is written. */
static void list_outputs(const struct call_test *t, struct call *call, bool may_write)
{
    call->n_outputs = 0;
    for (EACH_OPERAND(o, &t->after)) {
        if (o->row->role != ROLE_OUTPUT)
            continue;
        const int last = o->rank - 1;
        const bool dense_rows = last >= 0 && (o->stride[last] == 1 || o->shape[last] == 1);
        struct output *out = &call->outputs[call->n_outputs++];
        *out = (struct output){ .name = o->row->name,
                                .tensor = *(const struct posenc_tensor *)facts_argument(
                                    &t->after, o->row) };
        if (!may_write || !dense_rows || !o->backed || !operand_has_elements(o))
            continue;
        out->rows = storage_rows(&out->tensor);
        out->width = out->tensor.shape[out->tensor.rank - 1];
    }
}

static void copy_values(struct call_test *t, struct call_answer *a)
{
    const struct call *call = t->base;
    int64_t i = 0;
    for (int o = 0; o < call->n_outputs; o++)
        a->n += call->outputs[o].rows * call->outputs[o].width;
    a->values = arena_get(&t->values, (size_t)a->n * sizeof *a->values + 1);
    for (int o = 0; o < call->n_outputs && a->values; o++)
        for (int64_t r = 0; r < call->outputs[o].rows; r++) {
            const struct posenc_tensor *tensor = &call->outputs[o].tensor;
            for (int64_t k = 0; k < call->outputs[o].width; k++)
                a->values[i++] = storage_get(tensor->dtype, storage_row(tensor, r), k);
        }
}

enum call_way { PLAIN, PREPARED, WITHOUT_ERROR };

/* Makes the call in guarded memory, also as a prepared call, or without a struct for errors. */
static struct call_answer get_answer(struct call_test *t,
                                     const struct implementation *implementation,
                                     const struct posenc_backend *backend, enum call_way way)
{
    struct call *call = t->base;
    const struct implementation *own = call->implementation;
    struct posenc_error untouched;
    struct call_answer a = { .result.status = POSENC_ERR_MEMORY };
    /* Before any kernel runs, the front-end writes sums of no terms. */
    const bool may_write = backend == &null_backend ? t->after.empty_x && !t->verdict.required
                                                    : t->status == POSENC_OK;
    call_test_restore(t);
    if (!fill_block(t, way != WITHOUT_ERROR))
        return a;
    current_implementation = implementation;
    current_is_prepared = way == PREPARED;
    list_outputs(t, call, may_write);
    call->implementation = &block_implementation;
    a.result = guard_run(call, backend, t->guard);
    call->implementation = own;
    memset(&untouched, ERROR_PATTERN, sizeof untouched);
    a.error = current_block.error;
    a.error_written = memcmp(&a.error, &untouched, sizeof untouched) != 0;
    if (a.result.status == POSENC_OK && !a.result.crashed && backend != &null_backend)
        copy_values(t, &a);
    return a;
}

/* Requires the status and a reason in an error and, if the error has a range, a value outside of it. */
static bool check_error(struct call_test *t, enum posenc_status status,
                        const struct posenc_error *e)
{
    char text[800];
    if (e->status != status || !*e->what)
        return notation_fail(t->message, "rejected with %d, the error says %d", (int)status,
                             (int)e->status);
    posenc_error_text(e, text, sizeof text);
    if (isnan(e->least) || isnan(e->most) ||
        (e->least <= e->most && e->value >= e->least && e->value <= e->most))
        return notation_fail(t->message, "rejected though the accepted range holds it: %s",
                             text);
    return true;
}

/* Requires a status of the verdict or of `allowed`, and no forbidden read or write. */
static bool check_answer(struct call_test *t, const struct call_answer *a, unsigned allowed)
{
    const unsigned required = t->verdict.required;
    const enum posenc_status status = a->result.status;
    if (a->result.crashed || a->result.overwritten || a->result.control_left)
        return notation_fail(t->message, "%s (status %d)", a->result.reason, (int)status);
    if (status == POSENC_OK && required)
        return notation_fail(t->message, "accepted, though one of the statuses %#x was due",
                             required);
    if (status != POSENC_OK && !((required | allowed) >> status & 1u))
        return notation_fail(t->message, "rejected, \"%s\": %s", posenc_status_string(status),
                             a->error_written ? a->error.what : "without a reason");
    if (status == POSENC_OK)
        return !a->error_written ||
               notation_fail(t->message, "accepted, and yet the error was written");
    return check_error(t, status, &a->error);
}

static bool same_error(const struct posenc_error *a, const struct posenc_error *b)
{
    return a->status == b->status && strcmp(a->what, b->what) == 0 &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 &&
           memcmp(&a->least, &b->least, sizeof a->least) == 0 &&
           memcmp(&a->most, &b->most, sizeof a->most) == 0;
}

/* Requires the status, the error and the values of the plain call. `who` gave the answer. */
static bool check_same(struct call_test *t, const struct call_answer *a,
                       const struct call_answer *plain, const char *who)
{
    if (a->result.status != plain->result.status ||
        (a->error_written && plain->error_written && !same_error(&a->error, &plain->error)))
        return notation_fail(t->message, "%s answered %d, the plain call %d", who,
                             (int)a->result.status, (int)plain->result.status);
    const bool comparable = a->values && plain->values && a->n == plain->n;
    for (int64_t i = 0; comparable && i < a->n; i++)
        if (float_to_bits(a->values[i]) != float_to_bits(plain->values[i]) &&
            !(isnan(a->values[i]) && isnan(plain->values[i])))
            return notation_fail(t->message, "element %lld is %.9g, by %s %.9g", (long long)i,
                                 (double)plain->values[i], who, (double)a->values[i]);
    return true;
}

/* ---- Prepared calls ---- */

enum { ANY_STATUS = ~1 }; /* as bits: every status but POSENC_OK */

/* Returns true if posenc.h allows to prepare the call: some kernels of tokens, with one axis of positions. */
static bool can_be_prepared(const struct call_facts *f)
{
    const bool has_axes = f->freqs_spec && f->freqs_spec->mrope_section[1] != 0;
    return !has_axes && (f->kernel == POSENC_KERNEL_SINUSOIDAL ||
                         f->kernel == POSENC_KERNEL_SINUSOIDAL_ADD ||
                         f->kernel == POSENC_KERNEL_LEARNED_ADD ||
                         (kernel_rotates(f->kernel) && !kernel_has_freqs(f->kernel)));
}

/* Requires the same answer of a prepared call and of the plain call. The only exception is a call without elements,
 * which cannot be prepared. */
static bool check_prepared(struct call_test *t, const struct posenc_backend *backend,
                           const struct call_answer *plain)
{
    if (!can_be_prepared(&t->after))
        return true;
    const bool empty = facts_output(&t->after)->empty;
    const struct call_answer a = get_answer(t, t->implementation, backend, PREPARED);
    if (plain->result.status == POSENC_OK && empty)
        return a.result.status == POSENC_ERR_SHAPE ||
               notation_fail(t->message, "prepared a call without elements");
    return check_answer(t, &a, (unsigned)ANY_STATUS) &&
           check_same(t, &a, plain, "a prepared call");
}

/* Requires the same bits of the backend scalar, if the backend is of its family. This library's scalar cannot read the
 * frequencies of another library. */
static bool check_peer(struct call_test *t, const struct call_answer *plain)
{
    const struct posenc_backend *peer = posenc_backend_find("scalar"), *own = t->backend;
    if (!peer || peer == own || strcmp(peer->family, own->family) != 0 ||
        own->allows_contraction || t->implementation->freqs_create != posenc_freqs_create ||
        plain->result.status != POSENC_OK || !posenc_backend_provides(peer, t->after.kernel))
        return true;
    const struct call_answer a = get_answer(t, &implementation_library, peer, PLAIN);
    return check_same(t, &a, plain, peer->name);
}

/* Requires the backend under test to answer like the front-end. A backend for f32 alone may reject 16-bit types. */
static bool check_backend(struct call_test *t, const struct call_answer *front)
{
    const unsigned narrow = t->backend->f16_bf16 ? 0u : STATUS(DTYPE);
    const struct call_answer plain = get_answer(t, t->implementation, t->backend, PLAIN);
    if (!check_answer(t, &plain, t->verdict.allowed | narrow))
        return false;
    if (narrow && plain.result.status == POSENC_ERR_DTYPE)
        return true;
    return check_same(t, &plain, front, t->backend->name) &&
           check_prepared(t, t->backend, &plain) && check_peer(t, &plain);
}

static bool check_answers(struct call_test *t)
{
    const struct posenc_backend *idle = &null_backend;
    if (!call_test_is_readable(t))
        return true;
    const struct call_answer front = get_answer(t, t->implementation, idle, PLAIN),
                             silent = get_answer(t, t->implementation, idle, WITHOUT_ERROR);
    t->status = front.result.status;
    if (!check_answer(t, &front, t->verdict.allowed))
        return false;
    if (silent.error_written || silent.result.crashed ||
        silent.result.status != front.result.status)
        return notation_fail(t->message, "without a place for errors: answered %d, else %d",
                             (int)silent.result.status, (int)front.result.status);
    return call_test_is_backed(t) ? check_backend(t, &front) : check_prepared(t, idle, &front);
}

bool call_test_run(struct call_test *t)
{
    struct call *base = t->base;
    const enum posenc_kernel kernel = base->problem.kernel;
    const struct signature *s = signature_of(kernel);
    const struct output outputs[] = { base->outputs[0], base->outputs[1] };
    const int n_outputs = base->n_outputs;
    t->before = (struct call_facts){ .kernel = kernel,
                                     .signature = s,
                                     .args = base->args,
                                     .problem = base->problem,
                                     .freqs_spec = s->freqs ? &base->problem.freqs : NULL };
    facts_derive(&t->before);
    for (EACH_OPERAND(o, &t->before)) {
        const bool in_place = base->problem.in_place && o->row->role == ROLE_X;
        t->places[o - t->before.operands].row =
            (int)((in_place ? facts_output(&t->before) : o) - t->before.operands);
    }
    changes_make(t);
    call_test_place(t, t->seed >> 63 ? GUARD_START : GUARD_END);
    t->verdict = rules_judge(&t->after, t->size, t->filled);
    const bool right = check_answers(t);
    call_test_release(t);
    memcpy(base->outputs, outputs, sizeof outputs);
    base->n_outputs = n_outputs;
    return right;
}
