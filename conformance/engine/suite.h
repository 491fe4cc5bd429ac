/*
 * What the engine hands to a suite, and what suites share.  Each suite checks one subject and
 * reports results.
 */
#ifndef POSENC_SUITE_H
#define POSENC_SUITE_H

#include "engine.h"
#include "conformance/oracle/oracle.h"
#include "conformance/readers/vectors.h"

struct suite_run {
    const struct conf_options *options;
    const struct subject *subject;
    const struct posenc_backend *backend; /* the subject's */
    conf_sink *sink;
    void *user;
    size_t failed;             /* failures and crashes, of all kernels */
    enum posenc_kernel kernel; /* the one at hand, */
    size_t entered;            /* its failures, crashes and passes, */
    size_t elsewhere;          /* its checks that are left to another run */
};

/* Whether the options ask for a case, and the backend has its type. */
bool suite_selected(struct suite_run *run, const char *id);
/* Counts and forwards a result; fills the backend in. */
void suite_report(struct suite_run *run, struct conf_result *result);

/* A limit of the accuracy suite: a row of the budgets file (see budgets.txt). */
struct budget {
    char kernel[32], family[32], profile[16], range[16], metric[12];
    double limit;
    char witness[96];
};
/* NULL where the file has no such row. */
const struct budget *budget_find(const char *kernel, const char *family, const char *profile,
                                 const char *range);

/* A suite, or a part of one, under its name; runs for each kernel asked for and provided. */
struct suite {
    const char *name;
    void (*run)(struct suite_run *run, enum posenc_kernel kernel);
};
/* Runs n suites on a subject; returns the number of failed or crashed results. */
size_t engine_run(const struct suite *suites, size_t n, const struct subject *subject,
                  const struct conf_options *options, conf_sink *sink, void *user);

#endif
