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
#include "output_check.h"
#include "machine.h"
#include "harness.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *const pair_side_name[PAIR_SIDES] = { "base", "head", "control" };

enum { CONTENDERS = PAIR_SIDES + 1 }; /* sides and a roofline */
static const double LONG_S = 10e-3;

/* Side of a pair: its call on the common tensors, and its contender. */
struct side {
    const struct implementation *implementation;
    struct call call;
    struct timed_call timed;
    struct contender contender;
};

struct timed_pair {
    struct side side[PAIR_SIDES];
    enum bench_outcome outcome;
    enum pair_side role; /* side of the outcome */
    char reason[REASON_SIZE];
};

/* All pairs of one case. */
struct pairs_time {
    const struct pair_options *options;
    struct team *team;
    double least_sample, deadline;
    unsigned buffers;
    struct call call; /* owns the tensors of all sides */
    size_t n;
    struct timed_pair *pairs;
    struct timed_call timed; /* of the roofline */
    struct contender roofline;
};

static bool is_stopped(const struct pairs_time *run)
{
    return run->options->stop && run->options->stop(run->options->user);
}

static void announce(const struct pairs_time *run, const struct timed_pair *pair,
                     enum pair_side role)
{
    if (run->options->on_call)
        run->options->on_call(run->options->user, (size_t)(pair - run->pairs), role);
}

static void reject_pair(struct timed_pair *pair, enum pair_side role,
                        enum bench_outcome outcome, const char *reason)
{
    pair->role = role;
    pair->outcome = outcome;
    snprintf(pair->reason, sizeof pair->reason, "%s", reason);
}

static void reject_all(struct pairs_time *run, enum bench_outcome outcome, const char *reason)
{
    for (size_t i = 0; i < run->n; i++)
        if (run->pairs[i].outcome == BENCH_TIMED)
            reject_pair(&run->pairs[i], PAIR_SIDES, outcome, reason);
}

/* ---- Checks ---- */

/* Opens the call of a side on the common tensors. Returns false with a reason on failure. */
static bool open_side(struct pairs_time *run, struct side *side, char reason[REASON_SIZE])
{
    if (call_share(&run->call, side->implementation, &side->call) != POSENC_OK) {
        posenc_error_text(&side->call.error, reason, REASON_SIZE);
        return false;
    }
    if (!timed_call_open(&side->timed, &side->call, run->team, 1)) {
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

static void check_side(struct pairs_time *run, struct timed_pair *pair, enum pair_side role,
                       const struct output_check *check)
{
    char reason[REASON_SIZE] = "";
    struct side *side = &pair->side[role];
    const struct posenc_backend *backend = side->implementation->backend;
    announce(run, pair, role);
    if (!contender_try(&side->contender, &run->call))
        reject_pair(pair, role, BENCH_REJECTED, side->contender.reason);
    else if (!(run->options->rows_alone ? output_check_rows : output_check_all)(
                 check, backend, reason, sizeof reason))
        reject_pair(pair, role, BENCH_WRONG, reason);
}

/* Computes the reference output by scalar of the same build. Returns false with a reason if it is wrong in 64 rows. */
static bool make_reference(struct pairs_time *run, enum pair_side role,
                           struct output_check *check, char reason[REASON_SIZE])
{
    const struct implementation mine = implementation_of(posenc_backend_find("scalar"));
    const struct implementation *theirs = run->options->scalar[role];
    struct side scalar = { .implementation = theirs ? theirs : &mine };
    bool right = open_side(run, &scalar, reason);
    if (right && !contender_try(&scalar.contender, &run->call)) {
        snprintf(reason, REASON_SIZE, "%s", scalar.contender.reason);
        right = false;
    }
    right = right &&
            output_check_reference(check, scalar.implementation->backend, reason, REASON_SIZE);
    close_side(&scalar);
    return right;
}

static void check_sides(struct pairs_time *run, enum pair_side role, struct output_check *check)
{
    char why[REASON_SIZE] = "", reason[REASON_SIZE];
    if (run->n > 0)
        announce(run, &run->pairs[0], role);
    const bool reference = run->options->rows_alone || make_reference(run, role, check, why);
    snprintf(reason, sizeof reason, "no reference: scalar: %.220s", why);
    for (size_t i = 0; i < run->n && !is_stopped(run); i++) {
        struct timed_pair *pair = &run->pairs[i];
        if (pair->outcome == BENCH_TIMED && reference)
            check_side(run, pair, role, check);
        else if (pair->outcome == BENCH_TIMED)
            reject_pair(pair, role, BENCH_WRONG, reason);
    }
}

/* Opens the sides of each pair. Rejects a pair at the first side that fails. */
static void open_sides(struct pairs_time *run)
{
    char reason[REASON_SIZE];
    for (size_t i = 0; i < run->n; i++)
        for (enum pair_side s = PAIR_BASE; s < PAIR_SIDES; s++) {
            announce(run, &run->pairs[i], s);
            if (!open_side(run, &run->pairs[i].side[s], reason)) {
                reject_pair(&run->pairs[i], s, BENCH_REJECTED, reason);
                break;
            }
        }
}

static void check_pairs(struct pairs_time *run)
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
static void choose_roofline(struct pairs_time *run)
{
    run->roofline.outcome = BENCH_NOT_PROVIDED;
    for (size_t i = 0; run->timed.blocks && roofline_variant_at(i); i++) {
        const struct roofline_variant *variant = roofline_variant_at(i);
        if (variant->kind != run->timed.roofline || (variant->runs && !variant->runs()))
            continue;
        struct contender c = contender_of_roofline(&run->timed, variant);
        contender_try(&c, NULL);
        if (c.seconds <= LONG_S)
            contender_try(&c, NULL);
        if (!run->roofline.roofline || c.seconds < run->roofline.seconds)
            run->roofline = c;
    }
    if (run->roofline.roofline && !contender_calibrate(&run->roofline, run->least_sample))
        run->roofline.outcome = BENCH_REJECTED;
}

/* Chooses the number of rounds that fit into `share` seconds. All sides take part in each. */
static void plan_rounds(struct rounds *rounds, const struct pair_options *options, double share)
{
    double round = 0.0;
    for (size_t i = 0; i < rounds->n; i++)
        round += contender_sample_seconds(&rounds->contenders[i]);
    const double fit = fmax(share / fmax(round, 1e-9), (double)options->min_rounds);
    rounds->n_rounds = (size_t)fmin(fit, (double)options->max_rounds);
    for (size_t i = 0; i < rounds->n; i++)
        rounds->contenders[i].rounds = rounds->n_rounds;
}

static void report_rejected(const struct pairs_time *run, const struct timed_pair *pair)
{
    const struct pair_result result = { .pair = (size_t)(pair - run->pairs),
                                        .outcome = pair->outcome,
                                        .role = pair->role,
                                        .reason = pair->reason };
    run->options->on_result(run->options->user, &result);
}

static void report(const struct pairs_time *run, const struct timed_pair *pair,
                   const struct rounds *rounds)
{
    struct pair_result result = { .pair = (size_t)(pair - run->pairs),
                                  .outcome = pair->outcome,
                                  .rounds = rounds->n_rounds };
    const double *base = rounds_samples(rounds, &rounds->contenders[PAIR_BASE]);
    double *ratios = malloc(2 * rounds->n_rounds * sizeof *ratios + 1);
    for (size_t s = 0; s < PAIR_SIDES; s++) {
        const double *samples = rounds_samples(rounds, &rounds->contenders[s]);
        result.ns[s] = 1e9 * rounds_median(rounds, &rounds->contenders[s]);
        for (size_t r = 0; ratios && s > PAIR_BASE && r < rounds->n_rounds; r++)
            ratios[(s - 1) * rounds->n_rounds + r] = log(samples[r] / base[r]);
    }
    if (rounds->n > PAIR_SIDES) {
        const struct contender *roofline = &rounds->contenders[PAIR_SIDES];
        result.roofline_kind = roofline_kind_name[roofline->roofline->kind];
        result.roofline_variant = roofline->roofline->name;
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
    for (int s = 0; s < PAIR_CONTROL; s++)
        if (!contender_calibrate(&contenders[s], least_sample))
            return false;
    const int64_t base = contenders[PAIR_BASE].iterations,
                  head = contenders[PAIR_HEAD].iterations;
    for (int s = 0; s < PAIR_SIDES; s++)
        contenders[s].iterations = base > head ? base : head;
    contenders[PAIR_CONTROL].seconds = contenders[PAIR_BASE].seconds;
    return true;
}

static void time_pair(struct pairs_time *run, struct timed_pair *pair, double share)
{
    struct contender contenders[CONTENDERS];
    const double begin = clock_now();
    struct rounds rounds = { .contenders = contenders,
                             .least_sample = run->least_sample,
                             .seed = rng_u64(run->options->seed, (uint64_t)(pair - run->pairs)),
                             .stop = run->options->stop,
                             .user = run->options->user };
    for (int s = 0; s < PAIR_SIDES; s++) {
        timed_call_make_repeatable(&pair->side[s].call);
        contenders[rounds.n++] = pair->side[s].contender;
    }
    if (contender_is_timed(&run->roofline))
        contenders[rounds.n++] = run->roofline;
    bool ok = calibrate_sides(contenders, run->least_sample);
    plan_rounds(&rounds, run->options, share - (clock_now() - begin));
    rounds.samples = malloc(rounds.n * rounds.n_rounds * sizeof *rounds.samples);
    ok = ok && rounds.samples && rounds_time(&rounds);
    if (!ok)
        reject_pair(pair, PAIR_SIDES, BENCH_REJECTED, "Google Benchmark could not time it");
    if (!is_stopped(run) && ok)
        report(run, pair, &rounds);
    else if (!is_stopped(run))
        report_rejected(run, pair);
    free(rounds.samples);
}

static void time_pairs(struct pairs_time *run)
{
    timed_call_make_repeatable(&run->call);
    choose_roofline(run);
    for (size_t i = 0; i < run->n && !is_stopped(run); i++) {
        struct timed_pair *pair = &run->pairs[i];
        const double left = run->deadline - clock_now();
        announce(run, pair, PAIR_SIDES);
        if (pair->outcome != BENCH_TIMED)
            report_rejected(run, pair);
        else
            time_pair(run, pair, left / (double)(run->n - i));
    }
}

/* ---- A case ---- */

static void time_case(struct pairs_time *run, const struct problem *problem)
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

static void close_run(struct pairs_time *run)
{
    for (size_t i = 0; run->pairs && i < run->n; i++)
        for (int s = 0; s < PAIR_SIDES; s++)
            close_side(&run->pairs[i].side[s]);
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
    struct pairs_time run = { .options = options,
                              .team = team_create(1),
                              .least_sample = clock_least_sample(),
                              .n = n,
                              .pairs = calloc(n + 1, sizeof *run.pairs) };
    const bool ok = run.team && run.pairs;
    for (size_t i = 0; ok && i < n; i++)
        for (int s = 0; s < PAIR_SIDES; s++)
            run.pairs[i].side[s].implementation = pairs[i].side[s];
    if (ok)
        time_case(&run, &bench_case->problem);
    else
        snprintf(error, 256, "no memory for the contenders");
    close_run(&run);
    return ok ? 0 : -1;
}
