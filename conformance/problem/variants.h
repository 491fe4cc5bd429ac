/*
 * A fixed list of small problems for each kernel: what digests are taken of and what the
 * accuracy suite compares with the oracle in full.  Part of digests.txt: a change here changes
 * it.
 */
#ifndef POSENC_VARIANTS_H
#define POSENC_VARIANTS_H

#include "problem.h"

/* Variant v of a kernel with its name ("d64-t130"); false past the last.  The profile applies
 * to kernels that have one, and leaves out the variants it cannot express. */
bool variant(enum posenc_kernel kernel, enum posenc_profile profile, int v,
             struct problem *problem, const char **name);

/* For the files of the list.  Variant v by its place, NULL past the last: tables and what adds
 * them; everything else. */
const char *table_variant(struct problem *problem, int v);
const char *apply_variant(struct problem *problem, int v);
/* n positions as an array (NULL: consecutive ones); storage in 16 bits, at an odd place. */
void variant_at(struct problem *problem, enum posenc_position_kind kind,
                const int64_t *positions, int64_t n);
void variant_stored(struct problem *problem, enum posenc_dtype dtype, int64_t pad);

#endif
