/* Reads the monotonic clock and measures its resolution (see clock.h). */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"

#include <time.h>

double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_least_sample(void)
{
    const double sample_s = 100e-6, ticks = 200.0;
    double tick = 1.0; /* seconds; shortest step of the clock that is seen */
    for (int i = 0; i < 200; i++) {
        double begin = clock_now(), end = begin;
        while (end <= begin)
            end = clock_now();
        if (end - begin < tick)
            tick = end - begin;
    }
    return ticks * tick > sample_s ? ticks * tick : sample_s;
}
