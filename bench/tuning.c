/*
 * Finds the fastest backend of each case for posenc tune. Cases of a kernel come one after the other, from the nearest
 * level of memory to DRAM, so that a case uses the results of the cases before it.
 *
 * Most backends are rejected before any round. First, a backend is too slow if its rate (bytes per second) in a nearer
 * level of memory, except the nearest, is lower than that of another backend in this level. Then, backends are rejected
 * whose fastest call takes TOO_SLOW times as long as that of the best.
 */
#include "harness.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

enum {
    CHECKED_CASES = 2, /* of a kernel, whose outputs are checked; later cases are larger */
    GOOD_ROUNDS = 7,   /* fewest rounds, unless a round is long */
};
/* Factors over the fastest time at which a backend is rejected, and rejected without calibration. */
static const double TOO_SLOW = 1.4, FAR_TOO_SLOW = 4.0;
/* Weight of cases in DRAM in the time of a run: their calls are long and vary most. */
static const double DRAM_WEIGHT = 4.0;

static const char reason_slow[] = "slower than the fastest by far";

/* Rejects backends by their rates in nearer levels of memory. Calls the backend with the best rate so far in this one. */
static void reject_by_rate(struct case_run *run)
{
    const double *rate = run->session->best_rate;
    struct contender *backends = run->rounds.contenders, *leader = NULL;
    for (size_t i = 0; i < run->n_backends; i++) {
        if (run->session->was_wrong[i] && contender_is_timed(&backends[i]))
            contender_reject(&backends[i], BENCH_REJECTED, "wrong in a smaller case");
        if (contender_is_timed(&backends[i]) && (!leader || rate[i] >= rate[leader - backends]))
            leader = &backends[i];
    }
    for (int i = 0; leader && i < 2; i++) /* the first call loads data into that level */
        if (!contender_try(leader, &run->call))
            return;
    for (size_t i = 0; leader && rate[leader - backends] > 0.0 && i < run->n_backends; i++)
        if (contender_is_timed(&backends[i]) && &backends[i] != leader &&
            rate[i] * TOO_SLOW < (double)run->footprint / leader->seconds)
            contender_reject(&backends[i], BENCH_REJECTED, reason_slow);
}

/* Calls a backend until a call is not far too slow, at most three times, since a slow call may have been interrupted. Stores
 * the shortest time. */
static void try_up_to_three_times(struct case_run *run, struct contender *c, double best)
{
    double shortest = (double)INFINITY;
    for (int i = 0; i < 3 && !(shortest < FAR_TOO_SLOW * best) && contender_try(c, &run->call);
         i++)
        shortest = fmin(shortest, c->seconds);
    c->seconds = shortest;
}

/* Calibrates backends that are not far too slow, and rejects those that are too slow. Returns false on failure. */
static bool reject_by_calls(struct case_run *run)
{
    struct bench_session *session = run->session;
    struct contender *backends = run->rounds.contenders;
    double best = (double)INFINITY;
    for (size_t i = 0; i < run->n_backends; i++) {
        if (!contender_is_timed(&backends[i]))
            continue;
        try_up_to_three_times(run, &backends[i], best);
        if (backends[i].seconds < FAR_TOO_SLOW * best &&
            !contender_calibrate(&backends[i], session->least_sample))
            return false;
        best = fmin(best, backends[i].seconds);
        if (session->cases_of_kernel > 1) /* not in the nearest level */
            session->best_rate[i] =
                fmax(session->best_rate[i], (double)run->footprint / backends[i].seconds);
    }
    for (size_t i = 0; i < run->n_backends; i++) {
        struct contender *c = &backends[i];
        if (!contender_is_timed(c))
            continue;
        if (c->seconds > TOO_SLOW * best &&
            c->seconds < FAR_TOO_SLOW * best && /* it may have been interrupted */
            !contender_calibrate(c, session->least_sample))
            return false;
        if (c->seconds > TOO_SLOW * best)
            contender_reject(c, BENCH_REJECTED, reason_slow);
    }
    return true;
}

void tuning_begin_case(struct bench_session *session, const struct bench_case *now,
                       const struct bench_case *before, size_t n_backends)
{
    if (before && now->problem.kernel == before->problem.kernel &&
        now->problem.dtype == before->problem.dtype)
        return;
    session->cases_of_kernel = 0;
    memset(session->best_rate, 0, n_backends * sizeof *session->best_rate);
    memset(session->was_wrong, 0, n_backends * sizeof *session->was_wrong);
}

void tuning_time_case(struct case_run *run, double begin, double share)
{
    struct bench_session *session = run->session;
    if (session->cases_of_kernel++ < CHECKED_CASES)
        case_check(run);
    for (size_t i = 0; i < run->n_backends; i++)
        session->was_wrong[i] |= run->rounds.contenders[i].outcome == BENCH_WRONG;
    timed_call_make_repeatable(&run->call);
    timed_call_cut(&run->timed);
    reject_by_rate(run);
    if (!case_find_fastest(run) || bench_is_stopped(session))
        return;
    const bool ok = reject_by_calls(run);
    const bool is_long = rounds_seconds(&run->rounds) > CONTENDER_SLOW_S;
    rounds_plan(&run->rounds, share - (clock_now() - begin), is_long ? MIN_ROUNDS : GOOD_ROUNDS,
                MOST_TUNING_ROUNDS);
    case_time_rounds(run, ok);
}

double tuning_case_weight(const struct bench_session *session, const struct bench_case *c)
{
    return session->options->tuning && strcmp(c->level, "DRAM") == 0 ? DRAM_WEIGHT : 1.0;
}
