/*
 * Numerics mode ggml_f32: the angles of ggml (ggml_rope_ext) in f32, each operation rounded once.
 *
 *   theta_scale = theta ^ f32(-2 / dim);   phi_0 = position,  phi_(i+1) = phi_i * theta_scale
 *   e = phi_i / divisor_i;   angle = freq_scale * e, with freq_scale = 1 / factor
 *
 * The product is iterated, so its error grows with the pair and with the position. Scaling families change divisors and
 * freq_scale, or blend two angles (scalings.c, yarn.c). Powers and logarithms are correctly rounded, so results do not
 * have the errors of a particular C library.
 */
#include "scaling.h"

void posenc_ggml_f32_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs)
{
    const struct scaling *scaling = posenc_scaling_of(spec);
    float theta = posenc_f32_theta(spec);
    float power = -2.0f / (float)spec->dim;
    struct dd log_theta = posenc_dd_log(dd_from((double)theta));

    freqs->ggml.theta_scale =
        dd_to_float(posenc_dd_exp(dd_mul(log_theta, dd_from((double)power))));
    freqs->ggml.freq_scale = 1.0f;
    for (int64_t i = 0; i < freqs->view.n_pairs; i++)
        freqs->ggml.divisor[i] = 1.0f;
    if (scaling->ggml)
        scaling->ggml(spec, freqs);
}

float posenc_ggml_f32_angles(const struct posenc_freqs *freqs, float phi, int64_t i, int64_t n,
                             float *angles)
{
    float freq_scale = freqs->ggml.freq_scale;

    for (int64_t k = 0; k < n; k++, phi *= freqs->ggml.theta_scale) {
        float e = phi / freqs->ggml.divisor[i + k];
        angles[k] = freq_scale * e;
        if (freqs->ggml.blends) {
            float mix = freqs->ggml.ramp_mix[i + k];
            float interpolated = angles[k] * (1.0f - mix);
            angles[k] = interpolated + e * mix;
        }
    }
    return phi;
}
