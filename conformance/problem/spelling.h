/*
 * How far apart two names are, as people mistype them, and whether a list has a name.
 */
#ifndef POSENC_SPELLING_H
#define POSENC_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/* Insertions, deletions and substitutions from one name to the other; of b the first 96
 * characters count. */
size_t edit_distance(const char *a, const char *b);

/* Whether a word of n characters is one of those in `words`, separated by `between`. */
bool has_word(const char *words, char between, const char *word, size_t n);

#endif
