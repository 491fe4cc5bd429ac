/*
 * Times calls of the library and of the kernel itself. Every round times each way of calling once, in rotating order,
 * and differences are taken within rounds, so that drift cancels.
 *
 * Activations and stack start at another line of a page in each round. Otherwise 4 KiB aliasing, or arguments across
 * two pages, would make all rounds of some processes slower.
 */
#include "overhead.h"
#include "base/clock.h"
#include "base/statistics/stats.h"

#include <stdlib.h>

enum { DIM = 128, ROWS = 128, POSITION = 77 };
enum { ROUNDS = 1201, CALLS = 64, WAYS = 1 + OVERHEAD_WAYS };
enum { LINE_BYTES = 64, PAGE_LINES = 64, STEP_LINES = 39 }; /* step from round to round */

const int64_t overhead_heads[OVERHEAD_HEAD_COUNTS] = { 1, 8, OVERHEAD_MOST_HEADS };

/* Rotation of one token. */
struct token_call {
    struct posenc_rope_args args, normal; /* of the public function, and of the kernel */
    const struct posenc_backend *backend;
    struct posenc_prepared *prepared;
    float *q; /* [OVERHEAD_MOST_HEADS * DIM] and one page */
};

typedef enum posenc_status call_way(const struct token_call *call);

static enum posenc_status call_function(const struct token_call *call)
{
    return call->backend->rope_half(&call->normal);
}

static enum posenc_status call_public(const struct token_call *call)
{
    return posenc_rope_half(NULL, &call->args, NULL);
}

static enum posenc_status call_prepared(const struct token_call *call)
{
    return posenc_run(call->prepared, call->args.x.data, call->args.out.data, POSITION, NULL);
}

/* Times one round, with the activations at an offset of so many bytes. */
static bool time_round(struct token_call *call, int round, size_t bytes, double *samples)
{
    static call_way *const ways[WAYS] = { call_function, call_public, call_prepared,
                                          call_function };
    enum posenc_status status = POSENC_OK;
    call->args.out.data = call->normal.out.data = call->q + bytes / sizeof *call->q;
    call->args.x.data = call->normal.x.data = call->args.out.data;
    for (int k = 0; k < WAYS; k++) {
        const int w = (round + k) % WAYS;
        status |= ways[w](call); /* untimed: trains the branch predictors */
        const double start = clock_now();
        for (int i = 0; i < CALLS; i++)
            status |= ways[w](call);
        samples[w * ROUNDS + round] = 1e9 * (clock_now() - start) / CALLS;
    }
    return status == POSENC_OK;
}

/* Times a round with activations and stack moved. Not inlined, so that its stack is released. */
static __attribute__((noinline)) bool time_round_at_offset(const struct token_call *call,
                                                           int round, double *samples)
{
    const size_t bytes = (size_t)(round * STEP_LINES % PAGE_LINES) * LINE_BYTES;
    struct token_call *moved = __builtin_alloca(sizeof *moved + bytes);
    *moved = *call;
    return time_round(moved, round, bytes, samples);
}

static bool summarise(const struct token_call *call, struct overhead *overhead)
{
    double *samples = malloc(WAYS * ROUNDS * sizeof *samples);
    bool ok = samples;
    for (int round = 0; round < ROUNDS && ok; round++)
        ok = time_round_at_offset(call, round, samples);
    if (ok)
        overhead->function_ns = stats_median(samples, ROUNDS);
    for (int w = 0; ok && w < OVERHEAD_WAYS; w++) {
        double *differences = samples + (1 + w) * ROUNDS;
        for (int round = 0; round < ROUNDS; round++)
            differences[round] -= samples[round];
        const struct stats_summary s = stats_summarise(differences, ROUNDS);
        overhead->by_way[w] =
            (struct overhead_ns){ s.median, s.interval.low, s.interval.high, s.interval.level };
    }
    free(samples);
    return ok;
}

bool overhead_measure(int64_t heads, struct overhead *overhead)
{
    static _Alignas(
        64) float q[OVERHEAD_MOST_HEADS * DIM + PAGE_LINES * LINE_BYTES / sizeof(float)],
        cosines[ROWS * DIM / 2], sines[ROWS * DIM / 2];
    struct token_call call = {
        .q = q,
        .backend = posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).backend,
        .args = posenc_rope_args_init()
    };
    if (!call.backend || heads > OVERHEAD_MOST_HEADS)
        return false;
    for (int i = 0; i < ROWS * DIM / 2; i++)
        cosines[i] = 1.0f;
    call.args.positions.offset = POSITION;
    call.args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cosines, ROWS, DIM / 2);
    call.args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, ROWS, DIM / 2);
    call.args.out = posenc_tensor_3d(POSENC_DTYPE_F32, q, 1, heads, DIM);
    call.args.x = posenc_const_view(call.args.out);
    call.normal = call.args;
    call.normal.out = posenc_tensor_4d(POSENC_DTYPE_F32, q, 1, 1, heads, DIM);
    call.normal.x = posenc_const_view(call.normal.out);
    if (posenc_prepare(call.backend, POSENC_KERNEL_ROPE_HALF, &call.args, &call.prepared, NULL))
        return false;
    *overhead = (struct overhead){ .backend = call.backend,
                                   .kernel = POSENC_KERNEL_ROPE_HALF,
                                   .heads = heads,
                                   .head_dim = DIM,
                                   .rounds = ROUNDS };
    const bool ok = summarise(&call, overhead);
    posenc_prepared_destroy(call.prepared);
    return ok;
}
