/*
 * MPFR in expressions: each function gives a new number of MP_BITS bits, rounded to nearest.  It
 * lives for the next MP_LIVES of them, far longer than any formula here; what has to stay is
 * copied into an mpfr_t.
 */
#ifndef POSENC_GOLDEN_MP_H
#define POSENC_GOLDEN_MP_H

#include <mpfr.h>
#include <stdint.h>

enum { MP_BITS = 320, MP_LIVES = 4096 };
typedef mpfr_srcptr number;

number mp_of(double a);
number mp_of_u64(uint64_t a);
number mp_pi(void);
number mp_add(number a, number b);
number mp_sub(number a, number b);
number mp_mul(number a, number b);
number mp_div(number a, number b);
number mp_pow(number a, number b);
number mp_log(number a);
number mp_log1p(number a);
number mp_exp(number a);
number mp_cos(number a);
number mp_sin(number a);
number mp_sqrt(number a);
number mp_neg(number a);
number mp_round(number a); /* to a whole number: the nearest, that below, that above */
number mp_floor(number a);
number mp_ceil(number a);
/* The nearest to `a` that is no less than `least` and no more than `most`. */
number mp_clamp(number a, double least, double most);

double mp_double(number a);
float mp_float(number a);

#endif
