/*
 * Checks outputs before they are timed: 64 rows are compared with the oracle, all rows with the output of the backend
 * `scalar`, which is checked first. Error limits are those of the suites (engine/judge.h).
 */
#ifndef POSENC_OUTPUT_CHECK_H
#define POSENC_OUTPUT_CHECK_H

#include "bench.h"

struct output_check;

/* Chooses at most 64 rows of a call, some by `seed`, and computes them by the oracle. Returns NULL without memory. */
struct output_check *output_check_create(const struct call *call, uint64_t seed);
void output_check_destroy(struct output_check *check);

/* Checks the chosen rows of the call's current outputs, written by `scalar`, and copies all rows as the reference. This
 * and the functions below return false, and write a reason, if an output is wrong or memory is
 * missing. */
bool output_check_reference(struct output_check *check, const struct posenc_backend *scalar,
                            char *reason, size_t size);

/* Check the call's current outputs, written by `backend`. output_check_rows() compares the chosen rows with the oracle;
 * output_check_all() compares all rows with the reference, too, and needs output_check_reference() before. */
bool output_check_all(const struct output_check *check, const struct posenc_backend *backend,
                      char *reason, size_t size);
bool output_check_rows(const struct output_check *check, const struct posenc_backend *backend,
                       char *reason, size_t size);

#endif
