/* Scaling families of the oracle: a row of functions for each, in scalings.c. */
#ifndef POSENC_ORACLE_SCALINGS_H
#define POSENC_ORACLE_SCALINGS_H

#include "fixed.h"
#include "exact.h"

/* Values that all pairs share. */
struct family {
    const struct posenc_freqs_spec *spec;
    struct big log_theta;
    struct big log_theta_f32;       /* logarithm of the base as the f32 modes round it */
    struct big yarn_low, yarn_high; /* correction range in pair indices */
    double low, high;               /* the same as Python computes it, in f64 */
};

/* Steps of a family. A NULL function changes nothing. */
struct scaling_rule {
    /* theta is multiplied by this base to the power of dim/(dim-2): exactly, in Python floats, or
     * in PyTorch's f32 if is_tensor(). */
    struct big (*base)(const struct posenc_freqs_spec *spec);
    double (*python_base)(const struct posenc_freqs_spec *spec);
    bool (*is_tensor)(const struct posenc_freqs_spec *spec);
    float (*tensor_base)(const struct posenc_freqs_spec *spec);
    void (*prepare)(struct family *family);
    /* Wavelengths are rounded to whole positions at the end. */
    bool rounds_wavelength;
    /* Returns true if pair i has frequency 0. */
    bool (*is_unrotated)(const struct posenc_freqs_spec *spec, int64_t i);
    /* Scale theta^(-2i/dim), and theta^(2i/dim) in hf_f32. */
    struct big (*omega)(const struct family *family, int64_t i, struct big omega);
    float (*inv_freq)(const struct family *family, int64_t i, float power);
    /* Numerics ggml_f32: changes freq_scale and divisor[], which are 1, and kept[], which is 0. */
    void (*ggml)(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml);
    double (*attention)(const struct posenc_freqs_spec *spec);
};
const struct scaling_rule *scaling_rule(const struct posenc_freqs_spec *spec);

struct family family_create(const struct posenc_freqs_spec *spec);
/* Returns theta^(-2i/dim), in radians per position. */
struct big unscaled_omega(const struct family *family, int64_t i);

#endif
