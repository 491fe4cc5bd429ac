/*
 * Exact numbers, independent of problems: frequencies, sines and cosines by integer arithmetic,
 * rounding to a stored type, and errors. Shares no code with impl.
 */
#ifndef POSENC_EXACT_H
#define POSENC_EXACT_H

#include <posenc.h>

/* Computes the frequencies of at most n pairs; returns their number. turn: fractions of a turn per
 * position in 192 bits, turn[0] most significant (numerics exact). inv_freq_f32: values of hf_f32
 * or torch_exp_f32. attention_factor: correctly rounded to f64. Outputs may be NULL. */
int64_t exact_freqs(const struct posenc_freqs_spec *spec, int64_t n, uint64_t (*turn)[3],
                    float *inv_freq_f32, double *attention_factor);

/* Computes the turns per position of n pairs, including whole turns. */
struct big;
void exact_turns(const struct posenc_freqs_spec *spec, int64_t n, struct big *turns);

/* Pairs that share the axis of pair i in layouts with consecutive sections, each of which is
 * encoded separately. With one axis these are all pairs. */
struct exact_section {
    int axis;
    int64_t start, pairs;
};
struct exact_section exact_section(const struct posenc_freqs_spec *spec, int64_t i);

/* Returns the axis whose position rotates pair i. */
int exact_axis(const struct posenc_freqs_spec *spec, int64_t i);

/* Parameters of the angles of n pairs in numerics ggml_f32. The angle of pair i is
 * (freq_scale e)(1 - kept[i]) + e kept[i], where
 * e = (((position * theta_scale) * theta_scale) ... i times) / divisor[i].
 * The caller provides n and the arrays. */
struct exact_ggml {
    int64_t n;
    float *divisor, *kept;
    float theta_scale, freq_scale;
};
void exact_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml);

/* Computes sin and cos of 2 pi position turn (numerics exact), as f64 rounded to odd. */
void exact_sincos_turn(const uint64_t turn[3], int64_t position, double *sine, double *cosine);
/* Computes sin and cos of an angle in radians, |angle| < 2^60, as f64 rounded to odd. */
void exact_sincos(double angle, double *sine, double *cosine);

/* Return the f32 nearest to a value rounded to odd, and the value of a type nearest to that f32:
 * the stored result of an otherwise exact kernel. */
float odd_to_f32(double want);
float odd_to_type(enum posenc_dtype type, double want);
/* Returns the distance between neighbouring values of a type at a magnitude. */
double ulp_of(enum posenc_dtype type, double magnitude);
/* Returns the error of `got` in ulp of f32 at `want`, at most 0.5 for a correctly rounded result.
 * It is 0 for equal infinities or two NaN, and INFINITY for different classes. */
double ulp_error(float got, double want);
/* Returns |got - want| in ulp of f32 at `mass`. */
double pair_ulp_error(float got, double want, double mass);
/* Error of a stored value in ulp of its type, and the largest error to which an f32 result within
 * `within` of the truth can be rounded: about 0.5 ulp + within. */
struct stored_error {
    double error, limit;
};
struct stored_error stored_error(enum posenc_dtype type, float got, double want, double within);

#endif
