/*
 * A contest of backends, for posenc tune: it finds the fastest and times nothing beside it.
 *
 * Most backends need no rounds to lose.  A backend that reached fewer bytes a second in a nearer place
 * of memory than another does in this one is rejected by that.  The nearest place itself is left out,
 * for there the work of a call counts, too.  Of the others, those whose calls take HOPELESS times as
 * long as the quickest are rejected by the least of several calls.
 */
#define POSENC_EXPERIMENTAL
#include "harness.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

/* Cases of a kernel in which outputs are checked; later ones have more bytes. */
enum { CHECKED_CASES = 2 };
/* Times as long as the fastest at which a backend is rejected, and is not even calibrated. */
static const double HOPELESS = 1.4, FAR = 4.0;
/* Calls in memory take long and differ most from one to the next: their share of the time is larger. */
static const double DRAM_WEIGHT = 4.0;

static const char too_slow[] = "slower than the fastest by far";

/* Rejects backends by what they did in nearer places. */
static void reject_by_rate(struct case_run *run)
{
    const double *rate = run->session->rate;
    struct contender *all = run->rounds.contenders, *leader = NULL;
    for (size_t i = 0; i < run->n_backends; i++) {
        if (run->session->wrong[i] && contender_is_timed(&all[i]))
            contender_reject(&all[i], BENCH_REJECTED, "wrong in a smaller case");
        if (contender_is_timed(&all[i]) && (!leader || rate[i] >= rate[leader - all]))
            leader = &all[i];
    }
    for (int i = 0; leader && i < 2; i++) /* the second call finds its data where they belong */
        if (!contender_try(leader, &run->call))
            return;
    for (size_t i = 0; leader && rate[leader - all] > 0.0 && i < run->n_backends; i++)
        if (contender_is_timed(&all[i]) && &all[i] != leader &&
            rate[i] * HOPELESS < (double)run->footprint / leader->seconds)
            contender_reject(&all[i], BENCH_REJECTED, too_slow);
}

/* Calls a backend up to three times, for a call that took long may have been interrupted. */
static void try_fairly(struct case_run *run, struct contender *c, double best)
{
    double least = (double)INFINITY;
    for (int i = 0; i < 3 && !(least < FAR * best) && contender_try(c, &run->call); i++)
        least = fmin(least, c->seconds);
    c->seconds = least;
}

/* Calibrates backends that are not far behind, and rejects what is not near. */
static bool reject_by_calls(struct case_run *run)
{
    struct session *session = run->session;
    struct contender *all = run->rounds.contenders;
    double best = (double)INFINITY;
    for (size_t i = 0; i < run->n_backends; i++) {
        if (!contender_is_timed(&all[i]))
            continue;
        try_fairly(run, &all[i], best);
        if (all[i].seconds < FAR * best && !contender_calibrate(&all[i], session->least_sample))
            return false;
        best = fmin(best, all[i].seconds);
        if (session->nth > 1)
            session->rate[i] = fmax(session->rate[i], (double)run->footprint / all[i].seconds);
    }
    for (size_t i = 0; i < run->n_backends; i++) {
        struct contender *c = &all[i];
        if (!contender_is_timed(c))
            continue;
        if (c->seconds > HOPELESS * best &&
            c->seconds < FAR * best && /* it may have stumbled */
            !contender_calibrate(c, session->least_sample))
            return false;
        if (c->seconds > HOPELESS * best)
            contender_reject(c, BENCH_REJECTED, too_slow);
    }
    return true;
}

/* Plans as many rounds as fit; each backend takes part in all of them. */
static void plan_tuning_rounds(struct case_run *run, double left)
{
    enum { GOOD = 7 };
    double round = 0.0;
    for (size_t i = 0; i < run->n_backends; i++)
        if (contender_is_timed(&run->rounds.contenders[i]))
            round += contender_sample_seconds(&run->rounds.contenders[i]);
    run->rounds.n_rounds = (size_t)fmin(
        fmax(left / round, round > CONTENDER_SLOW_S ? LEAST_ROUNDS : GOOD), TUNING_ROUNDS);
    for (size_t i = 0; i < run->n_backends; i++)
        run->rounds.contenders[i].rounds = run->rounds.n_rounds;
}

void tuning_begin_case(struct session *session, const struct bench_case *now,
                       const struct bench_case *before, size_t n_backends)
{
    if (before && now->problem.kernel == before->problem.kernel &&
        now->problem.dtype == before->problem.dtype)
        return;
    session->nth = 0;
    memset(session->rate, 0, n_backends * sizeof *session->rate);
    memset(session->wrong, 0, n_backends * sizeof *session->wrong);
}

void tuning_time_case(struct case_run *run, double begin, double share)
{
    struct session *session = run->session;
    if (session->nth++ < CHECKED_CASES)
        case_check(run);
    for (size_t i = 0; i < run->n_backends; i++)
        session->wrong[i] |= run->rounds.contenders[i].outcome == BENCH_WRONG;
    call_make_repeatable(&run->call);
    timed_call_cut(&run->timed);
    reject_by_rate(run);
    if (!case_quickest(run) || session_is_stopped(session))
        return;
    const bool fine = reject_by_calls(run);
    plan_tuning_rounds(run, share - (clock_now() - begin));
    case_time_rounds(run, fine);
}

double tuning_case_weight(const struct session *session, const struct bench_case *c)
{
    return session->options->tuning && strcmp(c->footprint, "DRAM") == 0 ? DRAM_WEIGHT : 1.0;
}
