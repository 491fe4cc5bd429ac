/* relative_sum: attention weights summed by relative position, for Shaw's values (1803.02155). */
#include "shared.h"

#include <math.h>

/* Counts the elements whose column is also that of the key before or after. Other elements are alone in their column,
 * and are copied without an addition. */
static int64_t count_summed(const struct call *call)
{
    const struct problem *p = &call->problem;
    const int32_t *index = call->args.relative_sum.index;
    const int64_t last = signature_index_size(p) - 1;
    int64_t n = 0;
    for (int64_t k = 0; k <= last; k++) {
        const int64_t elements = /* of a query and a key at this distance */
            signature_min(signature_min(k, last - k) + 1, signature_min(p->queries, p->keys));
        const bool shared =
            (k > 0 && index[k] == index[k - 1]) || (k < last && index[k] == index[k + 1]);
        n += shared ? elements : 0;
    }
    return p->batch * p->heads * n;
}

/* Returns the limit of sums in any order: the magnitudes bound their error. */
static double rounded_limit(const struct problem *p)
{
    (void)p;
    return 1.0;
}

const struct signature signature_relative_sum = {
    BLANK(relative_sum),
    .tensors = { COLUMNS_INDEX(relative_sum),
                 { OUT(relative_sum, out),
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_COLUMN } },
                 { X(relative_sum), .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY } } },
    .columns = signature_columns,
    .rounded_limit = rounded_limit,
    .fields = FIELDS_SCORES "relative position_buckets max_distance scattered",
    .cuts = { DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_SUMS,
    .count_work = count_summed,
};

/* ---- Expected rows ---- */

/* Sums the weights of each column in the order of keys, by f32 additions. */
static void row_relative_sum(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const int64_t query = oracle_row_query(problem, r), keys = problem->keys;
    for (int64_t c = 0; c < width; c++)
        want[c] = 0.0;
    for (int64_t j = 0; j < keys; j++) {
        double *sum = want + oracle->columns[query - j + keys - 1];
        *sum = (double)oracle_add_f32((float)*sum, call->x[r * keys + j]);
    }
}

/* Sets the number of keys times the sum of the magnitudes of a column's terms. */
static void magnitudes_sum(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const int64_t query = oracle_row_query(problem, r), keys = problem->keys;
    for (int64_t c = 0; c < call->outputs[0].width; c++)
        magnitudes[c] = 0.0;
    for (int64_t j = 0; j < keys; j++)
        magnitudes[oracle->columns[query - j + keys - 1]] +=
            (double)keys * fabs((double)call->x[r * keys + j]);
}

const struct oracle_functions oracle_relative_sum = { row_relative_sum, oracle_create_columns,
                                                      magnitudes_sum };
