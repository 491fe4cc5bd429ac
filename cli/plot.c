/*
 * posenc plot: pictures of an encoding and of its errors.
 */
#define _POSIX_C_SOURCE 200809L
#include "../reports/plot.h"
#include "errors.h"
#include "outputs.h"
#include "select.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const picture_formats[] = { "png", "svg", NULL };

/* "png" alone is posenc-KIND.png: the figures are on stdout.  "png:-" puts the
 * picture there. */
static void name_files(struct cli *cli, const char *kind, char (*names)[64])
{
    if (cli->out.n == 0) {
        cli->out.item[cli->out.n++] = "png";
    }
    for (size_t i = 0; i < cli->out.n; i++) {
        const char *format = cli->out.item[i];
        if (strcmp(format, "png") == 0 || strcmp(format, "svg") == 0) {
            snprintf(names[i], sizeof names[i], "%s:posenc-%s.%s", format, kind, format);
            cli->out.item[i] = names[i];
        }
    }
}

/* A picture replaces a file: a device or a pipe would be replaced, too. */
static int check_targets(const struct cli *cli, const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        if (outputs->output[i].path != NULL && outputs->output[i].temporary == NULL) {
            return cli_refuse(cli, "--out", outputs->output[i].path,
                              "expected an ordinary file for a picture");
        }
    }
    return EXIT_FINE;
}

static struct plot_target target_of(const struct out_file *output)
{
    return (struct plot_target){ output->format,
                                 output->path != NULL ? output->temporary : NULL };
}

static FILE *facts_stream(const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        if (outputs->output[i].path == NULL) {
            return stderr; /* stdout is a picture */
        }
    }
    return stdout;
}

static int draw_sinusoidal(struct cli *cli, const struct outputs *outputs)
{
    struct table table = { 0 };
    if (cli->tokens == INT64_MIN) {
        cli->tokens = 64;
    }
    if (cli->dim == INT64_MIN) {
        cli->dim = 128;
    }
    if (cli->tokens < 2 || cli->tokens > 4096) {
        return cli_refuse(cli, "--tokens", NULL, "expected from 2 to 4096 for a picture");
    }
    if (cli->dim > 4096) {
        return cli_refuse(cli, "--dim", NULL, "expected at most 4096 for a picture");
    }
    if (table_compute(cli, POSENC_KERNEL_sinusoidal, &table) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    int status = EXIT_FINE;
    char error[PLOT_ERROR];
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++) {
        struct plot_target target = target_of(&outputs->output[i]);
        if (plot_sinusoidal(table.array[0], table.rows, table.width, table.positions[0],
                            table.caption, &target, error) != 0) {
            status = cli_refuse(cli, "plot", NULL, "%s", error);
        }
    }
    if (status == EXIT_FINE) {
        plot_sinusoidal_facts(table.array[0], table.rows, table.width, facts_stream(outputs));
    }
    table_free(&table);
    return status;
}

static int draw_error(struct cli *cli, const struct outputs *outputs)
{
    struct selection selected;
    struct errors errors;
    int64_t dim = cli->dim != INT64_MIN ? cli->dim : 128;
    if (cli->tokens != INT64_MIN || cli->first != INT64_MIN || cli->layout >= 0 ||
        cli->profile >= 0 || cli->convention >= 0) {
        return cli_refuse(
            cli, "error", NULL,
            "has no --tokens, --first, --layout, --profile or --convention: expected --dim, "
            "--rope-theta, --backend, --plugin, --out");
    }
    if (dim % 2 != 0) {
        return cli_refuse(cli, "--dim", NULL, "expected an even integer from 2 to 65536");
    }
    if (select_all(cli, &selected, false) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    if (errors_measure(&selected, dim, isnan(cli->rope_theta) ? 10000.0 : cli->rope_theta,
                       &errors) != 0) {
        return cli_refuse(cli, "error", NULL,
                          "could not be measured with this --dim and --rope-theta");
    }
    int status = EXIT_FINE;
    char error[PLOT_ERROR];
    for (size_t i = 0; i < outputs->n && status == EXIT_FINE; i++) {
        struct plot_target target = target_of(&outputs->output[i]);
        if (plot_error(errors.curves, errors.n, errors.caption, &target, error) != 0) {
            status = cli_refuse(cli, "plot", NULL, "%s", error);
        }
    }
    if (status == EXIT_FINE) {
        errors_facts(&errors, facts_stream(outputs));
    }
    errors_free(&errors);
    return status;
}

int command_plot(struct cli *cli)
{
    static const char *const kinds[] = { "sinusoidal", "error" };
    struct outputs outputs;
    char names[LIST_MAX][64];
    if (cli->n_operands == 0) {
        return cli_refuse(cli, "KIND", NULL, "expected one of sinusoidal, error");
    }
    if (cli->n_operands > 1) {
        return cli_refuse(cli, "unexpected argument", cli->operands[1], "expected one KIND");
    }
    bool sinusoidal = strcmp(cli->operands[0], kinds[0]) == 0;
    if (!sinusoidal && strcmp(cli->operands[0], kinds[1]) != 0) {
        return cli_refuse_name(cli, "KIND", cli->operands[0], kinds, 2);
    }
    char error[PLOT_ERROR];
    if (!plot_available(error)) {
        return cli_refuse(cli, "plot", NULL, "%s", error);
    }
    name_files(cli, cli->operands[0], names);
    if (outputs_open(cli, &outputs, picture_formats, "png") != EXIT_FINE) {
        return EXIT_USAGE;
    }
    int status = check_targets(cli, &outputs);
    if (status == EXIT_FINE) {
        status = sinusoidal ? draw_sinusoidal(cli, &outputs) : draw_error(cli, &outputs);
    }
    if (status != EXIT_FINE) {
        outputs_discard(&outputs);
        return status;
    }
    struct outputs written = outputs; /* the paths, for afterwards */
    status = outputs_commit(cli, &outputs);
    for (size_t i = 0; i < written.n && status == EXIT_FINE; i++) {
        if (written.output[i].path != NULL) {
            fprintf(stderr, "written: %s\n", written.output[i].path);
        }
    }
    return status;
}
