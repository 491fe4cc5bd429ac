/*
 * Frequencies by MPFR, straight from the formulas.
 *
 *     omega_i = theta^(-2i/d)  or  theta^(-i/(n-1)), n = d/2
 *     linear  omega/f
 *     llama3  by wavelength: above L/low omega/f, below L/high omega, between a blend
 *     yarn    a blend of omega/f and omega along a ramp over the pairs (2309.00071, 3.2)
 *
 * Profile hf_f32 takes the steps of Hugging Face's modeling_rope_utils.py one by one, each
 * rounded to 24 bits; number / tensor is PyTorch's reciprocal and product.
 */
#include "golden.h"

#include <math.h>
#include <stdlib.h>

/* Exponent of 1/theta: numerator over denominator. */
static void exponent_fraction(const struct posenc_freqs_spec *spec, int64_t i, long *numerator,
                              long *denominator)
{
    *numerator = 2 * (long)i;
    *denominator = (long)spec->dim;
    if (spec->convention == POSENC_ENDPOINT) {
        const long n = (long)spec->dim / 2;
        *numerator = n > 1 ? (long)i : 0;
        *denominator = n > 1 ? n - 1 : 1;
    }
}

/* d log(L / (2 pi rotations)) / (2 log theta) */
static void correction_dim(mpfr_t to, const struct posenc_freqs_spec *spec, double rotations)
{
    mpfr_t log_theta;
    mpfr_init2(log_theta, PRECISION);
    mpfr_const_pi(to, MPFR_RNDN);
    mpfr_mul_d(to, to, 2 * rotations, MPFR_RNDN);
    mpfr_d_div(to, spec->original_max_position_embeddings, to, MPFR_RNDN);
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_mul_si(to, to, (long)spec->dim, MPFR_RNDN);
    mpfr_set_d(log_theta, spec->rope_theta, MPFR_RNDN);
    mpfr_log(log_theta, log_theta, MPFR_RNDN);
    mpfr_div(to, to, log_theta, MPFR_RNDN);
    mpfr_div_ui(to, to, 2, MPFR_RNDN);
    mpfr_clear(log_theta);
}

static void correction_range(mpfr_t low, mpfr_t high, const struct posenc_freqs_spec *spec)
{
    correction_dim(low, spec, spec->beta_fast);
    correction_dim(high, spec, spec->beta_slow);
    if (spec->truncate) {
        mpfr_floor(low, low);
        mpfr_ceil(high, high);
    }
    if (mpfr_sgn(low) < 0)
        mpfr_set_zero(low, 1);
    if (mpfr_cmp_si(high, (long)spec->dim - 1) > 0)
        mpfr_set_si(high, (long)spec->dim - 1, MPFR_RNDN);
}

/* omega (1 - ramp) + omega/f ramp */
static void scale_yarn(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    mpfr_t low, high, ramp, scaled;
    mpfr_inits2(PRECISION, low, high, ramp, scaled, (mpfr_ptr)0);
    correction_range(low, high, spec);
    mpfr_sub(high, high, low, MPFR_RNDN);
    if (mpfr_zero_p(high)) {
        mpfr_set_ui(high, 1, MPFR_RNDN);
        mpfr_div_ui(high, high, 1000, MPFR_RNDN);
    }
    mpfr_si_sub(ramp, (long)i, low, MPFR_RNDN);
    mpfr_div(ramp, ramp, high, MPFR_RNDN);
    if (mpfr_sgn(ramp) < 0)
        mpfr_set_zero(ramp, 1);
    if (mpfr_cmp_ui(ramp, 1) > 0)
        mpfr_set_ui(ramp, 1, MPFR_RNDN);
    mpfr_div_d(scaled, omega, spec->factor, MPFR_RNDN);
    mpfr_mul(scaled, scaled, ramp, MPFR_RNDN);
    mpfr_ui_sub(ramp, 1, ramp, MPFR_RNDN);
    mpfr_mul(omega, omega, ramp, MPFR_RNDN);
    mpfr_add(omega, omega, scaled, MPFR_RNDN);
    mpfr_clears(low, high, ramp, scaled, (mpfr_ptr)0);
}

static void scale_llama3(mpfr_t omega, const struct posenc_freqs_spec *spec)
{
    const double context = spec->original_max_position_embeddings;
    mpfr_t wavelength, bound, smooth, scaled;
    mpfr_inits2(PRECISION, wavelength, bound, smooth, scaled, (mpfr_ptr)0);
    mpfr_const_pi(wavelength, MPFR_RNDN);
    mpfr_mul_ui(wavelength, wavelength, 2, MPFR_RNDN);
    mpfr_div(wavelength, wavelength, omega, MPFR_RNDN);
    mpfr_div_d(scaled, omega, spec->factor, MPFR_RNDN);
    mpfr_set_d(bound, context, MPFR_RNDN);
    mpfr_div_d(bound, bound, spec->low_freq_factor, MPFR_RNDN);
    const bool is_long = mpfr_cmp(wavelength, bound) > 0;
    mpfr_set_d(bound, context, MPFR_RNDN);
    mpfr_div_d(bound, bound, spec->high_freq_factor, MPFR_RNDN);
    const bool is_short = mpfr_cmp(wavelength, bound) < 0;
    if (is_long) {
        mpfr_set(omega, scaled, MPFR_RNDN);
    } else if (!is_short) {
        mpfr_d_div(smooth, context, wavelength, MPFR_RNDN);
        mpfr_sub_d(smooth, smooth, spec->low_freq_factor, MPFR_RNDN);
        mpfr_set_d(bound, spec->high_freq_factor, MPFR_RNDN);
        mpfr_sub_d(bound, bound, spec->low_freq_factor, MPFR_RNDN);
        mpfr_div(smooth, smooth, bound, MPFR_RNDN);
        mpfr_mul(omega, omega, smooth, MPFR_RNDN);
        mpfr_ui_sub(smooth, 1, smooth, MPFR_RNDN);
        mpfr_mul(scaled, scaled, smooth, MPFR_RNDN);
        mpfr_add(omega, omega, scaled, MPFR_RNDN);
    }
    mpfr_clears(wavelength, bound, smooth, scaled, (mpfr_ptr)0);
}

static void omega_of(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->values) {
        mpfr_set_d(omega, spec->values[i], MPFR_RNDN);
        return;
    }
    long numerator, denominator;
    exponent_fraction(spec, i, &numerator, &denominator);
    mpfr_t exponent;
    mpfr_init2(exponent, PRECISION);
    mpfr_set_si(exponent, -numerator, MPFR_RNDN);
    mpfr_div_si(exponent, exponent, denominator, MPFR_RNDN);
    mpfr_set_d(omega, spec->rope_theta, MPFR_RNDN);
    mpfr_pow(omega, omega, exponent, MPFR_RNDN);
    mpfr_clear(exponent);
    if (spec->scaling == POSENC_SCALING_LINEAR)
        mpfr_div_d(omega, omega, spec->factor, MPFR_RNDN);
    else if (spec->scaling == POSENC_SCALING_LLAMA3)
        scale_llama3(omega, spec);
    else if (spec->scaling == POSENC_SCALING_YARN)
        scale_yarn(omega, spec, i);
}

/* ---- Profile hf_f32 ---- */

typedef int operation(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

/* One operation on f32 tensors: operands rounded to f32 first, the result once. */
static double step(operation *op, double a, double b)
{
    mpfr_t x, y;
    mpfr_inits2(24, x, y, (mpfr_ptr)0);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    op(x, x, y, MPFR_RNDN);
    const double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return result;
}

static double hf_llama3(const struct posenc_freqs_spec *spec, double inv_freq)
{
    const double context = spec->original_max_position_embeddings;
    const double low = spec->low_freq_factor, high = spec->high_freq_factor;
    const double two_pi = 2 * 3.141592653589793;
    const double wavelength = step(mpfr_mul, step(mpfr_div, 1, inv_freq), two_pi);
    const double kept = wavelength > step(mpfr_div, context, low)
                            ? step(mpfr_div, inv_freq, spec->factor)
                            : inv_freq;
    if (wavelength > (double)(float)(context / low) ||
        wavelength < (double)(float)(context / high) || low == high)
        return kept;
    double smooth = step(mpfr_mul, step(mpfr_div, 1, wavelength), context);
    smooth = step(mpfr_div, step(mpfr_sub, smooth, low), high - low);
    double left = step(mpfr_mul, step(mpfr_sub, 1, smooth), kept);
    left = step(mpfr_div, left, spec->factor);
    return step(mpfr_add, left, step(mpfr_mul, smooth, kept));
}

static double hf_yarn(const struct posenc_freqs_spec *spec, double power, int64_t i)
{
    mpfr_t range_low, range_high;
    mpfr_inits2(PRECISION, range_low, range_high, (mpfr_ptr)0);
    correction_range(range_low, range_high, spec);
    const double low = mpfr_get_d(range_low, MPFR_RNDN);
    double high = mpfr_get_d(range_high, MPFR_RNDN);
    mpfr_clears(range_low, range_high, (mpfr_ptr)0);
    if (low == high)
        high += 0.001;
    const double extrapolation = step(mpfr_div, 1, power);
    const double interpolation = step(mpfr_div, 1, step(mpfr_mul, spec->factor, power));
    double ramp = step(mpfr_div, step(mpfr_sub, (double)i, low), high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    const double keep = step(mpfr_sub, 1, ramp);
    const double left = step(mpfr_mul, interpolation, step(mpfr_sub, 1, keep));
    return step(mpfr_add, left, step(mpfr_mul, extrapolation, keep));
}

static double hf_inv_freq(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->values)
        return (double)(float)spec->values[i];
    long numerator, denominator;
    exponent_fraction(spec, i, &numerator, &denominator);
    const double exponent = step(mpfr_div, (double)numerator, (double)denominator);
    const double power = step(mpfr_pow, spec->rope_theta, exponent);
    const double inv_freq = step(mpfr_div, 1, power);
    if (spec->scaling == POSENC_SCALING_LINEAR)
        return step(mpfr_div, inv_freq, spec->factor);
    if (spec->scaling == POSENC_SCALING_LLAMA3)
        return hf_llama3(spec, inv_freq);
    if (spec->scaling == POSENC_SCALING_YARN)
        return hf_yarn(spec, power, i);
    return inv_freq;
}

/* ---- Plans ---- */

/* mscale log(f)/10 + 1, 1 for f <= 1 */
static void magnitude(mpfr_t to, double factor, double mscale)
{
    mpfr_set_d(to, factor, MPFR_RNDN);
    if (factor <= 1) {
        mpfr_set_ui(to, 1, MPFR_RNDN);
        return;
    }
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_mul_d(to, to, mscale, MPFR_RNDN);
    mpfr_div_ui(to, to, 10, MPFR_RNDN);
    mpfr_add_ui(to, to, 1, MPFR_RNDN);
}

static double attention_factor(const struct posenc_freqs_spec *spec)
{
    if (spec->attention_factor != 0)
        return spec->attention_factor;
    if (spec->scaling != POSENC_SCALING_YARN)
        return 1;
    mpfr_t a, b;
    mpfr_inits2(PRECISION, a, b, (mpfr_ptr)0);
    const bool both = spec->mscale != 0 && spec->mscale_all_dim != 0;
    magnitude(a, spec->factor, both ? spec->mscale : 1);
    magnitude(b, both ? spec->factor : 1, spec->mscale_all_dim);
    mpfr_div(a, a, b, MPFR_RNDN);
    const double m = mpfr_get_d(a, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)0);
    return m;
}

void reference_plan_init(struct reference_plan *plan, const struct posenc_freqs_spec *spec)
{
    const int64_t n = (spec->dim + 1) / 2;
    *plan = (struct reference_plan){ .spec = spec, .n_pairs = n };
    plan->omega = calloc((size_t)n, sizeof *plan->omega);
    plan->inv_freq = calloc((size_t)n, sizeof *plan->inv_freq);
    if (!plan->omega || !plan->inv_freq)
        abort();
    for (int64_t i = 0; i < n; i++) {
        mpfr_init2(plan->omega[i], PRECISION);
        omega_of(plan->omega[i], spec, i);
        plan->inv_freq[i] = hf_inv_freq(spec, i);
    }
    plan->attention_factor = attention_factor(spec);
}

void reference_plan_clear(struct reference_plan *plan)
{
    for (int64_t i = 0; i < plan->n_pairs; i++)
        mpfr_clear(plan->omega[i]);
    free(plan->omega);
    free(plan->inv_freq);
}
