/*
 * Times a call of the library beside a call of the kernel itself.  In every round each way of making the
 * call is timed once, as a run of calls, in an order that rotates.  Differences are taken within rounds, so
 * that drift and busy neighbours affect all ways alike.
 *
 * Each round has its activations and its stack at another line of a page.  A load waits for a store whose
 * address looks alike in its lower 12 bits, arguments across two pages take longer to copy, and the stack
 * begins elsewhere in each process: at one place, some processes take twice as long in every round.
 */
#define POSENC_EXPERIMENTAL
#include "bench.h"
#include "base/clock.h"
#include "base/statistics/stats.h"

#include <stdlib.h>

enum { DIM = 128, ROWS = 128, POSITION = 77 };
enum { ROUNDS = 1201, CALLS = 64, WAYS = 2 + OVERHEAD_WAYS };
enum { WORDS = 48 };
enum {
    LINE = 64,
    LINES = 64,
    STEP = 39
}; /* bytes; lines of a page; from one round to the next */
static const double yardstick_ns = 26.0; /* on the core for which the limits were set */

const int64_t overhead_heads[OVERHEAD_ROWS] = { 1, 8, OVERHEAD_MOST_HEADS };

struct rotation {
    struct posenc_rope_args args, normal; /* as a caller has them, as the kernel takes them */
    const struct posenc_backend *backend;
    struct posenc_prepared *prepared;
    float *q;        /* [OVERHEAD_MOST_HEADS * DIM], and a page more */
    uint64_t *words; /* [3 * WORDS]: two that are alike, one to write */
};

typedef enum posenc_status way(const struct rotation *r);

static enum posenc_status call_function(const struct rotation *r)
{
    return r->backend->rope_half(&r->normal);
}

static enum posenc_status call_front_end(const struct rotation *r)
{
    return posenc_rope_half(NULL, &r->args);
}

static enum posenc_status call_prepared(const struct rotation *r)
{
    return posenc_run(r->prepared, r->args.x.data, r->args.out.data, POSITION);
}

/* Does what checks consist of: loads, comparisons that hold, stores.  It is aligned to a line: elsewhere
 * its loop took 1.6 times as long (Zen 4), and limits grow with it. */
static __attribute__((noinline, aligned(64))) enum posenc_status
run_yardstick(const struct rotation *r)
{
    uint64_t *words = r->words;
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != words[WORDS + i])
            return POSENC_ERR_ARGUMENT;
        words[2 * WORDS + i] = words[i] + 1;
    }
    return POSENC_OK;
}

/* Times one round, of activations so many bytes from where they begin. */
static bool time_round(struct rotation *r, int round, size_t bytes, double *samples)
{
    static way *const ways[WAYS] = { call_function, call_front_end, call_prepared,
                                     call_function, run_yardstick };
    enum posenc_status status = POSENC_OK;
    r->args.out.data = r->normal.out.data = r->q + bytes / sizeof *r->q;
    r->args.x.data = r->normal.x.data = r->args.out.data;
    for (int k = 0; k < WAYS; k++) {
        const int w = (round + k) % WAYS;
        status |= ways[w](r); /* untimed: predictors have forgotten it */
        const double start = clock_now();
        for (int i = 0; i < CALLS; i++)
            status |= ways[w](r);
        samples[w * ROUNDS + round] = 1e9 * (clock_now() - start) / CALLS;
    }
    return status == POSENC_OK;
}

/* Times it with the stack as many bytes further on.  Not inlined: what it takes is given back. */
static __attribute__((noinline)) bool time_elsewhere(const struct rotation *r, int round,
                                                     double *samples)
{
    const size_t bytes = (size_t)(round * STEP % LINES) * LINE;
    struct rotation *moved = __builtin_alloca(sizeof *moved + bytes);
    *moved = *r;
    return time_round(moved, round, bytes, samples);
}

static bool summarise(const struct rotation *r, struct overhead *overhead)
{
    double *samples = malloc(WAYS * ROUNDS * sizeof *samples);
    bool fine = samples;
    for (int round = 0; round < ROUNDS && fine; round++)
        fine = time_elsewhere(r, round, samples);
    if (fine) {
        overhead->function_ns = stats_median(samples, ROUNDS);
        overhead->pace = stats_median(samples + (WAYS - 1) * ROUNDS, ROUNDS) / yardstick_ns;
    }
    for (int w = 0; fine && w < OVERHEAD_WAYS; w++) {
        double *above = samples + (1 + w) * ROUNDS;
        for (int round = 0; round < ROUNDS; round++)
            above[round] -= samples[round];
        const struct stats_summary s = stats_summarise(above, ROUNDS);
        overhead->above[w] =
            (struct overhead_ns){ s.median, s.interval.low, s.interval.high, s.interval.level };
    }
    free(samples);
    return fine;
}

bool overhead_measure(int64_t heads, struct overhead *overhead)
{
    static _Alignas(64) float q[OVERHEAD_MOST_HEADS * DIM + LINES * LINE / sizeof(float)],
        cosines[ROWS * DIM / 2], sines[ROWS * DIM / 2];
    static _Alignas(64) uint64_t words[3 * WORDS];
    struct rotation r = { .q = q,
                          .words = words,
                          .backend = posenc_selection(POSENC_KERNEL_rope_half).backend,
                          .args = posenc_rope_args_init() };
    if (!r.backend || heads > OVERHEAD_MOST_HEADS)
        return false;
    for (int i = 0; i < ROWS * DIM / 2; i++)
        cosines[i] = 1.0f;
    r.args.positions.offset = POSITION;
    r.args.cos = posenc_const_dense(cosines, 2, ROWS, DIM / 2, 0, 0);
    r.args.sin = posenc_const_dense(sines, 2, ROWS, DIM / 2, 0, 0);
    r.args.out = posenc_dense(q, 3, 1, heads, DIM, 0);
    r.args.x = posenc_view(r.args.out);
    r.normal = r.args;
    r.normal.out = posenc_dense(q, 4, 1, 1, heads, DIM);
    r.normal.x = posenc_view(r.normal.out);
    if (posenc_prepare(r.backend, POSENC_KERNEL_rope_half, &r.args, &r.prepared))
        return false;
    *overhead = (struct overhead){ .backend = r.backend,
                                   .kernel = POSENC_KERNEL_rope_half,
                                   .heads = heads,
                                   .head_dim = DIM,
                                   .rounds = ROUNDS };
    const bool fine = summarise(&r, overhead);
    posenc_prepared_destroy(r.prepared);
    return fine;
}
