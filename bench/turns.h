/*
 * Contenders that take turns: each is calibrated once, then timed once in every round that it takes
 * part in, in a random order that a seed repeats.  What is compared is compared within rounds, so
 * that drift of the machine between them cancels.
 */
#ifndef POSENC_TURNS_H
#define POSENC_TURNS_H

#include "contender.h"
#include "base/statistics/stats.h"

struct turns {
    bool deeper;                  /* rounds lie at several depths of the stack */
    struct contender *contenders; /* those whose outcome is BENCH_TIMED */
    size_t n, rounds;
    double *samples; /* [n, rounds] seconds of one call; NaN: not taken */
    double least_sample;
    uint64_t order;           /* of the rounds */
    bool (*stop)(void *user); /* NULL, or asked between samples: true ends it */
    void *user;
};

/* Fixes how many calls a sample of a contender is, so that it lasts at least least_sample.  False
 * when Google Benchmark failed, or the caller wants no more. */
bool contender_calibrate(struct contender *c, double least_sample);
bool turns_calibrate(struct turns *turns);

/* What a sample takes, with the calls before it that are not timed. */
double contender_sample_seconds(const struct contender *c);

/* All rounds; c->rounds of them for each.  `samples` are the caller's. */
bool turns_run(struct turns *turns);
double *turns_samples(const struct turns *turns, const struct contender *c);

/* The fastest by median of those that `of` accepts, steps, parts, second copies and what is entered left out; NULL when
 * there is none. */
const struct contender *turns_fastest(const struct turns *turns,
                                      bool (*of)(const struct contender *c));
/* How many times faster `c` is than `other`, within rounds; 0: unknown. */
double turns_speed(const struct turns *turns, const struct contender *c,
                   const struct contender *other);

#endif
