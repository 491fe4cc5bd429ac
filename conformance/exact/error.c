/* Rounding of expected values to the type that stores them, and errors in ulp. 16-bit values are rounded in f64 by
 * the distance of their neighbours, independently of the integer code in problem/storage.c. */
#include "exact.h"
#include "big.h"

#include <math.h>

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
