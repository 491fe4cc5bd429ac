/*
 * What a kernel may not do besides computing what it should, one result per kernel and property:
 *
 *   allocations, leaks     allocate or map memory; and not give it back
 *   static-memory          write a static variable of its own
 *   errno                  change it
 *   direction-flag, x87-mmx   leave string instructions running backwards, MMX registers in use
 *   descriptors, threads-left, signals, surroundings   leave the process another one
 *   first-calls   several threads that call a kernel for the first time in this process, released
 *                 together, get the bits that each gets alone; and nothing is made then that lasts
 *   together      so do threads at any time, each in the middle of calls of others
 *   streaming-stores   are followed by a fence
 *   kept-state    nothing is kept from one call to the next (kept.c)
 *
 * Calls are made of problems of several lengths, layouts and types.  The process is compared with
 * what it was when the first calls are over, and at last.  The suite is the first to run, so that
 * first calls are.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/conduct/conduct.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REALISTIC_BYTES = 12 << 10 };

enum conduct {
    ALLOCATIONS,
    LEAKS,
    STATICS,
    ERRNO,
    DIRECTION,
    X87,
    FILES,
    THREADS,
    SIGNALS,
    SURROUNDINGS,
    CONDUCTS
};
static const char *const names[CONDUCTS] = {
    "allocations", "leaks",       "static-memory", "errno",   "direction-flag",
    "x87-mmx",     "descriptors", "threads-left",  "signals", "surroundings",
};

struct conduct_suite {
    struct suite_run *run;
    enum posenc_kernel kernel;
    enum posenc_dtype dtype; /* of the cases' ids */
    struct posenc_backend backend;
    struct tally tally[CONDUCTS];
    bool any;
    struct process before;
};

/* Why it cannot be seen in this build, or on this machine; NULL: it can. */
static const char *unseen(const struct conduct_suite *s, int conduct)
{
    switch (conduct) {
    case ALLOCATIONS:
    case LEAKS:
        return allocations_unseen();
    case STATICS:
        return statics_unseen();
#if !defined(__x86_64__)
    case DIRECTION:
    case X87:
        return "this CPU has none";
#endif
    case THREADS:
        return s->before.threads ? NULL : "this system does not say how many threads there are";
    default:
        return NULL;
    }
}

static void begin(struct conduct_suite *s)
{
    s->backend = backend_copy(s->run->backend);
    guard_install(); /* handlers of our own are none of a kernel's */
    process_look(&s->before);
    for (int c = 0; c < CONDUCTS; c++) {
        struct tally *t = &s->tally[c];
        if (!tally_begin(t, s->run, s->kernel, s->dtype, "conduct", NULL, "%s", names[c]))
            continue;
        if (unseen(s, c))
            tally_skip(t, unseen(s, c));
        s->any = true;
    }
}

/* require(), of what can be seen. */
#define JUDGE(s, conduct, ...)                                                                 \
    do {                                                                                       \
        if (!(s)->tally[conduct].skipped)                                                      \
            require(&(s)->tally[conduct], __VA_ARGS__);                                        \
    } while (0)

static void compare_process(struct conduct_suite *s)
{
    struct process now;
    process_look(&now);
    const int file = process_other_file(&s->before, &now),
              number = process_other_signal(&s->before, &now);
    const unsigned long threads = process_more_threads(&s->before);
    JUDGE(s, FILES, file < 0, "descriptor %d was opened and left, or closed", file);
    JUDGE(s, THREADS, !threads, "%lu threads more are running", threads);
    JUDGE(s, SIGNALS, number < 0, "signal %d is blocked or handled otherwise", number);
    JUDGE(s, SURROUNDINGS, now.surroundings == s->before.surroundings,
          "another environment, locale or working directory");
    process_restore_signals(&s->before, &now);
}

static void end(struct conduct_suite *s)
{
    for (int c = 0; c < CONDUCTS; c++) {
        if (s->tally[c].selected && !s->tally[c].skipped && !s->tally[c].result.checked)
            tally_skip(&s->tally[c], "no call of this problem could be made");
        tally_end(&s->tally[c]);
    }
}

/* ---- Threads ---- */

static void check_threads(struct conduct_suite *s, const struct problem *p, bool first)
{
    struct tally t;
    struct together together;
    if (!tally_begin(&t, s->run, s->kernel, s->dtype, "conduct", NULL, "%s",
                     first ? "first-calls" : "together"))
        return;
    t.problem = p;
    together_run(s->run->implementation, p, first, &together);
    if (together.nothing && !together.text[0]) {
        tally_skip(&t, together.nothing);
    } else {
        if (!require(&t, !together.text[0], "%s", together.text) && together.crashed)
            t.result.status = CONF_CRASH;
        require(&t, first || together.stops, "no call was stopped in its middle");
    }
    tally_end(&t);
}

/* Some kernels make streaming stores from a size on alone: those of this library where an output has
 * 32 MiB.  In full runs: large calls take their time. */
static void check_streaming(struct conduct_suite *s)
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
    if (!tally_begin(&t, s->run, s->kernel, s->dtype, "conduct", NULL, "streaming-stores"))
        return;
    if (unseen)
        tally_skip(&t, unseen);
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls) && !t.skipped; i++) {
        const enum posenc_dtype dtype = calls[i].dtype;
        const struct problem p = problem_realistic(s->kernel, dtype, calls[i].bytes);
        struct streaming seen;
        if (dtype != POSENC_F32 && !s->run->backend->f16_bf16)
            continue;
        t.problem = &p;
        streaming_run(s->run->implementation, &p, &seen);
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

/* False: it did not go through, which is other suites' to judge. */
static bool watch_call(struct conduct_suite *s, struct call *call)
{
    enum { NO_ERROR = 0x7057 }; /* a number that no call of the C library gives */
    struct statics statics = statics_of(backend_entry(&s->backend, s->kernel));
    const int error_before = errno;
    call_reset(call);
    guard_set_repair(statics_mend, &statics);
    statics_watch(&statics);
    const struct allocations before = allocations_now();
    errno = NO_ERROR;
    const struct guarded g = guarded_run(call, &s->backend, NULL);
    const int error = errno;
    const struct allocations after = allocations_now();
    errno = error_before;
    statics_leave(&statics);
    guard_set_repair(NULL, NULL);
    if (g.crashed || g.status != POSENC_OK)
        return false;
    const unsigned long made = after.made - before.made, freed = after.freed - before.freed;
    JUDGE(s, ALLOCATIONS, !made && !freed, "%lu blocks or maps made and %lu freed in one call",
          made, freed);
    JUDGE(s, LEAKS, made <= freed, "%lu blocks or maps were not given back", made - freed);
    JUDGE(s, STATICS, !statics.text[0], "%s", statics.text);
    JUDGE(s, ERRNO, error == NO_ERROR, "errno was set to %d", error);
    JUDGE(s, DIRECTION, !g.direction_left, "the direction flag is set");
    JUDGE(s, X87, !g.mmx_left, "registers of the x87 unit, which MMX shares, are in use");
    return true;
}

static void watch_problem(struct conduct_suite *s, const struct problem *p)
{
    struct call call;
    if (call_create_by(s->run->implementation, &call, p, &memory_plain) != POSENC_OK)
        return;
    for (int c = 0; c < CONDUCTS; c++)
        s->tally[c].problem = c < FILES ? p : NULL;
    if (watch_call(s, &call))
        watch_call(s, &call);
    for (int c = 0; c < CONDUCTS; c++)
        s->tally[c].problem = NULL;
    call_destroy(&call);
}

enum { RANDOM_QUICK = 3, RANDOM_FULL = 60 };

static void watch_type(struct conduct_suite *s, enum posenc_dtype dtype)
{
    const uint64_t random = s->run->options->full ? RANDOM_FULL : RANDOM_QUICK;
    const int64_t lanes = backend_vector_lanes(s->run->backend);
    struct problem p = problem_realistic(s->kernel, dtype, REALISTIC_BYTES);
    watch_problem(s, &p);
    for (int v = 0; v < LENGTH_VARIANTS; v++) {
        p = problem_of_length(s->kernel, v % 2 ? 3 * lanes + 3 : lanes - 1, v);
        p.dtype = p.values = dtype;
        watch_problem(s, &p);
    }
    for (uint64_t seed = 0; seed < random; seed++) {
        int64_t positions[MOST_RANDOM_TOKENS];
        p = problem_random(s->kernel, seed, positions);
        p.dtype = dtype;
        watch_problem(s, &p);
    }
}

/* ---- The suite ---- */

static void watch_types(struct conduct_suite *s, const struct problem *p)
{
    (void)p;
    for (int dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++)
        if (dtype == POSENC_F32 || s->run->backend->f16_bf16)
            watch_type(s, (enum posenc_dtype)dtype);
}

static void check_conduct(struct conduct_suite *s, const struct problem *p,
                          void (*watch)(struct conduct_suite *, const struct problem *))
{
    begin(s);
    check_threads(s, p, true);
    compare_process(s);
    if (s->any)
        watch(s, p);
    check_threads(s, p, false);
    if (watch == watch_types && s->run->options->full)
        check_streaming(s);
    compare_process(s);
    end(s);
}

void conduct_sweep(struct suite_run *run, const struct problem *problem)
{
    struct conduct_suite s = { .run = run, .kernel = problem->kernel, .dtype = problem->dtype };
    check_conduct(&s, problem, watch_problem);
}

void suite_conduct(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct problem p = problem_realistic(kernel, POSENC_F32, REALISTIC_BYTES);
    struct conduct_suite s = { .run = run, .kernel = kernel, .dtype = POSENC_F32 };
    check_conduct(&s, &p, watch_types);
    check_kept_state(run, kernel);
}
