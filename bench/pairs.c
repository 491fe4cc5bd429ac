/*
 * Times two builds side by side.
 *
 *   check      outputs of base and head, against the oracle and all that scalar of the same build writes
 *              (check.h); a wrong one gets no number
 *   roofline   the variants are tried once; the quickest takes part
 *   calibrate  base and head; all three sides make the same number of calls in a sample
 *   rounds     each side once in every round
 */
#include "pairs.h"
#include "check.h"
#include "machine.h"
#include "turns.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const pair_side_name[PAIR_SIDES] = { "base", "head", "control" };

enum { CONTENDERS = PAIR_SIDES + 1 }; /* and a roofline */
static const double LONG_S = 10e-3;

/* One side of a pair: its call on the tensors of all, and how it is timed. */
struct side {
    const struct implementation *implementation;
    struct call call;
    struct timed_call timed;
    struct contender contender;
};

struct match {
    struct side side[PAIR_SIDES];
    enum bench_outcome outcome;
    enum pair_side who; /* whose outcome it is */
    char reason[REASON_SIZE];
};

struct contest {
    const struct pair_options *options;
    struct team *team;
    double least_sample, deadline;
    unsigned buffers;
    struct call call; /* whose tensors all have */
    size_t n;
    struct match *matches;
    struct timed_call timed;
    struct contender roofline;
};

static bool stopped(const struct contest *all)
{
    return all->options->stop && all->options->stop(all->options->user);
}

static void announce(const struct contest *all, const struct match *match, enum pair_side who)
{
    if (all->options->doing)
        all->options->doing(all->options->user, (size_t)(match - all->matches), who);
}

static void refuse(struct match *match, enum pair_side who, enum bench_outcome outcome,
                   const char *reason)
{
    match->who = who;
    match->outcome = outcome;
    snprintf(match->reason, sizeof match->reason, "%s", reason);
}

static void refuse_all(struct contest *all, enum bench_outcome outcome, const char *reason)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->matches[i].outcome == BENCH_TIMED)
            refuse(&all->matches[i], PAIR_SIDES, outcome, reason);
}

/* ---- Checks ---- */

/* Opens the side's own call, on the tensors of all.  Returns false, with a reason, if it cannot be. */
static bool open_side(struct contest *all, struct side *side, char reason[REASON_SIZE])
{
    if (call_share(&all->call, side->implementation, &side->call) != POSENC_OK) {
        posenc_error_text(&side->call.error, reason, REASON_SIZE);
        return false;
    }
    if (!timed_call_open(&side->timed, &side->call, all->team, 1)) {
        snprintf(reason, REASON_SIZE, "no memory");
        return false;
    }
    side->contender = contender_of_backend(&side->timed, side->implementation->backend);
    return true;
}

static void close_side(struct side *side)
{
    timed_call_close(&side->timed);
    if (side->call.implementation)
        call_unshare(&side->call);
}

static void check_side(struct contest *all, struct match *match, enum pair_side who,
                       const struct check *check)
{
    char reason[REASON_SIZE] = "";
    struct side *side = &match->side[who];
    const struct posenc_backend *backend = side->implementation->backend;
    announce(all, match, who);
    if (!contender_try(&side->contender, &all->call))
        refuse(match, who, BENCH_REFUSED, side->contender.refused);
    else if (!(all->options->rows_alone ? check_rows : check_output)(check, backend, reason,
                                                                     sizeof reason))
        refuse(match, who, BENCH_WRONG, reason);
}

/* Takes what the build's own scalar writes, if it is right in 64 rows: its family has the same bits. */
static bool make_reference(struct contest *all, enum pair_side who, struct check *check,
                           char reason[REASON_SIZE])
{
    const struct implementation mine = implementation_of(posenc_backend_find("scalar"));
    const struct implementation *theirs = all->options->scalar[who];
    struct side scalar = { .implementation = theirs ? theirs : &mine };
    bool right = open_side(all, &scalar, reason);
    if (right && !contender_try(&scalar.contender, &all->call)) {
        snprintf(reason, REASON_SIZE, "%s", scalar.contender.refused);
        right = false;
    }
    right =
        right && check_reference(check, scalar.implementation->backend, reason, REASON_SIZE);
    close_side(&scalar);
    return right;
}

static void check_sides(struct contest *all, enum pair_side who, struct check *check)
{
    char why[REASON_SIZE] = "", reason[REASON_SIZE];
    if (all->n > 0)
        announce(all, &all->matches[0], who);
    const bool reference = all->options->rows_alone || make_reference(all, who, check, why);
    snprintf(reason, sizeof reason, "no reference: scalar: %.220s", why);
    for (size_t i = 0; i < all->n && !stopped(all); i++) {
        struct match *match = &all->matches[i];
        if (match->outcome == BENCH_TIMED && reference)
            check_side(all, match, who, check);
        else if (match->outcome == BENCH_TIMED)
            refuse(match, who, BENCH_WRONG, reason);
    }
}

/* Opens the sides of each pair up to the first that cannot be, which is the one to be named. */
static void open_sides(struct contest *all)
{
    char reason[REASON_SIZE];
    for (size_t i = 0; i < all->n; i++)
        for (enum pair_side s = PAIR_BASE; s < PAIR_SIDES; s++) {
            announce(all, &all->matches[i], s);
            if (!open_side(all, &all->matches[i].side[s], reason)) {
                refuse(&all->matches[i], s, BENCH_REFUSED, reason);
                break;
            }
        }
}

static void check_all(struct contest *all)
{
    struct check *check = check_create(&all->call, all->options->seed);
    open_sides(all);
    if (check) {
        check_sides(all, PAIR_BASE, check);
        check_sides(all, PAIR_HEAD, check);
    } else {
        refuse_all(all, BENCH_REFUSED, "no memory for the check");
    }
    check_destroy(check);
}

/* ---- Rounds ---- */

/* Chooses the quickest variant by one call each, after one that warms unless that takes long. */
static void choose_roofline(struct contest *all)
{
    all->roofline.outcome = BENCH_LACKS_IT;
    for (size_t i = 0; all->timed.blocks && roofline_variant_at(i); i++) {
        const struct roofline_variant *variant = roofline_variant_at(i);
        if (variant->kind != all->timed.roofline || (variant->runs && !variant->runs()))
            continue;
        struct contender c = contender_of_roofline(&all->timed, variant);
        contender_try(&c, NULL);
        if (c.seconds <= LONG_S)
            contender_try(&c, NULL);
        if (!all->roofline.roofline || c.seconds < all->roofline.seconds)
            all->roofline = c;
    }
    if (all->roofline.roofline && !contender_calibrate(&all->roofline, all->least_sample))
        all->roofline.outcome = BENCH_REFUSED;
}

/* Plans all sides in every round, as many rounds as fit into the share of this pair. */
static void plan_rounds(struct turns *turns, const struct pair_options *options, double share)
{
    double round = 0.0;
    for (size_t i = 0; i < turns->n; i++)
        round += contender_sample_seconds(&turns->contenders[i]);
    const double fit = fmax(share / fmax(round, 1e-9), (double)options->least_rounds);
    turns->rounds = (size_t)fmin(fit, (double)options->most_rounds);
    for (size_t i = 0; i < turns->n; i++)
        turns->contenders[i].rounds = turns->rounds;
}

static void report_refused(const struct contest *all, const struct match *match)
{
    const struct pair_result result = { .pair = (size_t)(match - all->matches),
                                        .outcome = match->outcome,
                                        .who = match->who,
                                        .reason = match->reason };
    all->options->sink(all->options->user, &result);
}

static void report(const struct contest *all, const struct match *match,
                   const struct turns *turns)
{
    struct pair_result result = { .pair = (size_t)(match - all->matches),
                                  .outcome = match->outcome,
                                  .rounds = turns->rounds };
    const double *base = turns_samples(turns, &turns->contenders[PAIR_BASE]);
    double *ratios = malloc(2 * turns->rounds * sizeof *ratios + 1);
    for (size_t s = 0; s < PAIR_SIDES; s++) {
        const double *samples = turns_samples(turns, &turns->contenders[s]);
        result.ns[s] = 1e9 * stats_median(samples, turns->rounds);
        for (size_t r = 0; ratios && s > PAIR_BASE && r < turns->rounds; r++)
            ratios[(s - 1) * turns->rounds + r] = log(samples[r] / base[r]);
    }
    if (turns->n > PAIR_SIDES) {
        const struct contender *roofline = &turns->contenders[PAIR_SIDES];
        result.roofline_kind = roofline_kind_name[roofline->roofline->kind];
        result.roofline_variant = roofline->roofline->name;
        result.roofline_ns = 1e9 * stats_median(turns_samples(turns, roofline), turns->rounds);
    }
    if (!ratios)
        result.rounds = 0;
    result.x = ratios;
    result.z = ratios ? ratios + turns->rounds : NULL;
    all->options->sink(all->options->user, &result);
    free(ratios);
}

/* Calibrates base and head.  The longer count is everybody's: had one stumbled, both samples would be as
 * long. */
static bool calibrate(struct contender *contenders, double least_sample)
{
    for (int s = 0; s < PAIR_NULL; s++)
        if (!contender_calibrate(&contenders[s], least_sample))
            return false;
    const int64_t base = contenders[PAIR_BASE].iterations,
                  head = contenders[PAIR_HEAD].iterations;
    for (int s = 0; s < PAIR_SIDES; s++)
        contenders[s].iterations = base > head ? base : head;
    contenders[PAIR_NULL].seconds = contenders[PAIR_BASE].seconds;
    return true;
}

static void time_match(struct contest *all, struct match *match, double share)
{
    struct contender contenders[CONTENDERS];
    const double begin = clock_now();
    struct turns turns = { .contenders = contenders,
                           .least_sample = all->least_sample,
                           .order = mix64(all->options->seed, (uint64_t)(match - all->matches)),
                           .stop = all->options->stop,
                           .user = all->options->user };
    for (int s = 0; s < PAIR_SIDES; s++) {
        call_make_repeatable(&match->side[s].call);
        contenders[turns.n++] = match->side[s].contender;
    }
    if (contender_is_timed(&all->roofline))
        contenders[turns.n++] = all->roofline;
    bool fine = calibrate(contenders, all->least_sample);
    plan_rounds(&turns, all->options, share - (clock_now() - begin));
    turns.samples = malloc(turns.n * turns.rounds * sizeof *turns.samples);
    fine = fine && turns.samples && turns_run(&turns);
    if (!fine)
        refuse(match, PAIR_SIDES, BENCH_REFUSED, "Google Benchmark could not time it");
    if (!stopped(all) && fine)
        report(all, match, &turns);
    else if (!stopped(all))
        report_refused(all, match);
    free(turns.samples);
}

static void time_all(struct contest *all)
{
    call_make_repeatable(&all->call);
    choose_roofline(all);
    for (size_t i = 0; i < all->n && !stopped(all); i++) {
        struct match *match = &all->matches[i];
        const double left = all->deadline - clock_now();
        announce(all, match, PAIR_SIDES);
        if (match->outcome != BENCH_TIMED)
            report_refused(all, match);
        else
            time_match(all, match, left / (double)(all->n - i));
    }
}

/* ---- A case ---- */

static void hold(struct contest *all, const struct problem *problem)
{
    char reason[REASON_SIZE];
    struct memory memory = bench_memory(&all->buffers);
    if (call_create(&all->call, problem, &memory) != POSENC_OK) {
        posenc_error_text(&all->call.error, reason, sizeof reason);
        refuse_all(all, BENCH_REFUSED, reason);
    } else if (!timed_call_open(&all->timed, &all->call, all->team, 1)) {
        refuse_all(all, BENCH_REFUSED, "no memory");
    } else {
        check_all(all);
        all->deadline = clock_now() + all->options->share_s;
    }
    if (!stopped(all))
        time_all(all);
}

static void close_all(struct contest *all)
{
    for (size_t i = 0; all->matches && i < all->n; i++)
        for (int s = 0; s < PAIR_SIDES; s++)
            close_side(&all->matches[i].side[s]);
    free(all->matches);
    timed_call_close(&all->timed);
    call_destroy(&all->call);
    team_destroy(all->team);
}

int pairs_run(const struct bench_case *bench_case, const struct bench_pair *pairs, size_t n,
              const struct pair_options *options, char *error)
{
    if (machine_emulator()) {
        snprintf(error, 256, "emulated: %.240s", machine_emulator());
        return -1;
    }
    struct contest all = { .options = options,
                           .team = team_create(1),
                           .least_sample = clock_least_sample(),
                           .n = n,
                           .matches = calloc(n + 1, sizeof *all.matches) };
    const bool fine = all.team && all.matches;
    for (size_t i = 0; fine && i < n; i++)
        for (int s = 0; s < PAIR_SIDES; s++)
            all.matches[i].side[s].implementation = pairs[i].side[s];
    if (fine)
        hold(&all, &bench_case->problem);
    else
        snprintf(error, 256, "no memory for the contenders");
    close_all(&all);
    return fine ? 0 : -1;
}
