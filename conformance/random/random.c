/*
 * The suite of random tests.  It runs a kernel in guarded memory, flush to either end by turns:
 *
 *   pairs   a set of problems in which classes of values meet, each judged by the oracle
 *   draws   other problems: a few, or as many as options->random_s has time for
 *   calls   calls of the set's problems with changed arguments, judged by the rules of posenc.h, and
 *           what cases/refused.txt lists
 *
 * The first failure is made as small as it can be and still fail in the same way.
 */
#include "random.h"

#include "calls.h"
#include "conformance/engine/judge.h"
#include "conformance/problem/notation.h"
#include "problems.h"

#include <math.h>
#include <stdio.h>

/* A problem with so many bytes is tried at one end of a page; calls are changed of small ones. */
enum { LARGE_BYTES = 1 << 20, SMALL_BYTES = 1 << 17, SHRINK_SECONDS = 2 };
enum { QUICK_DRAWS = 8, FULL_DRAWS = 200, QUICK_CALLS = 120, FULL_CALLS = 4000 };
/* Changed calls that share a problem, whose inputs take longer to make than a call. */
enum { CALLS_OF_A_PROBLEM = 4 };

struct random {
    struct suite_run *run;
    struct guard *guard;
    struct problem_set *set;
    struct tally tally;
    struct arena arena; /* of lists that are drawn */
    bool failed;
};

/* ---- One problem ---- */

enum outcome {
    RIGHT,
    WRONG_VALUES,
    WROTE_INPUT,
    WROTE_OUTSIDE,
    LEFT_CONTROL,
    CRASHED,
    WAS_REJECTED
};

/* A problem at one end of its pages. */
struct trial {
    struct random *random;
    enum guard_mode mode;
    enum outcome outcome;
    struct conf_result result; /* of the values; the reason of any failure */
};

static enum outcome outcome_of(const struct guarded *g)
{
    return g->input_written         ? WROTE_INPUT
           : g->crashed             ? CRASHED
           : g->overwritten         ? WROTE_OUTSIDE
           : g->control_left        ? LEFT_CONTROL
           : g->status != POSENC_OK ? WAS_REJECTED
                                    : RIGHT;
}

static bool has_values(const struct call *call)
{
    bool has = false;
    for (int o = 0; o < call->n_outputs; o++)
        has = has || (call->outputs[o].rows > 0 && call->outputs[o].width > 0);
    return has;
}

/* The least factor of LongRoPE, which divides frequencies; at most 1. */
static double least_factor(const struct problem *p)
{
    const struct posenc_freqs_spec *f = &p->freqs;
    double least = 1.0;
    if (f->scaling != POSENC_SCALING_LONGROPE)
        return least;
    if (p->short_factor_last > 0.0)
        least = fmin(least, p->short_factor_last);
    if (p->long_factor_last > 0.0)
        least = fmin(least, p->long_factor_last);
    for (int64_t i = 0; i < f->dim / 2; i++) {
        least = f->short_factor ? fmin(least, f->short_factor[i]) : least;
        least = f->long_factor ? fmin(least, f->long_factor[i]) : least;
    }
    return least;
}

/* How much farther off than its error limit a backend may be that is none of ours.  Limits were
 * measured at a radian a position and without xPos: an angle k times as large is k times as far off
 * in f64, and the scale of xPos is one more factor, rounded as well. */
static double slack_of(const struct posenc_backend *backend, const struct problem *p)
{
    const double theta = p->freqs.rope_theta;
    double fastest = theta > 0.0 && theta < 1.0 ? 1.0 / theta : 1.0;
    if (!kernel_has_freqs(p->kernel) || strcmp(backend->family, "native") == 0)
        return 1.0;
    for (int64_t i = 0; p->freqs.values && i < (p->freqs.dim + 1) / 2; i++)
        fastest = fmax(fastest, fabs(p->freqs.values[i]));
    fastest /= least_factor(p);
    return p->freqs.xpos_scale_base != 0.0 ? 2.0 * fastest : fastest;
}

/* Judges each problem by a tally of its own. */
static void judge_values(struct trial *trial, const struct call *call)
{
    struct tally t = { .run = trial->random->run };
    struct comparison c;
    if (compare_rounded(call, &trial->result.checked)) {
        trial->result.status = CONF_PASS;
        return;
    }
    t.result.kernel = call->problem.kernel;
    t.result.profile = profile_name(&call->problem);
    compare_begin(&c, &t);
    compare_next(&c, call, t.run->backend, -1);
    c.limit *= slack_of(t.run->backend, &call->problem);
    c.table_abs *= slack_of(t.run->backend, &call->problem);
    compare_call(&c, NULL);
    compare_end(&c);
    trial->result = t.result;
    trial->outcome = t.result.status == CONF_PASS ? RIGHT : WRONG_VALUES;
}

static void try_problem(struct trial *trial, const struct problem *problem)
{
    struct suite_run *run = trial->random->run;
    const struct memory memory = guard_memory(trial->random->guard, trial->mode);
    struct call call;
    trial->outcome = WAS_REJECTED;
    trial->result = (struct conf_result){ .status = CONF_FAIL };
    if (call_create_by(run->implementation, &call, problem, &memory) != POSENC_OK) {
        posenc_error_text(&call.error, trial->result.reason, sizeof trial->result.reason);
        return;
    }
    const struct guarded g = guarded_run(&call, run->backend, trial->random->guard);
    trial->outcome = outcome_of(&g);
    snprintf(trial->result.reason, sizeof trial->result.reason, "%s", g.reason);
    if (trial->outcome == WAS_REJECTED)
        posenc_error_text(&call.error, trial->result.reason, sizeof trial->result.reason);
    if (trial->outcome == RIGHT && has_values(&call))
        judge_values(trial, &call);
    call_destroy(&call);
}

/* ---- A failure ---- */

static bool fails_alike(void *user, const struct problem *problem)
{
    struct trial *first = user, again = *first;
    try_problem(&again, problem);
    return again.outcome == first->outcome;
}

/* Reports the smallest problem that fails alike; one that fails only now and then stays as it was. */
static void report_problem(struct random *r, struct trial *trial, const struct problem *problem)
{
    struct problem least = *problem;
    problem_shrink(&least, SHRINK_SECONDS, fails_alike, trial);
    struct trial last = *trial;
    try_problem(&last, &least);
    if (last.outcome != trial->outcome) {
        last = *trial;
        least = *problem;
    }
    r->tally.problem = &least;
    require(&r->tally, false, "%s", last.result.reason);
    r->tally.problem = NULL;
    r->failed = true;
    if (trial->outcome == CRASHED)
        r->tally.result.status = CONF_CRASH;
}

/* Returns false after a failure, when no other problem is to be tried. */
static bool check_problem(struct random *r, const struct problem *problem, uint64_t turn)
{
    struct trial trial = { .random = r, .mode = turn % 2 ? GUARD_START : GUARD_END };
    const bool large = problem_memory_estimate(problem) > LARGE_BYTES;
    const int modes = r->run->options->full && !large ? 2 : 1;
    for (int i = 0; i < modes; i++) {
        try_problem(&trial, problem);
        r->tally.result.checked += trial.result.checked;
        if (trial.outcome != RIGHT) {
            report_problem(r, &trial, problem);
            return false;
        }
        trial.mode = trial.mode == GUARD_END ? GUARD_START : GUARD_END;
    }
    return require(&r->tally, true, "checked");
}

/* ---- pairs, draws ---- */

/* Records which classes occurred; one that never did is a failure, as are two large sizes that never
 * met. */
static void check_coverage(struct tally *t, const struct problem_set *set)
{
    char name[CLASS_TEXT], other[CLASS_TEXT] = "";
    int a, b;
    t->result.classes =
        (struct conf_classes){ set->n_met, set->factors.n_classes, set->n_pairs };
    if (!problem_set_lacks(set, &a, &b))
        return;
    factors_print_class(&set->factors, a, name);
    if (b >= 0)
        factors_print_class(&set->factors, b, other);
    require(t, false, "no problem had %s%s%s", name, b < 0 ? "" : " and ", other);
}

static void check_pairs(struct random *r)
{
    bool right = true;
    for (size_t i = 0; i < r->set->n && right; i++)
        right = check_problem(r, &r->set->problems[i], i);
    check_coverage(&r->tally, r->set);
}

static void check_draws(struct random *r)
{
    const uint64_t least = r->run->options->full ? FULL_DRAWS : QUICK_DRAWS;
    const double until = draw_clock() + r->run->options->random_s;
    bool right = true;
    for (uint64_t i = 0; right && (i < least || draw_clock() < until); i++) {
        struct problem problem;
        right = problem_set_draw(r->set, i, &r->arena, &problem)
                    ? check_problem(r, &problem, i)
                    : require(&r->tally, false, "no problem was accepted at draw %llu",
                              (unsigned long long)i);
        arena_free(&r->arena);
    }
}

/* ---- calls ---- */

/* Gaps between rows hold zeros, so that a call is the same each time it is made. */
static void *get_zeroed(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    void *data = memory_plain.get(user, bytes, offset_bytes, role);
    return data ? memset(data, 0, bytes) : NULL;
}

/* Reports the call with those changes alone that it takes to fail. */
static void report_call(struct random *r, struct call_test *test)
{
    char complaint[CALL_TEXT], words[CALL_TEXT];
    int status;
    for (int i = 0; i < MOST_CHANGES; i++) {
        struct call_test fewer = *test;
        fewer.kept &= ~(1u << i);
        if (!call_test_run(&fewer, &status, complaint, words))
            *test = fewer;
    }
    call_test_run(test, &status, complaint, words);
    r->tally.problem = &test->base->problem;
    require(&r->tally, false, "%s: %s", words, complaint);
    r->tally.problem = NULL;
}

/* Checks a few changed calls of a problem; returns false after a failure. */
static bool check_calls_of(struct random *r, const struct problem *problem, uint64_t first)
{
    const struct memory memory = { .get = get_zeroed, .free = memory_plain.free };
    uint64_t seed = mix64(r->run->options->seed, problem->kernel);
    for (const char *name = r->run->backend->name; *name; name++) /* others for each backend */
        seed = mix64(seed, (uint64_t)*name);
    char complaint[CALL_TEXT], words[CALL_TEXT];
    struct call base;
    bool right = call_create_by(r->run->implementation, &base, problem, &memory) == POSENC_OK;
    if (!require(&r->tally, right, "a problem of the set was rejected"))
        return false;
    for (uint64_t i = first; right && i < first + CALLS_OF_A_PROBLEM; i++) {
        struct call_test test = { .implementation = r->run->implementation,
                                  .backend = r->run->backend,
                                  .guard = r->guard,
                                  .base = &base,
                                  .seed = mix64(seed, i),
                                  .kept = ~0u };
        int status;
        right = call_test_run(&test, &status, complaint, words);
        if (!right)
            report_call(r, &test);
        r->tally.result.checked += right;
    }
    call_destroy(&base);
    return right;
}

static void check_calls(struct random *r)
{
    const uint64_t least = r->run->options->full ? FULL_CALLS : QUICK_CALLS;
    const double until = draw_clock() + r->run->options->random_s;
    size_t next = 0;
    random_check_rejected(&r->tally, r->set->ask.kernel);
    bool right = r->tally.result.status == CONF_PASS;
    for (uint64_t i = 0; right && (i < least || draw_clock() < until);
         i += CALLS_OF_A_PROBLEM) {
        const struct problem *problem = &r->set->problems[next++ % r->set->n];
        if (problem_memory_estimate(problem) <= SMALL_BYTES)
            right = check_calls_of(r, problem, i);
    }
}

/* ---- The suite ---- */

void suite_random(struct suite_run *run, enum posenc_kernel kernel)
{
    static const struct {
        const char *name;
        void (*check)(struct random *r);
    } parts[] = { { "pairs", check_pairs },
                  { "draws", check_draws },
                  { "calls", check_calls } };
    struct random r = { .run = run };
    struct problem_set_ask ask;
    memset(&ask, 0, sizeof ask); /* asks are compared by their bytes */
    ask.kernel = kernel;
    ask.seed = run->options->seed;
    ask.full = run->options->full;
    ask.narrow = run->backend->f16_bf16;
    for (int i = 0; i < 3; i++) {
        if (!tally_begin(&r.tally, run, kernel, POSENC_F32, "random", NULL, "%s",
                         parts[i].name))
            continue;
        r.set = problem_set_take(&ask);
        r.guard = guard_create(); /* buffers that grew in another part take longer to protect */
        if (!r.guard)
            tally_skip(&r.tally, "this system protects no memory");
        else if (i == 1 && r.failed)
            tally_skip(&r.tally, "a problem of the pairs has failed");
        else if (require(&r.tally, r.set && r.set->n > 0, "no problem was accepted"))
            parts[i].check(&r);
        tally_end(&r.tally);
        arena_free(&r.arena);
        guard_destroy(r.guard);
    }
}
