/*
 * Suite of forbidden side effects. A case fails if the kernel
 *
 *   allocations        allocates, maps or frees memory
 *   static-memory      writes a static variable
 *   errno              changes errno
 *   together           gives other results if several threads call it at once
 *   streaming-stores   leaves streaming stores without a fence (full runs)
 *   kept-state         lets one call change the result of the next
 *
 * The suite calls the kernel with several lengths, layouts and dtypes. It runs before all other suites, so that it
 * watches static memory during a kernel's first call. The memory suite checks the floating-point environment.
 */
#include "suites.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"
#include "conformance/side_effects/side_effects.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { REALISTIC_BYTES = 12 << 10, QUICK_PROBLEMS = 3, FULL_PROBLEMS = 60 };

/* Side effects of a single call. Each has a case. */
enum effect { ALLOCATIONS, STATIC_MEMORY, ERRNO, EFFECTS };

struct watch {
    struct suite_run *run;
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;       /* in the ids of cases */
    struct posenc_backend backend; /* a copy, which no earlier call has used */
    struct tally tally[EFFECTS];
    bool any_selected;
};

/* ---- One thread ---- */

/* Begins the cases. Skips effects that this build or machine cannot observe. */
static void watch_begin(struct watch *w)
{
    static const char *const names[EFFECTS] = { "allocations", "static-memory", "errno" };
    const char *const unavailable[EFFECTS] = { allocations_unavailable_reason(),
                                               static_memory_unavailable_reason(), NULL };
    w->backend = backend_copy(w->run->backend);
    guard_install(); /* allocates, and so must not run during a watch */
    for (int e = 0; e < EFFECTS; e++) {
        if (!tally_begin(&w->tally[e], w->run, w->kernel, w->dtype, "side-effects", NULL, "%s",
                         names[e]))
            continue;
        if (unavailable[e])
            tally_skip(&w->tally[e], unavailable[e]);
        w->any_selected = true;
    }
}

static void watch_end(struct watch *w)
{
    for (int e = 0; e < EFFECTS; e++) {
        struct tally *t = &w->tally[e];
        if (t->selected && !t->skipped && !t->result.checked)
            tally_skip(t, "no call of this problem could be made");
        tally_end(t);
    }
}

/* Runs a call and requires it to be free of side effects. Effects that cannot be observed here count as absent.
 * Returns false if the call failed, which other suites report. */
static bool watch_call(struct watch *w, struct call *call)
{
    enum { ERRNO_BEFORE = 0x7057 }; /* a value that the C library never sets */
    struct tally *t = w->tally;
    struct static_memory memory;
    const int error_before = errno;
    call_reset(call);
    const bool watched = static_memory_watch(&memory, backend_entry(&w->backend, w->kernel));
    const struct allocation_counts before = allocation_counts_now();
    errno = ERRNO_BEFORE;
    const struct guard_result g = guard_run(call, &w->backend, NULL);
    const int error = errno;
    const struct allocation_counts after = allocation_counts_now();
    errno = error_before;
    static_memory_unwatch(&memory);
    if (g.crashed || g.status != POSENC_OK)
        return false;
    const unsigned long allocated = after.allocated - before.allocated,
                        freed = after.freed - before.freed;
    require(&t[ALLOCATIONS], !allocated && !freed,
            "%lu blocks or maps made and %lu freed in one call", allocated, freed);
    require(&t[STATIC_MEMORY], watched || static_memory_unavailable_reason(),
            "static memory could not be protected");
    require(&t[STATIC_MEMORY], !memory.first_write[0], "%s", memory.first_write);
    require(&t[ERRNO], error == ERRNO_BEFORE, "errno was set to %d", error);
    return true;
}

/* Watches two calls of a problem, as the second may take another path. */
static void watch_problem(struct watch *w, const struct problem *p)
{
    struct call call;
    if (call_create_by(w->run->implementation, &call, p, &tensor_allocator_default) !=
        POSENC_OK)
        return;
    for (int e = 0; e < EFFECTS; e++)
        w->tally[e].problem = p;
    if (watch_call(w, &call))
        watch_call(w, &call);
    for (int e = 0; e < EFFECTS; e++)
        w->tally[e].problem = NULL;
    call_destroy(&call);
}

static void watch_dtype(struct watch *w, enum posenc_dtype dtype)
{
    const uint64_t n_random = w->run->options->full ? FULL_PROBLEMS : QUICK_PROBLEMS;
    const int64_t lanes = backend_vector_lanes(w->run->backend);
    struct problem p = problem_realistic(w->kernel, dtype, REALISTIC_BYTES);
    watch_problem(w, &p);
    for (int v = 0; v < LENGTH_VARIANTS; v++) {
        p = problem_of_length(w->kernel, v % 2 ? 3 * lanes + 3 : lanes - 1, v);
        p.dtype = p.values_dtype = dtype;
        watch_problem(w, &p);
    }
    for (uint64_t seed = 0; seed < n_random; seed++) {
        int64_t positions[MOST_RANDOM_TOKENS];
        p = problem_random(w->kernel, seed, positions);
        p.dtype = dtype;
        watch_problem(w, &p);
    }
}

/* ---- Threads and streaming stores ---- */

static void check_threads(const struct watch *w, const struct problem *p)
{
    struct tally t;
    if (!tally_begin(&t, w->run, w->kernel, w->dtype, "side-effects", NULL, "together"))
        return;
    t.problem = p;
    threads_require_same_outputs(&t, p);
    tally_end(&t);
}

/* Checks small and large calls: kernels of this library use streaming stores from 32 MiB of output on, in f32. Single
 * steps take long, so only full runs do it, and only exhaustive runs in 16 bits. */
static void check_streaming(const struct watch *w)
{
    static const struct {
        enum posenc_dtype dtype;
        size_t bytes;
    } calls[] = { { POSENC_DTYPE_F32, 12 << 10 },
                  { POSENC_DTYPE_F16, 300 << 10 },
                  { POSENC_DTYPE_BF16, 300 << 10 },
                  { POSENC_DTYPE_F32, 72 << 20 } };
    struct tally t;
    int n = 0, n_unknown = 0;
    if (!tally_begin(&t, w->run, w->kernel, w->dtype, "side-effects", NULL, "streaming-stores"))
        return;
    if (streaming_unavailable_reason())
        tally_skip(&t, streaming_unavailable_reason());
    for (size_t i = 0; i < sizeof calls / sizeof *calls && !t.skipped; i++) {
        const struct problem p = problem_realistic(w->kernel, calls[i].dtype, calls[i].bytes);
        if (calls[i].dtype != POSENC_DTYPE_F32 &&
            !(w->run->options->exhaustive && w->run->backend->f16_bf16))
            continue;
        t.problem = &p;
        n_unknown += !streaming_require_fence(&t, &p);
        t.problem = NULL;
        n++;
    }
    if (n > 0 && n_unknown == n)
        tally_skip(&t, "the end of each call has more instructions than are looked at");
    else if (n_unknown > 0 && t.result.status == CONF_PASS)
        snprintf(t.result.reason, sizeof t.result.reason,
                 "skipped: the end of %d of %d calls has more instructions than are looked at",
                 n_unknown, n);
    tally_end(&t);
}

/* ---- State that a call leaves for the next ---- */

/* Case "kept-state": a call gives the bits of its own arguments, although an earlier call had other arguments at the same
 * addresses. A kernel could cache data that it derived from a tensor, from frequencies or from a parameter. If the cache
 * is thread-local or allocated at load time, the watch of static memory does not see it. Such a kernel recognises an
 * argument by its address, its shape or a few elements. So two calls differ in one thing: one element in each row of a
 * tensor, a parameter, or the frequencies. The expected bits are those of another call with memory of its own. */

/* A change of a call: of a tensor, or of a parameter that leaves the shape as it is. */
struct call_change {
    const struct tensor_spec *row; /* NULL: a parameter changes */
    const struct parameter *parameter;
};

/* Changes one element in the middle of each row. */
static void change_rows(struct call *call, const struct tensor_spec *row)
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

/* Gives an element in the middle of integers or positions the value of the one before it, which keeps thresholds in order
 * and indices in range. */
static void change_array(struct call *call, const struct tensor_spec *row)
{
    char *data = (char *)(uintptr_t)call_data(call, row);
    int64_t n = tensor_elements(&call->problem, row), stride = 4;
    size_t size = 4;
    if (row->form == FORM_POSITIONS) {
        const struct posenc_positions *p = call_positions(call);
        n = call->problem.tokens;
        size = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
        stride = (int64_t)size * (p->stride_token ? p->stride_token : 1); /* 0 means 1 */
    }
    for (int64_t i = n / 2; 0 < i && i < n; i++) {
        char *at = data + i * stride;
        if (memcmp(at, at - stride, size) != 0) {
            memcpy(at, at - stride, size);
            return;
        }
    }
}

static bool may_change(const struct parameter *parameter)
{
    return parameter->kind == FIELD_F32 || parameter->kind == FIELD_F64 ||
           parameter->from == MEMBER(causal) || parameter->from == MEMBER(transpose);
}

/* Returns the name of the problem's field. */
static const char *parameter_name(enum posenc_kernel kernel, const struct parameter *parameter)
{
    struct field field;
    for (int i = 0; kernel_field(kernel, i, &field); i++)
        if (!field.tensor && field.offset == parameter->from)
            return field.name;
    return "a parameter";
}

static void change_parameter(struct call *call, const struct parameter *parameter)
{
    char *at = (char *)&call->args + parameter->to;
    if (parameter->kind == FIELD_F32)
        *(float *)at *= 1.75f;
    else if (parameter->kind == FIELD_F64)
        *(double *)at *= 1.75;
    else
        *(bool *)at = !*(bool *)at;
}

static void change_call(struct call *call, const struct call_change *change)
{
    if (!change->row)
        change_parameter(call, change->parameter);
    else if (change->row->form == FORM_TENSOR)
        change_rows(call, change->row);
    else if (change->row->form == FORM_FLOATS)
        change_floats(call, change->row);
    else
        change_array(call, change->row);
}

static bool run_clean(struct tally *t, struct call *call)
{
    call_reset(call);
    const struct guard_result g = guard_run(call, t->run->backend, NULL);
    return require_clean(t, &g);
}

/* Requires the outputs of `want`. */
static void require_own_bits(struct tally *t, const struct call *got, const struct call *want,
                             const char *what)
{
    struct tally scratch = *t; /* its message would not name the change */
    require(t, require_same_outputs(&scratch, got, want, ""),
            "not the bits of its own arguments: %s differed in the call before it, at the same "
            "addresses",
            what);
}

static void check_change(struct tally *t, const struct problem *p,
                         const struct call_change *change, const char *what)
{
    struct call *call = tally_create_call(t, t->run->implementation, p),
                *own = tally_create_call(t, t->run->implementation, p);
    if (own)
        change_call(own, change);
    if (call && own && run_clean(t, own) && run_clean(t, call)) {
        change_call(call, change);
        if (run_clean(t, call))
            require_own_bits(t, call, own, what);
    }
    tally_free_calls(t);
}

/* Frequencies that are made after others were destroyed probably get the same memory. */
static void check_frequencies(struct tally *t, const struct problem *p)
{
    struct problem changed = *p;
    changed.freqs.rope_theta *= 0.75;
    struct call *call = tally_create_call(t, t->run->implementation, p),
                *own = tally_create_call(t, t->run->implementation, &changed);
    struct posenc_freqs *freqs = NULL;
    bool ran = call && own && run_clean(t, own);
    for (int i = 0; ran && i < 2; i++) {
        call->implementation->freqs_destroy(freqs);
        freqs = NULL;
        ran = require(t,
                      call->implementation->freqs_create(i ? &changed.freqs : &p->freqs, &freqs,
                                                         NULL) == POSENC_OK,
                      "no frequencies");
        memcpy((char *)&call->args + signature_of(p->kernel)->freqs, &freqs, sizeof freqs);
        ran = ran && run_clean(t, call);
    }
    if (ran)
        require_own_bits(t, call, own, "the frequencies");
    if (call)
        call->implementation->freqs_destroy(freqs);
    tally_free_calls(t);
}

static void check_changes(struct tally *t, struct problem p)
{
    p.in_place = false;
    for (EACH_TENSOR(row, signature_of(p.kernel)))
        if (row->role != ROLE_OUTPUT && tensor_present(&p, row) &&
            (row->form != FORM_POSITIONS || p.position_kind != POSENC_POSITIONS_OFFSET))
            check_change(t, &p, &(struct call_change){ .row = row }, row->name);
    for (EACH_PARAMETER(parameter, signature_of(p.kernel)))
        if (may_change(parameter))
            check_change(t, &p, &(struct call_change){ .parameter = parameter },
                         parameter_name(p.kernel, parameter));
    if (kernel_has_freqs(p.kernel))
        check_frequencies(t, &p);
}

static void check_kept_state(struct suite_run *run, enum posenc_kernel kernel)
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
            check_changes(&t, p);
        }
        for (int i = 0; i < (run->options->full ? 2 : 0); i++) {
            struct problem p = problem_realistic(kernel, (enum posenc_dtype)dtype, bytes[i]);
            p.table_dtype = (enum posenc_dtype)dtype;
            check_changes(&t, p);
        }
    }
    tally_end(&t);
}

/* ---- The suite ---- */

void side_effects_sweep(struct suite_run *run, const struct problem *problem)
{
    struct watch w = { .run = run, .kernel = problem->kernel, .dtype = problem->dtype };
    watch_begin(&w);
    if (w.any_selected)
        watch_problem(&w, problem);
    check_threads(&w, problem);
    watch_end(&w);
}

void suite_side_effects(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct problem p = problem_realistic(kernel, POSENC_DTYPE_F32, REALISTIC_BYTES);
    struct watch w = { .run = run, .kernel = kernel, .dtype = POSENC_DTYPE_F32 };
    watch_begin(&w);
    for (int dtype = POSENC_DTYPE_F32; w.any_selected && dtype <= POSENC_DTYPE_BF16; dtype++)
        if (dtype == POSENC_DTYPE_F32 || run->backend->f16_bf16)
            watch_dtype(&w, (enum posenc_dtype)dtype);
    check_threads(&w, &p);
    if (run->options->full)
        check_streaming(&w);
    watch_end(&w);
    check_kept_state(run, kernel);
}
