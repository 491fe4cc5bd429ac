/*
 * Computes the expected rows of an output. Each signature has a function for this in its file
 * (conformance/signatures), that of tables in tables.c. For kernels that add to x, the sum is
 * formed here from exact products and rounded to odd.
 */
#include "rows.h"

#include <math.h>

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
