/*
 * posenc plot rope: some pairs turning, and the product of a query and a key by their offset,
 * as the kernels compute them (Su et al. 2104.09864, section 3.2).
 */
#define _POSIX_C_SOURCE 200809L
#include "apart.h"
#include "plot.h"
#include "select.h"
#include "spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t far_query = 1 << 20; /* beside one at the end of the picture */

struct rope {
    const struct posenc_backend *backend;
    const struct posenc_freqs *freqs;
    int64_t dim, n; /* rows at a time */
    float *cos, *sin, *x, *out;
    struct posenc_error error;
};

/* The vector v at positions first, first + 1, ...: out[n][dim]. */
static enum posenc_status rotate(struct rope *r, const float *v, int64_t first)
{
    struct posenc_rope_table_args table = posenc_rope_table_args_init();
    table.error = &r->error;
    table.freqs = r->freqs;
    table.positions.offset = first;
    table.cos = posenc_dense(r->cos, 2, r->n, r->dim / 2, 0, 0);
    table.sin = posenc_dense(r->sin, 2, r->n, r->dim / 2, 0, 0);
    apart_enter("rope_table");
    enum posenc_status status = posenc_rope_table(r->backend, &table);
    apart_leave();
    if (status != POSENC_OK)
        return status;
    for (int64_t t = 0; t < r->n; t++)
        memcpy(r->x + t * r->dim, v, (size_t)r->dim * sizeof *v);
    struct posenc_rope_args args = posenc_rope_args_init();
    args.error = &r->error;
    args.cos = posenc_view(table.cos);
    args.sin = posenc_view(table.sin);
    args.x = posenc_const_dense(r->x, 3, r->n, 1, r->dim, 0);
    args.out = posenc_dense(r->out, 3, r->n, 1, r->dim, 0);
    return posenc_rope_half(r->backend, &args);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* q at position m, which is the last row, and k at the n positions up to it. */
static enum posenc_status multiply(struct rope *r, const float *q, const float *k, int64_t m,
                                   double *product)
{
    enum posenc_status status = rotate(r, q, m - r->n + 1);
    float *turned = malloc((size_t)r->dim * sizeof *turned);
    if (status == POSENC_OK && !turned)
        status = POSENC_ERR_MEMORY;
    if (status == POSENC_OK) {
        memcpy(turned, r->out + (r->n - 1) * r->dim, (size_t)r->dim * sizeof *turned);
        status = rotate(r, k, m - r->n + 1);
    }
    for (int64_t o = 0; status == POSENC_OK && o < r->n; o++)
        product[o] = dot(turned, r->out + (r->n - 1 - o) * r->dim, r->dim) /
                     sqrt(dot(q, q, r->dim) * dot(k, k, r->dim));
    free(turned);
    return status;
}

/* Pairs 0, a quarter and half way down: where (1, 0) goes. */
static enum posenc_status turn_pairs(struct rope *r, float *v, struct plot_rope *plot)
{
    struct posenc_freqs_view view = posenc_freqs_view(r->freqs);
    int64_t half = r->dim / 2;
    for (int64_t i = 0; i < r->dim; i++)
        v[i] = i < half ? 1.0f : 0.0f;
    enum posenc_status status = rotate(r, v, 0);
    for (int64_t k = 0; k < ROPE_PAIRS && status == POSENC_OK; k++) {
        int64_t i = k * half / 4;
        if (plot->n_pairs > 0 && plot->pair[plot->n_pairs - 1].channel[0] == i)
            continue;
        int at = plot->n_pairs++;
        plot->pair[at].channel[0] = i;
        plot->pair[at].channel[1] = i + half;
        plot->pair[at].rad = view.omega[i];
        for (int p = 0; p < ROPE_TURNS; p++) {
            plot->pair[at].turn[p][0] = (double)r->out[p * r->dim + i];
            plot->pair[at].turn[p][1] = (double)r->out[p * r->dim + half + i];
        }
    }
    return status;
}

static enum posenc_status compute_rope(struct rope *r, uint64_t seed, struct plot_rope *plot)
{
    float *q = malloc((size_t)r->dim * sizeof *q), *k = malloc((size_t)r->dim * sizeof *k);
    enum posenc_status status = q && k ? turn_pairs(r, q, plot) : POSENC_ERR_MEMORY;
    for (int v = 0; v < ROPE_VECTORS && status == POSENC_OK; v++) {
        for (int64_t i = 0; i < r->dim; i++)
            q[i] = k[i] = 1.0f;
        if (v > 0) { /* rows 0 and 1 of what the seed draws */
            status = posenc_normal(seed, 0, 1, r->dim, 1.0, q);
            status = status == POSENC_OK ? posenc_normal(seed, 1, 1, r->dim, 1.0, k) : status;
        }
        for (int m = 0; m < 2 && status == POSENC_OK; m++)
            status = multiply(r, q, k, plot->query[m], plot->product[v][m]);
    }
    free(q);
    free(k);
    return status;
}

static void rope_facts(const struct plot_rope *plot, FILE *out)
{
    fprintf(out, "%s\n", plot->caption);
    for (int k = 0; k < plot->n_pairs; k++)
        fprintf(out, "pair %lld: %.6g rad a position, a turn in %.6g positions\n",
                (long long)plot->pair[k].channel[0], plot->pair[k].rad,
                6.283185307179586 / plot->pair[k].rad);
    for (int v = 0; v < ROPE_VECTORS; v++) {
        const double *near = plot->product[v][0], *far = plot->product[v][1];
        double apart = 0.0;
        int64_t rises = 0;
        for (int64_t o = 0; o < plot->n_offsets; o++) {
            apart = fmax(apart, fabs(near[o] - far[o]));
            if (rises == 0 && o > 0 && near[o] > near[o - 1])
                rises = o;
        }
        fprintf(out, "%s: products of m = %lld and m = %lld differ by at most %.2g\n",
                plot->vectors[v], (long long)plot->query[0], (long long)plot->query[1], apart);
        if (rises > 0)
            fprintf(
                out,
                "%s: nearer is not always more similar: %.4f at offset %lld, %.4f at %lld\n",
                plot->vectors[v], near[rises - 1], (long long)(rises - 1), near[rises],
                (long long)rises);
    }
}

static int draw_rope(const void *data, const struct plot_target *target, char error[PLOT_ERROR])
{
    return plot_rope(data, target, error);
}

static int make_rope(struct cli *cli, const struct posenc_freqs_spec *spec, struct rope *r,
                     double *products, struct plot_rope *plot)
{
    struct posenc_freqs *freqs = NULL;
    enum posenc_status status = posenc_freqs_create(spec, &freqs, &r->error);
    r->freqs = freqs;
    r->dim = spec->dim;
    size_t half = (size_t)(r->n * r->dim / 2) * sizeof(float);
    r->cos = malloc(half);
    r->sin = malloc(half);
    r->x = malloc(2 * half);
    r->out = malloc(2 * half);
    if (status == POSENC_OK && !(r->cos && r->sin && r->x && r->out && products))
        status = POSENC_ERR_MEMORY;
    for (int v = 0; v < ROPE_VECTORS; v++)
        for (int m = 0; m < 2; m++)
            plot->product[v][m] = products + (2 * v + m) * r->n;
    if (status == POSENC_OK)
        status = compute_rope(r, (uint64_t)plot_given(cli->seed, 1), plot);
    free(r->cos);
    free(r->sin);
    free(r->x);
    free(r->out);
    posenc_freqs_destroy(freqs);
    return status == POSENC_OK ? EXIT_FINE : cli_refuse_status(cli, "rope", status, &r->error);
}

/* A position far out at which the same frequencies hold: those of longrope and dynamic are of a length.  Where the
 * picture has all of that length, one beyond it, which the same rotation serves as well. */
static int64_t far_from(int64_t near, const struct posenc_freqs_spec *freqs)
{
    double last = (double)far_query;
    if (freqs->scaling == POSENC_SCALING_LONGROPE)
        last = (double)freqs->original_max_position_embeddings - 1.0;
    else if (freqs->scaling == POSENC_SCALING_DYNAMIC)
        last = (double)freqs->max_position_embeddings - 1.0;
    if (last < (double)far_query)
        last = fmin(fmax(last, (double)freqs->seq_len - 1.0), (double)far_query);
    return last > (double)near ? (int64_t)last : far_query;
}

int command_plot_rope(struct cli *cli, const struct outputs *outputs)
{
    struct rope r = { 0 };
    struct cli_spec spec;
    char caption[160], freqs[96];
    if (spec_take(cli, PICTURE_ROPE, 128, &spec) != EXIT_FINE ||
        plot_refuse_tokens(cli, 4096) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_rope_table, &r.backend) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_rope_half, &r.backend) != EXIT_FINE) {
        spec_free(&spec);
        return EXIT_USAGE;
    }
    int64_t offsets = plot_given(cli->tokens, 128);
    r.n = offsets > ROPE_TURNS ? offsets : ROPE_TURNS;
    spec_settle_length(cli, r.n - 1, &spec.freqs);
    spec_caption(&spec.freqs, freqs, sizeof freqs);
    snprintf(caption, sizeof caption, "rope_half, head_dim %lld, %s, %s",
             (long long)spec.freqs.dim, freqs, plot_served(r.backend, POSENC_KERNEL_rope_half));
    struct plot_rope plot = { .caption = caption,
                              .n_offsets = offsets,
                              .query = { r.n - 1, far_from(r.n - 1, &spec.freqs) },
                              .vectors = { "q = k = (1, 1, ...)", "q, k random" } };
    double *products = malloc((size_t)(2 * ROPE_VECTORS * r.n) * sizeof *products);
    int status = make_rope(cli, &spec.freqs, &r, products, &plot);
    spec_free(&spec);
    if (status == EXIT_FINE)
        status = plot_draw(cli, outputs, draw_rope, &plot);
    if (status == EXIT_FINE)
        rope_facts(&plot, plot_facts(outputs));
    free(products);
    return status;
}
