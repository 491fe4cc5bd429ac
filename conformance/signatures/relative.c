/* relative: attention terms by relative position (DeBERTa, He et al. 2006.03654; Shaw et al. 1803.02155;
 * Transformer-XL, Dai et al. 1901.02860). */
#include "shared.h"

#include <math.h>

static bool has_c2p(const struct problem *p) { return !p->without_c2p; }
static bool has_p2c(const struct problem *p) { return p->with_p2c; }

/* Each row reads at most as many columns as it has scores. */
static int64_t c2p_moved(const struct problem *p)
{
    return p->batch * p->heads * p->queries * signature_min(p->keys, signature_columns(p));
}

static int64_t p2c_moved(const struct problem *p)
{
    return p->batch * p->heads * p->keys * signature_min(p->queries, signature_columns(p));
}

/* Returns the limit for two terms, in ulp of the larger one. The sum may be twice as large, and be rounded before and
 * after the product with the scale: 4 times 2^-24 of the larger term. */
static double rounded_limit(const struct problem *p)
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
    .columns = signature_columns,
    .rounded_limit = rounded_limit,
    .fields = FIELDS_SCORES "x_scale scale relative position_buckets max_distance without_c2p "
                            "with_p2c scattered recipe",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_TERMS,
};

/* ---- Expected rows ---- */

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
        const struct terms at = terms_of(oracle, r, j);
        want[j] = call->c2p && call->p2c
                      ? exact_add_to_odd(at.p2c, (double)exact_round_f32(at.c2p))
                  : call->c2p ? at.c2p
                              : at.p2c;
    }
}

/* Sets the magnitude of each score to its larger term. */
static void magnitudes_relative(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    for (int64_t j = 0; j < oracle->call->problem.keys; j++) {
        const struct terms at = terms_of(oracle, r, j);
        magnitudes[j] = fmax(fabs(at.c2p), fabs(at.p2c));
    }
}

const struct oracle_functions oracle_relative = { row_relative, oracle_create_columns,
                                                  magnitudes_relative };
