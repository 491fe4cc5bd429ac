/*
 * Attention terms by relative position (relative), and attention weights summed by relative position (relative_sum).
 * The column of query i and key j is index[i - j + keys - 1]. For example, Shaw's columns with max_distance 2 are 0 to
 * 4, and the key after a query has column 3.
 *
 * First the columns, which both signatures share: filled by the library, and expected without its builders. Then each
 * signature (signature.h) with its expected rows (oracle/rows.h).
 *
 * References: DeBERTa, He et al. 2006.03654 with modeling_deberta_v2.py; Shaw et al. 1803.02155; Transformer-XL, Dai et
 * al. 1901.02860, appendix B.
 */
#include "conformance/oracle/rows.h"

#include <math.h>

/* ---- Columns of a call, as the library builds them ---- */

static int64_t count_columns(const struct problem *p)
{
    if (p->relative == RELATIVE_DEBERTA)
        return 2 * (p->num_buckets ? p->num_buckets : p->max_distance);
    return p->relative == RELATIVE_SHAW ? 2 * p->max_distance + 1 : p->keys;
}

static int64_t one_at_least(int64_t n) { return n > 0 ? n : 1; }

static int64_t index_size(const struct problem *p)
{
    return problem_count_distances(one_at_least(p->queries), one_at_least(p->keys));
}

static bool fill_index(struct call *call, void *index, int64_t n)
{
    const struct problem *p = &call->problem;
    const struct implementation *by = call->implementation;
    const int64_t queries = one_at_least(p->queries), keys = one_at_least(p->keys),
                  offset = p->query_offset, most = p->max_distance, end = p->keys - p->queries;
    call->columns = count_columns(p);
    if (p->relative == RELATIVE_TRANSFORMER_XL &&
        !call_check_range(call, POSENC_ERR_ARGUMENT, "query_offset of Transformer-XL", offset,
                          end, end))
        return false;
    struct posenc_error *error = &call->error;
    enum posenc_status status;
    if (p->relative == RELATIVE_DEBERTA)
        status = by->deberta_index(queries, keys, offset, p->num_buckets, most, index, error);
    else if (p->relative == RELATIVE_SHAW)
        status = by->shaw_index(queries, keys, offset, most, index, error);
    else
        status = by->transformer_xl_index(queries, keys, index, error);
    for (int64_t i = 0; i < n && p->scattered && status == POSENC_OK; i++)
        ((int32_t *)index)[i] = (int32_t)problem_scattered_index(p, i, call->columns);
    return status == POSENC_OK;
}

/* Initialises the index of columns by query - key. A call without queries or keys has the index of one. */
#define COLUMNS_INDEX(signature)                                                               \
    {                                                                                          \
        INTEGERS(signature, index), .dims = { DIM_DISTANCE }, .size = index_size,              \
                                    .fill = fill_index                                         \
    }

/* ---- Expected columns ---- */

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Computes ends[k], the largest distance |d| of DeBERTa's bucket m + k, where m = buckets/2 and k = 1 ... m - 1: m
 * ((max_distance - 1)/m)^(k/(m - 1)), rounded down. */
static void fill_ends(const struct problem *problem, int64_t m, int64_t *ends)
{
    bool is_integer;
    for (int64_t k = 1; k < m; k++)
        ends[k] = signature_floor_power(m, problem->max_distance - 1, k, m - 1, &is_integer);
}

/* Returns the column of distance d. The outermost columns also hold all distances beyond the last end. */
static int64_t deberta_column(const struct problem *problem, const int64_t *ends, int64_t d)
{
    const int64_t m = problem->num_buckets / 2, magnitude = d < 0 ? -d : d;
    const int64_t span = m > 0 ? 2 * m : problem->max_distance;
    int64_t bucket = magnitude;
    if (m > 0 && magnitude > m) {
        int64_t k = 1;
        while (k < m && magnitude > ends[k])
            k++;
        bucket = m + k;
    }
    return clip((d < 0 ? -bucket : bucket) + span, 0, 2 * span - 1);
}

static bool create_columns(struct oracle *oracle)
{
    const struct problem *p = &oracle->call->problem;
    const int64_t n = p->queries + p->keys - 1, m = p->num_buckets / 2, most = p->max_distance;
    int64_t *ends = arena_get(&oracle->arena, (size_t)(m + 1) * sizeof *ends);
    oracle->columns = arena_get(&oracle->arena, (size_t)(n + 1) * sizeof *oracle->columns);
    if (!ends || !oracle->columns)
        return false;
    if (p->relative == RELATIVE_DEBERTA)
        fill_ends(p, m, ends);
    for (int64_t i = 0; i < n; i++) {
        const int64_t query_minus_key = i - (p->keys - 1);
        const int64_t d = query_minus_key + p->query_offset;
        int64_t column;
        if (p->scattered)
            column = problem_scattered_index(p, i, oracle->call->columns);
        else if (p->relative == RELATIVE_DEBERTA)
            column = deberta_column(p, ends, d);
        else if (p->relative == RELATIVE_SHAW)
            column = clip(-d, -most, most) + most;
        else /* Transformer-XL, with query_offset = keys - queries */
            column = clip(p->queries - 1 - query_minus_key, 0, p->keys - 1);
        oracle->columns[i] = (int32_t)column;
    }
    return true;
}

const int32_t *oracle_columns(const struct oracle *oracle) { return oracle->columns; }

/* ---- relative ---- */

static bool has_c2p(const struct problem *p) { return !p->without_c2p; }
static bool has_p2c(const struct problem *p) { return p->with_p2c; }

/* Each row reads at most as many columns as it has scores. */
static int64_t c2p_moved(const struct problem *p)
{
    return p->batch * p->heads * p->queries * signature_min(p->keys, count_columns(p));
}

static int64_t p2c_moved(const struct problem *p)
{
    return p->batch * p->heads * p->keys * signature_min(p->queries, count_columns(p));
}

/* Returns the limit for two terms, in ulp of the larger one. The sum may be twice as large, and be rounded before and
 * after the product with the scale: 4 times 2^-24 of the larger term. */
static double limit_of_terms(const struct problem *p)
{
    return has_c2p(p) && has_p2c(p) ? 4.0 : 0.0;
}

const struct signature signature_relative = {
    BLANK(relative),
    .tensors = { { OUT(relative, out), SCORES },
                 { X(relative), SCORES },
                 COLUMNS_INDEX(relative),
                 { TENSOR(relative, c2p), .present = has_c2p,
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_COLUMN }, .stream = STREAM_C2P,
                   .dense_copy = DENSE_COPY(c2p), .moved = c2p_moved },
                 { TENSOR(relative, p2c), .present = has_p2c,
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_KEY, DIM_COLUMN }, .stream = STREAM_P2C,
                   .dense_copy = DENSE_COPY(p2c), .moved = p2c_moved } },
    .parameters = { PARAMETER(relative, scale), PARAMETER(relative, x_scale) },
    .columns = count_columns,
    .rounded_limit = limit_of_terms,
    .fields = FIELDS_SCORES "x_scale scale relative position_buckets max_distance without_c2p "
                            "with_p2c scattered recipe",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_TERMS,
};

/* The terms of a score, times the scale: products of two f32 values, exact in f64. An absent one is 0. */
struct terms {
    double c2p, p2c;
};

static struct terms terms_of(const struct oracle *oracle, int64_t r, int64_t key)
{
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const int64_t query = oracle_row_query(problem, r), head = r / problem->queries,
                  keys = problem->keys, column = oracle->columns[query - key + keys - 1];
    const double scale = (double)(float)problem->scale;
    return (struct terms){
        call->c2p ? scale * (double)call->c2p[r * call->columns + column] : 0.0,
        call->p2c ? scale * (double)call->p2c[(head * keys + key) * call->columns + column]
                  : 0.0
    };
}

/* Computes scale c2p rounded to f32, then its sum with scale p2c as one fma. The product of two f32 values is exact
 * in f64. */
static void row_relative(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const struct call *call = oracle->call;
    for (int64_t j = 0; j < call->outputs[o].width; j++) {
        const struct terms terms = terms_of(oracle, r, j);
        want[j] = call->c2p && call->p2c
                      ? exact_add_to_odd(terms.p2c, (double)exact_round_f32(terms.c2p))
                  : call->c2p ? terms.c2p
                              : terms.p2c;
    }
}

/* Sets the magnitude of each score to its larger term, or to a NaN if one is. */
static void magnitudes_relative(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    for (int64_t j = 0; j < oracle->call->problem.keys; j++) {
        const struct terms terms = terms_of(oracle, r, j);
        const double c2p = fabs(terms.c2p), p2c = fabs(terms.p2c);
        magnitudes[j] = c2p > p2c || isnan(c2p) ? c2p : p2c;
    }
}

const struct oracle_functions oracle_relative = { row_relative, create_columns,
                                                  magnitudes_relative };

/* ---- relative_sum ---- */

/* Counts the elements whose column is also that of the key before or after. Other elements are alone in their column,
 * and are copied without an addition. */
static int64_t count_summed(const struct call *call)
{
    const struct problem *p = &call->problem;
    const int32_t *index = call->args.relative_sum.index;
    const int64_t last = index_size(p) - 1;
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

const struct signature signature_relative_sum = {
    BLANK(relative_sum),
    .tensors = { COLUMNS_INDEX(relative_sum),
                 { OUT(relative_sum, out),
                   .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_COLUMN } },
                 { X(relative_sum), .dims = { DIM_BATCH, DIM_HEAD, DIM_QUERY, DIM_KEY } } },
    .columns = count_columns,
    .rounded_limit = signature_limit_of_sums,
    .fields = FIELDS_SCORES "relative position_buckets max_distance scattered",
    .cuts = { DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_SUMS,
    .count_work = count_summed,
};

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

const struct oracle_functions oracle_relative_sum = { row_relative_sum, create_columns,
                                                      magnitudes_sum };
