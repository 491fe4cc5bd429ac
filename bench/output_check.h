/*
 * Checks outputs before they are timed: 64 rows are compared with the oracle, all rows with the output of the backend
 * `scalar`, which is checked first. Error limits are those of the suites (engine/judge.h).
 */
#ifndef POSENC_OUTPUT_CHECK_H
#define POSENC_OUTPUT_CHECK_H

#include "bench.h"

struct check;

/* Computes the expected rows of a call. Returns NULL without memory. */
struct check *output_check_create(const struct call *call, uint64_t seed);
void output_check_destroy(struct check *check);

/* Checks 64 rows of the call's current outputs, written by `scalar`, and stores a copy of all as the reference. This
 * and the functions below return false with a reason. */
bool output_check_reference(struct check *check, const struct posenc_backend *scalar,
                            char *reason, size_t size);

/* Check all rows, or 64 rows, of the call's current outputs, written by `backend`. */
bool output_check_all(const struct check *check, const struct posenc_backend *backend,
                      char *reason, size_t size);
bool output_check_rows(const struct check *check, const struct posenc_backend *backend,
                       char *reason, size_t size);

#endif
