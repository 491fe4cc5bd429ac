/*
 * Inside of the engine: what the suites share.  Each suite checks one backend and reports
 * results.
 */
#ifndef POSENC_SUITE_H
#define POSENC_SUITE_H

#include "engine.h"
#include "conformance/oracle/oracle.h"
#include "conformance/readers/vectors.h"

struct suite_run {
    const struct conf_options *options;
    const struct posenc_backend *backend;
    const struct vectors
        *vectors; /* may be NULL: then suite_vectors reports one skipped result */
    conf_sink *sink;
    void *user;
    size_t failed;
    uint64_t entered[POSENC_KERNEL_COUNT]; /* results of each kernel that say something */
};

/* Whether a case is selected by the options (kernel, glob) and provided by the backend. */
bool suite_selected(const struct suite_run *run, enum posenc_kernel kernel, const char *id);
/* Counts and forwards a result; fills the backend in. */
void suite_report(struct suite_run *run, struct conf_result *result);

void suite_vectors(struct suite_run *run); /* golden vectors */
void suite_accuracy(
    struct suite_run *run); /* scans against the oracle, budgets with witnesses */
void suite_digests(struct suite_run *run); /* family template: committed SHA-256 of outputs */
void suite_memory(struct suite_run *run);  /* guard pages, canaries, read-only inputs, lengths,
                                              strides, aliasing */
void suite_properties(struct suite_run *run); /* laws that need no golden data */

/* The limits of the accuracy suite, from the budgets file (one line a row, see budgets.txt). */
struct budget {
    char kernel[32], family[32], profile[16], range[16], metric[12];
    double limit;
    char witness[96];
};
const struct budget *budget_find(const char *kernel, const char *family, const char *profile,
                                 const char *range);

/* options->problem: sampled rows of the model's own shapes. */
void suite_model(struct suite_run *run);
/* A backend's tables through its rotations; part of accuracy. */
void suite_end_to_end(struct suite_run *run);

#endif
