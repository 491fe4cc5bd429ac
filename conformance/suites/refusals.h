/*
 * What refusals.c and refused_scores.c share: bad arguments, and which signature has which.
 */
#ifndef POSENC_REFUSALS_H
#define POSENC_REFUSALS_H

#include "memory.h"

#define STATUS(name) (1u << POSENC_ERR_##name)

/* One bad argument of an otherwise valid call. */
struct bad_argument {
    const char *name;
    unsigned allowed; /* statuses, as bits */
    void (*make)(struct call *call);
};

struct bad_arguments {
    const struct bad_argument *list;
    size_t n;
};
#define ARGUMENTS(list)                                                                        \
    {                                                                                          \
        list, sizeof(list) / sizeof(list)[0]                                                   \
    }

/* Of integers by query and key. */
extern const struct bad_arguments bad_arguments_of_index;

/* Those of one signature: in calls of all its kernels, and of those that take x besides. */
struct bad_arguments_of {
    struct bad_arguments all, with_x;
};
#define POSENC_SIGNATURE(name) extern const struct bad_arguments_of bad_arguments_of_##name;
#include <posenc_signatures.def>

#endif
