/*
 * Scaling families as the oracle sees them: a row of functions for each, in scalings.c.
 */
#ifndef POSENC_ORACLE_SCALINGS_H
#define POSENC_ORACLE_SCALINGS_H

#include "fixed.h"
#include "exact.h"

/* What every pair of a plan shares. */
struct family {
    const struct posenc_freqs_spec *spec;
    struct big log_theta;
    struct big log_theta_f32;       /* of the base as the f32 profiles round it */
    struct big yarn_low, yarn_high; /* correction range in pair indices */
    double low, high;               /* the same as Python has it, in f64 */
};

/* A function that is NULL: the family leaves alone what it would change. */
struct scaling_rule {
    /* What theta is multiplied by to the power of dim/(dim-2), in Python's floats, and in PyTorch's
     * where is_tensor. */
    struct big (*base)(const struct posenc_freqs_spec *spec);
    double (*python_base)(const struct posenc_freqs_spec *spec);
    bool (*is_tensor)(const struct posenc_freqs_spec *spec);
    float (*tensor_base)(const struct posenc_freqs_spec *spec);
    void (*prepare)(struct family *family);
    /* Wavelengths are rounded to whole positions after all else. */
    bool whole;
    /* Whether pair i has frequency 0. */
    bool (*rests)(const struct posenc_freqs_spec *spec, int64_t i);
    /* From theta^(-2i/dim), and in hf_f32 from theta^(2i/dim). */
    struct big (*omega)(const struct family *family, int64_t i, struct big omega);
    float (*inv_freq)(const struct family *family, int64_t i, float power);
    /* Profile ggml_f32: changes freq_scale and the divisors, which are 1, and what is kept of
     * each pair, which is 0. */
    void (*ggml)(const struct posenc_freqs_spec *spec, struct oracle_ggml *ggml);
    double (*attention)(const struct posenc_freqs_spec *spec);
};
const struct scaling_rule *scaling_rule(const struct posenc_freqs_spec *spec);

struct family family_of(const struct posenc_freqs_spec *spec);
/* theta^(-2i/dim), in radians per position. */
struct big plain_omega(const struct family *family, int64_t i);

#endif
