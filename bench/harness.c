/*
 * Times cases one after the other. Contenders of a case are every backend that provides its kernel, a copy of the
 * fastest (the A/A control), rooflines and lower-bound loops. Each is timed once per round, in a random order.
 *
 *   check      each backend's output; a wrong one gets a reason and no number (output_check.c)
 *   calibrate  each contender's iterations, once, by Google Benchmark: a sample lasts at least 100 us
 *              and 200 ticks of the clock
 *   rounds     as many as the case's share of the time allows. A contender slower than 50 ms a sample
 *              takes part in fewer of them, in at least 3, evenly spread
 *
 * All contenders work on the same tensors, through the public entry point, which validates.
 *
 * Ratios (roofline_ratio, vs_*, control_pct) are medians of ratios within rounds, so that drift between rounds cancels.
 * The best roofline is the variant with the least median; the least time per round would be biased, as a minimum over
 * several noisy samples.
 *
 * Rotations in place keep norms: after a million calls of a matrix that is orthogonal to 2^-24 data are
 * still within 6 %. For sums and norms see timed_call_make_repeatable().
 */
#include "harness.h"
#include "base/clock.h"
#include "base/machine/machine.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seconds for the rounds of a case whose checks used up its share of the time. */
static const double LEAST_SHARE_S = 0.1;
/* Most rounds of a quick and of a full run, and fewest rounds of a contender that is not slow. */
enum { QUICK_ROUNDS = 31, FULL_ROUNDS = 61, GOOD_ROUNDS = 8 };

/* ---- Contenders of a case ---- */

bool bench_is_stopped(const struct bench_session *session)
{
    return session->options->stop && session->options->stop(session->user);
}

/* Rejects all backends that are not rejected yet, for the same reason. */
static void reject_all(struct case_run *run, enum bench_outcome outcome, const char *reason)
{
    for (size_t i = 0; i < run->n_backends; i++)
        if (contender_is_timed(&run->rounds.contenders[i]))
            contender_reject(&run->rounds.contenders[i], outcome, reason);
}

/* Reports the backend that is called next, to the caller of bench_run(). */
static void report_call(void *user, const struct posenc_backend *backend)
{
    const struct case_run *run = user;
    const struct bench_session *session = run->session;
    if (session->options->on_call)
        session->options->on_call(session->user, run->bench_case, backend);
}

struct contender *case_find_fastest(const struct case_run *run)
{
    struct contender *best = NULL;
    for (size_t i = 0; i < run->n_backends; i++) {
        struct contender *c = &run->rounds.contenders[i];
        if (contender_is_timed(c) && (!best || c->seconds < best->seconds))
            best = c;
    }
    return best;
}

/* Computes the reference output by `scalar`. On failure rejects all backends and returns false. */
static bool take_reference(struct case_run *run, struct output_check *check)
{
    const struct posenc_backend *scalar = posenc_backend_find("scalar");
    struct contender reference = contender_of_backend(&run->timed, scalar);
    char reason[REASON_SIZE];
    if (!check || !scalar) {
        reject_all(run, BENCH_REJECTED,
                   !check ? "no memory for the check" : "no scalar to compare with");
        return false;
    }
    if (!contender_try(&reference, &run->call)) {
        snprintf(reason, sizeof reason, "no reference: scalar: %.220s", reference.reason);
        reject_all(run, BENCH_REJECTED, reason);
        return false;
    }
    if (!output_check_reference(check, scalar, reference.reason, REASON_SIZE)) {
        snprintf(reason, sizeof reason, "no reference: scalar is %.220s", reference.reason);
        reject_all(run, BENCH_WRONG, reason);
        return false;
    }
    return true;
}

void case_check(struct case_run *run)
{
    struct output_check *check = output_check_create(&run->call, run->session->options->seed);
    if (take_reference(run, check)) {
        for (size_t i = 0; i < run->n_backends && !bench_is_stopped(run->session); i++) {
            struct contender *c = &run->rounds.contenders[i];
            if (contender_is_timed(c) && contender_try(c, &run->call) &&
                !output_check_all(check, c->backend, c->reason, REASON_SIZE))
                c->outcome = BENCH_WRONG;
        }
    }
    output_check_destroy(check);
}

/* Adds all backends, and rejects those that cannot be timed. */
static void add_backends(struct case_run *run, const struct posenc_backend *const *backends)
{
    const struct bench_case *now = run->bench_case;
    const struct bench_options *options = run->session->options;
    for (size_t i = 0; i < run->n_backends; i++) {
        struct contender *c = &run->rounds.contenders[run->rounds.n++];
        *c = contender_of_backend(&run->timed, backends[i]);
        const char *unavailable = posenc_backend_unavailable_reason(backends[i]), *why;
        if (unavailable)
            contender_reject(c, BENCH_REJECTED, unavailable);
        else if (!posenc_backend_provides(backends[i], now->problem.kernel))
            contender_reject(c, BENCH_NOT_PROVIDED, "not provided");
        else if (!backends[i]->f16_bf16 && !problem_is_f32(&now->problem))
            contender_reject(c, BENCH_REJECTED, "takes f32 alone");
        else if (options->find_exclusion &&
                 (why = options->find_exclusion(run->session->user, now, backends[i])))
            contender_reject(c, BENCH_WRONG, why);
    }
}

/* Adds the A/A control, a copy of the fastest backend since that takes least time, and the limits. */
static void add_control_and_limits(struct case_run *run)
{
    run->control_of = case_find_fastest(run);
    if (!run->control_of)
        return;
    run->control = &run->rounds.contenders[run->rounds.n++];
    *run->control = *run->control_of;
    run->control->is_copy = true;
    for (size_t i = 0; bound_variant_at(i); i++) {
        const struct bound_variant *variant = bound_variant_at(i);
        if (variant->kind == run->timed.roofline && bound_variant_runs(variant))
            run->rounds.contenders[run->rounds.n++] =
                contender_of_bound(&run->timed, variant, NULL);
    }
    limits_add_loops(&run->rounds, &run->timed);
}

/* ---- Rounds ---- */

/* Chooses the number of rounds that fit into `share` seconds, and the number of rounds of each contender. */
static void plan_rounds(struct case_run *run, double share)
{
    const double max_rounds = (double)run->session->max_rounds;
    double round_s = 0.0, slow_s = 0.0; /* of a round, and of all samples of slow contenders */
    for (size_t i = 0; i < run->rounds.n; i++) {
        struct contender *c = &run->rounds.contenders[i];
        const double sample_s = contender_sample_seconds(c);
        if (!contender_is_timed(c))
            continue;
        c->rounds = run->session->max_rounds;
        if (sample_s > CONTENDER_SLOW_S) {
            c->rounds = (size_t)fmin(fmax(0.25 * share / sample_s, MIN_ROUNDS), max_rounds);
            slow_s += sample_s * (double)c->rounds;
        } else {
            round_s += sample_s;
        }
    }
    const double fit = (share - slow_s) / fmax(round_s, 1e-9);
    run->rounds.n_rounds = (size_t)fmin(fmax(fit, GOOD_ROUNDS), max_rounds);
    for (size_t i = 0; i < run->rounds.n; i++)
        if (run->rounds.contenders[i].rounds > run->rounds.n_rounds)
            run->rounds.contenders[i].rounds = run->rounds.n_rounds;
}

void case_time_rounds(struct case_run *run, bool ok)
{
    run->rounds.samples =
        malloc(run->rounds.n * run->rounds.n_rounds * sizeof *run->rounds.samples);
    if (!run->rounds.samples)
        reject_all(run, BENCH_REJECTED, "out of memory");
    else if (!ok || !rounds_time(&run->rounds))
        reject_all(run, BENCH_REJECTED, "Google Benchmark could not time it");
}

/* ---- Results ---- */

static bool is_libm(const struct contender *c)
{
    return c->backend && strcmp(c->backend->name, "libm") == 0;
}

static bool is_autovec(const struct contender *c)
{
    return c->backend && strcmp(c->backend->family, "autovec") == 0;
}

static void fill_limits(const struct case_run *run, const struct contender *c,
                        struct bench_result *result)
{
    const struct rounds *rounds = &run->rounds;
    const struct contender *roofline = rounds_fastest(rounds, contender_is_roofline);
    const struct lower_bound limit = limits_find(rounds, c);
    const double bytes = 1e-9 * (double)run->bytes;
    if (roofline) {
        result->roofline_kind = bound_kind_name[roofline->bound->kind];
        result->roofline_variant = roofline->bound->name;
        result->roofline_gbps = bytes / rounds_median(rounds, roofline);
        result->roofline_ratio = rounds_speed(rounds, c, roofline);
    }
    if (limit.share > 0.0) {
        result->limit_resource = resource_name[limit.resource];
        result->limit_kind = limit.kind;
        result->limit_variant = limit.variant;
        result->limit_gbps = bytes / limit.seconds;
        result->limit_ratio = limit.share;
    }
}

static void fill_numbers(const struct case_run *run, const struct contender *c,
                         struct bench_result *result)
{
    const struct rounds *rounds = &run->rounds;
    const double *samples = rounds_samples(rounds, c);
    const struct stats_summary s = stats_summarise(samples, rounds->n_rounds);
    result->rounds = (int)s.n;
    result->median_ns = 1e9 * s.median;
    result->min_ns = 1e9 * s.min;
    result->ci_level = s.interval.level;
    result->ci_low = 1e9 * s.interval.low;
    result->ci_high = 1e9 * s.interval.high;
    result->gbps = 1e-9 * (double)run->bytes / s.median;
    fill_limits(run, c, result);
    result->vs_libm = rounds_speed(rounds, c, rounds_fastest(rounds, is_libm));
    result->vs_autovec = rounds_speed(rounds, c, rounds_fastest(rounds, is_autovec));
    if (run->control)
        result->control_pct =
            100.0 * fabs(rounds_speed(rounds, run->control_of, run->control) - 1.0);
    for (size_t i = 0; run->session->options->tuning && i < rounds->n_rounds; i++)
        result->sample_ns[i] = 1e9 * samples[i];
}

static void report(const struct case_run *run)
{
    const struct bench_session *session = run->session;
    for (size_t i = 0; i < run->n_backends; i++) {
        const struct contender *c = &run->rounds.contenders[i];
        struct bench_result result = { .bench_case = run->bench_case,
                                       .backend = c->backend,
                                       .outcome = c->outcome,
                                       .threads = session->threads,
                                       .bytes = run->bytes,
                                       .footprint = run->footprint };
        if (!contender_is_timed(c))
            result.reason = c->reason;
        else
            fill_numbers(run, c, &result);
        session->sink(session->user, &result);
    }
}

/* ---- Cases and runs ---- */

/* Times a case in `share` seconds. Afterwards every contender is either timed or rejected. */
static void time_case(struct case_run *run, double share)
{
    const struct bench_session *session = run->session;
    const double begin = clock_now();
    char reason[REASON_SIZE];
    struct tensor_allocator memory = timed_call_memory(&run->buffers);
    if (call_create(&run->call, &run->bench_case->problem, &memory) != POSENC_OK) {
        posenc_error_text(&run->call.error, reason, sizeof reason);
        reject_all(run, BENCH_REJECTED, reason);
        return;
    }
    run->footprint = posenc_footprint(run->bench_case->problem.kernel, &run->call.args);
    const bool opened =
        timed_call_open(&run->timed, &run->call, session->team, session->threads);
    run->timed.on_call = report_call;
    run->timed.on_call_user = run;
    if (!opened) {
        reject_all(run, BENCH_REJECTED, "no memory for the threads' calls");
        return;
    }
    if (session->options->tuning) {
        tuning_time_case(run, begin, share);
        return;
    }
    case_check(run);
    timed_call_make_repeatable(&run->call);
    timed_call_cut(&run->timed);
    add_control_and_limits(run);
    if (!run->control_of || bench_is_stopped(session))
        return;
    const bool ok =
        rounds_calibrate(&run->rounds) && limits_add_partial_calls(&run->rounds, &run->timed);
    plan_rounds(run, fmax(share - (clock_now() - begin), LEAST_SHARE_S));
    case_time_rounds(run, ok);
}

/* Times and reports a case. Returns false without memory. */
static bool run_case(struct bench_session *session, const struct bench_case *bench_case,
                     const struct posenc_backend *const *backends, size_t n_backends,
                     double share)
{
    size_t rooflines = 0;
    while (bound_variant_at(rooflines))
        rooflines++;
    /* Backends and their partial calls, the control, rooflines and loops. */
    const size_t most = 2 * n_backends + 1 + rooflines,
                 bytes = problem_bytes(&bench_case->problem);
    struct case_run run = { .session = session,
                            .bench_case = bench_case,
                            .bytes = bytes,
                            .n_backends = n_backends,
                            .rounds = { .varies_stack = true,
                                        .contenders = calloc(most, sizeof(struct contender)),
                                        .least_sample = session->least_sample,
                                        .seed = rng_u64(session->options->seed, bytes),
                                        .stop = session->options->stop,
                                        .user = session->user } };
    if (!run.rounds.contenders)
        return false;
    add_backends(&run, backends);
    time_case(&run, share);
    report_call(&run, NULL);
    if (!bench_is_stopped(session))
        report(&run);
    free(run.rounds.samples);
    timed_call_close(&run.timed);
    call_destroy(&run.call);
    free(run.rounds.contenders);
    return true;
}

/* Runs all cases, each in its share of the time that is left. Returns false without memory. */
static bool run_cases(struct bench_session *session, const struct bench_case *cases,
                      size_t n_cases, const struct posenc_backend *const *backends,
                      size_t n_backends)
{
    double weight = 0.0; /* of the cases that are left */
    for (size_t i = 0; i < n_cases; i++)
        weight += tuning_case_weight(session, &cases[i]);
    for (size_t i = 0; i < n_cases && !bench_is_stopped(session); i++) {
        const double own_weight = tuning_case_weight(session, &cases[i]);
        const double share = fmax(session->deadline - clock_now(), 0.0) * own_weight / weight;
        tuning_begin_case(session, &cases[i], i > 0 ? &cases[i - 1] : NULL, n_backends);
        if (!run_case(session, &cases[i], backends, n_backends, share))
            return false;
        weight -= own_weight;
    }
    return true;
}

int bench_run(const struct bench_case *cases, size_t n_cases,
              const struct posenc_backend *const *backends, size_t n_backends,
              const struct bench_options *options, bench_sink *sink, void *user, char *error)
{
    if (machine_emulator()) {
        snprintf(error, 256, "emulated: %.240s", machine_emulator());
        return -1;
    }
    const int threads = options->threads > 1 ? options->threads : 1;
    struct bench_session session = { .options = options,
                                     .threads = threads,
                                     .team = team_create(threads),
                                     .least_sample = clock_least_sample(),
                                     .deadline = clock_now() + bench_time_limit(options),
                                     .max_rounds = options->full ? FULL_ROUNDS : QUICK_ROUNDS,
                                     .sink = sink,
                                     .user = user };
    if (!session.team) {
        snprintf(error, 256, "cannot start %d threads", options->threads);
        return -1;
    }
    session.best_rate = calloc(n_backends + 1, sizeof *session.best_rate);
    session.was_wrong = calloc(n_backends + 1, sizeof *session.was_wrong);
    const bool ok = session.best_rate && session.was_wrong &&
                    run_cases(&session, cases, n_cases, backends, n_backends);
    team_destroy(session.team);
    free(session.best_rate);
    free(session.was_wrong);
    if (!ok)
        snprintf(error, 256, "no memory for the contenders");
    return ok ? 0 : -1;
}
