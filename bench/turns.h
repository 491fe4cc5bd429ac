/*
 * Contenders that take turns: each is calibrated once, then timed once in every round that it takes part
 * in, in a random order that a seed repeats.  Comparisons are made within rounds, so that drift of the
 * machine between them cancels.
 */
#ifndef POSENC_TURNS_H
#define POSENC_TURNS_H

#include "contender.h"
#include "base/statistics/stats.h"

struct turns {
    bool deeper;                  /* rounds lie at several depths of the stack */
    struct contender *contenders; /* those whose outcome is BENCH_TIMED take part */
    size_t n, rounds;
    double *samples; /* [n, rounds] seconds of one call; NaN: not taken; the caller's */
    double least_sample;
    uint64_t order;           /* seed of the rounds */
    bool (*stop)(void *user); /* NULL, or asked between samples: true ends it */
    void *user;
};

/* Fixes how many calls a sample of a contender is, so that it lasts at least `least_sample`.  Returns
 * false if Google Benchmark failed, or the caller wants no more. */
bool contender_calibrate(struct contender *c, double least_sample);
bool turns_calibrate(struct turns *turns);

/* Returns the seconds of a sample, with the untimed calls before it. */
double contender_sample_seconds(const struct contender *c);

/* Times all rounds; each contender takes part in c->rounds of them. */
bool turns_run(struct turns *turns);
double *turns_samples(const struct turns *turns, const struct contender *c);

/* Returns the fastest by median of those that `of` accepts, without steps, parts, second copies and
 * entered ones; NULL: there is none. */
const struct contender *turns_fastest(const struct turns *turns,
                                      bool (*of)(const struct contender *c));
/* Returns how many times faster `c` is than `other`, within rounds; 0: unknown. */
double turns_speed(const struct turns *turns, const struct contender *c,
                   const struct contender *other);

#endif
