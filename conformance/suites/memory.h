/*
 * The parts of the memory suite that have a file of their own.
 */
#ifndef POSENC_MEMORY_H
#define POSENC_MEMORY_H

#include "conformance/engine/tally.h"

/* One problem at every place of a page, in memory that is guarded. */
void memory_sweep(struct suite_run *run, const struct problem *problem);

void check_lanes(struct suite_run *run, enum posenc_kernel kernel);    /* lanes.c */
void check_refusals(struct suite_run *run, enum posenc_kernel kernel); /* refusals.c */

#endif
