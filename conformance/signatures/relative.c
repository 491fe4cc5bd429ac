/* relative: attention terms by relative position (DeBERTa, He et al. 2006.03654; Shaw et al. 1803.02155;
 * Transformer-XL, Dai et al. 1901.02860). */
#include "shared.h"

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
    .fields = FIELDS_SCORES "x_scale scale relative position_buckets max_distance without_c2p "
                            "with_p2c scattered recipe",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_TERMS,
};

/* ---- Expected rows ---- */

/* Computes scale c2p rounded to f32, then its sum with scale p2c as one fma. The product of two f32 values is exact
 * in f64. */
static void row_relative(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const double scale = (double)(float)problem->scale;
    const int64_t query = oracle_row_query(problem, r), head = r / problem->queries;
    for (int64_t j = 0; j < width; j++) {
        const int64_t column = oracle->columns[query - j + width - 1];
        const double first =
            call->c2p ? scale * (double)call->c2p[r * call->columns + column] : 0.0;
        if (!call->p2c) {
            want[j] = first;
            continue;
        }
        const double second =
            scale * (double)call->p2c[(head * width + j) * call->columns + column];
        want[j] = call->c2p ? exact_add_to_odd(second, (double)exact_round_f32(first)) : second;
    }
}

const struct oracle_functions oracle_relative = { .row = row_relative,
                                                  .create = oracle_create_columns };
