/*
 * Internals of the harness: timing of contenders in rounds (rounds.c), limits that bind them (limits.c), checks of outputs
 * (output_check.c), and runs over cases (harness.c, tuning.c). pairs.c uses rounds and checks, too.
 *
 * A contender is calibrated once, then timed once in every round in which it takes part, in a random order that depends
 * on the seed. Comparisons are made within rounds, so that drift between rounds cancels.
 */
#ifndef POSENC_BENCH_HARNESS_H
#define POSENC_BENCH_HARNESS_H

#include "contender.h"
#include "base/statistics/stats.h"

/* ---- Rounds ---- */

struct rounds {
    struct contender *contenders; /* [n]; only those of outcome BENCH_TIMED are timed */
    size_t n, n_rounds;
    double *samples; /* [n, n_rounds] seconds of one call; NaN: missing; owned by the caller */
    double least_sample;      /* seconds that a sample lasts at least */
    bool varies_stack;        /* each round runs at another depth of the stack */
    uint64_t seed;            /* for the order within rounds, and the depths */
    bool (*stop)(void *user); /* NULL, or called between samples; true ends the rounds */
    void *user;
};

/* Choose the number of calls in a sample of one contender, or of all, so that it lasts at least `least_sample` seconds.
 * Return false if Google Benchmark failed or stop() returned true. */
bool contender_calibrate(struct contender *c, double least_sample);
bool rounds_calibrate(struct rounds *rounds);

/* Returns the seconds of a sample with its warm-up calls. */
double contender_sample_seconds(const struct contender *c);

/* Returns the seconds of a round in which all contenders take part. */
double rounds_seconds(const struct rounds *rounds);
/* Plans as many such rounds as fit into `share` seconds, at least `fewest` and at most `most`. */
void rounds_plan(struct rounds *rounds, double share, double fewest, double most);
/* Times all rounds; each contender takes part in c->rounds of them. Returns false on failure. */
bool rounds_time(struct rounds *rounds);
/* Return the samples of a contender, one for each round, and their median. */
double *rounds_samples(const struct rounds *rounds, const struct contender *c);
double rounds_median(const struct rounds *rounds, const struct contender *c);

/* Returns the contender with the smallest median among those that `accepts`, except partial calls and copies; NULL:
 * none. */
const struct contender *rounds_fastest(const struct rounds *rounds,
                                       bool (*accepts)(const struct contender *c));
/* Returns the speedup of `c` over `other` within rounds; 0: unknown. */
double rounds_speed(const struct rounds *rounds, const struct contender *c,
                    const struct contender *other);

/* ---- Limits ---- */

/* Lower bound of a contender's time: its roofline, its conversions, the lower-bound loop of its kernel, or the call
 * without rows. The longest one binds. */
struct lower_bound {
    enum resource resource;
    const char *kind, *variant; /* "in place", "table", "call"; "avx512 plain", a backend */
    double share;               /* its time relative to the contender's; 0: no limit */
    double seconds;             /* its time */
};

/* Adds the loops of the call; of each kind, the variants within 1.5 times of the fastest at a first try. */
void limits_add_loops(struct rounds *rounds, const struct timed_call *timed);

/* Adds the partial call of each backend whose call is short; from it the time of a call without rows follows. All other
 * contenders are calibrated before. Returns false on failure. */
bool limits_add_partial_calls(struct rounds *rounds, const struct timed_call *timed);

/* Returns the limit that binds a timed contender. */
struct lower_bound limits_find(const struct rounds *rounds, const struct contender *c);

/* ---- Checks of outputs before they are timed (output_check.c) ---- */

/* 64 rows are compared with the oracle, all rows with the output of the backend `scalar`, which is checked first. Error
 * limits are those of the suites (engine/judge.h). */
struct output_check;

/* Chooses at most 64 rows of a call, some by `seed`, and computes them by the oracle. Returns NULL without memory. */
struct output_check *output_check_create(const struct call *call, uint64_t seed);
void output_check_destroy(struct output_check *check);

/* Checks the chosen rows of the call's current outputs, written by `scalar`, and copies all rows as the reference. This
 * and the functions below return false, and write a reason, if an output is wrong or memory is
 * missing. */
bool output_check_reference(struct output_check *check, const struct posenc_backend *scalar,
                            char *reason, size_t size);

/* Check the call's current outputs, written by `backend`. output_check_rows() compares the chosen rows with the oracle;
 * output_check_all() compares all rows with the reference, too, and needs output_check_reference() before. */
bool output_check_all(const struct output_check *check, const struct posenc_backend *backend,
                      char *reason, size_t size);
bool output_check_rows(const struct output_check *check, const struct posenc_backend *backend,
                       char *reason, size_t size);

/* ---- A run ---- */

enum { MIN_ROUNDS = 3 };

struct bench_session {
    const struct bench_options *options;
    int threads; /* of the team */
    struct team *team;
    double least_sample; /* seconds, as in struct rounds */
    double deadline;     /* of the whole run, by clock_now() */
    size_t max_rounds;
    bench_sink *sink;
    void *user;
    /* For a tuning, since the first case of this kernel and dtype: the number of cases, and of each backend the highest
     * rate in bytes per second, and true after a wrong output. */
    size_t cases_of_kernel;
    double *best_rate;
    bool *was_wrong;
};

/* Case that is timed. */
struct case_run {
    struct bench_session *session;
    const struct bench_case *bench_case;
    size_t bytes;       /* read and written by one call */
    uint64_t footprint; /* posenc_footprint() of the call */
    struct call call;
    unsigned buffers;        /* number of the call's buffers, for timed_call_memory() */
    struct timed_call timed; /* call with the shares of the team */
    size_t n_backends;       /* contenders[0 .. n_backends) are reported */
    struct contender *control,
        *control_of; /* A/A control, and the backend of which it is a copy */
    struct rounds rounds;
};

/* Returns true if stop() ends the run. */
bool bench_is_stopped(const struct bench_session *session);
/* Returns the backend with the shortest last call; NULL: none. */
struct contender *case_find_fastest(const struct case_run *run);
/* Checks the outputs of all backends, and rejects backends with a wrong one. */
void case_check(struct case_run *run);
/* Times all rounds if `ok`; otherwise, or on failure, rejects all backends. */
void case_time_rounds(struct case_run *run, bool ok);

/* Starts a case of a tuning; `before` is the case before it, or NULL. */
void tuning_begin_case(struct bench_session *session, const struct bench_case *now,
                       const struct bench_case *before, size_t n_backends);
/* Times the backends that may be the fastest of a case, in `share` seconds since `begin`. */
void tuning_time_case(struct case_run *run, double begin, double share);
/* Returns the weight of a case in the time of a run. */
double tuning_case_weight(const struct bench_session *session, const struct bench_case *c);

#endif
