/*
 * Logarithm, power of two, cosine and sine in doubles: the quick phase (dd.h).
 *
 *   log   a = m 2^k, s = (m-1)/(m+1): k ln 2 + 2 (s + s^3/3 + s^5/5 + ...)
 *   2^x   x = k + r, |r| <= 1/2, t = r ln 2: 2^k (1 + t + t^2/2! + ...)
 *   cos, sin   the phase is reduced by integer arithmetic to at most 1/8 of a turn from a multiple
 *              of 1/4; then the Taylor series
 *
 * As in dd.c, IEEE 754 defines the result of each operation to the bit.
 */
#include "dd.h"

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

static const double inverse_odd[10] = { 1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                                        1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21 };

/* sqrt(1/2) <= m < sqrt(2), so that cancellation leaves at least half of k ln 2. */
double posenc_quick_log(struct dd a)
{
    uint64_t bits;
    memcpy(&bits, &a.hi, sizeof bits);
    int k = (int)(bits >> 52) - 1023;
    if ((bits & (UINT64_MAX >> 12)) >= 0x6a09e667f3bcd) /* sqrt(2) */
        k++;
    uint64_t scale_bits = (uint64_t)(1023 - k) << 52;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    double m = a.hi * scale, rest = a.lo * scale;
    double s = (m - 1.0 + rest) / (m + 1.0 + rest);
    double z = s * s; /* at most 0.0295: the error of these terms is 2^-60 */
    double sum = inverse_odd[9];
    for (int n = 8; n >= 0; n--)
        sum = sum * z + inverse_odd[n];
    return k * 0x1.62e42fefa39efp-1 + 2.0 * (s + s * z * sum);
}

/* The series ends with t^14/14!, as t^15/15! < 2^-63. */
double posenc_quick_exp2(struct dd x)
{
    double k = rint(x.hi);
    double t = (x.hi - k + x.lo) * 0x1.62e42fefa39efp-1;
    double sum = posenc_dd_inverse_factorial[14].hi;
    for (int n = 13; n >= 2; n--)
        sum = sum * t + posenc_dd_inverse_factorial[n].hi;
    uint64_t bits = (uint64_t)(1023 + (int)k) << 52;
    double whole;
    memcpy(&whole, &bits, sizeof whole);
    return whole * (1.0 + (t + t * t * sum));
}

void posenc_quick_cossin(struct turn turn, double *cosine, double *sine)
{
    uint64_t quarter = (turn.hi + (UINT64_C(1) << 61)) >> 62;
    s128 rest = (s128)(((u128)(turn.hi - (quarter << 62)) << 64) | turn.lo);
    double x = (double)rest * (0x1.921fb54442d18p+2 * 0x1p-128); /* 2 pi 2^-128 */
    double z = -x * x, c = posenc_dd_inverse_factorial[16].hi,
           s = posenc_dd_inverse_factorial[17].hi;
    for (int n = 14; n >= 0; n -= 2) { /* |x| <= pi/4: omitted terms are below 2^-58 */
        c = c * z + posenc_dd_inverse_factorial[n].hi;
        s = s * z + posenc_dd_inverse_factorial[n + 1].hi;
    }
    s *= x;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
}
