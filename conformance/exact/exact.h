/*
 * Expected numbers, independent of problems: frequencies, sines and cosines by integer arithmetic, rounding to a
 * stored type, and errors in ulp. Shares no code with impl.
 *
 * A value rounded to odd is an f64 whose last bit is 1 unless the value is exact. Rounding it again, to 51 bits or
 * fewer, gives the same result as rounding the exact value.
 */
#ifndef POSENC_EXACT_H
#define POSENC_EXACT_H

#include <posenc.h>
#include <posenc/relative.h>

/* Computes the frequencies of at most n pairs; returns their number. turn: turns per position modulo 1, in 192 bits
 * with turn[i][0] most significant. inv_freq_f32: radians per position, as numerics mode hf_f32 or torch_exp_f32
 * rounds them. attention_factor: factor of cosines and sines, rounded to f64. These outputs may be NULL. */
int64_t exact_freqs(const struct posenc_freqs_spec *spec, int64_t n, uint64_t (*turn)[3],
                    float *inv_freq_f32, double *attention_factor);

/* Computes the turns per position of n pairs in numerics mode exact, including whole turns. */
struct big;
void exact_turns(const struct posenc_freqs_spec *spec, int64_t n, struct big *turns);

/* Pairs start ... start + pairs - 1, which share an axis in layouts with consecutive sections. */
struct exact_section {
    int axis;
    int64_t start, pairs;
};
/* Returns the section of pair i. With one axis, this has all pairs. */
struct exact_section exact_section(const struct posenc_freqs_spec *spec, int64_t i);

/* Returns the axis whose position rotates pair i. */
int exact_axis(const struct posenc_freqs_spec *spec, int64_t i);

/* Parameters of the angles of n pairs in numerics mode ggml_f32. The angle of pair i is (freq_scale e)(1 -
 * ramp_mix[i]) + e ramp_mix[i], where e = (((position * theta_scale) * theta_scale) ... i times) / divisor[i]. The
 * caller provides n and the arrays; exact_ggml() sets all other values. */
struct exact_ggml {
    int64_t n;
    float *divisor, *ramp_mix;
    float theta_scale, freq_scale;
};
void exact_ggml(const struct posenc_freqs_spec *spec, struct exact_ggml *ggml);

/* Computes sin and cos of 2 pi position turn, as f64 rounded to odd. */
void exact_sincos_turn(const uint64_t turn[3], int64_t position, double *sine, double *cosine);
/* Computes sin and cos of an angle in radians, |angle| < 2^60, as f64 rounded to odd. */
void exact_sincos(double angle, double *sine, double *cosine);

/* Return the f32 nearest to a value rounded to odd, and the value of a type nearest to that f32. The latter is what a
 * kernel with correctly rounded f32 results stores. */
float exact_round_f32(double want);
float exact_round(enum posenc_dtype type, double want);
/* Returns the distance between neighbouring values of a type at a magnitude >= 0. */
double exact_ulp(enum posenc_dtype type, double magnitude);
/* Returns the error of `got` in ulp of f32 at `want`, at most 0.5 for a correctly rounded result. It is 0 for equal
 * infinities or two NaN, and INFINITY for different classes. */
double exact_ulp_error(float got, double want);
/* Returns the same error in ulp of f32 at `magnitude`. */
double exact_pair_ulp_error(float got, double want, double magnitude);
/* Error of a value of a 16-bit type, and its limit, both in ulp of the type. */
struct stored_error {
    double error, limit;
};
/* Returns the error of `got`. The limit is the largest error of an f32 result that is within `within` of `want` and
 * then rounded to the type: about 0.5 ulp + within. */
struct stored_error exact_stored_error(enum posenc_dtype type, float got, double want,
                                       double within);

#endif
