/*
 * Logarithm, exponential, cosine and sine in double-double, and fractions of a turn in 128 bits.
 *
 *   log   x = m 2^k, s = (m-1)/(m+1):   k ln 2 + 2 (s + s^3/3 + s^5/5 + ...)
 *   exp   x = k ln 2 + r, |r| <= 0.35: 2^k (1 + r + r^2/2! + ...)
 *   cos, sin   the phase is reduced by integer arithmetic to at most 1/8 of a turn from a multiple
 *              of 1/4; then the Taylor series
 *
 * Only fma(), frexp(), ldexp() and rint() of libm are called, whose results IEEE 754 defines.
 */
#include "dd.h"

/* Constants as sums of doubles. Each part is the rest, rounded to nearest. */
static const double ln2[3] = { 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56,
                               0x1.7b57a079a1934p-111 };
static const struct dd two_pi = { 0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52 };
static const double inverse_two_pi[3] = { 0x1.45f306dc9c883p-3, -0x1.6b01ec5417056p-57,
                                          -0x1.6447e493ad4cep-111 };
const struct dd posenc_dd_pi = { 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53 };

/* clang-format off */
const struct dd posenc_dd_inverse_factorial[31] = {
    { 1.0, 0.0 }, { 1.0, 0.0 },
    { 0.5, 0.0 }, { 0x1.5555555555555p-3, 0x1.5555555555555p-57 },
    { 0x1.5555555555555p-5, 0x1.5555555555555p-59 }, { 0x1.1111111111111p-7, 0x1.1111111111111p-63 },
    { 0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65 }, { 0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73 },
    { 0x1.a01a01a01a01ap-16, 0x1.a01a01a01a01ap-76 }, { 0x1.71de3a556c734p-19, -0x1.c154f8ddc6c00p-73 },
    { 0x1.27e4fb7789f5cp-22, 0x1.cbbc05b4fa99ap-76 }, { 0x1.ae64567f544e4p-26, -0x1.c062e06d1f209p-80 },
    { 0x1.1eed8eff8d898p-29, -0x1.2aec959e14c06p-83 }, { 0x1.6124613a86d09p-33, 0x1.f28e0cc748ebep-87 },
    { 0x1.93974a8c07c9dp-37, 0x1.05d6f8a2efd1fp-92 }, { 0x1.ae7f3e733b81fp-41, 0x1.1d8656b0ee8cbp-97 },
    { 0x1.ae7f3e733b81fp-45, 0x1.1d8656b0ee8cbp-101 }, { 0x1.952c77030ad4ap-49, 0x1.ac981465ddc6cp-103 },
    { 0x1.6827863b97d97p-53, 0x1.eec01221a8b0bp-107 }, { 0x1.2f49b46814157p-57, 0x1.2650f61dbdcb4p-112 },
    { 0x1.e542ba4020225p-62, 0x1.ea72b4afe3c2fp-120 }, { 0x1.71b8ef6dcf572p-66, -0x1.d043ae40c4647p-120 },
    { 0x1.0ce396db7f853p-70, -0x1.aebcdbd20331cp-124 }, { 0x1.761b41316381ap-75, -0x1.3423c7d91404fp-130 },
    { 0x1.f2cf01972f578p-80, -0x1.9ada5fcc1ab14p-135 }, { 0x1.3f3ccdd165fa9p-84, -0x1.58ddadf344487p-139 },
    { 0x1.88e85fc6a4e5ap-89, -0x1.71c37ebd16540p-143 }, { 0x1.d1ab1c2dccea3p-94, 0x1.054d0c78aea14p-149 },
    { 0x1.0a18a2635085dp-98, 0x1.b9e2e28e1aa54p-153 }, { 0x1.259f98b4358adp-103, 0x1.eaf8c39dd9bc5p-157 },
    { 0x1.3932c5047d60ep-108, 0x1.832b7b530a627p-162 },
};
/* clang-format on */

/* Returns the sum of z^j / (first + step j)! for j < n_terms. Terms from n_dd on are so small that doubles suffice for
 * them. */
static struct dd series(struct dd z, int first, int step, int n_dd, int n_terms)
{
    double tail = 0.0;
    for (int j = n_terms - 1; j >= n_dd; j--)
        tail = fma(tail, z.hi, posenc_dd_inverse_factorial[first + step * j].hi);
    struct dd sum = dd_from(tail);
    for (int j = n_dd - 1; j >= 0; j--)
        sum = dd_add(dd_mul(sum, z), posenc_dd_inverse_factorial[first + step * j]);
    return sum;
}

/* Returns k ln 2 for an integer |k| < 2^20. */
static struct dd times_ln2(double k)
{
    struct dd sum = dd_add(dd_product(k, ln2[0]), dd_product(k, ln2[1]));
    return dd_add(sum, dd_from(k * ln2[2]));
}

struct dd posenc_dd_log(struct dd a)
{
    int k;
    double m = frexp(a.hi, &k);
    if (m < 0x1.6a09e667f3bcdp-1) /* sqrt(1/2) */
        k--;
    a = (struct dd){ ldexp(a.hi, -k), ldexp(a.lo, -k) };
    struct dd one = dd_from(1.0);
    struct dd s = dd_div(dd_sub(a, one), dd_add(a, one));
    struct dd z = dd_mul(s, s); /* at most 0.0295: the error of 22 terms is 2^-112 */
    struct dd sum = dd_from(0.0);
    for (int j = 21; j >= 0; j--)
        sum = dd_add(dd_mul(sum, z), dd_div(one, dd_from(2.0 * j + 1.0)));
    return dd_add(times_ln2((double)k), dd_scale(dd_mul(s, sum), 2.0));
}

struct dd posenc_dd_exp(struct dd a)
{
    double k = rint(a.hi / ln2[0]);
    struct dd r = dd_sub(dd_sub(a, dd_product(k, ln2[0])), dd_product(k, ln2[1]));
    r = dd_sub(r, dd_from(k * ln2[2]));
    /* The first omitted term is 0.35^24 / 24! < 2^-115. The terms in doubles are below 2^-57. */
    struct dd e = series(r, 0, 1, 14, 24);
    return (struct dd){ ldexp(e.hi, (int)k), ldexp(e.lo, (int)k) };
}

static struct turn turn_add(struct turn a, struct turn b)
{
    uint64_t lo = a.lo + b.lo;
    return (struct turn){ a.hi + b.hi + (lo < a.lo), lo };
}

static struct turn turn_neg(struct turn a)
{
    return (struct turn){ ~a.hi + (a.lo == 0), ~a.lo + 1 };
}

/* Returns a, in turns, modulo 1 and rounded to nearest. */
static struct turn turn_from(double a)
{
    int exponent;
    double m = frexp(fabs(a), &exponent); /* |a| = integer 2^(shift - 128) */
    uint64_t integer = (uint64_t)ldexp(m, 53);
    int shift = exponent - 53 + 128;
    struct turn t = { 0, 0 };
    if (shift <= -64 || shift >= 128)
        return t;
    if (shift < 0) {
        t.lo = (integer >> -shift) + (integer >> (-shift - 1) & 1);
    } else if (shift >= 64) {
        t.hi = integer << (shift - 64);
    } else {
        t.lo = integer << shift;
        t.hi = shift == 0 ? 0 : integer >> (64 - shift);
    }
    return a < 0.0 ? turn_neg(t) : t;
}

struct turn posenc_turn_of(struct dd omega)
{
    const double *c = inverse_two_pi;
    struct dd p00 = dd_product(omega.hi, c[0]);
    struct dd p01 = dd_product(omega.hi, c[1]);
    struct dd p10 = dd_product(omega.lo, c[0]);
    double rest = p01.lo + p10.lo + fma(omega.hi, c[2], omega.lo * c[1]);
    struct turn t = turn_add(turn_from(p00.hi), turn_from(p00.lo));
    t = turn_add(t, turn_add(turn_from(p01.hi), turn_from(p10.hi)));
    return turn_add(t, turn_from(rest));
}

struct turn posenc_turn_times(struct turn turn, uint32_t times)
{
    uint64_t low = (turn.lo & UINT32_MAX) * times;
    uint64_t high = (turn.lo >> 32) * times + (low >> 32);
    return (struct turn){ turn.hi * times + (high >> 32), high << 32 | (low & UINT32_MAX) };
}

/* Returns a turn as a number in [-1/2, 1/2), with a relative error of 2^-106. */
static struct dd turn_to_dd(struct turn t)
{
    int negative = t.hi >> 63 != 0;
    if (negative)
        t = turn_neg(t);
    const uint32_t words[4] = { (uint32_t)(t.hi >> 32), (uint32_t)t.hi, (uint32_t)(t.lo >> 32),
                                (uint32_t)t.lo };
    struct dd sum = dd_from(0.0);
    for (int i = 0; i < 4; i++)
        sum = dd_add(sum, dd_from(ldexp((double)words[i], -32 * (i + 1))));
    return negative ? dd_neg(sum) : sum;
}

void posenc_dd_cossin(struct turn turn, struct dd *cosine, struct dd *sine)
{
    turn.hi += (uint64_t)1 << 61; /* adds 1/8, to round to the nearest quarter */
    unsigned quarter = (unsigned)(turn.hi >> 62);
    turn.hi -= ((uint64_t)quarter << 62) + ((uint64_t)1 << 61);
    struct dd x = dd_mul(turn_to_dd(turn), two_pi);
    struct dd z = dd_neg(dd_mul(x, x));
    /* |x| <= pi/4: the last terms are below 2^-112, those in doubles below 2^-53. */
    struct dd c = series(z, 0, 2, 9, 15);
    struct dd s = dd_mul(x, series(z, 1, 2, 8, 15));
    *cosine = quarter == 0 ? c : quarter == 1 ? dd_neg(s) : quarter == 2 ? dd_neg(c) : s;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? dd_neg(s) : dd_neg(c);
}
