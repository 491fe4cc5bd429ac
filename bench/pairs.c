/*
 * Times two builds side by side (see pairs.h), by the rounds and checks of harness.h:
 *
 *   check      outputs of base and head: 64 rows against the oracle, then all rows against scalar of the
 *              same build (output_check.c). A wrong side is not timed.
 *   roofline   the variants are tried once; the quickest takes part
 *   calibrate  base and head; all three sides make the same number of calls in a sample
 *   rounds     each side once in every round
 */
#include "pairs.h"
#include "base/clock.h"
#include "base/machine/machine.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const pair_side_name[PAIR_SIDES] = { "base", "head", "control" };

enum { CONTENDERS = PAIR_SIDES + 1 }; /* sides and a roofline */
/* A roofline whose call takes longer gets no warm-up call. */
static const double WARM_UP_BELOW_S = 10e-3;

/* Side of a pair: its call on the common tensors, and its contender. */
struct timed_side {
    const struct implementation *implementation;
    struct call call;
    struct timed_call timed;
    struct contender contender;
};

struct timed_pair {
    struct timed_side sides[PAIR_SIDES];
    enum bench_outcome outcome;
    enum pair_side side; /* side of the outcome, or PAIR_NO_SIDE */
    char reason[REASON_SIZE];
};

/* All pairs of one case. */
struct pairs_run {
    const struct pair_options *options;
    struct team *team;
    double least_sample, deadline; /* seconds of a sample; end of the rounds by clock_now() */
    unsigned buffers;              /* number of the call's buffers, for timed_call_memory() */
    struct call call;              /* owns the tensors of all sides */
    size_t n;
    struct timed_pair *pairs;
    struct timed_call timed; /* of the roofline */
    struct contender roofline;
};

static bool is_stopped(const struct pairs_run *run)
{
    return run->options->stop && run->options->stop(run->options->user);
}

/* Reports the side that is called next, or PAIR_NO_SIDE before the rounds. */
static void announce(const struct pairs_run *run, const struct timed_pair *pair,
                     enum pair_side side)
{
    if (run->options->on_call)
        run->options->on_call(run->options->user, (size_t)(pair - run->pairs), side);
}

static void reject_pair(struct timed_pair *pair, enum pair_side side,
                        enum bench_outcome outcome, const char *reason)
{
    pair->side = side;
    pair->outcome = outcome;
    snprintf(pair->reason, sizeof pair->reason, "%s", reason);
}

static void reject_all(struct pairs_run *run, enum bench_outcome outcome, const char *reason)
{
    for (size_t i = 0; i < run->n; i++)
        if (run->pairs[i].outcome == BENCH_TIMED)
            reject_pair(&run->pairs[i], PAIR_NO_SIDE, outcome, reason);
}

/* ---- Checks ---- */

/* Opens the call of a side on the common tensors. Returns false with a reason on failure. */
static bool open_side(struct pairs_run *run, struct timed_side *timed_side,
                      char reason[REASON_SIZE])
{
    if (call_share(&run->call, timed_side->implementation, &timed_side->call) != POSENC_OK) {
        posenc_error_text(&timed_side->call.error, reason, REASON_SIZE);
        return false;
    }
    if (!timed_call_open(&timed_side->timed, &timed_side->call, run->team, 1)) {
        snprintf(reason, REASON_SIZE, "no memory");
        return false;
    }
    timed_side->contender =
        contender_of_backend(&timed_side->timed, timed_side->implementation->backend);
    return true;
}

static void close_side(struct timed_side *timed_side)
{
    timed_call_close(&timed_side->timed);
    if (timed_side->call.implementation)
        call_unshare(&timed_side->call);
}

/* Runs a side once, and rejects its pair if the call fails or the output is wrong. */
static void check_side(struct pairs_run *run, struct timed_pair *pair, enum pair_side side,
                       const struct output_check *check)
{
    char reason[REASON_SIZE] = "";
    struct timed_side *timed_side = &pair->sides[side];
    const struct posenc_backend *backend = timed_side->implementation->backend;
    announce(run, pair, side);
    if (!contender_try(&timed_side->contender, &run->call)) {
        reject_pair(pair, side, BENCH_REJECTED, timed_side->contender.reason);
        return;
    }
    const bool right = run->options->rows_alone
                           ? output_check_rows(check, backend, reason, REASON_SIZE)
                           : output_check_all(check, backend, reason, REASON_SIZE);
    if (!right)
        reject_pair(pair, side, BENCH_WRONG, reason);
}

/* Computes the reference output by scalar of the same build. Returns false with a reason if it is wrong in 64 rows. */
static bool make_reference(struct pairs_run *run, enum pair_side side,
                           struct output_check *check, char reason[REASON_SIZE])
{
    const struct implementation own = implementation_of(posenc_backend_find("scalar"));
    const struct implementation *of_build = run->options->scalar[side];
    struct timed_side scalar = { .implementation = of_build ? of_build : &own };
    bool ok = open_side(run, &scalar, reason);
    if (ok && !contender_try(&scalar.contender, &run->call)) {
        snprintf(reason, REASON_SIZE, "%s", scalar.contender.reason);
        ok = false;
    }
    ok = ok &&
         output_check_reference(check, scalar.implementation->backend, reason, REASON_SIZE);
    close_side(&scalar);
    return ok;
}

static void check_sides(struct pairs_run *run, enum pair_side side, struct output_check *check)
{
    char why[REASON_SIZE] = "", reason[REASON_SIZE];
    if (run->n > 0) /* pair 0 stands for scalar */
        announce(run, &run->pairs[0], side);
    const bool has_reference =
        run->options->rows_alone || make_reference(run, side, check, why);
    snprintf(reason, sizeof reason, "no reference: scalar: %.220s", why);
    for (size_t i = 0; i < run->n && !is_stopped(run); i++) {
        struct timed_pair *pair = &run->pairs[i];
        if (pair->outcome == BENCH_TIMED && has_reference)
            check_side(run, pair, side, check);
        else if (pair->outcome == BENCH_TIMED)
            reject_pair(pair, side, BENCH_WRONG, reason);
    }
}

/* Opens the sides of each pair. Rejects a pair at the first side that fails. */
static void open_sides(struct pairs_run *run)
{
    char reason[REASON_SIZE];
    for (size_t i = 0; i < run->n; i++)
        for (enum pair_side side = PAIR_BASE; side < PAIR_SIDES; side++) {
            announce(run, &run->pairs[i], side);
            if (!open_side(run, &run->pairs[i].sides[side], reason)) {
                reject_pair(&run->pairs[i], side, BENCH_REJECTED, reason);
                break;
            }
        }
}

static void check_pairs(struct pairs_run *run)
{
    struct output_check *check = output_check_create(&run->call, run->options->seed);
    open_sides(run);
    if (check) {
        check_sides(run, PAIR_BASE, check);
        check_sides(run, PAIR_HEAD, check);
    } else {
        reject_all(run, BENCH_REJECTED, "no memory for the check");
    }
    output_check_destroy(check);
}

/* ---- Rounds ---- */

/* Chooses the fastest variant by one call each, after a warm-up call unless that takes long. */
static void choose_roofline(struct pairs_run *run)
{
    run->roofline.outcome = BENCH_NOT_PROVIDED;
    for (size_t i = 0; run->timed.blocks && bound_variant_at(i); i++) {
        const struct bound_variant *variant = bound_variant_at(i);
        if (variant->kind != run->timed.roofline || !bound_variant_runs(variant))
            continue;
        struct contender c = contender_of_bound(&run->timed, variant, NULL);
        contender_try(&c, NULL);
        if (c.seconds <= WARM_UP_BELOW_S)
            contender_try(&c, NULL);
        if (!run->roofline.bound || c.seconds < run->roofline.seconds)
            run->roofline = c;
    }
    if (run->roofline.bound && !contender_calibrate(&run->roofline, run->least_sample))
        run->roofline.outcome = BENCH_REJECTED;
}

static void report_rejected(const struct pairs_run *run, const struct timed_pair *pair)
{
    const struct pair_result result = { .pair = (size_t)(pair - run->pairs),
                                        .outcome = pair->outcome,
                                        .side = pair->side,
                                        .reason = pair->reason };
    run->options->on_result(run->options->user, &result);
}

static void report(const struct pairs_run *run, const struct timed_pair *pair,
                   const struct rounds *rounds)
{
    struct pair_result result = { .pair = (size_t)(pair - run->pairs),
                                  .outcome = pair->outcome,
                                  .rounds = rounds->n_rounds };
    const double *base = rounds_samples(rounds, &rounds->contenders[PAIR_BASE]);
    double *ratios = malloc(2 * rounds->n_rounds * sizeof *ratios + 1); /* not 0 bytes */
    for (size_t side = PAIR_BASE; side < PAIR_SIDES; side++) {
        const double *samples = rounds_samples(rounds, &rounds->contenders[side]);
        result.ns[side] = 1e9 * rounds_median(rounds, &rounds->contenders[side]);
        for (size_t r = 0; ratios && side > PAIR_BASE && r < rounds->n_rounds; r++)
            ratios[(side - 1) * rounds->n_rounds + r] = log(samples[r] / base[r]);
    }
    if (rounds->n > PAIR_SIDES) {
        const struct contender *roofline = &rounds->contenders[PAIR_SIDES];
        result.roofline_kind = bound_kind_name[roofline->bound->kind];
        result.roofline_variant = roofline->bound->name;
        result.roofline_ns = 1e9 * rounds_median(rounds, roofline);
    }
    if (!ratios)
        result.rounds = 0;
    result.log_ratios = ratios;
    result.control_log_ratios = ratios ? ratios + rounds->n_rounds : NULL;
    run->options->on_result(run->options->user, &result);
    free(ratios);
}

/* Calibrates base and head. All sides get the larger number of calls, so that an interrupted calibration does not
 * shorten samples of one side. */
static bool calibrate_sides(struct contender *contenders, double least_sample)
{
    for (int side = PAIR_BASE; side < PAIR_CONTROL; side++)
        if (!contender_calibrate(&contenders[side], least_sample))
            return false;
    const int64_t base = contenders[PAIR_BASE].iterations,
                  head = contenders[PAIR_HEAD].iterations;
    for (int side = PAIR_BASE; side < PAIR_SIDES; side++)
        contenders[side].iterations = base > head ? base : head;
    contenders[PAIR_CONTROL].seconds = contenders[PAIR_BASE].seconds;
    return true;
}

/* Times and reports a pair in `share` seconds. */
static void time_pair(struct pairs_run *run, struct timed_pair *pair, double share)
{
    struct contender contenders[CONTENDERS];
    const double begin = clock_now();
    struct rounds rounds = { .contenders = contenders,
                             .least_sample = run->least_sample,
                             .seed = rng_u64(run->options->seed, (uint64_t)(pair - run->pairs)),
                             .stop = run->options->stop,
                             .user = run->options->user };
    for (int side = PAIR_BASE; side < PAIR_SIDES; side++) {
        timed_call_make_repeatable(&pair->sides[side].call);
        contenders[rounds.n++] = pair->sides[side].contender;
    }
    if (contender_is_timed(&run->roofline))
        contenders[rounds.n++] = run->roofline;
    bool ok = calibrate_sides(contenders, run->least_sample);
    rounds_plan(&rounds, share - (clock_now() - begin), (double)run->options->min_rounds,
                (double)run->options->max_rounds);
    rounds.samples = malloc(rounds.n * rounds.n_rounds * sizeof *rounds.samples);
    ok = ok && rounds.samples && rounds_time(&rounds);
    if (!ok)
        reject_pair(pair, PAIR_NO_SIDE, BENCH_REJECTED, "Google Benchmark could not time it");
    if (!is_stopped(run) && ok)
        report(run, pair, &rounds);
    else if (!is_stopped(run))
        report_rejected(run, pair);
    free(rounds.samples);
}

/* Times the pairs that are not rejected, each in an equal share of the time that is left. */
static void time_pairs(struct pairs_run *run)
{
    timed_call_make_repeatable(&run->call);
    choose_roofline(run);
    for (size_t i = 0; i < run->n && !is_stopped(run); i++) {
        struct timed_pair *pair = &run->pairs[i];
        const double left = run->deadline - clock_now();
        announce(run, pair, PAIR_NO_SIDE);
        if (pair->outcome != BENCH_TIMED)
            report_rejected(run, pair);
        else
            time_pair(run, pair, left / (double)(run->n - i));
    }
}

/* ---- A case ---- */

static void time_case(struct pairs_run *run, const struct problem *problem)
{
    char reason[REASON_SIZE];
    struct tensor_allocator memory = timed_call_memory(&run->buffers);
    if (call_create(&run->call, problem, &memory) != POSENC_OK) {
        posenc_error_text(&run->call.error, reason, sizeof reason);
        reject_all(run, BENCH_REJECTED, reason);
    } else if (!timed_call_open(&run->timed, &run->call, run->team, 1)) {
        reject_all(run, BENCH_REJECTED, "no memory");
    } else {
        check_pairs(run);
        run->deadline = clock_now() + run->options->share_s;
    }
    if (!is_stopped(run))
        time_pairs(run);
}

static void close_run(struct pairs_run *run)
{
    for (size_t i = 0; run->pairs && i < run->n; i++)
        for (int side = PAIR_BASE; side < PAIR_SIDES; side++)
            close_side(&run->pairs[i].sides[side]);
    free(run->pairs);
    timed_call_close(&run->timed);
    call_destroy(&run->call);
    team_destroy(run->team);
}

int pairs_time(const struct bench_case *bench_case, const struct bench_pair *pairs, size_t n,
               const struct pair_options *options, char *error)
{
    if (machine_emulator()) {
        snprintf(error, 256, "emulated: %.240s", machine_emulator());
        return -1;
    }
    struct pairs_run run = { .options = options,
                             .team = team_create(1),
                             .least_sample = clock_least_sample(),
                             .n = n,
                             .pairs = calloc(n + 1, sizeof *run.pairs) };
    const bool ok = run.team && run.pairs;
    for (size_t i = 0; ok && i < n; i++)
        for (int side = PAIR_BASE; side < PAIR_SIDES; side++)
            run.pairs[i].sides[side].implementation = pairs[i].sides[side];
    if (ok)
        time_case(&run, &bench_case->problem);
    else
        snprintf(error, 256, "no memory for the contenders");
    close_run(&run);
    return ok ? 0 : -1;
}
