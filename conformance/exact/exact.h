/*
 * Exact numbers, which know of no problem: frequencies, sines and cosines from integer arithmetic, rounding
 * to a stored type, and how far a result is from what is right.  Shares no code with impl.
 */
#ifndef POSENC_EXACT_H
#define POSENC_EXACT_H

#include <posenc.h>

/* Frequencies of a spec as the oracle sees them: fraction of a turn in 192 bits (turn[0] the
 * most significant word; profile exact) and the f32 value of profile hf_f32.  Returns n_pairs,
 * at most `n`.  attention_factor correctly rounded to f64. */
int64_t oracle_freqs(const struct posenc_freqs_spec *spec, int64_t n, uint64_t (*turn)[3],
                     float *inv_freq_f32, double *attention_factor);

/* Turns a position of n pairs, whole ones included. */
struct big;
void oracle_turns(const struct posenc_freqs_spec *spec, int64_t n, struct big *turns);

/* The pairs that turn with the axis of pair i where sections follow each other, an encoding of its own
 * beside the others; all of them where there is one axis. */
struct oracle_section {
    int axis;
    int64_t start, pairs;
};
struct oracle_section oracle_section(const struct posenc_freqs_spec *spec, int64_t i);

/* Which of a token's positions turns pair i. */
int oracle_axis(const struct posenc_freqs_spec *spec, int64_t i);

/* Profile ggml_f32: what the angles of n pairs are made of.  That of pair i is (freq_scale e)(1 -
 * kept[i]) + e kept[i], e = (((position * theta_scale) * theta_scale) ... i times) / divisor[i].
 * Who calls gives n and the arrays. */
struct oracle_ggml {
    int64_t n;
    float *divisor, *kept;
    float theta_scale, freq_scale;
};
void oracle_ggml(const struct posenc_freqs_spec *spec, struct oracle_ggml *ggml);

/* sin and cos of 2 pi position turn (profile exact), as f64 rounded to odd. */
void oracle_sincos_turn(const uint64_t turn[3], int64_t position, double *sine, double *cosine);
/* sin and cos of an f64 angle in radians below 2^60 in magnitude, as f64 rounded to odd. */
void oracle_sincos(double angle, double *sine, double *cosine);

/* The nearest f32 of a value rounded to odd, and of that the nearest value of a type: what a
 * kernel stores that errs by nothing else. */
float odd_to_f32(double want);
float odd_to_type(enum posenc_dtype type, double want);
/* Distance between neighbouring values of a type at a magnitude. */
double ulp_of(enum posenc_dtype type, double magnitude);
/* The error of `got` in ulp of f32 at `want` (0.5 is the most a correctly rounded result has).
 * Equal infinities and NaN: 0; unequal classes: INFINITY. */
double ulp_error(float got, double want);
/* |got - want| in ulp of f32 at `mass`. */
double pair_ulp_error(float got, double want, double mass);
/* Of a stored value whose f32 result may be `within` of the truth: the error in ulp of the
 * type, and the largest that explains, which is the farthest such a result can be rounded to:
 * about 0.5 + within. */
struct stored_error {
    double error, limit;
};
struct stored_error stored_error(enum posenc_dtype type, float got, double want, double within);

#endif
