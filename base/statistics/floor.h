/*
 * The noise threshold of a machine, from one kernel that was timed three times in each round, as a
 * comparison times head, base and the A/A control: head[i] is the logarithm of the second time over the
 * first, null[i] of the third over the first.  Both would be 0 on a machine that disturbs nothing.
 *
 * The rounds are taken as comparisons of identical code, each of 3 processes of 31 rounds, and go through
 * the rule for real ones (reports/posenc/verdict.py).  A comparison detects the least difference that
 * would bring all of its interval beyond its threshold, to the side on which that is harder.  The memory
 * of real processes lies elsewhere: they detect that much at best.
 */
#ifndef POSENC_FLOOR_H
#define POSENC_FLOOR_H

#include <stddef.h>

enum { FLOOR_PROCESSES = 3, FLOOR_ROUNDS = 31 };

struct floor_summary {
    size_t rounds;
    size_t comparisons;     /* 0: there were fewer rounds than one takes */
    double median, largest; /* of |head|; NaN if nothing was measured, as are the others */
    double process;         /* the median over processes of |median head| */
    /* The difference, as a share, above which 99 of 100 comparisons detect it: all of them if there were
     * fewer than 100.  Of fewer rounds than a comparison takes, what these few detect. */
    double apart;
};

/* Summarises rounds; those in which one of the two is not finite are left out. */
struct floor_summary floor_summarise(const double *head, const double *null, size_t n);

#endif
