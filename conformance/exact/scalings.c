/*
 * Scaling families for the oracle. The functions of mode exact compute in 256 bits. The functions of hf_f32 and
 * ggml_f32 follow the source of Hugging Face or ggml operation by operation, so that each rounds the same.
 *
 * References: Peng et al. 2309.00071 (YaRN) section 3.2 and appendix A; Hugging Face transformers,
 * modeling_rope_utils.py; ggml.c ggml_rope_yarn_corr_dims, ops.cpp rope_yarn; Ding et al. 2402.13753; Wang et al.
 * 2403.00071 (Resonance RoPE) section 4.
 */
#include "scalings.h"

#include <math.h>

/* ---- linear ---- */

static struct big divide_by_factor(const struct scaling_state *state, int64_t i,
                                   struct big omega)
{
    (void)i;
    return big_divide(omega, big_double(state->spec->factor));
}

static float divide_by_factor_f32(const struct scaling_state *state, int64_t i, float power)
{
    const float inv_freq = 1.0f / power;
    (void)i;
    return inv_freq / (float)state->spec->factor;
}

static void divide_by_factor_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml)
{
    ggml->freq_scale = 1.0f / (float)spec->factor;
}

/* ---- llama3 ---- */

static struct big llama3_exact(const struct scaling_state *state, int64_t i, struct big omega)
{
    const struct posenc_freqs_spec *spec = state->spec;
    (void)i;
    const struct big context = big_double(spec->original_max_position_embeddings);
    const struct big low = big_double(spec->low_freq_factor);
    const struct big high = big_double(spec->high_freq_factor);
    /* Number of wavelengths in the original context, L / lambda. */
    const struct big turns = big_multiply(context, big_divide(omega, big_two_pi));
    const struct big scaled = big_divide(omega, big_double(spec->factor));
    if (big_compare(turns, low) < 0)
        return scaled;
    if (big_compare(turns, high) > 0 || big_compare(low, high) == 0)
        return omega;
    const struct big smooth = big_divide(big_subtract(turns, low), big_subtract(high, low));
    return big_add(big_multiply(big_subtract(big_integer(1), smooth), scaled),
                   big_multiply(smooth, omega));
}

static float llama3_f32(const struct scaling_state *state, int64_t i, float power)
{
    const struct posenc_freqs_spec *spec = state->spec;
    const float inv_freq = 1.0f / power;
    (void)i;
    const double context = spec->original_max_position_embeddings;
    const float factor = (float)spec->factor;
    const float longest = (float)(context / spec->low_freq_factor);
    const float shortest = (float)(context / spec->high_freq_factor);
    const float reciprocal = 1.0f / inv_freq;
    const float wavelength = reciprocal * (float)6.283185307179586;
    if (wavelength > longest)
        return inv_freq / factor;
    if (wavelength < shortest || spec->low_freq_factor == spec->high_freq_factor)
        return inv_freq;
    const float frequency = 1.0f / wavelength;
    const float turns = frequency * (float)context;
    const float above = turns - (float)spec->low_freq_factor;
    const float smooth = above / (float)(spec->high_freq_factor - spec->low_freq_factor);
    const float rest = 1.0f - smooth;
    const float interpolated = rest * inv_freq / factor;
    const float kept = smooth * inv_freq;
    return interpolated + kept;
}

/* Sets the divisors to the ratio of the unscaled to the scaled frequency. */
static void llama3_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml)
{
    const struct scaling_state state = scaling_state_create(spec);
    for (int64_t i = 0; i < ggml->n; i++) {
        const struct big omega = scaling_unscaled_omega(&state, i);
        ggml->divisor[i] = big_to_float(big_divide(omega, llama3_exact(&state, i, omega)));
    }
}

/* ---- yarn ---- */

/* Returns the index, with a fraction, of the pair that rotates so many times in the original context. */
static struct big yarn_pair(const struct scaling_state *state, double rotations)
{
    const struct posenc_freqs_spec *spec = state->spec;
    const struct big span = big_multiply(big_two_pi, big_double(rotations));
    const struct big context = big_double(spec->original_max_position_embeddings);
    const struct big numerator =
        big_multiply(big_integer(spec->dim), big_log(big_divide(context, span)));
    return big_divide(numerator, big_multiply(big_integer(2), state->log_theta));
}

/* Sets the range of pairs over which YaRN blends from unscaled to scaled frequencies. */
static void yarn_range(struct scaling_state *state)
{
    const struct posenc_freqs_spec *spec = state->spec;
    struct big low = yarn_pair(state, spec->beta_fast);
    struct big high = yarn_pair(state, spec->beta_slow);
    if (spec->truncate) {
        low = big_integer(big_floor(low));
        high = big_integer(-big_floor(big_negate(high)));
    }
    const struct big zero = big_integer(0), last = big_integer(spec->dim - 1);
    low = big_compare(low, zero) < 0 ? zero : low;
    high = big_compare(high, last) > 0 ? last : high;
    state->yarn_low_f64 = big_to_double(low);
    state->yarn_high_f64 = big_to_double(high);
    if (big_compare(low, high) == 0) {
        high = big_add(high, big_divide(big_integer(1), big_integer(1000)));
        state->yarn_high_f64 += 0.001;
    }
    state->yarn_low = low;
    state->yarn_high = high;
}

static struct big yarn_exact(const struct scaling_state *state, int64_t i, struct big omega)
{
    const struct big zero = big_integer(0), one = big_integer(1);
    struct big ramp = big_divide(big_subtract(big_integer(i), state->yarn_low),
                                 big_subtract(state->yarn_high, state->yarn_low));
    ramp = big_compare(ramp, zero) < 0 ? zero : big_compare(ramp, one) > 0 ? one : ramp;
    const struct big scaled = big_divide(omega, big_double(state->spec->factor));
    return big_add(big_multiply(scaled, ramp), big_multiply(omega, big_subtract(one, ramp)));
}

static float yarn_f32(const struct scaling_state *state, int64_t i, float power)
{
    const float extrapolation = 1.0f / power;
    const float scaled_power = (float)state->spec->factor * power;
    const float interpolation = 1.0f / scaled_power;
    const float distance = (float)i - (float)state->yarn_low_f64;
    float ramp = distance / (float)(state->yarn_high_f64 - state->yarn_low_f64);
    ramp = ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp;
    const float keep = 1.0f - ramp;
    const float left = interpolation * (1.0f - keep);
    const float right = extrapolation * keep;
    return left + right;
}

static float log_f32(float x) { return big_to_float(big_log(big_double((double)x))); }

/* Returns the index of the pair that rotates n_rot times within the original context. */
static float ggml_corr_dim(const struct posenc_freqs_spec *spec, float n_rot)
{
    const float pi = 0x1.921fb6p+1f;
    const float context = (float)spec->original_max_position_embeddings;
    float two_pi_n = n_rot * 2.0f;
    two_pi_n = two_pi_n * pi;
    const float ratio = context / two_pi_n;
    const float scaled = (float)spec->dim * log_f32(ratio);
    const float twice = 2.0f * log_f32((float)spec->rope_theta);
    return scaled / twice;
}

static void yarn_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml)
{
    float start = floorf(ggml_corr_dim(spec, (float)spec->beta_fast));
    float end = ceilf(ggml_corr_dim(spec, (float)spec->beta_slow));
    ggml->freq_scale = 1.0f / (float)spec->factor;
    start = start > 0.0f ? start : 0.0f;
    end = end < (float)(spec->dim - 1) ? end : (float)(spec->dim - 1);
    const float range = end - start > 0.001f ? end - start : 0.001f;
    for (int64_t i = 0; i < ggml->n; i++) {
        float y = ((float)i - start) / range;
        y = y > 0.0f ? y : 0.0f;
        y = y < 1.0f ? y : 1.0f;
        ggml->ramp_mix[i] = 1.0f - y;
    }
}

/* Returns 0.1 mscale ln f + 1, or 1 if f <= 1. */
static struct big yarn_magnitude(double factor, double mscale)
{
    if (factor <= 1.0)
        return big_integer(1);
    const struct big tenth = big_divide(big_double(mscale), big_integer(10));
    return big_add(big_multiply(tenth, big_log(big_double(factor))), big_integer(1));
}

/* Returns the factor by which ggml multiplies cosines. */
static double ggml_magnitude(const struct posenc_freqs_spec *spec)
{
    const float freq_scale = 1.0f / (float)spec->factor;
    const float tenth = 0.1f * log_f32(1.0f / freq_scale);
    return (double)(1.0f + tenth);
}

static double yarn_attention(const struct posenc_freqs_spec *spec)
{
    const bool both = spec->mscale != 0 && spec->mscale_all_dim != 0;
    if (!both)
        return spec->numerics == POSENC_NUMERICS_GGML_F32
                   ? ggml_magnitude(spec)
                   : big_to_double(yarn_magnitude(spec->factor, 1.0));
    return big_to_double(big_divide(yarn_magnitude(spec->factor, spec->mscale),
                                    yarn_magnitude(spec->factor, spec->mscale_all_dim)));
}

/* ---- ntk and dynamic: theta is multiplied by base^(dim/(dim-2)) ---- */

static struct big ntk_base(const struct posenc_freqs_spec *spec)
{
    return big_double(spec->factor);
}

static double ntk_python(const struct posenc_freqs_spec *spec) { return spec->factor; }

/* Returns factor s/M - (factor - 1), where s is the sequence length or the model's length M if that is more. */
static struct big dynamic_base(const struct posenc_freqs_spec *spec)
{
    const struct big factor = big_double(spec->factor), one = big_integer(1);
    const struct big model = big_double(spec->max_position_embeddings);
    const struct big length = big_integer(spec->seq_len);
    if (big_compare(length, model) <= 0)
        return one;
    const struct big scaled = big_multiply(factor, big_divide(length, model));
    return big_subtract(scaled, big_subtract(factor, one));
}

static double dynamic_python(const struct posenc_freqs_spec *spec)
{
    double length = (double)spec->seq_len;
    if (length < spec->max_position_embeddings)
        length = spec->max_position_embeddings;
    const double times = spec->factor * length / spec->max_position_embeddings;
    return times - (spec->factor - 1.0);
}

/* Hugging Face calls _compute_dynamic_ntk_parameters with the length as a tensor if that exceeds M, and without a
 * length otherwise. */
static bool dynamic_is_tensor(const struct posenc_freqs_spec *spec)
{
    return (double)spec->seq_len > spec->max_position_embeddings;
}

static float dynamic_tensor(const struct posenc_freqs_spec *spec)
{
    const float product = (float)spec->factor * (float)spec->seq_len;
    const float ratio = product / (float)spec->max_position_embeddings;
    return ratio - (float)(spec->factor - 1.0);
}

/* ---- longrope ---- */

/* Returns the factor of a pair, which is long_factor[i] for sequences longer than the original context. */
static double longrope_factor(const struct posenc_freqs_spec *spec, int64_t i)
{
    return (double)spec->seq_len <= spec->original_max_position_embeddings
               ? spec->short_factor[i]
               : spec->long_factor[i];
}

static struct big longrope_exact(const struct scaling_state *state, int64_t i, struct big omega)
{
    return big_divide(omega, big_double(longrope_factor(state->spec, i)));
}

static float longrope_f32(const struct scaling_state *state, int64_t i, float power)
{
    const float longer = (float)longrope_factor(state->spec, i) * power;
    return 1.0f / longer;
}

static void longrope_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml)
{
    for (int64_t i = 0; i < ggml->n; i++)
        ggml->divisor[i] = (float)longrope_factor(spec, i);
}

/* Returns sqrt(1 + ln f / ln L), where L is the original context. The root is half a logarithm. */
static double longrope_attention(const struct posenc_freqs_spec *spec)
{
    const struct big ratio =
        big_divide(big_log(big_double(spec->factor)),
                   big_log(big_double(spec->original_max_position_embeddings)));
    const struct big log_square = big_log(big_add(big_integer(1), ratio));
    return big_to_double(big_exp(big_divide(log_square, big_integer(2))));
}

/* Hugging Face rotates int(partial_rotary_factor * dim // 2) pairs. */
static bool is_beyond_share(const struct posenc_freqs_spec *spec, int64_t i)
{
    return (double)(i + 1) > floor(spec->partial_rotary_factor * (double)spec->dim / 2.0);
}

const struct scaling_family *scaling_find_family(const struct posenc_freqs_spec *spec)
{
    static const struct scaling_family families[] = {
        [POSENC_SCALING_NONE] = { .omega = NULL },
        [POSENC_SCALING_LINEAR] = { .omega = divide_by_factor,
                                    .inv_freq = divide_by_factor_f32,
                                    .ggml = divide_by_factor_ggml },
        [POSENC_SCALING_LLAMA3] = { .omega = llama3_exact,
                                    .inv_freq = llama3_f32,
                                    .ggml = llama3_ggml },
        [POSENC_SCALING_YARN] = { .prepare = yarn_range,
                                  .omega = yarn_exact,
                                  .inv_freq = yarn_f32,
                                  .ggml = yarn_ggml,
                                  .attention = yarn_attention },
        [POSENC_SCALING_DYNAMIC] = { .base = dynamic_base,
                                     .python_base = dynamic_python,
                                     .is_tensor = dynamic_is_tensor,
                                     .tensor_base = dynamic_tensor },
        [POSENC_SCALING_NTK] = { .base = ntk_base, .python_base = ntk_python },
        [POSENC_SCALING_LONGROPE] = { .omega = longrope_exact,
                                      .inv_freq = longrope_f32,
                                      .ggml = longrope_ggml,
                                      .attention = longrope_attention },
        [POSENC_SCALING_PROPORTIONAL] = { .is_unrotated = is_beyond_share,
                                          .omega = divide_by_factor,
                                          .inv_freq = divide_by_factor_f32 },
        [POSENC_SCALING_RESONANCE] = { .rounds_wavelength = true },
        [POSENC_SCALING_RESONANCE_YARN] = { .prepare = yarn_range,
                                            .omega = yarn_exact,
                                            .attention = yarn_attention,
                                            .rounds_wavelength = true },
    };
    return &families[spec->scaling];
}
