/*
 * The rule of verdict.h.
 */
#include "verdict.h"
#include "stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const verdict_name[VERDICT_KINDS] = {
    [VERDICT_SLOWER] = "slower",
    [VERDICT_FASTER] = "faster",
    [VERDICT_UNCLEAR] = "unclear",
    [VERDICT_SAME] = "same",
    [VERDICT_IDENTICAL] = "identical",
    [VERDICT_INCOMPARABLE] = "incomparable",
    [VERDICT_NEW] = "new",
    [VERDICT_REMOVED] = "removed",
};

static const double LEAST_FLOOR = 0.01, USUAL_BUDGET = 0.03, MOST_OF = 0.8;
static const double FIRST_LEVEL = 0.99, LATER_LEVEL = 0.995;
/* Variances of y and z in units of that of one copy in one launch: y is a copy less the mean of two, z the
 * difference of two. */
static const double Y_UNITS = 1.5, Z_UNITS = 2.0;
static const double MOST_TIMES = 1000.0; /* more launches than that nobody waits for */

enum verdict_kind verdict_find(const char *name)
{
    int kind = 0;
    while (kind < VERDICT_KINDS && strcmp(name, verdict_name[kind]) != 0)
        kind++;
    return (enum verdict_kind)kind;
}

/* ---- What launches say ---- */

/* One launch; above, below: head is slower, or faster, than both copies of base. */
struct launch {
    double y, z;
    bool above, below, confirms;
};

/* Where no round of it can be used, y is NaN. */
static struct launch read_launch(const struct verdict_pair *pair, size_t at, double *scratch)
{
    const double *head = pair->head[at], *null = pair->null[at];
    for (size_t r = 0; r < pair->rounds[at]; r++)
        scratch[r] = head[r] - null[r];
    const double first = stats_median(head, pair->rounds[at]),
                 second = stats_median(scratch, pair->rounds[at]),
                 z = stats_median(null, pair->rounds[at]);
    return (struct launch){ 0.5 * (first + second), z, first > 0.0 && second > 0.0,
                            first < 0.0 && second < 0.0,
                            at + pair->confirming >= pair->launches };
}

struct evidence {
    const struct verdict_pair *pair;
    struct launch *launch;
    double *values; /* room for all rounds, or launches */
    size_t n, above, below;
};

static bool evidence_of(const struct verdict_pair *pair, struct evidence *e)
{
    size_t rounds = pair->launches + 1;
    for (size_t l = 0; l < pair->launches; l++)
        rounds += pair->rounds[l];
    *e = (struct evidence){ .pair = pair,
                            .launch = calloc(pair->launches + 1, sizeof *e->launch),
                            .values = malloc(rounds * sizeof *e->values) };
    if (!e->launch || !e->values)
        return false;
    for (size_t l = 0; l < pair->launches; l++) {
        const struct launch launch = read_launch(pair, l, e->values);
        if (isnan(launch.y) || isnan(launch.z))
            continue;
        e->above += launch.above;
        e->below += launch.below;
        e->launch[e->n++] = launch;
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The least number that is 80 % of n or more: all of four. */
static size_t most_of(size_t n) { return (size_t)ceil(MOST_OF * (double)n - 1e-9); }

static double null_median(const struct evidence *e)
{
    for (size_t l = 0; l < e->n; l++)
        e->values[l] = e->launch[l].z;
    return stats_median(e->values, e->n);
}

/* How far base is from itself, as a share: 0.01 at least. */
static double floor_of(const struct evidence *e)
{
    const double median = fabs(null_median(e));
    for (size_t l = 0; l < e->n; l++)
        e->values[l] = fabs(e->launch[l].z);
    qsort(e->values, e->n, sizeof *e->values, by_value);
    const double most = e->values[most_of(e->n) - 1];
    return fmax(LEAST_FLOOR, fmax(expm1(2.0 * median), expm1(most)));
}

/* ---- The interval ---- */

static double level_of(const struct verdict_pair *pair)
{
    return pair->look > 1 ? LATER_LEVEL : FIRST_LEVEL;
}

static double mean_of(const struct evidence *e)
{
    double sum = 0.0;
    for (size_t l = 0; l < e->n; l++)
        sum += e->launch[l].y;
    return sum / (double)e->n;
}

/* The variance of one copy in one launch.  The mean of z is known: a build is as fast as itself. */
static double variance_of(const struct evidence *e)
{
    const double mean = mean_of(e);
    double sum = 0.0;
    for (size_t l = 0; l < e->n; l++) {
        const double y = e->launch[l].y - mean, z = e->launch[l].z;
        sum += y * y / Y_UNITS + z * z / Z_UNITS;
    }
    return sum / (double)(2 * e->n - 1);
}

/* Half of Student's interval of the mean of y over n launches. */
static double half_width(double level, double variance, double n)
{
    return stats_student(level, (int)fmin(2.0 * n - 1.0, 1e3)) * sqrt(Y_UNITS * variance / n);
}

struct bounds {
    double mean, lo, hi; /* logarithms */
};

static struct bounds bounds_of(const struct evidence *e)
{
    const struct verdict_pair *pair = e->pair;
    const double level = level_of(pair), mean = mean_of(e),
                 half = half_width(level, variance_of(e), (double)e->n);
    size_t n = 0;
    for (size_t l = 0; l < pair->launches; l++)
        for (size_t r = 0; r < pair->rounds[l]; r++)
            e->values[n++] = pair->head[l][r];
    const struct stats_interval all = stats_interval(e->values, n, level);
    return (struct bounds){ mean, fmin(mean - half, all.low), fmax(mean + half, all.high) };
}

/* How far from the mean an interval may reach to be settled: up to the floor, or out to the budget, whichever
 * takes less time; not above 0: neither. */
static double room_of(const struct bounds *b, double floor, double budget)
{
    return fmax(fabs(b->mean) - log1p(floor), log1p(budget) - fabs(b->mean));
}

/* Times the launches there are, to be added until the interval is that narrow; NaN: more than anybody waits for. */
static double more_for(const struct evidence *e, const struct bounds *b, double room)
{
    const double level = level_of(e->pair), variance = variance_of(e), n = (double)e->n,
                 rounds = fmax(b->hi - b->mean, b->mean - b->lo);
    double times = 1.25;
    while (times < MOST_TIMES &&
           (half_width(level, variance, n * times) > room || rounds / sqrt(times) > room))
        times *= 1.125;
    return room > 0.0 && times < MOST_TIMES ? times - 1.0 : (double)NAN;
}

/* ---- The verdict ---- */

static bool slower(const struct evidence *e, const struct bounds *b, double floor)
{
    return e->n >= VERDICT_LEAST_LAUNCHES && b->lo > log1p(floor) && e->above >= most_of(e->n);
}

static bool faster(const struct evidence *e, const struct bounds *b, double floor)
{
    return e->n >= VERDICT_LEAST_LAUNCHES && b->hi < -log1p(floor) && e->below >= most_of(e->n);
}

/* How many launches that were made to confirm it put head beyond the floor and both copies. */
static size_t confirming(const struct evidence *e, double floor, bool above)
{
    size_t n = 0;
    for (size_t l = 0; l < e->n; l++) {
        const struct launch *launch = &e->launch[l];
        n += launch->confirms && (above ? launch->above && launch->y > log1p(floor)
                                        : launch->below && launch->y < -log1p(floor));
    }
    return n;
}

static void say_beyond(struct verdict *v, double budget)
{
    const char *than = v->kind == VERDICT_FASTER        ? ""
                       : fabs(v->ratio - 1.0) >= budget ? "over the budget of "
                                                        : "under the budget of ";
    char of[64] = "";
    if (*than)
        snprintf(of, sizeof of, "%s%.3g %%; ", than, 100.0 * budget);
    snprintf(v->reason, sizeof v->reason, "%s%zu/%zu launches; %s", of, v->agree, v->launches,
             v->confirmed ? "confirmed" : "not confirmed yet");
}

/* Why the interval does not settle it, and how much more would. */
static void say_noisy(struct verdict *v, const struct bounds *b, double budget)
{
    const double half = 100.0 * expm1(fmax(b->hi - b->mean, b->mean - b->lo)),
                 times = 1.0 + v->more;
    char wide[40] = "wider than the time itself", enough[96];
    if (half < 100.0)
        snprintf(wide, sizeof wide, "±%.1f %%", half);
    if (isnan(times))
        snprintf(enough, sizeof enough, "it takes a quieter machine to settle %.3g %%",
                 100.0 * budget);
    else
        snprintf(enough, sizeof enough, "%.*f times as many launches would settle %.3g %%",
                 times < 10.0, times, 100.0 * budget);
    snprintf(v->reason, sizeof v->reason, "noisy: %s; %s", wide, enough);
}

static void say_unclear(struct verdict *v, const struct evidence *e, const struct bounds *b,
                        double budget)
{
    const bool up = b->mean > 0.0,
               past_floor = up ? b->lo > log1p(v->floor) : b->hi < -log1p(v->floor);
    const char *word = up ? "slower" : "faster";
    if (e->n < VERDICT_LEAST_LAUNCHES)
        snprintf(v->reason, sizeof v->reason, "%zu launch%s; %d are the least", e->n,
                 e->n == 1 ? "" : "es", VERDICT_LEAST_LAUNCHES);
    else if (past_floor)
        snprintf(v->reason, sizeof v->reason,
                 "launches disagree: %s than both copies in %zu/%zu", word, v->agree,
                 v->launches);
    else if (v->floor > LEAST_FLOOR && (up ? b->lo : -b->hi) > log1p(LEAST_FLOOR))
        snprintf(v->reason, sizeof v->reason,
                 "within the floor: base is up to %.1f %% from its own copy", 100.0 * v->floor);
    else
        say_noisy(v, b, budget);
}

static void judge(struct verdict *v, const struct evidence *e, const struct bounds *b,
                  double budget)
{
    const bool up = slower(e, b, v->floor), down = faster(e, b, v->floor);
    const size_t asked = e->pair->confirming,
                 confirm = up || down ? confirming(e, v->floor, up) : 0;
    v->agree = b->mean > 0.0 ? e->above : e->below;
    v->kind = up                                                  ? VERDICT_SLOWER
              : down                                              ? VERDICT_FASTER
              : b->lo >= -log1p(budget) && b->hi <= log1p(budget) ? VERDICT_SAME
                                                                  : VERDICT_UNCLEAR;
    v->confirmed = (up || down) && asked >= VERDICT_CONFIRMING && confirm == asked;
    if (v->kind == VERDICT_SAME) {
        snprintf(v->reason, sizeof v->reason, "within the budget of %.3g %%", 100.0 * budget);
    } else if ((up || down) && asked > 0 && !v->confirmed) {
        v->kind = VERDICT_UNCLEAR;
        v->more = 1.0;
        snprintf(v->reason, sizeof v->reason,
                 "not confirmed: %zu of %zu further launches said %s", confirm, asked,
                 up ? "slower" : "faster");
    } else if (v->kind == VERDICT_UNCLEAR) {
        v->more = e->n < VERDICT_LEAST_LAUNCHES
                      ? (double)VERDICT_LEAST_LAUNCHES / (double)e->n - 1.0
                      : more_for(e, b, room_of(b, v->floor, budget));
        say_unclear(v, e, b, budget);
    } else {
        v->fails = up && v->confirmed && v->ratio - 1.0 >= budget;
        say_beyond(v, budget);
    }
}

struct verdict verdict_of(const struct verdict_pair *pair)
{
    const double none = (double)NAN, budget = pair->budget > 0.0 ? pair->budget : USUAL_BUDGET;
    struct verdict v = { .kind = pair->same_code ? VERDICT_IDENTICAL : VERDICT_UNCLEAR,
                         .ratio = none,
                         .lo = none,
                         .hi = none,
                         .level = level_of(pair),
                         .floor = LEAST_FLOOR,
                         .null_ratio = none,
                         .more = pair->same_code ? 0.0 : none };
    struct evidence e;
    if (!evidence_of(pair, &e)) {
        snprintf(v.reason, sizeof v.reason, "no memory to judge it");
    } else if (e.n == 0) {
        snprintf(v.reason, sizeof v.reason,
                 pair->same_code ? "the same machine code" : "no launch has timed both");
    } else {
        const struct bounds b = bounds_of(&e);
        v.ratio = exp(b.mean);
        v.lo = exp(b.lo);
        v.hi = exp(b.hi);
        v.floor = floor_of(&e);
        v.null_ratio = exp(null_median(&e));
        v.launches = e.n;
        if (!pair->same_code) {
            v.more = 0.0;
            judge(&v, &e, &b, budget);
        } else {
            v.agree = b.mean > 0.0 ? e.above : e.below;
            snprintf(v.reason, sizeof v.reason,
                     "the same machine code: %+.1f %% is layout or noise",
                     100.0 * (v.ratio - 1.0));
        }
    }
    free(e.launch);
    free(e.values);
    return v;
}

/* ---- The machine ---- */

struct verdict_shift verdict_shift_of(const double *moved, const double *yardstick, size_t n)
{
    const double least = log1p(USUAL_BUDGET), share = 0.3;
    enum { LEAST_ROWS = 3 };
    struct verdict_shift shift = { 0 };
    for (size_t i = 0; i < n; i++)
        shift.moved += fabs(moved[i]) >= least && moved[i] * yardstick[i] > 0.0 &&
                       fabs(yardstick[i]) >= 0.5 * fabs(moved[i]);
    shift.machine = shift.moved >= LEAST_ROWS && (double)shift.moved >= share * (double)n;
    if (shift.machine)
        snprintf(shift.reason, sizeof shift.reason,
                 "%zu of %zu rows moved together with what the code cannot move: it is the "
                 "machine that changed",
                 shift.moved, n);
    return shift;
}
