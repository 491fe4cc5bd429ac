/*
 * What a call of a problem would cost, from its numbers alone: whoever takes a problem from a file
 * or a command line asks before anything of it is made.
 */
#ifndef POSENC_COST_H
#define POSENC_COST_H

#include "fields.h"

struct problem_limits {
    double bytes;     /* of all tensors */
    double values;    /* of all outputs, where each is checked; 0: any number */
    const char *whom; /* "a sixteenth of this machine's memory": whose bytes these are */
};

/* What this machine can be asked for: of its memory, or of the share that a container or a limit of
 * the process leaves, a sixteenth.  Checking and timing a call takes up to seven times its size, for
 * copies, references and roofs, so that half of memory is enough. */
struct problem_limits problem_limits_here(void);

/* Bytes of all tensors, positions and indices; HUGE_VAL where sizes are out of reach. */
double problem_demand(const struct problem *problem);

/* Whether the numbers are such that nothing made of them overflows, and cost no more than that; else
 * a message that names a field, its value and what would be accepted. */
bool problem_within(const struct problem *problem, const struct problem_limits *limits,
                    char error[NOTATION_ERROR]);

#endif
