/* alibi: a bias proportional to the distance, with a slope for each head (Press et al. 2108.12409). */
#include "shared.h"

#include <float.h>
#include <math.h>

static bool slopes_shared(const struct problem *p) { return !p->slopes_by_batch; }

/* Fills slopes by the library's function. Edges and scattered values replace them, so that slopes are negative and zero,
 * too. */
static bool fill_slopes(struct call *call, void *to, int64_t n)
{
    const struct problem *p = &call->problem;
    const double bias_max = p->alibi_bias_max;
    const uint64_t key = rng_u64(p->seed, STREAM_TABLE);
    const bool filled =
        call->implementation->alibi_slopes(n, bias_max, to, &call->error) == POSENC_OK;
    const float most_slope = 0x1p80f;
    float *slopes = to;
    for (int64_t i = 0; i < n && filled && p->recipe == RECIPE_EDGES; i++)
        slopes[i] =
            inputs_draw_edge(rng_u64(key, (uint64_t)i), POSENC_DTYPE_F32, most_slope, true);
    for (int64_t i = 0; i < n && filled && p->scattered; i++)
        slopes[i] *= (float)(problem_scattered_index(p, i, 3) - 1); /* -1, 0 or 1 */
    return filled;
}

const struct signature signature_alibi = {
    BLANK(alibi),
    .tensors = { { OUT(alibi, out), SCORES },
                 { X(alibi), SCORES },
                 { TENSOR(alibi, slopes), .form = FORM_FLOATS, .type = TYPE_F32,
                   .dims = { DIM_BATCH, DIM_HEAD }, .shared = slopes_shared,
                   .stride_batch = ARGUMENT(alibi, slopes_stride_batch), .fill = fill_slopes,
                   .cached = true, .dense_copy = DENSE_COPY(slopes) } },
    .parameters = { PARAMETER(alibi, causal), PARAMETER(alibi, query_offset),
                    PARAMETER(alibi, x_scale) },
    .fields = FIELDS_SCORES "x_scale alibi_bias_max slopes_by_batch causal scattered "
                            "recipe",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_SLOPE,
};

/* ---- Expected rows ---- */

/* Computes slope (-distance). The product of f32 values is exact in f64. Adding 0 turns a -0 into +0. */
static void row_alibi(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = oracle_row_query(problem, r) + problem->query_offset;
    const int64_t head =
        problem->slopes_by_batch ? r / problem->queries : oracle_row_head(problem, r);
    const double slope = (double)oracle->call->slopes[head];
    for (int64_t j = 0; j < width; j++) {
        const int64_t distance = query > j ? query - j : j - query;
        want[j] =
            problem->causal && j > query ? -(double)INFINITY : slope * (double)-distance + 0.0;
    }
}

const struct oracle_functions oracle_alibi = { .row = row_alibi };
