/*
 * Frequencies as the oracle sees them.
 *
 * Profile exact: real mathematics in 256 bits.  (ggml_f32: ggml.c.)  Profile hf_f32: Hugging Face's
 * modeling_rope_utils.py as PyTorch evaluates it on a CPU: tensors are f32, each operation on
 * them rounds once, a Python number is rounded to f32 where it meets a tensor, and number /
 * tensor is reciprocal, then product.
 *
 * References: Su et al. 2104.09864; Peng et al. 2309.00071 (YaRN) section 3.2 and appendix A;
 * Hugging Face transformers, modeling_rope_utils.py (linear, llama3, yarn); Vaswani et al.
 * 1706.03762 section 3.5; tensor2tensor get_timing_signal_1d (endpoint).
 */
#include "fixed.h"
#include "oracle.h"

#include <math.h>

/* What every pair of a plan shares. */
struct family {
    const struct posenc_freqs_spec *spec;
    struct big log_theta;
    struct big log_theta_f32;       /* of the base as the f32 profiles round it */
    struct big yarn_low, yarn_high; /* correction range in pair indices */
    double low, high;               /* the same as Python has it, in f64 */
};

static struct big two_pi(void)
{
    struct big turn = big_pi();
    turn.exponent++;
    return turn;
}

/* The pair whose wavelength fits `rotations` times into the original context. */
static struct big yarn_pair(const struct family *family, double rotations)
{
    const struct posenc_freqs_spec *spec = family->spec;
    const struct big span = big_multiply(two_pi(), big_double(rotations));
    const struct big context = big_double(spec->original_max_position_embeddings);
    const struct big numerator =
        big_multiply(big_integer(spec->dim), big_log(big_divide(context, span)));
    return big_divide(numerator, big_multiply(big_integer(2), family->log_theta));
}

static void yarn_range(struct family *family)
{
    const struct posenc_freqs_spec *spec = family->spec;
    struct big low = yarn_pair(family, spec->beta_fast);
    struct big high = yarn_pair(family, spec->beta_slow);
    if (spec->truncate) {
        low = big_integer(big_floor(low));
        high = big_integer(-big_floor(big_negate(high)));
    }
    const struct big zero = big_integer(0), last = big_integer(spec->dim - 1);
    low = big_compare(low, zero) < 0 ? zero : low;
    high = big_compare(high, last) > 0 ? last : high;
    family->low = big_to_double(low);
    family->high = big_to_double(high);
    if (big_compare(low, high) == 0) {
        high = big_add(high, big_divide(big_integer(1), big_integer(1000)));
        family->high += 0.001;
    }
    family->yarn_low = low;
    family->yarn_high = high;
}

/* What NTK scaling raises to the power dim/(dim-2): for dynamic, factor s/M - (factor - 1) with s
 * no shorter than the model's own length M. */
static struct big ntk_base(const struct posenc_freqs_spec *spec)
{
    const struct big factor = big_double(spec->factor), one = big_integer(1);
    if (spec->scaling == POSENC_SCALING_NTK)
        return factor;
    const struct big own = big_double(spec->max_position_embeddings);
    const struct big now = big_integer(spec->seq_len);
    if (big_compare(now, own) <= 0)
        return one;
    return big_subtract(big_multiply(factor, big_divide(now, own)), big_subtract(factor, one));
}

static struct family family_of(const struct posenc_freqs_spec *spec)
{
    struct family family = { .spec = spec };
    if (spec->values)
        return family;
    family.log_theta = big_log(big_double(spec->rope_theta));
    if (spec->scaling == POSENC_SCALING_DYNAMIC || spec->scaling == POSENC_SCALING_NTK)
        family.log_theta =
            big_add(family.log_theta,
                    big_multiply(big_divide(big_integer(spec->dim), big_integer(spec->dim - 2)),
                                 big_log(ntk_base(spec))));
    if (spec->scaling == POSENC_SCALING_YARN)
        yarn_range(&family);
    return family;
}

/* Hugging Face: modeling_qwen2_vl.py splits the pairs into sections; modeling_qwen3_vl.py begins with
 * all on the first axis and gives pairs axis, axis + 3, ... below 3 section to the others. */
int oracle_axis(const struct posenc_freqs_spec *spec, int64_t i)
{
    const int64_t *section = spec->mrope_section;
    int axis = 0;
    if (section[0] == 0)
        return 0;
    if (spec->mrope_layout == POSENC_MROPE_INTERLEAVED) {
        for (int a = 1; a < 3; a++)
            for (int64_t pair = a; pair < 3 * section[a]; pair += 3)
                axis = pair == i ? a : axis;
        return axis;
    }
    for (int64_t end = section[0]; i >= end && axis < 2; end += section[axis])
        axis++;
    return axis;
}

/* The exponent of 1/theta as a fraction.  With one frequency pair the endpoint convention
 * has 1. */
static void exponent_of(const struct posenc_freqs_spec *spec, int64_t i, int64_t *numerator,
                        int64_t *denominator)
{
    if (spec->mrope_layout == POSENC_MROPE_RESTARTED && spec->mrope_section[0] != 0) {
        const int axis = oracle_axis(spec, i);
        int64_t start = 0;
        for (int a = 0; a < axis; a++)
            start += spec->mrope_section[a];
        *numerator = 2 * (i - start);
        *denominator = 2 * spec->mrope_section[axis];
        return;
    }
    const int64_t pairs = spec->dim / 2;
    const bool endpoint = spec->convention == POSENC_ENDPOINT;
    *numerator = !endpoint ? 2 * i : pairs > 1 ? i : 0;
    *denominator = !endpoint ? spec->dim : pairs > 1 ? pairs - 1 : 1;
}

/* LongRoPE's factor of a pair: the long ones once the sequence exceeds the original context. */
static double longrope_factor(const struct posenc_freqs_spec *spec, int64_t i)
{
    return (double)spec->seq_len <= spec->original_max_position_embeddings
               ? spec->short_factor[i]
               : spec->long_factor[i];
}

/* Whether proportional scaling leaves a pair where it is: int(share * dim // 2) pairs turn. */
static bool rests(const struct posenc_freqs_spec *spec, int64_t i)
{
    return spec->scaling == POSENC_SCALING_PROPORTIONAL &&
           (double)(i + 1) > floor(spec->partial_rotary_factor * (double)spec->dim / 2.0);
}

/* ---- Profile exact ---- */

static struct big llama3_exact(const struct posenc_freqs_spec *spec, struct big omega)
{
    const struct big context = big_double(spec->original_max_position_embeddings);
    const struct big low = big_double(spec->low_freq_factor);
    const struct big high = big_double(spec->high_freq_factor);
    /* How often the original context holds the wavelength, L / lambda. */
    const struct big turns = big_multiply(context, big_divide(omega, two_pi()));
    const struct big scaled = big_divide(omega, big_double(spec->factor));
    if (big_compare(turns, low) < 0)
        return scaled;
    if (big_compare(turns, high) > 0 || big_compare(low, high) == 0)
        return omega;
    const struct big smooth = big_divide(big_subtract(turns, low), big_subtract(high, low));
    return big_add(big_multiply(big_subtract(big_integer(1), smooth), scaled),
                   big_multiply(smooth, omega));
}

static struct big yarn_exact(const struct family *family, struct big omega, int64_t i)
{
    const struct big zero = big_integer(0), one = big_integer(1);
    struct big ramp = big_divide(big_subtract(big_integer(i), family->yarn_low),
                                 big_subtract(family->yarn_high, family->yarn_low));
    ramp = big_compare(ramp, zero) < 0 ? zero : big_compare(ramp, one) > 0 ? one : ramp;
    const struct big scaled = big_divide(omega, big_double(family->spec->factor));
    return big_add(big_multiply(scaled, ramp), big_multiply(omega, big_subtract(one, ramp)));
}

/* Radians per position. */
static struct big omega_exact(const struct family *family, int64_t i)
{
    const struct posenc_freqs_spec *spec = family->spec;
    if (spec->values)
        return big_double(spec->values[i]);
    int64_t numerator, denominator;
    exponent_of(spec, i, &numerator, &denominator);
    const struct big exponent = big_divide(big_integer(-numerator), big_integer(denominator));
    const struct big omega = big_exp(big_multiply(exponent, family->log_theta));
    switch (spec->scaling) {
    case POSENC_SCALING_LINEAR:
        return big_divide(omega, big_double(spec->factor));
    case POSENC_SCALING_LLAMA3:
        return llama3_exact(spec, omega);
    case POSENC_SCALING_YARN:
        return yarn_exact(family, omega, i);
    case POSENC_SCALING_LONGROPE:
        return big_divide(omega, big_double(longrope_factor(spec, i)));
    case POSENC_SCALING_PROPORTIONAL:
        return rests(spec, i) ? big_integer(0) : big_divide(omega, big_double(spec->factor));
    case POSENC_SCALING_DYNAMIC: /* in the base already */
    case POSENC_SCALING_NTK:
    case POSENC_SCALING_NONE:
        break;
    }
    return omega;
}

/* ---- Profile hf_f32 ---- */

static float llama3_f32(const struct posenc_freqs_spec *spec, float inv_freq)
{
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

static float yarn_f32(const struct family *family, float power, int64_t i)
{
    const float extrapolation = 1.0f / power;
    const float scaled_power = (float)family->spec->factor * power;
    const float interpolation = 1.0f / scaled_power;
    const float distance = (float)i - (float)family->low;
    float ramp = distance / (float)(family->high - family->low);
    ramp = ramp < 0.0f ? 0.0f : ramp > 1.0f ? 1.0f : ramp;
    const float keep = 1.0f - ramp;
    const float left = interpolation * (1.0f - keep);
    const float right = extrapolation * keep;
    return left + right;
}

/* x ** y of Python's floats. */
static double python_power(double x, double y)
{
    return big_to_double(big_exp(big_multiply(big_double(y), big_log(big_double(x)))));
}

double oracle_python_theta(const struct posenc_freqs_spec *spec)
{
    const double power = (double)spec->dim / ((double)spec->dim - 2.0);
    if (spec->scaling == POSENC_SCALING_NTK)
        return spec->rope_theta * python_power(spec->factor, power);
    if (spec->scaling != POSENC_SCALING_DYNAMIC)
        return spec->rope_theta;
    double length = (double)spec->seq_len;
    if (length < spec->max_position_embeddings)
        length = spec->max_position_embeddings;
    const double times = spec->factor * length / spec->max_position_embeddings;
    return spec->rope_theta * python_power(times - (spec->factor - 1.0), power);
}

/* Profile torch_exp_f32: torch.exp(torch.arange(0, d, 2).float() * (-math.log(base) / d)). */
static float torch_exp_f32(const struct family *family, int64_t numerator, int64_t denominator)
{
    const double step = -big_to_double(family->log_theta) / (double)denominator;
    const float exponent = (float)numerator * (float)step;
    return big_to_float(big_exp(big_double((double)exponent)));
}

static float inv_freq_f32(const struct family *family, int64_t i)
{
    const struct posenc_freqs_spec *spec = family->spec;
    if (spec->values)
        return (float)spec->values[i];
    int64_t numerator, denominator;
    exponent_of(spec, i, &numerator, &denominator);
    if (spec->profile == POSENC_TORCH_EXP_F32)
        return torch_exp_f32(family, numerator, denominator);
    const float exponent = (float)numerator / (float)denominator;
    const float power = big_to_float(
        big_exp(big_multiply(big_double((double)exponent), family->log_theta_f32)));
    const float inv_freq = 1.0f / power;
    switch (spec->scaling) {
    case POSENC_SCALING_LINEAR:
        return inv_freq / (float)spec->factor;
    case POSENC_SCALING_LLAMA3:
        return llama3_f32(spec, inv_freq);
    case POSENC_SCALING_YARN:
        return yarn_f32(family, power, i);
    case POSENC_SCALING_LONGROPE: {
        const float longer = (float)longrope_factor(spec, i) * power;
        return 1.0f / longer;
    }
    case POSENC_SCALING_PROPORTIONAL:
        return rests(spec, i) ? 0.0f : inv_freq / (float)spec->factor;
    case POSENC_SCALING_DYNAMIC:
    case POSENC_SCALING_NTK:
    case POSENC_SCALING_NONE:
        break;
    }
    return inv_freq;
}

/* ---- Attention factor ---- */

/* 0.1 mscale ln f + 1, and 1 for f <= 1. */
static struct big yarn_magnitude(double factor, double mscale)
{
    if (factor <= 1.0)
        return big_integer(1);
    const struct big tenth = big_divide(big_double(mscale), big_integer(10));
    return big_add(big_multiply(tenth, big_log(big_double(factor))), big_integer(1));
}

static double attention_factor_of(const struct posenc_freqs_spec *spec)
{
    if (spec->attention_factor != 0)
        return spec->attention_factor;
    if (spec->values)
        return 1.0;
    if (spec->scaling == POSENC_SCALING_LONGROPE) { /* the root as half the logarithm */
        const struct big ratio =
            big_divide(big_log(big_double(spec->factor)),
                       big_log(big_double(spec->original_max_position_embeddings)));
        const struct big log_square = big_log(big_add(big_integer(1), ratio));
        return big_to_double(big_exp(big_divide(log_square, big_integer(2))));
    }
    if (spec->scaling != POSENC_SCALING_YARN)
        return 1.0;
    if (spec->profile == POSENC_GGML_F32 && (spec->mscale == 0 || spec->mscale_all_dim == 0))
        return oracle_ggml_magnitude(spec);
    if (spec->mscale == 0 || spec->mscale_all_dim == 0)
        return big_to_double(yarn_magnitude(spec->factor, 1.0));
    return big_to_double(big_divide(yarn_magnitude(spec->factor, spec->mscale),
                                    yarn_magnitude(spec->factor, spec->mscale_all_dim)));
}

int64_t oracle_freqs(const struct posenc_freqs_spec *spec, int64_t n, uint64_t (*turn)[3],
                     float *inv_freq_f32_of, double *attention_factor)
{
    struct family family = family_of(spec);
    const int64_t pairs = (spec->dim + 1) / 2;
    if (inv_freq_f32_of && !spec->values)
        family.log_theta_f32 = big_log(big_double((double)(float)oracle_python_theta(spec)));
    for (int64_t i = 0; i < pairs && i < n; i++) {
        if (turn)
            big_fraction(big_divide(omega_exact(&family, i), two_pi()), turn[i]);
        if (inv_freq_f32_of)
            inv_freq_f32_of[i] = inv_freq_f32(&family, i);
    }
    if (attention_factor)
        *attention_factor = attention_factor_of(spec);
    return pairs < n ? pairs : n;
}

void oracle_turns(const struct posenc_freqs_spec *spec, int64_t n, struct big *turns)
{
    const struct family family = family_of(spec);
    for (int64_t i = 0; i < n; i++)
        turns[i] = big_divide(omega_exact(&family, i), two_pi());
}
