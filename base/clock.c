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
    enum { TRIES = 200 }; /* an interrupt may lengthen a step */
    const double min_sample_s = 100e-6, min_ticks = 200.0; /* a step is 0.5 % of these */
    double tick_s = 1.0;                                   /* shortest step seen so far */
    for (int i = 0; i < TRIES; i++) {
        double begin = clock_now(), end = begin;
        while (end <= begin)
            end = clock_now();
        if (end - begin < tick_s)
            tick_s = end - begin;
    }
    return min_ticks * tick_s > min_sample_s ? min_ticks * tick_s : min_sample_s;
}
