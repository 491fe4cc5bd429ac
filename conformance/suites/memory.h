/*
 * What the files of the memory suite share.
 */
#ifndef POSENC_MEMORY_H
#define POSENC_MEMORY_H

#include "conformance/engine/tally.h"

/* Small problems of one kernel: `n` units along the vectorised dimension (channels, pairs or
 * keys), one of MEMORY_VARIANTS combinations of the other parameters. */
enum { MEMORY_VARIANTS = 4 };
struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int variant);

/* One problem at every place of a page, in memory that is guarded. */
void memory_sweep(struct suite_run *run, const struct problem *problem);

/* W of the lengths 0 .. 4W + 1. */
int64_t memory_lanes(const struct posenc_backend *backend);

void check_lanes(struct suite_run *run, enum posenc_kernel kernel);    /* lanes.c */
void check_refusals(struct suite_run *run, enum posenc_kernel kernel); /* refusals.c */
void check_plans(struct tally *t);                                     /* refused_plans.c */

#endif
