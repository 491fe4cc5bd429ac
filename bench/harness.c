/*
 * Timing one case: every backend that provides its kernel, a second copy of the fastest one
 * (the null row), what the kernel does in several steps (apart.h), its roofs and other limits (limits.h),
 * each once per round in a random order that the seed repeats.
 *
 *   check      each backend's output; a wrong one gets a reason and no number (check.h)
 *   calibrate  each contender's iterations, so that a sample lasts at least 100 us and 200
 *              ticks of the clock; Google Benchmark does it, once, and the number stays
 *   rounds     as many as the case's share of the budget allows; a contender slower than 50 ms
 *              a sample takes part in fewer of them, never in under 3, evenly spread
 *
 * All contenders work on the same tensors: of the call, through the public entry point, which
 * validates, as a user's call does.  The numbers:
 *
 *   roof_ratio, vs_*, null_pct   medians of ratios within rounds, so that drift of the machine
 *                                between rounds cancels
 *   the best roof                the variant with the least median.  The least time per round
 *                                would be biased: a minimum over several noisy samples
 *
 * What repeats must stay what it was.  Rotations in place keep norms: after a million calls of
 * a matrix that is orthogonal to 2^-24 data are still within 6 %.  Sums in place are timed with
 * x_scale 1, see call_make_repeatable().
 */
#define POSENC_EXPERIMENTAL
#include "bench.h"
#include "buffers.h"
#include "check.h"
#include "clock.h"
#include "emulation.h"
#include "limits.h"
#include "race.h"
#include "conformance/problem/signature.h"
#include "base/statistics/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LEAST_SHARE_S = 0.1; /* for the rounds: cases in cache get all they want */
enum { QUICK_ROUNDS = 31, FULL_ROUNDS = 61, GOOD_ROUNDS = 8 };
/* ---- One case ---- */

/* Whether the caller wants no more. */
bool race_is_stopped(const struct session *session)
{
    return session->options->stop && session->options->stop(session->user);
}

static double *samples_of(const struct race *race, const struct contender *c)
{
    return turns_samples(&race->turns, c);
}

void race_refuse(struct contender *c, enum bench_outcome outcome, const char *reason)
{
    c->outcome = outcome;
    snprintf(c->refused, REASON_SIZE, "%s", reason);
}

void race_refuse_all(struct race *race, enum bench_outcome outcome, const char *reason)
{
    for (size_t i = 0; i < race->n_backends; i++)
        if (contender_is_timed(&race->turns.contenders[i]))
            race_refuse(&race->turns.contenders[i], outcome, reason);
}

/* Tells who is called now; NULL: nobody. */
static void watch_race(void *user, const struct posenc_backend *backend)
{
    const struct race *race = user;
    const struct session *session = race->session;
    if (session->options->watch)
        session->options->watch(session->user, race->bench_case, backend);
}

/* One call from pristine inputs, timed roughly. */
bool race_try(struct race *race, struct contender *c)
{
    call_reset(&race->call);
    watch_race(race, c->backend);
    double begin = clock_now();
    contender_call(c);
    c->seconds = clock_now() - begin;
    watch_race(race, NULL);
    if (c->status == POSENC_OK)
        return true;
    race_refuse(c, c->status == POSENC_ERR_NOT_PROVIDED ? BENCH_LACKS_IT : BENCH_REFUSED,
                posenc_status_string(c->status));
    return false;
}

/* `scalar` first, whether or not it is timed, then everybody against it. */
/* The backend that took least; NULL: none did. */
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

/* The steps, the last of them on the quickest backend, held to the limits of libm. */
static void check_apart(struct race *race, const struct check *check)
{
    const struct contender *best = race_quickest(race);
    const struct posenc_backend *libm = posenc_backend_find("libm");
    apart_steps *steps = apart_of(&race->call.problem);
    if (!best || !steps || !libm)
        return;
    struct contender *c = &race->turns.contenders[race->turns.n++];
    *c = contender_of_steps(&race->timed, steps, best->backend);
    if (race_try(race, c) && !check_output(check, libm, c->refused, REASON_SIZE))
        c->outcome = BENCH_WRONG;
    race->apart = c;
}

void race_check(struct race *race)
{
    const struct posenc_backend *scalar = posenc_backend_find("scalar");
    struct check *check = check_create(&race->call, race->session->options->seed);
    struct contender reference = contender_of_backend(&race->timed, scalar);
    char reason[REASON_SIZE];
    if (!check || !scalar) {
        race_refuse_all(race, BENCH_REFUSED,
                        !check ? "no memory for the check" : "no scalar to compare with");
    } else if (!race_try(race, &reference)) {
        snprintf(reason, sizeof reason, "no reference: scalar: %.220s", reference.refused);
        race_refuse_all(race, BENCH_REFUSED, reason);
    } else if (!check_reference(check, scalar, reference.refused, REASON_SIZE)) {
        snprintf(reason, sizeof reason, "no reference: scalar is %.220s", reference.refused);
        race_refuse_all(race, BENCH_WRONG, reason);
    } else {
        for (size_t i = 0; i < race->n_backends; i++) {
            struct contender *c = &race->turns.contenders[i];
            if (race_is_stopped(race->session))
                break;
            if (contender_is_timed(c) && race_try(race, c) &&
                !check_output(check, c->backend, c->refused, REASON_SIZE))
                c->outcome = BENCH_WRONG;
        }
        if (!race->session->options->contest)
            check_apart(race, check);
    }
    check_destroy(check);
}

static void enter_backends(struct race *race, const struct posenc_backend *const *backends)
{
    enum posenc_kernel kernel = race->bench_case->problem.kernel;
    const struct session *session = race->session;
    for (size_t i = 0; i < race->n_backends; i++) {
        struct contender *c = &race->turns.contenders[race->turns.n++];
        *c = contender_of_backend(&race->timed, backends[i]);
        const char *obstacle = posenc_backend_obstacle(backends[i]), *why;
        if (obstacle)
            race_refuse(c, BENCH_REFUSED, obstacle);
        else if (!posenc_provides(backends[i], kernel))
            race_refuse(c, BENCH_LACKS_IT, "not provided");
        else if (!backends[i]->f16_bf16 && !problem_is_f32(&race->bench_case->problem))
            race_refuse(c, BENCH_REFUSED, "takes f32 alone");
        else if (session->options->unfit &&
                 (why = session->options->unfit(session->user, race->bench_case, backends[i])))
            race_refuse(c, BENCH_WRONG, why);
    }
}

/* The null row and the roofs; the twin is the fastest backend, whose copy costs least. */
static void enter_yardsticks(struct race *race)
{
    race->twin = race_quickest(race);
    if (!race->twin)
        return;
    race->null = &race->turns.contenders[race->turns.n++];
    *race->null = *race->twin;
    race->null->again = true;
    for (size_t i = 0; roof_variant_at(i); i++) {
        const struct roof_variant *variant = roof_variant_at(i);
        if (variant->kind == race->timed.roof && (!variant->runs || variant->runs()))
            race->turns.contenders[race->turns.n++] = contender_of_roof(&race->timed, variant);
    }
    limits_enter_loops(&race->turns, &race->timed);
}

/* How many rounds fit into `share` seconds, and in how many each contender takes part. */
static void plan_rounds(struct race *race, double share)
{
    double round = 0.0, slow = 0.0;
    for (size_t i = 0; i < race->turns.n; i++) {
        struct contender *c = &race->turns.contenders[i];
        double s = contender_sample_seconds(c);
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
    double fit = (share - slow) / fmax(round, 1e-9);
    race->turns.rounds =
        (size_t)fmin(fmax(fit, GOOD_ROUNDS), (double)race->session->most_rounds);
    for (size_t i = 0; i < race->turns.n; i++)
        if (race->turns.contenders[i].rounds > race->turns.rounds)
            race->turns.contenders[i].rounds = race->turns.rounds;
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

static const struct contender *fastest(const struct race *race,
                                       bool (*of)(const struct contender *c))
{
    return turns_fastest(&race->turns, of);
}

static double speed(const struct race *race, const struct contender *c,
                    const struct contender *other)
{
    return turns_speed(&race->turns, c, other);
}

static void fill_limit(const struct race *race, const struct contender *c,
                       struct bench_result *result)
{
    const struct limit limit = limits_of(&race->turns, c);
    if (limit.share <= 0.0)
        return;
    result->limit_resource = resource_name[limit.resource];
    result->limit_kind = limit.kind;
    result->limit_variant = limit.variant;
    result->limit_gbps = 1e-9 * (double)race->bytes / limit.seconds;
    result->limit_ratio = limit.share;
}

static void fill_numbers(const struct race *race, const struct contender *c,
                         struct bench_result *result)
{
    struct stats_summary s = stats_summarise(samples_of(race, c), race->turns.rounds);
    const struct contender *roof = fastest(race, contender_is_roof),
                           *autovec = fastest(race, is_autovec);
    result->rounds = (int)s.n;
    result->median_ns = 1e9 * s.median;
    result->min_ns = 1e9 * s.min;
    result->ci_level = s.interval.level;
    result->ci_low = 1e9 * s.interval.low;
    result->ci_high = 1e9 * s.interval.high;
    result->gbps = 1e-9 * (double)race->bytes / s.median;
    if (roof) {
        double median = stats_median(samples_of(race, roof), race->turns.rounds);
        result->roof_kind = roof_kind_name[roof->roof->kind];
        result->roof_variant = roof->roof->name;
        result->roof_gbps = 1e-9 * (double)race->bytes / median;
        result->roof_ratio = speed(race, c, roof);
    }
    fill_limit(race, c, result);
    result->vs_libm = speed(race, c, fastest(race, is_libm));
    result->vs_autovec = speed(race, c, autovec);
    result->vs_apart = speed(race, c, race->apart);
    result->autovec = autovec ? autovec->backend->name : NULL;
    if (race->null)
        result->null_pct = 100.0 * fabs(speed(race, race->twin, race->null) - 1.0);
    for (size_t i = 0; race->session->options->contest && i < race->turns.rounds; i++)
        result->sample_ns[i] = 1e9 * samples_of(race, c)[i];
}

static void report(const struct race *race)
{
    for (size_t i = 0; i < race->n_backends; i++) {
        const struct contender *c = &race->turns.contenders[i];
        struct bench_result result = {
            .bench_case = race->bench_case,
            .backend = c->backend,
            .threads =
                race->session->options->threads > 1 ? race->session->options->threads : 1,
            .bytes = race->bytes,
            .footprint = race->footprint,
        };
        result.outcome = c->outcome;
        if (!contender_is_timed(c))
            result.refused = c->refused;
        else
            fill_numbers(race, c, &result);
        race->session->sink(race->session->user, &result);
    }
}

/* ---- A case, a run ---- */

/* Fills the race; afterwards every contender is either timed or refused. */
static void hold(struct race *race, double share)
{
    char reason[REASON_SIZE];
    double begin = clock_now();
    struct memory memory = bench_memory(&race->buffers);
    enum posenc_status status = call_create(&race->call, &race->bench_case->problem, &memory);
    if (status != POSENC_OK) {
        posenc_error_text(&race->call.error, reason, sizeof reason);
        race_refuse_all(race, BENCH_REFUSED, reason);
        return;
    }
    race->footprint = posenc_footprint(race->bench_case->problem.kernel, &race->call.args);
    const bool opened = timed_call_open(&race->timed, &race->call, race->session->team,
                                        race->session->options->threads);
    race->timed.watch = watch_race;
    race->timed.watch_user = race;
    if (!opened) {
        race_refuse_all(race, BENCH_REFUSED, "no memory for the threads' calls");
    } else if (race->session->options->contest) {
        contest_hold(race, begin, share);
    } else {
        race_check(race);
        call_make_repeatable(&race->call);
        timed_call_cut(&race->timed);
        enter_yardsticks(race);
        if (race->twin && !race_is_stopped(race->session)) {
            bool fine =
                turns_calibrate(&race->turns) && limits_enter_calls(&race->turns, &race->timed);
            plan_rounds(race, fmax(share - (clock_now() - begin), LEAST_SHARE_S));
            race->turns.samples =
                malloc(race->turns.n * race->turns.rounds * sizeof *race->turns.samples);
            if (!race->turns.samples || !fine || !turns_run(&race->turns))
                race_refuse_all(race, BENCH_REFUSED, "Google Benchmark could not time it");
        }
    }
}

static bool run_case(struct session *session, const struct bench_case *bench_case,
                     const struct posenc_backend *const *backends, size_t n_backends,
                     double share)
{
    size_t roofs = 0;
    while (roof_variant_at(roofs))
        roofs++;
    struct race race = {
        .session = session,
        .bench_case = bench_case,
        .bytes = problem_bytes(&bench_case->problem),
        .n_backends = n_backends,
        .turns = { .deeper = true,
                   .contenders =
                       calloc(2 * n_backends + 2 + 2 * roofs, sizeof(struct contender)),
                   .least_sample = session->least_sample,
                   .order = mix64(session->options->seed, problem_bytes(&bench_case->problem)),
                   .stop = session->options->stop,
                   .user = session->user },
    };
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
    const char *emulator = bench_emulator();
    if (emulator) {
        snprintf(error, 256, "emulated: %.240s", emulator);
        return -1;
    }
    struct session session = {
        .options = options,
        .team = team_create(options->threads > 1 ? options->threads : 1),
        .least_sample = clock_least_sample(),
        .deadline = clock_now() + bench_budget(options),
        .most_rounds = options->full ? FULL_ROUNDS : QUICK_ROUNDS,
        .sink = sink,
        .user = user,
    };
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
