/*
 * Finds the fastest backend of each kernel, type and place, in a minute.
 *
 * Most backends need no rounds to lose.  One that reaches fewer bytes a second in a nearer place than
 * another does in a farther one is not tried there (the nearest says nothing of it: there the work of
 * a call counts, too); of the rest, calls that take 1.4 times as long as the quickest, by the least of
 * several samples, end it.  What remains takes turns, and ratios are
 * medians within rounds (turns.h).
 */
#define POSENC_EXPERIMENTAL
#include "tune.h"
#include "buffers.h"
#include "check.h"
#include "clock.h"
#include "emulation.h"
#include "turns.h"
#include "reports/statistics/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_LEAST = 3, ROUNDS_GOOD = 7, ROUNDS_MOST = 21, CHECKED_PLACES = 2, FARTHEST = 4 };
static const double BUDGET_S = 50.0, TIE = 1.02, PERHAPS = 1.03, HOPELESS = 1.4, FAR = 4.0;

struct tuning {
    const struct tune_options *options;
    tune_sink *sink;
    void *user;
    struct team *team;
    double deadline, least_sample;
    size_t n_places, done;
    double weight; /* of the places that are not done: memory counts FARTHEST times */
};

/* A backend of a kernel and type, over its places. */
struct candidate {
    const struct posenc_backend *backend;
    double rate; /* most bytes a second so far */
    bool out;    /* it failed a check */
};

struct candidates {
    struct candidate of[TUNE_ROWS];
    size_t n;
};

static bool stopped(const struct tuning *t)
{
    return t->options->stop && t->options->stop(t->user);
}

/* ---- One place ---- */

struct stand {
    struct tuning *tuning;
    struct tune_place place;
    struct candidates *all;
    bool checks, nearest;
    double bytes, share;
    struct call call;
    unsigned buffers;
    struct timed_call timed;
    struct contender contenders[TUNE_ROWS];
    size_t candidate[TUNE_ROWS]; /* of each contender */
    struct turns turns;
    struct tune_result result;
    char why[REASON_SIZE]; /* a backend is wrong */
};

static bool try_once(struct stand *s, struct contender *c)
{
    call_reset(&s->call);
    const double begin = clock_now();
    contender_call(c);
    c->seconds = clock_now() - begin;
    return c->status == POSENC_OK;
}

/* Leaves out those whose output is wrong. */
static bool check_all(struct stand *s, char reason[REASON_SIZE])
{
    const struct posenc_backend *scalar = posenc_backend_find("scalar");
    struct contender reference = contender_of_backend(&s->timed, scalar);
    struct check *check = check_create(&s->call, s->tuning->options->seed);
    bool fine = false;
    snprintf(reason, REASON_SIZE, "no memory for the check, or nothing to compare with");
    if (check && scalar && try_once(s, &reference))
        fine = check_reference(check, scalar, reason, REASON_SIZE);
    for (size_t i = 0; fine && i < s->all->n; i++) {
        struct candidate *one = &s->all->of[i];
        struct contender c = contender_of_backend(&s->timed, one->backend);
        if (one->out || !try_once(s, &c)) {
            one->out = true;
        } else if (!check_output(check, one->backend, s->why, REASON_SIZE)) {
            one->out = true;
            s->result.wrong = one->backend;
            s->result.why = s->why;
        }
    }
    check_destroy(check);
    return fine;
}

/* Those that may be the fastest here by what they did nearer, each after a call that brings its data. */
static void enter(struct stand *s)
{
    struct turns *turns = &s->turns;
    double best = 0.0;
    for (size_t i = 0; i < s->all->n;
         i++) { /* the one that did best tells how fast this place is */
        struct candidate *one = &s->all->of[i];
        if (!one->out && one->rate >= best) {
            best = one->rate;
            s->candidate[0] = i;
        }
    }
    struct contender first =
        contender_of_backend(&s->timed, s->all->of[s->candidate[0]].backend);
    for (int i = 0; i < 2; i++) /* the second finds its data where they belong */
        if (!try_once(s, &first))
            return;
    const double reached = s->bytes / first.seconds;
    const size_t leader = s->candidate[0];
    for (size_t i = 0; i < s->all->n; i++) {
        struct candidate *one = &s->all->of[i];
        if (one->out || (i != leader && best > 0.0 && one->rate * HOPELESS < reached))
            continue;
        s->candidate[turns->n] = i;
        turns->contenders[turns->n++] = contender_of_backend(&s->timed, one->backend);
    }
}

/* A call that took long may have been interrupted: it has three tries. */
static bool try_fairly(struct stand *s, struct contender *c, double best)
{
    double least = (double)INFINITY;
    for (int i = 0; i < 3 && !(least < FAR * best); i++) {
        if (!try_once(s, c))
            return false;
        least = fmin(least, c->seconds);
    }
    c->seconds = least;
    return true;
}

/* Calibrates those that are not far behind, and keeps those that are near. */
static bool sift(struct stand *s)
{
    struct turns *turns = &s->turns;
    double best = (double)INFINITY;
    size_t kept = 0;
    for (size_t i = 0; i < turns->n; i++) {
        struct contender *c = &turns->contenders[i];
        if (!try_fairly(s, c, best))
            return false;
        if (c->seconds < FAR * best && !contender_calibrate(c, turns->least_sample))
            return false;
        best = fmin(best, c->seconds);
        struct candidate *one = &s->all->of[s->candidate[i]];
        if (!s->nearest)
            one->rate = fmax(one->rate, s->bytes / c->seconds);
    }
    for (size_t i = 0; i < turns->n; i++) {
        struct contender *c = &turns->contenders[i];
        const bool perhaps = c->seconds > HOPELESS * best && c->seconds < FAR * best;
        if (perhaps &&
            !contender_calibrate(c, turns->least_sample)) /* a stumble the first time */
            return false;
        if (c->seconds > HOPELESS * best)
            continue;
        s->candidate[kept] = s->candidate[i];
        turns->contenders[kept++] = *c;
    }
    turns->n = kept;
    return true;
}

static bool take_turns(struct stand *s, double begin)
{
    struct turns *turns = &s->turns;
    double round = 0.0;
    for (size_t i = 0; i < turns->n; i++)
        round += contender_sample_seconds(&turns->contenders[i]);
    const double left = s->share - (clock_now() - begin);
    const double least = round > CONTENDER_SLOW_S ? ROUNDS_LEAST : ROUNDS_GOOD;
    turns->rounds = (size_t)fmin(fmax(left / round, least), ROUNDS_MOST);
    for (size_t i = 0; i < turns->n; i++)
        turns->contenders[i].rounds = turns->rounds;
    turns->samples = malloc(turns->n * turns->rounds * sizeof *turns->samples);
    return turns->samples && turns_run(turns);
}

/* ---- The choice ---- */

/* Templates before plain loops, whose bits are others; fewer lanes before more; the later of the list
 * before the earlier. */
static int width_of(const struct posenc_backend *backend)
{
    const bool plain =
        strcmp(backend->family, "autovec") == 0 || strcmp(backend->family, "libm") == 0;
    return (plain ? 1 << 20 : 0) + (backend->lanes ? backend->lanes() : 1);
}

static int compare_rows(const void *a, const void *b)
{
    const struct tune_row *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

static struct tune_row row_of(const struct stand *s, size_t i, size_t chosen)
{
    const struct turns *turns = &s->turns;
    const struct contender *c = &turns->contenders[i];
    struct tune_row row = { c->backend, 1e9 * c->seconds, 1.0, 1.0, 1.0 };
    if (!turns->samples)
        return row;
    const double *own = turns_samples(turns, c),
                 *other = turns_samples(turns, &turns->contenders[chosen]);
    double ratio[ROUNDS_MOST];
    for (size_t r = 0; r < turns->rounds; r++)
        ratio[r] = own[r] / other[r];
    const struct stats_summary summary = stats_summarise(ratio, turns->rounds);
    row.ns = 1e9 * stats_median(own, turns->rounds);
    row.ratio = summary.median;
    row.low = summary.interval.low;
    row.high = summary.interval.high;
    return row;
}

static void choose(struct stand *s)
{
    struct tune_result *result = &s->result;
    const size_t n = s->turns.n;
    size_t fastest = 0, chosen;
    for (size_t i = 1; i < n; i++)
        if (row_of(s, i, fastest).ratio < 1.0)
            fastest = i;
    chosen = fastest;
    for (size_t i = 0; i < n; i++) { /* what is hardly slower ties, or not known to be */
        const struct tune_row row = row_of(s, i, fastest);
        const int mine = width_of(s->turns.contenders[i].backend),
                  best = width_of(s->turns.contenders[chosen].backend);
        if ((row.ratio <= TIE || (row.ratio <= PERHAPS && row.low <= 1.0)) &&
            (mine < best || (mine == best && i > chosen && i != fastest)))
            chosen = i;
    }
    const struct posenc_backend *backend = s->turns.contenders[chosen].backend;
    result->n = n;
    result->tie = chosen != fastest;
    for (size_t i = 0; i < n; i++)
        result->rows[i] = row_of(s, i, chosen);
    qsort(result->rows, n, sizeof *result->rows, compare_rows);
    for (size_t i = 0; i < n; i++)
        if (result->rows[i].backend == backend)
            result->chosen = i;
}

/* ---- All places ---- */

static bool hold(struct stand *s, const struct problem *problem)
{
    static char reason[REASON_SIZE];
    const double begin = clock_now();
    struct memory memory = bench_memory(&s->buffers);
    s->result.refused = "no memory for the call";
    if (call_create(&s->call, problem, &memory) != POSENC_OK ||
        !timed_call_open(&s->timed, &s->call, s->tuning->team, 1))
        return false;
    s->place.footprint = posenc_footprint(problem->kernel, &s->call.args);
    s->place.most = s->place.footprint > s->place.most ? s->place.footprint : s->place.most;
    s->bytes = (double)s->place.footprint;
    s->turns.order = mix64(s->tuning->options->seed, s->place.footprint);
    if (s->checks && !check_all(s, reason)) {
        s->result.refused = reason;
        return false;
    }
    call_make_repeatable(&s->call);
    enter(s);
    s->result.refused = "no backend is right here";
    if (s->turns.n == 0 || !sift(s))
        return false;
    if (s->turns.n > 1 && !take_turns(s, begin))
        return false;
    choose(s);
    return true;
}

/* Of the time: in memory calls take long and differ most from one to the next. */
static double weight_of(const char *place)
{
    return strcmp(place, "DRAM") == 0 ? FARTHEST : 1.0;
}

static void tune_one(struct tuning *t, const struct problem *problem,
                     const struct tune_place *place, struct candidates *all, size_t nth)
{
    struct stand *s = calloc(1, sizeof *s);
    if (!s)
        return;
    const double left = fmax(t->deadline - clock_now(), 0.0);
    s->tuning = t;
    s->place = *place;
    s->all = all;
    s->checks = nth < CHECKED_PLACES;
    s->nearest = nth == 0;
    s->share = left * weight_of(place->name) / fmax(t->weight, 1.0);
    t->weight -= weight_of(place->name);
    s->result.place = &s->place;
    s->turns = (struct turns){ .deeper = true,
                               .contenders = s->contenders,
                               .least_sample = t->least_sample,
                               .stop = t->options->stop,
                               .user = t->user };
    if (hold(s, problem))
        s->result.refused = NULL;
    else
        s->result.n = 0;
    if (!stopped(t))
        t->sink(t->user, &s->result);
    free(s->turns.samples);
    timed_call_close(&s->timed);
    call_destroy(&s->call);
    free(s);
}

static struct candidates candidates_of(enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    struct candidates all = { .n = 0 };
    const struct posenc_backend *b;
    for (size_t i = 0; (b = posenc_backend_at(i)) != NULL && all.n < TUNE_ROWS; i++)
        if (!posenc_backend_obstacle(b) && posenc_provides(b, kernel) &&
            (dtype == POSENC_F32 || b->f16_bf16))
            all.of[all.n++] = (struct candidate){ .backend = b };
    return all;
}

static void tune_kernel(struct tuning *t, enum posenc_kernel kernel, enum posenc_dtype dtype)
{
    struct candidates all = candidates_of(kernel, dtype);
    struct bench_place places[BENCH_PLACES];
    const size_t n = bench_tuning_places(places);
    for (size_t i = 0; i < n && !stopped(t); i++, t->done++) {
        const struct problem problem = problem_realistic(kernel, dtype, places[i].bytes);
        const struct tune_place place = { kernel, dtype, places[i].name, 0, places[i].most };
        if (t->options->watch)
            t->options->watch(t->user, &place, t->done, t->n_places);
        tune_one(t, &problem, &place, &all, i);
    }
}

static bool is_set(const bool *set, int n, int which)
{
    bool any = false;
    for (int i = 0; set && i < n; i++)
        any = any || set[i];
    return !any || set[which];
}

int tune_run(const struct tune_options *options, tune_sink *sink, void *user, char *error)
{
    const char *emulator = bench_emulator();
    struct bench_place places[BENCH_PLACES];
    struct tuning t = { .options = options, .sink = sink, .user = user };
    if (emulator) {
        snprintf(error, 256, "emulated: %.240s", emulator);
        return -1;
    }
    t.team = team_create(1);
    if (!t.team) {
        snprintf(error, 256, "no memory");
        return -1;
    }
    t.least_sample = clock_least_sample();
    t.deadline = clock_now() + (options->budget_s > 0.0 ? options->budget_s : BUDGET_S);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int d = 0; d < BENCH_DTYPES; d++)
            if (is_set(options->kernels, POSENC_KERNEL_COUNT, k) &&
                is_set(options->dtypes, BENCH_DTYPES, d))
                t.n_places += bench_tuning_places(places);
    const size_t n = bench_tuning_places(places); /* the same for each kernel and type */
    for (size_t i = 0; i < n; i++)
        t.weight += (double)(t.n_places / n) * weight_of(places[i].name);
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int d = 0; d < BENCH_DTYPES; d++)
            if (is_set(options->kernels, POSENC_KERNEL_COUNT, k) &&
                is_set(options->dtypes, BENCH_DTYPES, d))
                tune_kernel(&t, (enum posenc_kernel)k, (enum posenc_dtype)d);
    team_destroy(t.team);
    return 0;
}
