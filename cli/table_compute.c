/*
 * Makes of the command line one call of a table kernel, and of that the numbers (see table.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/problem.h"
#include "conformance/problem/storage.h"
#include "apart.h"
#include "problem.h"
#include "select.h"
#include "spec.h"
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    enum posenc_kernel kernel;
    struct cli_spec spec;
    const struct posenc_backend *backend;
};

static enum posenc_status run_kernel(const struct request *request, struct number_table *table,
                                     const struct posenc_freqs *freqs,
                                     struct posenc_error *error)
{
    bool times = table->times != NULL;
    struct posenc_positions positions = {
        .kind = times ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64,
        .data = times ? (const void *)table->times : table->positions,
        .stride_token = 1,
        .stride_axis = table->n_axes > 1 ? table->rows : 0,
    };
    struct posenc_tensor tensors[2];
    for (int i = 0; i < table->n_arrays; i++) {
        tensors[i] = posenc_dense(table->array[i], 2, table->rows, table->width, 0, 0);
        tensors[i].dtype = table->dtype;
    }
    if (request->kernel == POSENC_KERNEL_sinusoidal) {
        struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
        args.error = error;
        args.freqs = freqs;
        args.layout = request->spec.layout;
        args.scale = request->spec.scale;
        args.positions = positions;
        args.out = tensors[0];
        apart_enter("sinusoidal");
        const enum posenc_status status = posenc_sinusoidal(request->backend, &args);
        apart_leave();
        return status;
    }
    struct posenc_rope_table_args args = posenc_rope_table_args_init();
    args.error = error;
    args.freqs = freqs;
    args.positions = positions;
    args.cos = tensors[0];
    args.sin = tensors[1];
    apart_enter("rope_table");
    const enum posenc_status status = posenc_rope_table(request->backend, &args);
    apart_leave();
    return status;
}

static int compute(const struct cli *cli, const struct request *request,
                   struct number_table *table)
{
    bool sinusoidal = request->kernel == POSENC_KERNEL_sinusoidal;
    const char *name = posenc_kernel_name(request->kernel);
    table->width = sinusoidal ? request->spec.freqs.dim : request->spec.freqs.dim / 2;
    table->n_arrays = sinusoidal ? 1 : 2;
    table->name[0] = sinusoidal ? "sinusoidal" : "cos";
    table->name[1] = sinusoidal ? NULL : "sin";
    struct posenc_freqs *freqs = NULL;
    struct posenc_error error = { 0 };
    enum posenc_status status = posenc_freqs_create(&request->spec.freqs, &freqs, &error);
    for (int i = 0; i < table->n_arrays && status == POSENC_OK; i++) {
        table->array[i] =
            malloc((size_t)(table->rows * table->width) * storage_size(table->dtype));
        status = table->array[i] ? POSENC_OK : POSENC_ERR_MEMORY;
    }
    if (status == POSENC_OK)
        status = run_kernel(request, table, freqs, &error);
    posenc_freqs_destroy(freqs);
    return status == POSENC_OK ? EXIT_FINE : cli_refuse_status(cli, name, status, &error);
}

static int64_t largest_position(const struct number_table *table)
{
    int64_t largest = -1;
    for (int64_t i = 0; i < table->rows * table->n_axes; i++) {
        int64_t at = table->times ? (int64_t)floorf(table->times[i]) : table->positions[i];
        largest = at > largest ? at : largest;
    }
    return largest;
}

static int compute_request(struct cli *cli, unsigned kind, struct request *request,
                           struct number_table *table)
{
    if (spec_take(cli, kind, 0, &request->spec) != EXIT_FINE)
        return EXIT_USAGE;
    if (cli->grid_order < 0 && request->spec.column_first)
        cli->grid_order = COLUMNS_FIRST; /* as the model has it */
    if (select_one(cli, request->kernel, &request->backend) != EXIT_FINE ||
        table_positions(cli, spec_axes(&request->spec.freqs), request->spec.freqs.dim, table) !=
            EXIT_FINE)
        return EXIT_USAGE;
    spec_settle_length(cli, largest_position(table), &request->spec.freqs);
    table->dtype = cli->storage >= 0 ? (enum posenc_dtype)cli->storage : POSENC_F32;
    int status = compute(cli, request, table);
    if (status != EXIT_FINE)
        table_free(table);
    return status;
}

int table_compute(struct cli *cli, unsigned kind, struct number_table *table)
{
    struct request request = { .kernel = kind & TABLE_ROPE ? POSENC_KERNEL_rope_table
                                                           : POSENC_KERNEL_sinusoidal };
    int status = compute_request(cli, kind, &request, table);
    spec_free(&request.spec);
    return status;
}

/* ---- --problem ---- */

static bool is_table(enum posenc_kernel kernel)
{
    return kernel == POSENC_KERNEL_sinusoidal || kernel == POSENC_KERNEL_rope_table;
}

/* Stores where each row is: its token's positions or times on each axis; the number of the row where a
 * kernel is no table of positions. */
static enum posenc_status take_places(const struct problem *p, struct number_table *table)
{
    const bool of_positions = is_table(p->kernel);
    table->places = of_positions ? "position" : "row";
    table->n_axes = of_positions ? problem_axes(p) : 1;
    const size_t n = (size_t)(table->rows * table->n_axes);
    const bool times = of_positions && p->position_kind == POSENC_POSITIONS_F32;
    table->positions = times ? NULL : malloc(n * sizeof *table->positions);
    table->times = times ? malloc(n * sizeof *table->times) : NULL;
    if (!table->positions && !table->times)
        return POSENC_ERR_MEMORY;
    for (int64_t i = 0; i < (int64_t)n; i++) {
        const int64_t row = i % table->rows, tokens = of_positions ? p->tokens : 1,
                      b = row / tokens, t = row % tokens;
        const int axis = (int)(i / table->rows);
        if (!of_positions)
            table->positions[i] = row;
        else if (times)
            table->times[i] = (float)problem_time(p, b, t, axis);
        else
            table->positions[i] = problem_axis_position(p, b, t, axis);
    }
    return POSENC_OK;
}

/* The outputs of a call that was run, dense. */
static enum posenc_status take_outputs(const struct call *call, struct number_table *table)
{
    const struct output *first = &call->outputs[0];
    table->rows = first->rows;
    table->width = first->width;
    table->dtype = first->tensor.dtype;
    table->n_arrays = call->n_outputs;
    const size_t bytes = (size_t)table->width * storage_size(table->dtype);
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *out = &call->outputs[o];
        table->name[o] =
            call->n_outputs > 1 ? out->name : posenc_kernel_name(call->problem.kernel);
        table->array[o] = malloc((size_t)table->rows * bytes);
        if (!table->array[o])
            return POSENC_ERR_MEMORY;
        for (int64_t r = 0; r < table->rows; r++)
            memcpy((char *)table->array[o] + (size_t)r * bytes, storage_row(&out->tensor, r),
                   bytes);
    }
    return take_places(&call->problem, table);
}

static int run_problem(struct cli *cli, const struct problem *problem,
                       struct number_table *table)
{
    const enum posenc_kernel kernel = problem->kernel;
    const struct posenc_backend *backend;
    struct call call;
    if (select_one(cli, kernel, &backend) != EXIT_FINE)
        return EXIT_USAGE;
    enum posenc_status status = call_create(&call, problem, &memory_plain);
    if (status != POSENC_OK)
        return cli_refuse_status(cli, "--problem", status, &call.error);
    apart_enter(posenc_kernel_name(kernel));
    status = call_run(&call, backend);
    apart_leave();
    if (status == POSENC_OK)
        status = take_outputs(&call, table);
    if (status != POSENC_OK) {
        table_free(table);
        cli_refuse_status(cli, "--problem", status, &call.error);
    }
    call_destroy(&call);
    return status == POSENC_OK ? EXIT_FINE : EXIT_USAGE;
}

int table_of_problem(struct cli *cli, struct number_table *table)
{
    struct arena arena = { NULL };
    struct problem_line line;
    int status = problem_take(cli, &line, &arena);
    if (status == EXIT_FINE)
        status = run_problem(cli, &line.problem, table);
    arena_free(&arena);
    return status;
}

void table_free(struct number_table *table)
{
    free(table->array[0]);
    free(table->array[1]);
    free(table->positions);
    free(table->times);
    *table = (struct number_table){ 0 };
}
