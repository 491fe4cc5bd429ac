/*
 * Times two builds alternately: base, head, and a copy of base as the A/A control, whose distance from base is noise.
 * All work on the same tensors, and a roofline takes part. Each is called by the front-end of its own build, with
 * frequencies of its own.
 */
#ifndef POSENC_PAIRS_H
#define POSENC_PAIRS_H

#include "bench.h"

enum pair_side { PAIR_BASE, PAIR_HEAD, PAIR_CONTROL, PAIR_SIDES };
extern const char *const pair_side_name[PAIR_SIDES]; /* "base", "head", "control" */

/* A backend in both builds. */
struct bench_pair {
    const struct implementation *side[PAIR_SIDES];
};

struct pair_result {
    size_t pair; /* index among those of the case */
    enum bench_outcome outcome;
    enum pair_side who; /* whose outcome it is, if the pair is not timed */
    const char *reason; /* for which it is not; lives as long as the call of the sink */
    size_t rounds;
    double ns[PAIR_SIDES]; /* medians, of one call */
    const double *x, *z;   /* [rounds] ln(head / base), ln(control / base) */
    const char *roofline_kind, *roofline_variant; /* NULL: none */
    double roofline_ns;
};

struct pair_options {
    uint64_t seed;
    const struct implementation *scalar[2]; /* of base and of head; NULL: this program's */
    bool rows_alone; /* check 64 rows: a process before checked all of the same files */
    double share_s;  /* for the rounds of all pairs */
    size_t least_rounds, most_rounds;
    /* Is told the side that is called next for the first time, or PAIR_SIDES for the rounds: it is to blame for a
     * crash. */
    void (*doing)(void *user, size_t pair, enum pair_side who);
    void (*sink)(void *user, const struct pair_result *result);
    bool (*stop)(void *user);
    void *user;
};

/* Checks all pairs, then times them one after the other. Returns 0, or -1 with a reason in `error` (256 bytes): no
 * memory, or nothing is timed here. */
int pairs_run(const struct bench_case *bench_case, const struct bench_pair *pairs, size_t n,
              const struct pair_options *options, char *error);

#endif
