/*
 * A contest of backends, for posenc tune: it finds the fastest and times nothing beside it.
 *
 * Most backends need no rounds to lose.  A backend that reached fewer bytes a second in a nearer place
 * of memory than another does in this one is rejected by that.  The nearest place itself is left out,
 * for there the work of a call counts, too.  Of the others, those whose calls take HOPELESS times as
 * long as the quickest are rejected by the least of several calls.
 */
#define POSENC_EXPERIMENTAL
#include "race.h"
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
static void reject_by_rate(struct race *race)
{
    const double *rate = race->session->rate;
    struct contender *all = race->turns.contenders, *leader = NULL;
    for (size_t i = 0; i < race->n_backends; i++) {
        if (race->session->wrong[i] && contender_is_timed(&all[i]))
            contender_refuse(&all[i], BENCH_REFUSED, "wrong in a smaller case");
        if (contender_is_timed(&all[i]) && (!leader || rate[i] >= rate[leader - all]))
            leader = &all[i];
    }
    for (int i = 0; leader && i < 2; i++) /* the second call finds its data where they belong */
        if (!contender_try(leader, &race->call))
            return;
    for (size_t i = 0; leader && rate[leader - all] > 0.0 && i < race->n_backends; i++)
        if (contender_is_timed(&all[i]) && &all[i] != leader &&
            rate[i] * HOPELESS < (double)race->footprint / leader->seconds)
            contender_refuse(&all[i], BENCH_REFUSED, too_slow);
}

/* Calls a backend up to three times, for a call that took long may have been interrupted. */
static void try_fairly(struct race *race, struct contender *c, double best)
{
    double least = (double)INFINITY;
    for (int i = 0; i < 3 && !(least < FAR * best) && contender_try(c, &race->call); i++)
        least = fmin(least, c->seconds);
    c->seconds = least;
}

/* Calibrates backends that are not far behind, and rejects what is not near. */
static bool reject_by_calls(struct race *race)
{
    struct session *session = race->session;
    struct contender *all = race->turns.contenders;
    double best = (double)INFINITY;
    for (size_t i = 0; i < race->n_backends; i++) {
        if (!contender_is_timed(&all[i]))
            continue;
        try_fairly(race, &all[i], best);
        if (all[i].seconds < FAR * best && !contender_calibrate(&all[i], session->least_sample))
            return false;
        best = fmin(best, all[i].seconds);
        if (session->nth > 1)
            session->rate[i] = fmax(session->rate[i], (double)race->footprint / all[i].seconds);
    }
    for (size_t i = 0; i < race->n_backends; i++) {
        struct contender *c = &all[i];
        if (!contender_is_timed(c))
            continue;
        if (c->seconds > HOPELESS * best &&
            c->seconds < FAR * best && /* it may have stumbled */
            !contender_calibrate(c, session->least_sample))
            return false;
        if (c->seconds > HOPELESS * best)
            contender_refuse(c, BENCH_REFUSED, too_slow);
    }
    return true;
}

/* Plans as many rounds as fit; each backend takes part in all of them. */
static void plan_contest(struct race *race, double left)
{
    enum { GOOD = 7 };
    double round = 0.0;
    for (size_t i = 0; i < race->n_backends; i++)
        if (contender_is_timed(&race->turns.contenders[i]))
            round += contender_sample_seconds(&race->turns.contenders[i]);
    race->turns.rounds = (size_t)fmin(
        fmax(left / round, round > CONTENDER_SLOW_S ? LEAST_ROUNDS : GOOD), CONTEST_ROUNDS);
    for (size_t i = 0; i < race->n_backends; i++)
        race->turns.contenders[i].rounds = race->turns.rounds;
}

void contest_begin(struct session *session, const struct bench_case *now,
                   const struct bench_case *before, size_t n_backends)
{
    if (before && now->problem.kernel == before->problem.kernel &&
        now->problem.dtype == before->problem.dtype)
        return;
    session->nth = 0;
    memset(session->rate, 0, n_backends * sizeof *session->rate);
    memset(session->wrong, 0, n_backends * sizeof *session->wrong);
}

void contest_hold(struct race *race, double begin, double share)
{
    struct session *session = race->session;
    if (session->nth++ < CHECKED_CASES)
        race_check(race);
    for (size_t i = 0; i < race->n_backends; i++)
        session->wrong[i] |= race->turns.contenders[i].outcome == BENCH_WRONG;
    call_make_repeatable(&race->call);
    timed_call_cut(&race->timed);
    reject_by_rate(race);
    if (!race_quickest(race) || race_is_stopped(session))
        return;
    const bool fine = reject_by_calls(race);
    plan_contest(race, share - (clock_now() - begin));
    race_run_turns(race, fine);
}

double contest_weight(const struct session *session, const struct bench_case *c)
{
    return session->options->contest && strcmp(c->footprint, "DRAM") == 0 ? DRAM_WEIGHT : 1.0;
}
