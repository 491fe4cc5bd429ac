/*
 * Where a series of measurements changed its level, by E-divisive (Matteson and James, A Nonparametric Approach for
 * Multiple Change Point Analysis of Multivariate Data, JASA 109, 2014), as Hunter and Apache Otava use it for
 * performance (Fleming et al., Hunter: Using Change Point Detection to Hunt for Performance Regressions, ICPE 2023):
 * the split is sought at which both sides differ most in energy distance, and tested by shuffling.
 *
 * Distances are of ranks, so that no distribution is assumed and one wild value is no more than the largest.  What is
 * found in windows of 50, 25 and 16 is then tested against its neighbours alone, and the weakest is given up until all hold.
 * Deterministic: the shuffles follow from the seed.  libc only.
 */
#ifndef POSENC_CHANGEPOINTS_H
#define POSENC_CHANGEPOINTS_H

#include <stddef.h>
#include <stdint.h>

enum {
    CHANGEPOINTS_LEAST = 14,  /* values: of fewer no order is as rare as one in a thousand */
    CHANGEPOINTS_SIDE = 3,    /* values at least on either side of a change */
    CHANGEPOINTS_WINDOW = 50, /* values that are looked at together */
};
#define CHANGEPOINTS_P 0.001

struct changepoint {
    size_t at;            /* the first value of the new level */
    size_t from, to;      /* the values that were compared: [from, at) with [at, to) */
    double before, after; /* their medians */
    double p; /* shuffles that differ as much, of 9999 and this one: 0.0001 at least */
};

/* The changes in x[0] to x[n - 1], all finite, in their order; n values at most.  The number of them: 0 where n is below
 * CHANGEPOINTS_LEAST. */
size_t changepoints_find(const double *x, size_t n, uint64_t seed, struct changepoint *found,
                         size_t most);

#endif
