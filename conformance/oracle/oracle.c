/*
 * Computes expected rows by the functions of each signature (conformance/signatures). For kernels that add to x, forms
 * the sum of x and the term.
 *
 * An answer has all rows of a call. It follows from the problem alone, so it is cached for the next backend with the
 * same problem. The cache holds answers of one kernel, up to a memory limit.
 */
#define _GNU_SOURCE
#include "conformance/problem/notation.h"
#include "rows.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Rounding to f64 first changes nothing, as an f64 has at least 2 * 24 + 2 bits. */
float oracle_add_f32(float a, float b) { return (float)((double)a + (double)b); }

int64_t oracle_row_position(const struct problem *problem, int64_t r, int64_t per_token)
{
    const int64_t token = r / per_token;
    return problem_position(problem, token / problem->tokens, token % problem->tokens);
}

/* Adds x * x_scale to the term of a kernel *_add: one fma, with the term rounded to f32 first, as the kernel without x
 * would return it. */
static void add_input(const struct call *call, int64_t r, int64_t width, double *want)
{
    const float *x = call->x + r * width;
    const double x_scale = (double)call->problem.x_scale;
    for (int64_t k = 0; k < width; k++)
        want[k] = exact_add_to_odd((double)x[k] * x_scale, (double)exact_round_f32(want[k]));
}

static const struct oracle_functions *const functions_of_signatures[] = {
#define POSENC_SIGNATURE(name) [SIGNATURE_##name] = &oracle_##name,
#include <posenc_signatures.def>
};

bool oracle_has_magnitudes(enum posenc_kernel kernel)
{
    return functions_of_signatures[kernel_signature(kernel)]->magnitudes != NULL;
}

void oracle_compute_row(const struct oracle *oracle, int o, int64_t r, double *want,
                        double *magnitudes)
{
    const struct call *call = oracle->call;
    const int64_t width = call->outputs[o].width;
    oracle->functions->row(oracle, o, r, want);
    if (kernel_adds_onto_x(call->problem.kernel))
        add_input(call, r, width, want);
    for (int64_t k = 0; magnitudes && k < width; k++)
        magnitudes[k] = fabs(want[k]);
    if (magnitudes && oracle->functions->magnitudes)
        oracle->functions->magnitudes(oracle, r, magnitudes);
}

struct oracle *oracle_create(const struct call *call)
{
    struct arena arena = { .last = NULL };
    struct oracle *oracle = arena_get(&arena, sizeof *oracle);
    if (!oracle)
        return NULL;
    oracle->arena = arena;
    oracle->call = call;
    oracle->functions = functions_of_signatures[kernel_signature(call->problem.kernel)];
    if (!oracle->functions->create || oracle->functions->create(oracle))
        return oracle;
    oracle_destroy(oracle);
    return NULL;
}

void oracle_destroy(struct oracle *oracle)
{
    struct arena arena = { .last = NULL };
    if (oracle)
        arena = oracle->arena; /* which holds the oracle itself */
    arena_free(&arena);
}

/* ---- Answers ---- */

/* The limit of values is 768 MiB, or 1280 MiB if answers have magnitudes. */
enum { LONGEST_KEY = 8192, MOST_CACHED_VALUES = 1 << 26 };

static void *cache; /* tree of answers by key, for tsearch() */
static enum posenc_kernel cached_kernel;
static int64_t cached_values;

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct oracle_answer *)a)->key,
                  ((const struct oracle_answer *)b)->key);
}

static int64_t count_values(const struct call *call)
{
    int64_t n = 0;
    for (int o = 0; o < call->n_outputs; o++)
        n += call->outputs[o].rows * call->outputs[o].width;
    return n;
}

/* Allocates an answer: one block with the struct, all f64, all f32 and the key. */
static struct oracle_answer *answer_allocate(const struct call *call, const char *key)
{
    const bool has_magnitudes = oracle_has_magnitudes(call->problem.kernel);
    const size_t n = (size_t)count_values(call), n_doubles = has_magnitudes ? 2 * n : n;
    struct oracle_answer *answer = malloc(sizeof *answer + n_doubles * sizeof(double) +
                                          n * sizeof(float) + strlen(key) + 1);
    if (!answer)
        return NULL;
    *answer = (struct oracle_answer){ .is_cached = false };
    double *values = (double *)(answer + 1);
    float *floats = (float *)(values + n_doubles);
    answer->key = strcpy((char *)(floats + n), key);
    for (int64_t o = 0, start = 0; o < call->n_outputs; o++) {
        answer->want[o] = values + start;
        answer->magnitudes[o] = has_magnitudes ? values + n + start : NULL;
        answer->stored[o] = floats + start;
        start += call->outputs[o].rows * call->outputs[o].width;
    }
    return answer;
}

static void fill_row(const struct oracle *oracle, struct oracle_answer *answer, int o,
                     int64_t r)
{
    const struct output *out = &oracle->call->outputs[o];
    const int64_t start = r * out->width;
    double *want = answer->want[o] + start, *magnitudes = answer->magnitudes[o];
    oracle_compute_row(oracle, o, r, want, magnitudes ? magnitudes + start : NULL);
    for (int64_t k = 0; k < out->width; k++)
        answer->stored[o][start + k] =
            storage_round(out->tensor.dtype, exact_round_f32(want[k]));
}

/* Computes row r of all outputs before row r + 1, as rows of cos and sin share their angles. */
static struct oracle_answer *answer_compute(const struct call *call, const char *key)
{
    struct oracle_answer *answer = answer_allocate(call, key);
    struct oracle *oracle = answer ? oracle_create(call) : NULL;
    if (!oracle) {
        free(answer);
        return NULL;
    }
    int64_t most_rows = 0;
    for (int o = 0; o < call->n_outputs; o++)
        most_rows = call->outputs[o].rows > most_rows ? call->outputs[o].rows : most_rows;
    for (int64_t r = 0; r < most_rows; r++)
        for (int o = 0; o < call->n_outputs; o++)
            if (r < call->outputs[o].rows)
                fill_row(oracle, answer, o, r);
    oracle_destroy(oracle);
    return answer;
}

/* Returns true if the library's own functions made the inputs. Only then do they follow from the problem. */
static bool has_library_inputs(const struct call *call)
{
    struct implementation implementation = *call->implementation;
    implementation.backend = implementation_library.backend;
    return memcmp(&implementation, &implementation_library, sizeof implementation) == 0;
}

/* Returns true if an answer may be cached. Large ones leave a quarter of the memory to small ones. */
static bool may_cache(int64_t values)
{
    const bool large = values > MOST_CACHED_VALUES / 64;
    return cached_values + values <= (large ? MOST_CACHED_VALUES / 4 * 3 : MOST_CACHED_VALUES);
}

struct oracle_answer *oracle_get_answer(const struct call *call)
{
    char key[LONGEST_KEY];
    const enum posenc_kernel kernel = call->problem.kernel;
    if (!has_library_inputs(call) ||
        notation_print(&call->problem, NULL, key, sizeof key) >= sizeof key)
        return answer_compute(call, "");
    if (kernel != cached_kernel) {
        tdestroy(cache, free);
        cache = NULL;
        cached_values = 0;
        cached_kernel = kernel;
    }
    struct oracle_answer *const *found =
        tfind(&(struct oracle_answer){ .key = key }, &cache, compare_keys);
    if (found)
        return *found;
    struct oracle_answer *answer = answer_compute(call, key);
    if (answer && may_cache(count_values(call)) && tsearch(answer, &cache, compare_keys)) {
        answer->is_cached = true;
        cached_values += count_values(call);
    }
    return answer;
}

void oracle_release_answer(struct oracle_answer *answer)
{
    if (answer && !answer->is_cached)
        free(answer);
}
