/*
 * YaRN (Peng et al. 2309.00071): frequencies with many turns within the original context L remain, those with few turns
 * are divided by `factor` (interpolated), and a linear ramp lies between.
 *
 *   c(n) = dim ln(L/(2 pi n)) / (2 ln theta), the pair that makes n turns within L positions;
 *   from pair c(beta_fast) to pair c(beta_slow), both clamped to [0, dim-1], the frequency goes
 *   linearly from omega_i to omega_i / factor
 *
 * Numerics mode hf_f32 repeats each operation of Hugging Face, modeling_rope_utils.py. ggml blends angles in place of
 * frequencies, and always rounds the ends of the ramp outwards to whole pairs:
 *
 *   low = floor c(beta_fast), high = ceil c(beta_slow)
 *   ramp_mix_i = 1 - clamp((i - low) / max(0.001, high - low), 0, 1)
 *   angle = (freq_scale * e) * (1 - ramp_mix_i) + e * ramp_mix_i, e the angle without scaling
 */
#include <float.h>

#include "scaling.h"

enum posenc_status posenc_yarn_check(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    enum posenc_status status =
        posenc_check_range(error, "original_max_position_embeddings",
                           spec->original_max_position_embeddings, 1.0, 0x1p40);
    if (status)
        return status;
    if (spec->rope_theta <= 1.0)
        return reject_range(error, POSENC_ERR_THETA,
                            "rope_theta (yarn divides by its logarithm)", spec->rope_theta,
                            1.0 + DBL_EPSILON, DBL_MAX);
    status = posenc_check_range(error, "beta_slow", spec->beta_slow, 0x1p-40, 0x1p40);
    if (!status)
        status = posenc_check_range(error, "beta_fast (beta_slow at least)", spec->beta_fast,
                                    spec->beta_slow, 0x1p40);
    if (!status)
        status = posenc_check_range(error, "mscale", spec->mscale, 0.0, (double)FLT_MAX);
    if (!status)
        status = posenc_check_range(error, "mscale_all_dim", spec->mscale_all_dim, 0.0,
                                    (double)FLT_MAX);
    return status;
}

/* ---- exact ---- */

/* Returns c(rotations). With `truncate` it is rounded to a whole pair, `up` or down. */
static struct dd correction(const struct posenc_freqs_spec *spec, double rotations, bool up)
{
    struct dd turns = dd_mul(dd_scale(posenc_dd_pi, 2.0), dd_from(rotations));
    struct dd log_ratio =
        posenc_dd_log(dd_div(dd_from(spec->original_max_position_embeddings), turns));
    struct dd log_theta = posenc_dd_log(dd_from(spec->rope_theta));
    struct dd c = dd_div(dd_mul(log_ratio, dd_from(0.5 * (double)spec->dim)), log_theta);
    if (!spec->truncate)
        return c;
    double whole = up ? ceil(c.hi) : floor(c.hi);
    if (whole == c.hi && c.lo != 0.0) /* c is not quite c.hi: its low part decides */
        whole += up ? (c.lo > 0.0) : -(double)(c.lo < 0.0);
    return dd_from(whole);
}

void posenc_yarn_prepare(struct exact_rule *rule)
{
    const struct posenc_freqs_spec *spec = rule->spec;
    struct dd low = correction(spec, spec->beta_fast, false);
    struct dd high = correction(spec, spec->beta_slow, true);
    struct dd last = dd_from((double)(spec->dim - 1));
    if (dd_compare(low, dd_from(0.0)) < 0)
        low = dd_from(0.0);
    if (dd_compare(high, last) > 0)
        high = last;
    struct dd width = dd_sub(high, low);
    if (width.hi == 0.0)
        width = dd_div(dd_from(1.0), dd_from(1000.0));
    rule->ramp_low = low;
    rule->ramp_width = width;
}

struct dd posenc_yarn_omega(const struct exact_rule *rule, int64_t i, struct dd omega)
{
    struct dd one = dd_from(1.0);
    struct dd t = dd_div(dd_sub(dd_from((double)i), rule->ramp_low), rule->ramp_width);
    if (t.hi <= 0.0)
        return omega;
    struct dd scaled = dd_div(omega, dd_from(rule->spec->factor));
    if (dd_compare(t, one) >= 0)
        return scaled;
    return dd_add(dd_mul(scaled, t), dd_mul(omega, dd_sub(one, t)));
}

/* Returns 0.1 mscale ln(factor) + 1. */
static struct dd attention_scale(double factor, double mscale)
{
    struct dd log_factor = posenc_dd_log(dd_from(factor));
    struct dd tenth = dd_div(log_factor, dd_from(10.0));
    return dd_add(dd_mul(tenth, dd_from(mscale)), dd_from(1.0));
}

double posenc_yarn_attention(const struct posenc_freqs_spec *spec)
{
    if (spec->mscale != 0.0 && spec->mscale_all_dim != 0.0) {
        struct dd numerator = attention_scale(spec->factor, spec->mscale);
        return dd_div(numerator, attention_scale(spec->factor, spec->mscale_all_dim)).hi;
    }
    return attention_scale(spec->factor, 1.0).hi;
}

/* ---- hf_f32 ---- */

/* Hugging Face's find_correction_dim(), in Python floats. Logarithms are correctly rounded. */
static double correction_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    double turns = rotations * 2.0 * posenc_dd_pi.hi;
    double log_ratio =
        posenc_dd_log(dd_from(spec->original_max_position_embeddings / turns)).hi;
    double log_theta = posenc_dd_log(dd_from(spec->rope_theta)).hi;
    return (double)spec->dim * log_ratio / (2.0 * log_theta);
}

/* Hugging Face's find_correction_range(). */
void posenc_yarn_prepare_f32(struct f32_rule *rule)
{
    const struct posenc_freqs_spec *spec = rule->spec;
    double low = correction_dim(spec, spec->beta_fast);
    double high = correction_dim(spec, spec->beta_slow);
    if (spec->truncate) {
        low = floor(low);
        high = ceil(high);
    }
    rule->ramp_low = fmax(low, 0.0);
    rule->ramp_high = fmin(high, (double)(spec->dim - 1));
}

/* Hugging Face's linear_ramp_factor(), at pair i. */
static float ramp_f32(double low, double high, int64_t i)
{
    if (low == high)
        high += 0.001;
    float t = ((float)i - (float)low) / (float)(high - low);
    return t < 0.0f ? 0.0f : t > 1.0f ? 1.0f : t;
}

float posenc_yarn_inv_freq(const struct f32_rule *rule, int64_t i, float pos_freq)
{
    float extrapolation = 1.0f / pos_freq;
    float interpolation = 1.0f / ((float)rule->spec->factor * pos_freq);
    float unscaled_part = 1.0f - ramp_f32(rule->ramp_low, rule->ramp_high, i);
    float a = interpolation * (1.0f - unscaled_part);
    float b = extrapolation * unscaled_part;
    return a + b;
}

/* ---- ggml_f32 ---- */

static float log_f32(float x) { return dd_to_float(posenc_dd_log(dd_from((double)x))); }

/* ggml_rope_yarn_corr_dim() */
static float ggml_correction(const struct posenc_freqs_spec *spec, double rotations)
{
    float turns = (float)rotations * 2.0f;
    float span =
        (float)spec->original_max_position_embeddings / (turns * (float)posenc_dd_pi.hi);
    float numerator = (float)spec->dim * log_f32(span);
    return numerator / (2.0f * log_f32((float)spec->rope_theta));
}

/* The attention factor is 1 + 0.1 ln(factor), unless it is given or both mscales derive it. */
void posenc_yarn_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    float low = fmaxf(floorf(ggml_correction(spec, spec->beta_fast)), 0.0f);
    float high = fminf(ceilf(ggml_correction(spec, spec->beta_slow)), (float)(spec->dim - 1));
    float width = fmaxf(0.001f, high - low);

    freqs->ggml.blends = true;
    freqs->ggml.freq_scale = 1.0f / (float)spec->factor;
    for (int64_t i = 0; i < freqs->view.n_pairs; i++) {
        float y = ((float)i - low) / width;
        freqs->ggml.ramp_mix[i] = 1.0f - fminf(1.0f, fmaxf(0.0f, y));
    }
    if (spec->attention_factor == 0.0 && (spec->mscale == 0.0 || spec->mscale_all_dim == 0.0))
        freqs->view.attention_factor =
            (double)(1.0f + 0.1f * log_f32(1.0f / freqs->ggml.freq_scale));
}
