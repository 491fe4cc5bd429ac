/*
 * The oracle: what each output should be, from integer arithmetic of 128 to 256 bits and from
 * exact products.  Shares no code with impl.  Certified against MPFR by the generator.
 */
#ifndef POSENC_ORACLE_H
#define POSENC_ORACLE_H

#include "conformance/exact/exact.h"
#include "conformance/problem/problem.h"

struct oracle;

/* NULL when memory runs out.  The call must outlive it; only its pristine inputs are read. */
struct oracle *oracle_create(const struct call *call);
void oracle_destroy(struct oracle *oracle);

/* Row r of output o: want[width] as f64 rounded to odd (so rounding it to f32 gives the
 * correctly rounded result, and its distance to a result is known to 2^-28 ulp), whatever the
 * storage type; sums in f32 are the f32 value itself.  mass[width],
 * where not NULL: for rotations the larger of the two products' magnitudes, whose ulp is the
 * unit of pair_ulp; otherwise |want|. */
void oracle_row(const struct oracle *oracle, int o, int64_t r, double *want, double *mass);

/* Whether magnitudes other than those of the results are the units of errors. */
bool oracle_has_masses(enum posenc_kernel kernel);

/* Every row of each output, [rows, width]: what oracle_row() says of a call whose inputs are its
 * problem's own, and what is stored of that without an error: the nearest f32, rounded once more in
 * 16 bits.  mass: NULL where a kernel has none. */
struct answer {
    double *want[2], *mass[2];
    float *stored[2];
    char *key; /* the problem's line */
    double *values;
    float *floats;
    bool kept;
};
/* NULL when memory runs out.  Answers are kept for whoever asks for the same problem, such as the
 * next backend: each that was taken has to be given back before one of another kernel is. */
struct answer *answer_take(const struct call *call);
void answer_give_back(struct answer *answer);

/* Row r of a rotation in plain f32 arithmetic: x0 cos - x1 sin and x1 cos + x0 sin, both
 * products rounded, then their sum.  out[head_dim]; reads the pristine inputs. */
void oracle_row_unfused(const struct call *call, int64_t r, float *out);

#endif
