/*
 * Scaling families by MPFR, a row of functions for each (scalings.c), and the single steps of which the
 * f32 profiles are made, each rounded once (frameworks.c).
 */
#ifndef POSENC_GOLDEN_SCALINGS_H
#define POSENC_GOLDEN_SCALINGS_H

#include "golden.h"

/* NULL: the family changes nothing there. */
struct reference_scaling {
    /* Theta, and what it is multiplied by to the power of dim/(dim-2) in Python's floats; hf_f32's
     * theta, where that is a tensor (0: it is not). */
    number (*theta)(number theta, const struct posenc_freqs_spec *spec);
    double (*python_stretch)(const struct posenc_freqs_spec *spec);
    double (*tensor_theta)(const struct posenc_freqs_spec *spec);
    /* Wavelengths are rounded to whole positions after all else. */
    bool whole;
    /* Whether pair i has frequency 0; else its frequency, and hf_f32's from theta^(2i/dim). */
    bool (*rests)(const struct posenc_freqs_spec *spec, int64_t i);
    number (*omega)(number omega, const struct posenc_freqs_spec *spec, int64_t i);
    double (*inv_freq)(const struct posenc_freqs_spec *spec, int64_t i, double power);
    /* Profile ggml_f32: plan->ggml, where nothing is scaled yet. */
    void (*ggml)(struct reference_plan *plan);
    double (*attention)(const struct posenc_freqs_spec *spec);
};
const struct reference_scaling *reference_scaling(const struct posenc_freqs_spec *spec);

typedef int operation(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int function(mpfr_t, const mpfr_t, mpfr_rnd_t);

static const double pi_f64 = 3.141592653589793;

/* To f32; one operation in f32, or in the f64 of Python's own numbers; one function in f32. */
double f32(double a);
double step(operation *op, double a, double b);
double python(operation *op, double a, double b);
double step_of(function *f, double a);

#endif
