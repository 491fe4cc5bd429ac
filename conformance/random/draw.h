/*
 * Random numbers of the suite: a function of a seed and of how many were drawn before.
 */
#ifndef POSENC_RANDOM_DRAW_H
#define POSENC_RANDOM_DRAW_H

#include <stdbool.h>
#include <stdint.h>

struct draws {
    uint64_t seed, next;
};

uint64_t draw_bits(struct draws *d);
/* Both ends included. */
int64_t draw_between(struct draws *d, int64_t least, int64_t most);
bool draw_one_in(struct draws *d, int64_t n);
/* From 0 to 1, which it never reaches. */
double draw_fraction(struct draws *d);

/* Numbers that arguments are changed to: close to the right one, 0, negative, at the ends of types;
 * reals may also be infinite or no number. */
int64_t draw_whole(struct draws *d, int64_t near);
double draw_real(struct draws *d, double near);

/* Returns seconds of the monotonic clock, for limits of time. */
double draw_clock(void);

#endif
