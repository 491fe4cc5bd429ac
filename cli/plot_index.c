/*
 * posenc plot deberta, swin: which column or row of what is learned each query and key take, as
 * the kernels read it: what is learned is its own number.
 */
#define _POSIX_C_SOURCE 200809L
#include "apart.h"
#include "plot.h"
#include "select.h"

#include <stdlib.h>

/* 0, 1, 2, ...: n of them, exact in f32. */
static float *numbers(int64_t n)
{
    float *list = malloc((size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++)
        list[i] = (float)i;
    return list;
}

/* ---- deberta ---- */

/* column[2 reach + 1]: one query amid the keys, its distance from -reach to reach. */
static enum posenc_status compute_columns(const struct posenc_backend *backend,
                                          const struct plot_deberta *plot, float *column,
                                          struct posenc_error *error)
{
    int64_t keys = 2 * plot->reach + 1;
    int32_t *index = malloc((size_t)keys * sizeof *index);
    float *terms = numbers(plot->columns), *row = malloc((size_t)keys * sizeof *row);
    enum posenc_status status = POSENC_ERR_MEMORY;
    if (index && terms && row)
        status = posenc_deberta_index(1, keys, plot->reach, plot->position_buckets,
                                      plot->max_distance, index);
    if (status == POSENC_OK) {
        struct posenc_relative_args args = posenc_relative_args_init();
        args.error = error;
        args.index = index;
        args.c2p = posenc_const_dense(terms, 3, 1, 1, plot->columns, 0);
        args.out = posenc_dense(row, 3, 1, 1, keys, 0);
        apart_enter("relative_bias");
        status = posenc_relative_bias(backend, &args);
        apart_leave();
    }
    for (int64_t d = 0; d < keys && status == POSENC_OK; d++)
        column[d] = row[keys - 1 - d]; /* the last key is farthest after the query */
    free(index);
    free(terms);
    free(row);
    return status;
}

static int draw_deberta(const void *data, const struct plot_target *target,
                        char error[PLOT_ERROR])
{
    return plot_deberta(data, target, error);
}

/* Where columns end to be one for each distance, and the last one begins. */
static void deberta_facts(const struct plot_deberta *plot, FILE *out)
{
    const float *before = plot->column + plot->reach; /* by distance, keys before the query */
    int64_t shared = 1, last = plot->reach;
    while (shared < plot->reach && before[shared] == before[shared - 1] + 1.0f)
        shared++;
    while (last > 0 && before[last - 1] == before[plot->reach])
        last--;
    fprintf(out, "%s\ncolumn of distance 0: %g\n", plot->caption, (double)before[0]);
    fprintf(out, "a column for each distance up to %lld, the last one (%g) from %lld on\n",
            (long long)(shared - 1), (double)before[plot->reach], (long long)last);
    fprintf(out, "columns of distances 128 256 512 and their opposites:");
    for (int64_t d = 128; d <= 512 && d <= plot->reach; d *= 2)
        fprintf(out, " %g/%g", (double)before[d], (double)before[-d]);
    fputc('\n', out);
}

int command_plot_deberta(struct cli *cli, const struct outputs *outputs)
{
    const struct posenc_backend *backend;
    struct posenc_error error = { 0 };
    char caption[160];
    if (select_one(cli, POSENC_KERNEL_relative_bias, &backend) != EXIT_FINE)
        return EXIT_USAGE;
    struct plot_deberta plot = { .caption = caption,
                                 .position_buckets = plot_given(cli->position_buckets, 256),
                                 .max_distance = plot_given(cli->max_distance, 512) };
    bool buckets = plot.position_buckets > 0;
    if (buckets && (plot.position_buckets % 2 != 0 || plot.position_buckets < 4))
        return cli_refuse(cli, "--position-buckets", NULL,
                          "expected 0 or an even number from 4 on");
    if (buckets && plot.max_distance <= plot.position_buckets)
        return cli_refuse(cli, "--max-distance", NULL,
                          "expected above %lld, the --position-buckets",
                          (long long)plot.position_buckets);
    plot.columns = 2 * (buckets ? plot.position_buckets : plot.max_distance);
    plot.reach = plot.max_distance + plot.max_distance / 4;
    float *column = malloc((size_t)(2 * plot.reach + 1) * sizeof *column);
    plot.column = column;
    snprintf(caption, sizeof caption,
             "relative_bias, position_buckets %lld, max_distance %lld, %s",
             (long long)plot.position_buckets, (long long)plot.max_distance,
             plot_served(backend, POSENC_KERNEL_relative_bias));
    enum posenc_status made =
        column ? compute_columns(backend, &plot, column, &error) : POSENC_ERR_MEMORY;
    int status = made == POSENC_OK ? plot_draw(cli, outputs, draw_deberta, &plot)
                                   : cli_refuse_status(cli, "deberta", made, &error);
    if (status == EXIT_FINE)
        deberta_facts(&plot, plot_facts(outputs));
    free(column);
    return status;
}

/* ---- swin ---- */

static enum posenc_status compute_rows(const struct posenc_backend *backend,
                                       const struct plot_swin *plot, float *row,
                                       struct posenc_error *error)
{
    int64_t n = plot->height * plot->width;
    int32_t *index = malloc((size_t)(n * n) * sizeof *index);
    float *table = numbers(plot->rows);
    enum posenc_status status = POSENC_ERR_MEMORY;
    if (index && table)
        status = posenc_swin_index(plot->height, plot->width, index);
    if (status == POSENC_OK) {
        struct posenc_window_args args = posenc_window_args_init();
        args.error = error;
        args.index = index;
        args.table = posenc_const_dense(table, 2, plot->rows, 1, 0, 0);
        args.out = posenc_dense(row, 3, 1, n, n, 0);
        apart_enter("window_bias");
        status = posenc_window_bias(backend, &args);
        apart_leave();
    }
    free(index);
    free(table);
    return status;
}

static int draw_swin(const void *data, const struct plot_target *target, char error[PLOT_ERROR])
{
    return plot_swin(data, target, error);
}

static void swin_facts(const struct plot_swin *plot, FILE *out)
{
    int64_t n = plot->height * plot->width;
    fprintf(out, "%s\nrows of the first queries and keys:\n", plot->caption);
    for (int64_t i = 0; i < n && i < 4; i++) {
        for (int64_t j = 0; j < n && j < 8; j++)
            fprintf(out, " %4g", (double)plot->row[i * n + j]);
        fputs(n > 8 ? " ...\n" : "\n", out);
    }
}

int command_plot_swin(struct cli *cli, const struct outputs *outputs)
{
    const struct posenc_backend *backend;
    struct posenc_error error = { 0 };
    char caption[160];
    if (select_one(cli, POSENC_KERNEL_window_bias, &backend) != EXIT_FINE)
        return EXIT_USAGE;
    struct plot_swin plot = { .caption = caption, .height = plot_given(cli->window_height, 7) };
    plot.width = plot_given(cli->window_width, plot.height);
    plot.rows = (2 * plot.height - 1) * (2 * plot.width - 1);
    int64_t n = plot.height * plot.width;
    float *row = malloc((size_t)(n * n) * sizeof *row);
    plot.row = row;
    snprintf(caption, sizeof caption,
             "window_bias, %lld x %lld tokens, a table of %lld rows, %s",
             (long long)plot.height, (long long)plot.width, (long long)plot.rows,
             plot_served(backend, POSENC_KERNEL_window_bias));
    enum posenc_status made =
        row ? compute_rows(backend, &plot, row, &error) : POSENC_ERR_MEMORY;
    int status = made == POSENC_OK ? plot_draw(cli, outputs, draw_swin, &plot)
                                   : cli_refuse_status(cli, "swin", made, &error);
    if (status == EXIT_FINE)
        swin_facts(&plot, plot_facts(outputs));
    free(row);
    return status;
}
