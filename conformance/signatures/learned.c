/* learned: rows of a learned table, alone or added to activations. */
#include "shared.h"

static int64_t rows_moved(const struct problem *p) { return signature_used_rows(p) * p->dim; }

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

/* ---- Expected rows ---- */

static void row_learned(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const float *row = call->table + oracle_row_position(&call->problem, r, 1) * width;
    for (int64_t k = 0; k < width; k++)
        want[k] = (double)row[k];
}

const struct oracle_functions oracle_learned = { .row = row_learned };
