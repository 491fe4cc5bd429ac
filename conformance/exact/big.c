/*
 * Floating numbers of 256 bits: just what frequencies need.
 *
 *     log a = k log 2 + 2 atanh((m - 1)/(m + 1)),  a = 2^k m,  3/4 <= m < 3/2
 *     exp a = 2^k (exp(r / 2^8))^(2^8),            a = k log 2 + r
 *
 * Reference: Brent and Zimmermann, "Modern Computer Arithmetic", 4.4 (series), 4.3.
 */
#include "fixed.h"

#include <math.h>
#include <string.h>

static bool is_zero(struct big a) { return (a.m[0] | a.m[1] | a.m[2] | a.m[3]) == 0; }

/* Of what is shifted out nothing is kept. */
static void shift_left(uint64_t m[4], int64_t n)
{
    for (; n >= 64 && (m[0] | m[1] | m[2] | m[3]); n -= 64) {
        memmove(m, m + 1, 3 * sizeof *m);
        m[3] = 0;
    }
    for (int i = 0; n > 0 && n < 64 && i < 4; i++)
        m[i] = (m[i] << n) | (i < 3 ? m[i + 1] >> (64 - n) : 0);
}

static int leading_zeros(const struct big *a)
{
    int word = 0;
    while (a->m[word] == 0)
        word++;
    return 64 * word + __builtin_clzll(a->m[word]);
}

static struct big normalized(struct big a)
{
    if (is_zero(a))
        return (struct big){ .negative = false };
    const int shift = leading_zeros(&a);
    shift_left(a.m, shift);
    a.exponent -= shift;
    return a;
}

static void shift_right(uint64_t m[4], int64_t n)
{
    for (; n >= 64; n -= 64) {
        memmove(m + 1, m, 3 * sizeof *m);
        m[0] = 0;
        if ((m[1] | m[2] | m[3]) == 0)
            return;
    }
    if (n == 0)
        return;
    for (int i = 3; i > 0; i--)
        m[i] = (m[i] >> n) | (m[i - 1] << (64 - n));
    m[0] >>= n;
}

struct big big_integer(int64_t value)
{
    struct big a = { .negative = value < 0, .exponent = 64 };
    a.m[0] = value < 0 ? -(uint64_t)value : (uint64_t)value;
    return normalized(a);
}

struct big big_double(double value)
{
    int exponent;
    const double fraction = frexp(fabs(value), &exponent);
    struct big a = { .negative = value < 0, .exponent = exponent };
    a.m[0] = (uint64_t)ldexp(fraction, 53) << 11;
    return normalized(a);
}

struct big big_pi(void)
{
    return (struct big){ false,
                         2,
                         { 0xc90fdaa22168c234, 0xc4c6628b80dc1cd1, 0x29024e088a67cc74,
                           0x020bbea63b139b22 } };
}

static struct big log_2(void)
{
    return (struct big){ false,
                         0,
                         { 0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af, 0x40f343267298b62d,
                           0x8a0d175b8baafa2b } };
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

/* |a| + |b| or |a| - |b|, |a| >= |b|, with the sign of a. */
static struct big combine(struct big a, struct big b, bool subtract)
{
    const int64_t distance = a.exponent - b.exponent;
    if (is_zero(b) || distance >= 256)
        return a;
    shift_right(b.m, distance);
    if (subtract) {
        uint64_t borrow = 0;
        for (int i = 3; i >= 0; i--) {
            const u128 d = (u128)a.m[i] - b.m[i] - borrow;
            a.m[i] = (uint64_t)d;
            borrow = (uint64_t)(d >> 64) & 1;
        }
        return normalized(a);
    }
    u128 carry = 0;
    for (int i = 3; i >= 0; i--) {
        carry += (u128)a.m[i] + b.m[i];
        a.m[i] = (uint64_t)carry;
        carry >>= 64;
    }
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
    return compare_magnitude(a, b) >= 0 ? combine(a, b, subtract) : combine(b, a, subtract);
}

struct big big_subtract(struct big a, struct big b) { return big_add(a, big_negate(b)); }

struct big big_multiply(struct big a, struct big b)
{
    uint64_t product[8] = { 0 };
    for (int i = 3; i >= 0; i--) {
        u128 carry = 0;
        for (int j = 3; j >= 0; j--) {
            carry += (u128)a.m[i] * b.m[j] + product[i + j + 1];
            product[i + j + 1] = (uint64_t)carry;
            carry >>= 64;
        }
        product[i] = (uint64_t)carry;
    }
    struct big c = { .negative = a.negative != b.negative,
                     .exponent = a.exponent + b.exponent };
    memcpy(c.m, product, sizeof c.m);
    if (is_zero(c))
        return (struct big){ .negative = false };
    if (!(c.m[0] >> 63)) { /* one bit from the fifth word, so that nothing is lost */
        c = normalized(c);
        c.m[3] |= product[4] >> 63;
    }
    return c;
}

/* a / n for a small integer. */
static struct big divide_small(struct big a, uint64_t n)
{
    uint64_t remainder = 0;
    uint64_t next = 0;
    for (int i = 0; i < 5; i++) {
        const u128 part = ((u128)remainder << 64) | (i < 4 ? a.m[i] : 0);
        const uint64_t quotient = (uint64_t)(part / n);
        remainder = (uint64_t)(part % n);
        if (i < 4)
            a.m[i] = quotient;
        else
            next = quotient;
    }
    if (is_zero(a))
        return a;
    const int shift = leading_zeros(&a);
    a = normalized(a);
    if (shift >= 64) {
        a.m[3] = shift == 64 ? next : a.m[3] | next << (shift - 64);
    } else if (shift) {
        a.m[3] |= next >> (64 - shift);
    }
    return a;
}

/* Newton: q = q (2 - b q) from an f64 seed, then one correction with the remainder. */
struct big big_divide(struct big a, struct big b)
{
    const bool negative = a.negative != b.negative;
    const struct big d = { .exponent = 0, .m = { b.m[0], b.m[1], b.m[2], b.m[3] } };
    struct big q = big_double(0x1p64 / (double)b.m[0]);
    for (int k = 0; k < 3; k++)
        q = big_multiply(q, big_subtract(big_integer(2), big_multiply(d, q)));
    struct big scaled = a;
    scaled.negative = false;
    scaled.exponent = 0;
    struct big c = big_multiply(scaled, q);
    c = big_add(c, big_multiply(q, big_subtract(scaled, big_multiply(c, d))));
    if (is_zero(c))
        return c;
    c.exponent += a.exponent - b.exponent;
    c.negative = negative;
    return c;
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
    return big_add(sum, big_multiply(big_integer(k), log_2()));
}

struct big big_exp(struct big a)
{
    struct big half = { .exponent = 0, .m = { (uint64_t)1 << 63 } };
    const int64_t k = big_floor(big_add(big_divide(a, log_2()), half));
    struct big r = big_subtract(a, big_multiply(big_integer(k), log_2()));
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

/* The first `bits` bits of the mantissa, rounded to nearest even. */
static uint64_t leading(const struct big *a, int64_t bits)
{
    if (bits < 0)
        return 0;
    const uint64_t kept = bits ? a->m[0] >> (64 - bits) : 0;
    const uint64_t rest = a->m[0] << bits;
    const uint64_t half = (uint64_t)1 << 63;
    const bool below = (a->m[1] | a->m[2] | a->m[3]) != 0;
    const bool up = rest > half || (rest == half && (below || (kept & 1)));
    return kept + up;
}

static double rounded(struct big a, int precision, int64_t least_exponent)
{
    if (is_zero(a))
        return 0;
    int64_t bits = precision;
    if (a.exponent - 1 < least_exponent)
        bits -= least_exponent - (a.exponent - 1);
    if (a.exponent > 2000)
        return a.negative ? -(double)INFINITY : (double)INFINITY;
    if (bits < 0)
        return a.negative ? -0.0 : 0.0;
    const double magnitude = ldexp((double)leading(&a, bits), (int)(a.exponent - bits));
    return a.negative ? -magnitude : magnitude;
}

float big_to_float(struct big a) { return (float)rounded(a, 24, -126); }

double big_to_double(struct big a) { return rounded(a, 53, -1022); }

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
    memset(fraction, 0, 3 * sizeof *fraction);
    uint64_t m[4];
    memcpy(m, a.m, sizeof m);
    if (a.exponent <= 0)
        shift_right(m, -a.exponent);
    else
        shift_left(m, a.exponent);
    memcpy(fraction, m, 3 * sizeof *fraction);
    if (a.negative && (fraction[0] | fraction[1] | fraction[2])) {
        fraction[2] = ~fraction[2] + 1;
        fraction[1] = ~fraction[1] + (fraction[2] == 0);
        fraction[0] = ~fraction[0] + (fraction[2] == 0 && fraction[1] == 0);
    }
}
