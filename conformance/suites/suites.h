/*
 * The suites, and the functions that run all of them. suites.c has their order. suite_properties and suite_random are
 * in the headers of their folders.
 */
#ifndef POSENC_SUITES_H
#define POSENC_SUITES_H

#include "conformance/engine/tally.h"
#include "conformance/problem/cases.h"

/* Compares with golden vectors. */
suite_function suite_vectors;
/* Compares tables and random data with the oracle, within error limits. */
suite_function suite_accuracy;
/* Checks calls of models: options->problem and options->presets. */
suite_function suite_model;
/* Compares SHA-256 of outputs: committed ones, or those of another backend. */
suite_function suite_digests;
/* Checks accesses: guard pages, canaries, lengths, strides. */
suite_function suite_memory;
/* Checks allocations, static memory, errno, threads. */
suite_function suite_side_effects;
/* Checks options->only: its values, its memory, its side effects. */
suite_function suite_problem;

/* Writes the id of the case for problem number i of options->problem. */
void suite_model_id(const struct problem *problem, size_t i, char id[96]);

/* Part of suite_memory. */
suite_function check_sizes;

/* Run the cases of these suites on one problem. */
void memory_sweep(struct suite_run *run, const struct problem *problem);
void side_effects_sweep(struct suite_run *run, const struct problem *problem);

/* Requires that a call keeps the floating-point modes and raised exceptions of a caller that has unusual ones. */
void require_modes_kept(struct tally *t, struct call *call, struct guard *guard);

/* Run all suites that the options select, and return the number of failed or crashed results:
 *
 *     conf_run_implementation   on an implementation under test
 *     conf_run                  on n backends with the library's functions, kernel by kernel, so that the oracle
 *                               answers once
 */
size_t conf_run_implementation(const struct implementation *implementation,
                               const struct conf_options *options, conf_sink *sink, void *user);
size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user);

#endif
