/*
 * Google Benchmark for C: the only way to the only C++ of the project.
 *
 * It is used for the clock, the calibrated number of iterations, and the timed loop with its compiler barriers. It is
 * not used for order and statistics: its random interleaving shuffles all repetitions of a run at once, so that a
 * contender may be timed three times in the first tenth and never in the last. Here one round is one run of Google
 * Benchmark, with one registered benchmark for each sample, in the order given.
 */
#ifndef POSENC_GBENCH_H
#define POSENC_GBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gbench_sample {
    void (*call)(void *user); /* one iteration */
    void *user;
    int warm;           /* untimed calls before the clock starts */
    int64_t iterations; /* 0: as many as make the sample last `min_time`; set to those done */
    double seconds;     /* out: real time of one iteration */
    void (*begins)(void *user); /* NULL, or called before those */
};

/* Times each sample, in this order, on this thread. Returns 0, or -1 if Google Benchmark failed to run one of them.
 * Prints nothing; not reentrant. */
int gbench_time(struct gbench_sample *samples, size_t n, double min_time);

#ifdef __cplusplus
}
#endif
#endif
