/*
 * Memory and work that a problem would need, from its numbers alone. Readers of problems from files
 * or the command line check these before they make anything.
 */
#ifndef POSENC_COST_H
#define POSENC_COST_H

#include "fields.h"

struct problem_limits {
    double bytes;     /* of all tensors */
    double values;    /* of all outputs, if each is checked; 0: no limit */
    const char *whom; /* the memory that `bytes` is a part of, as messages name it */
};

/* Returns the limits of this machine: 1/16 of its memory, or of what a container or a process limit
 * allows. Checking and timing a call takes up to seven times its size, for copies, references and
 * lower-bound microbenchmarks, so at most half of memory is used. */
struct problem_limits problem_limits_here(void);

/* Returns the bytes of all tensors, positions and indices; HUGE_VAL if a size is out of range. */
double problem_memory_estimate(const struct problem *problem);

/* Returns true if no size overflows and the limits hold. Otherwise writes a message that names a
 * field, its value and the accepted values. */
bool problem_within(const struct problem *problem, const struct problem_limits *limits,
                    char error[NOTATION_ERROR]);

#endif
