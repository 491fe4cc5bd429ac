/* MPFR in expressions: the numbers that live for a while, and the functions on them (see
 * mp.h). */
#include "mp.h"

#include <stdbool.h>

static mpfr_ptr fresh(void)
{
    static mpfr_t numbers[MP_LIVES];
    static size_t made, next = MP_LIVES - 1; /* the first is 0 */
    next = (next + 1) % MP_LIVES;
    if (made <= next)
        mpfr_init2(numbers[made++], MP_BITS);
    return numbers[next];
}

typedef int unary(mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef int binary(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);

static number apply(unary *f, number a)
{
    mpfr_ptr x = fresh();
    f(x, a, MPFR_RNDN);
    return x;
}

static number combine(binary *f, number a, number b)
{
    mpfr_ptr x = fresh();
    f(x, a, b, MPFR_RNDN);
    return x;
}

number mp_of(double a)
{
    mpfr_ptr x = fresh();
    mpfr_set_d(x, a, MPFR_RNDN);
    return x;
}

number mp_of_u64(uint64_t a)
{
    return mp_add(mp_of((double)(a >> 32) * 0x1p32), mp_of((double)(a & UINT32_MAX)));
}

number mp_pi(void)
{
    mpfr_ptr x = fresh();
    mpfr_const_pi(x, MPFR_RNDN);
    return x;
}

number mp_add(number a, number b) { return combine(mpfr_add, a, b); }
number mp_sub(number a, number b) { return combine(mpfr_sub, a, b); }
number mp_mul(number a, number b) { return combine(mpfr_mul, a, b); }
number mp_div(number a, number b) { return combine(mpfr_div, a, b); }
number mp_pow(number a, number b) { return combine(mpfr_pow, a, b); }
number mp_log(number a) { return apply(mpfr_log, a); }
number mp_log1p(number a) { return apply(mpfr_log1p, a); }
number mp_exp(number a) { return apply(mpfr_exp, a); }
number mp_cos(number a) { return apply(mpfr_cos, a); }
number mp_sin(number a) { return apply(mpfr_sin, a); }
number mp_sqrt(number a) { return apply(mpfr_sqrt, a); }
number mp_neg(number a) { return apply(mpfr_neg, a); }
number mp_round(number a) { return apply(mpfr_rint, a); }
number mp_floor(number a) { return apply(mpfr_rint_floor, a); }
number mp_ceil(number a) { return apply(mpfr_rint_ceil, a); }

number mp_clamp(number a, double least, double most)
{
    return mpfr_cmp_d(a, least) < 0 ? mp_of(least) : mpfr_cmp_d(a, most) > 0 ? mp_of(most) : a;
}

double mp_double(number a) { return mpfr_get_d(a, MPFR_RNDN); }
float mp_float(number a) { return mpfr_get_flt(a, MPFR_RNDN); }
