/*
 * What a machine tells apart, from one kernel that was timed three times in each round, as a comparison
 * times head, base and base again: head[i] is the logarithm of the second time over the first, null[i]
 * of the third over the first.  Both would be 0 on a machine that disturbs nothing.
 *
 * The rounds are taken as comparisons of identical code, each of 3 launches of 31 rounds, and go
 * through the rule that real ones go through (reports/posenc/verdict.py).  What one of them tells apart is the least
 * difference that would bring all of its interval beyond its floor, to the side on which that is
 * harder.  Real launches are processes of their own, whose memory lies elsewhere: they tell apart
 * that much at best.
 */
#ifndef POSENC_FLOOR_H
#define POSENC_FLOOR_H

#include <stddef.h>

enum { FLOOR_LAUNCHES = 3, FLOOR_ROUNDS = 31 };

struct floor_summary {
    size_t rounds,
        comparisons;        /* comparisons: 0 where there were fewer rounds than one takes */
    double median, largest; /* of |head|; NaN where nothing was measured, as are the others */
    double launch;          /* the median over launches of |median head| */
    /* The difference, as a share, above which 99 of 100 comparisons find it: all of them where there
     * were fewer than 100.  Of fewer rounds than a comparison takes, what these few tell apart. */
    double apart;
};

/* Rounds in which one of the two is not finite are left out. */
struct floor_summary floor_summarise(const double *head, const double *null, size_t n);

#endif
