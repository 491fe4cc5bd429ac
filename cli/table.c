/* posenc table: writes the output of a problem on one backend as csv, npy or safetensors (see table.h). */
#define _POSIX_C_SOURCE 200809L
#include "worker.h"
#include "conformance/problem/storage.h"
#include "conformance/readers/vectors.h"
#include "select.h"
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The operand TABLE ---- */

static const char *const column_kinds[] = { "frequencies", "drift", "errors" };
enum { COLUMN_KINDS = sizeof column_kinds / sizeof *column_kinds };
static const char expected[] =
    "expected frequencies, drift, errors, sinusoidal or rope_table, or --problem LINE alone";

/* Rejects TABLE unless it is the name of a kernel, whose parameters come from --model. */
static void check_kernel(const struct cli *cli)
{
    static const char *const names[] = { "frequencies", "drift", "errors", "sinusoidal",
                                         "rope_table" };
    const char *name = cli->operands[0];
    if (cli->problem)
        cli_reject("TABLE", name, "has no effect with --problem: %s", expected);
    if (posenc_kernel_find(name) == POSENC_KERNEL_NONE)
        cli_reject_name("TABLE", name, names, sizeof names / sizeof *names);
    if (cli->model.n == 0)
        cli_reject("TABLE", name, "needs a whole problem, --problem '%s ...', or --model NAME",
                   name);
}

/* Returns the line of the problem, and stores the kind of table. */
static const char *parse_table(const struct cli *cli, enum table_kind *kind)
{
    *kind = TABLE_VALUES;
    if (cli->n_operands > 1)
        cli_reject("unexpected argument", cli->operands[1], "%s", expected);
    for (int i = 0; i < COLUMN_KINDS && cli->n_operands == 1; i++)
        if (strcmp(cli->operands[0], column_kinds[i]) == 0)
            *kind = (enum table_kind)(TABLE_FREQUENCIES + i);
    if (*kind == TABLE_VALUES && cli->n_operands == 1) {
        check_kernel(cli);
        return cli->operands[0];
    }
    if (cli->problem)
        return cli->problem;
    if (*kind == TABLE_VALUES)
        cli_reject("TABLE", NULL, "%s", expected);
    if (cli->model.n > 0)
        return "rope_table";
    if (*kind == TABLE_ERRORS)
        return "rope_table rotary_dim=128";
    cli_reject("TABLE", cli->operands[0],
               "needs --problem 'rope_table rotary_dim=128 ...' or --model NAME");
}

/* ---- Options without effect ---- */

static bool is_set(const struct problem *problem, const char *name)
{
    struct field field;
    return kernel_field_find(problem->kernel, name, &field) && !field_is_blank(&field, problem);
}

/* Returns true if a field is a parameter of another scaling. Lengths are allowed with every scaling. */
static bool is_of_other_scaling(const char *name, enum posenc_scaling scaling)
{
    static const char *const of_any[] = { "attention_factor", "seq_len",
                                          "max_position_embeddings",
                                          "original_max_position_embeddings" };
    const size_t length = strlen(name);
    bool input = false;
    for (size_t i = 0; i < sizeof of_any / sizeof *of_any; i++)
        if (strcmp(name, of_any[i]) == 0)
            return false;
    for (int i = 0; scaling_names[i]; i++)
        input |= scaling_has_parameter((enum posenc_scaling)i, name, length);
    return input && !scaling_has_parameter(scaling, name, length);
}

/* Rejects options and fields of --problem that would have no effect. */
static void check_effect(const struct cli *cli, enum table_kind kind,
                         const struct problem *problem)
{
    static const char *const needs[][2] = { { "mrope_layout", "mrope_section" },
                                            { "mrope_grid", "mrope_section" },
                                            { "xpos_centre", "xpos_scale_base" },
                                            { "xpos_inverse", "xpos_scale_base" } };
    struct field field;
    if (cli->layer_type && cli->model.n == 0)
        cli_reject("--layer-type", cli->layer_type,
                   "has no effect here: it needs --model or --config");
    if (kind != TABLE_VALUES && (cli->positions || cli->grid))
        cli_reject(cli->positions ? "--positions" : "--grid", NULL,
                   "has no effect here: it is for values");
    if ((kind == TABLE_FREQUENCIES || kind == TABLE_DRIFT) &&
        cli->backend.n + cli->plugin.n > 0)
        cli_reject(cli->backend.n > 0 ? "--backend" : "--plugin", NULL,
                   "has no effect here: it is for values and errors");
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (is_set(problem, needs[i][0]) && !is_set(problem, needs[i][1]))
            cli_reject("--problem", NULL, "%s has no effect here: it needs %s", needs[i][0],
                       needs[i][1]);
    for (int i = 0; cli->model.n == 0 && kernel_field(problem->kernel, i, &field); i++)
        if (is_of_other_scaling(field.name, problem->freqs.scaling) &&
            !field_is_blank(&field, problem))
            cli_reject("--problem", NULL, "%s has no effect here: scaling %s does not take it",
                       field.name, scaling_names[problem->freqs.scaling]);
}

/* ---- Values ---- */

static void free_table(struct number_table *table)
{
    free(table->array[0]);
    free(table->array[1]);
    free(table->positions);
}

/* Stores the position or time of each row on each axis; the index of the row if the kernel has no positions. */
static void store_positions(const struct problem *p, struct number_table *table)
{
    const bool of_positions = kernel_has_freqs(p->kernel);
    table->position_header = of_positions ? "position" : "row";
    if (table->positions)
        return;
    table->n_axes = of_positions ? problem_axes(p) : 1;
    table->are_times = of_positions && p->position_kind == POSENC_POSITIONS_F32;
    table->positions =
        cli_allocate((size_t)(table->rows * table->n_axes), sizeof *table->positions);
    for (int64_t i = 0; i < table->rows * table->n_axes; i++) {
        const int64_t tokens = of_positions ? p->tokens : table->rows;
        const int64_t b = i % table->rows / tokens, t = i % table->rows % tokens;
        const int axis = (int)(i / table->rows);
        table->positions[i] = !of_positions      ? (double)i
                              : table->are_times ? (double)(float)problem_time(p, b, t, axis)
                                                 : (double)problem_axis_position(p, b, t, axis);
    }
}

/* Copies the outputs of a call to dense arrays. */
static void copy_outputs(const struct call *call, struct number_table *table)
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
        table->array[o] = cli_allocate((size_t)table->rows, bytes);
        for (int64_t r = 0; r < table->rows; r++)
            memcpy((char *)table->array[o] + (size_t)r * bytes, storage_row(&out->tensor, r),
                   bytes);
    }
    store_positions(&call->problem, table);
}

/* Runs the call, with the positions of the table if it has any. */
static enum posenc_status run_call(struct call *call, const struct posenc_backend *backend,
                                   const struct number_table *table)
{
    const int64_t n = table->positions ? table->rows * table->n_axes : 0;
    int64_t *whole = cli_allocate((size_t)n, sizeof *whole);
    float *times = (float *)whole;
    for (int64_t i = 0; i < n; i++) {
        if (table->are_times)
            times[i] = (float)table->positions[i];
        else
            whole[i] = (int64_t)table->positions[i];
    }
    if (n > 0)
        *call_positions(call) = (struct posenc_positions){
            .kind = table->are_times ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64,
            .data = whole,
            .stride_token = 1,
            .stride_axis = table->n_axes > 1 ? table->rows : 0,
        };
    worker_enter_kernel(posenc_kernel_name(call->problem.kernel));
    const enum posenc_status status = call_run(call, backend);
    worker_leave_kernel();
    free(whole);
    return status;
}

static int64_t largest_position(const struct problem *problem, const struct number_table *table)
{
    double largest = (double)problem_position(problem, 0, problem->tokens - 1);
    for (int64_t i = 0; table->positions && i < table->rows * table->n_axes; i++)
        largest = i == 0 ? table->positions[i] : fmax(largest, table->positions[i]);
    return (int64_t)floor(largest);
}

static void compute_values(const struct cli *cli, struct model_problem *input,
                           struct number_table *table)
{
    struct problem *problem = &input->problem;
    const struct posenc_backend *backend = select_one(cli, problem->kernel);
    struct call call;
    table_set_rows(cli, input, table);
    if (kernel_has_freqs(problem->kernel))
        table_set_seq_len(cli, largest_position(problem, table), &problem->freqs);
    problem_check_cost(problem, false);
    enum posenc_status status = call_create(&call, problem, &tensor_allocator_default);
    if (status != POSENC_OK)
        cli_reject_status("--problem", status, &call.error);
    if (call.outputs[0].rows < 1 || call.outputs[0].width < 1) {
        call_destroy(&call);
        problem_reject_empty(cli, problem);
    }
    status = run_call(&call, backend, table);
    if (status != POSENC_OK)
        cli_reject_status("--problem", status, &call.error);
    copy_outputs(&call, table);
    call_destroy(&call);
}

/* ---- Formats ---- */

static void write_position(const struct number_table *table, int64_t row, FILE *out)
{
    for (int axis = 0; axis < table->n_axes; axis++) {
        fputs(axis > 0 ? "," : "", out);
        fprintf(out, table->are_times ? "%.9g" : "%.0f",
                table->positions[axis * table->rows + row]);
    }
}

/* Writes a header such as position,cos[0],...,sin[0],... and a line for each row. Nine significant digits identify an
 * f32. */
static void write_csv(const struct number_table *table, FILE *out)
{
    fputs(table->position_header, out);
    for (int axis = 0; axis < table->n_axes && table->n_axes > 1; axis++)
        fprintf(out, axis == 0 ? "[%d]" : ",position[%d]", axis);
    for (int a = 0; a < table->n_arrays; a++)
        for (int64_t i = 0; i < table->width; i++)
            fprintf(out, ",%s[%lld]", table->name[a], (long long)i);
    fputc('\n', out);
    for (int64_t t = 0; t < table->rows && !ferror(out); t++) {
        write_position(table, t, out);
        for (int a = 0; a < table->n_arrays; a++)
            for (int64_t i = 0; i < table->width; i++)
                fprintf(
                    out, ",%.9g",
                    (double)storage_get(table->dtype, table->array[a], t * table->width + i));
        fputc('\n', out);
    }
}

/* Returns false without memory. Write errors are checked later (outputs_commit()). */
static bool write_table(const struct number_table *table, const char *format, FILE *out)
{
    static const char *const types[] = { "F32", "F16", "BF16" }; /* enum posenc_dtype */
    struct stored_array arrays[2];
    for (int a = 0; a < table->n_arrays; a++)
        arrays[a] = (struct stored_array){ table->name[a], types[table->dtype], table->rows,
                                           table->width, table->array[a] };
    if (strcmp(format, "safetensors") == 0)
        return safetensors_write(arrays, (size_t)table->n_arrays, out);
    if (strcmp(format, "npy") == 0)
        npy_write(&arrays[0], out);
    else
        write_csv(table, out);
    return true;
}

/* Rejects a format that cannot hold the table, or columns of several types for NULL. */
static void check_formats(const struct number_table *table, const struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->n; i++) {
        const char *name = outputs->output[i].format->name;
        const bool npy = strcmp(name, "npy") == 0;
        if (!table && strcmp(name, "csv") != 0)
            cli_reject("--out", name, "it cannot hold columns of several types: expected csv");
        if (table && npy && table->n_arrays > 1)
            cli_reject(
                "--out", name,
                "one file holds one array, and the table has two: expected csv or safetensors");
        if (table && npy && table->dtype == POSENC_DTYPE_BF16)
            cli_reject("--out", name, "NumPy has no bf16: expected csv or safetensors");
    }
}

static void write_values(const struct cli *cli, struct model_problem *input,
                         const struct outputs *outputs)
{
    struct number_table table = { 0 };
    compute_values(cli, input, &table);
    check_formats(&table, outputs);
    for (size_t i = 0; i < outputs->n; i++)
        if (!write_table(&table, outputs->output[i].format->name, outputs->output[i].stream))
            cli_reject_status("table", POSENC_ERR_MEMORY, NULL);
    free_table(&table);
}

int command_table(struct cli *cli)
{
    struct model_problem input;
    struct outputs outputs;
    enum table_kind kind;
    problem_read_over_model(cli, parse_table(cli, &kind), &input);
    check_effect(cli, kind, &input.problem);
    outputs_open(cli, &outputs);
    if (kind == TABLE_VALUES) {
        write_values(cli, &input, &outputs);
    } else {
        check_formats(NULL, &outputs);
        table_write_columns(cli, kind, &input.problem, &outputs);
    }
    outputs_commit(&outputs);
    problem_free(&input);
    return EXIT_OK;
}
