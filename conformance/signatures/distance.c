/* distance: a bias by distance, from a table of values (KERPLE, Chi et al. 2205.09921). */
#include "shared.h"

/* Limit of query_offset. Kernels have a far lower limit; this one only keeps the sums below from overflowing. */
#define MOST_OFFSET (INT64_C(1) << 40)

static bool check_offset(struct call *call)
{
    return call_check_range(call, POSENC_ERR_SHAPE, "query_offset", call->problem.query_offset,
                            -MOST_OFFSET, MOST_OFFSET);
}

static int64_t count_columns(const struct problem *p)
{
    return p->distances ? p->distances : problem_count_distances(p->queries, p->keys);
}

/* Sets `first`, the least distance of the call, which is that of query 0 and the last key. */
static void finish(struct call *call)
{
    struct problem *p = &call->problem;
    p->distances = call->columns = count_columns(p);
    call->args.distance.first = p->query_offset - (p->keys - 1);
}

static int64_t values_moved(const struct problem *p)
{
    return p->heads * problem_count_distances(p->queries, p->keys);
}

const struct signature signature_distance = {
    BLANK(distance),
    .tensors = { { OUT(distance, out), SCORES },
                 { X(distance), SCORES },
                 { TABLE(distance, values), .dims = { DIM_HEAD, DIM_COLUMN },
                   .moved = values_moved } },
    .parameters = { PARAMETER(distance, query_offset), PARAMETER(distance, x_scale) },
    .computed = ARGUMENT(distance, first),
    .columns = count_columns,
    .fields = FIELDS_SCORES "x_scale distances",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_LINE,
    .check = check_offset,
    .finish = finish,
};

/* ---- Expected rows ---- */

/* The values of a head begin at `first`, so that query and key j have column
 * query + query_offset - j - first = query + keys - 1 - j. */
static void row_distance(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const int64_t head = oracle_row_head(problem, r), query = oracle_row_query(problem, r);
    const float *values = oracle->call->table + head * oracle->call->columns + query;
    for (int64_t j = 0; j < width; j++)
        want[j] = (double)values[width - 1 - j];
}

const struct oracle_functions oracle_distance = { .row = row_distance };
