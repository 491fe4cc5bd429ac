/*
 * Biases of attention scores. With alibi and a slope of 0.25, for example, the bias of the query at position 5 and the
 * key at position 3 is -0.5.
 *
 *   alibi      proportional to the distance, with a slope for each head       Press et al. 2108.12409
 *   distance   by distance, from a table of values                            KERPLE, Chi et al. 2205.09921
 *   t5         learned, for each bucket of distances                          Raffel et al. 1910.10683
 *   window     learned, for each displacement in a window of an image         Swin, Liu et al. 2103.14030; BEiT, Bao et
 *                                                                             al. 2106.08254, modeling_beit.py
 *
 * Each section has a signature (signature.h), then its expected rows (oracle/rows.h), which do not use the library's
 * builders of thresholds and of indices.
 */
#include "conformance/oracle/rows.h"

#include <float.h>
#include <math.h>

/* ---- alibi ---- */

static bool slopes_shared(const struct problem *p) { return !p->slopes_by_batch; }

/* Fills slopes by the library's function. Edges and scattered values replace them, so that slopes are negative and
 * zero, too. */
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

/* ---- distance ---- */

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
static void set_first_distance(struct call *call)
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
    .finish = set_first_distance,
};

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

/* ---- t5 ---- */

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

static int64_t t5_rows(const struct problem *p) { return p->num_buckets; }

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
    .rows = t5_rows,
    .fields = FIELDS_SCORES "x_scale num_buckets max_distance bidirectional recipe",
    .cuts = { DIM_KEY, DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_RUNS,
    .check = check_buckets,
};

int64_t signature_floor_power(int64_t first, int64_t last, int64_t k, int64_t steps,
                              bool *is_integer)
{
    const struct big log_first = big_log(big_integer(first));
    const struct big span = big_subtract(big_log(big_integer(last)), log_first);
    const struct big part = big_divide(big_multiply(span, big_integer(k)), big_integer(steps));
    const struct big power = big_exp(big_add(log_first, part));
    const struct big tiny = big_multiply(power, big_double(0x1p-200));
    const int64_t n = big_floor(big_add(power, tiny));
    *is_integer = big_compare(big_subtract(power, big_integer(n)), tiny) < 0;
    return n;
}

/* Half the buckets hold one distance each. Bucket half + k begins at the least integer n >= half
 * (max_distance/half)^(k/steps), where `steps` is the number of other buckets. */
static bool create_thresholds(struct oracle *oracle)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t buckets = problem->num_buckets / (problem->bidirectional ? 2 : 1);
    const int64_t half = buckets / 2, steps = buckets - half;
    oracle->n_thresholds = buckets;
    oracle->thresholds =
        arena_get(&oracle->arena, (size_t)buckets * sizeof *oracle->thresholds);
    if (!oracle->thresholds)
        return false;
    for (int64_t b = 0; b < buckets; b++) {
        oracle->thresholds[b] = (int32_t)b;
        if (b <= half)
            continue;
        bool is_integer;
        const int64_t n =
            signature_floor_power(half, problem->max_distance, b - half, steps, &is_integer);
        oracle->thresholds[b] = (int32_t)(is_integer ? n : n + 1);
    }
    return true;
}

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

const struct oracle_functions oracle_t5 = { .row = row_t5, .create = create_thresholds };

/* ---- window ---- */

/* Returns the number of rows that the index of a window uses; BEiT's class token has three of its own. */
static int64_t window_offsets(const struct problem *p)
{
    return (2 * p->window_height - 1) * (2 * p->window_width - 1) + (p->window_class ? 3 : 0);
}

/* Returns the number of rows of the table, which may be larger. A scattered index uses all of them. */
static int64_t window_rows(const struct problem *p)
{
    return p->distances > 0 ? p->distances : window_offsets(p);
}

static void derive_sizes(struct problem *p) { p->queries = p->keys = problem_window_size(p); }

static bool check_window(struct call *call)
{
    const struct problem *p = &call->problem;
    const int64_t least = p->scattered ? 1 : window_offsets(p);
    return call_check_range(call, POSENC_ERR_SHAPE, "window_height", p->window_height, 1,
                            256) &&
           call_check_range(call, POSENC_ERR_SHAPE, "window_width", p->window_width, 1, 256) &&
           (p->distances == 0 ||
            call_check_range(call, POSENC_ERR_SHAPE, "distances, rows of the table",
                             p->distances, least, INT32_MAX));
}

static bool fill_window_index(struct call *call, void *to, int64_t n)
{
    const struct problem *p = &call->problem;
    const struct implementation *by = call->implementation;
    const enum posenc_status status =
        p->window_class ? by->beit_index(p->window_height, p->window_width, to, &call->error)
                        : by->swin_index(p->window_height, p->window_width, to, &call->error);
    for (int64_t i = 0; i < n && p->scattered && status == POSENC_OK; i++)
        ((int32_t *)to)[i] = (int32_t)problem_scattered_index(p, i, window_rows(p));
    return status == POSENC_OK;
}

/* Returns the elements read by the index, which all batches share. */
static int64_t count_fetched(const struct call *call)
{
    const struct problem *p = &call->problem;
    return p->heads * p->queries * p->keys;
}

const struct signature signature_window = {
    BLANK(window),
    .tensors = { { OUT(window, out), SCORES },
                 { X(window), SCORES },
                 { TABLE(window, table), .dims = { DIM_ROW, DIM_HEAD } },
                 { INTEGERS(window, index), .dims = { DIM_QUERY, DIM_KEY },
                   .fill = fill_window_index } },
    .parameters = { PARAMETER(window, x_scale) },
    .rows = window_rows,
    .fields = "values_dtype heads x_scale window_height window_width window_class distances "
              "scattered recipe",
    .cuts = { DIM_QUERY, DIM_HEAD, DIM_BATCH },
    .shares = { DIM_HEAD, DIM_QUERY },
    .work = WORK_FETCH,
    .count_work = count_fetched,
    .derive = derive_sizes,
    .check = check_window,
};

int64_t oracle_window_row(const struct problem *problem, int64_t query, int64_t key)
{
    const int64_t height = problem->window_height, width = problem->window_width;
    const int64_t rows = (2 * height - 1) * (2 * width - 1);
    if (problem->scattered)
        return problem_scattered_index(problem, query * problem_window_size(problem) + key,
                                       problem_extent(problem, DIM_ROW));
    if (problem->window_class) {
        if (query == 0 && key == 0)
            return rows + 2;
        if (query == 0 || key == 0)
            return query == 0 ? rows : rows + 1;
        query--;
        key--;
    }
    const int64_t down = query / width - key / width, right = query % width - key % width;
    return (down + height - 1) * (2 * width - 1) + right + width - 1;
}

static void row_window(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    const float *table = oracle->call->table;
    const int64_t query = r % width, head = r / width % problem->heads;
    for (int64_t j = 0; j < width; j++)
        want[j] = (double)table[oracle_window_row(problem, query, j) * problem->heads + head];
}

const struct oracle_functions oracle_window = { .row = row_window };
