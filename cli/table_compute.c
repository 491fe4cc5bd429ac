/*
 * The command line -> one call of a table kernel -> its numbers, see table.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "../conformance/models/model.h"
#include "select.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 16 };
static const int64_t bytes_max = (int64_t)4 << 30;

struct request {
    enum posenc_kernel kernel;
    enum posenc_layout layout;
    double scale;
    struct posenc_freqs_spec spec;
    const struct posenc_backend *backend;
    int64_t n, *positions;
};

static bool is_set(double value) { return !isnan(value); }

/* ---- what is asked for ---- */

static int take_model(const struct cli *cli, struct request *request)
{
    if (cli->model.n > 1) {
        return cli_refuse(cli, "--model", cli->model.item[1], "expected one model");
    }
    struct model model;
    char error[MODEL_ERROR];
    if (model_load(cli->model.item[0], &model, error) != 0) {
        return cli_refuse(cli, strchr(cli->model.item[0], '/') != NULL ? "--config" : "--model",
                          NULL, "%s", error);
    }
    bool sinusoidal = strcmp(model.encoding, "sinusoidal") == 0;
    if (!model.has_freqs || sinusoidal != (request->kernel == POSENC_KERNEL_sinusoidal)) {
        return cli_refuse(cli, "--model", cli->model.item[0],
                          "its encoding is %s: expected a model with %s", model.encoding,
                          sinusoidal ? "a rotation" : posenc_kernel_name(request->kernel));
    }
    request->spec = model.freqs;
    for (size_t i = 0; i < model.n_cases && sinusoidal; i++) {
        request->layout = model.cases[i].bench.problem.layout;
    }
    return EXIT_FINE;
}

/* Options override the model's values. */
static void take_parameters(const struct cli *cli, struct request *request)
{
    struct posenc_freqs_spec *spec = &request->spec;
    const struct {
        double given, *value;
    } reals[] = {
        { cli->rope_theta, &spec->rope_theta },
        { cli->factor, &spec->factor },
        { cli->original, &spec->original_max_position_embeddings },
        { cli->low_freq_factor, &spec->low_freq_factor },
        { cli->high_freq_factor, &spec->high_freq_factor },
        { cli->beta_fast, &spec->beta_fast },
        { cli->beta_slow, &spec->beta_slow },
        { cli->attention_factor, &spec->attention_factor },
        { cli->mscale, &spec->mscale },
        { cli->mscale_all_dim, &spec->mscale_all_dim },
        { cli->scale, &request->scale },
    };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        if (is_set(reals[i].given)) {
            *reals[i].value = reals[i].given;
        }
    }
    if (cli->profile >= 0) {
        spec->profile = (enum posenc_profile)cli->profile;
    }
    if (cli->convention >= 0) {
        spec->convention = (enum posenc_convention)cli->convention;
    }
    if (cli->scaling >= 0) {
        spec->scaling = (enum posenc_scaling)cli->scaling;
    }
    if (cli->truncate >= 0) {
        spec->truncate = cli->truncate != 0;
    }
    if (cli->layout >= 0) {
        request->layout = (enum posenc_layout)cli->layout;
    }
}

/* A parameter that would change nothing is a mistake of the caller. */
static int refuse_idle(const struct cli *cli, const struct request *request)
{
    bool rope = request->kernel == POSENC_KERNEL_rope_table;
    enum posenc_scaling scaling = request->spec.scaling;
    bool llama3 = scaling == POSENC_SCALING_LLAMA3, yarn = scaling == POSENC_SCALING_YARN;
    const struct {
        const char *option;
        bool given, used;
        const char *expected;
    } checks[] = {
        { "--layout", cli->layout >= 0, !rope, "it is for sinusoidal" },
        { "--scale", is_set(cli->scale), !rope, "it is for sinusoidal" },
        { "--rotary-dim", cli->rotary_dim != INT64_MIN, rope, "it is for rope_table" },
        { "--scaling", cli->scaling > 0, rope, "it is for rope_table" },
        { "--factor", is_set(cli->factor), scaling != POSENC_SCALING_NONE,
          "it needs --scaling" },
        { "--original-max-position-embeddings", is_set(cli->original), llama3 || yarn,
          "it needs --scaling llama3 or yarn" },
        { "--low-freq-factor", is_set(cli->low_freq_factor), llama3,
          "it needs --scaling llama3" },
        { "--high-freq-factor", is_set(cli->high_freq_factor), llama3,
          "it needs --scaling llama3" },
        { "--beta-fast", is_set(cli->beta_fast), yarn, "it needs --scaling yarn" },
        { "--beta-slow", is_set(cli->beta_slow), yarn, "it needs --scaling yarn" },
        { "--truncate", cli->truncate >= 0, yarn, "it needs --scaling yarn" },
        { "--mscale", is_set(cli->mscale), yarn, "it needs --scaling yarn" },
        { "--mscale-all-dim", is_set(cli->mscale_all_dim), yarn, "it needs --scaling yarn" },
        { "--attention-factor", is_set(cli->attention_factor), rope, "it is for rope_table" },
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (checks[i].given && !checks[i].used) {
            return cli_refuse(cli, checks[i].option, NULL, "has no effect here: %s",
                              checks[i].expected);
        }
    }
    return EXIT_FINE;
}

static int refuse_dim(const struct cli *cli, const char *option, int64_t value, int64_t most)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return cli_refuse(cli, option, text, "expected an even integer from 2 to %lld",
                      (long long)most);
}

static int take_dim(const struct cli *cli, struct request *request)
{
    int64_t head_dim = cli->dim != INT64_MIN ? cli->dim : request->spec.dim;
    if (head_dim <= 0) {
        return cli_refuse(cli, "--dim", NULL,
                          "expected --dim D, an integer from 1 to 65536, or --model NAME");
    }
    if (cli->dim != INT64_MIN) {
        request->spec.dim = cli->dim;
    }
    if (request->kernel == POSENC_KERNEL_rope_table && request->spec.dim % 2 != 0) {
        return refuse_dim(cli, "--dim", request->spec.dim, 65536);
    }
    if (cli->rotary_dim != INT64_MIN) {
        if (cli->rotary_dim % 2 != 0 || cli->rotary_dim > head_dim) {
            return refuse_dim(cli, "--rotary-dim", cli->rotary_dim, head_dim);
        }
        request->spec.dim = cli->rotary_dim;
    }
    return EXIT_FINE;
}

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
    if (n > bytes_max / 4 / request->spec.dim) {
        return refuse_size(cli, n, request->spec.dim);
    }
    request->n = n;
    request->positions = malloc((size_t)n * sizeof *request->positions);
    if (request->positions == NULL) {
        return refuse_size(cli, n, request->spec.dim);
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
        args.layout = request->layout;
        args.scale = request->scale;
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
        .width = sinusoidal ? request->spec.dim : request->spec.dim / 2,
        .positions = request->positions,
        .n_arrays = sinusoidal ? 1 : 2,
        .name = { sinusoidal ? "sinusoidal" : "cos", sinusoidal ? NULL : "sin" },
    };
    struct posenc_freqs *freqs = NULL;
    struct posenc_error error = { 0 };
    enum posenc_status status = posenc_freqs_create(&request->spec, &freqs, &error);
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

int table_compute(struct cli *cli, enum posenc_kernel kernel, struct table *table)
{
    struct request request = { .kernel = kernel, .scale = 1.0, .spec = POSENC_FREQS_SPEC };
    if (cli->model.n > 0 && take_model(cli, &request) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    take_parameters(cli, &request);
    if (refuse_idle(cli, &request) != EXIT_FINE || take_dim(cli, &request) != EXIT_FINE ||
        select_one(cli, kernel, &request.backend) != EXIT_FINE ||
        take_positions(cli, &request) != EXIT_FINE) {
        return EXIT_USAGE;
    }
    int status = compute(cli, &request, table);
    const struct posenc_backend *served =
        request.backend != NULL ? request.backend : posenc_selection(kernel).backend;
    snprintf(table->caption, sizeof table->caption, "rope_theta %g, %s, %s, %s",
             request.spec.rope_theta, layout_names[request.layout],
             profile_names[request.spec.profile], served != NULL ? served->name : "no backend");
    if (status != EXIT_FINE) {
        table_free(table);
    }
    return status;
}

void table_free(struct table *table)
{
    free(table->array[0]);
    free(table->array[1]);
    free(table->positions);
    *table = (struct table){ 0 };
}
