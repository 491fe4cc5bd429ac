/*
 * Small problems of one kernel at every length of its vectorised dimension, where a loop over
 * vectors has its tails: those that the memory suite runs, and some laws.
 */
#ifndef POSENC_LENGTHS_H
#define POSENC_LENGTHS_H

#include "problem.h"

/* `n` units along the vectorised dimension (channels, pairs or keys), one of MEMORY_VARIANTS
 * combinations of the other parameters. */
enum { MEMORY_VARIANTS = 4 };
struct problem memory_problem(enum posenc_kernel kernel, int64_t n, int variant);

/* W of the lengths 0 .. 4W + 1. */
int64_t memory_lanes(const struct posenc_backend *backend);

#endif
