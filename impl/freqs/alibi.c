/*
 * ALiBi slopes, each correctly rounded to f32.
 *
 *   n_heads a power of two:          m_h = 2^(-bias_max h / n_heads),  h = 1 ... n_heads
 *   else, P the power of two below: the P slopes of P heads, then those of 2 P heads
 *                                    with odd h
 *
 * Reference: Press et al. 2108.12409; github.com/ofirpress/attention_with_linear_biases, get_slopes.
 */
#include "freqs.h"

enum { MAX_HEADS = 65536 };

/* Returns 2^(-bias_max h / n), for n a power of two. */
static float slope(double bias_max, int64_t h, int64_t n)
{
    static const struct dd ln2 = { 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56 };
    struct dd power = dd_scale(dd_product(-bias_max, (double)h), 1.0 / (double)n);
    double whole = rint(power.hi);
    struct dd rest = dd_sub(power, dd_from(whole));
    struct dd mantissa = posenc_dd_exp(dd_mul(rest, ln2));
    return dd_to_float(dd_scale(mantissa, ldexp(1.0, (int)whole)));
}

enum posenc_status posenc_alibi_slopes(int64_t n_heads, double alibi_bias_max, float *slopes,
                                       struct posenc_error *error)
{
    if (!slopes)
        return reject(error, POSENC_ERR_ARGUMENT, "slopes (NULL)");
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, "n_heads", n_heads, 1, MAX_HEADS);
    if (status)
        return status;
    if (!(alibi_bias_max > 0.0 && alibi_bias_max <= 64.0))
        return reject_range(error, POSENC_ERR_PARAMETER, "alibi_bias_max (above 0)",
                            alibi_bias_max, 0.0, 64.0);
    int64_t n = 1;
    while (2 * n <= n_heads)
        n *= 2;
    for (int64_t h = 0; h < n; h++)
        slopes[h] = slope(alibi_bias_max, h + 1, n);
    for (int64_t h = n; h < n_heads; h++)
        slopes[h] = slope(alibi_bias_max, 2 * (h - n) + 1, 2 * n);
    return POSENC_OK;
}
