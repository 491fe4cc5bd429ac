/*
 * Suites of problems that the options contain. Each problem of --model is a case at its real size: all values are
 * compared with the oracle. The problems of all presets are one case for each dtype:
 *
 *   presets       every distinct call in f32; with options->exhaustive in 16 bits, too
 *
 * For the problem of --problem (options->only), memory accesses and side effects are checked, too.
 */
#include "suites.h"
#include "conformance/engine/judge.h"

#include <inttypes.h>
#include <stdio.h>

/* Compares a problem with the oracle, as the case of this name. */
static void check_accuracy(struct suite_run *run, const struct problem *p, const char *name)
{
    struct tally t;
    struct comparison c;
    if (!tally_begin_problem(&t, run, p, "accuracy", "%s", name))
        return;
    compare_begin(&c, &t);
    compare_problem(&c, p, RANGE_FARTHEST);
    compare_end(&c);
    tally_end(&t);
}

void suite_problem(struct suite_run *run, enum posenc_kernel kernel)
{
    const struct problem *p = run->options->only;
    if (!p || p->kernel != kernel)
        return;
    if (!run->options->program)
        side_effects_sweep(run,
                           p); /* first, as a kernel's first call may write static memory */
    check_accuracy(run, p, "problem");
    if (!run->options->program)
        memory_sweep(run, p);
}

/* Writes the name of problem number i of options->problem. */
static void print_name(const struct problem *p, size_t i, char name[64])
{
    if (kernel_on_scores(p->kernel))
        snprintf(name, 64, "model%zu-q%" PRId64 "-k%" PRId64 "-d%" PRId64, i, p->queries,
                 p->keys, p->heads);
    else
        snprintf(name, 64, "model%zu-b%" PRId64 "-t%" PRId64 "-d%" PRId64, i, p->batch,
                 p->tokens, kernel_has_freqs(p->kernel) ? p->freqs.dim : p->dim);
}

void suite_model_id(const struct problem *p, size_t i, char id[96])
{
    char name[64];
    print_name(p, i, name);
    snprintf(id, 96, "%s/%s/%s/%s", posenc_kernel_name(p->kernel), dtype_names[p->dtype],
             problem_numerics_name(p), name);
}

static void check_model_call(struct suite_run *run, const struct problem *p, size_t i)
{
    char name[64];
    print_name(p, i, name);
    check_accuracy(run, p, name);
}

/* Checks a call of the presets in a dtype. */
static void check_preset(struct tally *t, struct problem p, enum posenc_dtype dtype)
{
    p.dtype = dtype;
    t->problem = &p;
    const struct call *call = tally_run(t, &p, NULL, NULL);
    if (call)
        require_within_limits(t, call, t->run->backend);
    t->problem = NULL;
    tally_free_calls(t);
}

static void check_presets(struct suite_run *run, enum posenc_kernel kernel,
                          enum posenc_dtype dtype)
{
    const struct conf_options *options = run->options;
    const bool runs_dtype = dtype == POSENC_DTYPE_F32 || options->exhaustive;
    struct tally t;
    size_t n = 0;
    for (size_t i = 0; i < options->n_presets; i++)
        n += options->presets[i].kernel == kernel;
    if (n == 0 || !tally_begin(&t, run, kernel, dtype, "accuracy", NULL, "presets"))
        return;
    for (size_t i = 0; i < options->n_presets && runs_dtype; i++)
        if (options->presets[i].kernel == kernel)
            check_preset(&t, options->presets[i], dtype);
    if (!runs_dtype)
        tally_skip(&t, "16-bit calls of the presets: run --exhaustive, or --model M --full "
                       "--dtype f16,bf16");
    tally_end(&t);
}

void suite_model(struct suite_run *run, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < run->options->n_problems; i++)
        if (run->options->problem[i].kernel == kernel)
            check_model_call(run, &run->options->problem[i], i);
    for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16; dtype++)
        check_presets(run, kernel, (enum posenc_dtype)dtype);
}
