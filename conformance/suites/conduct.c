/*
 * What a kernel may not do besides computing what it should, one result per kernel and property:
 * those of conduct/watch.h, and
 *
 *   first-calls   several threads that call a kernel for the first time in this process, released
 *                 together, get the bits that each gets alone; and nothing is made then that lasts
 *   together      so do threads at any time, each in the middle of calls of others
 *                 (conduct/together.h)
 *   streaming-stores   are followed by a fence (conduct/streaming.h)
 *   kept-state    nothing is kept from one call to the next (kept.c)
 *
 * Calls are made of problems of several lengths, layouts and types.  The process is compared with
 * what it was when the first calls are over, and at last.  The suite is the first to run, so that
 * first calls are.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/conduct/process.h"
#include "conformance/conduct/streaming.h"
#include "conformance/conduct/together.h"
#include "conformance/conduct/watch.h"
#include "conformance/engine/tally.h"
#include "conformance/problem/shapes.h"
#include "conformance/problem/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REALISTIC_BYTES = 12 << 10 };

struct conduct_suite {
    struct suite_run *run;
    enum posenc_kernel kernel;
    enum posenc_dtype dtype; /* of the cases' ids */
    struct tally tally[CONDUCT_COUNT];
    bool any;
    struct process_state before;
};

static void begin(struct conduct_suite *s)
{
    for (int c = 0; c < CONDUCT_COUNT; c++) {
        struct tally *t = &s->tally[c];
        const char *unseen = conduct_unseen((enum conduct)c);
        if (!tally_begin(t, s->run, s->kernel, s->dtype, "conduct", NULL, "%s",
                         conduct_names[c]))
            continue;
        if (unseen)
            tally_skip(t, unseen);
        s->any = true;
    }
    guard_install(); /* handlers of our own are none of a kernel's */
    process_look(&s->before);
}

static void judge(struct conduct_suite *s, enum conduct conduct, const char *text)
{
    if (!s->tally[conduct].skipped)
        require(&s->tally[conduct], !*text, "%s", text);
}

/* Handlers that were installed since are removed. */
static void compare_process(struct conduct_suite *s)
{
    struct process_changes changes;
    process_compare(&s->before, &changes);
    judge(s, CONDUCT_FILES, changes.files);
    judge(s, CONDUCT_THREADS, changes.threads);
    judge(s, CONDUCT_SIGNALS, changes.signals);
    judge(s, CONDUCT_SURROUNDINGS, changes.surroundings);
}

static void end(struct conduct_suite *s)
{
    for (int c = 0; c < CONDUCT_COUNT; c++) {
        if (s->tally[c].selected && !s->tally[c].result.checked)
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
    together_run(s->run->subject, p, first, &together);
    if (together.nothing && !together.text[0]) {
        tally_skip(&t, together.nothing);
    } else {
        if (!require(&t, !together.text[0], "%s", together.text) && together.crashed)
            t.result.status = CONF_CRASH;
        require(&t, first || together.stops, "no call was stopped in its middle");
        if (t.result.status == CONF_PASS && together.stop_pages < together.pages)
            snprintf(t.result.reason, sizeof t.result.reason,
                     "skipped: stops at %lld of %lld pages; a call stopped at the other %lld",
                     (long long)(together.pages - together.stop_pages),
                     (long long)together.pages, (long long)together.stop_pages);
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
        streaming_run(s->run->subject, &p, &seen);
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

/* A call that cannot be made, or that crashes, is other suites' to judge. */
static void watch_problem(struct conduct_suite *s, const struct problem *p)
{
    struct call call;
    struct watched watched;
    bool runs = true;
    if (call_create_by(s->run->subject, &call, p, &memory_plain) != POSENC_OK)
        return;
    for (int i = 0; i < 2 && runs; i++) {
        call_reset(&call);
        watched_run(&call, s->run->backend, &watched);
        runs = !watched.guarded.crashed && watched.guarded.status == POSENC_OK;
        for (int c = 0; c < CONDUCT_FILES; c++) {
            s->tally[c].problem = p;
            judge(s, (enum conduct)c, watched.text[c]);
            s->tally[c].problem = NULL;
        }
    }
    call_destroy(&call);
}

enum { RANDOM_QUICK = 3, RANDOM_FULL = 60 };

static void watch_type(struct conduct_suite *s, enum posenc_dtype dtype)
{
    const uint64_t random = s->run->options->full ? RANDOM_FULL : RANDOM_QUICK;
    const int64_t lanes = memory_lanes(s->run->backend);
    struct problem p = problem_realistic(s->kernel, dtype, REALISTIC_BYTES);
    watch_problem(s, &p);
    for (int v = 0; v < MEMORY_VARIANTS; v++) {
        p = memory_problem(s->kernel, v % 2 ? 3 * lanes + 3 : lanes - 1, v);
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
