/*
 * The suites of problems that the options give.  Of each of a model's own shapes some rows are
 * held against the oracle: the first, the last, where positions are largest, the two in the
 * middle, and random ones.  Of one problem alone it is all values, and how its call
 * treats memory and the process.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SAMPLED_ROWS = 64 };

/* The i-th row to be looked at: of few rows all are, of many four fixed and random ones. */
static int64_t sampled_row(int64_t rows, int64_t i)
{
    const int64_t fixed[] = { 0, rows - 1, rows / 2, rows / 2 - 1 };
    if (rows <= SAMPLED_ROWS)
        return i;
    return i < 4 ? fixed[i] : (int64_t)(mix64(5, (uint64_t)i) >> 1) % rows;
}

static void compare_sample(struct comparison *c, const struct call *call)
{
    struct oracle *oracle = oracle_create(call);
    for (int o = 0; o < call->n_outputs; o++) {
        const int64_t rows = call->outputs[o].rows, width = call->outputs[o].width;
        double *want = malloc((size_t)(2 * width + 1) * sizeof *want);
        const bool ready = require(c->tally, oracle && want, "out of memory");
        for (int64_t i = 0; ready && i < rows && i < SAMPLED_ROWS; i++) {
            const int64_t r = sampled_row(rows, i);
            oracle_row(oracle, o, r, want, want + width);
            compare_values(c, o, r, 0, width, want, want + width);
        }
        free(want);
    }
    oracle_destroy(oracle);
}

void suite_problem(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    struct comparison c;
    const struct problem *p = run->options->only;
    if (!p || p->kernel != kernel)
        return;
    conduct_sweep(run, p); /* before any other call */
    if (tally_begin_problem(&t, run, p, "accuracy", "problem")) {
        compare_begin(&c, &t);
        compare_problem(&c, p, -1);
        compare_end(&c);
        tally_end(&t);
    }
    memory_sweep(run, p);
}

static void check_shape(struct suite_run *run, const struct problem *p, size_t i)
{
    const bool scores = kernel_on_scores(p->kernel), planned = kernel_has_plan(p->kernel);
    struct tally t;
    struct comparison c;
    if (!tally_begin_problem(&t, run, p, "accuracy",
                             "model%zu-%s%" PRId64 "-%s%" PRId64 "-d%" PRId64, i,
                             scores ? "q" : "b", scores ? p->queries : p->batch,
                             scores ? "k" : "t", scores ? p->keys : p->tokens,
                             scores    ? p->heads
                             : planned ? p->freqs.dim
                                       : p->dim))
        return;
    const struct call *call = tally_run(&t, p, NULL, NULL);
    compare_begin(&c, &t);
    if (call) {
        compare_next(&c, call, run->backend, -1);
        compare_sample(&c, call);
    }
    compare_end(&c);
    tally_end(&t);
}

void suite_model(struct suite_run *run, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < run->options->n_problems; i++)
        if (run->options->problem[i].kernel == kernel)
            check_shape(run, &run->options->problem[i], i);
}
