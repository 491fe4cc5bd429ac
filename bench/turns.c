/*
 * Calibrates contenders and times rounds of them.
 */
#include "turns.h"
#include "gbench.h"

#include <math.h>
#include <stdlib.h>

static const double WARM_S = 1e-3;
enum { DEEPEST = 64 };

static bool stopped(const struct turns *turns)
{
    return turns->stop && turns->stop(turns->user);
}

double *turns_samples(const struct turns *turns, const struct contender *c)
{
    return turns->samples + (size_t)(c - turns->contenders) * turns->rounds;
}

/* ---- Samples ---- */

/* Untimed calls bring back what the contender before has driven out of the caches.  One is not enough:
 * on Zen 4 a call in L3 that follows streaming stores takes 8 to be as fast as before.  What has been
 * called for WARM_S is as warm as it gets. */
static int warm_calls(const struct contender *c)
{
    const double most = 8.0, calls = ceil(WARM_S / fmax(c->seconds, 1e-9));
    return c->seconds >= WARM_S ? 0 : (int)fmin(calls, most);
}

static struct gbench_sample sample_for(struct contender *c)
{
    return (struct gbench_sample){ contender_call, c,   warm_calls(c),
                                   c->iterations,  0.0, contender_begins };
}

double contender_sample_seconds(const struct contender *c)
{
    return c->seconds * (double)(c->iterations + warm_calls(c));
}

/* Takes Google Benchmark's count, confirmed by a second sample: a machine that stumbled during the first
 * would make the count too small and every later sample too short.  The least time of all is what a call
 * takes, for a fast contender whose last sample stumbled would pass for a slow one, which takes part in
 * fewer rounds.  A call that takes long by the clock of the check and here again needs no more. */
bool contender_calibrate(struct contender *c, double least)
{
    enum { ATTEMPTS = 4 };
    c->iterations = 0;
    for (int i = 0; i < ATTEMPTS; i++) {
        struct gbench_sample sample = sample_for(c);
        if (gbench_time(&sample, 1, least) != 0)
            return false;
        const bool confirmed =
            c->iterations > 0 && sample.seconds * (double)sample.iterations >= least;
        c->iterations = sample.iterations;
        if (c->seconds <= 0.0 ||
            sample.seconds < c->seconds) /* rooflines come without a time */
            c->seconds = sample.seconds;
        if (confirmed || c->seconds > CONTENDER_SLOW_S)
            break;
        if (i > 0)
            c->iterations = (int64_t)(1.25 * least / fmax(c->seconds, 1e-9)) + 1;
    }
    return true;
}

bool turns_calibrate(struct turns *turns)
{
    for (size_t i = 0; i < turns->n; i++) {
        struct contender *c = &turns->contenders[i];
        if (stopped(turns))
            return false;
        if (contender_is_timed(c) && !contender_calibrate(c, turns->least_sample))
            return false;
    }
    return true;
}

/* ---- Rounds ---- */

/* Returns whether a contender with `mine` of `all` rounds takes part in round r: evenly spread. */
static bool takes_part(size_t r, size_t mine, size_t all)
{
    return (r + 1) * mine / all > r * mine / all;
}

/* Times a round with the stack some hundred bytes lower for each of `deeper`.  Where a kernel's own
 * memory lies relative to its tensors makes some kernels up to a tenth slower, for as long as a process
 * lives: rounds at other places show what is typical. */
static int time_deeper(struct gbench_sample *samples, size_t n, double least, int deeper)
{
    volatile char below[96];
    if (deeper == 0)
        return gbench_time(samples, n, least);
    below[0] = 0;
    const int failed = time_deeper(samples, n, least, deeper - 1);
    below[1] = below[0];
    return failed;
}

/* Lists the samples of a round, in a random order.  Returns how many there are. */
static size_t draw_round(struct turns *turns, size_t r, uint64_t *draws,
                         struct gbench_sample *line)
{
    size_t m = 0;
    for (size_t i = 0; i < turns->n; i++) {
        struct contender *c = &turns->contenders[i];
        turns_samples(turns, c)[r] = (double)NAN;
        if (contender_is_timed(c) && takes_part(r, c->rounds, turns->rounds))
            line[m++] = sample_for(c);
    }
    for (size_t i = m; i > 1; i--) {
        const size_t j = (size_t)(mix64(turns->order, (*draws)++) % i);
        const struct gbench_sample other = line[j];
        line[j] = line[i - 1];
        line[i - 1] = other;
    }
    return m;
}

bool turns_run(struct turns *turns)
{
    uint64_t draws = 0;
    struct gbench_sample *line = calloc(turns->n, sizeof *line);
    bool fine = line;
    for (size_t r = 0; fine && r < turns->rounds && !stopped(turns); r++) {
        const size_t m = draw_round(turns, r, &draws, line);
        const int deeper = turns->deeper ? (int)(mix64(turns->order, draws++) % DEEPEST) : 0;
        fine = time_deeper(line, m, turns->least_sample, deeper) == 0;
        for (size_t i = 0; fine && i < m; i++) {
            const struct contender *c = line[i].user;
            turns_samples(turns, c)[r] = line[i].seconds * c->times;
        }
    }
    free(line);
    return fine;
}

/* ---- Comparisons ---- */

const struct contender *turns_fastest(const struct turns *turns,
                                      bool (*of)(const struct contender *c))
{
    const struct contender *best = NULL;
    double least = (double)INFINITY;
    for (size_t i = 0; i < turns->n; i++) {
        const struct contender *c = &turns->contenders[i];
        if (!contender_is_timed(c) || c->again || c->part || c->entered || c->steps || !of(c))
            continue;
        const double median = stats_median(turns_samples(turns, c), turns->rounds);
        if (median < least) {
            least = median;
            best = c;
        }
    }
    return best;
}

double turns_speed(const struct turns *turns, const struct contender *c,
                   const struct contender *other)
{
    if (!other || !contender_is_timed(other))
        return 0.0;
    const double r =
        stats_median_ratio(turns_samples(turns, other), turns_samples(turns, c), turns->rounds);
    return isfinite(r) ? r : 0.0;
}
