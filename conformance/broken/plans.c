/*
 * Broken plans: the mistakes that are made before any kernel runs.  Each turns a spec into one
 * that gives the frequencies of the mistake; calls are made with broken_freqs_create() in the
 * place of posenc_freqs_create() (meson.build).
 */
#include "broken.h"

#include <math.h>

enum { MOST_PAIRS = 512 };
static double values[MOST_PAIRS];

enum posenc_status broken_freqs_create(const struct posenc_freqs_spec *spec,
                                       struct posenc_freqs **freqs, struct posenc_error *error)
{
    struct posenc_freqs_spec s = *spec;
    if (broken_plan && s.dim <= 2 * MOST_PAIRS && broken_plan(&s))
        broken_enter();
    return posenc_freqs_create(&s, freqs, error);
}

/* A negative base is one that no plan is made of. */
bool plan_dynamic_unclamped(struct posenc_freqs_spec *s)
{
    double length = (double)s->seq_len, most = s->max_position_embeddings;
    if (s->scaling != POSENC_SCALING_DYNAMIC || length == 0.0 || length >= most)
        return false;
    double power = (double)s->dim / (double)(s->dim - 2);
    s->rope_theta *= pow(s->factor * length / most - (s->factor - 1.0), power);
    s->scaling = POSENC_SCALING_NONE;
    return true;
}

bool plan_ntk_exponent(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_NTK)
        return false;
    s->rope_theta *= pow(s->factor, (double)s->dim / (double)(s->dim - 1));
    s->scaling = POSENC_SCALING_NONE;
    return true;
}

bool plan_longrope_early(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_LONGROPE ||
        (double)s->seq_len != s->original_max_position_embeddings)
        return false;
    s->seq_len++;
    return true;
}

bool plan_share_packed(struct posenc_freqs_spec *s)
{
    int64_t turning = (int64_t)(s->partial_rotary_factor * (double)s->dim / 2.0);
    if (s->scaling != POSENC_SCALING_PROPORTIONAL || 2 * turning == s->dim)
        return false;
    for (int64_t i = 0; i < (s->dim + 1) / 2; i++)
        values[i] =
            i < turning ? pow(s->rope_theta, -(double)i / (double)turning) / s->factor : 0.0;
    s->values = values;
    s->scaling = POSENC_SCALING_NONE;
    return true;
}

bool plan_yarn_whole(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_YARN || s->truncate)
        return false;
    s->truncate = true;
    return true;
}

/* position x powf(theta_scale, i), each rounded, is what a plan of own f32 frequencies does. */
bool plan_ggml_powers(struct posenc_freqs_spec *s)
{
    if (s->profile != POSENC_GGML_F32 || s->scaling != POSENC_SCALING_NONE)
        return false;
    float theta_scale = powf((float)s->rope_theta, -2.0f / (float)s->dim);
    for (int64_t i = 0; i < (s->dim + 1) / 2; i++)
        values[i] = (double)powf(theta_scale, (float)i);
    s->values = values;
    s->profile = POSENC_HF_F32;
    return true;
}

bool plan_ggml_yarn_frequencies(struct posenc_freqs_spec *s)
{
    if (s->profile != POSENC_GGML_F32 || s->scaling != POSENC_SCALING_YARN)
        return false;
    s->profile = POSENC_HF_F32;
    s->truncate = true;
    return true;
}

bool plan_torch_as_hf(struct posenc_freqs_spec *s)
{
    if (s->profile != POSENC_TORCH_EXP_F32)
        return false;
    s->profile = POSENC_HF_F32;
    return true;
}

bool plan_axes_chunked(struct posenc_freqs_spec *s)
{
    if (s->mrope_section[0] == 0 || s->mrope_layout != POSENC_MROPE_INTERLEAVED)
        return false;
    s->mrope_layout = POSENC_MROPE_CHUNKED;
    return true;
}

/* Sections as long as their turns last. */
bool plan_axes_by_turns(struct posenc_freqs_spec *s)
{
    int64_t pairs = s->dim / 2, h = (pairs + 1) / 3, w = pairs / 3;
    if (s->mrope_section[0] == 0 || s->mrope_layout != POSENC_MROPE_INTERLEAVED ||
        (h == s->mrope_section[1] && w == s->mrope_section[2]))
        return false;
    s->mrope_section[0] = pairs - h - w;
    s->mrope_section[1] = h;
    s->mrope_section[2] = w;
    return true;
}

bool plan_axes_not_restarted(struct posenc_freqs_spec *s)
{
    if (s->mrope_section[0] == 0 || s->mrope_layout != POSENC_MROPE_RESTARTED)
        return false;
    s->mrope_layout = POSENC_MROPE_CHUNKED;
    return true;
}

/* ---- More of the scaling families ---- */

/* The pairs of a leading slice by the exponents of a head twice as long. */
bool plan_leading_whole(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_NONE || s->profile != POSENC_EXACT || s->values ||
        s->convention != POSENC_EXPONENT || s->mrope_section[0] != 0 ||
        s->xpos_scale_base != 0.0)
        return false;
    for (int64_t i = 0; i < (s->dim + 1) / 2; i++)
        values[i] = pow(s->rope_theta, -(double)i / (double)s->dim);
    s->values = values;
    return true;
}

/* Meta's numbers, whatever the model's. */
bool plan_llama3_constants(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_LLAMA3)
        return false;
    const bool same = s->factor == 8.0 && s->low_freq_factor == 1.0 &&
                      s->high_freq_factor == 4.0 &&
                      s->original_max_position_embeddings == 8192.0;
    s->factor = 8.0;
    s->low_freq_factor = 1.0;
    s->high_freq_factor = 4.0;
    s->original_max_position_embeddings = 8192.0;
    return !same;
}

/* No blend between long and short wavelengths. */
bool plan_llama3_step(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_LLAMA3 || s->low_freq_factor == s->high_freq_factor)
        return false;
    s->low_freq_factor = s->high_freq_factor;
    return true;
}

/* DeepSeek's: mscale without its division by that of all dimensions. */
bool plan_yarn_mscale_alone(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_YARN || s->attention_factor != 0.0 || s->mscale == 0.0 ||
        s->mscale_all_dim == 0.0)
        return false;
    s->attention_factor = 0.1 * s->mscale * log(s->factor) + 1.0;
    return true;
}

/* ggml's test: both betas 1, so that the ramp is a step. */
bool plan_yarn_one_beta(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_YARN || s->beta_fast == s->beta_slow)
        return false;
    s->beta_fast = s->beta_slow;
    return true;
}

bool plan_longrope_swapped(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_LONGROPE)
        return false;
    const double *short_factor = s->short_factor;
    s->short_factor = s->long_factor;
    s->long_factor = short_factor;
    return true;
}

/* Once on the frequencies, once on the positions. */
bool plan_linear_twice(struct posenc_freqs_spec *s)
{
    if (s->scaling != POSENC_SCALING_LINEAR)
        return false;
    s->factor *= s->factor;
    return true;
}

/* ---- xPos ---- */

bool plan_xpos_keys_as_queries(struct posenc_freqs_spec *s)
{
    if (s->xpos_scale_base == 0.0 || !s->xpos_inverse)
        return false;
    s->xpos_inverse = false;
    return true;
}

bool plan_xpos_no_centre(struct posenc_freqs_spec *s)
{
    if (s->xpos_scale_base == 0.0 || s->xpos_centre == 0.0)
        return false;
    s->xpos_centre = 0.0;
    return true;
}
