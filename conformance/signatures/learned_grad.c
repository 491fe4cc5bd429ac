/*
 * learned_grad: the gradient of a learned table, onto what out holds where the call accumulates:
 * the values of a learned table, which call_reset() puts there.
 */
#include "shared.h"

/* Rows are read and written, or all of them written. */
static int64_t out_moved(const struct problem *p)
{
    return (p->accumulate ? 2 * tokens_rows_used(p) : p->rows) * p->dim;
}

const struct signature signature_learned_grad = {
    BLANK(learned_grad),
    .tensors = { { TABLE(learned_grad, out), .role = ROLE_OUTPUT,
                   .dims = { DIM_ROW, DIM_CHANNEL }, .moved = out_moved },
                 { X(learned_grad), .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL } },
                 POSITIONS(learned_grad) },
    .parameters = { PARAMETER(learned_grad, accumulate) },
    .channels = MEMBER(dim),
    .fields = FIELDS_TOKENS "values_dtype dim rows accumulate",
    .cuts = { DIM_CHANNEL }, /* tokens may share a row */
    .shares = { DIM_CHANNEL },
    .work = WORK_NONE,
};

/* ---- What its rows should be ---- */

/* The rows of x whose position is r, one f32 add after the other. */
static void row_learned_grad(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    for (int64_t k = 0; k < width; k++)
        want[k] = problem->accumulate ? (double)call->table[r * width + k] : 0.0;
    for (int64_t t = 0; t < problem->batch * problem->tokens; t++)
        for (int64_t k = 0; token_position(problem, t, 1) == r && k < width; k++)
            want[k] = (double)add_f32((float)want[k], call->x[t * width + k]);
}

const struct oracle_rows oracle_learned_grad = { .row = row_learned_grad };
