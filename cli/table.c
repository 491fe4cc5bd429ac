/*
 * posenc table: writes the output of a kernel with the position of each row, as csv, npy or safetensors. Other tables are
 * columns of numbers (table_columns.c). "posenc table --problem 'sinusoidal dim=2' --positions 0,1" writes
 *
 *     position,sinusoidal[0],sinusoidal[1]
 *     0,0,1
 *     1,0.841470957,0.540302277
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/readers/vectors.h"
#include "problem.h"
#include "worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TOKENS = 16, RANGE_BYTES = 80, MOST_ROWS = 1 << 29 };
static const double position_max = 2147483647.0;
static const double time_max = 2147483520.0; /* the last f32 below 2^31 */

/* ---- The operand TABLE ---- */

static const char expected[] =
    "expected frequencies, drift, errors, sinusoidal or rope_table, or --problem LINE alone";

/* Returns the kind of table that the operand names: values, if it is a kernel, whose parameters come from --model. */
static enum table_kind parse_kind(const struct cli *cli, const char *name)
{
    static const char *const names[] = { "frequencies", "drift", "errors", "sinusoidal",
                                         "rope_table" }; /* enum table_kind, then kernels */
    if (posenc_kernel_find(name) == POSENC_KERNEL_NONE) {
        const size_t kind = cli_find_name("TABLE", name, names, sizeof names / sizeof *names);
        return (enum table_kind)kind;
    }
    if (cli->problem)
        cli_reject("TABLE", name, "has no effect with --problem: %s", expected);
    if (cli->model.n == 0)
        cli_reject("TABLE", name, "needs a whole problem, --problem '%s ...', or --model NAME",
                   name);
    return TABLE_VALUES;
}

/* Returns the line of the problem, and stores the kind of table. */
static const char *parse_table(const struct cli *cli, enum table_kind *kind)
{
    const char *name = cli->n_operands > 0 ? cli->operands[0] : NULL;
    if (cli->n_operands > 1)
        cli_reject("unexpected argument", cli->operands[1], "%s", expected);
    if (!name && !cli->problem)
        cli_reject("TABLE", NULL, "%s", expected);
    *kind = name ? parse_kind(cli, name) : TABLE_VALUES;
    if (cli->problem)
        return cli->problem;
    if (*kind == TABLE_VALUES)
        return name;
    if (cli->model.n > 0)
        return "rope_table";
    if (*kind == TABLE_ERRORS)
        return "rope_table rotary_dim=128";
    cli_reject("TABLE", name,
               "needs --problem 'rope_table rotary_dim=128 ...' or --model NAME");
}

static bool is_set(const struct problem *problem, const char *name)
{
    struct field field;
    return kernel_field_find(problem->kernel, name, &field) && !field_is_blank(&field, problem);
}

/* Returns true if a field is a parameter of another scaling. Lengths are allowed with every scaling. */
static bool is_of_other_scaling(const char *name, enum posenc_scaling scaling)
{
    static const char lengths[] = "attention_factor seq_len max_position_embeddings "
                                  "original_max_position_embeddings";
    const size_t length = strlen(name);
    bool is_of_any = false;
    for (int i = 0; scaling_names[i]; i++)
        is_of_any |= scaling_has_parameter((enum posenc_scaling)i, name, length);
    return is_of_any && !text_has_word(lengths, ' ', name, length) &&
           !scaling_has_parameter(scaling, name, length);
}

/* Rejects options that would have no effect. */
static void check_options(const struct cli *cli, enum table_kind kind,
                          const struct problem *problem)
{
    const bool is_column = kind == TABLE_FREQUENCIES || kind == TABLE_DRIFT;
    if (cli->layer_type && cli->model.n == 0)
        cli_reject("--layer-type", cli->layer_type,
                   "has no effect here: it needs --model or --config");
    if (cli->positions && kind != TABLE_VALUES)
        cli_reject("--positions", NULL, "has no effect here: it is for values");
    if (cli->positions && !kernel_has_freqs(problem->kernel))
        cli_reject("--positions", NULL, "has no effect here: %s is not computed from positions",
                   posenc_kernel_name(problem->kernel));
    if (cli->positions && (problem->tokens > 0 || problem->first != 0))
        cli_reject("--positions", NULL,
                   "has no effect with tokens, positions or position_offset in the problem");
    if (cli->grid > 0 && (kind != TABLE_VALUES || problem->freqs.mrope_section[1] == 0))
        cli_reject("--grid", NULL,
                   "has no effect here: it is for values with two or three axes in "
                   "mrope_section");
    if (cli->grid > 0 && cli->positions)
        cli_reject("--grid", NULL, "expected without --positions");
    if (cli->grid > 0 && problem->position_kind == POSENC_POSITIONS_F32)
        cli_reject("--grid", NULL, "has whole positions: expected no position_kind=f32");
    if (is_column && cli->backend.n + cli->plugin.n > 0)
        cli_reject(cli->backend.n > 0 ? "--backend" : "--plugin", NULL,
                   "has no effect here: it is for values and errors");
}

/* Rejects fields of --problem that would have no effect. */
static void check_fields(const struct cli *cli, const struct problem *problem)
{
    static const struct {
        const char *field, *needs;
    } rules[] = { { "mrope_layout", "mrope_section" },
                  { "mrope_grid", "mrope_section" },
                  { "xpos_centre", "xpos_scale_base" },
                  { "xpos_inverse", "xpos_scale_base" } };
    struct field field;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_set(problem, rules[i].field) && !is_set(problem, rules[i].needs))
            cli_reject("--problem", NULL, "%s has no effect here: it needs %s", rules[i].field,
                       rules[i].needs);
    for (int i = 0; cli->model.n == 0 && kernel_field(problem->kernel, i, &field); i++)
        if (is_of_other_scaling(field.name, problem->freqs.scaling) &&
            !field_is_blank(&field, problem))
            cli_reject("--problem", NULL, "%s has no effect here: scaling %s does not take it",
                       field.name, scaling_names[problem->freqs.scaling]);
}

/* ---- --positions: numbers and ranges A..B or A..B:STEP, between commas ---- */

/* Positions of the rows, or times if any is a fraction. */
struct listed_rows {
    int64_t n; /* 0: the problem has the positions */
    bool are_times;
    bool column_first; /* of --grid: columns are the axis before rows */
    double largest;
    int64_t *positions; /* [n]; NULL before they are stored, and if they are times */
    float *times;       /* the same for times */
};

/* A range "from..to:step", or a number: both its ends. */
struct number_range {
    double from, to, step;
    int64_t rows;
};

static bool is_whole(const struct number_range *range)
{
    return range->from == floor(range->from) && range->step == floor(range->step);
}

/* Reads a number or a range. With fractions, B is included even if (B - A) / STEP is slightly below an integer. */
static bool read_range(const char *piece, struct number_range *range)
{
    char text[RANGE_BYTES];
    snprintf(text, sizeof text, "%s", piece);
    char *dots = strstr(text, ".."), *to = dots ? dots + 2 : text,
         *colon = dots ? strchr(to, ':') : NULL;
    if (dots)
        *dots = '\0';
    if (colon)
        *colon = '\0';
    range->step = 1.0;
    if (!parse_real(text, &range->from) || !parse_real(to, &range->to) ||
        (colon && !parse_real(colon + 1, &range->step)) || range->step <= 0.0 ||
        range->from > range->to)
        return false;
    const double steps = fmin((range->to - range->from) / range->step, MOST_ROWS);
    range->rows = (int64_t)floor(steps + (is_whole(range) ? 0.0 : 1e-6)) + 1;
    return true;
}

/* Stores the rows of a range from row n on, if there is memory for them. */
static void store_range(const struct number_range *range, struct listed_rows *listed, int64_t n)
{
    for (int64_t i = 0; i < range->rows && listed->positions; i++)
        listed->positions[n + i] = (int64_t)(range->from + (double)i * range->step);
    for (int64_t i = 0; i < range->rows && listed->times; i++)
        listed->times[n + i] = (float)fmin(range->from + (double)i * range->step, range->to);
}

/* Counts the rows of --positions, and stores them if there is memory for them. The first call has none. */
static void read_rows(const struct cli *cli, struct listed_rows *listed)
{
    struct number_range range = { 0 };
    char piece[RANGE_BYTES];
    int64_t n = 0;
    for (const char *begin = cli->positions, *end; begin; begin = *end ? end + 1 : NULL) {
        end = begin + strcspn(begin, ",");
        const int length = snprintf(piece, sizeof piece, "%.*s", (int)(end - begin), begin);
        const bool is_valid = length < RANGE_BYTES && read_range(piece, &range);
        listed->are_times |= is_valid && !is_whole(&range);
        const double most = listed->are_times ? time_max : position_max;
        if (!is_valid || range.from < -most || range.to > most)
            cli_reject("--positions", piece,
                       "expected numbers from -%.0f to %.0f and ranges A..B or A..B:STEP with "
                       "A <= B and a step above 0, separated by commas",
                       most, most);
        const double last = fmin(range.from + (double)(range.rows - 1) * range.step, range.to);
        store_range(&range, listed, n);
        listed->largest = n == 0 ? last : fmax(listed->largest, last);
        n += range.rows;
        if (n > MOST_ROWS)
            cli_reject("--positions", NULL, "too many rows: expected at most %d", MOST_ROWS);
    }
    listed->n = n;
}

/* ---- Values ---- */

void table_set_seq_len(const struct cli *cli, int64_t largest, struct posenc_freqs_spec *freqs)
{
    const bool longrope = freqs->scaling == POSENC_SCALING_LONGROPE;
    const double trained =
        longrope ? freqs->original_max_position_embeddings : freqs->max_position_embeddings;
    if (cli->model.n == 0 || freqs->seq_len != 0 || largest < 0 ||
        (!longrope && freqs->scaling != POSENC_SCALING_DYNAMIC))
        return;
    freqs->seq_len = largest + 1;
    if (trained > 0.0 && (double)freqs->seq_len > trained)
        cli_print_note(
            "posenc %s: %s of %lld tokens, the largest position and 1, where %.10g were "
            "trained on; --problem 'rope_table seq_len=N' takes another length\n",
            cli->command, longrope ? "longrope: the long factors," : "dynamic: the base",
            (long long)freqs->seq_len, trained);
}

/* Sets the number of rows, and the sequence length that follows from the largest position. */
static void set_rows(const struct cli *cli, struct problem *problem, struct listed_rows *listed)
{
    if (cli->grid > 0) {
        problem->position_kind = POSENC_POSITIONS_I64;
        problem->mrope_grid = cli->grid;
    }
    listed->are_times = problem->position_kind == POSENC_POSITIONS_F32;
    if (cli->positions)
        read_rows(cli, listed);
    if (cli->positions)
        problem->tokens = listed->n;
    else if (problem->tokens == 0)
        problem->tokens = DEFAULT_TOKENS;
    const double largest = cli->positions
                               ? floor(listed->largest)
                               : (double)problem_position(problem, 0, problem->tokens - 1);
    table_set_seq_len(cli, (int64_t)largest, &problem->freqs);
}

/* Replaces the positions of a call by those of --positions. */
static void set_positions(const struct cli *cli, struct call *call, struct listed_rows *listed)
{
    if (listed->are_times)
        listed->times = cli_allocate((size_t)listed->n, sizeof *listed->times);
    else
        listed->positions = cli_allocate((size_t)listed->n, sizeof *listed->positions);
    read_rows(cli, listed);
    *call_positions(call) = (struct posenc_positions){
        .kind = listed->are_times ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64,
        .data = listed->are_times ? (const void *)listed->times : listed->positions,
        .stride_token = 1,
    };
}

/* Makes the column the first of two axes, as in the vision towers of Kimi K2.5, Gemma 4 and Llama 4. */
static void swap_axes(struct posenc_positions *positions)
{
    positions->data = (const int64_t *)positions->data + positions->stride_axis;
    positions->stride_axis = -positions->stride_axis;
}

static void compute_values(const struct cli *cli, struct problem *problem, struct call *call,
                           struct listed_rows *listed)
{
    const struct posenc_backend *backend = select_one(cli, problem->kernel);
    if (kernel_has_freqs(problem->kernel))
        set_rows(cli, problem, listed);
    listed->column_first &= problem_axes(problem) == 2;
    problem_check_cost(problem, false);
    enum posenc_status status = call_create(call, problem, &tensor_allocator_default);
    if (status != POSENC_OK)
        cli_reject_status("--problem", status, &call->error);
    if (call->outputs[0].rows < 1 || call->outputs[0].width < 1)
        problem_reject_empty(cli, problem);
    if (listed->n > 0)
        set_positions(cli, call, listed);
    if (listed->column_first)
        swap_axes(call_positions(call));
    worker_enter_kernel(posenc_kernel_name(problem->kernel));
    status = call_run(call, backend);
    worker_leave_kernel();
    if (status != POSENC_OK)
        cli_reject_status("--problem", status, &call->error);
}

/* ---- Formats ---- */

static const char *array_name(const struct call *call, int o)
{
    return call->n_outputs > 1 ? call->outputs[o].name
                               : posenc_kernel_name(call->problem.kernel);
}

/* Writes the position or time of a row on each axis; the index of the row if the kernel has no positions. */
static void write_position(const struct call *call, const struct listed_rows *listed,
                           int64_t row, FILE *out)
{
    const struct problem *p = &call->problem;
    if (!kernel_has_freqs(p->kernel))
        fprintf(out, "%lld", (long long)row);
    else if (listed->n > 0 && listed->are_times)
        fprintf(out, "%.9g", (double)listed->times[row % listed->n]);
    else if (listed->n > 0)
        fprintf(out, "%lld", (long long)listed->positions[row % listed->n]);
    else
        for (int axis = 0; axis < problem_axes(p); axis++)
            fprintf(out, listed->are_times ? "%s%.9g" : "%s%.0f", axis > 0 ? "," : "",
                    problem_time(p, row / p->tokens, row % p->tokens,
                                 listed->column_first ? 1 - axis : axis));
}

/* Writes a header and a line for each row. Nine significant digits identify an f32. */
static void write_csv(const struct call *call, const struct listed_rows *listed, FILE *out)
{
    const bool has_freqs = kernel_has_freqs(call->problem.kernel);
    const int axes = has_freqs && listed->n == 0 ? problem_axes(&call->problem) : 1;
    const int64_t rows = call->outputs[0].rows, width = call->outputs[0].width;
    fputs(has_freqs ? "position" : "row", out);
    for (int axis = 0; axis < axes && axes > 1; axis++)
        fprintf(out, axis == 0 ? "[%d]" : ",position[%d]", axis);
    for (int o = 0; o < call->n_outputs; o++)
        for (int64_t i = 0; i < width; i++)
            fprintf(out, ",%s[%lld]", array_name(call, o), (long long)i);
    fputc('\n', out);
    for (int64_t r = 0; r < rows && !ferror(out); r++) {
        write_position(call, listed, r, out);
        for (int o = 0; o < call->n_outputs; o++) {
            const float *values = call_row(call, o, r);
            for (int64_t i = 0; i < width; i++)
                fprintf(out, ",%.9g", (double)values[i]);
        }
        fputc('\n', out);
    }
}

/* Writes dense copies of the outputs. */
static void write_arrays(const struct call *call, bool npy, FILE *out)
{
    static const char *const types[] = { "F32", "F16", "BF16" }; /* enum posenc_dtype */
    struct stored_array arrays[2];
    char *copies[2];
    for (int o = 0; o < call->n_outputs; o++) {
        const struct output *output = &call->outputs[o];
        const size_t bytes = (size_t)output->width * storage_size(output->tensor.dtype);
        copies[o] = cli_allocate((size_t)output->rows, bytes);
        for (int64_t r = 0; r < output->rows; r++)
            memcpy(copies[o] + (size_t)r * bytes, storage_row(&output->tensor, r), bytes);
        arrays[o] = (struct stored_array){ array_name(call, o), types[output->tensor.dtype],
                                           output->rows, output->width, copies[o] };
    }
    if (npy)
        npy_write(&arrays[0], out);
    else if (!safetensors_write(arrays, (size_t)call->n_outputs, out))
        cli_reject_status("table", POSENC_ERR_MEMORY, NULL);
    for (int o = 0; o < call->n_outputs; o++)
        free(copies[o]);
}

/* Rejects npy for two arrays and for bf16. */
static void check_format(const struct call *call, const char *format)
{
    if (strcmp(format, "npy") != 0)
        return;
    if (call->n_outputs > 1)
        cli_reject(
            "--out", format,
            "one file holds one array, and the table has two: expected csv or safetensors");
    if (call->outputs[0].tensor.dtype == POSENC_DTYPE_BF16)
        cli_reject("--out", format, "NumPy has no bf16: expected csv or safetensors");
}

static void write_values(const struct cli *cli, struct model_problem *input,
                         const struct outputs *outputs)
{
    struct listed_rows listed = { .column_first = cli->grid > 0 && input->column_first };
    struct call call;
    compute_values(cli, &input->problem, &call, &listed);
    for (size_t i = 0; i < outputs->n; i++)
        check_format(&call, outputs->output[i].format->name);
    for (size_t i = 0; i < outputs->n; i++) {
        const char *format = outputs->output[i].format->name;
        if (strcmp(format, "csv") == 0)
            write_csv(&call, &listed, outputs->output[i].stream);
        else
            write_arrays(&call, strcmp(format, "npy") == 0, outputs->output[i].stream);
    }
    call_destroy(&call);
    free(listed.positions);
    free(listed.times);
}

int command_table(struct cli *cli)
{
    struct model_problem input;
    struct outputs outputs;
    enum table_kind kind;
    problem_read_over_model(cli, parse_table(cli, &kind), &input);
    check_options(cli, kind, &input.problem);
    check_fields(cli, &input.problem);
    outputs_open(cli, &outputs);
    if (kind == TABLE_VALUES)
        write_values(cli, &input, &outputs);
    for (size_t i = 0; i < outputs.n && kind != TABLE_VALUES; i++)
        table_write_columns(cli, kind, &input.problem, &outputs.output[i]);
    outputs_commit(&outputs);
    problem_free(&input);
    return EXIT_OK;
}
