/*
 * Learned tables: rows added to activations, and the gradient of the table. If a gradient accumulates, call_reset() fills
 * out with the values of a learned table.
 */
#include "shared.h"

#include <math.h>

/* Returns an upper bound of the rows of a table that the tokens use. */
static int64_t used_rows(const struct problem *p)
{
    bool shared = p->position_kind == POSENC_POSITIONS_OFFSET || p->batch_shift == 0;
    return signature_min(shared ? p->tokens : p->batch * p->tokens, p->rows);
}

/* ---- learned ---- */

static int64_t rows_moved(const struct problem *p) { return used_rows(p) * p->dim; }

#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL }

const struct signature signature_learned = {
    BLANK(learned),
    .tensors = { { OUT(learned, out), ACTIVATIONS },
                 { X(learned), ACTIVATIONS },
                 { TABLE(learned, table), .dims = { DIM_ROW, DIM_CHANNEL },
                   .moved = rows_moved },
                 POSITIONS(learned) },
    .parameters = { PARAMETER(learned, x_scale) },
    .channels = MEMBER(dim),
    .fields = FIELDS_TOKENS "values_dtype dim rows x_scale",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_NONE,
};

static void row_learned(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const float *row = call->table + oracle_row_position(&call->problem, r, 1) * width;
    for (int64_t k = 0; k < width; k++)
        want[k] = (double)row[k];
}

const struct oracle_functions oracle_learned = { .row = row_learned };

/* ---- learned_grad ---- */

/* A call that accumulates reads and writes the rows of its tokens. Others write all rows. */
static int64_t out_moved(const struct problem *p)
{
    return (p->accumulate ? 2 * used_rows(p) : p->rows) * p->dim;
}

const struct signature signature_learned_grad = {
    BLANK(learned_grad),
    .tensors = { { TABLE(learned_grad, out), .role = ROLE_OUTPUT,
                   .dims = { DIM_ROW, DIM_CHANNEL }, .moved = out_moved },
                 { X(learned_grad), .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL } },
                 POSITIONS(learned_grad) },
    .parameters = { PARAMETER(learned_grad, accumulate) },
    .channels = MEMBER(dim),
    .rounded_limit = signature_limit_of_sums,
    .fields = FIELDS_TOKENS "values_dtype dim rows accumulate",
    .cuts = { DIM_CHANNEL }, /* tokens may share a row */
    .shares = { DIM_CHANNEL },
    .work = WORK_NONE,
};

/* Sums the rows of x whose position is r, in the order of tokens, by f32 additions. */
static void row_learned_grad(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    for (int64_t k = 0; k < width; k++)
        want[k] = problem->accumulate ? (double)call->table[r * width + k] : 0.0;
    for (int64_t t = oracle->first_token[r]; t >= 0; t = oracle->next_token[t])
        for (int64_t k = 0; k < width; k++)
            want[k] = (double)oracle_add_f32((float)want[k], call->x[t * width + k]);
}

/* Makes a linked list of the tokens of each row of the table, in their order. */
static bool create_learned_grad(struct oracle *oracle)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t rows = oracle->call->outputs[0].rows, n = problem->batch * problem->tokens;
    oracle->first_token = arena_get(&oracle->arena, (size_t)(rows + 1) * sizeof(int64_t));
    oracle->next_token = arena_get(&oracle->arena, (size_t)(n + 1) * sizeof(int64_t));
    if (!oracle->first_token || !oracle->next_token)
        return false;
    for (int64_t r = 0; r < rows; r++)
        oracle->first_token[r] = -1;
    for (int64_t t = n - 1; t >= 0; t--) {
        const int64_t r = oracle_row_position(problem, t, 1);
        if (r < 0 || r >= rows)
            continue;
        oracle->next_token[t] = oracle->first_token[r];
        oracle->first_token[r] = t;
    }
    return true;
}

/* Sets n times the sum of the magnitudes of a channel's n terms. */
static void magnitudes_learned_grad(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    const struct call *call = oracle->call;
    const int64_t width = call->problem.dim;
    double n = 0.0;
    for (int64_t k = 0; k < width; k++)
        magnitudes[k] =
            call->problem.accumulate ? fabs((double)call->table[r * width + k]) : 0.0;
    for (int64_t t = oracle->first_token[r]; t >= 0; t = oracle->next_token[t], n++)
        for (int64_t k = 0; k < width; k++)
            magnitudes[k] += fabs((double)call->x[t * width + k]);
    for (int64_t k = 0; k < width; k++)
        magnitudes[k] *= n;
}

const struct oracle_functions oracle_learned_grad = { row_learned_grad, create_learned_grad,
                                                      magnitudes_learned_grad };
