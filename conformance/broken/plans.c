/*
 * Plans of another spec, which gives the frequencies of the mistake.
 */
#include "mistake.h"

#include <math.h>
#include <string.h>

static const double turn = 6.283185307179586;

/* ---- Frequencies of their own ---- */

/* How many pairs turn. */
static int64_t turning(const struct posenc_freqs_spec *s)
{
    return (int64_t)(s->partial_rotary_factor * (double)s->dim / 2.0);
}

/* The pair whose wavelength fits so often into the original context. */
static double ramp_end(const struct posenc_freqs_spec *s, double rotations)
{
    return (double)s->dim * log(s->original_max_position_embeddings / (rotations * turn)) /
           (2.0 * log(s->rope_theta));
}

/* YaRN's, of frequencies that were rounded before. */
static double ramped(const struct posenc_freqs_spec *s, int64_t i, double omega)
{
    const double low = floor(ramp_end(s, s->beta_fast)), high = ceil(ramp_end(s, s->beta_slow));
    const double ramp = fmin(fmax(((double)i - low) / (high - low), 0.0), 1.0);
    return omega * (ramp / s->factor + 1.0 - ramp);
}

static double frequency(const struct posenc_freqs_spec *s, int64_t i)
{
    const double wavelength = turn * pow(s->rope_theta, 2.0 * (double)i / (double)s->dim);
    if (SLIP(share_packed))
        return i < turning(s) ? pow(s->rope_theta, -(double)i / (double)turning(s)) / s->factor
                              : 0.0;
    if (SLIP(resonance_floor))
        return turn / floor(wavelength);
    if (SLIP(resonance_first))
        return ramped(s, i, turn / rint(wavelength));
    if (SLIP(ggml_powers))
        return (double)powf(powf((float)s->rope_theta, -2.0f / (float)s->dim), (float)i);
    /* leading_whole: the exponents of a head twice as long. */
    return pow(s->rope_theta, -(double)i / (double)s->dim);
}

/* A spec of these frequencies, whatever its scaling would have been. */
static void take_frequencies(struct posenc_freqs_spec *s)
{
    enum { MOST_PAIRS = 512 };
    static double values[MOST_PAIRS];
    if (s->dim > 2 * MOST_PAIRS)
        return;
    for (int64_t i = 0; i < (s->dim + 1) / 2; i++)
        values[i] = frequency(s, i);
    s->values = values;
    s->scaling = POSENC_SCALING_NONE;
}

static bool is_plain(const struct posenc_freqs_spec *s)
{
    return s->scaling == POSENC_SCALING_NONE && s->profile == POSENC_EXACT && !s->values &&
           s->convention == POSENC_EXPONENT && s->mrope_section[0] == 0 &&
           s->xpos_scale_base == 0.0;
}

/* A spec of another base, without the scaling that would have made one. */
static void take_base(struct posenc_freqs_spec *s, double times)
{
    s->rope_theta *= times;
    s->scaling = POSENC_SCALING_NONE;
}

/* ---- Specs ---- */

static void change_scaling(struct posenc_freqs_spec *s)
{
    const double length = (double)s->seq_len, most = s->max_position_embeddings;
    const double dim = (double)s->dim, *short_factor = s->short_factor;
    const bool yarn = s->scaling == POSENC_SCALING_YARN;
    if (SLIP(linear_twice) && s->scaling == POSENC_SCALING_LINEAR)
        s->factor *= s->factor;
    if (SLIP(ntk_exponent) && s->scaling == POSENC_SCALING_NTK)
        take_base(s, pow(s->factor, dim / (dim - 1.0)));
    /* A negative base is one that no plan is made of. */
    if (SLIP(dynamic_unclamped) && s->scaling == POSENC_SCALING_DYNAMIC && length != 0.0 &&
        length < most)
        take_base(s, pow(s->factor * length / most - (s->factor - 1.0), dim / (dim - 2.0)));
    if (SLIP(dynamic_python) && s->scaling == POSENC_SCALING_DYNAMIC && length > most)
        take_base(s, pow(s->factor * length / most - (s->factor - 1.0), dim / (dim - 2.0)));
    if (SLIP(longrope_early) && s->scaling == POSENC_SCALING_LONGROPE)
        s->seq_len += length == s->original_max_position_embeddings;
    if (SLIP(longrope_swapped)) {
        s->short_factor = s->long_factor;
        s->long_factor = short_factor;
    }
    if (SLIP(llama3_step))
        s->low_freq_factor = s->high_freq_factor;
    if (SLIP(llama3_constants) && s->scaling == POSENC_SCALING_LLAMA3) { /* Meta's */
        s->factor = 8.0;
        s->low_freq_factor = 1.0;
        s->high_freq_factor = 4.0;
        s->original_max_position_embeddings = 8192.0;
    }
    s->truncate = s->truncate || (SLIP(yarn_whole) && yarn);
    if (SLIP(yarn_one_beta) && yarn) /* as ggml's test has it */
        s->beta_fast = s->beta_slow;
    if (SLIP(yarn_mscale_alone) && yarn && s->attention_factor == 0.0 && s->mscale != 0.0 &&
        s->mscale_all_dim != 0.0) /* as DeepSeek's models have them */
        s->attention_factor = 0.1 * s->mscale * log(s->factor) + 1.0;
}

/* Wavelengths that are not rounded, or otherwise; exponents that count other pairs. */
static void change_frequencies(struct posenc_freqs_spec *s)
{
    const bool rounded = s->scaling == POSENC_SCALING_RESONANCE;
    const bool blended = s->scaling == POSENC_SCALING_RESONANCE_YARN;
    if (SLIP(resonance_plain) && rounded)
        s->scaling = POSENC_SCALING_NONE;
    if (SLIP(resonance_first) && blended && s->attention_factor == 0.0)
        s->attention_factor = 0.1 * log(s->factor) + 1.0;
    if ((SLIP(resonance_floor) && rounded) || (SLIP(resonance_first) && blended) ||
        (SLIP(share_packed) && s->scaling == POSENC_SCALING_PROPORTIONAL &&
         2 * turning(s) != s->dim) ||
        (SLIP(leading_whole) && is_plain(s)))
        take_frequencies(s);
}

static void change_profile(struct posenc_freqs_spec *s)
{
    const bool ggml = s->profile == POSENC_GGML_F32;
    const bool powers = SLIP(ggml_powers) && ggml && s->scaling == POSENC_SCALING_NONE;
    const bool yarn = SLIP(ggml_yarn_frequencies) && ggml && s->scaling == POSENC_SCALING_YARN;
    /* position x powf(theta_scale, i), each rounded, is what a plan of own f32 frequencies
     * does. */
    if (powers)
        take_frequencies(s);
    if (yarn)
        s->truncate = true;
    if (powers || yarn || (SLIP(torch_as_hf) && s->profile == POSENC_TORCH_EXP_F32))
        s->profile = POSENC_HF_F32;
}

static void change_axes(struct posenc_freqs_spec *s)
{
    const int64_t pairs = s->dim / 2;
    const bool interleaved = s->mrope_layout == POSENC_MROPE_INTERLEAVED;
    const bool restarted = s->mrope_layout == POSENC_MROPE_RESTARTED;
    if ((SLIP(axes_chunked) && interleaved) || (SLIP(axes_not_restarted) && restarted))
        s->mrope_layout = POSENC_MROPE_CHUNKED;
    if ((SLIP(axes_not_dealt) && s->mrope_layout == POSENC_MROPE_DEALT) ||
        (SLIP(axes_not_alternating) && s->mrope_layout == POSENC_MROPE_ALTERNATING))
        s->mrope_layout = POSENC_MROPE_RESTARTED;
    if (SLIP(axes_by_turns) && interleaved &&
        s->mrope_section[0] != 0) { /* as long as they last */
        s->mrope_section[1] = (pairs + 1) / 3;
        s->mrope_section[2] = pairs / 3;
        s->mrope_section[0] = pairs - s->mrope_section[1] - s->mrope_section[2];
    }
    if (SLIP(xpos_keys_as_queries))
        s->xpos_inverse = false;
    if (SLIP(xpos_no_centre))
        s->xpos_centre = 0.0;
}

/* A spec that stays as it is the mistake does not concern. */
static enum posenc_status mistaken_plan(const struct posenc_freqs_spec *spec,
                                        struct posenc_freqs **freqs, struct posenc_error *error)
{
    struct posenc_freqs_spec s = *spec;
    change_scaling(&s);
    change_frequencies(&s);
    change_profile(&s);
    change_axes(&s);
    if (memcmp(&s, spec, sizeof s) != 0)
        mistake_made();
    return posenc_freqs_create(&s, freqs, error);
}

void take_plans(struct implementation *implementation)
{
    implementation->freqs_create = mistaken_plan;
}
