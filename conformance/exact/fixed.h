/*
 * Arithmetic of the oracle: floating numbers of 256 bits, and sines of which 128 are worked out.  Integers
 * only, so that no libm and no rounding mode has a say.
 */
#ifndef POSENC_FIXED_H
#define POSENC_FIXED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* (-1)^negative 0.m[0]m[1]m[2]m[3] 2^exponent, m[0] most significant with its top bit set; zero
 * is all m zero.  Operations truncate: each is right to 2^-240 of its result (sums: of the
 * larger operand).  `inexact`: the true value lies beyond the last bit that is not zero, and is no f64. */
struct big {
    bool negative, inexact;
    int64_t exponent;
    uint64_t m[4];
};

extern const struct big two_pi;
struct big big_integer(int64_t value);
struct big big_double(double value);     /* finite */
struct big big_normalized(struct big a); /* of any mantissa */
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
/* a x factor as f64 rounded to odd: cut, and made odd if anything was lost.  A zero has the sign of the
 * product. */
double big_times(struct big a, double factor);
int64_t big_floor(struct big a); /* |a| below 2^62 */
/* a mod 1 as a binary fraction of 192 bits, fraction[0] most significant. */
void big_fraction(struct big a, uint64_t fraction[3]);

/* sin and cos to 2^-122 of them, at a time that may have a fraction, of what makes so many turns in 1;
 * of an angle in radians, |angle| < 2^60. */
void fixed_sincos_time(struct big turns, double time, struct big *sine, struct big *cosine);
void fixed_sincos(double angle, struct big *sine, struct big *cosine);

/* 2^n, n from -1022 to 1023. */
static inline double two_to(int n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* a + b as f64 rounded to odd; NaN and infinities as in IEEE arithmetic. */
double add_to_odd(double a, double b);

#endif
