/*
 * Sines by Taylor series in fixed point, and rounding to odd.
 *
 *     sin x = x (1 - x^2/3! + x^4/5! - ...),    0 <= x <= pi/4
 *     cos x = 1 - x^2/2! + x^4/4! - ...
 *
 * x keeps 128 significant bits however small it is, so the sine next to a zero is as right as
 * any.  Rounding to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
 * 2008): cut, then set the last bit if anything was lost; rounding again to 51 bits or fewer is
 * then right.
 */
#include "fixed.h"

#include <math.h>
#include <string.h>

/* 1/(2k+1)! and 1/(2k)! in 2^-127. */
static const uint64_t sine_terms[][2] = {
    { 0x8000000000000000, 0x0000000000000000 }, { 0x1555555555555555, 0x5555555555555555 },
    { 0x0111111111111111, 0x1111111111111111 }, { 0x0006806806806806, 0x8068068068068068 },
    { 0x0000171de3a556c7, 0x338faac1c88e5001 }, { 0x00000035cc8acfea, 0x89c71fce8fc97070 },
    { 0x000000005849184e, 0xa1b425f28e0cc749 }, { 0x00000000006b9fcf, 0x9ccee07c476195ac },
    { 0x000000000000654b, 0x1dc0c2b529ac9814 }, { 0x000000000000004b, 0xd26d1a05055c9328 },
    { 0x0000000000000000, 0x2e371dedb9eae318 }, { 0x0000000000000000, 0x001761b41316381a },
    { 0x0000000000000000, 0x000009f9e66e8b30 }, { 0x0000000000000000, 0x00000003a356385c },
    { 0x0000000000000000, 0x0000000001259f99 }, { 0x0000000000000000, 0x00000000000050d3 },
    { 0x0000000000000000, 0x0000000000000014 },
};
static const uint64_t cosine_terms[][2] = {
    { 0x8000000000000000, 0x0000000000000000 }, { 0x4000000000000000, 0x0000000000000000 },
    { 0x0555555555555555, 0x5555555555555555 }, { 0x002d82d82d82d82d, 0x82d82d82d82d82d8 },
    { 0x0000d00d00d00d00, 0xd00d00d00d00d00d }, { 0x0000024fc9f6ef13, 0xeb8e5de02da7d4cd },
    { 0x000000047bb63bfe, 0x3625ed5136a61eb4 }, { 0x00000000064e5d2a, 0x301f27482eb7c517 },
    { 0x000000000006b9fc, 0xf9ccee07c476195b }, { 0x00000000000005a0, 0x9e18ee5f65deec01 },
    { 0x0000000000000003, 0xca8574804044a0f5 }, { 0x0000000000000000, 0x0219c72db6ff0a53 },
    { 0x0000000000000000, 0x0000f96780cb97ac }, { 0x0000000000000000, 0x000000623a17f1a9 },
    { 0x0000000000000000, 0x000000002143144c }, { 0x0000000000000000, 0x000000000009c996 },
    { 0x0000000000000000, 0x0000000000000287 }, { 0x0000000000000000, 0x0000000000000001 },
};

/* The most significant half of a product. */
static inline u128 multiply_high(u128 a, u128 b)
{
    const uint64_t a1 = (uint64_t)(a >> 64), a0 = (uint64_t)a;
    const uint64_t b1 = (uint64_t)(b >> 64), b0 = (uint64_t)b;
    const u128 low = (u128)a0 * b0, middle = (u128)a1 * b0, other = (u128)a0 * b1;
    const u128 carry = (low >> 64) + (uint64_t)middle + (uint64_t)other;
    return (u128)a1 * b1 + (middle >> 64) + (other >> 64) + (carry >> 64);
}

static void real_normalize(struct real *a)
{
    const uint64_t high = (uint64_t)(a->mantissa >> 64);
    if (a->mantissa == 0)
        return;
    const int shift =
        high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)a->mantissa);
    a->mantissa <<= shift;
    a->exponent -= shift;
}

/* Alternating series in y (units of 2^-128), result in 2^-127, always below one: what is left
 * out of an inexact one must not round it up to one. */
static u128 series(const uint64_t (*terms)[2], int n, u128 y)
{
    u128 sum = ((u128)terms[n - 1][0] << 64) | terms[n - 1][1];
    for (int k = n - 2; k >= 0; k--)
        sum = (((u128)terms[k][0] << 64) | terms[k][1]) - multiply_high(sum, y);
    const u128 one = (u128)1 << 127;
    return sum < one ? sum : one - 1;
}

/* How many of a series' terms count where y is below 2^exponent: those above 2^-130. */
static int terms_needed(const uint64_t (*terms)[2], int n, int64_t exponent)
{
    for (; n > 2; n--) {
        const uint64_t high = terms[n - 1][0], low = terms[n - 1][1];
        const int zeros = high ? __builtin_clzll(high) : 64 + __builtin_clzll(low);
        if (zeros - 1 - exponent * (n - 1) <= 130)
            break;
    }
    return n;
}

void fixed_sincos_small(struct real x, struct real *sine, struct real *cosine)
{
    u128 y = multiply_high(x.mantissa, x.mantissa);
    const int64_t shift = -2 * x.exponent;
    y = shift < 128 ? y >> shift : 0;
    const int n_sine = terms_needed(sine_terms, sizeof sine_terms / sizeof *sine_terms, -shift);
    const int n_cosine =
        terms_needed(cosine_terms, sizeof cosine_terms / sizeof *cosine_terms, -shift);
    sine->negative = cosine->negative = false;
    sine->exact = cosine->exact = false;
    sine->mantissa = multiply_high(x.mantissa, series(sine_terms, n_sine, y) << 1);
    sine->exponent = x.exponent;
    cosine->mantissa = series(cosine_terms, n_cosine, y) << 1;
    cosine->exponent = 0;
    real_normalize(sine);
    real_normalize(cosine);
}

static void sincos_zero(struct real *sine, struct real *cosine)
{
    *sine = (struct real){ .exact = true };
    *cosine = (struct real){ .exact = true, .exponent = 1, .mantissa = (u128)1 << 127 };
}

/* pi/4 in 2^-128. */
#define QUARTER_PI (((u128)0xc90fdaa22168c234 << 64) | 0xc4c6628b80dc1cd1)

void fixed_sincos_phase(const uint64_t phase[3], struct real *sine, struct real *cosine)
{
    const unsigned quadrant = (unsigned)(phase[0] >> 62);
    uint64_t r[3] = { phase[0] & (UINT64_MAX >> 2), phase[1], phase[2] };
    const bool mirror = (r[0] >> 61) != 0; /* beyond the eighth: sin x = cos(quarter - x) */
    if (mirror) {
        r[2] = ~r[2] + 1;
        r[1] = ~r[1] + (r[2] == 0);
        r[0] = ((uint64_t)1 << 62) - 1 - r[0] + (r[2] == 0 && r[1] == 0);
    }
    struct real s, c;
    if ((r[0] | r[1] | r[2]) == 0) {
        sincos_zero(&s, &c);
    } else {
        struct real x = { .exponent = 3 };
        while (r[0] == 0) {
            r[0] = r[1];
            r[1] = r[2];
            r[2] = 0;
            x.exponent -= 64;
        }
        const int shift = __builtin_clzll(r[0]);
        x.exponent -= shift;
        x.mantissa = (((u128)r[0] << 64) | r[1]) << shift;
        if (shift)
            x.mantissa |= r[2] >> (64 - shift);
        x.mantissa = multiply_high(x.mantissa, QUARTER_PI);
        real_normalize(&x);
        fixed_sincos_small(x, &s, &c);
    }
    const bool swap = mirror != ((quadrant & 1) != 0);
    *sine = swap ? c : s;
    *cosine = swap ? s : c;
    sine->negative = quadrant >= 2 && sine->mantissa != 0;
    cosine->negative = (quadrant == 1 || quadrant == 2) && cosine->mantissa != 0;
}

/* 1/(2 pi) in 2^-320: 60 bits of the angle's exponent, 62 of the worst cancellation,
 * 192 kept. */
static const uint64_t inverse_turn[5] = { 0x28be60db9391054a, 0x7f09d5f47d4d3770,
                                          0x36d8a5664f10e410, 0x7f9458eaf7aef158,
                                          0x6dc91b8e909374b8 };

/* frac(integer 2^exponent / (2 pi)), integer < 2^53, -54 <= exponent <= 7. */
static void angle_phase(uint64_t integer, int exponent, uint64_t phase[3])
{
    uint64_t product[6]; /* [0] counts whole turns, [1..5] the fraction, before the exponent */
    u128 carry = 0;
    for (int i = 4; i >= 0; i--) {
        carry += (u128)integer * inverse_turn[i];
        product[i + 1] = (uint64_t)carry;
        carry >>= 64;
    }
    product[0] = (uint64_t)carry;
    for (int i = 0; i < 3; i++) {
        if (exponent > 0)
            phase[i] = (product[i + 1] << exponent) | (product[i + 2] >> (64 - exponent));
        else if (exponent == 0)
            phase[i] = product[i + 1];
        else
            phase[i] = (product[i + 1] >> -exponent) | (product[i] << (64 + exponent));
    }
}

void fixed_sincos(double angle, struct real *sine, struct real *cosine)
{
    int exponent;
    const double fraction = frexp(fabs(angle), &exponent);
    const uint64_t integer = (uint64_t)ldexp(fraction, 53);
    if (integer == 0) {
        sincos_zero(sine, cosine);
    } else if (exponent < 0) { /* below 1/2: no reduction, and as exact as it came */
        const struct real x = { .exponent = exponent, .mantissa = (u128)integer << 75 };
        fixed_sincos_small(x, sine, cosine);
    } else {
        uint64_t phase[3];
        angle_phase(integer, exponent - 53, phase);
        fixed_sincos_phase(phase, sine, cosine);
    }
    if (signbit(angle))
        sine->negative = !sine->negative;
}

/* (-1)^negative mantissa 2^(exponent - 128) to odd; `inexact`: something lies beyond the
 * mantissa. */
static double to_odd(bool negative, u128 mantissa, int64_t exponent, bool inexact)
{
    int64_t bits = 53;
    if (exponent - 1 < -1022)
        bits = exponent - 1 + 1022 + 53; /* subnormal: fewer */
    double magnitude;
    if (exponent > 1024) {
        magnitude = 0x1.fffffffffffffp1023;
    } else if (bits <= 0) {
        magnitude = 0x1p-1074;
    } else {
        uint64_t kept = (uint64_t)(mantissa >> (128 - bits));
        kept |= inexact || mantissa << bits != 0;
        magnitude = ldexp((double)kept, (int)(exponent - bits));
    }
    return negative ? -magnitude : magnitude;
}

double real_times(struct real value, double factor)
{
    const bool negative = value.negative != (signbit(factor) != 0);
    if (value.mantissa == 0 || factor == 0)
        return negative ? -0.0 : 0.0;
    int exponent;
    const double fraction = frexp(fabs(factor), &exponent);
    if (fraction == 0.5) /* a power of two, such as 1 */
        return to_odd(negative, value.mantissa, value.exponent + exponent - 1, !value.exact);
    const uint64_t f = (uint64_t)ldexp(fraction, 64);
    const u128 low = (u128)(uint64_t)value.mantissa * f;
    u128 high = (u128)(uint64_t)(value.mantissa >> 64) * f + (low >> 64);
    bool inexact = !value.exact || (uint64_t)low != 0;
    int64_t product_exponent = value.exponent + exponent;
    if (!(high >> 127)) {
        high = (high << 1) | ((uint64_t)low >> 63);
        product_exponent--;
    }
    return to_odd(negative, high, product_exponent, inexact);
}

double add_to_odd(double a, double b)
{
    const double sum = a + b;
    if (!isfinite(sum))
        return sum;
    const double b_part = sum - a; /* the error of the sum is an f64 (Knuth's two-sum) */
    const double rest = (a - (sum - b_part)) + (b - b_part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest == 0 || (bits & 1))
        return sum;
    bits = (rest > 0) == (sum > 0) ? bits + 1 : bits - 1;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}
