/* Adds the limits of a case to its contenders, and finds the limit that binds each contender (see harness.h). If, for
 * example, avx2 takes 100 ns, the roofline 60 ns and the loop of its rotations 90 ns, the loop binds with a share of 0.9. */
#include "harness.h"

#include <math.h>

/* ---- Adding limits ---- */

/* Calls a loop three times. Returns the seconds of the fastest call. */
static double try_loop(struct contender *c)
{
    double shortest = (double)INFINITY;
    for (int i = 0; i < 3; i++) {
        contender_try(c, NULL);
        shortest = fmin(shortest, c->seconds);
    }
    return shortest;
}

/* Adds the variants of a loop that are at most `near` times slower than the fastest one. */
static void add_loops_of(struct rounds *rounds, const struct timed_call *timed,
                         const struct loop_work *work)
{
    const double near = 1.5;
    struct contender *tried = rounds->contenders + rounds->n;
    double shortest = (double)INFINITY;
    size_t n = 0;
    for (size_t i = 0; bound_variant_at(i) && work->kind < BOUND_KIND_COUNT; i++) {
        const struct bound_variant *variant = bound_variant_at(i);
        if (variant->kind != work->kind || !bound_variant_runs(variant))
            continue;
        tried[n] = contender_of_bound(timed, variant, work);
        tried[n].seconds = try_loop(&tried[n]);
        shortest = fmin(shortest, tried[n++].seconds);
    }
    for (size_t i = 0; i < n; i++)
        if (tried[i].seconds <= near * shortest) {
            struct contender *loop = &rounds->contenders[rounds->n++];
            *loop = contender_of_bound(timed, tried[i].bound, work);
            contender_move_to_tensors(loop);
        }
}

void limits_add_loops(struct rounds *rounds, const struct timed_call *timed)
{
    add_loops_of(rounds, timed, &timed->conversion);
    add_loops_of(rounds, timed, &timed->work);
}

bool limits_add_partial_calls(struct rounds *rounds, const struct timed_call *timed)
{
    const double short_call_s = 5e-6;
    const size_t n = rounds->n;
    bool ok = true;
    for (size_t i = 0; i < n && timed->partial_share > 0.0 && ok; i++) {
        const struct contender *c = &rounds->contenders[i];
        if (!contender_is_timed(c) || c->is_copy || c->bound || c->seconds > short_call_s)
            continue;
        struct contender *part = &rounds->contenders[rounds->n++];
        *part = contender_of_backend(timed, c->backend);
        part->partial = true;
        ok = contender_calibrate(part, rounds->least_sample);
    }
    return ok;
}

/* ---- The limit that binds ---- */

/* Largest speedup over a limit that noise explains. */
static const double BEATEN = 1.05;

/* Returns true if a backend is faster than a loop. */
static bool is_beaten(const struct rounds *rounds, const struct contender *loop)
{
    for (size_t i = 0; i < rounds->n; i++) {
        const struct contender *c = &rounds->contenders[i];
        if (c->backend && !c->partial && contender_is_timed(c) &&
            rounds_speed(rounds, c, loop) > BEATEN)
            return true;
    }
    return false;
}

/* Return true for the conversion loop of a call, and for the loop of its kernel. */
static bool is_conversion(const struct contender *c)
{
    return c->bound && c->bound->kind == c->timed->conversion.kind;
}

static bool is_work(const struct contender *c)
{
    return c->bound && c->bound->kind == c->timed->work.kind;
}

/* Returns the longer one of `limit` and the fastest roofline or loop that `accepts`. A loop that is slower than a
 * backend is not a lower bound. */
static struct lower_bound choose_longer(const struct rounds *rounds, const struct contender *c,
                                        bool (*accepts)(const struct contender *c),
                                        struct lower_bound limit)
{
    const struct contender *best = rounds_fastest(rounds, accepts);
    if (!best || (!contender_is_roofline(best) && is_beaten(rounds, best)))
        return limit;
    const double share = rounds_speed(rounds, c, best);
    if (share <= limit.share)
        return limit;
    return (struct lower_bound){ .resource = bound_resource(best->bound->kind),
                                 .kind = bound_kind_name[best->bound->kind],
                                 .variant = best->bound->name,
                                 .share = share,
                                 .seconds = rounds_median(rounds, best) };
}

/* Returns C / T, the part of a call's time that does not depend on its rows, from T(partial) = C + share (T - C). */
static double share_without_rows(const struct rounds *rounds, const struct contender *c)
{
    const double share = c->timed->partial_share;
    for (size_t i = 0; i < rounds->n; i++) {
        const struct contender *part = &rounds->contenders[i];
        if (part->partial && part->backend == c->backend && contender_is_timed(part))
            return fmax((rounds_speed(rounds, c, part) - share) / (1.0 - share), 0.0);
    }
    return 0.0;
}

struct lower_bound limits_find(const struct rounds *rounds, const struct contender *c)
{
    struct lower_bound limit = { .share = 0.0 };
    limit = choose_longer(rounds, c, contender_is_roofline, limit);
    limit = choose_longer(rounds, c, is_conversion, limit);
    limit = choose_longer(rounds, c, is_work, limit);
    const double share = share_without_rows(rounds, c);
    if (share <= limit.share || share > BEATEN) /* noise */
        return limit;
    const double median = rounds_median(rounds, c);
    return (struct lower_bound){ RESOURCE_CALLS, "call", c->backend->name, share,
                                 share * median };
}
