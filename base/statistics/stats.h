/*
 * Statistics of noisy timings: medians with distribution-free confidence intervals (David and Nagaraja, Order
 * Statistics, section 7.1), and ratios within rounds. Missing samples are NaN and are ignored. For example, 31 samples of
 * the values 1 to 31 have the median 16, and an interval from 8 to 24 that covers the true median with 99 %.
 */
#ifndef POSENC_STATS_H
#define POSENC_STATS_H

#include <stddef.h>

/* Sorts numbers in rising order. */
void stats_sort(double *values, size_t n);

/* Confidence interval [low, high] of the median, at a level such as 0.99. */
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

/* Returns the median of over[i] / under[i] over the rounds i that have both samples, or NaN. Drift of the machine between
 * rounds cancels in these ratios. */
double stats_median_ratio(const double *over, const double *under, size_t n);

/* Returns the probability that [k-th smallest, k-th largest] of n samples covers the median: 1 - 2 sum_{i<k} C(n,i) /
 * 2^n, for 1 <= k <= (n + 1) / 2. */
double stats_coverage(size_t n, size_t k);

/* ---- Noise threshold ---- */

/*
 * Noise threshold of a machine: the smallest difference that posenc compare can detect on it.
 *
 * Input is one kernel, timed three times in each round as base, head and A/A control of a comparison: head[i] is
 * ln(second / first), control[i] is ln(third / first). Without noise both are 0.
 *
 * The rounds are split into comparisons of identical code, each of 3 processes of 31 rounds, and judged by the rule of
 * posenc compare (reports/posenc/verdict.py). The detectable difference of a comparison would move its whole interval
 * beyond its threshold, to the side on which that is harder. Real processes also differ in their memory layout, so that
 * this is a lower bound.
 */
enum { THRESHOLD_PROCESSES = 3, THRESHOLD_ROUNDS = 31 };

struct threshold_summary {
    size_t rounds;
    size_t comparisons; /* 0: fewer rounds than one comparison has */
    /* All are NaN without rounds. */
    double median, largest; /* of |head| */
    double typical_process; /* median over processes of |median head| */
    /* Relative difference that 99 % of the comparisons detect. With fewer rounds than one comparison has, the
     * difference that these rounds detect. */
    double detectable;
};

/* Summarises the rounds in which both ratios are finite. */
struct threshold_summary threshold_summarise(const double *head, const double *control,
                                             size_t n);

#endif
