/*
 * Runs the conformance suites on kernels in workers (worker.h), several at the same time. posenc verify checks the
 * selected backends, and posenc pair both builds: { base of avx2, head of avx2, base of scalar, ... }.
 */
#ifndef POSENC_CLI_CHECKS_H
#define POSENC_CLI_CHECKS_H

#include "conformance/suites/suites.h"

#include <jansson.h>

/* Implementation under test. It is skipped if its backend is NULL. */
struct checks_implementation {
    struct implementation implementation;
    const char *build; /* member "build" of its records: "base" or "head"; NULL: none */
};

struct checks {
    const struct checks_implementation *implementations;
    size_t n_implementations;
    const struct conf_options *options;
    /* Options for the command that reruns a check, such as " --plugin mine.so". */
    const char *rerun;
    size_t max_jobs; /* 0: one for each CPU */
    double limit_s;  /* seconds of --limit; NaN: the default */
    /* Receives the record of a check. Its status is "elsewhere" if another shard runs the check. It has the member
     * "range" if an error limit applies. */
    void (*on_record)(void *user, json_t *record);
    /* NULL, or called in the worker after the suites of implementations[index]. Its messages reach on_record(). */
    void (*after_suites)(void *user, size_t index, enum posenc_kernel kernel);
    /* Receives the progress, counted in pairs of a kernel and an implementation. */
    void (*progress)(void *user, size_t done, size_t total);
    void *user;
};

/* Runs the suites on all implementations, with a worker for each kernel. Records arrive in the order of kernels and
 * implementations. A worker that has loaded a plug-in checks no further implementation. If one ends its worker or
 * hangs, its check has the status "crash", and another worker continues with the next one. Stops if the program is
 * interrupted. */
void checks_run(const struct checks *checks);

/* Returns the record of a check of implementations[index], with its build. */
json_t *checks_record(const struct checks *checks, size_t index,
                      const struct conf_result *result);

#endif
