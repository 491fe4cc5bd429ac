/*
 * Laws of parts: a row's value does not depend on how the call was cut.
 *
 *   slices      parts of the tensors, by batch, token or query, head, key and channel, give the
 *               same bits
 *   wide        so do parts of rows of more keys, or into more columns, than tiles have
 *   large       so do parts of what exceeds the caches: kernels may take another way for it
 *   threads     so do parts computed by four threads at once into one output
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"
#include "conformance/problem/cut.h"

#include <pthread.h>
#include <stdio.h>

/* ---- Problems to cut ---- */

/* Two shapes of windows, two kinds of columns. */
static void cut_scores(struct problem *p, bool arrays)
{
    const bool sums = kernel_counts(p->kernel, DIM_COLUMN);
    p->queries = 11;
    p->keys = 37;
    p->query_offset = 26;
    p->causal = arrays;
    p->slopes_by_batch = arrays && has_field(p->kernel, "slopes_by_batch");
    p->bidirectional = !arrays;
    p->window_height = arrays ? 3 : 4;
    p->window_width = arrays ? 7 : 5;
    p->window_class = arrays;
    p->relative = (enum relative)((arrays ? RELATIVE_SHAW : RELATIVE_DEBERTA) + sums);
    p->with_p2c = !arrays;
    p->scale = kernel_on_scores(p->kernel) ? 0.3 : 1.0;
    p->batch = problem_reads(p, DIM_BATCH) ? 3 : 1;
}

struct problem cut_problem(enum posenc_kernel kernel, enum given given)
{
    const bool arrays = given != GIVEN_OFFSET, pairs = kernel_counts(kernel, DIM_PAIR);
    const bool picture = pairs ? given == GIVEN_PLACES : given == GIVEN_ARRAY;
    struct problem p = problem_default(kernel);
    p.tokens = 13;
    p.first = kernel_has_plan(kernel) ? 57 : 2;
    p.rows = 32;
    cut_scores(&p, arrays);
    p.batch = kernel_on_scores(kernel) ? p.batch : 3;
    p.rotary_offset = p.rotary_dim && arrays ? 3 : 0;
    p.dim = p.rotary_dim ? 70 : 37;
    p.freqs.dim = pairs ? 74 : 37;
    p.x_scale = 0.75f;
    p.token_major = p.accumulate = arrays;
    p.pad = arrays ? 3 : 0;
    p.position_kind = arrays ? POSENC_POSITIONS_I32 : POSENC_OFFSET;
    p.batch_shift = arrays ? 4 : 0;
    if (kernel_has_plan(kernel) && picture) { /* three axes of a table of pairs, or two */
        static const int64_t sections[2][3] = { { 7, 12, 0 }, { 20, 9, 8 } };
        p.mrope_grid = 5;
        p.freqs.dim = pairs ? 74 : 38;
        p.freqs.mrope_layout = pairs ? POSENC_MROPE_INTERLEAVED : POSENC_MROPE_RESTARTED;
        for (int axis = 0; axis < 3; axis++)
            p.freqs.mrope_section[axis] = sections[pairs][axis];
    } else if (given == GIVEN_PLACES) {
        p.position_kind = POSENC_POSITIONS_F32;
        p.time_step = 0.25; /* every fourth is whole */
    }
    problem_settle(&p);
    return p;
}

void for_cut_problems(struct tally *t, enum posenc_kernel kernel,
                      void (*check)(struct tally *t, const struct problem *p, void *user),
                      void *user)
{
    for (int given = GIVEN_OFFSET; given < (kernel_has_plan(kernel) ? GIVENS : GIVEN_PLACES);
         given++) {
        struct problem p = cut_problem(kernel, (enum given)given);
        check(t, &p, user);
        p.in_place = kernel_in_place(kernel);
        check(t, &p, user);
    }
}

/* ---- Slices ---- */

/* Parts of 1 to `most` along one dimension. */
static void check_cut(struct tally *t, struct call *whole, enum dim dim, int64_t most,
                      const struct call *want)
{
    const int last = call_from_last(whole, dim);
    const int64_t n = call_extent(whole, dim);
    char what[64];
    call_reset(whole);
    for (int64_t from = 0, count; from < n; from += count) {
        count = 1 + (from * 3 + last) % most;
        count = from + count > n ? n - from : count;
        struct call part = call_cut(whole, dim, from, count);
        struct guarded g = guarded_run(&part, t->run->backend, NULL);
        require_clean(t, &g);
    }
    snprintf(what, sizeof what, "cut along dimension %d from the last", last);
    require_same_outputs(t, whole, want, what);
}

/* Along each dimension in turn. */
static void check_slices_of(struct tally *t, const struct problem *p, int64_t most)
{
    const enum dim *cuts = signature_of(p->kernel)->cuts;
    const struct call *want = tally_run(t, p, NULL, NULL);
    struct call *whole = want ? tally_call(t, t->run->subject, p) : NULL;
    for (int i = 0; i < MOST_CUTS && cuts[i] && whole; i++)
        if (call_extent(whole, cuts[i]) > 1)
            check_cut(t, whole, cuts[i], most, want);
}

static void check_small_slices(struct tally *t, const struct problem *p, void *user)
{
    (void)user;
    check_slices_of(t, p, 5);
}

static void law_slices(struct tally *t, const struct problem *of)
{
    for_cut_problems(t, of->kernel, check_small_slices, NULL);
}

/* More keys and queries than kernels take at once. */
static void law_wide(struct tally *t, const struct problem *of)
{
    static const int64_t shapes[2][2] = { { 33, 4200 }, { 530, 40 } };
    const bool sums = kernel_counts(of->kernel, DIM_COLUMN);
    struct problem p = *of;
    p.heads = 1;
    p.query_offset = 2000;
    p.max_distance = sums ? 700 : p.max_distance;
    for (int k = 0; k < 2; k++) {
        p.queries = shapes[k][0];
        p.keys = shapes[k][1];
        check_slices_of(t, &p, sums ? 13 : 1999);
    }
}

static void law_large(struct tally *t, const struct problem *p) { check_slices_of(t, p, 1999); }

/* ---- Threads ---- */

enum { THREADS = 4, ROUNDS = 25 };

struct worker {
    pthread_t thread;
    struct call part;
    const struct posenc_backend *backend;
    struct guarded result;
};

static void *work(void *user)
{
    struct worker *w = user;
    w->result = guarded_run(&w->part, w->backend, NULL);
    return NULL;
}

/* Four quarters of the tokens (queries) at once.  False when one did not go through. */
static bool run_threads(struct tally *t, const struct call *whole, enum dim dim, int64_t n)
{
    struct worker workers[THREADS];
    bool ok = true;
    for (int i = 0; i < THREADS; i++) {
        int64_t from = n * i / THREADS, to = n * (i + 1) / THREADS;
        workers[i].part = call_cut(whole, dim, from, to - from);
        workers[i].backend = t->run->backend;
        workers[i].result = (struct guarded){ .status = POSENC_OK };
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            return require(t, false, "no thread could be started");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ok = require_clean(t, &workers[i].result) && ok;
    }
    return ok;
}

static void check_threads(struct tally *t, enum posenc_kernel kernel, enum given given,
                          int rounds)
{
    struct problem p = cut_problem(kernel, given);
    const enum dim dim = kernel_on_scores(kernel) ? DIM_QUERY : signature_of(kernel)->shares[0];
    p.tokens = 20;
    p.queries = 20; /* but of windows */
    const struct call *want = tally_run(t, &p, NULL, NULL);
    struct call *whole = want ? tally_call(t, t->run->subject, &p) : NULL;
    for (int round = 0; whole && round < rounds; round++) {
        call_reset(whole);
        if (!run_threads(t, whole, dim, call_extent(whole, dim)))
            break;
        require_same_outputs(t, whole, want, "four threads");
    }
    t->problem = NULL;
}

static void law_threads(struct tally *t, const struct problem *of)
{
    check_threads(t, of->kernel, GIVEN_OFFSET, ROUNDS);
    if (kernel_has_plan(of->kernel))
        check_threads(t, of->kernel, GIVEN_PLACES, ROUNDS / 4);
}

const struct law laws_cut[] = {
    LAW("slices", law_slices, .concerns = any_kernel),
    LAW("wide", law_wide, .concerns = any_kernel, .field = "keys"),
    LAW("large", law_large, .full = true),
    LAW("threads", law_threads, .concerns = any_kernel),
    { 0 },
};
