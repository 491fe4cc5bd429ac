/*
 * Biases by distance, each correctly rounded to f32:
 *
 *   KERPLE    -p ln(1 + a |d|)  and  -a |d|^p
 *   Sandwich  scale (sum over i < dim/2 of cos(d w_i) - dim/2), w_i = 10000^(-2i/dim), which is
 *             -2 scale times the sum of sin^2(d w_i / 2): nothing cancels at small distances
 *
 * At distance 0 all are +0. Values that doubles do not decide (dd.h) are computed in double-double, with an error of
 * at most 2^-90, or 2^-75 for the phases of large distances (Sandwich). A logarithm or a sum of cosines is closer than
 * that to a midpoint of two floats with a probability below 2^-45. A power can be exactly a midpoint, for example if
 * |d| is a square; it is then rational and computed as such.
 *
 * Reference: Chi et al. 2205.09921, chijames/KERPLE megatron/mpu/layers.py, ParallelKerpleLog and ParallelKerplePower
 * (they clamp p and a to 0.01 at least, and p of the power to 2 at most); Chi et al. 2212.10356. The scale of Sandwich
 * is the caller's: with h = 1 ... H of H heads NVIDIA/NeMo sandwich_relative_position_embedding.py divides by 8h/H,
 * scale H/(8h), subtracting dim/2 too; its sum runs over i = 1 ... dim/2, not those of the sinusoidal encoding.
 */
#include <float.h>

#include "freqs.h"

enum { MAX_HEADS = 65536, MAX_DISTANCE = 1 << 24, MAX_DIM = 65536 };

/* Checks pointers, heads, and n distances from `first` on. */
static enum posenc_status check_sizes(int64_t n_heads, const float *p, const float *a,
                                      int64_t first, int64_t n, const float *values,
                                      struct posenc_error *error)
{
    if (!p || !a || !values)
        return reject(error, POSENC_ERR_ARGUMENT, "a parameter or values (NULL)");
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, "n_heads", n_heads, 1, MAX_HEADS);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "first (a distance)", first,
                               1 - MAX_DISTANCE, MAX_DISTANCE - 1);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "n (distances of values)", n, 1,
                               MAX_DISTANCE - first);
    return status;
}

/* Checks KERPLE's parameters of each head: 0 < p <= max_p, 0 < a. */
static enum posenc_status check_kerple(int64_t n_heads, const float *p, const float *a,
                                       float max_p, struct posenc_error *error)
{
    for (int64_t h = 0; h < n_heads; h++) {
        if (!(p[h] > 0.0f && p[h] <= max_p))
            return reject_range(error, POSENC_ERR_PARAMETER, "p of a head (above 0)",
                                (double)p[h], 0.0, (double)max_p);
        if (!(a[h] > 0.0f && a[h] <= FLT_MAX))
            return reject_range(error, POSENC_ERR_PARAMETER, "a of a head (above 0)",
                                (double)a[h], 0.0, (double)FLT_MAX);
    }
    return POSENC_OK;
}

/* Returns |first + k|. */
static double distance(int64_t first, int64_t k)
{
    int64_t d = first + k;
    return (double)(d < 0 ? -d : d);
}

/* For d > 0. The product a d is exact in a double. */
static float kerple_log(double p, double a, double d)
{
    struct dd x = dd_sum(1.0, a * d);
    float value;
    if (posenc_quick_round(-p * posenc_quick_log(x), &value))
        return value;
    return dd_to_float(dd_mul(posenc_dd_log(x), dd_from(-p)));
}

enum posenc_status posenc_kerple_log(int64_t n_heads, const float *p, const float *a,
                                     int64_t first, int64_t n, float *values,
                                     struct posenc_error *error)
{
    enum posenc_status status = check_sizes(n_heads, p, a, first, n, values, error);
    if (!status)
        status = check_kerple(n_heads, p, a, FLT_MAX, error);
    for (int64_t h = 0; h < n_heads && !status; h++)
        for (int64_t k = 0; k < n; k++) {
            double d = distance(first, k);
            values[h * n + k] = d == 0.0 ? 0.0f : kerple_log((double)p[h], (double)a[h], d);
        }
    return status;
}

/* Returns d^p if it is rational, otherwise 0. With p = m / 2^k in lowest terms, d must be the 2^k-th power of a whole
 * number; the result is the m-th power of that number, which is below 2^48. */
static double rational_power(double d, double p)
{
    for (; p != rint(p); p *= 2.0) {
        double root = rint(sqrt(d));
        if (d == 1.0)
            return 1.0;
        if (root * root != d)
            return 0.0;
        d = root;
    }
    double power = 1.0;
    for (; p > 0.0; p--)
        power *= d;
    return power;
}

/* For d > 0, whose binary logarithm is log2_d. */
static float kerple_power(double p, double a, double d, double log2_d)
{
    float value;
    if (posenc_quick_round(-a * posenc_quick_exp2(dd_from(p * log2_d)), &value))
        return value;
    struct dd power = dd_from(rational_power(d, p));
    if (power.hi == 0.0)
        power = posenc_dd_exp(dd_mul(posenc_dd_log(dd_from(d)), dd_from(p)));
    return dd_to_float(dd_mul(power, dd_from(-a)));
}

enum posenc_status posenc_kerple_power(int64_t n_heads, const float *p, const float *a,
                                       int64_t first, int64_t n, float *values,
                                       struct posenc_error *error)
{
    enum posenc_status status = check_sizes(n_heads, p, a, first, n, values, error);
    if (!status)
        status = check_kerple(n_heads, p, a, 2.0f, error);
    for (int64_t k = 0; k < n && !status; k++) {
        double d = distance(first, k);
        double log2_d = d == 0.0 ? 0.0 : posenc_quick_log(dd_from(d)) * 0x1.71547652b82fep+0;
        for (int64_t h = 0; h < n_heads; h++)
            values[h * n + k] =
                d == 0.0 ? 0.0f : kerple_power((double)p[h], (double)a[h], d, log2_d);
    }
    return status;
}

/* Returns half the phase of a pair at distance d. Sandwich needs the square of its sine, so a half turn too few does
 * not matter. */
static struct turn half_phase(struct turn turn, double d)
{
    struct turn phase = posenc_turn_times(turn, (uint32_t)d);
    return (struct turn){ phase.hi >> 1, phase.hi << 63 | phase.lo >> 1 };
}

/* Returns -2 times the sum of squared sines, in double-double. */
static struct dd sandwich_sum(const struct exact_rule *rule, int64_t n_pairs, double d)
{
    struct dd sum = dd_from(0.0);
    for (int64_t i = 0; i < n_pairs; i++) {
        struct dd cosine, sine;
        posenc_dd_cossin(half_phase(posenc_turn_of(posenc_exact_omega(rule, i)), d), &cosine,
                         &sine);
        sum = dd_add(sum, dd_mul(sine, sine));
    }
    return dd_scale(sum, -2.0);
}

enum { COLUMNS = 256 }; /* per call of quick_sandwich_sums() */

/* Computes the same for `count` columns, with squares in doubles. The relative error of a square is 2^-46, and that of
 * the sum is no larger, as the sum is in double-double. */
static void quick_sandwich_sums(const struct exact_rule *rule, int64_t n_pairs, int64_t first,
                                int64_t count, double *sums)
{
    struct dd totals[COLUMNS] = { { 0 } };
    for (int64_t i = 0; i < n_pairs; i++) {
        struct turn turn = posenc_turn_of(posenc_exact_omega(rule, i));
        for (int64_t k = 0; k < count; k++) {
            double cosine, sine;
            posenc_quick_cossin(half_phase(turn, distance(first, k)), &cosine, &sine);
            struct dd sum = dd_sum(totals[k].hi, sine * sine);
            totals[k] = dd_fast_sum(sum.hi, sum.lo + totals[k].lo);
        }
    }
    for (int64_t k = 0; k < count; k++)
        sums[k] = -2.0 * totals[k].hi;
}

/* Fills one column of all heads. */
static void fill_sandwich_column(const struct exact_rule *rule, int64_t n_pairs, double d,
                                 double quick_sum, const float *scale, int64_t n_heads,
                                 int64_t n, float *values)
{
    struct dd sum = dd_from(0.0);
    for (int64_t h = 0; h < n_heads; h++) {
        float value = 0.0f;
        bool zero = d == 0.0 || scale[h] == 0.0f;
        if (!zero && !posenc_quick_round(quick_sum * (double)scale[h], &value)) {
            if (sum.hi == 0.0)
                sum = sandwich_sum(rule, n_pairs, d);
            value = dd_to_float(dd_mul(sum, dd_from((double)scale[h])));
        }
        values[h * n] = value;
    }
}

enum posenc_status posenc_sandwich(int64_t dim, int64_t n_heads, const float *scale,
                                   int64_t first, int64_t n, float *values,
                                   struct posenc_error *error)
{
    enum posenc_status status = check_sizes(n_heads, scale, scale, first, n, values, error);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "dim", dim, 2, MAX_DIM);
    if (!status && dim % 2 != 0)
        status = reject_value(error, POSENC_ERR_SHAPE, "dim (even)", (double)dim);
    for (int64_t h = 0; h < n_heads && !status; h++)
        if (!(fabsf(scale[h]) <= FLT_MAX))
            status = reject_range(error, POSENC_ERR_PARAMETER, "scale of a head",
                                  (double)scale[h], -(double)FLT_MAX, (double)FLT_MAX);
    if (status)
        return status;
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = dim;
    struct exact_rule rule = posenc_exact_rule_of(&spec);
    for (int64_t from = 0; from < n; from += COLUMNS) {
        double sums[COLUMNS];
        int64_t count = n - from < COLUMNS ? n - from : COLUMNS;
        quick_sandwich_sums(&rule, dim / 2, first + from, count, sums);
        for (int64_t k = 0; k < count; k++)
            fill_sandwich_column(&rule, dim / 2, distance(first, from + k), sums[k], scale,
                                 n_heads, n, values + from + k);
    }
    return POSENC_OK;
}
