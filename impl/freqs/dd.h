/*
 * Double-double arithmetic: a value is the unevaluated sum hi + lo of two doubles, where |lo| is at most half an ulp of
 * hi, as in 1/3 = 0x1.5555555555555p-2 + 0x1.5555555555555p-56. About 104 bits are correct. Results do not depend on
 * the platform's libm: only +, -, *, /, sqrt() and fma() are used, all of which IEEE 754 defines to the bit.
 *
 * Reference: Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building blocks of double-word
 * arithmetic", ACM TOMS 44(2), 2017. u is 2^-53.
 */
#ifndef POSENC_DD_H
#define POSENC_DD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct dd {
    double hi, lo;
};

static inline struct dd dd_from(double a) { return (struct dd){ a, 0.0 }; }

/* Returns a + b exactly, for |a| >= |b| or a = 0. */
static inline struct dd dd_fast_sum(double a, double b)
{
    double s = a + b;
    return (struct dd){ s, b - (s - a) };
}

/* Returns a + b exactly. */
static inline struct dd dd_sum(double a, double b)
{
    double s = a + b;
    double bb = s - a;
    return (struct dd){ s, (a - (s - bb)) + (b - bb) };
}

/* Returns a b exactly, unless it underflows. */
static inline struct dd dd_product(double a, double b)
{
    double p = a * b;
    return (struct dd){ p, fma(a, b, -p) };
}

static inline struct dd dd_neg(struct dd a) { return (struct dd){ -a.hi, -a.lo }; }

/* The relative error is below 3.1 u^2, even under cancellation. */
static inline struct dd dd_add(struct dd a, struct dd b)
{
    struct dd s = dd_sum(a.hi, b.hi);
    struct dd t = dd_sum(a.lo, b.lo);
    s = dd_fast_sum(s.hi, s.lo + t.hi);
    return dd_fast_sum(s.hi, t.lo + s.lo);
}

static inline struct dd dd_sub(struct dd a, struct dd b) { return dd_add(a, dd_neg(b)); }

/* The relative error is below 4 u^2. */
static inline struct dd dd_mul(struct dd a, struct dd b)
{
    struct dd p = dd_product(a.hi, b.hi);
    double t = fma(a.lo, b.hi, fma(a.hi, b.lo, a.lo * b.lo));
    return dd_fast_sum(p.hi, p.lo + t);
}

/* Multiplies by a power of two, exactly. */
static inline struct dd dd_scale(struct dd a, double power_of_two)
{
    return (struct dd){ a.hi * power_of_two, a.lo * power_of_two };
}

/* Computes three quotient digits. The relative error is a few u^2. */
static inline struct dd dd_div(struct dd a, struct dd b)
{
    double q0 = a.hi / b.hi;
    struct dd rest = dd_sub(a, dd_mul(b, dd_from(q0)));
    double q1 = rest.hi / b.hi;
    rest = dd_sub(rest, dd_mul(b, dd_from(q1)));
    double q2 = rest.hi / b.hi;
    struct dd q = dd_fast_sum(q0, q1);
    return dd_add(q, dd_from(q2));
}

/* Returns the square root of a >= 0, by one Newton step on that of the high part. */
static inline struct dd dd_sqrt(struct dd a)
{
    double root = sqrt(a.hi);
    if (root == 0.0)
        return dd_from(0.0);
    struct dd rest = dd_sub(a, dd_product(root, root));
    return dd_fast_sum(root, rest.hi / (2.0 * root));
}

/* Returns the sign of a - b. */
static inline int dd_compare(struct dd a, struct dd b)
{
    struct dd d = dd_sub(a, b);
    return (d.hi > 0.0) - (d.hi < 0.0);
}

/* Rounds correctly to f32. An inexact value is first rounded to odd: a double whose last bit is 1 is no midpoint of two
 * floats, so that the second rounding is correct. */
static inline float dd_to_float(struct dd a)
{
    uint64_t bits;
    memcpy(&bits, &a.hi, sizeof bits);
    if (a.lo != 0.0 && a.hi != 0.0 && (bits & 1) == 0) {
        bits += (a.lo > 0.0) == (a.hi > 0.0) ? 1u : ~(uint64_t)0;
        memcpy(&a.hi, &bits, sizeof bits);
    }
    return (float)a.hi;
}

/* The relative error of the functions below is less than 2^-100 unless stated otherwise. */

/* Returns the natural logarithm of a normal a > 0. The bound also holds near a = 1. */
struct dd posenc_dd_log(struct dd a);

/* Returns e^a for |a| < 700. */
struct dd posenc_dd_exp(struct dd a);

/* A phase, as a fraction of a turn (2 pi): (hi + lo / 2^64) / 2^64. */
struct turn {
    uint64_t hi, lo;
};

/* Returns omega / (2 pi) modulo 1, for |omega| < 2^64. The absolute error is below 2^-104 omega / (2 pi) + 2^-126. */
struct turn posenc_turn_of(struct dd omega);

/* Returns times * turn modulo 1, exactly. */
struct turn posenc_turn_times(struct turn turn, uint32_t times);

/* Computes cos and sin of 2 pi turn, each with that relative error. */
void posenc_dd_cossin(struct turn turn, struct dd *cosine, struct dd *sine);

extern const struct dd posenc_dd_pi, posenc_dd_inverse_factorial[31]; /* 1/n! */

/* ---- The quick phase (quick.c) ---- */

/* Correct rounding to f32 begins with functions in doubles, whose error is known. posenc_quick_round() accepts a value
 * if its error cannot change the rounding. The few others, which are close to a midpoint of two floats, are computed
 * again in double-double (Ziv's strategy). Both phases give the same bits. */

/* Returns ln a for a normal a > 0. The relative error is below 2^-48, even close to 1. */
double posenc_quick_log(struct dd a);

/* Returns 2^x for |x| <= 1000. The relative error is below 2.3 2^-53. */
double posenc_quick_exp2(struct dd x);

/* Computes cos and sin of 2 pi turn. The relative error of each is below 2^-48. */
void posenc_quick_cossin(struct turn turn, double *cosine, double *sine);

/* Returns true if all numbers within a relative 2^-40 of a value round to the same float. */
static inline bool posenc_quick_round(double value, float *rounded)
{
    *rounded = (float)(value * (1.0 - 0x1p-40));
    return *rounded == (float)(value * (1.0 + 0x1p-40));
}

#endif
