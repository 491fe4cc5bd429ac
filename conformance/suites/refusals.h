/*
 * What refusals.c and refused_scores.c share: mistakes, and which signature has which.
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

struct mistakes {
    const struct mistake *list;
    size_t n;
};
#define MISTAKES(list)                                                                         \
    {                                                                                          \
        list, sizeof(list) / sizeof(list)[0]                                                   \
    }

/* Of integers by query and key. */
extern const struct mistakes mistakes_of_index;

/* Those of one signature: in calls of all its kernels, and of those that take x besides. */
struct mistakes_of {
    struct mistakes all, with_x;
};
#define POSENC_SIGNATURE(name) extern const struct mistakes_of mistakes_of_##name;
#include "conformance/problem/signatures.def"

#endif
