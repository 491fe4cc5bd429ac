/*
 * Problems that are given.  A model's own shapes: rows of each against the oracle, the first and the last, both
 * neighbours of the middle, random ones; the last are where positions are longest.
 * One problem alone: all of its values, and how it treats memory.
 */
#include "suites.h"
#include "conformance/engine/judge.h"
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLED_ROWS = 64 };

static int64_t sampled_row(int64_t rows, int64_t i)
{
    const int64_t fixed[] = { 0, rows - 1, rows / 2, rows / 2 - 1 };
    int64_t r = i < 4 ? fixed[i] : (int64_t)(mix64(5, (uint64_t)i) >> 1) % rows;
    return r < 0 ? 0 : r;
}

static void shape_id(const struct problem *p, size_t i, char *id, size_t size)
{
    bool scores = kernel_on_scores(p->kernel);
    bool planned = kernel_has_plan(p->kernel);
    snprintf(id, size, "%s/%s/%s/model%zu-%s%" PRId64 "-%s%" PRId64 "-d%" PRId64,
             posenc_kernel_name(p->kernel), dtype_names[p->dtype], profile_name(p), i,
             scores ? "q" : "b", scores ? p->queries : p->batch, scores ? "k" : "t",
             scores ? p->keys : p->tokens,
             scores    ? p->heads
             : planned ? p->freqs.dim
                       : p->dim);
}

static void run_problem_rows(struct suite_run *run, const struct problem *p,
                             struct conf_result *r)
{
    struct call call;
    if (!run_call(&call, run, p, r))
        return;
    struct comparison c;
    compare_begin(&c);
    compare_next(&c, &call, run->backend, -1);
    struct oracle *oracle = oracle_create(&call);
    double *want = malloc((size_t)widest(&call) * 2 * sizeof *want);
    double *mass = want ? want + widest(&call) : NULL;
    for (int o = 0; oracle && want && o < call.n_outputs; o++) {
        int64_t rows = call.outputs[o].rows, n = rows < SAMPLED_ROWS ? rows : SAMPLED_ROWS;
        for (int64_t i = 0; i < n; i++) {
            int64_t row = rows <= SAMPLED_ROWS ? i : sampled_row(rows, i);
            oracle_row(oracle, o, row, want, mass);
            compare_values(&c, o, row, 0, call.outputs[o].width, want, mass);
        }
    }
    compare_settle(&c);
    compare_end(&c, r);
    free(want);
    oracle_destroy(oracle);
    call_destroy(&call);
}

/* Every value against the oracle, as those of the accuracy suite. */
static void run_values(struct suite_run *run, const struct problem *p)
{
    struct conf_result r = { .kernel = p->kernel,
                             .suite = "accuracy",
                             .profile = profile_name(p),
                             .coverage = "sampled" };
    struct comparison c;
    snprintf(r.id, sizeof r.id, "%s/%s/%s/problem", posenc_kernel_name(p->kernel),
             dtype_names[p->dtype], profile_name(p));
    if (!suite_selected(run, p->kernel, r.id))
        return;
    compare_begin(&c);
    if (compare_problem(&c, run, p, -1, &r))
        compare_end(&c, &r);
    suite_report(run, &r);
}

void suite_problem(struct suite_run *run)
{
    if (!run->options->only || !conf_selects(run->options, run->options->only->kernel))
        return;
    run_values(run, run->options->only);
    memory_sweep(run, run->options->only);
}

void suite_model(struct suite_run *run)
{
    for (size_t i = 0; i < run->options->n_problems; i++) {
        const struct problem *p = &run->options->problem[i];
        struct conf_result r = { .kernel = p->kernel,
                                 .suite = "accuracy",
                                 .profile = profile_name(p),
                                 .coverage = "sampled" };
        shape_id(p, i, r.id, sizeof r.id);
        if (!suite_selected(run, p->kernel, r.id))
            continue;
        run_problem_rows(run, p, &r);
        suite_report(run, &r);
    }
}
