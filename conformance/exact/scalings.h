/* Scaling families (linear, YaRN ...) for the oracle: a table of functions for each, in scalings.c. */
#ifndef POSENC_EXACT_SCALINGS_H
#define POSENC_EXACT_SCALINGS_H

#include "exact.h"

/* Parameters of scaled frequencies, and values computed from them that all pairs share. */
struct scaling_state {
    const struct posenc_freqs_spec *spec;
    struct big log_theta;
    struct big log_theta_f32;           /* logarithm of the base as the f32 modes round it */
    struct big yarn_low, yarn_high;     /* correction range in pair indices */
    double yarn_low_f64, yarn_high_f64; /* the same, as Python computes it in f64 */
};

/* Steps of a scaling family. A NULL function changes nothing. */
struct scaling_family {
    /* ntk and dynamic multiply theta by b^(dim/(dim-2)). Each of these returns b: exactly; as Python computes it in f64;
     * and, if is_tensor(), as PyTorch computes it in f32. */
    struct big (*base)(const struct posenc_freqs_spec *spec);
    double (*python_base)(const struct posenc_freqs_spec *spec);
    bool (*is_tensor)(const struct posenc_freqs_spec *spec);
    float (*tensor_base)(const struct posenc_freqs_spec *spec);
    /* Computes what the family adds to the state, such as YaRN's range. */
    void (*prepare)(struct scaling_state *state);
    /* True if wavelengths, in positions, are finally rounded to integers. */
    bool rounds_wavelength;
    /* Returns true if pair i has frequency 0. */
    bool (*is_unrotated)(const struct posenc_freqs_spec *spec, int64_t i);
    /* Returns the scaled frequency of pair i, given omega = theta^(-2i/dim). */
    struct big (*omega)(const struct scaling_state *state, int64_t i, struct big omega);
    /* Returns the same in numerics mode hf_f32, given power = theta^(2i/dim). */
    float (*inv_freq)(const struct scaling_state *state, int64_t i, float power);
    /* Numerics mode ggml_f32: changes freq_scale and divisor[], which are 1, and ramp_mix[], which is 0. */
    void (*ggml)(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml);
    /* Returns the default attention factor. */
    double (*attention)(const struct posenc_freqs_spec *spec);
};
/* Returns the steps of the spec's scaling family. */
const struct scaling_family *scaling_find_family(const struct posenc_freqs_spec *spec);

struct scaling_state scaling_state_create(const struct posenc_freqs_spec *spec);
/* Returns theta^(-2i/dim), in radians per position. */
struct big scaling_unscaled_omega(const struct scaling_state *state, int64_t i);

#endif
