/*
 * Timing two builds side by side, see pairs.h.
 *
 *   check    outputs of base and head, against the oracle and all that scalar of the same build
 *            writes (check.h).  A wrong one gets no number
 *   roof     the plain variants are tried once; the quickest takes part
 *   calibrate  base and head; all three sides make the same number of calls in a sample
 *   rounds   each side once in every round
 */
#include "pairs.h"
#include "buffers.h"
#include "check.h"
#include "clock.h"
#include "emulation.h"
#include "turns.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const pair_side_name[PAIR_SIDES] = { "base", "head", "control" };

enum { CONTENDERS = PAIR_SIDES + 1 }; /* and a roof */
static const double LONG_S = 10e-3;

/* One side of a pair: its call on the tensors of all, and how it is timed. */
struct side {
    const struct subject *subject;
    struct call call;
    struct timed_call timed;
    struct contender contender;
};

struct match {
    struct side side[PAIR_SIDES];
    enum bench_outcome outcome;
    enum pair_side who;
    char reason[REASON_SIZE];
};

struct contest {
    const struct pair_options *options;
    const struct bench_case *bench_case;
    struct team *team;
    double least_sample, deadline;
    unsigned buffers;
    struct call call; /* whose tensors all have */
    size_t n;
    struct match *matches;
    struct timed_call timed;
    struct contender roof;
};

static bool stopped(const struct contest *all)
{
    return all->options->stop && all->options->stop(all->options->user);
}

static void doing(const struct contest *all, const struct match *match, enum pair_side who)
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

/* A call from pristine inputs, timed roughly; or why not. */
static bool try_once(struct contest *all, struct contender *c, char reason[REASON_SIZE])
{
    call_reset(&all->call);
    const double begin = clock_now();
    contender_call(c);
    c->seconds = clock_now() - begin;
    if (c->status != POSENC_OK)
        snprintf(reason, REASON_SIZE, "%s", posenc_status_string(c->status));
    return c->status == POSENC_OK;
}

/* The side's own call, on the tensors of all. */
static bool open_side(struct contest *all, struct side *side, char reason[REASON_SIZE])
{
    const enum posenc_status status = call_share(&all->call, side->subject, &side->call);
    if (status != POSENC_OK) {
        posenc_error_text(&side->call.error, reason, REASON_SIZE);
        return false;
    }
    if (!timed_call_open(&side->timed, &side->call, all->team, 1)) {
        snprintf(reason, REASON_SIZE, "no memory");
        return false;
    }
    side->contender = contender_of_backend(&side->timed, side->subject->backend);
    return true;
}

static void close_side(struct side *side)
{
    timed_call_close(&side->timed);
    if (side->call.subject)
        call_unshare(&side->call);
}

static void check_side(struct contest *all, struct match *match, enum pair_side who,
                       const struct check *check)
{
    char reason[REASON_SIZE] = "";
    struct side *side = &match->side[who];
    const bool rows = all->options->rows_alone;
    doing(all, match, who);
    if (!try_once(all, &side->contender, reason))
        refuse(match, who, BENCH_REFUSED, reason);
    else if (!(rows ? check_rows : check_output)(check, side->subject->backend, reason,
                                                 sizeof reason))
        refuse(match, who, BENCH_WRONG, reason);
}

/* What the build's own scalar does, right in 64 rows: members of its family have its bits. */
static bool make_reference(struct contest *all, enum pair_side who, struct check *check,
                           char why[REASON_SIZE])
{
    const struct subject mine = subject_of(posenc_backend_find("scalar"));
    struct side scalar = { .subject = all->options->scalar[who] };
    if (!scalar.subject)
        scalar.subject = &mine;
    bool right = open_side(all, &scalar, why) && try_once(all, &scalar.contender, why) &&
                 check_reference(check, scalar.subject->backend, why, REASON_SIZE);
    close_side(&scalar);
    return right;
}

static void check_sides(struct contest *all, enum pair_side who, struct check *check)
{
    char why[REASON_SIZE] = "", reason[REASON_SIZE];
    if (all->n > 0)
        doing(all, &all->matches[0], who);
    const bool reference = all->options->rows_alone || make_reference(all, who, check, why);
    snprintf(reason, sizeof reason, "no reference: scalar: %.220s", why);
    for (size_t i = 0; i < all->n && !stopped(all); i++) {
        struct match *match = &all->matches[i];
        if (match->outcome != BENCH_TIMED)
            continue;
        if (reference)
            check_side(all, match, who, check);
        else
            refuse(match, who, BENCH_WRONG, reason);
    }
}

static void open_sides(struct contest *all)
{
    char reason[REASON_SIZE];
    for (size_t i = 0; i < all->n; i++)
        for (int s = 0; s < PAIR_SIDES; s++) {
            doing(all, &all->matches[i], (enum pair_side)s);
            if (!open_side(all, &all->matches[i].side[s], reason)) {
                refuse(&all->matches[i], (enum pair_side)s, BENCH_REFUSED, reason);
                break; /* the first is who is to be named */
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

/* The quickest of the plain variants, by one call each after one that warms. */
static void choose_roof(struct contest *all)
{
    all->roof.outcome = BENCH_LACKS_IT;
    for (size_t i = 0; roof_variant_at(i); i++) {
        const struct roof_variant *variant = roof_variant_at(i);
        if (variant->kind != all->timed.roof || (variant->runs && !variant->runs()))
            continue;
        struct contender c = contender_of_roof(&all->timed, variant);
        for (int warm = 1; warm >= 0; warm--) { /* once more, unless that takes long */
            const double begin = clock_now();
            contender_call(&c);
            c.seconds = clock_now() - begin;
            if (c.seconds > LONG_S)
                break;
        }
        if (!all->roof.roof || c.seconds < all->roof.seconds)
            all->roof = c;
    }
    if (all->roof.roof && !contender_calibrate(&all->roof, all->least_sample))
        all->roof.outcome = BENCH_REFUSED;
}

/* All sides in every round, as many as fit into the share of this pair. */
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

static void report(const struct contest *all, const struct match *match,
                   const struct turns *turns)
{
    struct pair_result result = { .pair = (size_t)(match - all->matches),
                                  .outcome = match->outcome,
                                  .who = match->who,
                                  .reason = match->reason };
    double *ratios[2] = { NULL, NULL };
    for (int s = 0; turns && s < PAIR_SIDES; s++) {
        const double *samples = turns_samples(turns, &turns->contenders[s]);
        const double *base = turns_samples(turns, &turns->contenders[PAIR_BASE]);
        result.ns[s] = 1e9 * stats_median(samples, turns->rounds);
        if (s == PAIR_BASE)
            continue;
        double *to = ratios[s - 1] = malloc((turns->rounds + 1) * sizeof *to);
        for (size_t r = 0; to && r < turns->rounds; r++)
            to[r] = log(samples[r] / base[r]);
    }
    if (turns && turns->n > PAIR_SIDES) {
        const struct contender *roof = &turns->contenders[PAIR_SIDES];
        result.roof_kind = roof_kind_name[roof->roof->kind];
        result.roof_variant = roof->roof->name;
        result.roof_ns = 1e9 * stats_median(turns_samples(turns, roof), turns->rounds);
    }
    result.rounds = ratios[0] && ratios[1] ? turns->rounds : 0;
    result.x = ratios[0];
    result.z = ratios[1];
    all->options->sink(all->options->user, &result);
    free(ratios[0]);
    free(ratios[1]);
}

/* Base and head are calibrated, and the longer count is everybody's: were one stumbled upon, both
 * samples would be as long. */
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
    const size_t at = (size_t)(match - all->matches);
    struct turns turns = { .contenders = contenders,
                           .least_sample = all->least_sample,
                           .order = mix64(all->options->seed, at),
                           .stop = all->options->stop,
                           .user = all->options->user };
    for (int s = 0; s < PAIR_SIDES; s++) {
        call_make_repeatable(&match->side[s].call);
        contenders[turns.n++] = match->side[s].contender;
    }
    if (contender_is_timed(&all->roof))
        contenders[turns.n++] = all->roof;
    bool fine = calibrate(contenders, all->least_sample);
    plan_rounds(&turns, all->options, share - (clock_now() - begin));
    turns.samples = malloc(turns.n * turns.rounds * sizeof *turns.samples);
    fine = fine && turns.samples && turns_run(&turns);
    if (!fine)
        refuse(match, PAIR_SIDES, BENCH_REFUSED, "Google Benchmark could not time it");
    if (!stopped(all))
        report(all, match, fine ? &turns : NULL);
    free(turns.samples);
}

static void time_all(struct contest *all)
{
    call_make_repeatable(&all->call);
    choose_roof(all);
    for (size_t i = 0; i < all->n && !stopped(all); i++) {
        struct match *match = &all->matches[i];
        const double left = all->deadline - clock_now();
        doing(all, match, PAIR_SIDES);
        if (match->outcome != BENCH_TIMED)
            report(all, match, NULL);
        else
            time_match(all, match, left / (double)(all->n - i));
    }
}

/* ---- A case ---- */

static void hold(struct contest *all)
{
    char reason[REASON_SIZE];
    struct memory memory = bench_memory(&all->buffers);
    if (call_create(&all->call, &all->bench_case->problem, &memory) != POSENC_OK) {
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
    for (size_t i = 0; all->matches && i < all->n; i++) {
        for (int s = 0; s < PAIR_SIDES; s++)
            close_side(&all->matches[i].side[s]);
    }
    free(all->matches);
    timed_call_close(&all->timed);
    call_destroy(&all->call);
    if (all->team)
        team_destroy(all->team);
}

int pairs_run(const struct bench_case *bench_case, const struct bench_pair *pairs, size_t n,
              const struct pair_options *options, char *error)
{
    if (bench_emulator()) {
        snprintf(error, 256, "emulated: %.240s", bench_emulator());
        return -1;
    }
    struct contest all = { .options = options,
                           .bench_case = bench_case,
                           .team = team_create(1),
                           .least_sample = clock_least_sample(),
                           .n = n,
                           .matches = calloc(n + 1, sizeof *all.matches) };
    const bool fine = all.team && all.matches;
    for (size_t i = 0; fine && i < n; i++)
        for (int s = 0; s < PAIR_SIDES; s++)
            all.matches[i].side[s].subject = pairs[i].side[s];
    if (fine)
        hold(&all);
    else
        snprintf(error, 256, "no memory for the contenders");
    close_all(&all);
    return fine ? 0 : -1;
}
