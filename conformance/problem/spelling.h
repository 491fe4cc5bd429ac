/*
 * Names that people mistype: how far apart two are.
 */
#ifndef POSENC_SPELLING_H
#define POSENC_SPELLING_H

#include <stddef.h>

/* Insertions, deletions and substitutions from one name to the other; of b the first 96
 * characters count. */
size_t edit_distance(const char *a, const char *b);

#endif
