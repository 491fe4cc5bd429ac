/*
 * One case that is timed: its contenders, and what a run keeps from case to case.
 */
#ifndef POSENC_BENCH_RACE_H
#define POSENC_BENCH_RACE_H

#include "bench.h"
#include "contender.h"
#include "team.h"
#include "turns.h"

enum { LEAST_ROUNDS = 3 };

struct session {
    const struct bench_options *options;
    struct team *team;
    double least_sample;
    double deadline; /* of the whole run */
    size_t most_rounds;
    bench_sink *sink;
    void *user;
    /* Of a contest: cases of this kernel and type so far; of each backend, the most bytes a second
     * that it reached, and whether an output was wrong. */
    size_t nth;
    double *rate;
    bool *wrong;
};

struct race {
    struct session *session;
    const struct bench_case *bench_case;
    size_t bytes;
    uint64_t footprint;
    struct call call;
    unsigned buffers;
    struct timed_call timed; /* the call, cut for the team */
    size_t n_backends;       /* contenders[0 .. n_backends) report */
    struct contender *null, *twin, *apart;
    struct turns turns;
};

/* Whether the caller wants no more. */
bool race_is_stopped(const struct session *session);
void race_refuse(struct contender *c, enum bench_outcome outcome, const char *reason);
void race_refuse_all(struct race *race, enum bench_outcome outcome, const char *reason);
/* One call from pristine inputs, timed roughly. */
bool race_try(struct race *race, struct contender *c);
/* The backend that took least; NULL: none did. */
struct contender *race_quickest(const struct race *race);
/* Checks the outputs of all backends. */
void race_check(struct race *race);

/* A contest (contest.c): which backends may be the fastest, and samples of these alone. */
void contest_begin(struct session *session, const struct bench_case *now,
                   const struct bench_case *before, size_t n_backends);
void contest_hold(struct race *race, double begin, double share);
/* The weight of a case in the time of a run. */
double contest_weight(const struct session *session, const struct bench_case *c);

#endif
