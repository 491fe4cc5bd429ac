/*
 * The noise threshold of a machine, from one kernel that was timed three times in each round, as a comparison times
 * head, base and the A/A control: head[i] is the logarithm of the second time over the first, null[i] of the third over
 * the first. Both would be 0 on a machine that disturbs nothing.
 *
 * The rounds are taken as comparisons of identical code, each of 3 processes of 31 rounds, and judged by the rule for
 * real ones (reports/posenc/verdict.py). A comparison detects the least difference that would bring its whole interval
 * beyond its threshold, to the side on which that is harder. Real processes differ in their memory layout, too, and
 * detect that much at best.
 */
#ifndef POSENC_FLOOR_H
#define POSENC_FLOOR_H

#include <stddef.h>

enum { FLOOR_PROCESSES = 3, FLOOR_ROUNDS = 31 };

struct floor_summary {
    size_t rounds;
    size_t comparisons;     /* 0: fewer rounds than one comparison takes */
    double median, largest; /* of |head|; NaN if nothing was measured, as are the others */
    double process;         /* the median over processes of |median head| */
    /* Difference, as a share, that 99 of 100 comparisons detect; all of them if they are fewer than 100. With fewer
     * rounds than a comparison takes, the difference that these detect. */
    double apart;
};

/* Summarises rounds, except those in which one of the two is not finite. */
struct floor_summary floor_summarise(const double *head, const double *null, size_t n);

#endif
