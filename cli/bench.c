/*
 * posenc bench: how fast is each backend, and how near the roof?
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What to exit with when the records hold no time: a wrong backend outweighs a refused shape,
 * and that outweighs a kernel nobody has. */
static int judge(const json_t *records)
{
    int status = EXIT_NOTHING;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        const char *why = record_text(record, "refused");
        if (strcmp(record_text(record, "t"), "bench") != 0) {
            continue;
        }
        if (*why == '\0') {
            return EXIT_FINE;
        }
        bool lacks = strcmp(why, "not provided") == 0 ||
                     strcmp(why, posenc_status_string(POSENC_ERR_NOT_PROVIDED)) == 0;
        if (strncmp(why, "wrong: ", 7) == 0 || strstr(why, "scalar is wrong: ") != NULL) {
            status = EXIT_CONFORMANCE;
        } else if (!lacks && status == EXIT_NOTHING) {
            status = EXIT_USAGE;
        }
    }
    return status;
}

int command_bench(struct cli *cli)
{
    struct work work = { 0 };
    if (cli->n_operands > 0) {
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    }
    if (work_begin(&work, cli, BY_BENCH, false, false) != EXIT_FINE) {
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
    int verdict = judge(work.records.list);
    status = work_end(&work, true);
    if (status == EXIT_FINE && verdict == EXIT_USAGE) {
        return cli_refuse(cli, "shapes", NULL,
                          "none could be timed: expected smaller ones, or more memory; the "
                          "results say why");
    }
    return status != EXIT_FINE ? status : verdict;
}
