/*
 * posenc table: the numbers of a table kernel, computed by one backend, as csv, npy or
 * safetensors.
 */
#define _POSIX_C_SOURCE 200809L
#include "outputs.h"
#include "select.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

static const unsigned table_kinds[] = { TABLE_SINUSOIDAL, TABLE_ROPE };
enum { N_KINDS = sizeof table_kinds / sizeof *table_kinds };

static int take_kind(const struct cli *cli, unsigned *kind)
{
    char expected[128] = "expected one of";
    for (size_t i = 0; i < N_KINDS; i++) {
        size_t at = strlen(expected);
        snprintf(expected + at, sizeof expected - at, "%s %s", i > 0 ? "," : "",
                 cli_kind_name(table_kinds[i]));
    }
    if (cli->n_operands != 1)
        return cli_refuse(cli, cli->n_operands == 0 ? "KERNEL" : "unexpected argument",
                          cli->n_operands == 0 ? NULL : cli->operands[1], "%s", expected);
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strcmp(cli->operands[0], cli_kind_name(table_kinds[i])) == 0) {
            *kind = table_kinds[i];
            return EXIT_FINE;
        }
    }
    enum posenc_kernel kernel;
    return select_kernel(cli, "KERNEL", cli->operands[0], &kernel) != EXIT_FINE
               ? EXIT_USAGE
               : cli_refuse(cli, "KERNEL", cli->operands[0],
                            "is applied to tensors and has no table: %s", expected);
}

/* What a file of NumPy's cannot hold. */
static int refuse_npy(const struct cli *cli, const struct number_table *table,
                      const struct outputs *outputs)
{
    const char *why = table->n_arrays > 1 ? "one file holds one array and rope_table has two"
                      : table->dtype == POSENC_BF16 ? "NumPy has no bf16"
                                                    : NULL;
    for (size_t i = 0; i < outputs->n && why; i++)
        if (strcmp(outputs->output[i].format->name, "npy") == 0)
            return cli_refuse(cli, "--out", "npy", "%s: expected csv or safetensors", why);
    return EXIT_FINE;
}

/* By a problem's line, or by the options of a kernel. */
static int take_table(struct cli *cli, struct number_table *table)
{
    unsigned kind = 0;
    if (!cli->problem)
        return take_kind(cli, &kind) == EXIT_FINE ? table_compute(cli, kind, table)
                                                  : EXIT_USAGE;
    return cli->n_operands == 0
               ? table_of_problem(cli, table)
               : cli_refuse(cli, "KERNEL", cli->operands[0], "expected --problem alone");
}

int command_table(struct cli *cli)
{
    struct outputs outputs;
    struct number_table table = { 0 };
    if (outputs_open(cli, &outputs, table_formats, BY_ALL) != EXIT_FINE)
        return EXIT_USAGE;
    if (take_table(cli, &table) != EXIT_FINE ||
        refuse_npy(cli, &table, &outputs) != EXIT_FINE) {
        outputs_discard(&outputs);
        table_free(&table);
        return EXIT_USAGE;
    }
    bool written = true;
    for (size_t i = 0; i < outputs.n && written; i++)
        written = table_write(&table, outputs.output[i].format->name, outputs.output[i].stream);
    table_free(&table);
    if (!written) {
        outputs_discard(&outputs);
        return cli_refuse_status(cli, "table", POSENC_ERR_MEMORY, NULL);
    }
    return outputs_commit(cli, &outputs);
}
