/*
 * MPFR in expressions: each function gives a new number of MP_BITS bits, rounded to nearest:
 * exact for sums of two products of f32 values, which span 2^-298 to 2^256.  It lives until
 * MP_LIVES more are made, longer than any formula takes; what has to stay goes into an mpfr_t.
 */
#ifndef POSENC_GOLDEN_MP_H
#define POSENC_GOLDEN_MP_H

#include <mpfr.h>
#include <stdint.h>

enum { MP_BITS = 640, MP_LIVES = 4096 };
typedef mpfr_srcptr number;

number mp_of(double a);
number mp_of_u64(uint64_t a);
/* A binary fraction of n words, its first word leading. */
number mp_of_words(const uint64_t *words, int n);
number mp_pi(void);

/* What a function of MPFR makes of one number, and of two. */
number mp_apply(int f(mpfr_t, const mpfr_t, mpfr_rnd_t), number a);
number mp_combine(int f(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t), number a, number b);

static inline number mp_add(number a, number b) { return mp_combine(mpfr_add, a, b); }
static inline number mp_sub(number a, number b) { return mp_combine(mpfr_sub, a, b); }
static inline number mp_mul(number a, number b) { return mp_combine(mpfr_mul, a, b); }
static inline number mp_div(number a, number b) { return mp_combine(mpfr_div, a, b); }
static inline number mp_pow(number a, number b) { return mp_combine(mpfr_pow, a, b); }
static inline number mp_log(number a) { return mp_apply(mpfr_log, a); }
static inline number mp_log1p(number a) { return mp_apply(mpfr_log1p, a); }
static inline number mp_exp(number a) { return mp_apply(mpfr_exp, a); }
static inline number mp_cos(number a) { return mp_apply(mpfr_cos, a); }
static inline number mp_sin(number a) { return mp_apply(mpfr_sin, a); }
static inline number mp_sqrt(number a) { return mp_apply(mpfr_sqrt, a); }
static inline number mp_neg(number a) { return mp_apply(mpfr_neg, a); }
/* To a whole number: the nearest, that below, that above. */
static inline number mp_round(number a) { return mp_apply(mpfr_rint, a); }
static inline number mp_floor(number a) { return mp_apply(mpfr_rint_floor, a); }
static inline number mp_ceil(number a) { return mp_apply(mpfr_rint_ceil, a); }

void mp_sin_cos(number a, number *sine, number *cosine);
/* The nearest to `a` that is no less than `least` and no more than `most`. */
number mp_clamp(number a, double least, double most);

static inline double mp_double(number a) { return mpfr_get_d(a, MPFR_RNDN); }
static inline float mp_float(number a) { return mpfr_get_flt(a, MPFR_RNDN); }

#endif
