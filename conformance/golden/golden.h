/*
 * The generator of golden vectors: reference values by MPFR, lists of cases, files.
 */
#ifndef POSENC_GOLDEN_H
#define POSENC_GOLDEN_H

#include "conformance/oracle/oracle.h"
#include "conformance/readers/vectors.h"

#include "mp.h"

/* ---- Reference values (reference.c, reference_scores.c, frequencies.c, frameworks.c) ---- */

/* What the angles of profile ggml_f32 are made of; kept: 1 - the ramp between two angles. */
struct reference_ggml {
    double theta_scale, freq_scale;
    double *divisor, *kept; /* [n_pairs] */
};

/* A plan by MPFR: omega in radians per position, and the f32 values of the f32 profiles. */
struct reference_plan {
    const struct posenc_freqs_spec *spec;
    int64_t n_pairs;
    mpfr_t *omega;
    double *inv_freq;           /* of torch_exp_f32 where that is the profile, else of hf_f32 */
    struct reference_ggml ggml; /* of profile ggml_f32 alone */
    double attention_factor;    /* correctly rounded */
};
void reference_plan_init(struct reference_plan *plan, const struct posenc_freqs_spec *spec);
void reference_plan_clear(struct reference_plan *plan);

/* The pairs that the axis of pair i turns, where sections follow each other: n of them from pair `first`
 * on; all of them where there is one axis. */
struct section {
    int axis;
    int64_t first, n;
};
struct section reference_section(const struct posenc_freqs_spec *spec, int64_t i);

/* Radians per position of a pair; which of a token's positions turns it; the exponent of
 * 1/theta as a fraction. */
int reference_axis(const struct posenc_freqs_spec *spec, int64_t i);
number reference_omega(const struct posenc_freqs_spec *spec, int64_t i);
void reference_exponent(const struct posenc_freqs_spec *spec, int64_t i, long *numerator,
                        long *denominator);
/* How many twelfths of a turn, of 12, a pair of a whole wavelength has turned at a position, where it is
 * a whole number of them; else -1. */
int reference_twelfth(const struct reference_plan *plan, int64_t pair, double position);

/* Profiles hf_f32 and torch_exp_f32: a frequency.  Every f32 profile: an angle. */
double reference_inv_freq(const struct posenc_freqs_spec *spec, int64_t i);
double reference_angle(const struct reference_plan *plan, int64_t pair, double position);
/* Profile ggml_f32: fills plan->ggml. */
void reference_ggml_init(struct reference_plan *plan);

/* The f64 rounded to odd of a value whose further digits, if it is not exact, are unknown. */
double round_to_odd(number value, bool exact);
/* m sin and m cos of a pair at a position, in the plan's profile, rounded to odd. */
void reference_sincos(const struct reference_plan *plan, int64_t pair, double position,
                      double m, double *sine, double *cosine);
/* sin and cos of an f64 angle, rounded to odd. */
void reference_sincos_angle(double angle, double *sine, double *cosine);
/* NaN equals NaN; zeros differ by sign. */
bool same_f64(double a, double b);
/* Nearest f32 of a value rounded to odd; one f32 add; a b + c d, exact, rounded to odd. */
double reference_nearest_f32(double odd);
double reference_add_f32(double a, double b);
double reference_sum_of_products(double a, double b, double c, double d);
/* An f64 rounded to a 16-bit type in one direction. */
double reference_rounded(enum posenc_dtype type, double value, mpfr_rnd_t direction);
/* All of output o of a call, [rows, width]. */
void reference_output(const struct call *call, int o, double *want);

/* A row of each signature, before the sum with x; the plan where the kernel has one. */
struct reference {
    const struct call *call;
    const struct reference_plan *plan;
};
typedef void reference_row(const struct reference *of, int o, int64_t r, double *want);
#define POSENC_SIGNATURE(name) reference_row output_##name;
#include <posenc_signatures.def>

/* Slope h of so many heads, the first being 0. */
float reference_slope(int64_t heads, double bias_max, int64_t h);
int64_t reference_bucket(int64_t distance, int64_t num_buckets, int64_t max_distance,
                         bool bidirectional);
/* A query's and a key's row of a window's table; column of terms; that of DeBERTa. */
int64_t reference_window_row(const struct problem *problem, int64_t query, int64_t key);
int64_t reference_column(const struct problem *problem, int64_t query, int64_t key);
int64_t reference_deberta_column(int64_t distance, int64_t buckets, int64_t max_distance);

/* Positions below 2^31 at which sin (kind 0) or cos (kind 1) of position x omega is smallest:
 * the continued-fraction convergents of omega/pi and 2 omega/pi of all pairs, the n smallest
 * results at distinct positions, ascending.  Returns how many there are. */
int64_t hard_positions(const struct reference_plan *plan, int kind, int64_t n,
                       int64_t *positions);
/* The same of one pair, in the order of the convergents; `most` of them at most. */
int64_t pair_convergents(const struct reference_plan *plan, int64_t pair, int kind,
                         int64_t most, int64_t *positions, double *distance);

/* The same of odd numerators of halves: odd m below 2^24 of times m/2 next to a zero, the n
 * nearest of a spec, in that order. */
int64_t hard_halves(const struct posenc_freqs_spec *spec, int64_t n, int64_t *numerators);

/* ---- Cases ---- */

/* Outputs of all cases, by MPFR.  Ends the program when one cannot be made. */
void fill_cases(struct vectors *vectors);

/* Frequency specs that certification goes through: those of all cases, and some more; and
 * whether the spec's profile has its scaling and convention.  Ends the program where there are
 * more than `most`. */
int64_t certified_specs(const struct vectors *vectors, struct posenc_freqs_spec *specs,
                        int64_t most);
bool profile_applies(const struct posenc_freqs_spec *spec);

/* ---- Actions ---- */

/* Whether all is as MPFR has it; each says what is not. */
bool certify_published(const struct vectors *vectors); /* published figures */
bool certify_flags(struct vectors *vectors);
bool certify_numbers(void); /* arithmetic and metrics of the suite */
bool certify_oracle(const struct vectors *vectors);
bool certify_library(const struct vectors *cases);
/* Says a disagreement, after "golden: "; false. */
bool disagree(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
