/*
 * posenc bench: how fast is each backend, and how near the roof?
 */
#define _POSIX_C_SOURCE 200809L
#define POSENC_EXPERIMENTAL
#include "instructions.h"
#include "probe.h"
#include "tuned.h"
#include "work.h"

#include <math.h>
#include <stdlib.h>

/* A wrong output outweighs all that was timed; where nothing was, a refused shape outweighs a
 * kernel nobody has; what a shard has nothing of, the others have. */
static int exit_code(const struct work *work)
{
    return work->worst == BENCH_WRONG              ? EXIT_CONFORMANCE
           : work->timed                           ? EXIT_FINE
           : work->n_timed == 0 && work->elsewhere ? EXIT_FINE
           : work->worst == BENCH_REFUSED          ? EXIT_USAGE
                                                   : EXIT_NOTHING;
}

/* Selects the tuning file that is to be checked. */
static int use_tuning(const struct cli *cli)
{
    char why[TUNED_WHY];
    const enum posenc_status status =
        cli->tuning ? posenc_select_profile(cli->tuning, why, sizeof why) : POSENC_OK;
    if (status)
        cli_refuse(cli, "tuning file", NULL, "%s", why);
    return status == POSENC_OK                ? EXIT_FINE
           : status == POSENC_ERR_UNSUPPORTED ? EXIT_INCOMPARABLE
                                              : EXIT_USAGE;
}

int command_bench(struct cli *cli)
{
    struct work work = { 0 };
    if (cli->n_operands > 0)
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    if (cli->probe)
        return probe_machine(cli);
    if (cli->instructions)
        return instructions_command(cli);
    if (cli->tune)
        cli->command = "tune"; /* which reads the records */
    const int refused = use_tuning(cli);
    if (refused)
        return refused;
    if (work_begin(&work, cli, BY_BENCH, false, false) != EXIT_FINE)
        return EXIT_USAGE;
    work_keep_to_plugins(&work);
    struct bench_case *cases = NULL;
    size_t n = cli->tune           ? work_tuning_cases(&work, &cases)
               : cli->problem      ? work_problem_case(&work, &cases)
               : work.n_models > 0 ? work_model_cases(&work, &cases)
                                   : work_footprint_cases(&work, &cases);
    int status = work_bench(&work, cases, n, isnan(cli->budget) ? 0.0 : cli->budget);
    free(cases);
    if (status == EXIT_FINE && !cli->tune && !cli->problem && work.n_models == 0)
        work_overhead(&work);
    if (status == EXIT_FINE)
        status = work_check_patterns(&work);
    if (status != EXIT_FINE) {
        work_give_up(&work);
        return status;
    }
    int verdict = exit_code(&work);
    status = work_end(&work, true);
    if (status == EXIT_FINE && verdict == EXIT_USAGE) {
        return cli_refuse(cli, "shapes", NULL,
                          "none could be timed: expected smaller ones, or more memory; the "
                          "results say why");
    }
    return status != EXIT_FINE ? status : verdict;
}
