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
#ifndef POSENC_THRESHOLD_H
#define POSENC_THRESHOLD_H

#include <stddef.h>

enum { THRESHOLD_PROCESSES = 3, THRESHOLD_ROUNDS = 31 };

struct threshold_summary {
    size_t rounds;
    size_t comparisons;     /* 0: fewer rounds than one comparison has */
    double median, largest; /* of |head|; all NaN without rounds */
    double typical_process; /* median over processes of |median head| */
    /* Relative difference that 99 % of the comparisons detect. With fewer rounds than one comparison has, the
     * difference that these rounds detect. */
    double detectable;
};

/* Summarises the rounds in which both ratios are finite. */
struct threshold_summary threshold_summarise(const double *head, const double *control,
                                             size_t n);

#endif
