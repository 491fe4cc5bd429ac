/*
 * posenc plot learned: a learned table before training, beside the sinusoidal one, and how much
 * each adds to tokens.
 *
 * Tokens are drawn from N(0, 1), as embeddings scaled by sqrt(d_model) are (Vaswani et al.
 * 1706.03762, section 3.4), the table from N(0, 0.02^2) (BERT, Devlin et al. 1810.04805, and
 * most since).  They have seeds of their own: one for both would make the table a multiple of
 * the tokens.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/problem.h"
#include "plot.h"
#include "select.h"

#include <math.h>
#include <stdlib.h>

static const double table_deviation = 0.02;
enum { LAST_ROW = 2147483646 };

struct learned {
    const struct posenc_backend *backend;
    int64_t first, tokens, dim;          /* rows of the table, from the first on */
    float *x, *table, *sinusoidal, *sum; /* [tokens, dim] each */
    double rms[LEARNED_BARS];            /* beside the deviations of the picture */
    struct posenc_error error;
};

static enum posenc_status draw_tables(struct learned *l, uint64_t seed)
{
    enum posenc_status status =
        posenc_normal(mix64(seed, 1), l->first, l->tokens, l->dim, 1.0, l->x);
    return status == POSENC_OK
               ? posenc_normal(seed, l->first, l->tokens, l->dim, table_deviation, l->table)
               : status;
}

/* Over all elements, about their mean. */
static double deviation(const struct learned *l, const float *of)
{
    double sum = 0.0, squares = 0.0, n = (double)(l->tokens * l->dim);
    for (int64_t i = 0; i < l->tokens * l->dim; i++)
        sum += (double)of[i];
    for (int64_t i = 0; i < l->tokens * l->dim; i++) {
        double d = (double)of[i] - sum / n;
        squares += d * d;
    }
    return sqrt(squares / n);
}

static double root_mean_square(const struct learned *l, const float *of)
{
    double squares = 0.0, n = (double)(l->tokens * l->dim);
    for (int64_t i = 0; i < l->tokens * l->dim; i++)
        squares += (double)of[i] * (double)of[i];
    return sqrt(squares / n);
}

/* The i-th of what the picture compares. */
static void measure(struct learned *l, struct plot_learned *plot, int i, const float *of)
{
    plot->deviation[i] = deviation(l, of);
    l->rms[i] = root_mean_square(l, of);
}

/* sum = x + the sinusoidal encoding, or the encoding alone, without x. */
static enum posenc_status add_sinusoidal(struct learned *l, const struct posenc_freqs *freqs)
{
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.error = &l->error;
    args.freqs = freqs;
    args.positions.offset = l->first;
    args.out = posenc_dense(l->sinusoidal, 2, l->tokens, l->dim, 0, 0);
    enum posenc_status status = posenc_sinusoidal(l->backend, &args);
    if (status == POSENC_OK) {
        args.x = posenc_const_dense(l->x, 2, l->tokens, l->dim, 0, 0);
        args.out = posenc_dense(l->sum, 2, l->tokens, l->dim, 0, 0);
        status = posenc_sinusoidal_add(l->backend, &args);
    }
    return status;
}

static enum posenc_status add_learned(struct learned *l)
{
    struct posenc_learned_args args = posenc_learned_args_init();
    args.error = &l->error;
    args.x = posenc_const_dense(l->x, 2, l->tokens, l->dim, 0, 0);
    args.table = posenc_const_dense(l->table, 2, l->tokens, l->dim, 0, 0);
    args.out = posenc_dense(l->sum, 2, l->tokens, l->dim, 0, 0);
    return posenc_learned_add(l->backend, &args);
}

static enum posenc_status compute_learned(struct learned *l, uint64_t seed,
                                          struct plot_learned *plot)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.dim = l->dim;
    enum posenc_status status = draw_tables(l, seed);
    if (status == POSENC_OK)
        status = posenc_freqs_create(&spec, &freqs, &l->error);
    if (status == POSENC_OK)
        status = add_sinusoidal(l, freqs);
    posenc_freqs_destroy(freqs);
    if (status != POSENC_OK)
        return status;
    measure(l, plot, 0, l->x);
    measure(l, plot, 1, l->sinusoidal);
    measure(l, plot, 2, l->table);
    measure(l, plot, 3, l->sum);
    status = add_learned(l);
    measure(l, plot, 4, l->sum);
    return status;
}

static double correlation(const struct learned *l)
{
    double sum = 0.0, n = (double)(l->tokens * l->dim);
    for (int64_t i = 0; i < l->tokens * l->dim; i++)
        sum += (double)l->x[i] * (double)l->table[i];
    return sum / n / (deviation(l, l->x) * deviation(l, l->table));
}

static void learned_facts(const struct learned *l, const struct plot_learned *plot, FILE *out)
{
    fprintf(out, "%s\nstandard deviations, and root mean squares\n", plot->caption);
    for (int i = 0; i < LEARNED_BARS; i++)
        fprintf(out, "  %-20s %.4f %.4f\n", plot->names[i], plot->deviation[i], l->rms[i]);
    fprintf(out,
            "correlation of tokens and learned table: %.4f (1 where both are drawn from one "
            "seed)\n"
            "parameters: learned %lld x %lld = %lld, sinusoidal 0\n",
            correlation(l), (long long)(l->first + l->tokens), (long long)l->dim,
            (long long)((l->first + l->tokens) * l->dim));
}

static int draw_learned(const void *data, const struct plot_target *target,
                        char error[PLOT_ERROR])
{
    return plot_learned(data, target, error);
}

/* --rows A..B, or the first rows: as many as --tokens says. */
static int take_rows(const struct cli *cli, struct learned *l)
{
    enum { MOST = 1024 };
    int64_t last = -1;
    char first[32];
    const char *dots = cli->rows ? strstr(cli->rows, "..") : NULL;
    if (!cli->rows)
        return plot_refuse_tokens(cli, MOST);
    if (cli->tokens != INT64_MIN)
        return cli_refuse(cli, "--rows", cli->rows, "expected without --tokens");
    size_t length = dots ? (size_t)(dots - cli->rows) : 0;
    snprintf(first, sizeof first, "%.*s", (int)(length < 31 ? length : 31), cli->rows);
    if (!dots || !parse_integer(first, 0, LAST_ROW, &l->first) ||
        !parse_integer(dots + 2, 0, LAST_ROW, &last) || last <= l->first ||
        last - l->first >= MOST)
        return cli_refuse(cli, "--rows", cli->rows,
                          "expected A..B: 2 to %d rows of the table, from 0 to %d", MOST,
                          LAST_ROW);
    l->tokens = last - l->first + 1;
    return EXIT_FINE;
}

int command_plot_learned(struct cli *cli, const struct outputs *outputs)
{
    struct learned l = { .tokens = plot_given(cli->tokens, 64),
                         .dim = plot_given(cli->dim, 128) };
    long long seed = (long long)plot_given(cli->seed, 1);
    if (take_rows(cli, &l) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_sinusoidal, &l.backend) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_sinusoidal_add, &l.backend) != EXIT_FINE ||
        select_one(cli, POSENC_KERNEL_learned_add, &l.backend) != EXIT_FINE)
        return EXIT_USAGE;
    if (l.dim > 1024)
        return cli_refuse(cli, "--dim", NULL, "expected at most 1024 for a picture");
    size_t n = (size_t)(l.tokens * l.dim);
    float *memory = malloc(4 * n * sizeof *memory);
    l.x = memory;
    l.table = memory + n;
    l.sinusoidal = memory + 2 * n;
    l.sum = memory + 3 * n;
    char caption[192];
    snprintf(caption, sizeof caption,
             "learned_add, positions %lld to %lld, %lld dimensions, tokens N(0, 1), table N(0, "
             "%g²), "
             "seed %lld, %s",
             (long long)l.first, (long long)(l.first + l.tokens - 1), (long long)l.dim,
             table_deviation, seed, plot_served(l.backend, POSENC_KERNEL_learned_add));
    struct plot_learned plot = {
        caption,
        l.tokens,
        l.dim,
        l.first,
        l.table,
        { "tokens", "sinusoidal", "learned", "tokens + sinusoidal", "tokens + learned" },
        { 0 }
    };
    enum posenc_status made =
        memory ? compute_learned(&l, (uint64_t)seed, &plot) : POSENC_ERR_MEMORY;
    int status = made == POSENC_OK ? plot_draw(cli, outputs, draw_learned, &plot)
                                   : cli_refuse_status(cli, "learned", made, &l.error);
    if (status == EXIT_FINE)
        learned_facts(&l, &plot, plot_facts(outputs));
    free(memory);
    return status;
}
