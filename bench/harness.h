/*
 * The inside of the harness: the contenders of one case, timed in rounds (rounds.c), what binds them (limits.c), and a
 * run from case to case (harness.c, tuning.c).
 *
 * A contender is calibrated once, then timed once in every round that it takes part in, in a random order that a seed
 * repeats. Comparisons are made within rounds, so that drift of the machine between them cancels.
 */
#ifndef POSENC_BENCH_HARNESS_H
#define POSENC_BENCH_HARNESS_H

#include "contender.h"
#include "base/statistics/stats.h"

/* ---- Rounds ---- */

struct rounds {
    bool varies_stack;            /* each round lies at another depth of the stack */
    struct contender *contenders; /* those whose outcome is BENCH_TIMED take part */
    size_t n, n_rounds;
    double *samples; /* [n, n_rounds] seconds of one call, the caller's; NaN: not taken */
    double least_sample;
    uint64_t seed;            /* of the order within rounds */
    bool (*stop)(void *user); /* NULL, or asked between samples; true ends the rounds */
    void *user;
};

/* Fixes how many calls a sample of a contender is, so that it lasts at least `least_sample`. Returns false if Google
 * Benchmark failed, or the caller wants no more. */
bool contender_calibrate(struct contender *c, double least_sample);
bool rounds_calibrate(struct rounds *rounds);

/* Returns the seconds of a sample, with the untimed calls before it. */
double contender_sample_seconds(const struct contender *c);

/* Times all rounds; each contender takes part in c->rounds of them. */
bool rounds_run(struct rounds *rounds);
double *rounds_samples(const struct rounds *rounds, const struct contender *c);
double rounds_median(const struct rounds *rounds, const struct contender *c);

/* Returns the one with the least median among those that `accepts` takes, without partial calls, copies and those after
 * checks; NULL: there is none. */
const struct contender *rounds_fastest(const struct rounds *rounds,
                                       bool (*accepts)(const struct contender *c));
/* Returns how many times faster `c` is than `other`, within rounds; 0: unknown. */
double rounds_speed(const struct rounds *rounds, const struct contender *c,
                    const struct contender *other);

/* ---- Limits ---- */

/* A lower bound of a contender's time: that of its roofline, of its conversions, of the lower-bound loop of its kernel,
 * or of the call without rows. The one that takes longest binds. */
struct limit {
    enum resource resource;
    const char *kind, *variant; /* "in place", "table", "call"; "avx512 plain", a backend */
    double share;               /* its time over that of the contender; 0: there is none */
    double seconds;
};

/* Adds the loops of the call, of each kind those that are near the quickest at a first try. */
void limits_add_loops(struct rounds *rounds, const struct timed_call *timed);

/* Adds, if calls are short, each roofline and loop after the call's checks, and of each backend a copy that does a part
 * of the call: whole and part show the time of a call without rows. All others have been calibrated. Returns false if
 * one could not be calibrated. */
bool limits_add_short_calls(struct rounds *rounds, const struct timed_call *timed);

/* Finds the limit that binds a contender that was timed. */
struct limit limits_find(const struct rounds *rounds, const struct contender *c);

/* ---- A run ---- */

enum { LEAST_ROUNDS = 3 };

struct session {
    const struct bench_options *options;
    struct team *team;
    double least_sample;
    double deadline; /* of the whole run */
    size_t most_rounds;
    bench_sink *sink;
    void *user;
    /* For a tuning: cases of this kernel and dtype so far; and of each backend the most bytes a second that it reached,
     * and whether an output was wrong. */
    size_t nth;
    double *rate;
    bool *wrong;
};

/* One case that is timed. */
struct case_run {
    struct session *session;
    const struct bench_case *bench_case;
    size_t bytes;
    uint64_t footprint;
    struct call call;
    unsigned buffers;
    struct timed_call timed; /* the call, cut for the team */
    size_t n_backends;       /* contenders[0 .. n_backends) are reported */
    struct contender *control, *control_of;
    struct rounds rounds;
};

/* Returns true if the caller wants no more. */
bool session_is_stopped(const struct session *session);
/* Rejects all backends that are still to be timed. */
void case_reject_all(struct case_run *run, enum bench_outcome outcome, const char *reason);
/* Returns the backend that took least at its last call; NULL: none is timed. */
struct contender *case_quickest(const struct case_run *run);
/* Checks the outputs of all backends. */
void case_check(struct case_run *run);
/* Allocates samples, then times all rounds, unless `fine` says that something failed before. */
void case_time_rounds(struct case_run *run, bool fine);

/* A tuning finds which backends may be the fastest of a case, and times these alone. */
void tuning_begin_case(struct session *session, const struct bench_case *now,
                       const struct bench_case *before, size_t n_backends);
void tuning_time_case(struct case_run *run, double begin, double share);
/* Returns the weight of a case in the time of a run. */
double tuning_case_weight(const struct session *session, const struct bench_case *c);

#endif
