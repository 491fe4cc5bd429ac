/*
 * Buckets, rows and columns of tables for a query and a key. The oracle does not use the library's builders of index
 * tables. It computes powers in 256 bits, and everything else in integers.
 *
 * References: Raffel et al. 1910.10683 (T5); Liu et al. 2103.14030 (Swin); Bao et al. 2106.08254 with Hugging Face
 * modeling_beit.py; He et al. 2006.03654 with modeling_deberta_v2.py; Shaw et al. 1803.02155; Dai et al. 1901.02860,
 * appendix B.
 */
#include "rows.h"

#include "conformance/problem/signature.h"

/* Returns the largest integer n <= p = first (last/first)^(k/steps), 0 <= k <= steps, and sets `is_integer` if n = p.
 * The two count as equal if they are closer than 2^-200 of themselves. If they differ, n^steps and last^k
 * first^(steps - k) are different integers, so n and p are at least about n^-steps of themselves apart. That is more
 * than 2^-200 for steps log2(n) up to 190. */
static int64_t floor_power(int64_t first, int64_t last, int64_t k, int64_t steps,
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

/* ---- T5 ---- */

/* Half the buckets hold one distance each. Bucket half + k begins at the least integer n >= half
 * (max_distance/half)^(k/steps), where `steps` is the number of other buckets. */
bool oracle_create_thresholds(struct oracle *oracle)
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
            floor_power(half, problem->max_distance, b - half, steps, &is_integer);
        oracle->thresholds[b] = (int32_t)(is_integer ? n : n + 1);
    }
    return true;
}

/* ---- Windows ---- */

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

/* ---- Columns by relative position ---- */

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
        ends[k] = floor_power(m, problem->max_distance - 1, k, m - 1, &is_integer);
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

bool oracle_create_columns(struct oracle *oracle)
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
