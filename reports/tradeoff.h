/*
 * What accuracy costs: the backends of a kernel as points of error and speed, and which of them nobody
 * beats in both.  Nothing is better by less than the clock or the error tells (ranking.h, worst.h).
 */
#ifndef POSENC_TRADEOFF_H
#define POSENC_TRADEOFF_H

#include "ranking.h"
#include "worst.h"

/* Unsettled: too noisy to beat or be beaten, or behind one that is. */
enum point_kind { BEATEN, UNBEATEN, UNSETTLED };
struct point {
    const struct bench_row *bench;
    struct worst worst;
    const struct conf_row *error; /* the one on the axis, of a metric that all points have */
    enum point_kind kind;
};
/* Points of the case with the most of them; those without an error in their most common metric, or
 * whose bits are all the same, have no place on its axis. */
size_t tradeoff_points(const struct results *results, const char *kernel,
                       struct point points[RANKED]);

#endif
