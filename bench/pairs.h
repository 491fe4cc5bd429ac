/* Times two builds alternately, for posenc pair and posenc compare: base, head, and a copy of base as the A/A control. All
 * work on the same tensors, and a roofline takes part. Each side is called through the public function of its build, with
 * frequencies of its own. If head takes 110 ns and base 100 ns, the log ratios are near ln 1.1 = 0.095. */
#ifndef POSENC_PAIRS_H
#define POSENC_PAIRS_H

#include "bench.h"

enum pair_side { PAIR_BASE, PAIR_HEAD, PAIR_CONTROL, PAIR_SIDES, PAIR_NO_SIDE = PAIR_SIDES };
extern const char *const pair_side_name[PAIR_SIDES]; /* "base", "head", "control" */

/* Backend in both builds. */
struct bench_pair {
    const struct implementation *sides[PAIR_SIDES];
};

struct pair_result {
    size_t pair; /* index among those of the case */
    enum bench_outcome outcome;
    enum pair_side side; /* if not timed: side of the outcome, or PAIR_NO_SIDE */
    const char *reason;  /* why it is not timed; valid during the sink's call */
    size_t rounds;
    double ns[PAIR_SIDES];            /* medians, of one call */
    const double *log_ratios;         /* [rounds] ln(head / base), NULL without memory */
    const double *control_log_ratios; /* [rounds] ln(control / base) */
    const char *roofline_kind, *roofline_variant; /* NULL: none */
    double roofline_ns;
};

struct pair_options {
    uint64_t seed;
    const struct implementation *scalar[2]; /* of base and of head; NULL: this program's */
    bool rows_alone; /* check 64 rows against the oracle only: an earlier process checked all */
    double share_s;  /* seconds for the rounds of all pairs */
    size_t min_rounds, max_rounds;
    /* Called before the first call of a side, and with PAIR_NO_SIDE before the rounds, to attribute crashes. */
    void (*on_call)(void *user, size_t pair, enum pair_side side);
    void (*on_result)(void *user, const struct pair_result *result);
    bool (*stop)(void *user);
    void *user;
};

/* Checks all pairs, then times them one after the other. Returns 0, or -1 with a reason in `error` (256 bytes): no
 * memory, or an emulated CPU. */
int pairs_time(const struct bench_case *bench_case, const struct bench_pair *pairs, size_t n,
               const struct pair_options *options, char *error);

#endif
