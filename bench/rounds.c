/* Calibrates contenders and times them in rounds, each by one run of Google Benchmark (see harness.h and gbench.h). */
#include "harness.h"
#include "gbench.h"

#include <math.h>
#include <stdlib.h>

static const double WARM_S = 1e-3; /* time after which caches are warm */
enum { STACK_DEPTHS = 64 };

static bool is_stopped(const struct rounds *rounds)
{
    return rounds->stop && rounds->stop(rounds->user);
}

double *rounds_samples(const struct rounds *rounds, const struct contender *c)
{
    return rounds->samples + (size_t)(c - rounds->contenders) * rounds->n_rounds;
}

/* ---- Samples ---- */

/* Returns the number of untimed calls before a sample, which reload data that the contender before has evicted. After
 * streaming stores a call in L3 needs 8 of them on Zen 4. */
static int warm_calls(const struct contender *c)
{
    const double most_calls = 8.0, calls = ceil(WARM_S / fmax(c->seconds, 1e-9));
    return c->seconds >= WARM_S ? 0 : (int)fmin(calls, most_calls);
}

static struct gbench_sample sample_for(struct contender *c)
{
    return (struct gbench_sample){ .call = contender_call,
                                   .user = c,
                                   .warm = warm_calls(c),
                                   .iterations = c->iterations,
                                   .on_begin = contender_announce };
}

double contender_sample_seconds(const struct contender *c)
{
    return c->seconds * (double)(c->iterations + warm_calls(c));
}

/* Confirms the number of iterations of Google Benchmark by a second sample: after an interrupted first sample it would
 * be too small. The time of a call is the minimum of all samples. Slow calls need no confirmation. */
bool contender_calibrate(struct contender *c, double min_s)
{
    enum { ATTEMPTS = 4 };
    c->iterations = 0;
    for (int i = 0; i < ATTEMPTS; i++) {
        struct gbench_sample sample = sample_for(c);
        if (gbench_time(&sample, 1, min_s) != 0)
            return false;
        const bool confirmed =
            c->iterations > 0 && sample.seconds * (double)sample.iterations >= min_s;
        c->iterations = sample.iterations;
        if (c->seconds <= 0.0 || sample.seconds < c->seconds) /* rooflines have no time yet */
            c->seconds = sample.seconds;
        if (confirmed || c->seconds > CONTENDER_SLOW_S)
            break;
        if (i > 0)
            c->iterations = (int64_t)(1.25 * min_s / fmax(c->seconds, 1e-9)) + 1;
    }
    return true;
}

bool rounds_calibrate(struct rounds *rounds)
{
    for (size_t i = 0; i < rounds->n; i++) {
        struct contender *c = &rounds->contenders[i];
        if (is_stopped(rounds))
            return false;
        if (contender_is_timed(c) && !contender_calibrate(c, rounds->least_sample))
            return false;
    }
    return true;
}

/* ---- Rounds ---- */

double rounds_seconds(const struct rounds *rounds)
{
    double round_s = 0.0;
    for (size_t i = 0; i < rounds->n; i++)
        if (contender_is_timed(&rounds->contenders[i]))
            round_s += contender_sample_seconds(&rounds->contenders[i]);
    return round_s;
}

void rounds_plan(struct rounds *rounds, double share, double fewest, double most)
{
    const double fit = share / fmax(rounds_seconds(rounds), 1e-9);
    rounds->n_rounds = (size_t)fmin(fmax(fit, fewest), most);
    for (size_t i = 0; i < rounds->n; i++)
        rounds->contenders[i].rounds = rounds->n_rounds;
}

/* Returns true if a contender takes part in round r; its `own` of `all` rounds are evenly spread. */
static bool takes_part(size_t r, size_t own, size_t all)
{
    return (r + 1) * own / all > r * own / all;
}

/* Times a round `depth` frames of 96 bytes or more deeper in the stack. The position of a kernel's stack relative to its tensors makes some
 * kernels up to a tenth slower in a whole process; rounds at different depths show a typical time. */
static int time_at_stack_depth(struct gbench_sample *samples, size_t n, double min_s, int depth)
{
    volatile char frame[96]; /* its use after the call keeps the compiler from a tail call */
    if (depth == 0)
        return gbench_time(samples, n, min_s);
    frame[0] = 0;
    const int failed = time_at_stack_depth(samples, n, min_s, depth - 1);
    frame[1] = frame[0];
    return failed;
}

/* Lists the samples of round r in a random order (Fisher and Yates). `draws` counts the random numbers of all rounds.
 * Returns the number of samples. */
static size_t draw_round(struct rounds *rounds, size_t r, uint64_t *draws,
                         struct gbench_sample *samples)
{
    size_t n = 0;
    for (size_t i = 0; i < rounds->n; i++) {
        struct contender *c = &rounds->contenders[i];
        rounds_samples(rounds, c)[r] = (double)NAN;
        if (contender_is_timed(c) && takes_part(r, c->rounds, rounds->n_rounds))
            samples[n++] = sample_for(c);
    }
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)(rng_u64(rounds->seed, (*draws)++) % i);
        const struct gbench_sample other = samples[j];
        samples[j] = samples[i - 1];
        samples[i - 1] = other;
    }
    return n;
}

bool rounds_time(struct rounds *rounds)
{
    uint64_t draws = 0;
    struct gbench_sample *samples = calloc(rounds->n, sizeof *samples);
    bool ok = samples;
    for (size_t r = 0; ok && r < rounds->n_rounds && !is_stopped(rounds); r++) {
        const size_t n = draw_round(rounds, r, &draws, samples);
        const int depth =
            rounds->varies_stack ? (int)(rng_u64(rounds->seed, draws++) % STACK_DEPTHS) : 0;
        ok = time_at_stack_depth(samples, n, rounds->least_sample, depth) == 0;
        for (size_t i = 0; ok && i < n; i++) {
            const struct contender *c = samples[i].user;
            rounds_samples(rounds, c)[r] = samples[i].seconds * c->sample_scale;
        }
    }
    free(samples);
    return ok;
}

/* ---- Comparisons ---- */

double rounds_median(const struct rounds *rounds, const struct contender *c)
{
    return stats_median(rounds_samples(rounds, c), rounds->n_rounds);
}

const struct contender *rounds_fastest(const struct rounds *rounds,
                                       bool (*accepts)(const struct contender *c))
{
    const struct contender *best = NULL;
    double min_s = (double)INFINITY;
    for (size_t i = 0; i < rounds->n; i++) {
        const struct contender *c = &rounds->contenders[i];
        if (!contender_is_timed(c) || c->is_copy || c->partial || !accepts(c))
            continue;
        const double median = rounds_median(rounds, c);
        if (median < min_s) {
            min_s = median;
            best = c;
        }
    }
    return best;
}

double rounds_speed(const struct rounds *rounds, const struct contender *c,
                    const struct contender *other)
{
    if (!other || !contender_is_timed(other))
        return 0.0;
    const double speedup = stats_median_ratio(rounds_samples(rounds, other),
                                              rounds_samples(rounds, c), rounds->n_rounds);
    return isfinite(speedup) ? speedup : 0.0;
}
