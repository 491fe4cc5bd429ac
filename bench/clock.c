/*
 * The monotonic clock, and how fine it is: see clock.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "clock.h"

#include <math.h>
#include <time.h>

static const double SAMPLE_S = 100e-6;
enum { TICKS = 200 };

double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double clock_least_sample(void)
{
    double tick = 1.0;
    for (int i = 0; i < 200; i++) {
        double begin = clock_now(), end = begin;
        while (end <= begin)
            end = clock_now();
        tick = fmin(tick, end - begin);
    }
    return fmax(SAMPLE_S, (double)TICKS * tick);
}
