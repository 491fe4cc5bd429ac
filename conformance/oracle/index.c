/*
 * Buckets, rows and columns of tables for a query and a key. The oracle uses none of the library's
 * builders: it computes powers in 256 bits, and all else in integers.
 *
 * References: Raffel et al. 1910.10683 (T5); Liu et al. 2103.14030 (Swin); Bao et al. 2106.08254
 * with Hugging Face modeling_beit.py; He et al. 2006.03654 with modeling_deberta_v2.py; Shaw et al.
 * 1803.02155; Dai et al. 1901.02860, appendix B.
 */
#include "rows.h"

#include "conformance/problem/signature.h"

/* Returns the largest integer n <= exact (most/exact)^(k/all), 0 <= k <= all, and sets `whole` if
 * these are equal. They are equal if closer than 2^-200: otherwise n^all and most^k exact^(all - k)
 * are different integers, at least 1/n^all of themselves apart: more up to all log2(n) = 190. */
static int64_t floor_power(int64_t most, int64_t exact, int64_t k, int64_t all, bool *whole)
{
    const struct big base = big_log(big_integer(exact));
    const struct big span = big_subtract(big_log(big_integer(most)), base);
    const struct big step = big_divide(big_multiply(span, big_integer(k)), big_integer(all));
    const struct big value = big_exp(big_add(base, step));
    const struct big tiny = big_multiply(value, big_double(0x1p-200));
    const int64_t n = big_floor(big_add(value, tiny));
    *whole = big_compare(big_subtract(value, big_integer(n)), tiny) < 0;
    return n;
}

/* ---- T5 ---- */

/* Bucket exact + k begins at the least n with log(n/exact)/log(most/exact) (all) >= k, that is
 * n >= exact (most/exact)^(k/all). */
bool create_thresholds(struct oracle *oracle)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t buckets = problem->num_buckets / (problem->bidirectional ? 2 : 1);
    const int64_t exact = buckets / 2, all = buckets - exact;
    oracle->n_thresholds = buckets;
    oracle->thresholds =
        arena_get(&oracle->arena, (size_t)buckets * sizeof *oracle->thresholds);
    if (!oracle->thresholds)
        return false;
    for (int64_t b = 0; b < buckets; b++) {
        oracle->thresholds[b] = (int32_t)b;
        if (b <= exact)
            continue;
        bool whole;
        const int64_t n = floor_power(problem->max_distance, exact, b - exact, all, &whole);
        oracle->thresholds[b] = (int32_t)(whole ? n : n + 1);
    }
    return true;
}

/* ---- Windows ---- */

int64_t window_row(const struct problem *problem, int64_t query, int64_t key)
{
    const int64_t height = problem->window_height, width = problem->window_width;
    const int64_t rows = (2 * height - 1) * (2 * width - 1);
    if (problem->scattered)
        return problem_scattered(problem, query * problem_window(problem) + key,
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

/* Computes the ends of the buckets beyond m = buckets/2: bucket m + k holds |d| up to
 * m ((max - 1)/m)^(k/(m - 1)), k = 1 ... m - 1. The last end is max - 1. */
static void fill_ends(const struct problem *problem, int64_t m, int64_t *ends)
{
    bool whole;
    for (int64_t k = 1; k < m; k++)
        ends[k] = floor_power(problem->max_distance - 1, m, k, m - 1, &whole);
}

/* Distances beyond the last end are clipped to the outermost column, whatever their bucket. */
static int64_t deberta_column(const struct problem *problem, const int64_t *ends, int64_t d)
{
    const int64_t m = problem->num_buckets / 2, far = d < 0 ? -d : d;
    const int64_t span = m > 0 ? 2 * m : problem->max_distance;
    int64_t bucket = far;
    if (m > 0 && far > m) {
        int64_t k = 1;
        while (k < m && far > ends[k])
            k++;
        bucket = m + k;
    }
    return clip((d < 0 ? -bucket : bucket) + span, 0, 2 * span - 1);
}

bool create_columns(struct oracle *oracle)
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
        const int64_t apart = i - (p->keys - 1); /* query index - key index */
        const int64_t d = apart + p->query_offset;
        int64_t column;
        if (p->scattered)
            column = problem_scattered(p, i, oracle->call->columns);
        else if (p->relative == RELATIVE_DEBERTA)
            column = deberta_column(p, ends, d);
        else if (p->relative == RELATIVE_SHAW)
            column = clip(-d, -most, most) + most;
        else
            column = clip(p->keys - 1 - (apart + p->keys - p->queries), 0, p->keys - 1);
        oracle->columns[i] = (int32_t)column;
    }
    return true;
}
