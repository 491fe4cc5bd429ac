/*
 * Numbers of every kind: see caller.h.
 */
#include "caller.h"

#include <float.h>
#include <math.h>

uint64_t draw_bits(struct draws *d) { return mix64(d->seed, d->next++); }

int64_t draw_below(struct draws *d, int64_t n) { return (int64_t)(draw_bits(d) % (uint64_t)n); }

bool draw_one_in(struct draws *d, int64_t n) { return draw_below(d, n) == 0; }

int64_t draw_whole(struct draws *d, int64_t near)
{
    static const int64_t ends[] = { 0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    INT64_C(1) << 24,
                                    INT32_MAX,
                                    INT64_C(1) << 31,
                                    INT64_C(1) << 32,
                                    INT32_MIN,
                                    -(INT64_C(1) << 31) - 1,
                                    INT64_C(1) << 40,
                                    -(INT64_C(1) << 40),
                                    INT64_C(1) << 62,
                                    INT64_MAX,
                                    INT64_MAX - 1,
                                    INT64_MIN,
                                    INT64_MIN + 1 };
    const uint64_t at = (uint64_t)near;
    switch (draw_below(d, 8)) {
    case 0:
        return (int64_t)(at + 1);
    case 1:
        return (int64_t)(at - 1);
    case 2:
        return (int64_t)(at * 2);
    case 3:
        return (int64_t)(0 - at);
    case 4:
        return draw_below(d, 40) - 4;
    case 5:
        return (int64_t)(at + (uint64_t)draw_below(d, 17));
    default:
        return ends[draw_below(d, (int64_t)(sizeof ends / sizeof *ends))];
    }
}

double draw_real(struct draws *d, double near)
{
    static const double ends[] = { 0.0,
                                   -0.0,
                                   1.0,
                                   -1.0,
                                   0.5,
                                   2.0,
                                   (double)NAN,
                                   (double)INFINITY,
                                   -(double)INFINITY,
                                   (double)FLT_MAX,
                                   -(double)FLT_MAX,
                                   0x1.ffffffp127,
                                   (double)FLT_MIN,
                                   0x1p-149,
                                   0x1p-160,
                                   DBL_MIN,
                                   0x1p-1074,
                                   DBL_MAX,
                                   -DBL_MAX,
                                   0x1p24,
                                   0x1p40,
                                   0x1.0000000000001p40,
                                   1e6,
                                   65536.0,
                                   0x1p-64,
                                   0x1p-65,
                                   1e-6,
                                   1e300 };
    switch (draw_below(d, 6)) {
    case 0:
        return nextafter(near, -(double)INFINITY);
    case 1:
        return nextafter(near, (double)INFINITY);
    case 2:
        return -near;
    case 3:
        return near * ldexp(1.0, (int)draw_below(d, 8) - 4);
    default:
        return ends[draw_below(d, (int64_t)(sizeof ends / sizeof *ends))];
    }
}
