/*
 * Sines and cosines by Taylor series in fixed-point integers.
 *
 *     sin x = x (1 - x^2/3! + x^4/5! - ...),    0 <= x <= pi/4
 *     cos x = 1 - x^2/2! + x^4/4! - ...
 *
 * x keeps 128 significant bits however small it is, so sines near a zero are as accurate as others.
 */
#include "exact.h"

#include <math.h>
#include <pthread.h>

#define ONE ((u128)1 << 127)
enum { TERMS = 17 };

/* 1/n! in units of 2^-127, truncated. */
static u128 inverse_factorial[2 * TERMS + 1];

static void fill_factorials(void)
{
    inverse_factorial[0] = ONE;
    for (unsigned n = 1; n <= 2 * TERMS; n++)
        inverse_factorial[n] = inverse_factorial[n - 1] / n;
}

/* Returns the most significant half of a product. */
static inline u128 multiply_high(u128 a, u128 b)
{
    const uint64_t a1 = (uint64_t)(a >> 64), a0 = (uint64_t)a;
    const uint64_t b1 = (uint64_t)(b >> 64), b0 = (uint64_t)b;
    const u128 low = (u128)a0 * b0, middle = (u128)a1 * b0, other = (u128)a0 * b1;
    const u128 carry = (low >> 64) + (uint64_t)middle + (uint64_t)other;
    return (u128)a1 * b1 + (middle >> 64) + (other >> 64) + (carry >> 64);
}

static u128 leading_bits(struct big a) { return (u128)a.m[0] << 64 | a.m[1]; }

static struct big make_inexact(u128 mantissa, int64_t exponent)
{
    return big_normalized(
        (struct big){ .inexact = true,
                      .exponent = exponent,
                      .m = { (uint64_t)(mantissa >> 64), (uint64_t)mantissa } });
}

/* Returns the alternating series 1/first! - y/(first + 2)! + ... in units of 2^-127. y is in units of 2^-128 and
 * below 2^exponent. Terms that are 0 in these units are skipped. The result stays below 1, so that an inexact value
 * does not become 1. */
static u128 sum_series(int first, u128 y, int64_t exponent)
{
    int n = first + 2 * (TERMS - 1);
    while (n > 3 &&
           (exponent * (n / 2) <= -128 || (inverse_factorial[n] >> (-exponent * (n / 2))) == 0))
        n -= 2;
    uint64_t tail = 0;
    for (; n > 20; n -= 2) /* terms so small that 64 bits suffice */
        tail =
            (uint64_t)inverse_factorial[n] - (uint64_t)((u128)tail * (uint64_t)(y >> 64) >> 64);
    u128 sum = tail;
    for (; n >= 0; n -= 2)
        sum = inverse_factorial[n] - multiply_high(sum, y);
    return sum < ONE ? sum : ONE - 1;
}

/* Computes sin and cos of 0 < x <= pi/4. */
static void sincos_small(struct big x, struct big *sine, struct big *cosine)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill_factorials);
    const u128 square = multiply_high(leading_bits(x), leading_bits(x));
    const int64_t shift = -2 * x.exponent;
    const u128 y = shift < 128 ? square >> shift : 0;
    *sine =
        make_inexact(multiply_high(leading_bits(x), sum_series(1, y, -shift) << 1), x.exponent);
    *cosine = make_inexact(sum_series(0, y, -shift) << 1, 0);
}

/* Returns true if a distance, in quarter turns, to an angle with a rational sine is mere truncation error. At 2^31
 * positions, a frequency truncated to 192 bits is off by less than 2^-159 quarter turns. No other frequency in use
 * comes so near. */
static bool is_negligible(struct big a) { return a.m[0] == 0 || a.exponent < -150; }

/* Returns the integer nearest to a, 0 <= a < 2^62, halves up. */
static int64_t nearest_integer(struct big a)
{
    if (a.exponent <= 0)
        return a.exponent == 0 && a.m[0] != 0;
    return (int64_t)(((a.m[0] >> (63 - a.exponent)) + 1) >> 1);
}

/* Among rational fractions of a turn, only twelfths have a rational sine or cosine (Niven's theorem). If a wavelength
 * is an integer, the angle of a position can be one of them: a multiple of a quarter turn, or a twelfth of a turn
 * before or after one. Such sines and cosines must be exact. */
void big_sincos_time(struct big turns, double time, struct big *sine, struct big *cosine)
{
    static const struct big third = { .exponent = -1,
                                      .m = { UINT64_MAX / 3 * 2, UINT64_MAX / 3 * 2,
                                             UINT64_MAX / 3 * 2, UINT64_MAX / 3 * 2 } };
    struct big quarters = big_multiply(big_double(fabs(time)), turns), s, c;
    quarters.exponent += 2;
    const int64_t whole = nearest_integer(quarters);
    struct big rest = big_subtract(quarters, big_integer(whole));
    const bool negative = rest.negative;
    rest.negative = false;
    if (rest.m[0] == 0 || (whole != 0 && is_negligible(rest))) {
        s = big_integer(0);
        c = big_integer(1);
    } else {
        struct big angle = big_multiply(rest, big_two_pi);
        angle.exponent -= 2;
        sincos_small(angle, &s, &c);
        /* The leading words differ by at most 1: a quick test that most fractions fail. */
        if (rest.m[0] - third.m[0] + 1 <= 2 && is_negligible(big_subtract(rest, third)))
            s = big_double(0.5);
        s.negative = negative;
    }
    *sine = whole & 1 ? c : s;
    *cosine = whole & 1 ? s : c;
    if (whole & 2)
        *sine = big_negate(*sine);
    if ((whole + 1) & 2)
        *cosine = big_negate(*cosine);
    if (signbit(time)) /* also for -0: an unrotated pair before position 0 */
        sine->negative = !sine->negative;
}

void big_sincos(double angle, struct big *sine, struct big *cosine)
{
    static const struct big inverse_turn = { .exponent = -2,
                                             .m = { 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
                                                    0xdb6295993c439041, 0xfe5163abdebbc561 } };
    big_sincos_time(inverse_turn, angle, sine, cosine);
}

void exact_sincos_turn(const uint64_t turn[3], int64_t position, double *sine, double *cosine)
{
    struct big s, c;
    const struct big turns = { .m = { turn[0], turn[1], turn[2] } };
    big_sincos_time(big_normalized(turns), (double)position, &s, &c);
    *sine = big_times(s, 1.0);
    *cosine = big_times(c, 1.0);
}

void exact_sincos(double angle, double *sine, double *cosine)
{
    struct big s, c;
    *sine = *cosine = (double)NAN;
    if (!(fabs(angle) < 0x1p60))
        return;
    big_sincos(angle, &s, &c);
    *sine = big_times(s, 1.0);
    *cosine = big_times(c, 1.0);
}
