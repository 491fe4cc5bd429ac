/*
 * Comparison of the outputs of a call with the expected values. It finds the worst value with its place, and counts
 * values that are not correctly rounded:
 *
 *     struct comparison c;
 *     compare_begin(&c, &tally);
 *     compare_next(&c, call, backend, RANGE_FARTHEST);    // again for each further call
 *     compare_call(&c, NULL);                             // with the oracle
 *     compare_end(&c);    // fails the tally: "got 0x1p-3 want 0x1.8p-3 error 4 ulp limit 1 at position 7 pair 0 ..."
 *
 * First the classes must agree: NaN with any NaN, infinity, and a zero whose sign is determined. An unwritten value
 * agrees with nothing. Then the error is measured, including the half ulp of rounding, in the metric of the kernel:
 *
 *   tables          ulp, or abs if the error limit is absolute (no promise near zeros)
 *   rotations       pair_ulp, at most the signature's limit: 1.5 with one fused product and 2 without (both provable),
 *                   more for rope_qk_norm, which also normalises. Unrotated channels are copies in the others
 *   sinusoidal_add  pair_ulp, of the larger of the two terms, with a limit for every value (see measure_sum())
 *   all others      exact: the correctly rounded result, to the bit
 *
 * A program that answers prompts may round each operation of the others, and sum in any order. These kernels are then
 * measured in pair_ulp, too (struct signature, rounded_limit). A zero may have either sign.
 *
 * In 16 bits, the first three are measured in ulp of the dtype. Each value has its own limit: the largest error after
 * rounding of an f32 result within the limit above, a little over 0.5 if the f32 error is small. All others must be
 * the correctly rounded f32 result, rounded once more, to the bit.
 *
 * If expected values of a whole output cost too much, as before a timing, a result is compared with another backend's,
 * the peer's. Within a family, and for kernels that are exact above, the bits must be equal. measure_distance() has the
 * limit of the others.
 */
#ifndef POSENC_JUDGE_H
#define POSENC_JUDGE_H

#include "error_limits.h"
#include "tally.h"

/* Kinds of comparison of an f32 result. */
enum compare_kind {
    COMPARE_EXACT, /* equal bits */
    COMPARE_ULP,
    COMPARE_ABS,  /* absolute error */
    COMPARE_PAIR, /* ulp of the larger product of a rotation */
    COMPARE_SUM   /* ulp of the larger term of a sum */
};

/* One value of an output. compare_value() sets the last two members. */
struct compared_value {
    int output;
    int64_t row, column;
    float got;
    double want;
    double magnitude; /* its ulp is the unit of some errors; see oracle_compute_row() */
    struct stored_error error; /* in units of the metric, with the limit of this value */
    bool is_rounded;           /* correctly rounded */
};

struct comparison {
    struct tally *tally; /* receives the result */
    const struct call *call;
    enum compare_kind kind;
    enum posenc_dtype dtype; /* of the first output */
    const char *range;       /* of positions; NULL if none */
    double limit;            /* of the metric */
    double least_unit;       /* smallest unit of a limit in ulp, if the angle is rounded */
    double table_abs;        /* limit of the table inside a sum, if it is absolute */
    bool lacks_limit;        /* the error limits lack a row for this kernel, mode and range */
    bool skips_rounded;      /* compare_call() only counts rows that are correctly rounded */
    uint64_t checked, misrounded; /* values compared; values not correctly rounded */
    struct compared_value worst;
    double ratio;       /* error / limit of the worst value */
    bool has_new_worst; /* the result lacks the worst value */
};

/* Starts a comparison of one or more calls, with one result. */
void compare_begin(struct comparison *c, struct tally *t);
/* Starts the next call, of the same kernel, numerics mode and range of positions: an index of range_name, or
 * RANGE_FARTHEST. The call must exist until the next one, or until compare_end() or compare_end_call(). */
void compare_next(struct comparison *c, const struct call *call,
                  const struct posenc_backend *backend, int range);
/* Ends a call, and frees the calls of the tally. */
void compare_end_call(struct comparison *c);
/* Compares n values in row r of output o, from a column on. NULL magnitudes are those of `want`. */
void compare_values(struct comparison *c, int o, int64_t r, int64_t column, int64_t n,
                    const double *want, const double *magnitudes);
/* Compares one value without counting it. */
void compare_value(const struct comparison *c, struct compared_value *value);
/* Returns the name of the metric. */
const char *compare_metric(const struct comparison *c);

/* Starts a comparison of a call of `backend` with the results of `other`, whose limits `peer` holds. */
void compare_peer_next(struct comparison *c, struct comparison *peer, const struct call *call,
                       const struct posenc_backend *backend,
                       const struct posenc_backend *other);
/* Compares row r of output o with that of the other backend. */
void compare_peer_row(struct comparison *c, const struct comparison *peer, int o, int64_t r,
                      const float *reference);

/* Compares every row of a call with given values (one array for each output), or with the oracle if NULL. */
void compare_call(struct comparison *c, const double *const *given);
/* Makes, runs and compares a call of a problem, and frees it; does nothing after a failure. */
void compare_problem(struct comparison *c, const struct problem *problem, int range);

/* Requires each value of a call to be within its limit. Kernels, modes and ranges may differ between the calls of one
 * tally; no worst value is kept. */
void require_within_limits(struct tally *t, const struct call *call,
                           const struct posenc_backend *backend);

/* Ends the comparison: sets metric, error, limit, place and status of the result, unless a call has failed. */
void compare_end(struct comparison *c);

#endif
