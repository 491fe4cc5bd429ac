/*
 * Statistics of noisy timings: medians, their distribution-free intervals, ratios within rounds. Order statistics
 * assume no distribution (David and Nagaraja, Order Statistics, section 7.1). A sample that was not taken is NaN, and
 * is left out. Needs libc only.
 */
#ifndef POSENC_STATS_H
#define POSENC_STATS_H

#include <stddef.h>

/* Sorts numbers in rising order. */
void stats_sort(double *values, size_t n);

/* Confidence interval of the median. `level` is 0.99 or 0.95 if there are enough samples, 8 or 6. Otherwise the
 * interval is the whole range, and `level` its coverage 1 - 2^(1-n): 0.75 for three samples, 0 for one. */
struct stats_interval {
    double level, low, high;
};

struct stats_summary {
    size_t n; /* samples that were taken; if none, all else is NaN */
    double median, min, max;
    struct stats_interval interval;
};

struct stats_summary stats_summarise(const double *samples, size_t n);

/* Returns the median of the samples, or NaN if there are none. */
double stats_median(const double *samples, size_t n);

/* Returns the median of over[i] / under[i] over the rounds in which both were taken, or NaN. Drift of the machine
 * changes both samples of a round, but not their ratio. */
double stats_median_ratio(const double *over, const double *under, size_t n);

/* Returns the narrowest symmetric pair of order statistics that covers the median with at least that level; if there
 * are too few samples, the whole range and its coverage. */
struct stats_interval stats_interval(const double *samples, size_t n, double level);

/* Returns Student's t: |t| stays below it with that probability (0.99), by degrees of freedom. */
double stats_student(double level, int degrees);

/* Returns the probability that [k-th smallest, k-th largest] of n samples covers the median: 1 - 2 sum_{i<k} C(n,i) /
 * 2^n, for 1 <= k <= (n + 1) / 2. */
double stats_coverage(size_t n, size_t k);

#endif
