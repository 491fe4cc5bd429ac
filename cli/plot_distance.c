/*
 * posenc plot bias, xpos: what falls with the distance.  Biases of several encodings in one
 * picture, and the product of a query and a key under xPos (Sun et al. 2212.10554), as the
 * kernels compute them.
 */
#define _POSIX_C_SOURCE 200809L
#include "apart.h"
#include "plot.h"
#include "select.h"
#include "spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Room for what a picture is made from; `text` is its caption. */
struct scratch {
    const struct posenc_backend *backend;
    struct posenc_error error;
    float *memory;
    char text[192];
};

static bool allot(struct scratch *s, int64_t floats)
{
    s->memory = malloc((size_t)floats * sizeof *s->memory);
    return s->memory != NULL;
}

/* ---- bias ---- */

/* Magnitudes that share an axis. */
static const float slope = 0.0625f, log_p = 2.0f, log_a = 1.0f, power_p = 0.5f, power_a = 1.0f,
                   sandwich_scale = 0.25f;
enum { SANDWICH_DIM = 128, BUCKETS = 32, BUCKETS_END = 128 };

/* Of one query, the last of n keys, from the farthest key on: turned round. */
static void by_distance(const float *row, int64_t n, float *bias)
{
    for (int64_t d = 0; d < n; d++)
        bias[d] = row[n - 1 - d];
}

static enum posenc_status alibi_curve(struct scratch *s, int64_t n, float *row, float *bias)
{
    struct posenc_alibi_args args = posenc_alibi_args_init();
    args.error = &s->error;
    args.slopes = &slope;
    args.causal = true;
    args.query_offset = n - 1;
    args.out = posenc_dense(row, 3, 1, 1, n, 0);
    enum posenc_status status = posenc_alibi(s->backend, &args);
    by_distance(row, n, bias);
    return status;
}

/* KERPLE's two and Sandwich are three heads of one call: values [3][n], rows [3][n]. */
static enum posenc_status distance_curves(struct scratch *s, int64_t n, float *values,
                                          float *rows, float *bias)
{
    struct posenc_distance_args args = posenc_distance_args_init();
    enum posenc_status status = posenc_kerple_log(1, &log_p, &log_a, 0, n, values);
    if (status == POSENC_OK)
        status = posenc_kerple_power(1, &power_p, &power_a, 0, n, values + n);
    if (status == POSENC_OK)
        status = posenc_sandwich(SANDWICH_DIM, 1, &sandwich_scale, 0, n, values + 2 * n);
    if (status != POSENC_OK)
        return status;
    args.error = &s->error;
    args.query_offset = n - 1;
    args.values = posenc_const_dense(values, 2, 3, n, 0, 0);
    args.out = posenc_dense(rows, 3, 3, 1, n, 0);
    status = posenc_distance_bias(s->backend, &args);
    for (int64_t c = 0; c < 3; c++)
        by_distance(rows + c * n, n, bias + c * n);
    return status;
}

/* A learned number for each bucket: here that of KERPLE at the bucket's least distance. */
static enum posenc_status t5_curve(struct scratch *s, int64_t n, float *row, float *bias)
{
    struct posenc_t5_args args = posenc_t5_args_init();
    int32_t thresholds[BUCKETS];
    float table[BUCKETS];
    enum posenc_status status = posenc_t5_thresholds(BUCKETS, BUCKETS_END, false, thresholds);
    for (int b = 0; b < BUCKETS && status == POSENC_OK; b++)
        status = posenc_kerple_log(1, &log_p, &log_a, thresholds[b], 1, &table[b]);
    if (status != POSENC_OK)
        return status;
    args.error = &s->error;
    args.num_buckets = BUCKETS;
    args.thresholds = thresholds;
    args.query_offset = n - 1;
    args.table = posenc_const_dense(table, 2, BUCKETS, 1, 0, 0);
    args.out = posenc_dense(row, 3, 1, 1, n, 0);
    status = posenc_t5_bias(s->backend, &args);
    by_distance(row, n, bias);
    return status;
}

static enum posenc_status compute_bias(struct scratch *s, int64_t n)
{
    float *bias = s->memory, *values = bias + BIAS_CURVES * n, *rows = values + 3 * n;
    enum posenc_status status = alibi_curve(s, n, rows, bias);
    status = status == POSENC_OK ? distance_curves(s, n, values, rows, bias + n) : status;
    return status == POSENC_OK ? t5_curve(s, n, rows, bias + 4 * n) : status;
}

static int draw_bias(const void *data, const struct plot_target *target, char error[PLOT_ERROR])
{
    return plot_bias(data, target, error);
}

static void bias_facts(const struct plot_bias *plot, FILE *out)
{
    fprintf(out, "%s\n%-34s", plot->caption, "bias at distance");
    for (int64_t d = 1; d < plot->distances; d *= 8)
        fprintf(out, " %8lld", (long long)d);
    for (int c = 0; c < BIAS_CURVES; c++) {
        fprintf(out, "\n%-34s", plot->names[c]);
        for (int64_t d = 1; d < plot->distances; d *= 8)
            fprintf(out, " %8.3f", (double)plot->bias[c * plot->distances + d]);
    }
    fputc('\n', out);
}

int command_plot_bias(struct cli *cli, const struct outputs *outputs)
{
    static const enum posenc_kernel kernels[] = { POSENC_KERNEL_alibi,
                                                  POSENC_KERNEL_distance_bias,
                                                  POSENC_KERNEL_t5_bias };
    struct scratch s = { 0 };
    int64_t n = plot_given(cli->tokens, 512);
    if (plot_refuse_tokens(cli, 65536) != EXIT_FINE)
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (select_one(cli, kernels[i], &s.backend) != EXIT_FINE)
            return EXIT_USAGE;
    enum posenc_status made =
        allot(&s, (BIAS_CURVES + 6) * n) ? compute_bias(&s, n) : POSENC_ERR_MEMORY;
    snprintf(s.text, sizeof s.text, "one head each, %s",
             plot_served(s.backend, POSENC_KERNEL_distance_bias));
    struct plot_bias plot = { s.text,
                              n,
                              { "ALiBi, slope 1/16", "KERPLE, -2 ln(1 + d)", "KERPLE, -d^0.5",
                                "Sandwich, dim 128, scale 1/4",
                                "T5, 32 buckets, like KERPLE's ln" },
                              s.memory };
    int status = made == POSENC_OK ? plot_draw(cli, outputs, draw_bias, &plot)
                                   : cli_refuse_status(cli, "bias", made, &s.error);
    if (status == EXIT_FINE)
        bias_facts(&plot, plot_facts(outputs));
    free(s.memory);
    return status;
}

/* ---- xpos ---- */

/* Ones at positions first, first + 1, ...: out[n][dim], turned by the plan's tables. */
static enum posenc_status turn_ones(struct scratch *s, const struct posenc_freqs *freqs,
                                    int64_t n, int64_t dim, float *out)
{
    float *cos = out + n * dim, *sin = cos + n * dim / 2;
    struct posenc_rope_table_args table = posenc_rope_table_args_init();
    struct posenc_rope_args args = posenc_rope_args_init();
    for (int64_t i = 0; i < n * dim; i++)
        out[i] = 1.0f;
    table.error = args.error = &s->error;
    table.freqs = freqs;
    table.cos = posenc_dense(cos, 2, n, dim / 2, 0, 0);
    table.sin = posenc_dense(sin, 2, n, dim / 2, 0, 0);
    args.cos = posenc_view(table.cos);
    args.sin = posenc_view(table.sin);
    args.out = posenc_dense(out, 3, n, 1, dim, 0);
    args.x = posenc_view(args.out);
    apart_enter("rope_table");
    enum posenc_status status = posenc_rope_table(s->backend, &table);
    if (status == POSENC_OK)
        status = posenc_rope_interleaved(s->backend, &args);
    apart_leave();
    return status;
}

/* The product of a query at n - 1, from a plan of its own, and keys at each offset before it.
 */
static enum posenc_status products(struct scratch *s, struct posenc_freqs_spec spec, int64_t n,
                                   double *product)
{
    struct posenc_freqs *plan[2] = { NULL, NULL }; /* of queries, of keys */
    float *row[2] = { s->memory, s->memory + 2 * n * spec.dim };
    enum posenc_status status = POSENC_OK;
    for (int k = 0; k < 2 && status == POSENC_OK; k++) {
        spec.xpos_inverse = k == 1 && spec.xpos_scale_base > 0.0;
        status = posenc_freqs_create(&spec, &plan[k], &s->error);
        status = status == POSENC_OK ? turn_ones(s, plan[k], n, spec.dim, row[k]) : status;
    }
    for (int64_t o = 0; o < n && status == POSENC_OK; o++) {
        double sum = 0.0;
        for (int64_t i = 0; i < spec.dim; i++)
            sum += (double)row[0][(n - 1) * spec.dim + i] *
                   (double)row[1][(n - 1 - o) * spec.dim + i];
        product[o] = sum / (double)spec.dim;
    }
    posenc_freqs_destroy(plan[0]);
    posenc_freqs_destroy(plan[1]);
    return status;
}

static void pair_factors(const struct posenc_freqs_spec *spec, struct plot_xpos *plot)
{
    int64_t half = spec->dim / 2;
    for (int k = 0; k < XPOS_PAIRS; k++) {
        plot->pair[k] = k * (half - 1) / (XPOS_PAIRS - 1);
        plot->zeta[k] =
            (2.0 * (double)plot->pair[k] + 0.4 * (double)spec->dim) / (1.4 * (double)spec->dim);
    }
}

static int draw_xpos(const void *data, const struct plot_target *target, char error[PLOT_ERROR])
{
    return plot_xpos(data, target, error);
}

static void xpos_facts(const struct plot_xpos *plot, FILE *out)
{
    fprintf(out, "%s\n%-8s %10s %10s\n", plot->caption, "offset", "RoPE", "xPos");
    for (int64_t o = 1; o < plot->n_offsets; o *= 4)
        fprintf(out, "%-8lld %10.4f %10.4f\n", (long long)o, plot->product[0][o],
                plot->product[1][o]);
    for (int k = 0; k < XPOS_PAIRS; k++)
        fprintf(out, "pair %lld: factor %.4f every %g positions\n", (long long)plot->pair[k],
                plot->zeta[k], plot->scale_base);
}

int command_plot_xpos(struct cli *cli, const struct outputs *outputs)
{
    struct scratch s = { 0 };
    struct cli_spec spec;
    if (spec_take(cli, PICTURE_XPOS, 64, &spec) != EXIT_FINE ||
        plot_refuse_tokens(cli, 4096) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_rope_table, &s.backend) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_rope_interleaved, &s.backend) != EXIT_FINE) {
        spec_free(&spec);
        return EXIT_USAGE;
    }
    struct posenc_freqs_spec plain = spec.freqs, scaled = spec.freqs;
    int64_t n = plot_given(cli->tokens, 1024);
    scaled.xpos_scale_base =
        spec.freqs.xpos_scale_base > 0.0 ? spec.freqs.xpos_scale_base : 512;
    scaled.xpos_centre = (double)(n / 2);
    plain.xpos_scale_base = 0.0;
    snprintf(s.text, sizeof s.text, "rope_interleaved, head_dim %lld, scale base %g, %s",
             (long long)scaled.dim, scaled.xpos_scale_base,
             plot_served(s.backend, POSENC_KERNEL_rope_interleaved));
    double *product = malloc((size_t)(2 * n) * sizeof *product);
    struct plot_xpos plot = { .caption = s.text,
                              .n_offsets = n,
                              .scale_base = scaled.xpos_scale_base,
                              .product = { product, product + n } };
    pair_factors(&scaled, &plot);
    enum posenc_status made = POSENC_ERR_MEMORY;
    if (product && allot(&s, 4 * n * scaled.dim)) {
        made = products(&s, plain, n, plot.product[0]);
        made = made == POSENC_OK ? products(&s, scaled, n, plot.product[1]) : made;
    }
    spec_free(&spec);
    int status = made == POSENC_OK ? plot_draw(cli, outputs, draw_xpos, &plot)
                                   : cli_refuse_status(cli, "xpos", made, &s.error);
    if (status == EXIT_FINE)
        xpos_facts(&plot, plot_facts(outputs));
    free(product);
    free(s.memory);
    return status;
}
