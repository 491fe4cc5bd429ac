/*
 * posenc table: the numbers that a kernel computes, by one backend, as csv, npy or safetensors;
 * frequencies, and errors by position.
 */
#define _POSIX_C_SOURCE 200809L
#include "outputs.h"
#include "select.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

enum { OF_PROBLEM = TABLE_FREQUENCIES | TABLE_DRIFT }; /* of a problem, where one is given */

static int take_kind(const struct cli *cli, unsigned *kind)
{
    char kinds[128];
    cli_list_kinds(FOR_TABLE, kinds, sizeof kinds);
    if (cli->n_operands != 1)
        return cli_refuse(cli, cli->n_operands == 0 ? "TABLE" : "unexpected argument",
                          cli->n_operands == 0 ? NULL : cli->operands[1], "expected one of %s",
                          kinds);
    for (size_t i = 0; i < TABLE_KINDS; i++) {
        if (strcmp(cli->operands[0], cli_table_kinds[i].name) == 0) {
            *kind = cli_table_kinds[i].bit;
            return EXIT_FINE;
        }
    }
    enum posenc_kernel kernel;
    return select_kernel(cli, "TABLE", cli->operands[0], &kernel) != EXIT_FINE
               ? EXIT_USAGE
               : cli_refuse(cli, "TABLE", cli->operands[0],
                            "needs a whole problem: --problem '%s ...'; without one expected "
                            "one of %s",
                            cli->operands[0], kinds);
}

/* What a file of NumPy's cannot hold. */
static int refuse_npy(const struct cli *cli, const struct number_table *table,
                      const struct outputs *outputs)
{
    const char *why = table->n_arrays > 1 ? "one file holds one array, and here are two"
                      : table->dtype == POSENC_BF16 ? "NumPy has no bf16"
                                                    : NULL;
    for (size_t i = 0; i < outputs->n && why; i++)
        if (strcmp(outputs->output[i].format->name, "npy") == 0)
            return cli_refuse(cli, "--out", "npy", "%s: expected csv or safetensors", why);
    return EXIT_FINE;
}

/* Writes rows of numbers, of a problem's line where there is one, else of a kernel. */
static int write_rows(struct cli *cli, unsigned kind, const struct outputs *outputs)
{
    struct number_table table = { 0 };
    int status =
        cli->problem ? table_of_problem(cli, &table) : table_compute(cli, kind, &table);
    if (status == EXIT_FINE)
        status = refuse_npy(cli, &table, outputs);
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++)
        if (!table_write(&table, outputs->output[i].format->name, outputs->output[i].stream))
            status = cli_refuse_status(cli, "table", POSENC_ERR_MEMORY, NULL);
    table_free(&table);
    return status;
}

int command_table(struct cli *cli)
{
    struct outputs outputs;
    unsigned kind = 0;
    if ((!cli->problem || cli->n_operands > 0) && take_kind(cli, &kind) != EXIT_FINE)
        return EXIT_USAGE;
    if (cli->problem && kind & ~(unsigned)OF_PROBLEM)
        return cli_refuse(cli, "TABLE", cli->operands[0], "expected --problem alone");
    if (!cli->problem && kind == TABLE_DRIFT)
        return cli_refuse(cli, "TABLE", cli->operands[0],
                          "needs --problem 'rope_table profile=hf_f32 ...'");
    if (outputs_open(cli, &outputs, table_formats, BY_ALL) != EXIT_FINE)
        return EXIT_USAGE;
    const int status = kind & (OF_PROBLEM | TABLE_ERRORS) ? table_columns(cli, kind, &outputs)
                                                          : write_rows(cli, kind, &outputs);
    if (status == EXIT_FINE)
        return outputs_commit(cli, &outputs);
    outputs_discard(&outputs);
    return status;
}
