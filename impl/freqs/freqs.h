/*
 * Declarations that the files of impl/freqs share: the parts of which posenc_freqs_create() makes frequencies. A spec
 * has been validated (freqs.c) before it reaches any of them.
 */
#ifndef POSENC_FREQS_H
#define POSENC_FREQS_H

#include "impl/internal.h"
#include "dd.h"

enum { POSENC_MAX_DIM = 65536 };

/* Rejects a value outside of [least, most], as PARAMETER. NaN is outside of every range. */
enum posenc_status posenc_check_range(struct posenc_error *error, const char *what,
                                      double value, double least, double most);

/* ---- Numerics mode exact ---- */

/* Parts of exact frequencies that do not depend on the pair. */
struct exact_rule {
    const struct posenc_freqs_spec *spec;
    struct dd log_theta;
    int64_t n_rotated; /* the pairs from this one on have frequency 0 (proportional) */
    struct dd ramp_low, ramp_width; /* yarn: by index of the pair */
};
struct exact_rule posenc_exact_rule_of(const struct posenc_freqs_spec *spec);

/* Return the frequency of pair i in radians per position, after and before its scaling. */
struct dd posenc_exact_omega(const struct exact_rule *rule, int64_t i);
struct dd posenc_unscaled_omega(const struct exact_rule *rule, int64_t i);

/* The unscaled frequency of a pair is theta^(-n/d). */
struct exponent {
    double n, d;
};
struct exponent posenc_exponent(const struct posenc_freqs_spec *spec, int64_t i);

/* Returns the number of pairs that rotate, which is all of them unless the scaling is proportional. */
int64_t posenc_rotated_pairs(const struct posenc_freqs_spec *spec);

/* Returns the axis whose position rotates pair i. */
int posenc_axis_of(const struct posenc_freqs_spec *spec, int64_t i);

/* Returns the attention factor, given or derived, correctly rounded. */
double posenc_attention_factor(const struct posenc_freqs_spec *spec);

/* Returns the whole turns of omega / (2 pi), whose fraction is `turn`. */
uint32_t posenc_whole_turns(struct dd omega, struct turn turn);

/* Fills the rotation tables `middle` and `twice_cos` of frequencies whose turns are set. */
void posenc_freqs_fill_rotations(struct posenc_freqs *freqs);

/* Fills the members of frequencies that xPos uses. */
void posenc_xpos_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs);

/* ---- f32 numerics modes ---- */

/* Returns the base after dynamic or ntk scaling, with the framework's operations in their order. */
float posenc_f32_theta(const struct posenc_freqs_spec *spec);

/* Fills inv_freq[n_pairs] for the modes hf_f32 and torch_exp_f32. */
void posenc_f32_fill_omega(const struct posenc_freqs_spec *spec, int64_t n_pairs,
                           float *inv_freq);

/* Fills freqs->ggml for the mode ggml_f32, and changes the attention factor if ggml's differs. */
void posenc_ggml_f32_fill(const struct posenc_freqs_spec *spec, struct posenc_freqs *freqs);

/* ---- Logarithmic grids ---- */
enum { LOG_GRID_MAX_STEPS = 2048 };

/* Points k = 0 ... steps from low to high, evenly spaced on a logarithmic scale. */
struct log_grid {
    int64_t low, high, steps; /* 1 <= low < high < 2^24 */
    struct dd log_low, log_high;
};
struct log_grid posenc_log_grid_of(int64_t low, int64_t high, int64_t steps);

/* Return the smallest whole number that is not below point k, and the largest that is not above it. Both are exact. */
int64_t posenc_log_grid_ceil(const struct log_grid *grid, int64_t k);
int64_t posenc_log_grid_floor(const struct log_grid *grid, int64_t k);

#endif
