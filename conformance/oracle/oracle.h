/*
 * The oracle: expected outputs from integer arithmetic of 128 to 256 bits and from exact products.
 * Shares no code with impl. The generator certifies it against MPFR.
 */
#ifndef POSENC_ORACLE_H
#define POSENC_ORACLE_H

#include "conformance/exact/exact.h"
#include "conformance/problem/problem.h"

struct oracle;

/* Returns NULL if out of memory. The call must outlive the oracle. Only pristine inputs are
 * read. */
struct oracle *oracle_create(const struct call *call);
void oracle_destroy(struct oracle *oracle);

/* Computes row r of output o for any dtype. want[width] is f64 rounded to odd: its nearest f32 is
 * the correctly rounded result, and its distance to a result is known to 2^-28 ulp. Sums in f32 are
 * the f32 value itself. mass[width] may be NULL. For rotations it is the magnitude of the larger
 * product, whose ulp is the unit of pair_ulp; otherwise |want|. */
void oracle_row(const struct oracle *oracle, int o, int64_t r, double *want, double *mass);

/* Returns true if units of errors are not those of the results' own magnitudes. */
bool oracle_has_masses(enum posenc_kernel kernel);

/* All rows of each output, [rows, width]: the results of oracle_row(), and the nearest f32 to each,
 * rounded again to 16 bits if so stored. mass is NULL for kernels without masses. */
struct answer {
    double *want[2], *mass[2];
    float *stored[2];
    char *key; /* the problem in notation */
    double *values;
    float *floats;
    bool kept;
};
/* Returns the answer of a call, or NULL if out of memory. Answers are kept for calls of the same
 * problem by other backends. Give each back before an answer of another kernel is taken. */
struct answer *answer_take(const struct call *call);
void answer_give_back(struct answer *answer);

/* Computes row r of a rotation in plain f32 arithmetic: x0 cos - x1 sin and x1 cos + x0 sin, with
 * both products rounded, then the sum. Writes out[head_dim]; reads the pristine inputs. */
void oracle_row_unfused(const struct call *call, int64_t r, float *out);

#endif
