/*
 * What the files of cases of storage share: a case is a maker of its problem, listed once for
 * each type that holds the same inputs.
 */
#ifndef POSENC_CASES_STORAGE_H
#define POSENC_CASES_STORAGE_H

#include "golden.h"

#define COUNT(list) ((int64_t)(sizeof(list) / sizeof *(list)))

/* Types that share the inputs of a case. */
enum types { EVERY, F16_TOO, BF16_TOO, NARROW };

struct stored {
    const char *suffix, *flags, *note;
    enum posenc_kernel kernel;
    enum types types;
    void (*make)(struct problem *problem);
};

void list_stored(struct golden *golden, const struct stored *cases, int64_t n);
void list_stored_scores(struct golden *golden); /* those by queries and keys */

#endif
