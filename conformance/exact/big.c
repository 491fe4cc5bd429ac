/*
 * Arithmetic on floating-point numbers of 256 bits (see exact.h), with inverse square root, logarithm and exponential:
 *
 *     log a = k log 2 + 2 atanh((m - 1)/(m + 1)),  a = 2^k m,  3/4 <= m < 3/2
 *     exp a = 2^k (exp(r / 2^8))^(2^8),            a = k log 2 + r
 *
 * Rounding of expected values to the type that stores them, and errors in ulp. 16-bit values are rounded in f64 by
 * the distance of their neighbours, independently of the integer code in problem/storage.c.
 *
 * References: Brent and Zimmermann, "Modern Computer Arithmetic", 4.3, 4.4; Boldo and Melquiond, "Emulation of FMA
 * and correctly rounded sums", 2008 (rounding to odd).
 */
#include "exact.h"

#include <float.h>
#include <math.h>
#include <string.h>

const struct big big_two_pi = { .exponent = 3,
                                .m = { 0xc90fdaa22168c234, 0xc4c6628b80dc1cd1,
                                       0x29024e088a67cc74, 0x020bbea63b139b22 } };
static const struct big log_2 = { .exponent = 0,
                                  .m = { 0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af,
                                         0x40f343267298b62d, 0x8a0d175b8baafa2b } };

/* ---- Words of 64 bits, most significant first ---- */

/* Negates an integer modulo 2^(64 n). */
static void words_negate(uint64_t *words, int n)
{
    bool carry = true;
    for (int i = n - 1; i >= 0; i--) {
        words[i] = ~words[i] + carry;
        carry = carry && words[i] == 0;
    }
}

/* Shift by n >= 0 bits; bits shifted out are lost. Whole words move first, so that no index depends on n. That is
 * faster, and the oracle spends much of its time here. */
static void shift_right(uint64_t m[4], int64_t n)
{
    for (int words = 0; n >= 64 && words < 4; n -= 64, words++) {
        m[3] = m[2];
        m[2] = m[1];
        m[1] = m[0];
        m[0] = 0;
    }
    for (int i = 3; n > 0 && n < 64 && i >= 0; i--)
        m[i] = m[i] >> n | (i > 0 ? m[i - 1] << (64 - n) : 0);
}

static void shift_left(uint64_t m[4], int64_t n)
{
    for (int words = 0; n >= 64 && words < 4; n -= 64, words++) {
        m[0] = m[1];
        m[1] = m[2];
        m[2] = m[3];
        m[3] = 0;
    }
    for (int i = 0; n > 0 && n < 64 && i < 4; i++)
        m[i] = m[i] << n | (i < 3 ? m[i + 1] >> (64 - n) : 0);
}

static bool is_zero(struct big a) { return (a.m[0] | a.m[1] | a.m[2] | a.m[3]) == 0; }

struct big big_normalized(struct big a)
{
    int first = 0;
    if (a.m[0] >> 63)
        return a;
    while (first < 4 && a.m[first] == 0)
        first++;
    if (first == 4)
        return (struct big){ .negative = false };
    const int zeros = 64 * first + __builtin_clzll(a.m[first]);
    shift_left(a.m, zeros);
    a.exponent -= zeros;
    return a;
}

/* ---- Arithmetic ---- */

struct big big_integer(int64_t value)
{
    const uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    return big_normalized(
        (struct big){ .negative = value < 0, .exponent = 64, .m = { magnitude } });
}

struct big big_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int64_t exponent = (int64_t)(bits >> 52 & 0x7ff);
    const uint64_t implicit = exponent ? (uint64_t)1 << 63 : 0;
    return big_normalized((struct big){ .negative = value < 0,
                                        .exponent = (exponent ? exponent : 1) - 1022,
                                        .m = { implicit | bits << 12 >> 1 } });
}

struct big big_negate(struct big a)
{
    a.negative = !is_zero(a) && !a.negative;
    return a;
}

static int compare_magnitude(struct big a, struct big b)
{
    if (is_zero(a) || is_zero(b))
        return (int)is_zero(b) - (int)is_zero(a);
    if (a.exponent != b.exponent)
        return a.exponent < b.exponent ? -1 : 1;
    for (int i = 0; i < 4; i++)
        if (a.m[i] != b.m[i])
            return a.m[i] < b.m[i] ? -1 : 1;
    return 0;
}

int big_compare(struct big a, struct big b)
{
    if (a.negative != b.negative)
        return a.negative ? -1 : 1;
    return a.negative ? compare_magnitude(b, a) : compare_magnitude(a, b);
}

/* Returns |a| + |b| or |a| - |b| with the sign of a, where |a| >= |b|. */
static struct big add_magnitudes(struct big a, struct big b, bool subtract)
{
    const int64_t distance = a.exponent - b.exponent;
    if (is_zero(b) || distance >= 256)
        return a;
    shift_right(b.m, distance);
    if (subtract)
        words_negate(b.m, 4);
    u128 carry = 0;
    for (int i = 3; i >= 0; i--) {
        carry += (u128)a.m[i] + b.m[i];
        a.m[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (subtract)
        return big_normalized(a);
    if (carry) {
        shift_right(a.m, 1);
        a.m[0] |= (uint64_t)1 << 63;
        a.exponent++;
    }
    return a;
}

struct big big_add(struct big a, struct big b)
{
    const bool subtract = a.negative != b.negative;
    return compare_magnitude(a, b) >= 0 ? add_magnitudes(a, b, subtract)
                                        : add_magnitudes(b, a, subtract);
}

struct big big_subtract(struct big a, struct big b) { return big_add(a, big_negate(b)); }

/* Each zero word of a saves four multiplications, so the shorter factor should come first. */
struct big big_multiply(struct big a, struct big b)
{
    uint64_t product[8] = { 0 };
    for (int i = 3; i >= 0; i--) {
        u128 carry = 0;
        for (int j = 3; j >= 0 && a.m[i] != 0; j--) {
            carry += (u128)a.m[i] * b.m[j] + product[i + j + 1];
            product[i + j + 1] = (uint64_t)carry;
            carry >>= 64;
        }
        product[i] = (uint64_t)carry;
    }
    return big_normalized(
        (struct big){ .negative = a.negative != b.negative,
                      .inexact = a.inexact || b.inexact,
                      .exponent = a.exponent + b.exponent,
                      .m = { product[0], product[1], product[2], product[3] } });
}

/* Returns a / n for a small integer. */
static struct big divide_small(struct big a, uint64_t n)
{
    u128 rest = 0;
    for (int i = 0; i < 4; i++) {
        rest = rest << 64 | a.m[i];
        a.m[i] = (uint64_t)(rest / n);
        rest %= n;
    }
    return big_normalized(a);
}

/* Computes 1/b by Newton's method, q = q (2 - b q) from an f64 on, and corrects a q by its remainder. */
struct big big_divide(struct big a, struct big b)
{
    const int64_t exponent = a.exponent - b.exponent;
    const bool negative = a.negative != b.negative;
    a.exponent = b.exponent = 0;
    a.negative = b.negative = false;
    struct big q = big_double(0x1p64 / (double)b.m[0]);
    for (int k = 0; k < 3; k++)
        q = big_multiply(q, big_subtract(big_integer(2), big_multiply(b, q)));
    struct big c = big_multiply(a, q);
    c = big_add(c, big_multiply(q, big_subtract(a, big_multiply(c, b))));
    if (is_zero(c))
        return c;
    c.exponent += exponent;
    c.negative = negative;
    return c;
}

/* Newton's method, y = y (3 - a y^2) / 2 from an f64 on, for a between 1/2 and 2. */
struct big big_inverse_sqrt(struct big a)
{
    const int64_t half = (a.exponent - (a.exponent & 1)) / 2;
    a.exponent &= 1;
    struct big y = big_double(1.0 / sqrt(big_to_double(a)));
    for (int k = 0; k < 3; k++) {
        y = big_multiply(y, big_subtract(big_integer(3), big_multiply(a, big_multiply(y, y))));
        y.exponent--;
    }
    y.exponent -= half;
    return y;
}

struct big big_log(struct big a)
{
    int64_t k = a.exponent;
    a.exponent = 0; /* 1/2 <= a < 1 */
    if (a.m[0] < (uint64_t)3 << 62) {
        a.exponent = 1;
        k--;
    }
    const struct big one = big_integer(1);
    const struct big s = big_divide(big_subtract(a, one), big_add(a, one));
    const struct big square = big_multiply(s, s);
    struct big power = s, sum = s;
    for (uint64_t n = 3; !is_zero(power) && power.exponent > sum.exponent - 260; n += 2) {
        power = big_multiply(power, square);
        sum = big_add(sum, divide_small(power, n));
    }
    if (!is_zero(sum))
        sum.exponent++; /* 2 atanh */
    return big_add(sum, big_multiply(big_integer(k), log_2));
}

struct big big_exp(struct big a)
{
    const int64_t k = big_floor(big_add(big_divide(a, log_2), big_double(0.5)));
    struct big r = big_subtract(a, big_multiply(big_integer(k), log_2));
    r.exponent -= is_zero(r) ? 0 : 8;
    struct big term = big_integer(1), sum = term;
    for (uint64_t n = 1; !is_zero(term) && term.exponent > -264; n++) {
        term = divide_small(big_multiply(term, r), n);
        sum = big_add(sum, term);
    }
    for (int i = 0; i < 8; i++)
        sum = big_multiply(sum, sum);
    sum.exponent += k;
    return sum;
}

/* ---- Rounding ---- */

enum rounding { TO_NEAREST, TO_ODD };

/* Rounds to nearest even, or to odd, with `precision` bits, or fewer if the result is subnormal. `least_exponent` is
 * that of the least normal number. Negative `bits` mean a number below half of the least subnormal, which rounding to
 * odd makes that subnormal. */
static double round_big(struct big a, int precision, int64_t least_exponent, enum rounding mode)
{
    const int64_t lost = least_exponent - (a.exponent - 1),
                  bits = precision - (lost > 0 ? lost : 0);
    const uint64_t half = (uint64_t)1 << 63, rest = bits > 0 ? a.m[0] << bits : a.m[0];
    const bool below = (a.m[1] | a.m[2] | a.m[3]) != 0 || a.inexact;
    uint64_t kept = bits > 0 ? a.m[0] >> (64 - bits) : 0;
    if (mode == TO_ODD)
        kept |= rest != 0 || below;
    else if (bits >= 0)
        kept += rest > half || (rest == half && (below || (kept & 1)));
    const int64_t last = a.exponent - bits; /* exponent of the last bit that is kept */
    double magnitude = mode == TO_ODD ? DBL_MAX : (double)INFINITY;
    if (a.exponent <= 1024)
        magnitude = last >= -1022 ? (double)kept * exact_pow2((int)last)
                                  : ldexp((double)kept, (int)last);
    return a.negative ? -magnitude : magnitude;
}

float big_to_float(struct big a) { return (float)round_big(a, 24, -126, TO_NEAREST); }

double big_to_double(struct big a) { return round_big(a, 53, -1022, TO_NEAREST); }

double big_times(struct big a, double factor)
{
    const bool negative = a.negative != (signbit(factor) != 0);
    if (is_zero(a) || factor == 0)
        return negative ? -0.0 : 0.0;
    return round_big(factor == 1 ? a : big_multiply(a, big_double(factor)), 53, -1022, TO_ODD);
}

double exact_add_to_odd(double a, double b)
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
    return nextafter(sum, rest > 0 ? (double)INFINITY : -(double)INFINITY);
}

/* ---- Integers and fractions ---- */

int64_t big_floor(struct big a)
{
    if (is_zero(a))
        return 0;
    if (a.exponent <= 0)
        return a.negative ? -1 : 0;
    const int64_t whole = (int64_t)(a.m[0] >> (64 - a.exponent));
    const bool rest = (a.m[0] << a.exponent | a.m[1] | a.m[2] | a.m[3]) != 0;
    return a.negative ? -whole - rest : whole;
}

void big_fraction(struct big a, uint64_t fraction[3])
{
    if (a.exponent > 0)
        shift_left(a.m, a.exponent);
    else
        shift_right(a.m, -a.exponent);
    memcpy(fraction, a.m, 3 * sizeof *fraction);
    if (a.negative)
        words_negate(fraction, 3);
}

/* ---- Stored types ---- */

float exact_round_f32(double want) { return (float)want; }

/* Formats of types: bits of the fraction, exponents of the least normal value and past the largest value. */
static const struct {
    int fraction, least, beyond;
} formats[] = { [POSENC_DTYPE_F32] = { 23, -126, 128 },
                [POSENC_DTYPE_F16] = { 10, -14, 16 },
                [POSENC_DTYPE_BF16] = { 7, -126, 128 } };

/* Subnormal values are as far apart as the least normal ones. Beyond the largest value the distance is that just
 * below it. */
double exact_ulp(enum posenc_dtype type, double magnitude)
{
    const int least = formats[type].least, most = formats[type].beyond - 1;
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    exponent = exponent < least ? least : exponent > most ? most : exponent;
    return exact_pow2(exponent - formats[type].fraction);
}

float exact_round(enum posenc_dtype type, double want)
{
    const double value = (double)exact_round_f32(want);
    if (type == POSENC_DTYPE_F32 || !isfinite(value) || value == 0)
        return (float)value;
    const double ulp = exact_ulp(type, fabs(value));
    const double rounded = nearbyint(fabs(value) / ulp) * ulp; /* ties to even */
    const bool is_finite = rounded < exact_pow2(formats[type].beyond);
    return (float)copysign(is_finite ? rounded : (double)INFINITY, value);
}

double exact_ulp_error(float got, double want) { return exact_pair_ulp_error(got, want, want); }

double exact_pair_ulp_error(float got, double want, double magnitude)
{
    const double wrong = (double)INFINITY;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : wrong;
    if (isinf(got) || isinf(want))
        return got == exact_round_f32(want) ? 0.0 : wrong;
    if (magnitude == 0 && want == 0 && got == 0) /* an exact zero has a sign */
        return (signbit(got) != 0) == (signbit(want) != 0) ? 0.0 : wrong;
    return fabs((double)got - want) /
           exact_ulp(POSENC_DTYPE_F32, fabs(magnitude != 0 ? magnitude : want));
}

struct stored_error exact_stored_error(enum posenc_dtype type, float got, double want,
                                       double within)
{
    struct stored_error e = { .error = (double)INFINITY, .limit = 0.5 };
    if (isnan(want) || isnan(got) || isinf(want)) {
        e.error = (isnan(want) && isnan(got)) || (double)got == want ? 0.0 : e.error;
        return e;
    }
    const double ulp = exact_ulp(type, fabs(want));
    const float ends[2] = { exact_round(type, want - within),
                            exact_round(type, want + within) };
    for (int i = 0; i < 2; i++)
        if (isfinite(ends[i]))
            e.limit = fmax(e.limit, fabs((double)ends[i] - want) / ulp);
    if (isinf(got))
        e.error = got == ends[0] || got == ends[1] ? 0.0 : e.error;
    else if (isfinite(ends[0]) || isfinite(ends[1]))
        e.error = fabs((double)got - want) / ulp;
    else if (ends[0] != ends[1]) /* infinities of both signs: every value lies between them */
        e.error = 0.0;
    return e;
}
