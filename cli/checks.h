/*
 * Checks of kernels in workers (worker.h), several at the same time.
 */
#ifndef POSENC_CLI_CHECKS_H
#define POSENC_CLI_CHECKS_H

#include "conformance/suites/suites.h"

#include <jansson.h>

struct checks {
    const struct posenc_backend *const *backends;
    size_t n_backends;
    const struct conf_options *options;
    const char
        *rerun; /* options that a command to rerun a check needs, such as " --plugin mine.so" */
    size_t at_once; /* kernels; 0: one for each CPU */
    double limit_s; /* of --limit; NaN: the default */
    /* Takes a record; that of a check which another shard makes has the status "elsewhere". A
     * check with a row of error limits has the member "range" as well. */
    void (*take)(void *user, json_t *record);
    /* Takes the progress: pairs of a kernel and a backend. */
    void (*progress)(void *user, size_t done, size_t total);
    void *user;
};

/* Runs conf_run() of all backends with a worker for each kernel, and hands on the records in
 * the order of kernels and backends. A plug-in is loaded into a worker that runs nothing else
 * afterwards. A backend that ends its worker or hangs has a check with the status "crash", and
 * the backends after it are checked in another worker. Stops if the program is interrupted. */
void checks_run(const struct checks *checks);

#endif
