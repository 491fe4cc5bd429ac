/*
 * Profile ggml_f32: angles as ggml forms them (ggml_rope_ext), in f32, each step rounded once.
 *
 *   theta_scale = theta ^ f32(-2 / dim);   phi_0 = position,  phi_(i+1) = phi_i * theta_scale
 *   e = phi_i / divisor_i;   angle = freq_scale * e, with freq_scale = 1 / factor
 *
 * The product is iterated, so its error grows with the pair and with the position.  YaRN blends
 * the two angles, not the frequencies:
 *
 *   c(n) = dim ln(L / (n 2 pi)) / (2 ln theta);  low = floor c(beta_fast), high = ceil c(beta_slow),
 *   clamped to [0, dim-1];   kept_i = 1 - clamp((i - low) / max(0.001, high - low))
 *   angle = (freq_scale * e) * (1 - kept_i) + e * kept_i
 *
 * and multiplies cosine and sine by 1 + 0.1 ln(factor).  llama3 and longrope come as divisors, as
 * the files that ggml's users convert hold them.  Powers and logarithms are correctly rounded:
 * what a C library adds is its error.
 */
#include "plan.h"

static float log_f32(float x) { return dd_to_float(posenc_dd_log(dd_from((double)x))); }

static float correction(const struct posenc_freqs_spec *spec, double rotations)
{
    float turns = (float)rotations * 2.0f;
    float span =
        (float)spec->original_max_position_embeddings / (turns * (float)posenc_dd_pi.hi);
    float above = (float)spec->dim * log_f32(span);
    return above / (2.0f * log_f32((float)spec->rope_theta));
}

static void fill_kept(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *kept)
{
    float low = fmaxf(floorf(correction(spec, spec->beta_fast)), 0.0f);
    float high = fminf(ceilf(correction(spec, spec->beta_slow)), (float)(spec->dim - 1));
    float width = fmaxf(0.001f, high - low);

    for (int64_t i = 0; i < n_pairs; i++) {
        float y = ((float)i - low) / width;
        kept[i] = 1.0f - fminf(1.0f, fmaxf(0.0f, y));
    }
}

/* omega_i / scaled omega_i of llama3, rounded once. */
static float llama3_divisor(const struct exact_rule *rule, int64_t i)
{
    struct posenc_freqs_spec plain = *rule->spec;
    struct exact_rule unscaled = *rule;
    plain.scaling = POSENC_SCALING_NONE;
    unscaled.spec = &plain;
    return dd_to_float(dd_div(posenc_exact_omega(&unscaled, i), posenc_exact_omega(rule, i)));
}

static void fill_divisors(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *divisor)
{
    struct exact_rule rule = posenc_exact_rule(spec);

    for (int64_t i = 0; i < n_pairs; i++) {
        divisor[i] = 1.0f;
        if (spec->scaling == POSENC_SCALING_LONGROPE)
            divisor[i] = (float)posenc_longrope_factors(spec)[i];
        if (spec->scaling == POSENC_SCALING_LLAMA3)
            divisor[i] = llama3_divisor(&rule, i);
    }
}

void posenc_ggml_f32_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    float theta = (float)posenc_scaled_theta(spec);
    float power = -2.0f / (float)spec->dim;
    struct dd log_theta = posenc_dd_log(dd_from((double)theta));
    bool interpolates =
        spec->scaling == POSENC_SCALING_LINEAR || spec->scaling == POSENC_SCALING_YARN;

    freqs->ggml.theta_scale =
        dd_to_float(posenc_dd_exp(dd_mul(log_theta, dd_from((double)power))));
    freqs->ggml.freq_scale = interpolates ? 1.0f / (float)spec->factor : 1.0f;
    freqs->ggml.blends = spec->scaling == POSENC_SCALING_YARN;
    fill_divisors(spec, freqs->view.n_pairs, freqs->ggml.divisor);
    if (freqs->ggml.blends)
        fill_kept(spec, freqs->view.n_pairs, freqs->ggml.kept);
    if (freqs->ggml.blends && spec->attention_factor == 0.0 &&
        (spec->mscale == 0.0 || spec->mscale_all_dim == 0.0)) {
        float log_factor = log_f32(1.0f / freqs->ggml.freq_scale);
        freqs->view.attention_factor = (double)(1.0f + 0.1f * log_factor);
    }
}

float posenc_ggml_f32_angles(const struct posenc_freqs *freqs, float phi, int64_t i, int64_t n,
                             float *angles)
{
    float freq_scale = freqs->ggml.freq_scale;

    for (int64_t k = 0; k < n; k++, phi *= freqs->ggml.theta_scale) {
        float e = phi / freqs->ggml.divisor[i + k];
        angles[k] = freq_scale * e;
        if (freqs->ggml.blends) {
            float kept = freqs->ggml.kept[i + k];
            float interpolated = angles[k] * (1.0f - kept);
            angles[k] = interpolated + e * kept;
        }
    }
    return phi;
}
