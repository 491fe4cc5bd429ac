/*
 * Frequencies of the numerics modes hf_f32 and torch_exp_f32.
 *
 * hf_f32 repeats the operations of Hugging Face transformers, modeling_rope_utils.py, in their order. Tensors are f32,
 * and each operation is correctly rounded. Numbers of Python are f64, and become f32 when they are combined with a
 * tensor.
 *
 *   exponent = f32(2i) / f32(dim); pos_freq = f32(theta) ^ exponent; inv_freq = 1 / pos_freq
 *
 * A scaling family may change theta, or compute inv_freq from pos_freq in another way (scalings.c). torch_exp_f32 has
 * the order of the PyTorch modules that use torch.exp().
 *
 * Powers are correctly rounded, by double-double arithmetic, so results do not have the errors of a particular pow().
 * Quotients "number / tensor" are divisions here.
 */
#include "scaling.h"

static float power_f32(struct dd log_theta, float exponent)
{
    return dd_to_float(posenc_dd_exp(dd_mul(log_theta, dd_from((double)exponent))));
}

/* Returns factor^(dim/(dim-2)). The exponent is always a Python float. */
static struct dd ntk_power(const struct posenc_freqs_spec *spec, double factor)
{
    double dim = (double)spec->dim;
    return posenc_dd_exp(dd_mul(posenc_dd_log(dd_from(factor)), dd_from(dim / (dim - 2.0))));
}

float posenc_f32_theta(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    if (!scaling->theta_factor_f64)
        return (float)spec->rope_theta;
    float factor = spec->numerics == POSENC_NUMERICS_HF_F32 && scaling->theta_factor_f32
                       ? scaling->theta_factor_f32(spec)
                       : 0.0f;
    if (factor > 0.0f)
        return (float)spec->rope_theta * dd_to_float(ntk_power(spec, (double)factor));
    return (float)(spec->rope_theta * ntk_power(spec, scaling->theta_factor_f64(spec)).hi);
}

/* Mode torch_exp_f32: exp(f32(2i) * f32(-ln(theta) / dim)). */
static void fill_torch_exp_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs,
                                 float *omega)
{
    double log_theta = posenc_dd_log(dd_from(spec->rope_theta)).hi;

    for (int64_t i = 0; i < n_pairs; i++) {
        struct exponent e = posenc_exponent(spec, i);
        float power = (float)e.n * (float)(-log_theta / e.d);
        omega[i] = dd_to_float(posenc_dd_exp(dd_from((double)power)));
    }
}

static void fill_hf_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs,
                          float *inv_freq)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    const int64_t n_rotated = posenc_rotated_pairs(spec);
    float theta = posenc_f32_theta(spec);
    struct dd log_theta = posenc_dd_log(dd_from((double)theta));
    struct f32_rule rule = { .spec = spec };
    if (scaling->prepare_f32)
        scaling->prepare_f32(&rule);
    for (int64_t i = 0; i < n_pairs; i++) {
        struct exponent e = posenc_exponent(spec, i);
        float pos_freq = power_f32(log_theta, (float)e.n / (float)e.d);
        inv_freq[i] = i >= n_rotated      ? 0.0f
                      : scaling->inv_freq ? scaling->inv_freq(&rule, i, pos_freq)
                                          : 1.0f / pos_freq;
    }
}

void posenc_f32_fill_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs,
                           float *inv_freq)
{
    if (spec->numerics == POSENC_NUMERICS_TORCH_EXP_F32)
        fill_torch_exp_omega(spec, n_pairs, inv_freq);
    else
        fill_hf_omega(spec, n_pairs, inv_freq);
}
