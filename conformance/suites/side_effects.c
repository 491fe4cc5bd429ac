/*
 * Suite of forbidden side effects. A case fails if the kernel
 *
 *   allocations        allocates or maps memory
 *   leaks              does not free what it allocated
 *   static-memory      writes a static variable
 *   errno              changes errno
 *   together           gives other results if several threads call it at once
 *   streaming-stores   leaves streaming stores without a fence (full runs)
 *   kept-state         lets one call change the result of the next (kept.c)
 *
 * The suite calls the kernel with several lengths, layouts and dtypes. It runs before all other suites, so that it
 * watches static memory during a kernel's first call. The memory suite checks the floating-point environment.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/problem/cases.h"
#include "conformance/side_effects/side_effects.h"

#include <errno.h>
#include <stdio.h>

enum { REALISTIC_BYTES = 12 << 10, QUICK_PROBLEMS = 3, FULL_PROBLEMS = 60 };

/* Side effects of a single call. Each has a case. */
enum effect { ALLOCATIONS, LEAKS, STATIC_MEMORY, ERRNO, EFFECTS };

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
    static const char *const names[EFFECTS] = { "allocations", "leaks", "static-memory",
                                                "errno" };
    const char *const unavailable[EFFECTS] = { allocations_unavailable_reason(),
                                               allocations_unavailable_reason(),
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
    struct static_memory memory = static_memory_find(backend_entry(&w->backend, w->kernel));
    const int error_before = errno;
    call_reset(call);
    const bool watched = static_memory_watch(&memory);
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
    require(&t[LEAKS], allocated <= freed, "%lu blocks or maps were not given back",
            allocated - freed);
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

/* Checks small and large calls: kernels of this library use streaming stores from 32 MiB of output on. This takes
 * long, so only full runs do it. */
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
        if (calls[i].dtype != POSENC_DTYPE_F32 && !w->run->backend->f16_bf16)
            continue;
        t.problem = &p;
        const enum fence_verdict fence = streaming_find_fence(&t, &p);
        require(&t, fence != FENCE_MISSING,
                "streaming stores without a fence after them: a thread that is handed the "
                "output may read what was there before");
        t.problem = NULL;
        n++;
        n_unknown += fence == FENCE_UNKNOWN;
    }
    if (n > 0 && n_unknown == n)
        tally_skip(&t, "the end of each call has more instructions than are looked at");
    else if (n_unknown > 0 && t.result.status == CONF_PASS)
        snprintf(t.result.reason, sizeof t.result.reason,
                 "skipped: the end of %d of %d calls has more instructions than are looked at",
                 n_unknown, n);
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
