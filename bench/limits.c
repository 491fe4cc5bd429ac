/* Adds the limits of a case to its contenders, and finds for each contender the one that binds. */
#include "harness.h"

#include <math.h>

/* ---- Adding them ---- */

/* Returns the seconds of one call, the least of a few. */
static double try_loop(struct contender *c)
{
    double least = (double)INFINITY;
    for (int i = 0; i < 3; i++) {
        contender_try(c, NULL);
        least = fmin(least, c->seconds);
    }
    return least;
}

/* Adds the variants of a loop that are near the quickest one. */
static void add_loops_of(struct rounds *rounds, const struct timed_call *timed,
                         const struct loop_work *work)
{
    const double near = 1.5;
    struct contender *tried = rounds->contenders + rounds->n;
    double least = (double)INFINITY;
    size_t n = 0;
    for (size_t i = 0; roofline_variant_at(i) && work->kind < ROOFLINE_KIND_COUNT; i++) {
        const struct roofline_variant *variant = roofline_variant_at(i);
        if (variant->kind != work->kind || !variant->runs())
            continue;
        tried[n] = contender_of_loop(timed, variant, work);
        tried[n].seconds = try_loop(&tried[n]);
        least = fmin(least, tried[n++].seconds);
    }
    for (size_t i = 0; i < n; i++)
        if (tried[i].seconds <= near * least)
            rounds->contenders[rounds->n++] =
                contender_of_loop_in_tensors(timed, tried[i].roofline, work);
}

void limits_add_loops(struct rounds *rounds, const struct timed_call *timed)
{
    add_loops_of(rounds, timed, &timed->conversion);
    add_loops_of(rounds, timed, &timed->work);
}

/* Adds a copy of a backend that does the partial call. */
static bool add_partial(struct rounds *rounds, const struct timed_call *timed,
                        const struct contender *c)
{
    struct contender *part = &rounds->contenders[rounds->n++];
    *part = contender_of_backend(timed, c->backend);
    part->partial = true;
    return contender_calibrate(part, rounds->least_sample);
}

/* Adds a roofline or loop after a call's checks. Left out are loops that do more than the call and are scaled, and
 * calls that the default backend rejects. */
static bool add_after_checks(struct rounds *rounds, const struct contender *c)
{
    const double whole = 0.9;
    struct contender *checked = &rounds->contenders[rounds->n];
    if (c->times < whole)
        return true;
    *checked = *c;
    checked->after_checks = true;
    contender_call(checked);
    if (checked->status != POSENC_OK)
        return true;
    rounds->n++;
    return contender_calibrate(checked, rounds->least_sample);
}

bool limits_add_short_calls(struct rounds *rounds, const struct timed_call *timed)
{
    const double shortest = 5e-6;
    const size_t n = rounds->n;
    bool fine = true;
    for (size_t i = 0; i < n && timed->threads == 1 && fine; i++) {
        const struct contender *c = &rounds->contenders[i];
        if (!contender_is_timed(c) || c->is_copy || c->seconds > shortest)
            continue;
        if (c->roofline)
            fine = add_after_checks(rounds, c);
        else if (timed->partial_share > 0.0)
            fine = add_partial(rounds, timed, c);
    }
    return fine;
}

/* ---- Which one binds ---- */

/* The speed over a limit up to which noise explains that a contender is faster. */
static const double BEATEN = 1.05;

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

static bool is_conversion(const struct contender *c)
{
    return c->roofline && c->roofline->kind == c->timed->conversion.kind;
}

static bool is_work(const struct contender *c)
{
    return c->roofline && c->roofline->kind == c->timed->work.kind;
}

/* Returns the same roofline or loop after a call's checks, if that was timed, too. */
static const struct contender *find_after_checks(const struct rounds *rounds,
                                                 const struct contender *roofline)
{
    for (size_t i = 0; i < rounds->n; i++) {
        const struct contender *c = &rounds->contenders[i];
        if (c->after_checks && c->roofline == roofline->roofline && c->work == roofline->work &&
            contender_is_timed(c))
            return c;
    }
    return roofline;
}

/* Returns the longer one of a limit and the fastest roofline or loop that `accepts` takes. A loop that some backend
 * beats is no limit, since something in it can be avoided. */
static struct limit choose_longer(const struct rounds *rounds, const struct contender *c,
                                  bool (*accepts)(const struct contender *c),
                                  struct limit limit)
{
    const struct contender *best = rounds_fastest(rounds, accepts);
    if (!best || (!contender_is_roofline(best) && is_beaten(rounds, best)))
        return limit;
    if (contender_is_roofline(best) || !is_beaten(rounds, find_after_checks(rounds, best)))
        best = find_after_checks(rounds, best);
    const double share = rounds_speed(rounds, c, best);
    if (share <= limit.share)
        return limit;
    return (struct limit){ .resource = roofline_resource(best->roofline->kind),
                           .kind = roofline_kind_name[best->roofline->kind],
                           .variant = best->roofline->name,
                           .share = share,
                           .seconds = rounds_median(rounds, best) };
}

/* Returns the share of a call's time that does not depend on its rows. A partial call takes that constant and its share
 * of the rest: T(partial) = C + share (T - C). */
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

struct limit limits_find(const struct rounds *rounds, const struct contender *c)
{
    struct limit limit = { .share = 0.0 };
    limit = choose_longer(rounds, c, contender_is_roofline, limit);
    limit = choose_longer(rounds, c, is_conversion, limit);
    limit = choose_longer(rounds, c, is_work, limit);
    const double share = share_without_rows(rounds, c);
    if (share <= limit.share || share > BEATEN) /* a part that takes longer shows nothing */
        return limit;
    const double median = rounds_median(rounds, c);
    return (struct limit){ RESOURCE_CALLS, "call", c->backend->name, share, share * median };
}
