/* The suites, and the functions that run all of them. */
#ifndef POSENC_SUITES_H
#define POSENC_SUITES_H

#include "conformance/engine/suite.h"
#include "conformance/problem/cases.h"

/* Runs the cases of a suite, or of a part of it, for one kernel. */
typedef void run_suite(struct suite_run *run, enum posenc_kernel kernel);
run_suite suite_vectors;    /* golden vectors */
run_suite suite_accuracy;   /* tables and random data against the oracle, within error limits */
run_suite suite_end_to_end; /* a backend's own tables through its rotations */
run_suite suite_model;      /* options->problem and options->presets: calls of models */
run_suite suite_digests; /* SHA-256 of outputs: committed ones, or those of another backend */
run_suite suite_memory;  /* guard pages, canaries, lengths, strides */
run_suite suite_properties;   /* relations between calls, without golden data */
run_suite suite_side_effects; /* allocations, static memory, errno, threads */
run_suite suite_problem;      /* options->only: its values, its memory, its side effects */

/* Parts of suites in files of their own: of the suite "memory", and of "side-effects". */
run_suite check_lanes, check_sizes, check_subnormals;
run_suite check_kept_state;

/* Run the cases of these suites on one problem. */
void memory_sweep(struct suite_run *run, const struct problem *problem);
void side_effects_sweep(struct suite_run *run, const struct problem *problem);

/* Requires that a call keeps the floating-point modes and raised exceptions of a caller that has unusual ones. */
struct tally;
struct guard;
void require_modes_kept(struct tally *t, struct call *call, struct guard *guard);

/* Ends the program with a message if a line of a compiled-in case file belongs to no case, and so would never run. */
void require_known_lines(enum cases_file file, const char *name,
                         bool (*is_known)(const struct problem_line *line));

/* Run all suites that the options select, and return the number of failed or crashed results:
 *
 *     conf_run_implementation   on an implementation under test
 *     conf_run_kernel           on one kernel of a backend, with the library's functions
 *     conf_run                  on n backends, kernel by kernel, so that the oracle answers once
 */
size_t conf_run_implementation(const struct implementation *implementation,
                               const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run_kernel(const struct posenc_backend *backend, enum posenc_kernel kernel,
                       const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user);

#endif
