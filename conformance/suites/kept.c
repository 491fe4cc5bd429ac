/*
 * Case "kept-state" of the suite "side-effects": a call gives the bits of its own arguments, although an earlier call
 * had other arguments at the same addresses.
 *
 * A kernel could cache data that it derived from a tensor, from frequencies or from a parameter. If the cache is
 * thread-local or allocated at load time, the watch of static memory does not see it. Such a kernel recognises an
 * argument by its address, its shape or a few elements. So calls alternate between two problems that differ in one
 * thing: one element in each row of a tensor, a parameter, or the frequencies. All tensors lie at the same addresses.
 * The expected bits are those of the same call with memory and frequencies of its own.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"

#include <stdlib.h>
#include <string.h>

/* ---- Buffers at the same addresses ---- */

/* Buffers that all calls of a problem use, in the order in which a call allocates them. */
struct shared_buffers {
    void *at[LAYOUTS];
    size_t bytes[LAYOUTS];
    int n;
};

static void *get_shared(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    struct shared_buffers *buffers = user;
    (void)role;
    if (buffers->n == LAYOUTS)
        return NULL;
    const int i = buffers->n++;
    if (!buffers->at[i]) {
        buffers->at[i] = tensor_allocator_default.get(NULL, bytes, offset_bytes, role);
        buffers->bytes[i] = bytes;
    }
    return bytes <= buffers->bytes[i] ? buffers->at[i] : NULL;
}

/* Keeps memory that a call frees, as free_shared() frees it. */
static void free_none(void *user, void *data) { (void)user, (void)data; }

static void free_shared(struct shared_buffers *buffers)
{
    for (int i = 0; i < LAYOUTS; i++)
        tensor_allocator_default.free(NULL, buffers->at[i]);
}

/* ---- Changes of a problem ---- */

enum { MOST_CHANGES = MOST_TENSORS + MOST_PARAMETERS + 2 };

/* The one difference of a problem from the base problem. */
struct problem_change {
    const struct tensor_spec
        *row; /* tensor whose contents differ; NULL: a field of `problem` differs */
    struct problem problem;
    const char *what; /* for messages */
};

/* Changes one element in the middle of each row. */
static void change_tensor(struct call *call, const struct tensor_spec *row)
{
    const struct posenc_tensor *t = call_argument(call, row);
    const int64_t rows = storage_rows(t), width = t->shape[t->rank - 1];
    for (int64_t r = 0; r < rows && width; r++) {
        const uint64_t z = rng_u64(7, (uint64_t)r);
        const int64_t c = width > 2 ? 1 + (int64_t)(z % (uint64_t)(width - 2)) : 0;
        void *at = storage_row(t, r);
        storage_put(t->dtype, at, c, 0.375f - storage_get(t->dtype, at, c));
    }
}

static void change_floats(struct call *call, const struct tensor_spec *row)
{
    float *data = (float *)(uintptr_t)call_data(call, row);
    const int64_t n = tensor_elements(&call->problem, row);
    data[n / 2] *= 0.75f;
}

/* Exchanges two columns of an index. Thresholds have to rise: one of them is increased. */
static void change_integers(struct call *call, const struct tensor_spec *row)
{
    int32_t *data = (int32_t *)(uintptr_t)call_data(call, row);
    const int64_t n = tensor_elements(&call->problem, row);
    const bool rises = kernel_signature(call->problem.kernel) == SIGNATURE_t5;
    for (int64_t i = n / 2; i + 1 < n; i++) {
        const int32_t here = data[i], next = data[i + 1];
        if (rises ? next - here < 2 : next == here)
            continue;
        data[i] = rises ? here + 1 : next;
        data[i + 1] = rises ? next : here;
        return;
    }
}

/* Gives a token in the middle the position of its neighbour. */
static void change_positions(struct call *call)
{
    const struct posenc_positions *p = call_positions(call);
    const int64_t t = call->problem.tokens / 2, item = p->kind == POSENC_POSITIONS_I64 ? 8 : 4,
                  stride = (p->stride_token ? p->stride_token : 1) * item; /* 0 means 1 */
    char *data = (char *)(uintptr_t)p->data;
    if (t > 0)
        memcpy(data + t * stride, data + (t - 1) * stride, (size_t)item);
}

static void change_apply(struct call *call, const struct problem_change *change)
{
    const struct tensor_spec *row = change->row;
    if (!row)
        return;
    if (row->form == FORM_TENSOR)
        change_tensor(call, row);
    else if (row->form == FORM_FLOATS)
        change_floats(call, row);
    else if (row->form == FORM_INTEGERS)
        change_integers(call, row);
    else
        change_positions(call);
}

static bool is_read(const struct problem *p, const struct tensor_spec *row)
{
    return row->role != ROLE_OUTPUT && tensor_present(p, row) &&
           (row->form != FORM_POSITIONS || p->position_kind != POSENC_POSITIONS_OFFSET);
}

/* Lists changes of parameters that leave the shape as it is. */
static int list_parameters(const struct problem *p, struct problem_change *changes, int n)
{
    static const char *const names[] = { "x_scale",        "scale",     "epsilon",
                                         "causal",         "transpose", "query_offset",
                                         "position_offset" };
    for (size_t i = 0; i < sizeof names / sizeof *names && n < MOST_CHANGES; i++) {
        struct field field;
        if (!kernel_field_find(p->kernel, names[i], &field))
            continue;
        struct problem q = *p;
        const uint64_t bits = field_get(&field, &q, 0);
        if (field.kind == FIELD_F64 || field.kind == FIELD_F32)
            field_set(&field, &q, double_to_bits(bits_to_double(bits) * 1.75));
        else
            field_set(&field, &q, field.kind == FIELD_BOOL ? !bits : bits + 1);
        changes[n++] = (struct problem_change){ .problem = q, .what = names[i] };
    }
    return n;
}

static int list_changes(const struct problem *p, struct problem_change *changes)
{
    int n = 0;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (is_read(p, row))
            changes[n++] =
                (struct problem_change){ .row = row, .problem = *p, .what = row->name };
    n = list_parameters(p, changes, n);
    if (kernel_has_freqs(p->kernel) && n < MOST_CHANGES) {
        changes[n] = (struct problem_change){ .problem = *p, .what = "the frequencies" };
        changes[n++].problem.freqs.rope_theta *= 0.75;
    }
    return n;
}

/* ---- Calls ---- */

struct kept_state_check {
    struct tally *t;
    struct shared_buffers shared;
    const struct posenc_freqs *freqs; /* address of the frequencies of the last call */
};

/* Gives a call new frequencies, at the address of the last ones if the allocator reuses that memory. Returns them, or
 * NULL. */
static struct posenc_freqs *replace_freqs(struct kept_state_check *check, struct call *call)
{
    enum { TRIES = 16 };
    struct posenc_freqs *tries[TRIES], *freqs = NULL;
    int n = 0;
    while (n < TRIES && call->implementation->freqs_create(&call->problem.freqs, &tries[n],
                                                           NULL) == POSENC_OK) {
        freqs = tries[n++];
        if (!check->freqs || freqs == check->freqs)
            break;
    }
    for (int i = 0; i + 1 < n; i++)
        call->implementation->freqs_destroy(tries[i]);
    if (freqs) {
        check->freqs = freqs;
        memcpy((char *)&call->args + signature_of(call->problem.kernel)->freqs, &freqs,
               sizeof freqs);
    }
    return freqs;
}

/* Returns true if the call succeeded. Other suites judge calls that are rejected. */
static bool run_changed(struct tally *t, struct call *call, const struct problem_change *change)
{
    change_apply(call, change);
    const struct guard_result g = guard_run(call, t->run->backend, NULL);
    if (g.crashed)
        require_clean(t, &g);
    return !g.crashed && g.status == POSENC_OK;
}

/* Runs a changed problem in the shared buffers. Requires the outputs of `want`, unless that is NULL. */
static bool run_in_shared_buffers(struct kept_state_check *check,
                                  const struct problem_change *change, const struct call *want)
{
    const struct tensor_allocator memory = { .get = get_shared,
                                             .free = free_none,
                                             .user = &check->shared };
    struct call call;
    check->shared.n = 0;
    if (call_create_by(check->t->run->implementation, &call, &change->problem, &memory) !=
        POSENC_OK)
        return false;
    struct posenc_freqs *freqs =
        kernel_has_freqs(call.problem.kernel) ? replace_freqs(check, &call) : NULL;
    const bool ran = run_changed(check->t, &call, change);
    struct tally scratch = *check->t; /* its message would not name the change */
    if (ran && want)
        require(check->t, require_same_outputs(&scratch, &call, want, ""),
                "not the bits of its own arguments: %s differed in the call before it, at the "
                "same addresses",
                change->what);
    if (freqs)
        call.implementation->freqs_destroy(freqs);
    call_destroy(&call);
    return ran;
}

/* Checks all changes of a problem. The calls with memory of their own exist until the end, so that no address
 * recurs. */
static void check_problem(struct tally *t, struct problem p)
{
    struct problem_change changes[MOST_CHANGES];
    struct call own[MOST_CHANGES] = { { .n_owned = 0 } };
    struct kept_state_check check = { .t = t };
    p.in_place = false;
    const struct problem_change base = { .problem = p };
    const int n = list_changes(&p, changes);
    for (int i = 0; i < n; i++) {
        t->problem = &changes[i].problem;
        if (call_create_by(t->run->implementation, &own[i], t->problem,
                           &tensor_allocator_default) == POSENC_OK &&
            run_changed(t, &own[i], &changes[i]) && run_in_shared_buffers(&check, &base, NULL))
            run_in_shared_buffers(&check, &changes[i], &own[i]);
    }
    t->problem = NULL;
    for (int i = 0; i < n; i++)
        if (own[i].implementation)
            call_destroy(&own[i]);
    free_shared(&check.shared);
}

/* ---- The suite ---- */

void check_kept_state(struct suite_run *run, enum posenc_kernel kernel)
{
    static const size_t bytes[] = { 12 << 10, 300 << 10 };
    const int64_t lanes = backend_vector_lanes(run->backend);
    struct tally t;
    if (!tally_begin(&t, run, kernel, POSENC_DTYPE_F32, "side-effects", NULL, "kept-state"))
        return;
    for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16; dtype++) {
        if (dtype != POSENC_DTYPE_F32 && !run->backend->f16_bf16)
            continue;
        for (int v = 0; v < LENGTH_VARIANTS; v++) {
            if (!run->options->full && v != dtype)
                continue;
            struct problem p = problem_of_length(kernel, lanes + 3, v);
            p.dtype = p.values_dtype = p.table_dtype = (enum posenc_dtype)dtype;
            p.special = false;
            check_problem(&t, p);
        }
        for (int i = 0; i < (run->options->full ? 2 : 0); i++) {
            struct problem p = problem_realistic(kernel, (enum posenc_dtype)dtype, bytes[i]);
            p.table_dtype = (enum posenc_dtype)dtype;
            check_problem(&t, p);
        }
    }
    tally_end(&t);
}
