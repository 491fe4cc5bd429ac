/*
 * What each row of an output should be: by its signature, whose file says it, but for tables
 * (tables.c) and rotations; and the sum with x, from exact products and rounded to odd.
 */
#include "rows.h"

#include <math.h>
#include <stdlib.h>

float add_f32(float a, float b) { return (float)((double)a + (double)b); }

int64_t token_position(const struct problem *problem, int64_t r, int64_t per_token)
{
    const int64_t token = r / per_token;
    return problem_position(problem, token / problem->tokens, token % problem->tokens);
}

/* ---- Rotations ---- */

struct channels channels_of(const struct problem *problem, int64_t i)
{
    const int64_t from = problem->rotary_offset, half = problem->rotary_dim / 2;
    return problem->kernel == POSENC_KERNEL_rope_interleaved
               ? (struct channels){ from + 2 * i, from + 2 * i + 1 }
               : (struct channels){ from + i, from + i + half };
}

static void row_rope(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const int64_t width = call->outputs[o].width, half = problem->rotary_dim / 2;
    const int64_t row = token_position(problem, r, problem->heads) * half;
    const float *x = call->x + r * width;
    for (int64_t k = 0; k < width; k++)
        want[k] = (double)x[k];
    for (int64_t i = 0; i < half; i++) {
        const struct channels at = channels_of(problem, i);
        const double c = (double)call->cos[row + i];
        const double s = (double)call->sin[row + i] * (problem->transpose ? -1.0 : 1.0);
        const double x0 = (double)x[at.a], x1 = (double)x[at.b];
        want[at.a] = add_to_odd(x0 * c, -(x1 * s));
        want[at.b] = add_to_odd(x1 * c, x0 * s);
    }
}

/* Of what turns the larger of two products. */
static void mass_rope(const struct call *call, int64_t r, double *mass)
{
    const struct problem *problem = &call->problem;
    const int64_t half = problem->rotary_dim / 2;
    const int64_t row = token_position(problem, r, problem->heads) * half;
    const float *x = call->x + r * problem->dim;
    for (int64_t i = 0; i < half; i++) {
        const struct channels at = channels_of(problem, i);
        const double c = (double)call->cos[row + i], s = (double)call->sin[row + i];
        const double x0 = (double)x[at.a], x1 = (double)x[at.b];
        mass[at.a] = fmax(fabs(x0 * c), fabs(x1 * s));
        mass[at.b] = fmax(fabs(x1 * c), fabs(x0 * s));
    }
}

/* Casts keep a compiler from contracting, and change nothing: products of two f32 are exact in
 * f64, and a sum of two f32 rounded to f64 first rounds to the same f32. */
static float unfused(float a, float b, float c, float d)
{
    const float ab = (float)((double)a * (double)b), cd = (float)((double)c * (double)d);
    return (float)((double)ab + (double)cd);
}

void oracle_row_unfused(const struct call *call, int64_t r, float *out)
{
    const struct problem *problem = &call->problem;
    const int64_t half = problem->rotary_dim / 2;
    const int64_t row = token_position(problem, r, problem->heads) * half;
    const float *x = call->x + r * problem->dim;
    for (int64_t k = 0; k < problem->dim; k++)
        out[k] = x[k];
    for (int64_t i = 0; i < half; i++) {
        const struct channels at = channels_of(problem, i);
        const float c = call->cos[row + i];
        const float s = problem->transpose ? -call->sin[row + i] : call->sin[row + i];
        out[at.a] = unfused(x[at.a], c, -x[at.b], s);
        out[at.b] = unfused(x[at.b], c, x[at.a], s);
    }
}

/* Every *_add: one fma of the input and the value that the table kernel would have stored. */
static void add_input(const struct call *call, int64_t r, int64_t width, double *want)
{
    const float *x = call->x + r * width;
    const double x_scale = (double)call->problem.x_scale;
    for (int64_t k = 0; k < width; k++)
        want[k] = add_to_odd((double)x[k] * x_scale, (double)odd_to_f32(want[k]));
}

const struct oracle_rows oracle_rope = { .row = row_rope, .mass = mass_rope };

static const struct oracle_rows *const of_signature[] = {
#define POSENC_SIGNATURE(name) [SIGNATURE_##name] = &oracle_##name,
#include <posenc_signatures.def>
};

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
    struct oracle *oracle = calloc(1, sizeof *oracle);
    if (!oracle)
        return NULL;
    oracle->call = call;
    oracle->rows = of_signature[kernel_signature(call->problem.kernel)];
    if (!oracle->rows->create || oracle->rows->create(oracle))
        return oracle;
    oracle_destroy(oracle);
    return NULL;
}

void oracle_destroy(struct oracle *oracle)
{
    if (!oracle)
        return;
    destroy_plan(oracle);
    free(oracle->thresholds);
    free(oracle->columns);
    free(oracle);
}
