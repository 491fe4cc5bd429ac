/*
 * Numbers of a problem at random, one after the other: a function of the seed alone.
 */
#ifndef POSENC_DRAWS_H
#define POSENC_DRAWS_H

#include "problem.h"

enum { MOST_DRAWN_TOKENS = 24 };

struct draws {
    uint64_t seed, next;
    int64_t positions[MOST_DRAWN_TOKENS];
};

/* From least to most, both included. */
int64_t draw(struct draws *draws, int64_t least, int64_t most);

#endif
