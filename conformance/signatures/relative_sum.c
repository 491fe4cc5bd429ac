/*
 * relative_sum: attention weights added up by relative position, for Shaw's values (1803.02155).
 */
#include "shared.h"

const struct signature signature_relative_sum = {
    BLANK(relative_sum),
    .tensors = { COLUMNS_INDEX(relative_sum),
                 { OUT(relative_sum, out),
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_COLUMN } },
                 { X(relative_sum), .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY } } },
    .columns = columns_of,
    .fields = FIELDS_SCORES "relative position_buckets max_distance scattered",
    .cuts = { DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
};

/* ---- What its rows should be ---- */

static void row_relative_sum(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const int64_t query = query_of(problem, r), keys = problem->keys;
    for (int64_t c = 0; c < width; c++)
        want[c] = 0.0;
    for (int64_t j = 0; j < keys; j++) {
        double *sum = want + oracle->columns[query - j + keys - 1];
        *sum = (double)add_f32((float)*sum, call->x[r * keys + j]);
    }
}

const struct oracle_rows oracle_relative_sum = { .row = row_relative_sum,
                                                 .create = create_columns };
