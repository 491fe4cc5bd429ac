/*
 * YaRN (Peng et al. 2309.00071): pairs that turn often within the original context stay, those that
 * turn seldom are interpolated, and a ramp goes from the first kind to the second.
 *
 *   c(n) = dim ln(L/(2 pi n)) / (2 ln theta); from c(beta_fast) to c(beta_slow), clamped to
 *   [0, dim-1], omega_i goes linearly to omega_i / factor
 *
 * Profile hf_f32 takes the steps of Hugging Face, modeling_rope_utils.py, one by one. ggml blends
 * the two angles, not the frequencies, and always rounds the range outwards to whole pairs:
 *
 *   kept_i = 1 - clamp((i - floor c(beta_fast)) / max(0.001, ceil c(beta_slow) - ...))
 *   angle = (freq_scale * e) * (1 - kept_i) + e * kept_i
 */
#include <float.h>

#include "scaling.h"

enum posenc_status posenc_yarn_check(const struct posenc_freqs_spec *spec,
                                     struct posenc_error *error)
{
    enum posenc_status status =
        posenc_plan_range(error, "original_max_position_embeddings",
                          spec->original_max_position_embeddings, 1.0, 0x1p40);
    if (status)
        return status;
    if (spec->rope_theta <= 1.0)
        return posenc_plan_refuse(error, POSENC_ERR_THETA,
                                  "rope_theta (yarn divides by its logarithm)",
                                  spec->rope_theta, 1.0 + DBL_EPSILON, DBL_MAX);
    status = posenc_plan_range(error, "beta_slow", spec->beta_slow, 0x1p-40, 0x1p40);
    if (!status)
        status = posenc_plan_range(error, "beta_fast (beta_slow at least)", spec->beta_fast,
                                   spec->beta_slow, 0x1p40);
    if (!status)
        status = posenc_plan_range(error, "mscale", spec->mscale, 0.0, (double)FLT_MAX);
    if (!status)
        status = posenc_plan_range(error, "mscale_all_dim", spec->mscale_all_dim, 0.0,
                                   (double)FLT_MAX);
    return status;
}

/* ---- exact ---- */

/* c(rotations), rounded outwards to a whole pair if `truncate`. */
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
    if (whole == c.hi &&
        c.lo != 0.0) /* c is irrational: the low part says on which side it lies */
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

/* 0.1 mscale ln(factor) + 1 */
static struct dd magnitude(double factor, double mscale)
{
    struct dd log_factor = posenc_dd_log(dd_from(factor));
    struct dd tenth = dd_div(log_factor, dd_from(10.0));
    return dd_add(dd_mul(tenth, dd_from(mscale)), dd_from(1.0));
}

double posenc_yarn_attention(const struct posenc_freqs_spec *spec)
{
    if (spec->mscale != 0.0 && spec->mscale_all_dim != 0.0) {
        struct dd above = magnitude(spec->factor, spec->mscale);
        return dd_div(above, magnitude(spec->factor, spec->mscale_all_dim)).hi;
    }
    return magnitude(spec->factor, 1.0).hi;
}

/* ---- hf_f32 ---- */

/* find_correction_dim: Python floats; its logarithms correctly rounded. */
static double correction_dim(const struct posenc_freqs_spec *spec, double rotations)
{
    double turns = rotations * 2.0 * posenc_dd_pi.hi;
    double log_ratio =
        posenc_dd_log(dd_from(spec->original_max_position_embeddings / turns)).hi;
    double log_theta = posenc_dd_log(dd_from(spec->rope_theta)).hi;
    return (double)spec->dim * log_ratio / (2.0 * log_theta);
}

/* find_correction_range */
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

/* linear_ramp_factor at pair i */
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
    float extrapolated = 1.0f - ramp_f32(rule->ramp_low, rule->ramp_high, i);
    float a = interpolation * (1.0f - extrapolated);
    float b = extrapolation * extrapolated;
    return a + b;
}

/* ---- ggml_f32 ---- */

static float log_f32(float x) { return dd_to_float(posenc_dd_log(dd_from((double)x))); }

static float ggml_correction(const struct posenc_freqs_spec *spec, double rotations)
{
    float turns = (float)rotations * 2.0f;
    float span =
        (float)spec->original_max_position_embeddings / (turns * (float)posenc_dd_pi.hi);
    float above = (float)spec->dim * log_f32(span);
    return above / (2.0f * log_f32((float)spec->rope_theta));
}

/* The factor of cosines and sines is 1 + 0.1 ln(factor) unless both mscales make one. */
void posenc_yarn_ggml(const struct posenc_freqs_spec *spec, struct posenc_freqs *plan)
{
    float low = fmaxf(floorf(ggml_correction(spec, spec->beta_fast)), 0.0f);
    float high = fminf(ceilf(ggml_correction(spec, spec->beta_slow)), (float)(spec->dim - 1));
    float width = fmaxf(0.001f, high - low);

    plan->ggml.blends = true;
    plan->ggml.freq_scale = 1.0f / (float)spec->factor;
    for (int64_t i = 0; i < plan->view.n_pairs; i++) {
        float y = ((float)i - low) / width;
        plan->ggml.kept[i] = 1.0f - fminf(1.0f, fmaxf(0.0f, y));
    }
    if (spec->attention_factor == 0.0 && (spec->mscale == 0.0 || spec->mscale_all_dim == 0.0))
        plan->view.attention_factor =
            (double)(1.0f + 0.1f * log_f32(1.0f / plan->ggml.freq_scale));
}
