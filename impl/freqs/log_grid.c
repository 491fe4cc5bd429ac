/*
 * Logarithmic grids of whole numbers: point k of N steps is low (high/low)^(k/N). The buckets of T5 and DeBERTa begin
 * or end at such points. If a point is a whole number, a logarithm that is off by an ulp puts a distance into the wrong
 * bucket, so comparisons are exact: n is beyond point k if
 *
 *   n^N > high^k low^(N-k)
 *
 * Double-double logarithms, whose error is 2^-100, decide unless the two sides agree to 2^-80. Big integers decide the
 * rest.
 */
#include <assert.h>

#include "freqs.h"

/* A natural number up to (2^24)^LOG_GRID_MAX_STEPS. */
struct natural {
    int n_words;
    uint32_t words[LOG_GRID_MAX_STEPS * 24 / 32 + 2];
};

static void natural_multiply(struct natural *a, uint32_t factor)
{
    uint64_t carry = 0;
    for (int i = 0; i < a->n_words; i++) {
        carry += (uint64_t)a->words[i] * factor;
        a->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry)
        a->words[a->n_words++] = (uint32_t)carry;
}

static void natural_multiply_power(struct natural *a, int64_t base, int64_t exponent)
{
    for (int64_t i = 0; i < exponent; i++)
        natural_multiply(a, (uint32_t)base);
}

static int natural_compare(const struct natural *a, const struct natural *b)
{
    if (a->n_words != b->n_words)
        return a->n_words < b->n_words ? -1 : 1;
    for (int i = a->n_words - 1; i >= 0; i--)
        if (a->words[i] != b->words[i])
            return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : greatest_common_divisor(b, a % b);
}

struct log_grid posenc_log_grid_of(int64_t low, int64_t high, int64_t steps)
{
    assert(steps >= 1 && steps <= LOG_GRID_MAX_STEPS && low >= 1 && high > low);
    return (struct log_grid){ low, high, steps, posenc_dd_log(dd_from((double)low)),
                              posenc_dd_log(dd_from((double)high)) };
}

/* Returns the sign of n - point k. */
static int compare_to_point(const struct log_grid *grid, int64_t n, int64_t k)
{
    struct dd left = dd_mul(posenc_dd_log(dd_from((double)n)), dd_from((double)grid->steps));
    struct dd right = dd_add(dd_mul(grid->log_high, dd_from((double)k)),
                             dd_mul(grid->log_low, dd_from((double)(grid->steps - k))));
    struct dd d = dd_sub(left, right);
    if (fabs(d.hi) > 0x1p-80 * (left.hi + right.hi))
        return d.hi > 0.0 ? 1 : -1;
    int64_t g = greatest_common_divisor(grid->steps, k); /* compares g-th roots */
    struct natural power = { 1, { 1 } }, point = { 1, { 1 } };
    natural_multiply_power(&power, n, grid->steps / g);
    natural_multiply_power(&point, grid->high, k / g);
    natural_multiply_power(&point, grid->low, (grid->steps - k) / g);
    return natural_compare(&power, &point);
}

int64_t posenc_log_grid_ceil(const struct log_grid *grid, int64_t k)
{
    struct dd ratio = dd_sub(grid->log_high, grid->log_low);
    struct dd power = dd_div(dd_mul(ratio, dd_from((double)k)), dd_from((double)grid->steps));
    int64_t n =
        (int64_t)posenc_dd_exp(dd_add(grid->log_low, power)).hi - 1; /* not above the point */
    if (n < grid->low)
        n = grid->low;
    while (compare_to_point(grid, n, k) < 0)
        n++;
    return n;
}

int64_t posenc_log_grid_floor(const struct log_grid *grid, int64_t k)
{
    int64_t n = posenc_log_grid_ceil(grid, k);
    return compare_to_point(grid, n, k) > 0 ? n - 1 : n;
}
