/*
 * Statistics of noisy timings: medians with distribution-free confidence intervals (David and Nagaraja, Order
 * Statistics, section 7.1), and ratios within rounds. Missing samples are NaN and are ignored.
 */
#ifndef POSENC_STATS_H
#define POSENC_STATS_H

#include <stddef.h>

/* Sorts numbers in rising order. */
void stats_sort(double *values, size_t n);

/* Confidence interval of the median, and the level that it reaches. */
struct stats_interval {
    double level, low, high;
};

struct stats_summary {
    size_t n; /* samples that are not NaN; if 0, all else is NaN */
    double median, min, max;
    struct stats_interval interval;
};

/* Summarises samples. The level of the interval is 0.99 from 8 samples on, and 0.95 from 6 on. With fewer samples the
 * interval is the whole range, and its level the coverage 1 - 2^(1-n). */
struct stats_summary stats_summarise(const double *samples, size_t n);

/* Returns the median of the samples, or NaN without samples. */
double stats_median(const double *samples, size_t n);

/* Returns the median of over[i] / under[i] over the rounds that have both samples, or NaN. Drift of the machine between
 * rounds cancels in these ratios. */
double stats_median_ratio(const double *over, const double *under, size_t n);

/* Returns the probability that [k-th smallest, k-th largest] of n samples covers the median: 1 - 2 sum_{i<k} C(n,i) /
 * 2^n, for 1 <= k <= (n + 1) / 2. */
double stats_coverage(size_t n, size_t k);

#endif
