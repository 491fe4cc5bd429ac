/*
 * The arithmetic beneath the oracle, the metrics and the roundings of the suite against MPFR.
 */
#include "conformance/exact/fixed.h"
#include "conformance/problem/storage.h"
#include "golden.h"

#include <math.h>
#include <string.h>

/* How far a value, a binary fraction of n words times a power of two, is from MPFR's, in shares
 * of it. */
static double share_off(struct big value, number want)
{
    const number power = mp_pow(mp_of(2), mp_of((double)value.exponent));
    const number got = mp_mul(mp_of_words(value.m, 4), power);
    const number off = mp_sub(value.negative ? mp_neg(got) : got, want);
    return fabs(mp_double(mpfr_zero_p(want) ? off : mp_div(off, want)));
}

/* Whether a big is MPFR's value to 2^-240 of it. */
static bool near_big(struct big value, number want, const char *what, double of)
{
    const double off = share_off(value, want);
    return off < 0x1p-240 || disagree("%s of %a wrong by %g of itself", what, of, off);
}

/* Logarithms, exponentials and quotients of 256 bits. */
static bool bigs(void)
{
    bool good = true;
    for (uint64_t k = 0; k < 2000 && good; k++) {
        const uint64_t z = mix64(31, k);
        const double a = ldexp((double)(z >> 11), (int)(z & 127) - 117);
        const double small = ldexp((double)(int64_t)z, (int)(k % 70) - 124); /* below 2^9 */
        const struct big quotient = big_divide(big_integer(3), big_double(a));
        good = near_big(big_log(big_double(a)), mp_log(mp_of(a)), "log", a) &&
               near_big(quotient, mp_div(mp_of(3), mp_of(a)), "3 / x", a) &&
               near_big(big_exp(big_double(small)), mp_exp(mp_of(small)), "exp", small);
    }
    return good;
}

/* Whether a sine is right to 2^-122 of itself, as fixed.h says: far more than the rounding
 * shows. */
static bool near_sine(struct big value, number want)
{
    return share_off(value, want) < 0x1p-122;
}

/* Angles of every magnitude below 2^60, as f64 and as f32. */
static bool angles(void)
{
    bool good = true;
    for (uint64_t k = 0; k < 20000 && good; k++) {
        const uint64_t z = mix64(77, k);
        double angle = ldexp((double)(z >> 11), (int)(z % 130) - 124);
        angle = z & 512 ? -angle : angle;
        angle = z & 1024 ? (double)(float)angle : angle;
        double s, c, sine, cosine;
        struct big sine_digits, cosine_digits;
        fixed_sincos(angle, &sine_digits, &cosine_digits);
        oracle_sincos(angle, &s, &c);
        reference_sincos_angle(angle, &sine, &cosine);
        good = (angle == 0 ||
                (near_sine(sine_digits, mp_sin(mp_of(angle))) &&
                 near_sine(cosine_digits, mp_cos(mp_of(angle)))) ||
                disagree("angle %a: sine or cosine wrong before 122 bits", angle)) &&
               ((same_f64(s, sine) && same_f64(c, cosine)) ||
                disagree("angle %a: sin %a, MPFR %a;  cos %a, MPFR %a", angle, s, sine, c,
                         cosine));
    }
    return good;
}

/* m times a sine for m of every magnitude, f64's subnormals and overflow included. */
static bool products(void)
{
    bool good = true;
    for (uint64_t k = 0; k < 5000 && good; k++) {
        const uint64_t z = mix64(9, k);
        const double angle = ldexp((double)(z >> 11), (int)(z & 63) - 100);
        const double m =
            ldexp((double)(mix64(z, 1) >> 11) * (z & 64 ? 1 : -1), (int)(z >> 7 & 2047) - 1100);
        const bool exact = angle == 0 || m == 0;
        struct big sine, cosine;
        if (!isfinite(m))
            continue;
        fixed_sincos(angle, &sine, &cosine);
        const double a = big_times(sine, m), b = big_times(cosine, m);
        good = (a == round_to_odd(mp_mul(mp_sin(mp_of(angle)), mp_of(m)), exact) &&
                b == round_to_odd(mp_mul(mp_cos(mp_of(angle)), mp_of(m)), exact)) ||
               disagree("%a times sin, cos of %a: %a and %a", m, angle, a, b);
    }
    return good;
}

/* A value of any magnitude near f32's range, often next to an f32 or to the middle of two. */
static number any_value(uint64_t k)
{
    const uint64_t z = mix64(5, k);
    const double power = ldexp(1, -(int)(z >> 2 & 127)), whole = (double)(z >> 40 | 1u << 23);
    number value = mp_of(whole + (z & 1 ? 0.5 : 0));
    if (z & 2)
        value = mp_add(value, mp_of(z & 1024 ? -power : power));
    value = mp_mul(value, mp_of(ldexp(1, (int)(z >> 11 & 511) - 300)));
    return z & 2048 ? mp_neg(value) : value;
}

/* The nearest f32, its error in ulp, and that of the f32 after it. */
static bool metrics(void)
{
    bool good = true;
    for (uint64_t k = 0; k < 50000 && good; k++) {
        const number value = any_value(k);
        const double odd = round_to_odd(value, true);
        const float nearest = mp_float(value), got = odd_to_f32(odd),
                    next = nextafterf(got, INFINITY);
        const double error = ulp_error(got, odd), off = ulp_error(next, odd);
        const bool binade_ends = fabs(frexp((double)got, &(int){ 0 })) == 0.5;
        good = (memcmp(&got, &nearest, sizeof got) == 0 ||
                disagree("%a to f32: %a, MPFR %a", odd, (double)got, (double)nearest)) &&
               (error <= 0.5 || (fabs(odd) < 0x1p-149 && error <= 1) ||
                disagree("nearest f32 of %a errs by %g ulp", odd, error)) &&
               (!isfinite(next) || !isfinite(got) || (off >= 0.49999 && off <= 1.50001) ||
                (off < 2.1 && binade_ends) ||
                disagree("the f32 after the nearest of %a errs by %g ulp", odd, off));
    }
    return good;
}

/* ---- Types of 16 bits ---- */

/* Exponents as MPFR counts them: of 1/2 2^e, the least subnormal and the largest number. */
struct narrow {
    int bits, least, largest;
};

static struct narrow narrow_of(enum posenc_dtype type)
{
    return type == POSENC_F16 ? (struct narrow){ 11, -23, 16 }
                              : (struct narrow){ 8, -132, 128 };
}

double reference_rounded(enum posenc_dtype type, double value, mpfr_rnd_t direction)
{
    const struct narrow n = narrow_of(type);
    const mpfr_exp_t least = mpfr_get_emin(), largest = mpfr_get_emax();
    mpfr_t x;
    mpfr_init2(x, n.bits);
    int inexact = mpfr_set_d(x, value, direction);
    mpfr_set_emin(n.least);
    mpfr_set_emax(n.largest);
    inexact = mpfr_check_range(x, inexact, direction);
    mpfr_subnormalize(x, inexact, direction);
    mpfr_set_emin(least);
    mpfr_set_emax(largest);
    const double result = mpfr_get_d(x, MPFR_RNDN);
    mpfr_clear(x);
    return result;
}

/* The value of 16 bits from its fields. */
static double value_of(enum posenc_dtype type, uint16_t bits)
{
    const struct narrow n = narrow_of(type);
    const int fraction_bits = n.bits - 1, exponents = 1 << (15 - fraction_bits);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    double magnitude;
    if (exponent == exponents - 1)
        magnitude = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(fraction, n.least - 1);
    else
        magnitude = ldexp((1 << fraction_bits) + fraction, n.least - 2 + exponent);
    return bits >> 15 ? -magnitude : magnitude;
}

static bool narrowed(enum posenc_dtype type, float value)
{
    const double want = reference_rounded(type, (double)value, MPFR_RNDN);
    const double stored = (double)storage_widen(type, storage_narrow(type, value)),
                 rounded = (double)odd_to_type(type, (double)value);
    return (same_f64(stored, want) && same_f64(rounded, want)) ||
           disagree("%s of %a: stored as %a, %a by the oracle, MPFR %a", dtype_names[type],
                    (double)value, stored, rounded, want);
}

/* Each value, the middle between it and the next and the f32 values on both sides of that. */
static bool types(void)
{
    bool good = true;
    for (enum posenc_dtype type = POSENC_F16; type <= POSENC_BF16; type++)
        for (uint32_t bits = 0; bits <= UINT16_MAX && good; bits++) {
            const float value = storage_widen(type, (uint16_t)bits);
            const double want = value_of(type, (uint16_t)bits);
            good = same_f64((double)value, want) ||
                   disagree("%s %x widened: %a, not %a", dtype_names[type], (unsigned)bits,
                            (double)value, want);
            if (isnan(value) || isinf(value))
                continue;
            const double next = value_of(type, (uint16_t)(bits + 1));
            const double end =
                isinf(next) ? copysign(ldexp(1, narrow_of(type).largest), next) : next;
            const float middle = (float)(((double)value + end) / 2);
            good = good && narrowed(type, value) && narrowed(type, middle) &&
                   narrowed(type, nextafterf(middle, 0)) &&
                   narrowed(type, nextafterf(middle, middle < 0 ? -INFINITY : INFINITY));
        }
    return good;
}

bool certify_numbers(void) { return bigs() && angles() && products() && metrics() && types(); }
