/* t5: a learned bias for each bucket of distances (Raffel et al. 1910.10683). */
#include "shared.h"

enum { MOST_BUCKETS = 4096 };

static bool check_buckets(struct call *call)
{
    const struct problem *p = &call->problem;
    const bool odd = p->bidirectional && p->num_buckets % 2 != 0;
    return call_check_range(call, POSENC_ERR_SHAPE, "num_buckets", p->num_buckets,
                            p->bidirectional ? 4 : 2, MOST_BUCKETS) &&
           call_check(call, odd ? POSENC_ERR_SHAPE : POSENC_OK,
                      "num_buckets, which has to be even where bidirectional,", p->num_buckets,
                      4, MOST_BUCKETS);
}

static int64_t table_rows(const struct problem *p) { return p->num_buckets; }

/* Returns the number of buckets in one direction. */
static int64_t n_thresholds(const struct problem *p)
{
    return p->bidirectional ? p->num_buckets / 2 : p->num_buckets;
}

static bool fill_thresholds(struct call *call, void *to, int64_t n)
{
    const struct problem *p = &call->problem;
    struct posenc_t5_buckets buckets;
    (void)n;
    return call->implementation->t5_buckets_compute(p->num_buckets, p->max_distance,
                                                    p->bidirectional, to, &buckets,
                                                    &call->error) == POSENC_OK;
}

const struct signature signature_t5 = {
    BLANK(t5),
    .tensors = { { OUT(t5, out), SCORES },
                 { X(t5), SCORES },
                 { TABLE(t5, table), .dims = { DIM_ROW, DIM_HEAD }, .cached = true },
                 { .name = "thresholds",
                   .offset = ARGUMENT(t5, buckets.thresholds),
                   .form = FORM_INTEGERS,
                   .size = n_thresholds,
                   .fill = fill_thresholds,
                   .cached = true } },
    .parameters = { PARAMETER_IN(t5, buckets, num_buckets),
                    PARAMETER_IN(t5, buckets, bidirectional), PARAMETER(t5, query_offset),
                    PARAMETER(t5, x_scale) },
    .rows = table_rows,
    .fields = FIELDS_SCORES "x_scale num_buckets max_distance bidirectional recipe",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_RUNS,
    .check = check_buckets,
};

/* ---- Expected rows ---- */

static void row_t5(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = oracle_row_query(problem, r) + problem->query_offset;
    const int64_t head = oracle_row_head(problem, r);
    for (int64_t j = 0; j < width; j++) {
        int64_t distance = query - j, base = 0;
        if (distance < 0) {
            distance = problem->bidirectional ? -distance : 0;
            base = problem->bidirectional ? oracle->n_thresholds : 0;
        }
        int64_t bucket = oracle->n_thresholds - 1;
        while (oracle->thresholds[bucket] > distance)
            bucket--;
        want[j] = (double)oracle->call->table[(base + bucket) * problem->heads + head];
    }
}

const struct oracle_functions oracle_t5 = { .row = row_t5, .create = oracle_create_thresholds };
