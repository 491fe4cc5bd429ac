/*
 * No number without a check: before a case is timed, 64 rows of a backend's output on the bench's own
 * shape are compared with the oracle, and all of it with that of the verified `scalar`.  engine/judge.h
 * says how far from right a result may be, as for the suites.
 */
#ifndef POSENC_CHECK_H
#define POSENC_CHECK_H

#include "bench.h"

struct check;

/* Prepares the oracle's rows of a call. Returns NULL when memory runs out. */
struct check *check_create(const struct call *call, uint64_t seed);
void check_destroy(struct check *check);

/* Takes the call's outputs as those of `scalar`: verifies their 64 rows and keeps a copy, in place of one before. This
 * and what follows return false with a reason. */
bool check_reference(struct check *check, const struct posenc_backend *scalar, char *reason,
                     size_t size);

/* Compares the call's outputs, as `backend` left them; or their 64 rows alone. */
bool check_output(const struct check *check, const struct posenc_backend *backend, char *reason,
                  size_t size);
bool check_rows(const struct check *check, const struct posenc_backend *backend, char *reason,
                size_t size);

#endif
