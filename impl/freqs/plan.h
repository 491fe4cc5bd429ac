/*
 * What the files that make a plan share.  A spec reaches them validated (freqs.c).
 */
#ifndef POSENC_PLAN_H
#define POSENC_PLAN_H

#include "../internal.h"
#include "dd.h"

/* Frequencies in real mathematics: what does not depend on the pair, computed once. */
struct exact_rule {
    const struct posenc_freqs_spec *spec;
    struct dd log_theta;
    struct dd ramp_low, ramp_width; /* yarn: by index of the pair */
};
struct exact_rule posenc_exact_rule(const struct posenc_freqs_spec *spec);

/* The frequency of pair i in radians per position. */
struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i);

/* Correctly rounded attention factor: explicit, or derived. */
double posenc_attention_factor(const struct posenc_freqs_spec *spec);

/* Profile hf_f32: inv_freq[n_pairs] with that framework's roundings. */
void posenc_hf_f32_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs,
                         float *inv_freq);

/* Rotation tables of a plan whose turns are set. */
void posenc_fill_steps(struct posenc_freqs *freqs);

/* Numerator and denominator of the exponent of pair i: plain omega = theta^(-n/d). */
struct exponent {
    double n, d;
};
struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i);

#endif
