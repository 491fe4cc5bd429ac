/*
 * The suites, and the functions that run all of them. suites.c has their order. suite_properties and suite_random are
 * in the headers of their folders.
 */
#ifndef POSENC_SUITES_H
#define POSENC_SUITES_H

#include "conformance/engine/tally.h"

suite_function suite_vectors;      /* golden vectors */
suite_function suite_accuracy;     /* tables and random data against the oracle */
suite_function suite_model;        /* calls of models: options->problem, options->presets */
suite_function suite_digests;      /* SHA-256 of outputs: committed, or of another backend */
suite_function suite_memory;       /* accesses: guard pages, canaries, lengths, strides */
suite_function suite_side_effects; /* allocations, static memory, errno, threads */
suite_function suite_problem;      /* options->only: its values, memory and side effects */
suite_function check_sizes;        /* part of suite_memory */

/* Writes the id of the case for problem number i of options->problem. */
void suite_model_id(const struct problem *problem, size_t i, char id[96]);

/* Run the cases of these suites on one problem. */
void memory_sweep(struct suite_run *run, const struct problem *problem);
void side_effects_sweep(struct suite_run *run, const struct problem *problem);

/* Requires that a call keeps the floating-point modes and raised exceptions of a caller that has unusual ones. */
void require_modes_kept(struct tally *t, struct call *call, struct guard *guard);

/* Run all suites that the options select, on an implementation or on n backends with the library's functions, kernel by
 * kernel, so that the oracle answers once. Return the number of failed or crashed results. */
size_t conf_run_implementation(const struct implementation *implementation,
                               const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user);

#endif
