/*
 * Problems drawn from all that the front-end accepts, each judged by the oracle in guarded memory,
 * flush to either end by turns:
 *
 *   pairs   each class of each field (classes.txt) with each of every other; that a class never
 *           occurred is a failure, too
 *   draws   any others: a few, or as many as options->budget_s has time for
 *
 * The first that fails is made as small as it can be and still fail in the same way.
 */
#define _POSIX_C_SOURCE 200809L
#include "random.h"

#include "conformance/engine/judge.h"
#include "conformance/problem/cost.h"
#include "plan.h"
#include "shrink.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Of what has so many bytes one end of a page is tried. */
enum { QUICK_DRAWS = 8, FULL_DRAWS = 200, SHRINK_SECONDS = 2, LARGE_BYTES = 1 << 20 };

struct random {
    struct suite_run *run;
    struct guard *guard;
    struct tally tally;
    struct arena arena; /* of lists that are drawn or made shorter */
    bool failed;
};

/* ---- One problem ---- */

enum way { RIGHT, WRONG_VALUES, WROTE_INPUT, WROTE_OUTSIDE, LEFT_CONTROL, CRASHED, REFUSED };

/* A problem at one end of its pages; what came of it. */
struct trial {
    struct random *random;
    enum guard_mode mode;
    enum way way;
    struct conf_result result; /* of the values; the reason of any failure */
};

static enum way way_of(const struct guarded *g)
{
    return g->input_written         ? WROTE_INPUT
           : g->crashed             ? CRASHED
           : g->overwritten         ? WROTE_OUTSIDE
           : g->control_left        ? LEFT_CONTROL
           : g->status != POSENC_OK ? REFUSED
                                    : RIGHT;
}

static bool has_values(const struct call *call)
{
    bool has = false;
    for (int o = 0; o < call->n_outputs; o++)
        has = has || (call->outputs[o].rows > 0 && call->outputs[o].width > 0);
    return has;
}

/* The least factor of longrope, by which frequencies are divided; 1 where none is less. */
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

/* How much farther off than its budget a backend may be whose arithmetic is not of our templates:
 * budgets were measured at a radian a position and without xPos.  An angle that is k times as
 * large is k times as far off in f64; the scale of xPos is one more factor, rounded as well. */
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

/* By a tally of its own, so that each problem is judged alone. */
static void judge(struct trial *trial, const struct call *call)
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
    trial->way = t.result.status == CONF_PASS ? RIGHT : WRONG_VALUES;
}

static void try_problem(struct trial *trial, const struct problem *problem)
{
    struct suite_run *run = trial->random->run;
    const struct memory memory = guard_memory(trial->random->guard, trial->mode);
    struct call call;
    trial->way = REFUSED;
    trial->result = (struct conf_result){ .status = CONF_FAIL };
    if (call_create_by(run->implementation, &call, problem, &memory) != POSENC_OK) {
        posenc_error_text(&call.error, trial->result.reason, sizeof trial->result.reason);
        return;
    }
    const struct guarded g = guarded_run(&call, run->backend, trial->random->guard);
    trial->way = way_of(&g);
    snprintf(trial->result.reason, sizeof trial->result.reason, "%s", g.reason);
    if (trial->way == REFUSED)
        posenc_error_text(&call.error, trial->result.reason, sizeof trial->result.reason);
    if (trial->way == RIGHT && has_values(&call))
        judge(trial, &call);
    call_destroy(&call);
}

/* ---- A failure ---- */

static bool fails_alike(void *user, const struct problem *problem)
{
    struct trial *first = user, again = *first;
    try_problem(&again, problem);
    return again.way == first->way;
}

/* The tally's, with the smallest problem that does. */
static void report(struct random *r, struct trial *trial, const struct problem *problem)
{
    struct problem least = *problem;
    shrink(&least, &r->arena, SHRINK_SECONDS, fails_alike, trial);
    struct trial last = *trial;
    try_problem(&last, &least);
    if (last.way != trial->way) { /* what does not fail each time */
        last = *trial;
        least = *problem;
    }
    r->tally.problem = &least;
    require(&r->tally, false, "%s", last.result.reason);
    r->tally.problem = NULL;
    r->failed = true;
    if (trial->way == CRASHED)
        r->tally.result.status = CONF_CRASH;
}

/* False when it failed, and no other is to be tried. */
static bool check(struct random *r, const struct problem *problem, uint64_t turn)
{
    struct trial trial = { .random = r, .mode = turn % 2 ? GUARD_START : GUARD_END };
    const bool large = problem_memory_estimate(problem) > LARGE_BYTES;
    const int modes = r->run->options->full && !large ? 2 : 1;
    for (int i = 0; i < modes; i++) {
        try_problem(&trial, problem);
        r->tally.result.checked += trial.result.checked;
        if (trial.way != RIGHT) {
            report(r, &trial, problem);
            return false;
        }
        trial.mode = trial.mode == GUARD_END ? GUARD_START : GUARD_END;
    }
    return require(&r->tally, true, "checked");
}

/* ---- The suite ---- */

static void check_coverage(struct tally *t, const struct plan *plan)
{
    char name[FIELD_TEXT + CLASS_NAME], other[FIELD_TEXT + CLASS_NAME];
    int c = 0, a, b;
    t->result.classes =
        (struct conf_classes){ plan->classes, plan->space.n_classes, plan->pairs };
    t->problem = plan->wrong[0] ? &plan->wrong_problem : NULL;
    require(t, !plan->wrong[0], "%s", plan->wrong);
    t->problem = NULL;
    while (c < plan->space.n_classes && plan->has[c])
        c++;
    if (c < plan->space.n_classes)
        class_name(&plan->space, c, name);
    require(t, c == plan->space.n_classes, "no problem had %s", name);
    if (plan_lacks_large(plan, &a, &b)) {
        class_name(&plan->space, a, name);
        class_name(&plan->space, b, other);
        require(t, false, "no problem had %s and %s", name, other);
    }
}

static void check_pairs(struct random *r, const struct plan *plan)
{
    bool right = true;
    for (size_t i = 0; i < plan->n && right; i++)
        right = check(r, &plan->problems[i], i);
    if (right)
        check_coverage(&r->tally, plan);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_draws(struct random *r, struct plan *plan)
{
    const uint64_t least = r->run->options->full ? FULL_DRAWS : QUICK_DRAWS;
    const double until = now() + r->run->options->budget_s;
    bool right = true;
    for (uint64_t i = 0; right && (i < least || now() < until); i++) {
        struct problem problem;
        const bool drawn = plan_draw(plan, i, &r->arena, &problem);
        right = drawn ? check(r, &problem, i)
                      : require(&r->tally, false, "no problem was accepted at draw %llu",
                                (unsigned long long)i);
        arena_free(&r->arena);
    }
}

void suite_random(struct suite_run *run, enum posenc_kernel kernel)
{
    struct random r = { .run = run, .guard = guard_create() };
    struct plan_ask ask;
    memset(&ask, 0, sizeof ask); /* compared by its bytes */
    ask.kernel = kernel;
    ask.seed = run->options->seed;
    ask.full = run->options->full;
    ask.narrow = run->backend->f16_bf16;
    for (int draws = 0; draws < 2 && r.guard; draws++) {
        if (!tally_begin(&r.tally, run, kernel, POSENC_F32, "random", NULL,
                         draws ? "draws" : "pairs"))
            continue;
        struct plan *plan = plan_take(&ask);
        if (draws && r.failed) {
            tally_skip(&r.tally, "a problem of the pairs has failed");
            tally_end(&r.tally);
            continue;
        }
        if (!require(&r.tally, plan != NULL, "out of memory"))
            ;
        else if (plan->wrong[0] && !plan->doubt)
            require(&r.tally, false, "%s", plan->wrong);
        else if (draws)
            check_draws(&r, plan);
        else
            check_pairs(&r, plan);
        tally_end(&r.tally);
        arena_free(&r.arena);
    }
    guard_destroy(r.guard);
}
