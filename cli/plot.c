/*
 * posenc plot: pictures of encodings and of their errors.
 */
#define _POSIX_C_SOURCE 200809L
#include "plot.h"
#include "errors.h"
#include "select.h"
#include "spec.h"
#include "reports/text/text.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct format picture_formats[] = {
    { "png", "png", BY_ALL, false, "pixels", "?PNG*", NULL },
    { "svg", "svg", BY_ALL, false, "lines, for any size", "<?xml *<svg*GNUPLOT*", NULL },
    { .name = NULL },
};

/* "png" alone is posenc-KIND.png: the figures are on stdout.  "png:-" puts the
 * picture there. */
static void name_files(struct cli *cli, const char *kind, char (*names)[64])
{
    if (cli->out.n == 0)
        cli->out.item[cli->out.n++] = "png";
    for (size_t i = 0; i < cli->out.n; i++) {
        const char *format = cli->out.item[i];
        if (format_find(picture_formats, BY_ALL, format, strlen(format))) {
            snprintf(names[i], sizeof names[i], "%s:posenc-%s.%s", format, kind, format);
            cli->out.item[i] = names[i];
        }
    }
}

/* A picture replaces a file: a device or a pipe would be replaced, too. */
static int check_targets(const struct cli *cli, const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        if (outputs->output[i].path && !outputs->output[i].temporary)
            return cli_refuse(cli, "--out", outputs->output[i].path,
                              "expected an ordinary file for a picture");
    }
    return EXIT_FINE;
}

static struct plot_target target_of(const struct out_file *output)
{
    return (struct plot_target){ output->format->name,
                                 output->path ? output->temporary : NULL };
}

FILE *plot_facts(const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++)
        if (!outputs->output[i].path)
            return stderr; /* stdout is a picture */
    return stdout;
}

int plot_draw(const struct cli *cli, const struct outputs *outputs, draw_function *draw,
              const void *data)
{
    char error[PLOT_ERROR];
    for (size_t i = 0; i < outputs->n; i++) {
        struct plot_target target = target_of(&outputs->output[i]);
        if (draw(data, &target, error) != 0)
            return cli_refuse(cli, "plot", NULL, "%s", error);
    }
    return EXIT_FINE;
}

int64_t plot_given(int64_t value, int64_t otherwise)
{
    return value != INT64_MIN ? value : otherwise;
}

const char *plot_served(const struct posenc_backend *backend, enum posenc_kernel kernel)
{
    if (!backend)
        backend = posenc_selection(kernel).backend;
    return backend ? backend->name : "no backend";
}

int plot_refuse_tokens(const struct cli *cli, int64_t most)
{
    if (cli->tokens == INT64_MIN || (cli->tokens >= 2 && cli->tokens <= most))
        return EXIT_FINE;
    char value[32];
    snprintf(value, sizeof value, "%lld", (long long)cli->tokens);
    return cli_refuse(cli, "--tokens", value, "expected from 2 to %lld for a picture",
                      (long long)most);
}

/* ---- sinusoidal ---- */

static int draw_table(const void *data, const struct plot_target *target,
                      char error[PLOT_ERROR])
{
    return plot_sinusoidal(data, target, error);
}

/* The curves: those of --dims, or what suits the number of positions. */
static int take_dims(const struct cli *cli, const struct number_table *table,
                     struct plot_sinusoidal *plot)
{
    const char *at = cli->dims;
    if (!at)
        plot_choose_curves(plot, table->wavelength);
    while (at) {
        char text[32];
        size_t length = strcspn(at, ",");
        int64_t d = -1;
        snprintf(text, sizeof text, "%.*s", (int)(length < 31 ? length : 31), at);
        if (plot->n_curves == PLOT_CURVES || !parse_integer(text, 0, table->width - 1, &d))
            return cli_refuse(
                cli, "--dims", cli->dims,
                "expected up to %d dimensions from 0 to %lld, separated by commas", PLOT_CURVES,
                (long long)(table->width - 1));
        plot->wavelength[plot->n_curves] = table->wavelength[d];
        plot->curve[plot->n_curves++] = d;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return EXIT_FINE;
}

static int draw_sinusoidal(struct cli *cli, const struct outputs *outputs)
{
    struct number_table table = { 0 };
    cli->tokens = plot_given(cli->tokens, 64);
    if (plot_refuse_tokens(cli, 4096) != EXIT_FINE)
        return EXIT_USAGE;
    if (cli->dim == INT64_MIN && cli->model.n == 0)
        cli->dim = 128;
    if (cli->dim > 4096)
        return cli_refuse(cli, "--dim", NULL, "expected at most 4096 for a picture");
    if (table_compute(cli, PICTURE_SINUSOIDAL, &table) != EXIT_FINE)
        return EXIT_USAGE;
    struct plot_sinusoidal plot = { .caption = table.caption,
                                    .tokens = table.rows,
                                    .dim = table.width,
                                    .first = table.positions[0],
                                    .table = table.array[0] };
    int status = take_dims(cli, &table, &plot);
    if (status == EXIT_FINE)
        status = plot_draw(cli, outputs, draw_table, &plot);
    if (status == EXIT_FINE)
        plot_sinusoidal_facts(table.array[0], table.rows, table.width, plot_facts(outputs));
    table_free(&table);
    return status;
}

/* ---- error ---- */

static int draw_curves(const void *data, const struct plot_target *target,
                       char error[PLOT_ERROR])
{
    const struct errors *errors = data;
    return plot_error(errors->curves, errors->n, errors->caption, target, error);
}

static int draw_error(struct cli *cli, const struct outputs *outputs)
{
    struct selection selected;
    struct errors errors;
    struct cli_spec spec;
    struct posenc_error error = { 0 };
    int status = spec_take(cli, PICTURE_ERROR, 128, &spec);
    if (status == EXIT_FINE)
        status = select_all(cli, &selected, false);
    if (status == EXIT_FINE)
        status = select_require(cli, &selected, POSENC_KERNEL_rope_table);
    if (status == EXIT_FINE) {
        spec_settle_length(cli, errors_last_position, &spec.freqs);
        enum posenc_status measured = errors_measure(&selected, &spec.freqs, &errors, &error);
        status = measured == POSENC_OK ? EXIT_FINE
                                       : cli_refuse_status(cli, "error", measured, &error);
    }
    spec_free(&spec);
    if (status != EXIT_FINE)
        return status;
    status = plot_draw(cli, outputs, draw_curves, &errors);
    if (status == EXIT_FINE)
        errors_facts(&errors, plot_facts(outputs));
    errors_free(&errors);
    return status;
}

/* ---- which ---- */

static const struct kind {
    unsigned bit;
    int (*draw)(struct cli *cli, const struct outputs *outputs);
} kinds[] = {
    { PICTURE_SINUSOIDAL, draw_sinusoidal },   { PICTURE_ROPE, command_plot_rope },
    { PICTURE_ALIBI, command_plot_alibi },     { PICTURE_T5, command_plot_t5 },
    { PICTURE_LEARNED, command_plot_learned }, { PICTURE_XPOS, command_plot_xpos },
    { PICTURE_BIAS, command_plot_bias },       { PICTURE_DEBERTA, command_plot_deberta },
    { PICTURE_SWIN, command_plot_swin },       { PICTURE_ERROR, draw_error },
    { PICTURE_SPEED, command_plot_speed },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int take_kind(const struct cli *cli, const struct kind **kind)
{
    const char *names[N_KINDS], *asked = cli->n_operands > 0 ? cli->operands[0] : "";
    *kind = NULL;
    for (size_t i = 0; i < N_KINDS; i++) {
        names[i] = cli_kind_name(kinds[i].bit);
        if (strcmp(asked, names[i]) == 0)
            *kind = &kinds[i];
    }
    const int operands = *kind && (*kind)->bit == PICTURE_SPEED ? 2 : 1;
    if (cli->n_operands > operands)
        return cli_refuse(cli, "unexpected argument", cli->operands[operands],
                          operands == 2 ? "expected one FILE" : "expected one KIND");
    if (*kind && cli->n_operands < operands)
        return cli_refuse(cli, "FILE", NULL,
                          "expected the records of posenc bench --out jsonl:FILE");
    return *kind ? EXIT_FINE : cli_refuse_name(cli, "KIND", asked, names, N_KINDS);
}

int command_plot(struct cli *cli)
{
    const struct kind *kind = NULL;
    struct outputs outputs;
    char file_names[LIST_MAX][64], error[PLOT_ERROR];
    if (take_kind(cli, &kind) != EXIT_FINE || cli_refuse_foreign(cli, kind->bit) != EXIT_FINE)
        return EXIT_USAGE;
    if (!plot_available(error))
        return cli_refuse(cli, "plot", NULL, "%s", error);
    name_files(cli, cli->operands[0], file_names);
    if (outputs_open(cli, &outputs, picture_formats, BY_ALL) != EXIT_FINE)
        return EXIT_USAGE;
    int status = check_targets(cli, &outputs);
    if (status == EXIT_FINE)
        status = kind->draw(cli, &outputs);
    if (status != EXIT_FINE) {
        outputs_discard(&outputs);
        return status;
    }
    struct outputs written = outputs; /* the paths, for afterwards */
    status = outputs_commit(cli, &outputs);
    for (size_t i = 0; i < written.n && status == EXIT_FINE; i++)
        if (written.output[i].path)
            text_print(stderr, "written: %s\n", written.output[i].path);
    return status;
}
