/*
 * The f32 profiles by MPFR: the steps that each framework takes, one by one, each rounded to 24
 * bits, or to 53 where Python computes with its own floats.
 *
 *     hf_f32         Hugging Face transformers, modeling_rope_utils.py: inverse frequencies, and
 *                    the theta of dynamic beyond max_position_embeddings;
 *                    PyTorch divides a number by a tensor as reciprocal times number
 *     torch_exp_f32  exp(arange(0, d, 2) * (-log(theta)/d)), the widespread PyTorch module
 *     ggml_f32       ggml.c ggml_rope_yarn_corr_dims; ggml-cpu/ops.cpp ggml_rope_cache_init,
 *                    rope_yarn, rope_yarn_ramp: angles by an iterated product
 *
 * Powers, logarithms and exponentials are correctly rounded like every other step.  What the
 * scaling families do in these profiles is in scalings.c.
 */
#include "scalings.h"

enum { F32 = 24, F64 = 53 };

/* A function of a, or an operation on a and b, in so many bits: the operands are rounded to
 * them first, then the result, with the gradual underflow of f32 or f64 (whose least exponents
 * are -148 and -1073 as MPFR counts). */
static double rounded(int bits, function *f, operation *op, double a, double b)
{
    const mpfr_exp_t least = mpfr_get_emin();
    mpfr_t x, y;
    mpfr_inits2(bits, x, y, (mpfr_ptr)0);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_set_d(y, b, MPFR_RNDN);
    mpfr_set_emin(bits == F32 ? -148 : -1073);
    const int inexact = f ? f(x, x, MPFR_RNDN) : op(x, x, y, MPFR_RNDN);
    mpfr_subnormalize(x, inexact, MPFR_RNDN);
    mpfr_set_emin(least);
    const double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return result;
}

double f32(double a) { return rounded(F32, mpfr_set, NULL, a, 0); }
double step(operation *op, double a, double b) { return rounded(F32, NULL, op, a, b); }
double python(operation *op, double a, double b) { return rounded(F64, NULL, op, a, b); }
double step_of(function *f, double a) { return rounded(F32, f, NULL, a, 0); }
static double python_of(function *f, double a) { return rounded(F64, f, NULL, a, 0); }

/* The base, stretched by some families: a Python float until it meets a tensor. */
static double python_theta(const struct posenc_freqs_spec *spec)
{
    const struct reference_scaling *scaling = reference_scaling(spec);
    const double dim = (double)spec->dim;
    if (!scaling->python_stretch)
        return spec->rope_theta;
    const double power = python(mpfr_div, dim, python(mpfr_sub, dim, 2));
    return python(mpfr_mul, spec->rope_theta,
                  python(mpfr_pow, scaling->python_stretch(spec), power));
}

/* ---- hf_f32 and torch_exp_f32 ---- */

static double torch_exp_inv_freq(const struct posenc_freqs_spec *spec, double numerator,
                                 double denominator)
{
    const double log_theta = python_of(mpfr_log, spec->rope_theta);
    const double slope = python(mpfr_div, -log_theta, denominator);
    return step_of(mpfr_exp, step(mpfr_mul, numerator, slope));
}

double reference_inv_freq(const struct posenc_freqs_spec *spec, int64_t i)
{
    const struct reference_scaling *scaling = reference_scaling(spec);
    if (spec->values)
        return f32(spec->values[i]);
    long numerator, denominator;
    reference_exponent(spec, i, &numerator, &denominator);
    if (spec->profile == POSENC_TORCH_EXP_F32)
        return torch_exp_inv_freq(spec, (double)numerator, (double)denominator);
    if (scaling->rests && scaling->rests(spec, i))
        return 0;
    const double exponent = step(mpfr_div, (double)numerator, (double)denominator);
    const double tensor = scaling->tensor_theta ? scaling->tensor_theta(spec) : 0;
    const double power = step(mpfr_pow, tensor != 0 ? tensor : python_theta(spec), exponent);
    return scaling->inv_freq ? scaling->inv_freq(spec, i, power) : step(mpfr_div, 1, power);
}

/* ---- ggml_f32 ---- */

void reference_ggml_init(struct reference_plan *plan)
{
    const struct posenc_freqs_spec *spec = plan->spec;
    const double power = step(mpfr_div, -2, (double)spec->dim);
    plan->ggml.theta_scale = step(mpfr_pow, python_theta(spec), power);
    plan->ggml.freq_scale = 1;
    for (int64_t i = 0; i < plan->n_pairs; i++)
        plan->ggml.divisor[i] = 1;
    if (reference_scaling(spec)->ggml)
        reference_scaling(spec)->ggml(plan);
}

static double ggml_angle(const struct reference_ggml *ggml, int64_t pair, double position)
{
    double theta = f32(position);
    for (int64_t i = 0; i < pair; i++)
        theta = step(mpfr_mul, theta, ggml->theta_scale);
    const double extrapolated = step(mpfr_div, theta, ggml->divisor[pair]);
    const double interpolated = step(mpfr_mul, ggml->freq_scale, extrapolated);
    const double kept = ggml->kept[pair];
    const double rest = step(mpfr_mul, interpolated, step(mpfr_sub, 1, kept));
    return step(mpfr_add, rest, step(mpfr_mul, extrapolated, kept));
}

double reference_angle(const struct reference_plan *plan, int64_t pair, double position)
{
    if (plan->spec->profile == POSENC_GGML_F32)
        return ggml_angle(&plan->ggml, pair, position);
    return step(mpfr_mul, position, plan->inv_freq[pair]);
}
