/*
 * Computes the expected rows of an output. Each signature has a function for this in its file
 * (conformance/signatures), that of tables in tables.c. For kernels that add to x, the sum is
 * formed here from exact products and rounded to odd.
 *
 * All rows of a call are an answer. It follows from the problem alone, so it is kept for the next
 * backend with the same problem. Answers of one kernel are kept, up to a memory limit.
 */
#define _GNU_SOURCE
#include "conformance/problem/notation.h"
#include "rows.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

float add_f32(float a, float b) { return (float)((double)a + (double)b); }

int64_t token_position(const struct problem *problem, int64_t r, int64_t per_token)
{
    const int64_t token = r / per_token;
    return problem_position(problem, token / problem->tokens, token % problem->tokens);
}

/* ---- Rows by signature ---- */

/* Kernels *_add: one fma of the input and the value that the table kernel would have stored. */
static void add_input(const struct call *call, int64_t r, int64_t width, double *want)
{
    const float *x = call->x + r * width;
    const double x_scale = (double)call->problem.x_scale;
    for (int64_t k = 0; k < width; k++)
        want[k] = add_to_odd((double)x[k] * x_scale, (double)odd_to_f32(want[k]));
}

static const struct oracle_rows *const rows_of_signatures[] = {
#define POSENC_SIGNATURE(name) [SIGNATURE_##name] = &oracle_##name,
#include <posenc_signatures.def>
};

bool oracle_has_masses(enum posenc_kernel kernel)
{
    return rows_of_signatures[kernel_signature(kernel)]->mass != NULL;
}

void oracle_row(const struct oracle *oracle, int o, int64_t r, double *want, double *mass)
{
    const struct call *call = oracle->call;
    const int64_t width = call->outputs[o].width;
    oracle->rows->row(oracle, o, r, want);
    if (kernel_adds_onto_x(call->problem.kernel))
        add_input(call, r, width, want);
    for (int64_t k = 0; mass && k < width; k++)
        mass[k] = fabs(want[k]);
    if (mass && oracle->rows->mass)
        oracle->rows->mass(call, r, mass);
}

/* ---- Creation ---- */

struct oracle *oracle_create(const struct call *call)
{
    struct arena arena = { .last = NULL };
    struct oracle *oracle = arena_get(&arena, sizeof *oracle);
    if (!oracle)
        return NULL;
    oracle->arena = arena;
    oracle->call = call;
    oracle->rows = rows_of_signatures[kernel_signature(call->problem.kernel)];
    if (!oracle->rows->create || oracle->rows->create(oracle))
        return oracle;
    oracle_destroy(oracle);
    return NULL;
}

void oracle_destroy(struct oracle *oracle)
{
    struct arena arena = { .last = NULL };
    if (oracle)
        arena = oracle->arena;
    arena_free(&arena);
}

/* ---- Answers ---- */

enum { LONGEST_KEY = 8192 };
/* 768 MiB, or 1280 MiB if masses are separate. */
static const int64_t most_values = INT64_C(1) << 26;

static void *cache; /* the tree of tsearch() */
static enum posenc_kernel cached_kernel;
static int64_t cached_values;

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct answer *)a)->key, ((const struct answer *)b)->key);
}

static int64_t count_values(const struct call *call)
{
    int64_t n = 0;
    for (int o = 0; o < call->n_outputs; o++)
        n += call->outputs[o].rows * call->outputs[o].width;
    return n;
}

static void answer_destroy(struct answer *answer)
{
    if (answer) {
        free(answer->key);
        free(answer->values);
        free(answer->floats);
        free(answer);
    }
}

/* Allocates an answer: one array of f64 values for all outputs, and one of f32 stored values. */
static struct answer *answer_allocate(const struct call *call, const char *key)
{
    const bool masses = oracle_has_masses(call->problem.kernel);
    const size_t n = (size_t)count_values(call);
    struct answer *answer = calloc(1, sizeof *answer);
    if (!answer)
        return NULL;
    answer->key = strdup(key);
    answer->values = malloc(((masses ? 2 : 1) * n + 1) * sizeof *answer->values);
    answer->floats = malloc((n + 1) * sizeof *answer->floats);
    if (!answer->key || !answer->values || !answer->floats) {
        answer_destroy(answer);
        return NULL;
    }
    for (int64_t o = 0, at = 0; o < call->n_outputs; o++) {
        answer->want[o] = answer->values + at;
        answer->mass[o] = masses ? answer->values + n + at : NULL;
        answer->stored[o] = answer->floats + at;
        at += call->outputs[o].rows * call->outputs[o].width;
    }
    return answer;
}

static void fill_row(const struct oracle *oracle, const struct call *call,
                     struct answer *answer, int o, int64_t r)
{
    const int64_t width = call->outputs[o].width, at = r * width;
    double *want = answer->want[o] + at;
    oracle_row(oracle, o, r, want, answer->mass[o] ? answer->mass[o] + at : NULL);
    for (int64_t k = 0; k < width; k++)
        answer->stored[o][at + k] =
            storage_round(call->outputs[o].tensor.dtype, odd_to_f32(want[k]));
}

/* Computes all outputs row by row, because the rows of cos and sin follow from the same angles. */
static struct answer *answer_compute(const struct call *call, const char *key)
{
    struct answer *answer = answer_allocate(call, key);
    struct oracle *oracle = answer ? oracle_create(call) : NULL;
    if (!oracle) {
        answer_destroy(answer);
        return NULL;
    }
    for (int64_t r = 0, left = 1; left; r++) {
        left = 0;
        for (int o = 0; o < call->n_outputs; o++)
            if (r < call->outputs[o].rows) {
                fill_row(oracle, call, answer, o, r);
                left = 1;
            }
    }
    oracle_destroy(oracle);
    return answer;
}

static void destroy_node(void *answer) { answer_destroy(answer); }

/* Returns true if the library's own functions made the inputs. Inputs made by other functions need
 * not follow from the problem. */
static bool has_library_inputs(const struct call *call)
{
    struct implementation implementation = *call->implementation;
    implementation.backend = implementation_library.backend;
    return memcmp(&implementation, &implementation_library, sizeof implementation) == 0;
}

/* Returns true if an answer may be kept. Large ones leave a quarter of the memory to small ones. */
static bool may_keep(int64_t values)
{
    const bool large = values > most_values / 64;
    return cached_values + values <= (large ? most_values / 4 * 3 : most_values);
}

struct answer *answer_take(const struct call *call)
{
    char key[LONGEST_KEY];
    const enum posenc_kernel kernel = call->problem.kernel;
    if (!has_library_inputs(call) ||
        notation_print(&call->problem, NULL, key, sizeof key) >= sizeof key)
        return answer_compute(call, "");
    if (kernel != cached_kernel) {
        tdestroy(cache, destroy_node);
        cache = NULL;
        cached_values = 0;
        cached_kernel = kernel;
    }
    struct answer *const *found = tfind(&(struct answer){ .key = key }, &cache, compare_keys);
    if (found)
        return *found;
    struct answer *answer = answer_compute(call, key);
    if (answer && may_keep(count_values(call)) && tsearch(answer, &cache, compare_keys)) {
        answer->kept = true;
        cached_values += count_values(call);
    }
    return answer;
}

void answer_give_back(struct answer *answer)
{
    if (answer && !answer->kept)
        answer_destroy(answer);
}
