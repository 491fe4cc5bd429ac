/*
 * Laws of parts: a row's value does not depend on how the call was cut.
 *
 *   slices      parts of the tensors, by batch, token or query, head, key and channel, give the
 *               same bits
 *   wide        so do parts of rows of more keys, or into more columns, than tiles have
 *   large       so do parts of what exceeds the caches
 *   threads     so do parts computed by four threads at once into one output
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"
#include "conformance/problem/cut.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Two shapes of windows, two kinds of columns. */
static void cut_scores(struct problem *p, bool arrays)
{
    p->queries = 11;
    p->keys = 37;
    p->query_offset = 26;
    p->causal = arrays;
    p->slopes_by_batch = arrays && kernel_signature(p->kernel) == SIGNATURE_alibi;
    p->bidirectional = !arrays;
    p->window_height = arrays ? 3 : 4;
    p->window_width = arrays ? 7 : 5;
    p->window_class = arrays;
    p->relative = arrays ? RELATIVE_SHAW : RELATIVE_DEBERTA;
    p->with_p2c = !arrays;
    if (kernel_signature(p->kernel) == SIGNATURE_window)
        p->queries = p->keys = problem_window(p);
    if (kernel_signature(p->kernel) == SIGNATURE_relative)
        p->scale = 0.3;
    if (kernel_signature(p->kernel) == SIGNATURE_relative_sum)
        p->relative = arrays ? RELATIVE_TRANSFORMER_XL : RELATIVE_SHAW;
}

struct problem cut_problem(enum posenc_kernel kernel, enum given given)
{
    const bool arrays = given != GIVEN_OFFSET;
    struct problem p = problem_default(kernel);
    enum signature_id s = kernel_signature(kernel);
    p.tokens = 13;
    p.first = kernel_has_plan(kernel) ? 57 : 2; /* or a row */
    p.rows = 32;
    cut_scores(&p, arrays);
    p.rotary_offset = p.rotary_dim && arrays ? 3 : 0;
    p.dim = p.rotary_dim ? 70 : 37;
    p.freqs.dim = s == SIGNATURE_rope_table ? 74 : 37;
    p.x_scale = 0.75f;
    bool alone = !kernel_takes_x(kernel) && kernel_on_scores(kernel) && s != SIGNATURE_relative;
    p.batch = alone && !p.slopes_by_batch ? 1 : 3;
    p.token_major = p.accumulate = arrays;
    p.pad = arrays ? 3 : 0;
    p.position_kind = arrays ? POSENC_POSITIONS_I32 : POSENC_OFFSET;
    p.batch_shift = arrays ? 4 : 0;
    if (given == GIVEN_PLACES && s == SIGNATURE_rope_table) {
        p.mrope_grid = 5;
        p.freqs.mrope_layout = POSENC_MROPE_INTERLEAVED;
        p.freqs.mrope_section[0] = 20;
        p.freqs.mrope_section[1] = 9;
        p.freqs.mrope_section[2] = 8;
    } else if (given == GIVEN_PLACES) {
        p.position_kind = POSENC_POSITIONS_F32;
        p.time_step = 0.25;                           /* every fourth is whole */
    } else if (arrays && s == SIGNATURE_sinusoidal) { /* two axes */
        p.mrope_grid = 5;
        p.freqs.dim = 38;
        p.freqs.mrope_layout = POSENC_MROPE_RESTARTED;
        p.freqs.mrope_section[0] = 7;
        p.freqs.mrope_section[1] = 12;
    }
    return p;
}

/* ---- Slices ---- */

/* Parts of 1 to `most` along one dimension. */
static void check_cut(struct tally *t, const struct call *whole, enum dim dim, int64_t most,
                      const struct copy *want)
{
    const int last = call_from_last(whole, dim);
    const int64_t n = call_extent(whole, dim);
    struct copy got;
    for (int64_t from = 0, count; from < n; from += count) {
        count = 1 + (from * 3 + last) % most;
        count = from + count > n ? n - from : count;
        struct call part = call_cut(whole, dim, from, count);
        struct guarded g = guarded_run(&part, t->run->backend, NULL);
        require_clean(t, &g);
    }
    if (copy_outputs(&got, whole)) {
        char what[64];
        snprintf(what, sizeof what, "cut along dimension %d from the last", last);
        require_same_copy(t, &got, want, what);
        copy_free(&got);
    }
}

/* Along each dimension in turn. */
static void check_slices_of(struct tally *t, const struct problem *p, int64_t most)
{
    struct call whole;
    struct copy want;
    t->problem = p;
    if (!require(t, call_create_by(t->run->subject, &whole, p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    struct guarded g = guarded_run(&whole, t->run->backend, NULL);
    if (!require_clean(t, &g) || !copy_outputs(&want, &whole)) {
        call_destroy(&whole);
        return;
    }
    const enum dim *cuts = signature_of(p->kernel)->cuts;
    for (int i = 0; i < MOST_CUTS && cuts[i]; i++)
        if (call_extent(&whole, cuts[i]) > 1) {
            call_reset(&whole);
            check_cut(t, &whole, cuts[i], most, &want);
        }
    copy_free(&want);
    call_destroy(&whole);
}

static void law_slices(struct tally *t, enum posenc_kernel kernel)
{
    for (int given = GIVEN_OFFSET; given < (kernel_has_plan(kernel) ? GIVENS : GIVEN_PLACES);
         given++) {
        struct problem p = cut_problem(kernel, (enum given)given);
        check_slices_of(t, &p, 5);
        p.in_place = kernel_in_place(kernel);
        check_slices_of(t, &p, 5);
    }
    t->problem = NULL;
}

/* More keys and queries than kernels take at once. */
static void law_wide(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    bool sums = kernel_signature(kernel) == SIGNATURE_relative_sum;
    p.heads = 1;
    p.queries = 33;
    p.keys = 4200;
    p.query_offset = 2000;
    p.max_distance = sums ? 700 : p.max_distance;
    check_slices_of(t, &p, sums ? 13 : 1999);
    p.queries = 530;
    p.keys = 40;
    check_slices_of(t, &p, sums ? 13 : 1999);
    t->problem = NULL;
}

/* Kernels may take another way for what does not fit a cache: 33 MiB, rows on 64-byte
 * boundaries, against parts that fit. */
static void law_large(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    bool table = !kernel_turns(kernel);
    p.first = table ? -500 : 0;
    p.freqs.dim = 512;
    p.heads = 32;
    p.dim = p.rotary_dim = 256;
    p.tokens = p.rows = table ? (33 << 20) / (512 * 4) : (33 << 20) / (32 * 256 * 4);
    p.in_place = !table;
    check_slices_of(t, &p, 1999);
    t->problem = NULL;
}

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
    struct call whole;
    struct copy want, got;
    t->problem = &p;
    p.tokens = 20;
    p.queries = 20; /* but of windows */
    if (!require(t, call_create_by(t->run->subject, &whole, &p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    const int64_t n = call_extent(&whole, dim);
    struct guarded g = guarded_run(&whole, t->run->backend, NULL);
    if (require_clean(t, &g) && copy_outputs(&want, &whole)) {
        for (int round = 0; round < rounds; round++) {
            call_reset(&whole);
            if (!run_threads(t, &whole, dim, n) || !copy_outputs(&got, &whole))
                break;
            require_same_copy(t, &got, &want, "four threads");
            copy_free(&got);
        }
        copy_free(&want);
    }
    call_destroy(&whole);
    t->problem = NULL;
}

static void law_threads(struct tally *t, enum posenc_kernel kernel)
{
    check_threads(t, kernel, GIVEN_OFFSET, ROUNDS);
    if (kernel_has_plan(kernel))
        check_threads(t, kernel, GIVEN_PLACES, ROUNDS / 4);
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_cut[] = {
    { "slices", law_slices, EVERY_KERNEL },
    { "wide", law_wide,
      KERNELS(K(alibi), K(alibi_add), K(t5_bias), K(t5_bias_add), K(distance_bias),
              K(distance_bias_add), K(relative_bias), K(relative_bias_add), K(relative_sum)) },
    { "large", law_large,
      KERNELS_OF(POSENC_F32, true, K(sinusoidal), K(rope_table), K(rope_half),
                 K(rope_interleaved)) },
    { "threads", law_threads, EVERY_KERNEL },
};
const int n_laws_cut = sizeof laws_cut / sizeof laws_cut[0];
