/*
 * Rungs between two whole numbers, evenly spaced by ratio: rung k of a ladder of N steps is low
 * (high/low)^(k/N). Buckets of T5 and DeBERTa begin or end at them, and a float logarithm that
 * is one ulp off moves whole buckets where a rung is a whole number. Whether n is beyond rung
 * k is
 *
 *   n^N > high^k low^(N-k)
 *
 * Logarithms in double-double decide unless the two sides agree to 2^-80 (they err by 2^-100);
 * then big integers do.
 */
#include <assert.h>

#include "plan.h"

/* A natural number; room for (2^24)^LADDER_MOST_STEPS. */
struct big {
    int n_words;
    uint32_t words[LADDER_MOST_STEPS * 24 / 32 + 2];
};

static void big_multiply(struct big *a, uint32_t factor)
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

static void big_multiply_power(struct big *a, int64_t base, int64_t exponent)
{
    for (int64_t i = 0; i < exponent; i++)
        big_multiply(a, (uint32_t)base);
}

static int big_compare(const struct big *a, const struct big *b)
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

struct ladder posenc_ladder(int64_t low, int64_t high, int64_t steps)
{
    assert(steps >= 1 && steps <= LADDER_MOST_STEPS && low >= 1 && high > low);
    return (struct ladder){ low, high, steps, posenc_dd_log(dd_from((double)low)),
                            posenc_dd_log(dd_from((double)high)) };
}

/* Sign of n - rung k. */
static int compare(const struct ladder *l, int64_t n, int64_t k)
{
    struct dd left = dd_mul(posenc_dd_log(dd_from((double)n)), dd_from((double)l->steps));
    struct dd right = dd_add(dd_mul(l->log_high, dd_from((double)k)),
                             dd_mul(l->log_low, dd_from((double)(l->steps - k))));
    struct dd d = dd_sub(left, right);
    if (fabs(d.hi) > 0x1p-80 * (left.hi + right.hi))
        return d.hi > 0.0 ? 1 : -1;
    int64_t g = greatest_common_divisor(l->steps, k); /* the same roots on both sides */
    struct big power = { 1, { 1 } }, rung = { 1, { 1 } };
    big_multiply_power(&power, n, l->steps / g);
    big_multiply_power(&rung, l->high, k / g);
    big_multiply_power(&rung, l->low, (l->steps - k) / g);
    return big_compare(&power, &rung);
}

int64_t posenc_rung_up(const struct ladder *l, int64_t k)
{
    struct dd ratio = dd_sub(l->log_high, l->log_low);
    struct dd power = dd_div(dd_mul(ratio, dd_from((double)k)), dd_from((double)l->steps));
    int64_t n = (int64_t)posenc_dd_exp(dd_add(l->log_low, power)).hi - 1; /* too small */
    if (n < l->low)
        n = l->low;
    while (compare(l, n, k) < 0)
        n++;
    return n;
}

int64_t posenc_rung_down(const struct ladder *l, int64_t k)
{
    int64_t n = posenc_rung_up(l, k);
    return compare(l, n, k) > 0 ? n - 1 : n;
}
