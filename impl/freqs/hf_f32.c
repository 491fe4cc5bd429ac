/*
 * Inverse frequencies of profile hf_f32: the operations of Hugging Face transformers,
 * modeling_rope_utils.py, in the order written there, tensors in f32, each operation rounded
 * correctly once.  Python's own numbers are f64; where one meets a tensor it becomes f32 first.
 *
 *   exponent = f32(2i) / f32(dim);  pos_freq = f32(theta) ^ exponent;  inv_freq = 1 / pos_freq
 *
 * and of profile torch_exp_f32, the order of the widespread PyTorch module.
 *
 * The power comes from double-double arithmetic, so it is the correctly rounded one; what a
 * framework's own pow adds is its error.  The quotients "number / tensor" are taken as
 * divisions.
 */
#include "plan.h"

static float power_f32(struct dd log_theta, float exponent)
{
    return dd_to_float(posenc_dd_exp(dd_mul(log_theta, dd_from((double)exponent))));
}

/* find_correction_dim: Python floats; its logarithms correctly rounded. */
static double correction_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    double turns = rotations * 2.0 * posenc_dd_pi.hi;
    double log_ratio =
        posenc_dd_log(dd_from(spec->original_max_position_embeddings / turns)).hi;
    double log_theta = posenc_dd_log(dd_from(spec->rope_theta)).hi;
    return (double)spec->dim * log_ratio / (2.0 * log_theta);
}

/* linear_ramp_factor at pair i; low and high from find_correction_range. */
static float ramp_f32(double low, double high, int64_t i)
{
    if (low == high)
        high += 0.001;
    float t = ((float)i - (float)low) / (float)(high - low);
    return t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
}

static void yarn_f32(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *inv_freq,
                     const float *pos_freq)
{
    double low = correction_dim(spec, spec->beta_fast);
    double high = correction_dim(spec, spec->beta_slow);
    if (spec->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0.0);
    high = fmin(high, (double)(spec->dim - 1));
    float factor = (float)spec->factor;
    for (int64_t i = 0; i < n_pairs; i++) {
        float extrapolation = 1.0f / pos_freq[i];
        float interpolation = 1.0f / (factor * pos_freq[i]);
        float extrapolated = 1.0f - ramp_f32(low, high, i);
        float a = interpolation * (1.0f - extrapolated);
        float b = extrapolation * extrapolated;
        inv_freq[i] = a + b;
    }
}

/* number / tensor */
static float quotient(double number, float tensor)
{
    float reciprocal = 1.0f / tensor;
    return reciprocal * (float)number;
}

static float llama3_f32(const struct posenc_freqs_spec *spec, float inv_freq)
{
    double length = spec->original_max_position_embeddings;
    double low = spec->low_freq_factor, high = spec->high_freq_factor;
    float wavelength = quotient(2.0 * posenc_dd_pi.hi, inv_freq);
    if (wavelength > (float)(length / low))
        return inv_freq / (float)spec->factor;
    /* At low == high the formula has no value; nobody is between them but on the very edge. */
    if (wavelength < (float)(length / high) || low == high)
        return inv_freq;
    float above = quotient(length, wavelength) - (float)low;
    float smooth = above / (float)(high - low);
    float a = (1.0f - smooth) * inv_freq;
    a = a / (float)spec->factor;
    float b = smooth * inv_freq;
    return a + b;
}

/* x^y of Python floats, the power correctly rounded. */
static double power_f64(double x, double y)
{
    return posenc_dd_exp(dd_mul(posenc_dd_log(dd_from(x)), dd_from(y))).hi;
}

double posenc_scaled_theta(const struct posenc_freqs_spec *spec)
{
    double theta = spec->rope_theta, dim = (double)spec->dim, factor = spec->factor;

    if (spec->scaling == POSENC_SCALING_NTK)
        return theta * power_f64(factor, dim / (dim - 2.0));
    if (spec->scaling != POSENC_SCALING_DYNAMIC)
        return theta;
    double s = fmax((double)spec->seq_len, spec->max_position_embeddings);
    double stretch = factor * s / spec->max_position_embeddings - (factor - 1.0);
    return theta * power_f64(stretch, dim / (dim - 2.0));
}

/* Profile torch_exp_f32: exp(f32(2i) * f32(-ln(theta) / dim)). */
static void torch_exp_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *omega)
{
    double log_theta = posenc_dd_log(dd_from(spec->rope_theta)).hi;

    for (int64_t i = 0; i < n_pairs; i++) {
        struct exponent e = posenc_exponent(spec, i);
        float power = (float)e.n * (float)(-log_theta / e.d);
        omega[i] = dd_to_float(posenc_dd_exp(dd_from((double)power)));
    }
}

static void hf_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *inv_freq)
{
    float theta = (float)posenc_scaled_theta(spec), factor = (float)spec->factor;
    struct dd log_theta = posenc_dd_log(dd_from((double)theta));
    const double *factors = NULL;
    float *pos_freq = inv_freq; /* in place: pair i is read before it is written */

    for (int64_t i = 0; i < n_pairs; i++) {
        struct exponent e = posenc_exponent(spec, i);
        pos_freq[i] = power_f32(log_theta, (float)e.n / (float)e.d);
    }
    if (spec->scaling == POSENC_SCALING_YARN) {
        yarn_f32(spec, n_pairs, inv_freq, pos_freq);
        return;
    }
    if (spec->scaling == POSENC_SCALING_LONGROPE)
        factors = posenc_longrope_factors(spec);
    for (int64_t i = 0; i < n_pairs; i++) {
        inv_freq[i] = 1.0f / (factors ? (float)factors[i] * pos_freq[i] : pos_freq[i]);
        if (spec->scaling == POSENC_SCALING_LINEAR ||
            spec->scaling == POSENC_SCALING_PROPORTIONAL)
            inv_freq[i] = inv_freq[i] / factor;
        else if (spec->scaling == POSENC_SCALING_LLAMA3)
            inv_freq[i] = llama3_f32(spec, inv_freq[i]);
        if (i >= posenc_turning_pairs(spec))
            inv_freq[i] = 0.0f;
    }
}

void posenc_f32_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *inv_freq)
{
    if (spec->profile == POSENC_TORCH_EXP_F32)
        torch_exp_omega(spec, n_pairs, inv_freq);
    else
        hf_omega(spec, n_pairs, inv_freq);
}
