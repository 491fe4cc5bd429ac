/*
 * Side effects that a kernel may not have, one result per kernel and side effect:
 *
 *   allocations, leaks   allocates or maps memory; does not give it back
 *   static-memory        writes a static variable of its own
 *   errno                changes errno
 *   together             calls of several threads disturb each other, each stopped in its middle
 *   streaming-stores     leaves streaming stores without a fence (full runs)
 *   kept-state           keeps something from one call to the next (kept.c)
 *
 * Calls are made of problems of several lengths, layouts and types. The suite runs before all
 * others, so static memory is watched in a kernel's first call, too. The memory suite looks at the
 * floating-point environment.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/problem/cases.h"
#include "conformance/side_effects/side_effects.h"

#include <errno.h>
#include <stdio.h>

enum { REALISTIC_BYTES = 12 << 10, QUICK_RANDOM = 3, FULL_RANDOM = 60 };

/* Effects that are watched in each call, with a result each. */
enum effect { ALLOCATIONS, LEAKS, STATICS, ERRNO, EFFECTS };

struct watch {
    struct suite_run *run;
    enum posenc_kernel kernel;
    enum posenc_dtype dtype;       /* in the ids of cases */
    struct posenc_backend backend; /* a copy, so that each first call is one */
    struct tally tally[EFFECTS];
    bool any_selected;
};

/* ---- One thread ---- */

/* Begins the results. An effect that cannot be seen in this build, or on this machine, is skipped. */
static void watch_begin(struct watch *w)
{
    static const char *const names[EFFECTS] = { "allocations", "leaks", "static-memory",
                                                "errno" };
    const char *const unseen[EFFECTS] = { allocations_unavailable_reason(),
                                          allocations_unavailable_reason(),
                                          statics_unavailable_reason(), NULL };
    w->backend = backend_copy(w->run->backend);
    guard_install(); /* before calls are watched, as it allocates */
    for (int e = 0; e < EFFECTS; e++) {
        if (!tally_begin(&w->tally[e], w->run, w->kernel, w->dtype, "side-effects", NULL, "%s",
                         names[e]))
            continue;
        if (unseen[e])
            tally_skip(&w->tally[e], unseen[e]);
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

/* Makes a call and requires it to be free of effects. An effect that cannot be seen never occurs.
 * Returns false if the call did not go through, which other suites judge. */
static bool watch_call(struct watch *w, struct call *call)
{
    enum { NO_ERROR = 0x7057 }; /* a number that no call of the C library gives */
    struct tally *t = w->tally;
    struct statics statics = statics_find(backend_entry(&w->backend, w->kernel));
    const int error_before = errno;
    call_reset(call);
    const bool watched = statics_watch(&statics);
    const struct allocations before = allocations_now();
    errno = NO_ERROR;
    const struct guard_result g = guard_run(call, &w->backend, NULL);
    const int error = errno;
    const struct allocations after = allocations_now();
    errno = error_before;
    statics_unwatch(&statics);
    if (g.crashed || g.status != POSENC_OK)
        return false;
    const unsigned long made = after.made - before.made, freed = after.freed - before.freed;
    require(&t[ALLOCATIONS], !made && !freed,
            "%lu blocks or maps made and %lu freed in one call", made, freed);
    require(&t[LEAKS], made <= freed, "%lu blocks or maps were not given back", made - freed);
    require(&t[STATICS], watched || statics_unavailable_reason(),
            "static memory could not be protected");
    require(&t[STATICS], !statics.first_write[0], "%s", statics.first_write);
    require(&t[ERRNO], error == NO_ERROR, "errno was set to %d", error);
    return true;
}

/* Watches the first call of a problem, and the second. */
static void watch_problem(struct watch *w, const struct problem *p)
{
    struct call call;
    if (call_create_by(w->run->implementation, &call, p, &memory_default) != POSENC_OK)
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
    const uint64_t n_random = w->run->options->full ? FULL_RANDOM : QUICK_RANDOM;
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

/* ---- Threads, streaming stores ---- */

static void check_threads(const struct watch *w, const struct problem *p)
{
    struct tally t;
    if (!tally_begin(&t, w->run, w->kernel, w->dtype, "side-effects", NULL, "together"))
        return;
    t.problem = p;
    threads_check(&t, p);
    tally_end(&t);
}

/* Checks large calls, too, since kernels of this library make streaming stores from 32 MiB of output
 * on. Only full runs have the time for them. */
static void check_streaming(const struct watch *w)
{
    static const struct {
        enum posenc_dtype dtype;
        size_t bytes;
    } calls[] = { { POSENC_F32, 12 << 10 },
                  { POSENC_F16, 300 << 10 },
                  { POSENC_BF16, 300 << 10 },
                  { POSENC_F32, 72 << 20 } };
    struct tally t;
    int n = 0, too_long = 0;
    if (!tally_begin(&t, w->run, w->kernel, w->dtype, "side-effects", NULL, "streaming-stores"))
        return;
    if (streaming_unavailable_reason())
        tally_skip(&t, streaming_unavailable_reason());
    for (size_t i = 0; i < sizeof calls / sizeof *calls && !t.skipped; i++) {
        const struct problem p = problem_realistic(w->kernel, calls[i].dtype, calls[i].bytes);
        if (calls[i].dtype != POSENC_F32 && !w->run->backend->f16_bf16)
            continue;
        t.problem = &p;
        const enum streaming streaming = streaming_check(&t, &p);
        require(&t, streaming != STREAMING_UNFENCED,
                "streaming stores without a fence after them: a thread that is handed the "
                "output may read what was there before");
        t.problem = NULL;
        n++;
        too_long += streaming == STREAMING_TOO_LONG;
    }
    if (n > 0 && too_long == n)
        tally_skip(&t, "the end of each call has more instructions than are looked at");
    else if (too_long > 0 && t.result.status == CONF_PASS)
        snprintf(t.result.reason, sizeof t.result.reason,
                 "skipped: the end of %d of %d calls has more instructions than are looked at",
                 too_long, n);
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
    const struct problem p = problem_realistic(kernel, POSENC_F32, REALISTIC_BYTES);
    struct watch w = { .run = run, .kernel = kernel, .dtype = POSENC_F32 };
    watch_begin(&w);
    for (int dtype = POSENC_F32; w.any_selected && dtype <= POSENC_BF16; dtype++)
        if (dtype == POSENC_F32 || run->backend->f16_bf16)
            watch_dtype(&w, (enum posenc_dtype)dtype);
    check_threads(&w, &p);
    if (run->options->full)
        check_streaming(&w);
    watch_end(&w);
    check_kept_state(run, kernel);
}
