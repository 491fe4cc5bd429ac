/*
 * Profile ggml_f32 as the oracle sees it: ggml_rope_ext on a CPU in f32, in the order of its
 * source (ggml.c and ops.cpp: ggml_rope_yarn_corr_dims, ggml_rope_cache_init, rope_yarn), each
 * operation rounded once and powers and logarithms correctly rounded.  Frequency factors are
 * those of llama.cpp's converter: the ratio of the plain to the scaled frequency, or longrope's
 * own.
 */
#include "fixed.h"
#include "oracle.h"

#include <math.h>

static float log_f32(float x) { return big_to_float(big_log(big_double((double)x))); }

/* Index of the pair that turns n_rot times within the original context. */
static float corr_dim(const struct posenc_freqs_spec *spec, float n_rot)
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

/* llama3's factor of a pair: with the wavelength's place between the two limits, from scratch. */
static float llama3_factor(const struct posenc_freqs_spec *spec, int64_t i)
{
    const struct big log_theta = big_log(big_double(spec->rope_theta));
    const struct big power = big_divide(big_integer(-2 * i), big_integer(spec->dim));
    const struct big omega = big_exp(big_multiply(power, log_theta));
    struct big two_pi = big_pi();
    two_pi.exponent++;
    const struct big turns = big_divide(
        big_multiply(omega, big_double(spec->original_max_position_embeddings)), two_pi);
    const struct big low = big_double(spec->low_freq_factor),
                     high = big_double(spec->high_freq_factor);
    if (big_compare(turns, low) < 0)
        return (float)spec->factor;
    if (big_compare(turns, high) > 0 || big_compare(low, high) == 0)
        return 1.0f;
    const struct big one = big_integer(1);
    const struct big smooth = big_divide(big_subtract(turns, low), big_subtract(high, low));
    const struct big slower = big_divide(big_subtract(one, smooth), big_double(spec->factor));
    return big_to_float(big_divide(one, big_add(slower, smooth)));
}

struct oracle_ggml oracle_ggml(const struct posenc_freqs_spec *spec, int64_t n, float *divisor,
                               float *kept)
{
    const float base = (float)oracle_python_theta(spec);
    const float exponent = -2.0f / (float)spec->dim;
    const struct big power =
        big_multiply(big_double((double)exponent), big_log(big_double((double)base)));
    const bool yarn = spec->scaling == POSENC_SCALING_YARN;
    struct oracle_ggml ggml = { big_to_float(big_exp(power)), 1.0f };
    float start = 0.0f, end = 0.0f;
    if (yarn || spec->scaling == POSENC_SCALING_LINEAR)
        ggml.freq_scale = 1.0f / (float)spec->factor;
    if (yarn) {
        start = floorf(corr_dim(spec, (float)spec->beta_fast));
        end = ceilf(corr_dim(spec, (float)spec->beta_slow));
        start = start > 0.0f ? start : 0.0f;
        end = end < (float)(spec->dim - 1) ? end : (float)(spec->dim - 1);
    }
    const float range = end - start > 0.001f ? end - start : 0.001f;
    for (int64_t i = 0; i < n; i++) {
        float y = ((float)i - start) / range;
        y = y > 0.0f ? y : 0.0f;
        y = y < 1.0f ? y : 1.0f;
        kept[i] = yarn ? 1.0f - y : 0.0f;
        divisor[i] = 1.0f;
        if (spec->scaling == POSENC_SCALING_LLAMA3)
            divisor[i] = llama3_factor(spec, i);
        if (spec->scaling == POSENC_SCALING_LONGROPE)
            divisor[i] = (float)((double)spec->seq_len > spec->original_max_position_embeddings
                                     ? spec->long_factor[i]
                                     : spec->short_factor[i]);
    }
    return ggml;
}

double oracle_ggml_magnitude(const struct posenc_freqs_spec *spec)
{
    const float freq_scale = 1.0f / (float)spec->factor;
    const float tenth = 0.1f * log_f32(1.0f / freq_scale);
    return (double)(1.0f + tenth);
}
