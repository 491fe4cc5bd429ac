/* Times cases in a worker (worker.h). If a backend ends the worker, another one continues. */
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
    const struct bench_options *options; /* whose callbacks are NULL */
    double limit_s;                      /* of --limit; NaN: the default */
    /* Receives the record of a backend on a case, given by their indices, and owns a reference to it. */
    void (*on_record)(void *user, size_t at_case, size_t backend, enum bench_outcome outcome,
                      json_t *record);
    /* Called a few times a second; false ends the timings. */
    bool (*keep_going)(void *user);
    void *user;
};

/* Runs bench_run() in a worker that loads the plug-ins. If a backend crashes or hangs, sets *crashed, repeats the case
 * without it, and does not time its kernel again. Returns 0, or -1 and a reason. */
int timings_run(const struct timings *timings, bool *crashed, char error[TIMINGS_ERROR]);

#endif
