/* Arithmetic of the oracle: floating-point numbers of 256 bits (big.c), and sines to 128 bits (sincos.c). Results follow
 * from integers, so that neither libm nor the rounding mode matters. Only exact_add_to_odd() needs rounding to nearest. */
#ifndef POSENC_BIG_H
#define POSENC_BIG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

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

#endif
