/*
 * Comparing the outputs of a call with what they should be: one metric and one limit for each
 * kind of kernel, the worst value with its place, the count of values not correctly rounded.
 *
 * Classes come first: a NaN, an infinity, a zero the signs of whose products are certain, must
 * be the same (any NaN for a NaN; a value the kernel left unwritten is none).  Then the total
 * error, the half ulp of rounding included:
 *
 *   tables          ulp, or abs where the budget says so (no promise near zeros)
 *   rotations       pair_ulp: at most what the signature says, 1.5 with one product fused, 2
 *                   without (both provable); channels that do not turn are copies, the same bits
 *   sinusoidal_add  pair_ulp, of the larger of the two terms, with a limit of its own for every
 *                   value (below)
 *   all others      exact: the correctly rounded result, to the bit
 *
 * Stored in 16 bits the first three are measured in ulp of the type, with a limit of its own
 * for every value: the farthest that an f32 result within the limit above can be rounded to,
 * 0.5 and a little where the f32 error is small.  All others are the correctly rounded f32
 * result, rounded once more, to the bit.
 *
 * The sum of a correctly rounded table value v and a product, rounded once, is off by
 * ulp(sum)/2; a backend whose table may be L ulp from real mathematics adds (L + 1/2) ulp(v).
 * That the sum equals build-then-add with the backend's own table is a property, to the bit.
 *
 * Where the truth of a whole output is too dear, as before a timing, a result is held against
 * that of a peer.  Members of one family have the same bits, and so has whatever is exact above.
 * Others are each within their limit of the truth and hence within the sum of both limits of each
 * other.  Units are taken at the peer's result, which may lie one binade below the truth (the
 * larger product of a rotation at most sqrt 2 above the larger of the pair's results), so that
 * sum is doubled; 16-bit results may besides be rounded to neighbours, one ulp of the type apart.
 */
#ifndef POSENC_JUDGE_H
#define POSENC_JUDGE_H

#include "tally.h"

enum compare_how { COMPARE_EXACT, COMPARE_ULP, COMPARE_ABS, COMPARE_PAIR, COMPARE_SUM };

struct comparison {
    struct tally *tally; /* whose result it makes */
    const struct call *call;
    enum compare_how how; /* of the f32 result */
    enum posenc_dtype stored;
    const char *range; /* of positions; NULL where there are none */
    double limit;      /* of the metric */
    double least_unit; /* of a limit in ulp, where the angle is rounded */
    double table_abs;  /* of the table inside a sum, where that limit is absolute */
    bool no_budget;
    uint64_t checked, misrounded;
    double ratio; /* error / limit of the worst value, which the result has; its place: */
    int output;
    int64_t row, column;
    bool fresh; /* the worst value is of this call and its place has no words yet */
};

/* Name of the range a position falls into: below 2^10, 2^17, 2^20, 2^24, 2^31. */
enum { N_RANGES = 5 };
extern const char *const range_name[N_RANGES]; /* "2^10" */
extern const char *const range_id[N_RANGES];   /* "p2e10", for case ids */
int range_of(int64_t position);
int64_t range_end(int range);

/* The budget of a table kernel.  A family without rows of its own (a plug-in) is held to
 * libm's. */
const struct budget *table_budget(const char *table, const struct posenc_backend *backend,
                                  const char *profile, int range);

void compare_begin(struct comparison *c, struct tally *t);
/* The next call to compare: of the same kernel, profile and range.  `range` -1 is that of the
 * farthest position of its problem.  A call has to last until the next one, until compare_end(),
 * or until compare_forget(), which makes the tally forget its calls. */
void compare_next(struct comparison *c, const struct call *call,
                  const struct posenc_backend *backend, int range);
void compare_forget(struct comparison *c);
/* n values of row r of output o from a column on.  mass: see oracle.h; NULL unless the kernel
 * rotates. */
void compare_values(struct comparison *c, int o, int64_t r, int64_t column, int64_t n,
                    const double *want, const double *mass);

/* Error and limit of one value, which is no more counted than kept; *right: whether it is the
 * correctly rounded one.  The name of the metric. */
struct stored_error judge_value(const struct comparison *c, int64_t r, int64_t column,
                                float got, double want, double mass, bool *right);
const char *compare_metric(const struct comparison *c);

/* A call of `backend`, to be held against what `other` made of it, row by row; `peer` keeps
 * the limits of the latter. */
void compare_peers(struct comparison *c, struct comparison *peer, const struct call *call,
                   const struct posenc_backend *backend, const struct posenc_backend *other);
void compare_beside(struct comparison *c, const struct comparison *peer, int o, int64_t r,
                    const float *reference);

/* Every row of the call against what is given, or against the oracle. */
void compare_call(struct comparison *c, const double *const *given);
/* A call of a problem, made, run, compared with the oracle and forgotten; once one has failed no
 * other is made. */
void compare_problem(struct comparison *c, const struct problem *problem, int range);

/* Whether all values are the correctly rounded ones, which are within any limit; then how many. */
bool compare_rounded(const struct call *call, uint64_t *checked);

/* The same of a call among many of a tally, whose kernels, profiles and ranges may differ: requires
 * of each value that it is within its limit, and keeps no worst. */
void require_right(struct tally *t, const struct call *call,
                   const struct posenc_backend *backend);

/* Metric, error, limit, witness and status of the result, unless a call has failed. */
void compare_end(struct comparison *c);

/* The type the outputs of a problem are stored in. */
enum posenc_dtype output_dtype(const struct problem *problem);

const char *profile_name(const struct problem *problem); /* or given */
/* "position 497577 pair 317 sin of dim 768 theta 10000", "batch 0 token 3 head 1 channel 8" */
void describe_place(const struct call *call, int o, int64_t r, int64_t column, char *text,
                    size_t size);

#endif
