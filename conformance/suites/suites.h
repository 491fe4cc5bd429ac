/*
 * The suites, and the way to run them on what a program tests.
 */
#ifndef POSENC_SUITES_H
#define POSENC_SUITES_H

#include "conformance/engine/suite.h"

/* The suites, in the order in which they run. */
typedef void run_suite(struct suite_run *run, enum posenc_kernel kernel);
run_suite suite_vectors;      /* golden vectors */
run_suite suite_accuracy;     /* scans by the oracle, budgets with witnesses */
run_suite suite_end_to_end;   /* a backend's tables through its rotations */
run_suite suite_model;        /* options->problem, options->presets: calls of models */
run_suite suite_digests;      /* family native: committed SHA-256 of outputs */
run_suite suite_memory;       /* guard pages, canaries, lengths, strides */
run_suite suite_properties;   /* relations between calls, without golden data */
run_suite suite_side_effects; /* allocations, static memory, errno, threads */
run_suite suite_problem;      /* options->only: its values, its memory, its side effects */

/* The parts of the memory suite that have a file of their own; one problem at every place of a
 * page, in memory that is guarded. */
run_suite check_lanes, check_sizes, check_gaps, check_subnormals;
/* The part of the suite of side effects that has one. */
run_suite check_kept_state;
void memory_sweep(struct suite_run *run, const struct problem *problem);

/* A call leaves the floating-point modes and the raised exceptions of a caller in other modes. */
struct tally;
struct guard;
void require_modes(struct tally *t, struct call *call, struct guard *guard);

/* Reports the side effects of calls of one problem. */
void side_effects_sweep(struct suite_run *run, const struct problem *problem);

/* Runs them on one implementation; for one kernel of a backend with the library's functions; for each
 * kernel that the options ask for, on n such backends one after the other, for whom the oracle
 * then answers once.  The number of failed or crashed results. */
size_t conf_run_implementation(const struct implementation *implementation,
                               const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run_kernel(const struct posenc_backend *backend, enum posenc_kernel kernel,
                       const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user);

#endif
