/*
 * Properties of parts: a call gives the same bits as the calls of its parts.
 *
 *   slices      parts by batch, token or query, head, key and channel
 *   wide        parts of rows with more keys or columns than a kernel's tile
 *   large       parts of a call that exceeds the caches, for which kernels may take another path
 *   threads     parts that four threads compute at once into one output
 *   split       any number of parts by posenc_split(); an element that is written twice in place would
 *               be rotated twice
 */
#define _POSIX_C_SOURCE 200809L
#include "properties.h"
#include "conformance/problem/signature.h"

#include <pthread.h>
#include <stdio.h>

/* ---- Slices ---- */

/* Cuts a call along one dimension into at least two parts, of different sizes from 1 to `most`. */
static void check_cut(struct tally *t, struct call *call, enum dim dim, int64_t most,
                      const struct call *want)
{
    const int last = call_dim_from_last(call, dim);
    const int64_t n = call_extent(call, dim);
    char what[64];
    call_reset(call);
    for (int64_t from = 0, count; from < n; from += count) {
        count = 1 + (from * 3 + last) % most;
        if (from == 0 && count >= n)
            count = n - 1;
        count = from + count > n ? n - from : count;
        struct call part = call_cut(call, dim, from, count);
        struct guard_result g = guard_run(&part, t->run->backend, NULL);
        require_clean(t, &g);
    }
    snprintf(what, sizeof what, "cut along dimension %d from the last", last);
    require_same_outputs(t, call, want, what);
}

/* Cuts along one dimension after the other, into parts of at most `most`. */
static void check_slices(struct tally *t, const struct problem *p, int64_t most)
{
    const enum dim *cuts = signature_of(p->kernel)->cuts;
    const struct call *want = tally_run(t, p, NULL, NULL);
    struct call *call = tally_create_call(t, t->run->implementation, p);
    for (int i = 0; want && call && i < MOST_CUTS && cuts[i]; i++)
        if (call_extent(call, cuts[i]) > 1)
            check_cut(t, call, cuts[i], most, want);
}

static void property_slices(struct tally *t, const struct problem *p) { check_slices(t, p, 5); }

static void property_large(struct tally *t, const struct problem *p)
{
    check_slices(t, p, kernel_has_output_dim(p->kernel, DIM_COLUMN) ? 13 : 1999);
}

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 8 };

struct slice_thread {
    pthread_t thread;
    struct call part;
    const struct posenc_backend *backend;
    struct guard_result result;
};

static void *run_part(void *user)
{
    struct slice_thread *w = user;
    w->result = guard_run(&w->part, w->backend, NULL);
    return NULL;
}

/* Runs the parts of all threads at once; returns false if one of them failed. */
static bool run_threads(struct tally *t, const struct call *whole, enum dim dim, int64_t n)
{
    struct slice_thread workers[THREADS];
    int started = 0;
    for (int i = 0; i < THREADS && started == i; i++) {
        int64_t from = n * i / THREADS, to = n * (i + 1) / THREADS;
        workers[i].part = call_cut(whole, dim, from, to - from);
        workers[i].backend = t->run->backend;
        workers[i].result = (struct guard_result){ .status = POSENC_OK };
        started += pthread_create(&workers[i].thread, NULL, run_part, &workers[i]) == 0;
    }
    bool ok = require(t, started == THREADS, "only %d of %d threads could be started", started,
                      THREADS);
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        ok = require_clean(t, &workers[i].result) && ok;
    }
    return ok;
}

static void property_threads(struct tally *t, const struct problem *p)
{
    const enum dim dim =
        kernel_on_scores(p->kernel) ? DIM_QUERY : signature_of(p->kernel)->shares[0];
    const struct call *want = tally_run(t, p, NULL, NULL);
    struct call *call = tally_create_call(t, t->run->implementation, p);
    for (int round = 0; want && call && round < ROUNDS; round++) {
        call_reset(call);
        if (!run_threads(t, call, dim, call_extent(call, dim)))
            break;
        require_same_outputs(t, call, want, "four threads");
    }
}

/* ---- Splits ---- */

static void check_split(struct tally *t, const struct problem *p)
{
    static const int64_t numbers[] = { 1, 2, 3, 7, 64 };
    const struct call *want = tally_run(t, p, NULL, NULL);
    struct call *call = tally_create_call(t, t->run->implementation, p);
    char what[64];
    for (size_t i = 0; want && call && i < sizeof numbers / sizeof *numbers; i++) {
        const int64_t n = numbers[i];
        call_reset(call);
        for (int64_t k = n; k-- > 0;) {
            struct call part = *call;
            if (!require(t, !posenc_split(p->kernel, &call->args, k, n, &part.args, NULL),
                         "part %lld of %lld was rejected", (long long)k, (long long)n))
                return;
            struct guard_result g = guard_run(&part, t->run->backend, NULL);
            require_clean(t, &g);
        }
        snprintf(what, sizeof what, "%lld parts of posenc_split()", (long long)n);
        require_same_outputs(t, call, want, what);
    }
}

/* Checks posenc_split() on the problem, which it cuts by batches or heads, and on the same problem with one batch and
 * head, which it cuts by tokens or queries. */
static void property_split(struct tally *t, const struct problem *p)
{
    struct problem single = *p;
    check_split(t, p);
    single.batch = 1;
    if (kernel_has_output_dim(p->kernel, DIM_HEAD))
        single.heads = 1;
    check_split(t, &single);
}

const struct property properties_cut[] = {
    { "slices", .check_problem = property_slices, .applies_to = kernel_is_any,
      .problems = "parts", .in_place = true },
    { "wide", .check_problem = property_large, .applies_to = kernel_is_any,
      .needed_field = "keys" },
    { "large", .check_problem = property_large, .full_only = true },
    { "threads", .check_problem = property_threads, .applies_to = kernel_is_any,
      .problems = "parts" },
    { "split", .check_problem = property_split, .applies_to = kernel_is_any,
      .problems = "parts", .in_place = true },
    { 0 },
};
