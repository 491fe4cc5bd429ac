/* Draws numbers for problems and for changed arguments. */
#define _POSIX_C_SOURCE 200809L
#include "draw.h"

#include "conformance/problem/problem.h"

#include <float.h>
#include <math.h>
#include <time.h>

uint64_t draw_bits(struct draws *d) { return mix64(d->seed, d->next++); }

int64_t draw_between(struct draws *d, int64_t least, int64_t most)
{
    return least + (int64_t)(draw_bits(d) % (uint64_t)(most - least + 1));
}

bool draw_one_in(struct draws *d, int64_t n) { return draw_between(d, 1, n) == 1; }

double draw_fraction(struct draws *d) { return (double)(draw_bits(d) >> 11) * 0x1p-53; }

int64_t draw_whole(struct draws *d, int64_t near)
{
    /* Limits of the interface, and of the types that hold them. */
    static const int powers[] = { 0, 1, 4, 12, 24, 31, 31, 32, 40, 62, 63, 63 };
    const uint64_t at = (uint64_t)near;
    uint64_t end = UINT64_C(1) << powers[draw_between(d, 0, 11)];
    switch (draw_between(d, 0, 7)) {
    case 0:
        return (int64_t)(at + 1);
    case 1:
        return (int64_t)(at - 1);
    case 2:
        return (int64_t)(at * 2);
    case 3:
        return (int64_t)(0 - at);
    case 4:
        return draw_between(d, -4, 35);
    case 5:
        return (int64_t)(at + (uint64_t)draw_between(d, 0, 16));
    default:
        end += (uint64_t)draw_between(d, -1, 1);
        return (int64_t)(draw_one_in(d, 2) ? 0 - end : end);
    }
}

double draw_real(struct draws *d, double near)
{
    static const int powers[] = { -1074, -160, -149, -126, -64, -1, 0, 1, 16, 24, 40, 128 };
    static const double others[] = {
        0.0, -0.0, (double)NAN, (double)INFINITY, (double)FLT_MAX, 1e6, DBL_MAX
    };
    const double end = ldexp(1.0, powers[draw_between(d, 0, 11)]);
    const double sign = draw_one_in(d, 3) ? -1.0 : 1.0;
    switch (draw_between(d, 0, 5)) {
    case 0:
        return nextafter(near, sign * DBL_MAX);
    case 1:
        return -near;
    case 2:
        return near * ldexp(1.0, (int)draw_between(d, -4, 3));
    case 3:
        return sign * others[draw_between(d, 0, 6)];
    case 4:
        return sign * end;
    default:
        return sign * nextafter(end, draw_one_in(d, 2) ? 0.0 : DBL_MAX);
    }
}

double draw_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
