/*
 * Rounding of values that were rounded to odd (see big.c) to the type that stores them, and errors
 * in ulp. 16-bit values are rounded in f64 by the distance of their neighbours, independently of
 * the integer code in problem/storage.c.
 */
#include "exact.h"
#include "fixed.h"

#include <math.h>

float odd_to_f32(double want) { return (float)want; }

/* Bits of the fraction, least exponent of a normal value, and the exponent past the largest. */
struct exponent_range {
    int fraction, least, beyond;
};

static struct exponent_range exponent_range_of(enum posenc_dtype type)
{
    static const struct exponent_range ranges[] = { [POSENC_F32] = { 23, -126, 128 },
                                                    [POSENC_F16] = { 10, -14, 16 },
                                                    [POSENC_BF16] = { 7, -126, 128 } };
    return ranges[type];
}

/* Subnormal values are as far apart as the least normal ones. Beyond the largest value the distance
 * is that just below it. */
double ulp_of(enum posenc_dtype type, double magnitude)
{
    const struct exponent_range range = exponent_range_of(type);
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    exponent = exponent < range.least ? range.least : exponent;
    exponent = exponent >= range.beyond ? range.beyond - 1 : exponent;
    return two_to(exponent - range.fraction);
}

float odd_to_type(enum posenc_dtype type, double want)
{
    const double value = (double)odd_to_f32(want);
    if (type == POSENC_F32 || !isfinite(value) || value == 0)
        return (float)value;
    const double ulp = ulp_of(type, fabs(value));
    const double whole = nearbyint(fabs(value) / ulp) * ulp; /* ties to even */
    const double rounded =
        whole < two_to(exponent_range_of(type).beyond) ? whole : (double)INFINITY;
    return (float)copysign(rounded, value);
}

double ulp_error(float got, double want) { return pair_ulp_error(got, want, want); }

double pair_ulp_error(float got, double want, double mass)
{
    const double wrong = (double)INFINITY;
    if (isnan(got) || isnan(want))
        return isnan(got) && isnan(want) ? 0.0 : wrong;
    if (isinf(got) || isinf(want))
        return got == odd_to_f32(want) ? 0.0 : wrong;
    if (mass == 0 && want == 0 && got == 0) /* an exact zero has a sign */
        return (signbit(got) != 0) == (signbit(want) != 0) ? 0.0 : wrong;
    return fabs((double)got - want) / ulp_of(POSENC_F32, fabs(mass != 0 ? mass : want));
}

struct stored_error stored_error(enum posenc_dtype type, float got, double want, double within)
{
    struct stored_error e = { .error = (double)INFINITY, .limit = 0.5 };
    if (isnan(want) || isnan(got) || isinf(want)) {
        e.error = (isnan(want) && isnan(got)) || (double)got == want ? 0.0 : e.error;
        return e;
    }
    const double ulp = ulp_of(type, fabs(want));
    const float ends[2] = { odd_to_type(type, want - within),
                            odd_to_type(type, want + within) };
    for (int i = 0; i < 2; i++)
        if (isfinite(ends[i]))
            e.limit = fmax(e.limit, fabs((double)ends[i] - want) / ulp);
    if (isinf(got))
        e.error = got == ends[0] || got == ends[1] ? 0.0 : e.error;
    else if (isfinite(ends[0]) || isfinite(ends[1]))
        e.error = fabs((double)got - want) / ulp;
    return e;
}
