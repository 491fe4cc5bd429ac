/*
 * Inverse frequencies of profile hf_f32: the operations of Hugging Face transformers,
 * modeling_rope_utils.py, in the order written there, tensors in f32, each operation rounded
 * correctly once. Python's own numbers are f64; where one meets a tensor it becomes f32 first.
 *
 *   exponent = f32(2i) / f32(dim); pos_freq = f32(theta) ^ exponent; inv_freq = 1 / pos_freq
 *
 * unless the scaling family has another theta, or another way from pos_freq on (scalings.c);
 * and of profile torch_exp_f32, the order of the widespread PyTorch module.
 *
 * The power comes from double-double arithmetic, so it is the correctly rounded one; what a
 * framework's own pow adds is its error. The quotients "number / tensor" are taken as
 * divisions.
 */
#include "scaling.h"

static float power_f32(struct dd log_theta, float exponent)
{
    return dd_to_float(posenc_dd_exp(dd_mul(log_theta, dd_from((double)exponent))));
}

/* stretch^(dim/(dim-2)); the exponent is a Python float in either case. */
static struct dd ntk_power(const struct posenc_freqs_spec *spec, double stretch)
{
    double dim = (double)spec->dim;
    return posenc_dd_exp(dd_mul(posenc_dd_log(dd_from(stretch)), dd_from(dim / (dim - 2.0))));
}

float posenc_f32_theta(const struct posenc_freqs_spec *spec)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    if (!scaling->stretch_f64)
        return (float)spec->rope_theta;
    float stretch = spec->profile == POSENC_HF_F32 && scaling->stretch_f32
                        ? scaling->stretch_f32(spec)
                        : 0.0f;
    if (stretch > 0.0f)
        return (float)spec->rope_theta * dd_to_float(ntk_power(spec, (double)stretch));
    return (float)(spec->rope_theta * ntk_power(spec, scaling->stretch_f64(spec)).hi);
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
    const struct scaling *scaling = posenc_scaling_of(spec);
    const int64_t turning = posenc_turning_pairs(spec);
    float theta = posenc_f32_theta(spec);
    struct dd log_theta = posenc_dd_log(dd_from((double)theta));
    struct f32_rule rule = { .spec = spec };
    if (scaling->prepare_f32)
        scaling->prepare_f32(&rule);
    for (int64_t i = 0; i < n_pairs; i++) {
        struct exponent e = posenc_exponent(spec, i);
        float pos_freq = power_f32(log_theta, (float)e.n / (float)e.d);
        inv_freq[i] = i >= turning        ? 0.0f
                      : scaling->inv_freq ? scaling->inv_freq(&rule, i, pos_freq)
                                          : 1.0f / pos_freq;
    }
}

void posenc_f32_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *inv_freq)
{
    if (spec->profile == POSENC_TORCH_EXP_F32)
        torch_exp_omega(spec, n_pairs, inv_freq);
    else
        hf_omega(spec, n_pairs, inv_freq);
}
