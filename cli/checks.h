/*
 * Checks of kernels in workers (worker.h), several at the same time.
 */
#ifndef POSENC_CLI_CHECKS_H
#define POSENC_CLI_CHECKS_H

#include "conformance/suites/suites.h"

#include <jansson.h>

/* An implementation under test. Without a backend it is skipped. */
struct checks_subject {
    struct implementation implementation;
    const char *build; /* the member "build" of its records; NULL: they have none */
};

struct checks {
    const struct checks_subject *subjects;
    size_t n_subjects;
    const struct conf_options *options;
    /* Options that a command to rerun a check needs, such as " --plugin mine.so". */
    const char *rerun;
    size_t at_once; /* kernels at the same time; 0: one for each CPU */
    double limit_s; /* seconds of --limit; NaN: the default */
    /* Takes a record; that of a check which another shard makes has the status "elsewhere". A
     * check with a row of error limits has the member "range" as well. */
    void (*take)(void *user, json_t *record);
    /* Runs in the worker after the suites of a subject; its messages, which name their kernel, go to
     * `take`. NULL: nothing runs. */
    void (*after_suites)(void *user, size_t subject, enum posenc_kernel kernel);
    /* Takes the progress: pairs of a kernel and a subject. */
    void (*progress)(void *user, size_t done, size_t total);
    void *user;
};

/* Runs the suites on all subjects with a worker for each kernel, and hands on the records in the
 * order of kernels and subjects. A plug-in is loaded into a worker that runs nothing else afterwards. A
 * subject that ends its worker or hangs has a check with the status "crash", and the subjects after it
 * are checked in another worker. Stops if the program is interrupted. */
void checks_run(const struct checks *checks);

/* Makes the record of a check of a subject, with its build. */
json_t *checks_record(const struct checks *checks, size_t subject,
                      const struct conf_result *result);

#endif
