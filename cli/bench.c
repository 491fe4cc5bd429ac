/*
 * posenc bench: how fast is each backend, and how near the roof?
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"

#include <math.h>
#include <stdlib.h>

int command_bench(struct cli *cli)
{
    static const char *const formats[] = { "console", "md", "jsonl", "csv", NULL };
    struct work work = { 0 };
    if (cli->n_operands > 0) {
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    }
    if (!work_can_bench()) {
        return work_bench(&(struct work){ .cli = cli }, NULL, 0, 0.0);
    }
    if (work_begin(&work, cli, formats, "console", false, false) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    struct bench_case *cases = NULL;
    size_t n = work.n_models > 0 ? work_model_cases(&work, &cases)
                                 : work_footprint_cases(&work, &cases);
    int status = work_bench(&work, cases, n, isnan(cli->budget) ? 0.0 : cli->budget);
    free(cases);
    if (status == EXIT_FINE && work.n_timed == 0 && cli->cases.n > 0) {
        status = cli_refuse(
            cli, "--case", cli->cases.item[0],
            "matches nothing that was selected: expected a pattern such as 'rope_half/*'");
    }
    if (status != EXIT_FINE) {
        outputs_discard(&work.outputs);
        work_free(&work);
        return status;
    }
    bool some = work.n_timed > 0;
    status = work_end(&work, true);
    return status != EXIT_FINE ? status : some ? EXIT_FINE : EXIT_NOTHING;
}
