/*
 * A fixed list of small problems for each kernel: what digests are taken of and what the
 * accuracy suite compares with the oracle in full.  They stand in conformance/cases/variants.txt.
 */
#ifndef POSENC_VARIANTS_H
#define POSENC_VARIANTS_H

#include "problem.h"

/* Variant v of a kernel with its name ("d64-t130"); false past the last.  The profile counts for
 * kernels that have one, and leaves out the variants it cannot express. */
bool variant(enum posenc_kernel kernel, enum posenc_profile profile, int v,
             struct problem *problem, const char **name);

#endif
