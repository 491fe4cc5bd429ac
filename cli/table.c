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

static int take_kernel(const struct cli *cli, enum posenc_kernel *kernel)
{
    if (cli->n_operands != 1) {
        return cli_refuse(cli, cli->n_operands == 0 ? "KERNEL" : "unexpected argument",
                          cli->n_operands == 0 ? NULL : cli->operands[1],
                          "expected one of sinusoidal, rope_table");
    }
    if (select_kernel(cli, "KERNEL", cli->operands[0], kernel) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    if (*kernel != POSENC_KERNEL_sinusoidal && *kernel != POSENC_KERNEL_rope_table) {
        return cli_refuse(
            cli, "KERNEL", cli->operands[0],
            "is applied to tensors and has no table: expected one of sinusoidal, rope_table");
    }
    return EXIT_FINE;
}

static int refuse_two_arrays(const struct cli *cli, enum posenc_kernel kernel,
                             const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n && kernel == POSENC_KERNEL_rope_table; i++) {
        if (strcmp(outputs->output[i].format, "npy") == 0) {
            return cli_refuse(
                cli, "--out", "npy",
                "one file holds one array and rope_table has two: expected csv or safetensors");
        }
    }
    return EXIT_FINE;
}

int command_table(struct cli *cli)
{
    enum posenc_kernel kernel;
    struct outputs outputs;
    struct table table = { 0 };
    if (take_kernel(cli, &kernel) != EXIT_FINE ||
        outputs_open(cli, &outputs, table_formats, "csv") != EXIT_FINE) {
        return EXIT_USAGE;
    }
    if (refuse_two_arrays(cli, kernel, &outputs) != EXIT_FINE ||
        table_compute(cli, kernel, &table) != EXIT_FINE) {
        outputs_discard(&outputs);
        return EXIT_USAGE;
    }
    bool written = true;
    for (size_t i = 0; i < outputs.n && written; i++) {
        written = table_write(&table, outputs.output[i].format, outputs.output[i].stream);
    }
    table_free(&table);
    if (!written) {
        outputs_discard(&outputs);
        return cli_refuse_status(cli, "table", POSENC_ERR_MEMORY, NULL);
    }
    return outputs_commit(cli, &outputs);
}
