/*
 * C interface to Google Benchmark for rounds.c. Its implementation, gbench.cc, is the only C++ of the project.
 *
 * Google Benchmark provides the clock, the calibrated number of iterations, and the timed loop with compiler barriers. It
 * does not provide the order: its random interleaving shuffles all repetitions of a run, so that those of one contender
 * may cluster. Here one round is one run of Google Benchmark, with one benchmark for each sample in the given order.
 */
#ifndef POSENC_GBENCH_H
#define POSENC_GBENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sample to time, and its result. */
struct gbench_sample {
    void (*call)(void *user); /* one iteration */
    void *user;
    int warm;                     /* untimed calls before the clock starts */
    int64_t iterations;           /* 0: until `min_seconds` is reached; output: those done */
    double seconds;               /* output: real time of one iteration */
    void (*on_begin)(void *user); /* NULL, or called before the warm-up calls */
};

/* Times the samples in this order on this thread. Returns 0, or -1 if Google Benchmark failed. Not reentrant. */
int gbench_time(struct gbench_sample *samples, size_t n, double min_seconds);

#ifdef __cplusplus
}
#endif
#endif
