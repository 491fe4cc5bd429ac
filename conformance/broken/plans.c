/*
 * Mistakes that are made before any kernel runs: each turns a spec into one that gives the
 * frequencies of the mistake.
 */
#include "mistake.h"

#include <math.h>

/* A spec of these frequencies, whatever its scaling would have been. */
static void take(struct posenc_freqs_spec *s,
                 double (*value)(const struct posenc_freqs_spec *s, int64_t i))
{
    enum { MOST_PAIRS = 512 };
    static double values[MOST_PAIRS];
    if (s->dim > 2 * MOST_PAIRS)
        return;
    for (int64_t i = 0; i < (s->dim + 1) / 2; i++)
        values[i] = value(s, i);
    s->values = values;
    s->scaling = POSENC_SCALING_NONE;
}

/* A spec of another base, without the scaling that would have made one. */
static void take_base(struct posenc_freqs_spec *s, double times)
{
    s->rope_theta *= times;
    s->scaling = POSENC_SCALING_NONE;
}

/* ---- Families ---- */

/* A negative base is one that no plan is made of. */
void plan_dynamic_unclamped(struct posenc_freqs_spec *s)
{
    const double length = (double)s->seq_len, most = s->max_position_embeddings;
    if (s->scaling == POSENC_SCALING_DYNAMIC && length != 0.0 && length < most)
        take_base(s, pow(s->factor * length / most - (s->factor - 1.0),
                         (double)s->dim / (double)(s->dim - 2)));
}

void plan_ntk_exponent(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_NTK)
        take_base(s, pow(s->factor, (double)s->dim / (double)(s->dim - 1)));
}

void plan_linear_twice(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_LINEAR)
        s->factor *= s->factor;
}

void plan_longrope_early(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_LONGROPE)
        s->seq_len += (double)s->seq_len == s->original_max_position_embeddings;
}

void plan_longrope_swapped(struct posenc_freqs_spec *s)
{
    const double *short_factor = s->short_factor;
    s->short_factor = s->long_factor;
    s->long_factor = short_factor;
}

/* How many pairs turn. */
static int64_t turning(const struct posenc_freqs_spec *s)
{
    return (int64_t)(s->partial_rotary_factor * (double)s->dim / 2.0);
}

static double packed(const struct posenc_freqs_spec *s, int64_t i)
{
    const double exponent = -(double)i / (double)turning(s);
    return i < turning(s) ? pow(s->rope_theta, exponent) / s->factor : 0.0;
}

void plan_share_packed(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_PROPORTIONAL && 2 * turning(s) != s->dim)
        take(s, packed);
}

static const double turn = 6.283185307179586;

void plan_resonance_plain(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_RESONANCE)
        s->scaling = POSENC_SCALING_NONE;
}

static double floored(const struct posenc_freqs_spec *s, int64_t i)
{
    return turn / floor(turn * pow(s->rope_theta, 2.0 * (double)i / (double)s->dim));
}

void plan_resonance_floor(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_RESONANCE)
        take(s, floored);
}

/* The pair whose wavelength fits so often into the original context. */
static double ramp_end(const struct posenc_freqs_spec *s, double rotations)
{
    return (double)s->dim * log(s->original_max_position_embeddings / (rotations * turn)) /
           (2.0 * log(s->rope_theta));
}

static double rounded_first(const struct posenc_freqs_spec *s, int64_t i)
{
    const double low = floor(ramp_end(s, s->beta_fast)), high = ceil(ramp_end(s, s->beta_slow));
    const double ramp = fmin(fmax(((double)i - low) / (high - low), 0.0), 1.0);
    const double omega =
        turn / rint(turn * pow(s->rope_theta, 2.0 * (double)i / (double)s->dim));
    return omega * (ramp / s->factor + 1.0 - ramp);
}

void plan_resonance_first(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_RESONANCE_YARN)
        return;
    take(s, rounded_first);
    if (s->attention_factor == 0.0)
        s->attention_factor = 0.1 * log(s->factor) + 1.0;
}

/* Meta's numbers. */
void plan_llama3_constants(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_LLAMA3)
        return;
    s->factor = 8.0;
    s->low_freq_factor = 1.0;
    s->high_freq_factor = 4.0;
    s->original_max_position_embeddings = 8192.0;
}

void plan_llama3_step(struct posenc_freqs_spec *s) { s->low_freq_factor = s->high_freq_factor; }

void plan_yarn_whole(struct posenc_freqs_spec *s)
{
    s->truncate = s->truncate || s->scaling == POSENC_SCALING_YARN;
}

/* DeepSeek's. */
void plan_yarn_mscale_alone(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_YARN && s->attention_factor == 0.0 && s->mscale != 0.0 &&
        s->mscale_all_dim != 0.0)
        s->attention_factor = 0.1 * s->mscale * log(s->factor) + 1.0;
}

/* ggml's test: both betas 1. */
void plan_yarn_one_beta(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_YARN)
        s->beta_fast = s->beta_slow;
}

/* ---- Profiles ---- */

static double power_of_f32(const struct posenc_freqs_spec *s, int64_t i)
{
    return (double)powf(powf((float)s->rope_theta, -2.0f / (float)s->dim), (float)i);
}

/* position x powf(theta_scale, i), each rounded, is what a plan of own f32 frequencies does. */
void plan_ggml_powers(struct posenc_freqs_spec *s)
{
    if (s->profile != POSENC_GGML_F32 || s->scaling != POSENC_SCALING_NONE)
        return;
    take(s, power_of_f32);
    s->profile = POSENC_HF_F32;
}

void plan_ggml_yarn_frequencies(struct posenc_freqs_spec *s)
{
    if (s->profile != POSENC_GGML_F32 || s->scaling != POSENC_SCALING_YARN)
        return;
    s->profile = POSENC_HF_F32;
    s->truncate = true;
}

void plan_torch_as_hf(struct posenc_freqs_spec *s)
{
    if (s->profile == POSENC_TORCH_EXP_F32)
        s->profile = POSENC_HF_F32;
}

/* The exponents of a head twice as long. */
static double of_twice_the_head(const struct posenc_freqs_spec *s, int64_t i)
{
    return pow(s->rope_theta, -(double)i / (double)s->dim);
}

void plan_leading_whole(struct posenc_freqs_spec *s)
{
    if (s->scaling == POSENC_SCALING_NONE && s->profile == POSENC_EXACT && !s->values &&
        s->convention == POSENC_EXPONENT && s->mrope_section[0] == 0 &&
        s->xpos_scale_base == 0.0)
        take(s, of_twice_the_head);
}

/* ---- Axes and xPos ---- */

void plan_axes_chunked(struct posenc_freqs_spec *s)
{
    if (s->mrope_layout == POSENC_MROPE_INTERLEAVED)
        s->mrope_layout = POSENC_MROPE_CHUNKED;
}

/* Sections as long as their turns last. */
void plan_axes_by_turns(struct posenc_freqs_spec *s)
{
    const int64_t pairs = s->dim / 2;
    if (s->mrope_section[0] == 0 || s->mrope_layout != POSENC_MROPE_INTERLEAVED)
        return;
    s->mrope_section[1] = (pairs + 1) / 3;
    s->mrope_section[2] = pairs / 3;
    s->mrope_section[0] = pairs - s->mrope_section[1] - s->mrope_section[2];
}

void plan_axes_not_restarted(struct posenc_freqs_spec *s)
{
    if (s->mrope_layout == POSENC_MROPE_RESTARTED)
        s->mrope_layout = POSENC_MROPE_CHUNKED;
}

void plan_xpos_keys_as_queries(struct posenc_freqs_spec *s) { s->xpos_inverse = false; }
void plan_xpos_no_centre(struct posenc_freqs_spec *s) { s->xpos_centre = 0.0; }
