/*
 * posenc plot alibi, t5: additive biases by distance, as the kernels compute them.
 */
#define _POSIX_C_SOURCE 200809L
#include "apart.h"
#include "plot.h"
#include "select.h"
#include "spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The problem of a model's bias, of kernel `kernel`; NULL where no model was named.  EXIT_FINE,
 * or EXIT_USAGE after a message. */
static int take_model(const struct cli *cli, enum posenc_kernel kernel, struct model *model,
                      const struct problem **problem)
{
    *problem = NULL;
    if (cli->model.n == 0)
        return EXIT_FINE;
    if (spec_load_model(cli, model) != EXIT_FINE)
        return EXIT_USAGE;
    enum signature_id wanted = kernel_signature(kernel);
    for (size_t i = 0; i < model->n_cases; i++) {
        if (kernel_signature(model->cases[i].problem.kernel) == wanted) {
            *problem = &model->cases[i].problem;
            return EXIT_FINE;
        }
    }
    return cli_refuse(cli, "--model", cli->model.item[0],
                      "its encoding is %s: expected a model with %s", model->encoding,
                      posenc_kernel_name(kernel));
}

/* ---- alibi ---- */

/* bias[head][distance]: one query, the last of n keys. */
static enum posenc_status compute_alibi(const struct posenc_backend *backend, double bias_max,
                                        int64_t heads, int64_t n, float *slopes, float *bias)
{
    enum posenc_status status = posenc_alibi_slopes(heads, bias_max, slopes);
    float *row = malloc((size_t)(heads * n) * sizeof *row);
    if (status == POSENC_OK && !row)
        status = POSENC_ERR_MEMORY;
    if (status == POSENC_OK) {
        struct posenc_alibi_args args = posenc_alibi_args_init();
        args.slopes = slopes;
        args.causal = true;
        args.query_offset = n - 1;
        args.out = posenc_dense(row, 3, heads, 1, n, 0);
        apart_enter("alibi");
        status = posenc_alibi(backend, &args);
        apart_leave();
    }
    for (int64_t h = 0; h < heads && status == POSENC_OK; h++)
        for (int64_t j = 0; j < n; j++)
            bias[h * n + n - 1 - j] = row[h * n + j];
    free(row);
    return status;
}

static int draw_alibi(const void *data, const struct plot_target *target,
                      char error[PLOT_ERROR])
{
    return plot_alibi(data, target, error);
}

static void alibi_facts(const struct plot_alibi *plot, FILE *out)
{
    fprintf(out, "%s\nslopes", plot->caption);
    for (int64_t h = 0; h < plot->heads; h++)
        fprintf(out, " %.6g", (double)plot->slopes[h]);
    int64_t last = plot->distances - 1;
    fprintf(out, "\nbias at distance %lld: head 1 %.6g, head %lld %.6g\n", (long long)last,
            (double)plot->bias[last], (long long)plot->heads,
            (double)plot->bias[(plot->heads - 1) * plot->distances + last]);
}

int command_plot_alibi(struct cli *cli, const struct outputs *outputs)
{
    struct model model = { 0 };
    const struct problem *problem;
    const struct posenc_backend *backend;
    if (take_model(cli, POSENC_KERNEL_alibi, &model, &problem) != EXIT_FINE ||
        plot_refuse_tokens(cli, 65536) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_alibi, &backend) != EXIT_FINE) {
        model_free(&model);
        return EXIT_USAGE;
    }
    int64_t heads = plot_given(cli->heads, problem ? problem->heads : 8);
    int64_t n = plot_given(cli->tokens, 128);
    double bias_max = problem ? problem->alibi_bias_max : 8.0;
    bias_max = isnan(cli->alibi_bias_max) ? bias_max : cli->alibi_bias_max;
    float *slopes = malloc((size_t)heads * sizeof *slopes);
    float *bias = malloc((size_t)(heads * n) * sizeof *bias);
    enum posenc_status made = POSENC_ERR_MEMORY;
    if (slopes && bias)
        made = compute_alibi(backend, bias_max, heads, n, slopes, bias);
    char caption[128];
    snprintf(caption, sizeof caption, "alibi, %lld heads, alibi_bias_max %g, %s",
             (long long)heads, bias_max, plot_served(backend, POSENC_KERNEL_alibi));
    struct plot_alibi plot = { caption, heads, n, bias, slopes };
    int status = made == POSENC_OK ? plot_draw(cli, outputs, draw_alibi, &plot)
                                   : cli_refuse_status(cli, "alibi", made, NULL);
    if (status == EXIT_FINE)
        alibi_facts(&plot, plot_facts(outputs));
    free(slopes);
    free(bias);
    model_free(&model);
    return status;
}

/* ---- t5 ---- */

struct t5 {
    const struct posenc_backend *backend;
    int64_t num_buckets, max_distance, reach;
    int32_t *thresholds;
    float *table; /* row b is b: the bias of a bucket is its number */
    struct posenc_error error;
};

/* The bucket of each relative position: one query amid 2 reach + 1 keys. */
static enum posenc_status compute_buckets(struct t5 *t5, bool bidirectional, float *buckets)
{
    enum posenc_status status =
        posenc_t5_thresholds(t5->num_buckets, t5->max_distance, bidirectional, t5->thresholds);
    if (status != POSENC_OK)
        return status;
    struct posenc_t5_args args = posenc_t5_args_init();
    args.error = &t5->error;
    args.num_buckets = t5->num_buckets;
    args.bidirectional = bidirectional;
    args.thresholds = t5->thresholds;
    args.query_offset = t5->reach;
    args.table = posenc_const_dense(t5->table, 2, t5->num_buckets, 1, 0, 0);
    args.out = posenc_dense(buckets, 3, 1, 1, 2 * t5->reach + 1, 0);
    return posenc_t5_bias(t5->backend, &args);
}

static int draw_t5(const void *data, const struct plot_target *target, char error[PLOT_ERROR])
{
    return plot_t5(data, target, error);
}

/* Where each bucket begins among the keys before the query, nearest first. */
static void print_starts(const struct plot_t5 *plot, const float *buckets, const char *name,
                         FILE *out)
{
    fprintf(out, "%s: buckets of keys before the query begin at distance 0", name);
    for (int64_t n = 1; n <= plot->reach; n++)
        if (buckets[plot->reach - n] != buckets[plot->reach - n + 1])
            fprintf(out, " %lld", (long long)n);
    fputc('\n', out);
}

static int refuse_t5(const struct cli *cli, const struct t5 *t5, enum posenc_status status)
{
    if (t5->error.what || status == POSENC_ERR_MEMORY)
        return cli_refuse_status(cli, "t5", status, &t5->error);
    char value[80];
    bool odd = t5->num_buckets % 2 != 0;
    snprintf(value, sizeof value, "%lld",
             (long long)(odd ? t5->num_buckets : t5->max_distance));
    return odd ? cli_refuse(cli, "--num-buckets", value, "expected an even number")
               : cli_refuse(cli, "--max-distance", value,
                            "expected above %lld, half of --num-buckets",
                            (long long)(t5->num_buckets / 2));
}

int command_plot_t5(struct cli *cli, const struct outputs *outputs)
{
    struct model model = { 0 };
    const struct problem *problem;
    struct t5 t5 = { 0 };
    if (take_model(cli, POSENC_KERNEL_t5_bias, &model, &problem) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_t5_bias, &t5.backend) != EXIT_FINE) {
        model_free(&model);
        return EXIT_USAGE;
    }
    t5.num_buckets = plot_given(cli->num_buckets, problem ? problem->num_buckets : 32);
    t5.max_distance = plot_given(cli->max_distance, problem ? problem->max_distance : 128);
    t5.reach = t5.max_distance + t5.max_distance / 4;
    size_t n = (size_t)(2 * t5.reach + 1);
    float *both = malloc(n * sizeof *both), *causal = malloc(n * sizeof *causal);
    t5.thresholds = malloc((size_t)t5.num_buckets * sizeof *t5.thresholds);
    t5.table = malloc((size_t)t5.num_buckets * sizeof *t5.table);
    enum posenc_status made = POSENC_ERR_MEMORY;
    if (both && causal && t5.thresholds && t5.table) {
        for (int64_t b = 0; b < t5.num_buckets; b++)
            t5.table[b] = (float)b;
        made = compute_buckets(&t5, true, both);
        made = made == POSENC_OK ? compute_buckets(&t5, false, causal) : made;
    }
    char caption[128];
    snprintf(caption, sizeof caption, "t5_bias, num_buckets %lld, max_distance %lld, %s",
             (long long)t5.num_buckets, (long long)t5.max_distance,
             plot_served(t5.backend, POSENC_KERNEL_t5_bias));
    struct plot_t5 plot = { caption, t5.num_buckets, t5.max_distance, t5.reach, both, causal };
    int status =
        made == POSENC_OK ? plot_draw(cli, outputs, draw_t5, &plot) : refuse_t5(cli, &t5, made);
    if (status == EXIT_FINE) {
        FILE *out = plot_facts(outputs);
        fprintf(out, "%s\n", caption);
        print_starts(&plot, both, "bidirectional", out);
        print_starts(&plot, causal, "causal", out);
    }
    free(both);
    free(causal);
    free(t5.thresholds);
    free(t5.table);
    model_free(&model);
    return status;
}
