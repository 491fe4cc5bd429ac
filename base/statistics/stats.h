/*
 * Statistics of noisy timings: medians, their distribution-free intervals, ratios within
 * rounds.  No distribution is assumed anywhere: order statistics only (David and Nagaraja,
 * Order Statistics, section 7.1).  A sample that was not taken is NaN and is left out.  libc
 * only.
 */
#ifndef POSENC_STATS_H
#define POSENC_STATS_H

#include <stddef.h>

/* Sorts numbers, the least first. */
void stats_sort(double *values, size_t n);

/* An interval for the median of what was sampled.  `level` is 0.99 or 0.95 where the samples
 * allow it (8 and 6 of them at least); below that the interval is the whole range and `level`
 * is what it really covers, 1 - 2^(1-n): 0.75 for three samples, 0 for one. */
struct stats_interval {
    double level, low, high;
};

struct stats_summary {
    size_t n; /* samples that were taken; everything else is NaN when there is none */
    double median, min, max;
    struct stats_interval interval;
};

struct stats_summary stats_summarise(const double *samples, size_t n);

/* The middle one of the samples, or the mean of the two middle ones; NaN when there is none. */
double stats_median(const double *samples, size_t n);

/* The median over the rounds i in which both were taken of over[i] / under[i]; NaN when there
 * is none.  Drift of the machine moves both samples of a round and leaves their ratio alone. */
double stats_median_ratio(const double *over, const double *under, size_t n);

/* The narrowest pair of order statistics, as far from either end, that covers the median of what was sampled
 * with at least that level; the whole range and what it covers where they are too few. */
struct stats_interval stats_interval(const double *samples, size_t n, double level);

/* Student's t: |t| stays below it with that probability (0.99), by degrees of freedom, 1 or more. */
double stats_student(double level, int degrees);

/* Coverage of [k-th smallest, k-th largest] of n samples for the median:
 * 1 - 2 sum_{i<k} C(n,i) / 2^n, for 1 <= k <= (n + 1) / 2. */
double stats_coverage(size_t n, size_t k);

#endif
