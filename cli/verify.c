/*
 * posenc verify: does each backend conform?
 */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "in_depth.h"
#include "work.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const suites[] = { "vectors",    "accuracy", "digests", "memory",
                                      "properties", "conduct",  "random" };
enum { N_SUITES = sizeof suites / sizeof *suites };

static int check_arguments(const struct cli *cli)
{
    if (cli->n_operands > 0)
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    bool known = !cli->suite;
    for (size_t i = 0; i < N_SUITES && !known; i++)
        known = strcmp(cli->suite, suites[i]) == 0;
    if (!known)
        return cli_refuse_name(cli, "--suite", cli->suite, suites, N_SUITES);
    if (cli->update_budgets && !cli->budgets)
        return cli_refuse(cli, "--update-budgets", NULL,
                          "expected --budgets FILE beside it: the file to write");
    /* Limits lowered from some of the cases would make the others fail. */
    if (cli->update_budgets &&
        (!cli->full || cli->kernel.n > 0 || cli->cases.n > 0 || cli->shard))
        return cli_refuse(cli, "--update-budgets", NULL,
                          "expected --full beside it, and every kernel and case in one run");
    if (cli->budgets && access(cli->budgets, cli->update_budgets ? R_OK | W_OK : R_OK) != 0)
        return cli_refuse(cli, "--budgets", cli->budgets, "%s: expected a budgets file",
                          strerror(errno));
    return EXIT_FINE;
}

/* Once it is known which backends there are. */
static int read_budgets(const struct work *work)
{
    char error[512];
    budgets_know(work->selected.backends, work->selected.n);
    if (work->cli->budgets && budgets_read(work->cli->budgets, error) != 0)
        return cli_refuse(work->cli, "--budgets", NULL, "%s", error); /* it names the file */
    return EXIT_FINE;
}

/* With a model, the kernels it uses. */
static void narrow_to_models(struct work *work)
{
    for (size_t m = 0; m < work->n_models && work->cli->kernel.n == 0; m++) {
        for (size_t i = 0; i < work->models[m].n_verify; i++)
            work->selected.kernels[work->models[m].verify[i].kernel] =
                work->selected.any_kernel = true;
        for (size_t i = 0; i < work->models[m].n_cases; i++)
            work->selected.kernels[work->models[m].cases[i].problem.kernel] = true;
    }
}

/* Of the time for problems that are drawn, what one kernel and backend have. */
static double share_of_budget(const struct work *work)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t asked = work->cli->jobs;
    const double at_once = asked != INT64_MIN ? (double)asked : cpus > 0 ? (double)cpus : 1.0;
    double kernels = 0.0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        kernels += !work->selected.any_kernel || work->selected.kernels[k];
    if (isnan(work->cli->budget) || kernels * (double)work->selected.n <= 0.0)
        return 0.0;
    return work->cli->budget * at_once / (kernels * (double)work->selected.n);
}

static int lower_budgets(struct work *work)
{
    char error[512];
    int lowered = budgets_update(work->cli->budgets, work->kept, work->n_kept, error);
    if (lowered < 0)
        return cli_refuse(work->cli, "--budgets", work->cli->budgets, "%s", error);
    text_print(stderr, "posenc verify: %d limits lowered in %s\n", lowered, work->cli->budgets);
    return EXIT_FINE;
}

int command_verify(struct cli *cli)
{
    struct work work = { 0 };
    if (cli->verbose)
        return verify_in_depth(cli);
    if (check_arguments(cli) != EXIT_FINE ||
        work_begin(&work, cli, BY_VERIFY, true, true) != EXIT_FINE)
        return EXIT_USAGE;
    if (read_budgets(&work) != EXIT_FINE) {
        work_give_up(&work);
        return EXIT_USAGE;
    }
    narrow_to_models(&work);
    struct conf_options options = { .full = cli->full || cli->exhaustive,
                                    .exhaustive = cli->exhaustive,
                                    .suite = cli->suite,
                                    .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                                    .budget_s = share_of_budget(&work) };
    int status = work_verify(&work, &options);
    if (status == EXIT_FINE)
        status = work_check_patterns(&work);
    if (status != EXIT_FINE) {
        work_give_up(&work);
        return status;
    }
    const size_t judged = work.n_judged + work.elsewhere, failed = work.n_failed;
    if (cli->update_budgets && failed == 0)
        status = lower_budgets(&work);
    int ended = work_end(&work, true);
    if (ended != EXIT_FINE || status != EXIT_FINE)
        return EXIT_USAGE;
    return failed > 0 ? EXIT_CONFORMANCE : judged > 0 ? EXIT_FINE : EXIT_NOTHING;
}
