/*
 * Arithmetic of the oracle: floating numbers of 256 bits for frequencies, fixed point of 128
 * bits for sines.  Integers only, so that no libm and no rounding mode has a say.
 */
#ifndef POSENC_FIXED_H
#define POSENC_FIXED_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

/* ---- 256-bit floating numbers ---- */

/* (-1)^negative 0.m[0]m[1]m[2]m[3] 2^exponent, m[0] most significant with its top bit set; zero
 * is all m zero.  Operations truncate: each is right to 2^-240 of its result (sums: of the
 * larger operand). */
struct big {
    bool negative;
    int64_t exponent;
    uint64_t m[4];
};

struct big big_integer(int64_t value);
struct big big_double(double value); /* finite */
struct big big_pi(void);
struct big big_negate(struct big a);
struct big big_add(struct big a, struct big b);
struct big big_subtract(struct big a, struct big b);
struct big big_multiply(struct big a, struct big b);
struct big big_divide(struct big a, struct big b); /* b not zero */
struct big big_log(struct big a);                  /* a positive */
struct big big_exp(struct big a);                  /* |a| below 2^40 */
int big_compare(struct big a, struct big b);       /* < 0, 0, > 0 */
/* Nearest value of so many bits (24, 53), ties to even; gradual underflow and overflow as f32
 * or f64 have them. */
float big_to_float(struct big a);
double big_to_double(struct big a);
int64_t big_floor(struct big a); /* |a| below 2^62 */
/* a mod 1 as a binary fraction of 192 bits, fraction[0] most significant. */
void big_fraction(struct big a, uint64_t fraction[3]);

/* ---- Sines and rounding to odd ---- */

/* (-1)^negative mantissa 2^(exponent - 128), top bit set unless zero.  Unless `exact` the true
 * value differs, but by less than 2^-122 of it, and is no f64. */
struct real {
    bool negative, exact;
    int64_t exponent;
    u128 mantissa;
};

/* sin and cos of 2 pi phase / 2^192. */
void fixed_sincos_phase(const uint64_t phase[3], struct real *sine, struct real *cosine);
/* sin and cos of 0 < x <= pi/4, x with its top bit set. */
void fixed_sincos_small(struct real x, struct real *sine, struct real *cosine);
/* sin and cos of an angle in radians, |angle| < 2^60. */
void fixed_sincos(double angle, struct real *sine, struct real *cosine);

/* value x factor as f64 rounded to odd: truncated, and made odd unless exact. */
double real_times(struct real value, double factor);
/* a + b as f64 rounded to odd; NaN and infinities as in IEEE arithmetic. */
double add_to_odd(double a, double b);

#endif
