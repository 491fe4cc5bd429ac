/*
 * Timings of cases in a worker (worker.h), which another one replaces if a backend ends it.
 */
#ifndef POSENC_CLI_TIMINGS_H
#define POSENC_CLI_TIMINGS_H

#include "args.h"
#include "bench/bench.h"

#include <jansson.h>

enum { TIMINGS_ERROR = 256 };

struct timings {
    const struct bench_case *cases;
    size_t n_cases;
    const struct posenc_backend *const *backends;
    size_t n_backends;
    const struct bench_options *options; /* without callbacks */
    double limit_s;                      /* of --limit; NaN: the default */
    /* Takes the record of a backend on a case, by their indices, and a reference to it. */
    void (*take)(void *user, size_t at_case, size_t backend, enum bench_outcome outcome,
                 json_t *record);
    /* Asked a few times a second; false ends the timings. */
    bool (*goes_on)(void *user);
    void *user;
};

/* Runs bench_run() with plug-ins that are loaded into the worker. A backend that ends the
 * worker or hangs is not timed from there on, and the case begins again without it; then
 * *crashed is true. Returns 0, or -1 with a reason in `error`. */
int timings_run(const struct timings *timings, bool *crashed, char error[TIMINGS_ERROR]);

#endif
