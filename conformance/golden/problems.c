/*
 * Problems for golden.py, as a shared object: reads lines of the notation, and returns their fields and inputs with the
 * results of the oracle and of the library. golden.py also calls functions of both, which the object contains.
 *
 * Answers are texts, lines or JSON, that the next call overwrites; those for errors begin with "error: ". Arrays in
 * JSON are the bytes of their elements as hexadecimal digits. For example, golden_problem() returns
 *
 *     {"kernel": "rope_half", "fields": {"head_dim": 4, ...}, "x": "0000803f...", "outputs": [{"name": "out", ...}]}
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/exact/exact.h"
#include "conformance/oracle/oracle.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"
#include "conformance/readers/vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *golden_cases(const char *root, bool tensors);
const char *golden_lines(const char *path);
const char *golden_random_line(const char *kernel, uint64_t seed);
const char *golden_problem(const char *line, bool library);
const char *golden_freqs(const char *line);

static char *answer;
static FILE *out;

static void answer_begin(void)
{
    static size_t bytes;
    free(answer);
    answer = NULL;
    out = open_memstream(&answer, &bytes);
    if (!out)
        abort();
}

static const char *answer_end(void)
{
    fclose(out);
    return answer;
}

/* Replaces the answer by an error. */
static const char *answer_error(const char *error)
{
    fclose(out);
    answer_begin();
    fprintf(out, "error: %s", error);
    return answer_end();
}

/* ---- Answers of lines ---- */

static void print_line(const struct problem *problem, const char *name)
{
    const size_t room = notation_print(problem, name, NULL, 0) + 1;
    char *line = malloc(room);
    if (!line)
        abort();
    notation_print(problem, name, line, room);
    fprintf(out, "%s\n", line);
    free(line);
}

/* Returns a line for each golden case: group, id, flags, hashes (if `tensors`) and problem, with tabs between. */
const char *golden_cases(const char *root, bool tensors)
{
    struct vectors vectors;
    char error[VECTORS_ERROR], hash[65];
    answer_begin();
    if (!(tensors ? vectors_load : vectors_load_cases)(root, &vectors, error))
        return answer_error(error);
    for (size_t i = 0; i < vectors.n; i++) {
        const struct vector_case *c = &vectors.cases[i];
        fprintf(out, "%s\t%s\t%s\t", c->group, c->id, c->flags);
        for (int o = 0; o < c->n_outputs; o++) {
            sha256_hex(c->want[o], (size_t)(c->rows[o] * c->width[o]) * sizeof *c->want[o],
                       hash);
            fprintf(out, "%s ", hash);
        }
        putc('\t', out);
        print_line(&c->problem, c->name);
    }
    vectors_free(&vectors);
    return answer_end();
}

/* Returns the problems of a file in the notation, one a line. */
const char *golden_lines(const char *path)
{
    struct problem_list list = { .n = 0 };
    char error[NOTATION_ERROR];
    size_t bytes;
    answer_begin();
    const char *text = vectors_read_file(&list.arena, path, &bytes, error);
    const bool good = text && notation_read_file(text, path, &list, error);
    for (size_t i = 0; good && i < list.n; i++)
        print_line(&list.lines[i].problem, list.lines[i].name);
    arena_free(&list.arena);
    return good ? answer_end() : answer_error(error);
}

const char *golden_random_line(const char *kernel, uint64_t seed)
{
    int64_t positions[MOST_RANDOM_TOKENS];
    const struct problem problem = problem_random(posenc_kernel_find(kernel), seed, positions);
    answer_begin();
    print_line(&problem, NULL);
    return answer_end();
}

/* ---- Parts of JSON ---- */

static void put_array(const char *name, const void *data, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *byte = data;
    fprintf(out, ", \"%s\": \"", name);
    for (const unsigned char *end = byte + bytes; byte < end; byte++) {
        putc(digits[*byte >> 4], out);
        putc(digits[*byte & 15], out);
    }
    putc('"', out);
}

static void put_value(const struct field *field, uint64_t bits)
{
    if (field_is_real(field))
        fprintf(out, "%.17g", bits_to_double(bits));
    else if (field->kind == FIELD_U64)
        fprintf(out, "%" PRIu64, bits);
    else if (field->kind == FIELD_ENUM)
        fprintf(out, "\"%s\"", field->names[bits]);
    else if (field->kind == FIELD_BOOL)
        fputs(bits ? "true" : "false", out);
    else
        fprintf(out, "%" PRId64, (int64_t)bits);
}

/* Prints all fields of the kernel, without the memory layouts of tensors. */
static void put_fields(const struct problem *problem)
{
    struct field field;
    fprintf(out, "\"kernel\": \"%s\", \"fields\": {", posenc_kernel_name(problem->kernel));
    for (int i = 0; kernel_field(problem->kernel, i, &field); i++) {
        if (field.tensor)
            continue;
        fprintf(out, "%s\"%s\": %s", i ? ", " : "", field.name, field.list ? "[" : "");
        const int64_t n = field_length(&field, problem);
        for (int64_t k = 0; k < n; k++) {
            fputs(k ? ", " : "", out);
            put_value(&field, field_get(&field, problem, k));
        }
        fputs(field.list ? "]" : "", out);
    }
    putc('}', out);
}

/* Prints the dense copies of inputs by their names, and the positions on each axis as times0, times1, times2. */
static void put_inputs(const struct call *call)
{
    const struct problem *p = &call->problem;
    for (EACH_TENSOR(spec, signature_of(p->kernel))) {
        const float *data = NULL;
        if (spec->dense_copy)
            memcpy(&data, (const char *)call + spec->dense_copy, sizeof data);
        if (data)
            put_array(spec->name, data, (size_t)tensor_elements(p, spec) * sizeof *data);
    }
    const int64_t tokens = kernel_on_scores(p->kernel) ? 0 : p->batch * p->tokens;
    for (int axis = 0; axis < problem_axes(p); axis++) {
        double *times = calloc((size_t)tokens + 1, sizeof *times);
        char name[16];
        if (!times)
            abort();
        for (int64_t t = 0; t < tokens; t++)
            times[t] = problem_time(p, t / p->tokens, t % p->tokens, axis);
        snprintf(name, sizeof name, "times%d", axis);
        put_array(name, times, (size_t)tokens * sizeof *times);
        free(times);
    }
}

static void put_output(const struct call *call, int o, const struct oracle *oracle,
                       bool library)
{
    const struct output *output = &call->outputs[o];
    const int64_t rows = output->rows, width = output->width;
    double *want = calloc((size_t)(rows * width) + 1, sizeof *want);
    float *got = calloc((size_t)(rows * width) + 1, sizeof *got);
    if (!want || !got)
        abort();
    for (int64_t r = 0; r < rows; r++) {
        oracle_compute_row(oracle, o, r, want + r * width, NULL);
        if (library)
            memcpy(got + r * width, call_row(call, o, r), (size_t)width * sizeof *got);
    }
    fprintf(out, "%s{\"name\": \"%s\", \"rows\": %" PRId64 ", \"width\": %" PRId64,
            o ? ", " : "", output->name, rows, width);
    put_array("oracle", want, (size_t)(rows * width) * sizeof *want);
    if (library)
        put_array("library", got, (size_t)(rows * width) * sizeof *got);
    putc('}', out);
    free(want);
    free(got);
}

/* Prints the rows of a rotation whose hash is published: products and sums are rounded to f32. */
static void put_unfused(const struct call *call)
{
    const struct output *output = &call->outputs[0];
    float *rows = calloc((size_t)(output->rows * output->width), sizeof *rows);
    if (!rows)
        abort();
    for (int64_t r = 0; r < output->rows; r++)
        oracle_compute_row_unfused(call, r, rows + r * output->width);
    put_array("unfused", rows, (size_t)(output->rows * output->width) * sizeof *rows);
    free(rows);
}

/* ---- Answers of JSON ---- */

/* Prints a call with its inputs and outputs. Returns false if the library rejects it. */
static bool put_call(struct call *call, bool library)
{
    const enum input_recipe recipe = call->problem.recipe;
    struct oracle *oracle = oracle_create(call);
    const bool good =
        oracle && (!library || call_run(call, posenc_backend_find("scalar")) == POSENC_OK);
    putc('{', out);
    put_fields(&call->problem);
    put_inputs(call);
    if (recipe >= RECIPE_ONNX && recipe <= RECIPE_ONNX_NO_POSITION_IDS)
        put_unfused(call);
    fputs(", \"outputs\": [", out);
    for (int o = 0; good && o < call->n_outputs; o++)
        put_output(call, o, oracle, library);
    fputs("]}", out);
    oracle_destroy(oracle);
    return good;
}

/* Returns a problem with its inputs, the rows of the oracle and, if `library`, those of the scalar backend. */
const char *golden_problem(const char *line, bool library)
{
    struct problem_line read;
    struct arena arena = { .last = NULL };
    struct call call;
    char error[NOTATION_ERROR] = "the library rejects it";
    answer_begin();
    bool good = notation_read(line, &read, &arena, error);
    if (good && call_create(&call, &read.problem, &tensor_allocator_default) != POSENC_OK) {
        posenc_error_text(&call.error, error, sizeof error);
        good = false;
    } else if (good) {
        good = put_call(&call, library);
        call_destroy(&call);
    }
    arena_free(&arena);
    return good ? answer_end() : answer_error(error);
}

static void put_oracle_freqs(const struct posenc_freqs_spec *spec)
{
    enum { MOST_PAIRS = 512 };
    static uint64_t turn[MOST_PAIRS][3];
    static float inv_freq[MOST_PAIRS];
    double attention;
    const size_t pairs = (size_t)exact_freqs(spec, MOST_PAIRS, turn, inv_freq, &attention);
    fputs(", \"oracle\": {\"axis\": [", out);
    for (size_t i = 0; i < pairs; i++)
        fprintf(out, "%s%d", i ? ", " : "", exact_axis(spec, (int64_t)i));
    fprintf(out, "], \"attention\": %.17g", attention);
    put_array("turn", turn, pairs * sizeof *turn);
    put_array("f32", inv_freq, pairs * sizeof *inv_freq);
    putc('}', out);
}

static bool put_library_freqs(const struct posenc_freqs_spec *spec)
{
    struct posenc_freqs *freqs;
    if (posenc_freqs_create(spec, &freqs, NULL) != POSENC_OK)
        return false;
    const struct posenc_freqs_view view = posenc_freqs_view_of(freqs);
    const size_t pairs = (size_t)view.n_pairs;
    fputs(", \"library\": {\"axis\": [", out);
    for (size_t i = 0; i < pairs; i++)
        fprintf(out, "%s%d", i ? ", " : "", view.axis ? view.axis[i] : 0);
    fprintf(out, "], \"attention\": %.17g", view.attention_factor);
    put_array("turn_hi", view.turn_hi, pairs * sizeof *view.turn_hi);
    put_array("turn_lo", view.turn_lo, pairs * sizeof *view.turn_lo);
    put_array("f32", view.omega_f32, pairs * sizeof *view.omega_f32);
    put_array("omega", view.omega, pairs * sizeof *view.omega);
    putc('}', out);
    posenc_freqs_destroy(freqs);
    return true;
}

/* Returns the frequencies of a problem by the oracle and by the library. */
const char *golden_freqs(const char *line)
{
    struct problem_line read;
    struct arena arena = { .last = NULL };
    char error[NOTATION_ERROR];
    answer_begin();
    if (!notation_read(line, &read, &arena, error))
        return answer_error(error);
    putc('{', out);
    put_fields(&read.problem);
    put_oracle_freqs(&read.problem.freqs);
    const bool good = put_library_freqs(&read.problem.freqs);
    putc('}', out);
    arena_free(&arena);
    return good ? answer_end() : answer_error("the library rejects it");
}
