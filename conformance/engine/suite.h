/*
 * Interface between the engine and suites. Each suite checks one implementation and reports results.
 */
#ifndef POSENC_SUITE_H
#define POSENC_SUITE_H

#include "engine.h"
#include "conformance/oracle/oracle.h"
#include "conformance/readers/vectors.h"

struct suite_run {
    const struct conf_options *options;
    const struct implementation *implementation;
    const struct posenc_backend *backend; /* of `implementation` */
    conf_sink *sink;
    void *user;
    size_t failed;             /* number of failures and crashes in all kernels */
    enum posenc_kernel kernel; /* the current kernel */
    size_t n_entered;          /* results of the current kernel that ran it */
    size_t n_elsewhere;        /* checks of the current kernel that another process runs */
};

/* Returns true if the options select a case and the backend supports its type. */
bool suite_selected(struct suite_run *run, const char *id);
/* Counts and forwards a result, after setting its backend. */
void suite_report(struct suite_run *run, struct conf_result *result);

/* Announces a failure before its problem is run again. */
void suite_announce(struct suite_run *run, const struct conf_result *result);

/* A suite, or a part of one. It runs for each selected kernel that the backend provides. */
struct suite {
    const char *name;
    void (*run)(struct suite_run *run, enum posenc_kernel kernel);
    enum program_mode programs; /* the last mode in which it judges programs */
};
/* Runs n suites; returns the number of failed or crashed results. */
size_t engine_run(const struct suite *suites, size_t n,
                  const struct implementation *implementation,
                  const struct conf_options *options, conf_sink *sink, void *user);

#endif
