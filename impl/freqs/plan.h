/*
 * What the files that make a plan share. A spec reaches them validated (freqs.c).
 */
#ifndef POSENC_PLAN_H
#define POSENC_PLAN_H

#include "impl/internal.h"
#include "dd.h"

enum { POSENC_MOST_DIM = 65536 };

/* Frequencies in real mathematics: what does not depend on the pair, computed once. */
struct exact_rule {
    const struct posenc_freqs_spec *spec;
    struct dd log_theta;
    int64_t turning;                /* pairs from here on have frequency 0 (proportional) */
    struct dd ramp_low, ramp_width; /* yarn: by index of the pair */
};
struct exact_rule posenc_exact_rule(const struct posenc_freqs_spec *spec);

/* omega / (2 pi) without `turn`, its fraction. */
uint32_t posenc_whole_turns(struct dd omega, struct turn turn);

/* The frequency of pair i in radians per position; before its scaling. */
struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i);
struct dd posenc_plain_omega(const struct exact_rule *rule, int64_t i);

/* Correctly rounded attention factor: explicit, or derived. */
double posenc_attention_factor(const struct posenc_freqs_spec *spec);

/* Profiles hf_f32 and torch_exp_f32: inv_freq[n_pairs] with their roundings. */
void posenc_f32_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs, float *inv_freq);

/* Profile ggml_f32: all a plan has for it. */
void posenc_ggml_f32_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs);

/* The base of the f32 profiles, after dynamic or ntk scaling in the framework's order. */
float posenc_f32_theta(const struct posenc_freqs_spec *spec);

/* Pairs that turn: all but in proportional scaling. */
int64_t posenc_turning_pairs(const struct posenc_freqs_spec *spec);

/* Rotation tables of a plan whose turns are set. */
void posenc_fill_steps(struct posenc_freqs *freqs);

/* Fills the members of a plan that xPos uses. */
void posenc_xpos_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs);

/* The axis whose position turns pair i. */
int posenc_axis_of(const struct posenc_freqs_spec *spec, int64_t i);

/* ---- ladder.c: rungs k = 0 ... steps from low to high, evenly spaced by ratio ---- */

enum { LADDER_MOST_STEPS = 2048 };

struct ladder {
    int64_t low, high, steps; /* 1 <= low < high < 2^24 */
    struct dd log_low, log_high;
};
struct ladder posenc_ladder(int64_t low, int64_t high, int64_t steps);

/* The least whole number not below rung k, and the greatest not above: exactly. */
int64_t posenc_rung_up(const struct ladder *ladder, int64_t k);
int64_t posenc_rung_down(const struct ladder *ladder, int64_t k);

/* Numerator and denominator of the exponent of pair i: plain omega = theta^(-n/d). */
struct exponent {
    double n, d;
};
struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i);

#endif
