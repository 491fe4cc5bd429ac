/*
 * Expected numbers, independent of problems: arithmetic of 256 bits (struct big), the frequencies of a specification,
 * sines and cosines, rounding to a stored type, and errors in ulp. Shares no code with impl. Results follow from
 * integers, so that neither libm nor the rounding mode matters. Only exact_add_to_odd() needs rounding to nearest.
 *
 * A value rounded to odd is an f64 whose last bit is 1 unless the value is exact. Rounding it again, to 51 bits or
 * fewer, gives the same result as rounding the exact value. So exact_round_f32() of the sine that exact_sincos(1.0, ...)
 * computes is the correctly rounded 0x1.aed548p-1.
 */
#ifndef POSENC_EXACT_H
#define POSENC_EXACT_H

#include <posenc.h>
#include <posenc/relative.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* ---- Numbers of 256 bits: big.c, sincos.c ---- */

/* The number (-1)^negative 0.m[0]m[1]m[2]m[3] 2^exponent, of 256 bits. m[0] is most significant and has its top bit
 * set; zero has all m zero. Operations truncate, with an error of 2^-240 of the result (sums: of the larger operand),
 * or 2^-214 for big_exp() of the largest arguments. `inexact` says that the true value has further bits and is not an
 * f64. Sines and cosines set it, and big_multiply() and big_times() keep it; other operations may lose it. */
struct big {
    bool negative, inexact;
    int64_t exponent;
    uint64_t m[4];
};

extern const struct big big_two_pi;
struct big big_integer(int64_t value);
struct big big_double(double value); /* finite */
/* Returns a with the top bit of m[0] set, unless it is 0. */
struct big big_normalized(struct big a);
struct big big_negate(struct big a);
struct big big_add(struct big a, struct big b);
struct big big_subtract(struct big a, struct big b);
struct big big_multiply(struct big a, struct big b);
struct big big_divide(struct big a, struct big b); /* b not zero */
struct big big_inverse_sqrt(struct big a);         /* a positive */
struct big big_log(struct big a);                  /* a positive */
struct big big_exp(struct big a);                  /* |a| below 2^40 */
int big_compare(struct big a, struct big b);       /* < 0, 0, > 0 */
/* Return the nearest f32 or f64, ties to even; may be subnormal or infinite. */
float big_to_float(struct big a);
double big_to_double(struct big a);
/* Returns a * factor as f64 rounded to odd. A zero has the sign of the product. */
double big_times(struct big a, double factor);
int64_t big_floor(struct big a); /* |a| below 2^62 */
/* Computes a mod 1 as a binary fraction of 192 bits, fraction[0] most significant. */
void big_fraction(struct big a, uint64_t fraction[3]);

/* Compute sin and cos with a relative error of 2^-122: of the angle 2 pi turns time, where |time| may have a
 * fraction; of an angle in radians, |angle| < 2^60. */
void big_sincos_time(struct big turns, double time, struct big *sine, struct big *cosine);
void big_sincos(double angle, struct big *sine, struct big *cosine);

/* Returns 2^n, n from -1022 to 1023. */
static inline double exact_pow2(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns a + b as f64 rounded to odd; NaN and infinities as in IEEE arithmetic. */
double exact_add_to_odd(double a, double b);

/* ---- Frequencies: freqs.c, scalings.c ---- */

/* Computes the frequencies of at most n pairs; returns their number. turn: turns per position modulo 1, in 192 bits
 * with turn[i][0] most significant. inv_freq_f32: radians per position, as numerics mode hf_f32 or torch_exp_f32
 * rounds them. attention_factor: factor of cosines and sines, rounded to f64. These outputs may be NULL. */
int64_t exact_freqs(const struct posenc_freqs_spec *spec, int64_t n, uint64_t (*turn)[3],
                    float *inv_freq_f32, double *attention_factor);

/* Computes the turns per position of n pairs in numerics mode exact, including whole turns. */
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

/* ---- Values and errors: sincos.c, big.c ---- */

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
