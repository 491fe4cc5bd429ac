/*
 * Bad arguments of calls on scores: see refusals.c.
 */
#include "conformance/problem/signature.h"
#include "refusals.h"

#include <math.h>

/* Distances that no call may have; which of the statuses is the better one nobody says. */
#define TOO_FAR (STATUS(PARAMETER) | STATUS(POSITION) | STATUS(SHAPE))

/* The integers by query and key, of those that have some. */
static const struct tensor_row *index_row(const struct call *c)
{
    for (EACH_TENSOR(row, signature_of(c->problem.kernel)))
        if (row->form == FORM_INTEGERS && tensor_dims(row) > 0)
            return row;
    return NULL;
}

static int32_t *index_of(struct call *c)
{
    return (int32_t *)(uintptr_t)call_data(c, index_row(c));
}

/* The last of an index: of the last query and key, of the last query and the first key. */
static int64_t last_of(const struct call *c)
{
    return tensor_elements(&c->problem, index_row(c)) - 1;
}

/* It is of rows of a table, or of columns. */
static int32_t past_index(const struct call *c)
{
    return (int32_t)(c->columns ? c->columns : problem_extent(&c->problem, DIM_ROW));
}

static void index_negative(struct call *c) { index_of(c)[0] = -1; }
static void index_beyond(struct call *c) { index_of(c)[last_of(c)] = past_index(c); }
static void index_huge(struct call *c) { index_of(c)[last_of(c) / 2] = INT32_MAX; }

static void relative_terms(struct call *c)
{
    c->args.relative.c2p.data = c->args.relative.p2c.data = NULL;
}
static void relative_columns(struct call *c)
{
    c->args.relative.p2c.shape[c->args.relative.p2c.rank - 1]--;
}
static void relative_c2p_rows(struct call *c)
{
    c->args.relative.c2p.shape[c->args.relative.c2p.rank - 2]++;
}
static void relative_p2c_rows(struct call *c)
{
    c->args.relative.p2c.shape[c->args.relative.p2c.rank - 2]--;
}
static void relative_p2c_batch(struct call *c)
{
    struct posenc_tensor *t = owned(&c->args.relative.p2c);
    for (int d = 0; d + 1 < t->rank; d++) {
        t->shape[d] = t->shape[d + 1];
        t->stride[d] = t->stride[d + 1];
    }
    t->rank--;
}
static void sum_heads(struct call *c)
{
    struct posenc_tensor *x = call_x(c);
    x->shape[x->rank - 3]--;
}
static void sum_queries(struct call *c)
{
    struct posenc_tensor *x = call_x(c);
    x->shape[x->rank - 2]--;
}

#define SET(name, expression)                                                                  \
    static void name(struct call *c) { expression; }
SET(alibi_no_slopes, c->args.alibi.slopes = NULL)
SET(alibi_slope_nan, ((float *)(uintptr_t)c->args.alibi.slopes)[1] = NAN)
SET(alibi_x_scale, c->args.alibi.x_scale = NAN)
SET(alibi_far, c->args.alibi.query_offset = 1 << 24)
SET(alibi_wraps, c->args.alibi.query_offset = INT64_MAX)
SET(t5_no_thresholds, c->args.t5.thresholds = NULL)
SET(t5_no_table, c->args.t5.table.data = NULL)
SET(t5_buckets, c->args.t5.num_buckets = 1)
SET(t5_table_rows, c->args.t5.table.shape[0] -= 1)
SET(t5_table_dtype, c->args.t5.table.dtype = POSENC_F16)
SET(t5_x_scale, c->args.t5.x_scale = NAN)
SET(t5_wraps, c->args.t5.query_offset = INT64_MAX)
SET(distance_none, c->args.distance.values.data = NULL)
SET(distance_heads, c->args.distance.values.shape[0]--)
SET(distance_short, c->args.distance.values.shape[1]--)
SET(distance_late, c->args.distance.first++)
SET(distance_first_wraps, c->args.distance.first = INT64_MIN)
SET(distance_dtype, c->args.distance.values.dtype = POSENC_BF16)
SET(distance_x_scale, c->args.distance.x_scale = INFINITY)
SET(distance_wraps, c->args.distance.query_offset = INT64_MAX)
SET(window_no_index, c->args.window.index = NULL)
SET(window_no_table, c->args.window.table.data = NULL)
SET(window_heads, c->args.window.table.shape[1]--)
SET(window_dtype, c->args.window.table.dtype = POSENC_F16)
SET(window_x_scale, c->args.window.x_scale = NAN)
SET(relative_no_index, c->args.relative.index = NULL)
SET(relative_scale, c->args.relative.scale = NAN)
SET(relative_c2p_dtype, c->args.relative.c2p.dtype = POSENC_F16)
SET(relative_p2c_dtype, c->args.relative.p2c.dtype = POSENC_BF16)
SET(relative_c2p_is_out, c->args.relative.c2p.data = c->args.relative.out.data)
SET(relative_p2c_is_out, c->args.relative.p2c.data = c->args.relative.out.data)
SET(relative_x_scale, c->args.relative.x_scale = NAN)
SET(sum_no_index, c->args.relative_sum.index = NULL)
#undef SET

static const struct bad_argument of_alibi[] = {
    { "no slopes", STATUS(ARGUMENT), alibi_no_slopes },
    { "a slope NaN", STATUS(PARAMETER), alibi_slope_nan },
    { "distance 2^24", TOO_FAR, alibi_far },
    { "query_offset that wraps", TOO_FAR | STATUS(OVERFLOW), alibi_wraps },
};
static const struct bad_argument of_alibi_add[] = {
    { "x_scale NaN", STATUS(PARAMETER), alibi_x_scale },
};
static const struct bad_argument of_t5[] = {
    { "no thresholds", STATUS(ARGUMENT), t5_no_thresholds },
    { "no table", STATUS(ARGUMENT), t5_no_table },
    { "num_buckets 1", STATUS(SHAPE) | STATUS(PARAMETER), t5_buckets },
    { "table a row short", STATUS(SHAPE), t5_table_rows },
    { "table in 16 bits", STATUS(DTYPE), t5_table_dtype },
    { "query_offset that wraps", TOO_FAR | STATUS(OVERFLOW), t5_wraps },
};
static const struct bad_argument of_t5_add[] = {
    { "x_scale NaN", STATUS(PARAMETER), t5_x_scale },
};
static const struct bad_argument of_distance[] = {
    { "no values", STATUS(ARGUMENT), distance_none },
    { "values of a head less", STATUS(SHAPE), distance_heads },
    { "values without the largest distance", STATUS(SHAPE), distance_short },
    { "values without the least distance", STATUS(SHAPE), distance_late },
    { "first that wraps", TOO_FAR | STATUS(OVERFLOW), distance_first_wraps },
    { "values in 16 bits", STATUS(DTYPE), distance_dtype },
    { "query_offset that wraps", TOO_FAR | STATUS(OVERFLOW), distance_wraps },
};
static const struct bad_argument of_distance_add[] = {
    { "x_scale infinite", STATUS(PARAMETER), distance_x_scale },
};
static const struct bad_argument of_index[] = {
    { "index -1", STATUS(POSITION), index_negative },
    { "an index past the last", STATUS(POSITION), index_beyond },
    { "index 2^31 - 1", STATUS(POSITION), index_huge },
};
static const struct bad_argument of_window[] = {
    { "no index", STATUS(ARGUMENT), window_no_index },
    { "no table", STATUS(ARGUMENT), window_no_table },
    { "table of a head less", STATUS(SHAPE), window_heads },
    { "table in 16 bits", STATUS(DTYPE), window_dtype },
};
static const struct bad_argument of_window_add[] = {
    { "x_scale NaN", STATUS(PARAMETER), window_x_scale },
};
static const struct bad_argument of_relative[] = {
    { "no index", STATUS(ARGUMENT), relative_no_index },
    { "no terms", STATUS(ARGUMENT), relative_terms },
    { "scale NaN", STATUS(PARAMETER), relative_scale },
    { "terms of different columns", STATUS(SHAPE), relative_columns },
    { "c2p of a query more", STATUS(SHAPE), relative_c2p_rows },
    { "p2c of a key less", STATUS(SHAPE), relative_p2c_rows },
    { "p2c without batch", STATUS(SHAPE), relative_p2c_batch },
    { "c2p of another dtype", STATUS(DTYPE), relative_c2p_dtype },
    { "p2c of another dtype", STATUS(DTYPE), relative_p2c_dtype },
    { "c2p is the output", STATUS(OVERLAP), relative_c2p_is_out },
    { "p2c is the output", STATUS(OVERLAP), relative_p2c_is_out },
};
static const struct bad_argument of_relative_add[] = {
    { "x_scale NaN", STATUS(PARAMETER), relative_x_scale },
};
static const struct bad_argument of_relative_sum[] = {
    { "no index", STATUS(ARGUMENT), sum_no_index },
    { "input of a head less", STATUS(SHAPE), sum_heads },
    { "input of a query less", STATUS(SHAPE), sum_queries },
};

const struct bad_arguments bad_arguments_of_index = ARGUMENTS(of_index);
const struct bad_arguments_of bad_arguments_of_alibi = { ARGUMENTS(of_alibi),
                                                         ARGUMENTS(of_alibi_add) };
const struct bad_arguments_of bad_arguments_of_t5 = { ARGUMENTS(of_t5), ARGUMENTS(of_t5_add) };
const struct bad_arguments_of bad_arguments_of_distance = { ARGUMENTS(of_distance),
                                                            ARGUMENTS(of_distance_add) };
const struct bad_arguments_of bad_arguments_of_window = { ARGUMENTS(of_window),
                                                          ARGUMENTS(of_window_add) };
const struct bad_arguments_of bad_arguments_of_relative = { ARGUMENTS(of_relative),
                                                            ARGUMENTS(of_relative_add) };
const struct bad_arguments_of bad_arguments_of_relative_sum = { ARGUMENTS(of_relative_sum),
                                                                { NULL, 0 } };
