/*
 * Runs suites on one implementation, kernel by kernel. If a backend cannot run here, each of its
 * kernels gets a result with the reason. A provided kernel that no case runs is a failure.
 */
#define _POSIX_C_SOURCE 200809L
#include "tally.h"

#include "conformance/problem/notation.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

const char *const conf_status_name[] = { "pass",    "fail",         "crash",    "unsupported",
                                         "skipped", "inconclusive", "elsewhere" };

void conf_print_problem(char line[PROBLEM_LINE], const struct problem *problem)
{
    if (notation_print(problem, NULL, line, PROBLEM_LINE) >= PROBLEM_LINE)
        line[0] = '\0';
}

bool conf_selects(const struct conf_options *options, enum posenc_kernel kernel)
{
    bool any = false;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        any = any || options->kernels[k];
    return !any || options->kernels[kernel];
}

static bool is_excepted(const struct conf_options *options, const char *id)
{
    for (int i = 0; i < MOST_EXCEPT && options->except[i]; i++)
        if (fnmatch(options->except[i], id, 0) == 0)
            return true;
    return false;
}

/* Returns true if this process runs a check. Reports others as CONF_ELSEWHERE, so that the sink gets all ids. */
static bool is_wanted_here(struct suite_run *run, const char *id)
{
    const struct conf_options *options = run->options;
    if (!options->wants || options->wants(options->wants_user, run->backend, id))
        return true;
    struct conf_result r = {
        .kernel = run->kernel, .suite = "all", .backend = run->backend, .status = CONF_ELSEWHERE
    };
    snprintf(r.id, sizeof r.id, "%s", id);
    run->n_elsewhere++;
    run->sink(run->user, &r);
    return false;
}

bool suite_selected(struct suite_run *run, const char *id)
{
    const bool is_16_bit = strstr(id, "/f16/") || strstr(id, "/bf16/");
    return (!is_16_bit || run->backend->f16_bf16) &&
           (!run->options->case_glob || fnmatch(run->options->case_glob, id, 0) == 0) &&
           !is_excepted(run->options, id) && is_wanted_here(run, id);
}

void suite_report(struct suite_run *run, struct conf_result *result)
{
    const bool failed = result->status == CONF_FAIL || result->status == CONF_CRASH;
    result->backend = run->backend;
    run->failed += failed;
    run->n_entered += failed || result->status == CONF_PASS;
    run->sink(run->user, result);
}

void suite_announce(struct suite_run *run, const struct conf_result *result)
{
    struct conf_result early = *result;
    early.backend = run->backend;
    if (run->options->fails)
        run->options->fails(run->options->wants_user, &early);
}

/* Reports the reason why a kernel has no results, so that no kernel is missing from a report. */
static void report_kernel(struct suite_run *run, enum posenc_kernel kernel,
                          enum conf_status status, const char *reason)
{
    struct conf_result r = { .kernel = kernel,
                             .suite = run->options->suite ? run->options->suite : "all",
                             .numerics = "given",
                             .status = status };
    snprintf(r.id, sizeof r.id, "%s/f32/%s", posenc_kernel_name(kernel),
             status == CONF_UNSUPPORTED ? "unsupported" : "never-entered");
    snprintf(r.reason, sizeof r.reason, "%s", reason);
    if (is_wanted_here(run, r.id))
        suite_report(run, &r);
}

static void run_suites(struct suite_run *run, const struct suite *suites, size_t n,
                       enum posenc_kernel kernel)
{
    const struct conf_options *options = run->options;
    run->kernel = kernel;
    run->n_entered = run->n_elsewhere = 0;
    for (size_t s = 0; s < n; s++) {
        bool is_selected = !options->suite || strcmp(options->suite, suites[s].name) == 0;
        is_selected = is_selected && suites[s].programs >= options->program &&
                      !(options->no_accuracy && strcmp(suites[s].name, "accuracy") == 0);
        if (is_selected)
            suites[s].run(run, kernel);
    }
    if (!run->n_entered && !run->n_elsewhere && !options->suite && !options->case_glob &&
        options->program != PROGRAM_ANSWERED)
        report_kernel(run, kernel, CONF_FAIL,
                      options->program ? "no prompt was answered, although the hello offers it"
                                       : "no case entered this kernel");
}

size_t engine_run(const struct suite *suites, size_t n,
                  const struct implementation *implementation,
                  const struct conf_options *options, conf_sink *sink, void *user)
{
    struct suite_run run = { .options = options,
                             .implementation = implementation,
                             .backend = implementation->backend,
                             .sink = sink,
                             .user = user };
    const char *unavailable_reason = posenc_backend_unavailable_reason(implementation->backend);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        const enum posenc_kernel kernel = (enum posenc_kernel)k;
        if (!conf_selects(options, kernel) ||
            !posenc_backend_provides(implementation->backend, kernel))
            continue;
        run.kernel = kernel;
        if (unavailable_reason)
            report_kernel(&run, kernel, CONF_UNSUPPORTED, unavailable_reason);
        else
            run_suites(&run, suites, n, kernel);
    }
    return run.failed;
}
