/*
 * Kernels that do two things in one pass are compared with the steps, one after the other.
 */
#ifndef POSENC_APART_H
#define POSENC_APART_H

#include "conformance/problem/problem.h"

/* Runs the steps of a call, the last of them on a backend. */
typedef enum posenc_status apart_steps(const union arguments *args,
                                       const struct posenc_backend *backend);

/* Returns the steps of a problem; NULL: its kernel does one thing, or is not stored as f32. */
apart_steps *apart_of(const struct problem *problem);

#endif
