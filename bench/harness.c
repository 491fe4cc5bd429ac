/*
 * Times one case after the other.  Contenders of a case are every backend that provides its kernel, a
 * second copy of the fastest one (the A/A control), the steps that the kernel does in one pass
 * (apart.h), rooflines and other limits (limits.h).  Each is timed once per round, in a random order
 * that the seed repeats.
 *
 *   check      each backend's output; a wrong one gets a reason and no number (check.h)
 *   calibrate  each contender's iterations, once, by Google Benchmark: a sample lasts at least 100 us
 *              and 200 ticks of the clock
 *   rounds     as many as the case's share of the time allows.  A contender slower than 50 ms a sample
 *              takes part in fewer of them, in at least 3, evenly spread
 *
 * All contenders work on the same tensors, through the public entry point, which validates.
 *
 * Ratios (roofline_ratio, vs_*, control_pct) are medians of ratios within rounds, so that drift between
 * rounds cancels.  The best roofline is the variant with the least median; the least time per round
 * would be biased, as a minimum over several noisy samples.
 *
 * Rotations in place keep norms: after a million calls of a matrix that is orthogonal to 2^-24 data are
 * still within 6 %.  For sums and norms see call_make_repeatable().
 */
#define POSENC_EXPERIMENTAL
#include "bench.h"
#include "check.h"
#include "machine.h"
#include "limits.h"
#include "race.h"
#include "base/clock.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LEAST_SHARE_S = 0.1; /* for rounds: cases in cache get all they want */
enum { QUICK_ROUNDS = 31, FULL_ROUNDS = 61, GOOD_ROUNDS = 8 };

/* ---- Contenders of a case ---- */

bool race_is_stopped(const struct session *session)
{
    return session->options->stop && session->options->stop(session->user);
}

void race_refuse_all(struct race *race, enum bench_outcome outcome, const char *reason)
{
    for (size_t i = 0; i < race->n_backends; i++)
        if (contender_is_timed(&race->turns.contenders[i]))
            contender_refuse(&race->turns.contenders[i], outcome, reason);
}

static void watch_race(void *user, const struct posenc_backend *backend)
{
    const struct race *race = user;
    const struct session *session = race->session;
    if (session->options->watch)
        session->options->watch(session->user, race->bench_case, backend);
}

struct contender *race_quickest(const struct race *race)
{
    struct contender *best = NULL;
    for (size_t i = 0; i < race->n_backends; i++) {
        struct contender *c = &race->turns.contenders[i];
        if (contender_is_timed(c) && (!best || c->seconds < best->seconds))
            best = c;
    }
    return best;
}

/* Enters the steps, the last of them on the quickest backend, held to the error limits of libm. */
static void enter_apart(struct race *race, const struct check *check)
{
    const struct contender *best = race_quickest(race);
    const struct posenc_backend *libm = posenc_backend_find("libm");
    apart_steps *steps = apart_of(&race->call.problem);
    if (!best || !steps || !libm)
        return;
    struct contender *c = &race->turns.contenders[race->turns.n++];
    *c = contender_of_backend(&race->timed, best->backend);
    c->steps = steps;
    if (contender_try(c, &race->call) && !check_output(check, libm, c->refused, REASON_SIZE))
        c->outcome = BENCH_WRONG;
    race->apart = c;
}

/* Takes the output of `scalar` as the reference.  Returns false after all backends were refused. */
static bool take_reference(struct race *race, struct check *check)
{
    const struct posenc_backend *scalar = posenc_backend_find("scalar");
    struct contender reference = contender_of_backend(&race->timed, scalar);
    char reason[REASON_SIZE];
    if (!check || !scalar) {
        race_refuse_all(race, BENCH_REFUSED,
                        !check ? "no memory for the check" : "no scalar to compare with");
        return false;
    }
    if (!contender_try(&reference, &race->call)) {
        snprintf(reason, sizeof reason, "no reference: scalar: %.220s", reference.refused);
        race_refuse_all(race, BENCH_REFUSED, reason);
        return false;
    }
    if (!check_reference(check, scalar, reference.refused, REASON_SIZE)) {
        snprintf(reason, sizeof reason, "no reference: scalar is %.220s", reference.refused);
        race_refuse_all(race, BENCH_WRONG, reason);
        return false;
    }
    return true;
}

void race_check(struct race *race)
{
    struct check *check = check_create(&race->call, race->session->options->seed);
    if (take_reference(race, check)) {
        for (size_t i = 0; i < race->n_backends && !race_is_stopped(race->session); i++) {
            struct contender *c = &race->turns.contenders[i];
            if (contender_is_timed(c) && contender_try(c, &race->call) &&
                !check_output(check, c->backend, c->refused, REASON_SIZE))
                c->outcome = BENCH_WRONG;
        }
        if (!race->session->options->contest)
            enter_apart(race, check);
    }
    check_destroy(check);
}

static void enter_backends(struct race *race, const struct posenc_backend *const *backends)
{
    const struct bench_case *now = race->bench_case;
    const struct bench_options *options = race->session->options;
    for (size_t i = 0; i < race->n_backends; i++) {
        struct contender *c = &race->turns.contenders[race->turns.n++];
        *c = contender_of_backend(&race->timed, backends[i]);
        const char *obstacle = posenc_backend_obstacle(backends[i]), *why;
        if (obstacle)
            contender_refuse(c, BENCH_REFUSED, obstacle);
        else if (!posenc_provides(backends[i], now->problem.kernel))
            contender_refuse(c, BENCH_LACKS_IT, "not provided");
        else if (!backends[i]->f16_bf16 && !problem_is_f32(&now->problem))
            contender_refuse(c, BENCH_REFUSED, "takes f32 alone");
        else if (options->unfit &&
                 (why = options->unfit(race->session->user, now, backends[i])))
            contender_refuse(c, BENCH_WRONG, why);
    }
}

/* Enters the A/A control and the rooflines; the twin is the fastest backend, whose copy costs least. */
static void enter_yardsticks(struct race *race)
{
    race->twin = race_quickest(race);
    if (!race->twin)
        return;
    race->control = &race->turns.contenders[race->turns.n++];
    *race->control = *race->twin;
    race->control->again = true;
    for (size_t i = 0; roofline_variant_at(i); i++) {
        const struct roofline_variant *variant = roofline_variant_at(i);
        if (variant->kind == race->timed.roofline && (!variant->runs || variant->runs()))
            race->turns.contenders[race->turns.n++] =
                contender_of_roofline(&race->timed, variant);
    }
    limits_enter_loops(&race->turns, &race->timed);
}

/* ---- Rounds ---- */

/* Plans how many rounds fit into `share` seconds, and in how many each contender takes part. */
static void plan_rounds(struct race *race, double share)
{
    double round = 0.0, slow = 0.0;
    for (size_t i = 0; i < race->turns.n; i++) {
        struct contender *c = &race->turns.contenders[i];
        const double s = contender_sample_seconds(c);
        if (!contender_is_timed(c))
            continue;
        c->rounds = race->session->most_rounds;
        if (s > CONTENDER_SLOW_S) {
            c->rounds = (size_t)fmin(fmax(0.25 * share / s, LEAST_ROUNDS), (double)c->rounds);
            slow += s * (double)c->rounds;
        } else {
            round += s;
        }
    }
    const double fit = (share - slow) / fmax(round, 1e-9);
    race->turns.rounds =
        (size_t)fmin(fmax(fit, GOOD_ROUNDS), (double)race->session->most_rounds);
    for (size_t i = 0; i < race->turns.n; i++)
        if (race->turns.contenders[i].rounds > race->turns.rounds)
            race->turns.contenders[i].rounds = race->turns.rounds;
}

void race_run_turns(struct race *race, bool fine)
{
    race->turns.samples =
        malloc(race->turns.n * race->turns.rounds * sizeof *race->turns.samples);
    if (!race->turns.samples || !fine || !turns_run(&race->turns))
        race_refuse_all(race, BENCH_REFUSED, "Google Benchmark could not time it");
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

static void fill_limits(const struct race *race, const struct contender *c,
                        struct bench_result *result)
{
    const struct turns *turns = &race->turns;
    const struct contender *roofline = turns_fastest(turns, contender_is_roofline);
    const struct limit limit = limits_of(turns, c);
    const double bytes = 1e-9 * (double)race->bytes;
    if (roofline) {
        result->roofline_kind = roofline_kind_name[roofline->roofline->kind];
        result->roofline_variant = roofline->roofline->name;
        result->roofline_gbps =
            bytes / stats_median(turns_samples(turns, roofline), turns->rounds);
        result->roofline_ratio = turns_speed(turns, c, roofline);
    }
    if (limit.share > 0.0) {
        result->limit_resource = resource_name[limit.resource];
        result->limit_kind = limit.kind;
        result->limit_variant = limit.variant;
        result->limit_gbps = bytes / limit.seconds;
        result->limit_ratio = limit.share;
    }
}

static void fill_numbers(const struct race *race, const struct contender *c,
                         struct bench_result *result)
{
    const struct turns *turns = &race->turns;
    const double *samples = turns_samples(turns, c);
    const struct stats_summary s = stats_summarise(samples, turns->rounds);
    const struct contender *autovec = turns_fastest(turns, is_autovec);
    result->rounds = (int)s.n;
    result->median_ns = 1e9 * s.median;
    result->min_ns = 1e9 * s.min;
    result->ci_level = s.interval.level;
    result->ci_low = 1e9 * s.interval.low;
    result->ci_high = 1e9 * s.interval.high;
    result->gbps = 1e-9 * (double)race->bytes / s.median;
    fill_limits(race, c, result);
    result->vs_libm = turns_speed(turns, c, turns_fastest(turns, is_libm));
    result->vs_autovec = turns_speed(turns, c, autovec);
    result->vs_apart = turns_speed(turns, c, race->apart);
    result->autovec = autovec ? autovec->backend->name : NULL;
    if (race->control)
        result->control_pct = 100.0 * fabs(turns_speed(turns, race->twin, race->control) - 1.0);
    for (size_t i = 0; race->session->options->contest && i < turns->rounds; i++)
        result->sample_ns[i] = 1e9 * samples[i];
}

static void report(const struct race *race)
{
    const struct session *session = race->session;
    for (size_t i = 0; i < race->n_backends; i++) {
        const struct contender *c = &race->turns.contenders[i];
        struct bench_result result = { .bench_case = race->bench_case,
                                       .backend = c->backend,
                                       .outcome = c->outcome,
                                       .threads = session->options->threads > 1
                                                      ? session->options->threads
                                                      : 1,
                                       .bytes = race->bytes,
                                       .footprint = race->footprint };
        if (!contender_is_timed(c))
            result.refused = c->refused;
        else
            fill_numbers(race, c, &result);
        session->sink(session->user, &result);
    }
}

/* ---- A case, a run ---- */

/* Fills the race; afterwards every contender is either timed or refused. */
static void hold(struct race *race, double share)
{
    const struct session *session = race->session;
    const double begin = clock_now();
    char reason[REASON_SIZE];
    struct memory memory = bench_memory(&race->buffers);
    if (call_create(&race->call, &race->bench_case->problem, &memory) != POSENC_OK) {
        posenc_error_text(&race->call.error, reason, sizeof reason);
        race_refuse_all(race, BENCH_REFUSED, reason);
        return;
    }
    race->footprint = posenc_footprint(race->bench_case->problem.kernel, &race->call.args);
    const bool opened =
        timed_call_open(&race->timed, &race->call, session->team, session->options->threads);
    race->timed.watch = watch_race;
    race->timed.watch_user = race;
    if (!opened) {
        race_refuse_all(race, BENCH_REFUSED, "no memory for the threads' calls");
        return;
    }
    if (session->options->contest) {
        contest_hold(race, begin, share);
        return;
    }
    race_check(race);
    call_make_repeatable(&race->call);
    timed_call_cut(&race->timed);
    enter_yardsticks(race);
    if (!race->twin || race_is_stopped(session))
        return;
    const bool fine =
        turns_calibrate(&race->turns) && limits_enter_calls(&race->turns, &race->timed);
    plan_rounds(race, fmax(share - (clock_now() - begin), LEAST_SHARE_S));
    race_run_turns(race, fine);
}

static bool run_case(struct session *session, const struct bench_case *bench_case,
                     const struct posenc_backend *const *backends, size_t n_backends,
                     double share)
{
    size_t rooflines = 0;
    while (roofline_variant_at(rooflines))
        rooflines++;
    const size_t most = 2 * n_backends + 2 + 2 * rooflines,
                 bytes = problem_bytes(&bench_case->problem);
    struct race race = { .session = session,
                         .bench_case = bench_case,
                         .bytes = bytes,
                         .n_backends = n_backends,
                         .turns = { .deeper = true,
                                    .contenders = calloc(most, sizeof(struct contender)),
                                    .least_sample = session->least_sample,
                                    .order = mix64(session->options->seed, bytes),
                                    .stop = session->options->stop,
                                    .user = session->user } };
    if (!race.turns.contenders)
        return false;
    enter_backends(&race, backends);
    hold(&race, share);
    watch_race(&race, NULL);
    if (!race_is_stopped(session))
        report(&race);
    free(race.turns.samples);
    timed_call_close(&race.timed);
    call_destroy(&race.call);
    free(race.turns.contenders);
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
    struct session session = { .options = options,
                               .team = team_create(options->threads > 1 ? options->threads : 1),
                               .least_sample = clock_least_sample(),
                               .deadline = clock_now() + bench_budget(options),
                               .most_rounds = options->full ? FULL_ROUNDS : QUICK_ROUNDS,
                               .sink = sink,
                               .user = user };
    if (!session.team) {
        snprintf(error, 256, "cannot start %d threads", options->threads);
        return -1;
    }
    session.rate = calloc(n_backends + 1, sizeof *session.rate);
    session.wrong = calloc(n_backends + 1, sizeof *session.wrong);
    bool fine = session.rate && session.wrong;
    double weight = 0.0;
    for (size_t i = 0; i < n_cases; i++)
        weight += contest_weight(&session, &cases[i]);
    for (size_t i = 0; fine && i < n_cases && !race_is_stopped(&session); i++) {
        const double mine = contest_weight(&session, &cases[i]);
        const double share = fmax(session.deadline - clock_now(), 0.0) * mine / weight;
        contest_begin(&session, &cases[i], i > 0 ? &cases[i - 1] : NULL, n_backends);
        fine = run_case(&session, &cases[i], backends, n_backends, share);
        weight -= mine;
    }
    team_destroy(session.team);
    free(session.rate);
    free(session.wrong);
    if (!fine)
        snprintf(error, 256, "no memory for the contenders");
    return fine ? 0 : -1;
}
