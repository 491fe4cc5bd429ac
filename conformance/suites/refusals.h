/*
 * What refusals.c and refused_scores.c share.
 */
#ifndef POSENC_REFUSALS_H
#define POSENC_REFUSALS_H

#include "memory.h"

#define STATUS(name) (1u << POSENC_ERR_##name)

/* One bad argument of an otherwise valid call. */
struct mistake {
    const char *name;
    unsigned allowed; /* statuses, as bits */
    void (*make)(struct call *call);
};

void check_list(struct tally *t, const struct problem *p, const struct mistake *list, size_t n);
#define CHECK(list) check_list(t, p, list, sizeof(list) / sizeof(list)[0])

/* Those of kernels on scores. */
void check_scores_mistakes(struct tally *t, const struct problem *p);

#endif
