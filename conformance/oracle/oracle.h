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

/* Row r of a rotation in plain f32 arithmetic: x0 cos - x1 sin and x1 cos + x0 sin, both
 * products rounded, then their sum.  out[head_dim]; reads the pristine inputs. */
void oracle_row_unfused(const struct call *call, int64_t r, float *out);

#endif
