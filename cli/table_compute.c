/*
 * The command line -> one call of a table kernel -> its numbers, see table.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "../conformance/problem.h"
#include "select.h"
#include "spec.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 16 };
static const int64_t bytes_max = (int64_t)4 << 30;

struct request {
    enum posenc_kernel kernel;
    struct cli_spec spec;
    const struct posenc_backend *backend;
    int64_t n, *positions;
};

/* ---- positions ---- */

static const int64_t position_max = 2147483647;

/* "P" or "A..B" at `text`, `length` bytes long. */
static bool parse_range(const char *text, size_t length, int64_t *from, int64_t *to)
{
    char piece[64];
    if (length >= sizeof piece) {
        return false;
    }
    memcpy(piece, text, length);
    piece[length] = '\0';
    char *dots = strstr(piece, "..");
    if (dots != NULL) {
        *dots = '\0';
    }
    return parse_integer(piece, -position_max, position_max, from) &&
           parse_integer(dots != NULL ? dots + 2 : piece, -position_max, position_max, to) &&
           *from <= *to;
}

/* Counts the positions of a list, writing them where `positions` is not NULL; -1: malformed,
 * and `bad` is the piece. */
static int64_t expand(const char *list, int64_t *positions, char bad[80])
{
    int64_t n = 0;
    for (const char *at = list;;) {
        size_t length = strcspn(at, ",");
        int64_t from, to;
        if (!parse_range(at, length, &from, &to)) {
            snprintf(bad, 80, "%.*s", length < 79 ? (int)length : 79, at);
            return -1;
        }
        for (int64_t p = from; p <= to && positions != NULL; p++) {
            positions[n + p - from] = p;
        }
        n += to - from + 1;
        if (at[length] == '\0') {
            return n;
        }
        at += length + 1;
    }
}

static int refuse_size(const struct cli *cli, int64_t n, int64_t dim)
{
    char text[80];
    snprintf(text, sizeof text, "%lld rows of %lld numbers", (long long)n, (long long)dim);
    return cli_refuse(cli, "size", text, "expected at most %lld GiB in all",
                      (long long)(bytes_max >> 30));
}

static int take_positions(const struct cli *cli, struct request *request)
{
    int64_t first = cli->first != INT64_MIN ? cli->first : 0, n;
    char bad[80];
    if (cli->positions != NULL) {
        if (cli->tokens != INT64_MIN || cli->first != INT64_MIN) {
            return cli_refuse(cli, "--positions", cli->positions,
                              "expected without --tokens and --first");
        }
        n = expand(cli->positions, NULL, bad);
        if (n < 0) {
            return cli_refuse(cli, "--positions", bad,
                              "expected integers from %lld to %lld and ranges A..B with A <= "
                              "B, separated by commas",
                              (long long)-position_max, (long long)position_max);
        }
    } else {
        n = cli->tokens != INT64_MIN ? cli->tokens : DEFAULT_TOKENS;
        if (first + n - 1 > position_max) {
            char text[64];
            snprintf(text, sizeof text, "%lld tokens from %lld", (long long)n,
                     (long long)first);
            return cli_refuse(cli, "positions", text, "expected positions up to %lld",
                              (long long)position_max);
        }
    }
    if (n > bytes_max / 4 / request->spec.freqs.dim) {
        return refuse_size(cli, n, request->spec.freqs.dim);
    }
    request->n = n;
    request->positions = malloc((size_t)n * sizeof *request->positions);
    if (request->positions == NULL) {
        return refuse_size(cli, n, request->spec.freqs.dim);
    }
    if (cli->positions != NULL) {
        expand(cli->positions, request->positions, bad);
    }
    for (int64_t t = 0; t < n && cli->positions == NULL; t++) {
        request->positions[t] = first + t;
    }
    return EXIT_FINE;
}

/* ---- computing ---- */

static enum posenc_status run_kernel(const struct request *request, struct table *table,
                                     const struct posenc_freqs *freqs,
                                     struct posenc_error *error)
{
    struct posenc_positions positions = { .kind = POSENC_POSITIONS_I64,
                                          .data = table->positions,
                                          .stride_token = 1 };
    struct posenc_tensor tensors[2];
    for (int i = 0; i < table->n_arrays; i++) {
        tensors[i] = posenc_dense(table->array[i], 2, table->rows, table->width, 0, 0);
    }
    if (request->kernel == POSENC_KERNEL_sinusoidal) {
        struct posenc_sinusoidal_args args = POSENC_SINUSOIDAL_ARGS;
        args.error = error;
        args.freqs = freqs;
        args.layout = request->spec.layout;
        args.scale = request->spec.scale;
        args.positions = positions;
        args.out = tensors[0];
        return posenc_sinusoidal(request->backend, &args);
    }
    struct posenc_rope_table_args args = POSENC_ROPE_TABLE_ARGS;
    args.error = error;
    args.freqs = freqs;
    args.positions = positions;
    args.cos = tensors[0];
    args.sin = tensors[1];
    return posenc_rope_table(request->backend, &args);
}

static int compute(const struct cli *cli, const struct request *request, struct table *table)
{
    bool sinusoidal = request->kernel == POSENC_KERNEL_sinusoidal;
    const char *name = posenc_kernel_name(request->kernel);
    *table = (struct table){
        .rows = request->n,
        .width = sinusoidal ? request->spec.freqs.dim : request->spec.freqs.dim / 2,
        .positions = request->positions,
        .n_arrays = sinusoidal ? 1 : 2,
        .name = { sinusoidal ? "sinusoidal" : "cos", sinusoidal ? NULL : "sin" },
    };
    struct posenc_freqs *freqs = NULL;
    struct posenc_error error = { 0 };
    enum posenc_status status = posenc_freqs_create(&request->spec.freqs, &freqs, &error);
    for (int i = 0; i < table->n_arrays && status == POSENC_OK; i++) {
        table->array[i] = malloc((size_t)(table->rows * table->width) * sizeof(float));
        status = table->array[i] != NULL ? POSENC_OK : POSENC_ERR_MEMORY;
    }
    if (status == POSENC_OK) {
        status = run_kernel(request, table, freqs, &error);
    }
    posenc_freqs_destroy(freqs);
    return status == POSENC_OK ? EXIT_FINE : cli_refuse_status(cli, name, status, &error);
}

static int compute_request(struct cli *cli, unsigned kind, struct request *request,
                           struct table *table)
{
    if (spec_take(cli, kind, 0, &request->spec) != EXIT_FINE ||
        select_one(cli, request->kernel, &request->backend) != EXIT_FINE ||
        take_positions(cli, request) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    int status = compute(cli, request, table);
    const struct posenc_backend *served =
        request->backend != NULL ? request->backend : posenc_selection(request->kernel).backend;
    char freqs[96];
    spec_caption(&request->spec.freqs, freqs, sizeof freqs);
    snprintf(table->caption, sizeof table->caption, "%s, %s, %s", freqs,
             layout_names[request->spec.layout], served != NULL ? served->name : "no backend");
    if (status != EXIT_FINE) {
        table_free(table);
    }
    return status;
}

int table_compute(struct cli *cli, unsigned kind, struct table *table)
{
    struct request request = { .kernel = kind & TABLE_ROPE ? POSENC_KERNEL_rope_table
                                                           : POSENC_KERNEL_sinusoidal };
    int status = compute_request(cli, kind, &request, table);
    spec_free(&request.spec);
    return status;
}

void table_free(struct table *table)
{
    free(table->array[0]);
    free(table->array[1]);
    free(table->positions);
    *table = (struct table){ 0 };
}
