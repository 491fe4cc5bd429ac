/*
 * The f32 profiles by MPFR: the steps of each framework one by one, each rounded to 24 bits, or
 * to the 53 of Python's own numbers.
 *
 *     hf_f32         Hugging Face transformers, modeling_rope_utils.py: inverse frequencies;
 *                    number / tensor is PyTorch's reciprocal and product
 *     torch_exp_f32  exp(arange(0, d, 2) * (-log(theta)/d)), the widespread PyTorch module
 *     ggml_f32       ggml.c ggml_rope_yarn_corr_dims; ggml-cpu/ops.cpp ggml_rope_cache_init,
 *                    rope_yarn, rope_yarn_ramp: angles by an iterated product
 *
 * Powers, logarithms and exponentials are correctly rounded like every other step.
 */
#include "golden.h"

#include <stdlib.h>

typedef int operation(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int function(mpfr_t, const mpfr_t, mpfr_rnd_t);

enum { F32 = 24, F64 = 53 };
static const double pi_f64 = 3.141592653589793;

/* One operation on numbers of so many bits: operands rounded to them first, the result once, with
 * the gradual underflow of f32 (least exponent -148 as MPFR counts) or f64. */
static double rounded(int bits, operation *op, double a, double b)
{
    const mpfr_exp_t least = mpfr_get_emin();
    mpfr_t x, y;
    mpfr_inits2(bits, x, y, (mpfr_ptr)0);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    mpfr_set_emin(bits == F32 ? -148 : -1073);
    mpfr_subnormalize(x, op(x, x, y, MPFR_RNDN), MPFR_RNDN);
    mpfr_set_emin(least);
    const double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return result;
}

static double applied(int bits, function *f, double a)
{
    const mpfr_exp_t least = mpfr_get_emin();
    mpfr_t x;
    mpfr_init2(x, bits);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_emin(bits == F32 ? -148 : -1073);
    mpfr_subnormalize(x, f(x, x, MPFR_RNDN), MPFR_RNDN);
    mpfr_set_emin(least);
    const double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return result;
}

static double f32(double a) { return applied(F32, mpfr_set, a); }
static double step(operation *op, double a, double b) { return rounded(F32, op, a, b); }
static double python(operation *op, double a, double b) { return rounded(F64, op, a, b); }

/* The base: a Python float until it meets a tensor. */
static double python_theta(const struct posenc_freqs_spec *spec)
{
    const double f = spec->factor, dim = (double)spec->dim;
    double stretch = f;
    if (spec->scaling == POSENC_SCALING_DYNAMIC) {
        const double most = spec->max_position_embeddings, now = (double)spec->seq_len;
        stretch = python(mpfr_div, python(mpfr_mul, f, now > most ? now : most), most);
        stretch = python(mpfr_sub, stretch, python(mpfr_sub, f, 1));
    } else if (spec->scaling != POSENC_SCALING_NTK) {
        return spec->rope_theta;
    }
    const double power = python(mpfr_div, dim, python(mpfr_sub, dim, 2));
    return python(mpfr_mul, spec->rope_theta, python(mpfr_pow, stretch, power));
}

/* ---- hf_f32 and torch_exp_f32 ---- */

static double hf_llama3(const struct posenc_freqs_spec *spec, double inv_freq)
{
    const double context = spec->original_max_position_embeddings;
    const double low = spec->low_freq_factor, high = spec->high_freq_factor;
    const double two_pi = 2 * pi_f64;
    const double wavelength = step(mpfr_mul, step(mpfr_div, 1, inv_freq), two_pi);
    const double kept = wavelength > step(mpfr_div, context, low)
                            ? step(mpfr_div, inv_freq, spec->factor)
                            : inv_freq;
    if (wavelength > f32(context / low) || wavelength < f32(context / high) || low == high)
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
    reference_yarn_range(range_low, range_high, spec);
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

static double torch_inv_freq(const struct posenc_freqs_spec *spec, double numerator,
                             double denominator)
{
    const double log_theta = applied(F64, mpfr_log, spec->rope_theta);
    const double slope = python(mpfr_div, -log_theta, denominator);
    return applied(F32, mpfr_exp, step(mpfr_mul, numerator, slope));
}

double reference_inv_freq(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->values)
        return f32(spec->values[i]);
    long numerator, denominator;
    reference_exponent(spec, i, &numerator, &denominator);
    if (spec->profile == POSENC_TORCH_EXP_F32)
        return torch_inv_freq(spec, (double)numerator, (double)denominator);
    const double exponent = step(mpfr_div, (double)numerator, (double)denominator);
    const double power = step(mpfr_pow, python_theta(spec), exponent);
    const double inv_freq = step(mpfr_div, 1, power);
    if (spec->scaling == POSENC_SCALING_LINEAR)
        return step(mpfr_div, inv_freq, spec->factor);
    if (spec->scaling == POSENC_SCALING_LLAMA3)
        return hf_llama3(spec, inv_freq);
    if (spec->scaling == POSENC_SCALING_YARN)
        return hf_yarn(spec, power, i);
    if (spec->scaling == POSENC_SCALING_LONGROPE)
        return step(mpfr_div, 1, step(mpfr_mul, reference_longrope_factor(spec, i), power));
    if (spec->scaling == POSENC_SCALING_PROPORTIONAL)
        return reference_rests(spec, i) ? 0 : step(mpfr_div, inv_freq, spec->factor);
    return inv_freq;
}

/* ---- ggml_f32 ---- */

/* n_dims log(n_ctx_orig / (n_rot 2 pi)) / (2 log(base)), from the left as C reads it. */
static double ggml_corr_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    const double span = step(mpfr_mul, step(mpfr_mul, rotations, 2), pi_f64);
    const double ratio = step(mpfr_div, spec->original_max_position_embeddings, span);
    const double above = step(mpfr_mul, (double)spec->dim, applied(F32, mpfr_log, ratio));
    return step(mpfr_div, above, step(mpfr_mul, 2, applied(F32, mpfr_log, spec->rope_theta)));
}

static int ggml_floor(mpfr_t to, const mpfr_t x, mpfr_rnd_t rounding)
{
    (void)rounding;
    return mpfr_floor(to, x);
}

static int ggml_ceil(mpfr_t to, const mpfr_t x, mpfr_rnd_t rounding)
{
    (void)rounding;
    return mpfr_ceil(to, x);
}

/* 1 - the ramp: the share of the angle that is not interpolated. */
static double ggml_kept(const struct posenc_freqs_spec *spec, int64_t i)
{
    double low = applied(F32, ggml_floor, ggml_corr_dim(spec, spec->beta_fast));
    double high = applied(F32, ggml_ceil, ggml_corr_dim(spec, spec->beta_slow));
    low = low > 0 ? low : 0;
    high = high < (double)(spec->dim - 1) ? high : (double)(spec->dim - 1);
    const double least = f32(0.001), width = step(mpfr_sub, high, low);
    const double y =
        step(mpfr_div, step(mpfr_sub, (double)i, low), width > least ? width : least);
    return step(mpfr_sub, 1, y < 0 ? 0 : y > 1 ? 1 : y);
}

/* The frequency factor of a model's file: what the angle is divided by. */
static double ggml_divisor(const struct reference_plan *plan, int64_t i)
{
    if (plan->spec->scaling == POSENC_SCALING_LONGROPE)
        return f32(reference_longrope_factor(plan->spec, i));
    if (plan->spec->scaling != POSENC_SCALING_LLAMA3)
        return 1;
    struct posenc_freqs_spec plain = *plan->spec;
    mpfr_t ratio;
    mpfr_init2(ratio, PRECISION);
    plain.scaling = POSENC_SCALING_NONE;
    reference_omega(ratio, &plain, i);
    mpfr_div(ratio, ratio, plan->omega[i], MPFR_RNDN);
    const double divisor = (double)mpfr_get_flt(ratio, MPFR_RNDN);
    mpfr_clear(ratio);
    return divisor;
}

void reference_ggml_init(struct reference_plan *plan)
{
    const struct posenc_freqs_spec *spec = plan->spec;
    struct reference_ggml *ggml = &plan->ggml;
    const double power = step(mpfr_div, -2, (double)spec->dim);
    ggml->theta_scale = step(mpfr_pow, python_theta(spec), power);
    ggml->blends = spec->scaling == POSENC_SCALING_YARN;
    ggml->freq_scale = ggml->blends || spec->scaling == POSENC_SCALING_LINEAR
                           ? step(mpfr_div, 1, spec->factor)
                           : 1;
    ggml->divisor = calloc((size_t)plan->n_pairs, sizeof *ggml->divisor);
    ggml->kept = calloc((size_t)plan->n_pairs, sizeof *ggml->kept);
    if (!ggml->divisor || !ggml->kept)
        abort();
    for (int64_t i = 0; i < plan->n_pairs; i++) {
        ggml->divisor[i] = ggml_divisor(plan, i);
        ggml->kept[i] = ggml->blends ? ggml_kept(spec, i) : 0;
    }
}

double reference_ggml_magnitude(const struct posenc_freqs_spec *spec)
{
    const double freq_scale = step(mpfr_div, 1, spec->factor);
    const double log_factor = applied(F32, mpfr_log, step(mpfr_div, 1, freq_scale));
    return step(mpfr_add, 1, step(mpfr_mul, 0.1, log_factor));
}

static double ggml_angle(const struct reference_ggml *ggml, int64_t pair, double position)
{
    double theta = f32(position);
    for (int64_t i = 0; i < pair; i++)
        theta = step(mpfr_mul, theta, ggml->theta_scale);
    const double extrapolated = step(mpfr_div, theta, ggml->divisor[pair]);
    const double interpolated = step(mpfr_mul, ggml->freq_scale, extrapolated);
    if (!ggml->blends)
        return interpolated;
    const double kept = ggml->kept[pair];
    const double left = step(mpfr_mul, interpolated, step(mpfr_sub, 1, kept));
    return step(mpfr_add, left, step(mpfr_mul, extrapolated, kept));
}

double reference_angle(const struct reference_plan *plan, int64_t pair, double position)
{
    if (plan->spec->profile == POSENC_GGML_F32)
        return ggml_angle(&plan->ggml, pair, position);
    return step(mpfr_mul, position, plan->inv_freq[pair]);
}
