/*
 * The suites, and the way to run them on what a program tests.
 */
#ifndef POSENC_SUITES_H
#define POSENC_SUITES_H

#include "conformance/engine/suite.h"

/* The suites by name, in the order in which they run. */
extern const struct suite suites[];
extern const size_t n_suites;

void suite_vectors(struct suite_run *run);    /* golden vectors */
void suite_accuracy(struct suite_run *run);   /* scans by the oracle, budgets with witnesses */
void suite_end_to_end(struct suite_run *run); /* a backend's tables through its rotations */
void suite_model(struct suite_run *run);   /* options->problem: rows of a model's own shapes */
void suite_problem(struct suite_run *run); /* options->only: its values, and its memory */
void suite_digests(struct suite_run *run); /* family template: committed SHA-256 of outputs */
void suite_memory(struct suite_run *run);  /* guard pages, canaries, read-only inputs, lengths,
                                              strides, aliasing */
void suite_properties(struct suite_run *run); /* laws that need no golden data */

/* Runs them on one subject; for one kernel of a backend with the library's functions; for each
 * kernel that the options ask for, on n such backends one after the other, for whom the oracle
 * then answers once.  The number of failed or crashed results. */
size_t conf_run_subject(const struct subject *subject, const struct conf_options *options,
                        conf_sink *sink, void *user);
size_t conf_run_kernel(const struct posenc_backend *backend, enum posenc_kernel kernel,
                       const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user);

#endif
