/*
 * The oracle: the expected outputs of a call, from integer arithmetic of 128 to 256 bits and from exact products. It
 * shares no code with impl. conformance/golden/certify.py compares it with MPFR. Most callers need oracle_get_answer().
 */
#ifndef POSENC_ORACLE_H
#define POSENC_ORACLE_H

#include "conformance/exact/exact.h"
#include "conformance/problem/problem.h"

struct oracle;

/* Returns an oracle for the rows of a call, which must outlive it; NULL if out of memory. The oracle reads the dense
 * copies of inputs (call->x and others), which a kernel cannot have changed. */
struct oracle *oracle_create(const struct call *call);
void oracle_destroy(struct oracle *oracle);

/*
 * Computes row r of output o for any dtype.
 *
 *   want[width]        f64 rounded to odd: the f32 nearest to it is the correctly rounded result, and the error of a
 *                      result is known to 2^-28 ulp. For kernels that must add in a fixed order (learned_grad,
 *                      relative_sum), the f32 result of that order
 *   magnitudes[width]  values whose ulp is the unit of errors: |want|; for rotations and relative_bias the larger of
 *                      the two products (metric pair_ulp); for sums of n terms n times the sum of their magnitudes,
 *                      which bounds the roundings of any order. May be NULL
 *
 * The oracle keeps the angles of its last row, so it is for one thread at a time.
 */
void oracle_compute_row(const struct oracle *oracle, int o, int64_t r, double *want,
                        double *magnitudes);

/* Returns the row of a window's table for a query and a key. */
int64_t oracle_window_row(const struct problem *problem, int64_t query, int64_t key);
/* relative, relative_sum: returns the columns of terms, by query - key + keys - 1. */
const int32_t *oracle_columns(const struct oracle *oracle);

/* Returns true if magnitudes differ from |want|. */
bool oracle_has_magnitudes(enum posenc_kernel kernel);

/* The expected outputs of a call, [rows, width] each. magnitudes are NULL unless oracle_has_magnitudes(). */
struct oracle_answer {
    double *want[2], *magnitudes[2]; /* results of oracle_compute_row() */
    float *stored[2];                /* `want` rounded to f32, then to the output's type */

    /* For oracle.c alone. The arrays and the key are in the same block of memory. */
    const char *key; /* the problem in notation */
    bool is_cached;
};
/* Returns the answer of a call, or NULL if out of memory. Answers are cached for calls of the same problem by other
 * backends. An answer of another kernel empties the cache, so release each answer before. */
struct oracle_answer *oracle_get_answer(const struct call *call);
void oracle_release_answer(struct oracle_answer *answer);

/* Computes row r of a rotation, out[head_dim], in f32 arithmetic without fma: x0 cos - x1 sin and x1 cos + x0 sin,
 * with both products rounded, then the sum. */
void oracle_compute_row_unfused(const struct call *call, int64_t r, float *out);

#endif
