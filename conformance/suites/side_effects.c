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
 * Calls are made of problems of several lengths, layouts and types.  The suite is the first to
 * run, so static memory is watched in a kernel's first call, too.  The memory suite looks at the
 * floating-point environment.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/cases.h"
#include "conformance/side_effects/side_effects.h"

#include <errno.h>
#include <stdio.h>

enum { REALISTIC_BYTES = 12 << 10 };

enum effect { ALLOCATIONS, LEAKS, STATICS, ERRNO, EFFECTS };
static const char *const names[EFFECTS] = { "allocations", "leaks", "static-memory", "errno" };

struct watch {
    struct suite_run *run;
    enum posenc_kernel kernel;
    enum posenc_dtype dtype; /* in the ids of cases */
    struct posenc_backend backend;
    struct tally tally[EFFECTS];
    bool any;
};

/* Returns why an effect cannot be seen in this build, or on this machine; NULL: it can. */
static const char *effect_unseen(enum effect effect)
{
    return effect == STATICS                          ? statics_unseen()
           : effect == ALLOCATIONS || effect == LEAKS ? allocations_unseen()
                                                      : NULL;
}

static void watch_begin(struct watch *w)
{
    w->backend = backend_copy(w->run->backend);
    guard_install(); /* before calls are watched: it allocates */
    for (int e = 0; e < EFFECTS; e++) {
        struct tally *t = &w->tally[e];
        const char *unseen = effect_unseen((enum effect)e);
        if (!tally_begin(t, w->run, w->kernel, w->dtype, "side-effects", NULL, "%s", names[e]))
            continue;
        if (unseen)
            tally_skip(t, unseen);
        w->any = true;
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

/* ---- Threads ---- */

static void check_threads(struct watch *w, const struct problem *p)
{
    struct tally t;
    struct together together;
    if (!tally_begin(&t, w->run, w->kernel, w->dtype, "side-effects", NULL, "together"))
        return;
    t.problem = p;
    together_run(w->run->implementation, p, &together);
    if (together.nothing && !together.text[0]) {
        tally_skip(&t, together.nothing);
    } else {
        if (!require(&t, !together.text[0], "%s", together.text) && together.crashed)
            t.result.status = CONF_CRASH;
        require(&t, together.stops, "no call was stopped in its middle");
    }
    tally_end(&t);
}

/* Checks large calls, too: kernels of this library make streaming stores from 32 MiB of output on.
 * Only full runs have the time for them. */
static void check_streaming(struct watch *w)
{
    static const struct {
        enum posenc_dtype dtype;
        size_t bytes;
    } calls[] = { { POSENC_F32, 12 << 10 },
                  { POSENC_F16, 300 << 10 },
                  { POSENC_BF16, 300 << 10 },
                  { POSENC_F32, 72 << 20 } };
    const char *unseen = streaming_unseen();
    struct tally t;
    int seen_calls = 0, long_calls = 0;
    if (!tally_begin(&t, w->run, w->kernel, w->dtype, "side-effects", NULL, "streaming-stores"))
        return;
    if (unseen)
        tally_skip(&t, unseen);
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls) && !t.skipped; i++) {
        const enum posenc_dtype dtype = calls[i].dtype;
        const struct problem p = problem_realistic(w->kernel, dtype, calls[i].bytes);
        struct streaming seen;
        if (dtype != POSENC_F32 && !w->run->backend->f16_bf16)
            continue;
        t.problem = &p;
        streaming_run(w->run->implementation, &p, &seen);
        if (!require(&t, !seen.text[0], "%s", seen.text) && seen.crashed)
            t.result.status = CONF_CRASH;
        require(&t, seen.too_long || !seen.unfenced,
                "streaming stores without a fence after them: a thread that is handed the "
                "output may read what was there before");
        t.problem = NULL;
        seen_calls++;
        long_calls += seen.too_long;
    }
    if (seen_calls > 0 && long_calls == seen_calls)
        tally_skip(&t, "the end of each call has more instructions than are looked at");
    else if (long_calls > 0 && t.result.status == CONF_PASS)
        snprintf(t.result.reason, sizeof t.result.reason,
                 "skipped: the end of %d of %d calls has more instructions than are looked at",
                 long_calls, seen_calls);
    tally_end(&t);
}

/* ---- One thread ---- */

/* Calls require(), unless the effect cannot be seen. */
#define JUDGE(w, effect, ...)                                                                  \
    do {                                                                                       \
        if (!(w)->tally[effect].skipped)                                                       \
            require(&(w)->tally[effect], __VA_ARGS__);                                         \
    } while (0)

/* Returns false if the call did not go through, which other suites judge. */
static bool watch_call(struct watch *w, struct call *call)
{
    enum { NO_ERROR = 0x7057 }; /* a number that no call of the C library gives */
    struct statics statics = statics_of(backend_entry(&w->backend, w->kernel));
    const int error_before = errno;
    call_reset(call);
    guard_set_repair(statics_mend, &statics);
    statics_watch(&statics);
    const struct allocations before = allocations_now();
    errno = NO_ERROR;
    const struct guarded g = guarded_run(call, &w->backend, NULL);
    const int error = errno;
    const struct allocations after = allocations_now();
    errno = error_before;
    statics_leave(&statics);
    guard_set_repair(NULL, NULL);
    if (g.crashed || g.status != POSENC_OK)
        return false;
    const unsigned long made = after.made - before.made, freed = after.freed - before.freed;
    JUDGE(w, ALLOCATIONS, !made && !freed, "%lu blocks or maps made and %lu freed in one call",
          made, freed);
    JUDGE(w, LEAKS, made <= freed, "%lu blocks or maps were not given back", made - freed);
    JUDGE(w, STATICS, !statics.text[0], "%s", statics.text);
    JUDGE(w, ERRNO, error == NO_ERROR, "errno was set to %d", error);
    return true;
}

static void watch_problem(struct watch *w, const struct problem *p)
{
    struct call call;
    if (call_create_by(w->run->implementation, &call, p, &memory_plain) != POSENC_OK)
        return;
    for (int e = 0; e < EFFECTS; e++)
        w->tally[e].problem = p;
    if (watch_call(w, &call))
        watch_call(w, &call);
    for (int e = 0; e < EFFECTS; e++)
        w->tally[e].problem = NULL;
    call_destroy(&call);
}

enum { RANDOM_QUICK = 3, RANDOM_FULL = 60 };

static void watch_type(struct watch *w, enum posenc_dtype dtype)
{
    const uint64_t random = w->run->options->full ? RANDOM_FULL : RANDOM_QUICK;
    const int64_t lanes = backend_vector_lanes(w->run->backend);
    struct problem p = problem_realistic(w->kernel, dtype, REALISTIC_BYTES);
    watch_problem(w, &p);
    for (int v = 0; v < LENGTH_VARIANTS; v++) {
        p = problem_of_length(w->kernel, v % 2 ? 3 * lanes + 3 : lanes - 1, v);
        p.dtype = p.values = dtype;
        watch_problem(w, &p);
    }
    for (uint64_t seed = 0; seed < random; seed++) {
        int64_t positions[MOST_RANDOM_TOKENS];
        p = problem_random(w->kernel, seed, positions);
        p.dtype = dtype;
        watch_problem(w, &p);
    }
}

/* ---- The suite ---- */

void side_effects_sweep(struct suite_run *run, const struct problem *problem)
{
    struct watch w = { .run = run, .kernel = problem->kernel, .dtype = problem->dtype };
    watch_begin(&w);
    if (w.any)
        watch_problem(&w, problem);
    check_threads(&w, problem);
    watch_end(&w);
}

void suite_side_effects(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct problem p = problem_realistic(kernel, POSENC_F32, REALISTIC_BYTES);
    struct watch w = { .run = run, .kernel = kernel, .dtype = POSENC_F32 };
    watch_begin(&w);
    for (int dtype = POSENC_F32; w.any && dtype <= POSENC_BF16; dtype++)
        if (dtype == POSENC_F32 || run->backend->f16_bf16)
            watch_type(&w, (enum posenc_dtype)dtype);
    check_threads(&w, &p);
    if (run->options->full)
        check_streaming(&w);
    watch_end(&w);
    check_kept_state(run, kernel);
}
