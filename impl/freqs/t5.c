/*
 * T5's buckets as integer thresholds.  With e exact buckets and N logarithmic ones, distance
 * n >= e has bucket e + floor(N ln(n/e) / ln(max/e)), so bucket e + k begins at the least n
 * with
 *
 *   n^N >= max^k e^(N-k)
 *
 * Logarithms in double-double decide unless the two sides agree to 2^-80; then big integers do.
 * A float logarithm that is one ulp low moves whole buckets where the sides are equal.
 *
 * Reference: Raffel et al. 1910.10683; tensorflow/mesh transformer_layers.py,
 * _relative_position_bucket.
 */
#include "plan.h"

enum { MOST_BUCKETS = 4096, MOST_DISTANCE = 1 << 24 };

/* A natural number; room for (2^24)^(MOST_BUCKETS / 2). */
struct big {
    int n_words;
    uint32_t words[MOST_BUCKETS / 2 * 24 / 32 + 2];
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

/* The logarithmic buckets: e, N, max of the formula. */
struct buckets {
    int64_t exact, logarithmic, max;
    struct dd log_exact, log_max;
};

/* Whether distance n is in bucket e + k or a later one. */
static bool reached(const struct buckets *b, int64_t n, int64_t k)
{
    struct dd left = dd_mul(posenc_dd_log(dd_from((double)n)), dd_from((double)b->logarithmic));
    struct dd right = dd_add(dd_mul(b->log_max, dd_from((double)k)),
                             dd_mul(b->log_exact, dd_from((double)(b->logarithmic - k))));
    struct dd d = dd_sub(left, right);
    if (fabs(d.hi) > 0x1p-80 * (left.hi + right.hi))
        return d.hi > 0.0;
    int64_t g = greatest_common_divisor(b->logarithmic, k); /* the same roots on both sides */
    struct big power = { 1, { 1 } }, bound = { 1, { 1 } };
    big_multiply_power(&power, n, b->logarithmic / g);
    big_multiply_power(&bound, b->max, k / g);
    big_multiply_power(&bound, b->exact, (b->logarithmic - k) / g);
    return big_compare(&power, &bound) >= 0;
}

/* The least distance of bucket e + k. */
static int64_t threshold(const struct buckets *b, int64_t k)
{
    struct dd ratio = dd_sub(b->log_max, b->log_exact);
    struct dd power =
        dd_div(dd_mul(ratio, dd_from((double)k)), dd_from((double)b->logarithmic));
    int64_t n =
        (int64_t)posenc_dd_exp(dd_add(b->log_exact, power)).hi - 1; /* surely too small */
    if (n < b->exact)
        n = b->exact;
    while (!reached(b, n, k))
        n++;
    return n;
}

enum posenc_status posenc_t5_thresholds(int64_t num_buckets, int64_t max_distance,
                                        bool bidirectional, int32_t *thresholds)
{
    if (!thresholds)
        return POSENC_ERR_ARGUMENT;
    if (num_buckets < (bidirectional ? 4 : 2) || num_buckets > MOST_BUCKETS ||
        (bidirectional && num_buckets % 2 != 0))
        return POSENC_ERR_SHAPE;
    int64_t one_way = bidirectional ? num_buckets / 2 : num_buckets;
    struct buckets b = { .exact = one_way / 2,
                         .logarithmic = one_way - one_way / 2,
                         .max = max_distance };
    if (max_distance <= b.exact || max_distance >= MOST_DISTANCE)
        return POSENC_ERR_PARAMETER;
    b.log_exact = posenc_dd_log(dd_from((double)b.exact));
    b.log_max = posenc_dd_log(dd_from((double)b.max));
    for (int64_t i = 0; i < b.exact; i++)
        thresholds[i] = (int32_t)i;
    for (int64_t k = 0; k < b.logarithmic; k++)
        thresholds[b.exact + k] = (int32_t)threshold(&b, k);
    return POSENC_OK;
}
