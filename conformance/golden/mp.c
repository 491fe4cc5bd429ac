/* MPFR in expressions (see mp.h): a ring of numbers, of which each operation takes the next. */
#include "mp.h"

static mpfr_ptr next_of_ring(void)
{
    static mpfr_t ring[MP_LIVES];
    static size_t made, next = MP_LIVES - 1; /* the first is 0 */
    next = (next + 1) % MP_LIVES;
    if (made <= next)
        mpfr_init2(ring[made++], MP_BITS);
    return ring[next];
}

number mp_apply(int f(mpfr_t, const mpfr_t, mpfr_rnd_t), number a)
{
    mpfr_ptr x = next_of_ring();
    f(x, a, MPFR_RNDN);
    return x;
}

number mp_combine(int f(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t), number a, number b)
{
    mpfr_ptr x = next_of_ring();
    f(x, a, b, MPFR_RNDN);
    return x;
}

number mp_of(double a)
{
    mpfr_ptr x = next_of_ring();
    mpfr_set_d(x, a, MPFR_RNDN);
    return x;
}

number mp_of_u64(uint64_t a)
{
    return mp_add(mp_of((double)(a >> 32) * 0x1p32), mp_of((double)(a & UINT32_MAX)));
}

number mp_of_words(const uint64_t *words, int n)
{
    number sum = mp_of(0);
    for (int k = n - 1; k >= 0; k--)
        sum = mp_div(mp_add(sum, mp_of_u64(words[k])), mp_of(0x1p64));
    return sum;
}

number mp_pi(void)
{
    mpfr_ptr x = next_of_ring();
    mpfr_const_pi(x, MPFR_RNDN);
    return x;
}

void mp_sin_cos(number a, number *sine, number *cosine)
{
    mpfr_ptr s = next_of_ring(), c = next_of_ring();
    mpfr_sin_cos(s, c, a, MPFR_RNDN);
    *sine = s;
    *cosine = c;
}

number mp_clamp(number a, double least, double most)
{
    return mpfr_cmp_d(a, least) < 0 ? mp_of(least) : mpfr_cmp_d(a, most) > 0 ? mp_of(most) : a;
}
