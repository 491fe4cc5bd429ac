/*
 * One case that is timed: its contenders, and what a run keeps from case to case.
 */
#ifndef POSENC_BENCH_RACE_H
#define POSENC_BENCH_RACE_H

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
    /* Of a contest: cases of this kernel and dtype so far; and of each backend the most bytes a second
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
    size_t n_backends;       /* contenders[0 .. n_backends) are reported */
    struct contender *control, *twin, *apart;
    struct turns turns;
};

/* Returns whether the caller wants no more. */
bool race_is_stopped(const struct session *session);
/* Refuses all backends that are still timed. */
void race_refuse_all(struct race *race, enum bench_outcome outcome, const char *reason);
/* Returns the backend that took least at its last call; NULL: none is timed. */
struct contender *race_quickest(const struct race *race);
/* Checks the outputs of all backends. */
void race_check(struct race *race);
/* Makes room for samples, then times all rounds, unless something went wrong before. */
void race_run_turns(struct race *race, bool fine);

/* A contest (contest.c) finds which backends may be the fastest, and times these alone. */
void contest_begin(struct session *session, const struct bench_case *now,
                   const struct bench_case *before, size_t n_backends);
void contest_hold(struct race *race, double begin, double share);
/* Returns the weight of a case in the time of a run. */
double contest_weight(const struct session *session, const struct bench_case *c);

#endif
