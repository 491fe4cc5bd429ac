/*
 * Enters what limits rows, and finds for each row which limit binds.
 */
#include "limits.h"

#include <math.h>

/* ---- Entering ---- */

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

static void enter_kind(struct turns *turns, const struct timed_call *timed,
                       const struct looped *looped)
{
    const double near = 1.5;
    struct contender *tried = turns->contenders + turns->n;
    double least = (double)INFINITY;
    size_t n = 0;
    for (size_t i = 0; roofline_variant_at(i) && looped->kind < ROOFLINE_KIND_COUNT; i++) {
        const struct roofline_variant *variant = roofline_variant_at(i);
        if (variant->kind != looped->kind || !variant->runs())
            continue;
        tried[n] = contender_of_loop(timed, variant, looped);
        tried[n].seconds = try_loop(&tried[n]);
        least = fmin(least, tried[n++].seconds);
    }
    for (size_t i = 0; i < n; i++)
        if (tried[i].seconds <= near * least)
            turns->contenders[turns->n++] =
                contender_of_loop_in_tensors(timed, tried[i].roofline, looped);
}

void limits_enter_loops(struct turns *turns, const struct timed_call *timed)
{
    enter_kind(turns, timed, &timed->conversion);
    enter_kind(turns, timed, &timed->work);
}

static bool enter_part(struct turns *turns, const struct timed_call *timed,
                       const struct contender *c)
{
    struct contender *part = &turns->contenders[turns->n++];
    *part = contender_of_backend(timed, c->backend);
    part->part = true;
    return contender_calibrate(part, turns->least_sample);
}

/* Enters a roofline or loop after a call's checks.  Left out are loops that do more than the call and
 * are scaled, and calls that the default backend rejects. */
static bool enter_entered(struct turns *turns, const struct contender *c)
{
    const double whole = 0.9;
    struct contender *entered = &turns->contenders[turns->n];
    if (c->times < whole)
        return true;
    *entered = *c;
    entered->entered = true;
    contender_call(entered);
    if (entered->status != POSENC_OK)
        return true;
    turns->n++;
    return contender_calibrate(entered, turns->least_sample);
}

bool limits_enter_calls(struct turns *turns, const struct timed_call *timed)
{
    const double shortest = 5e-6;
    const size_t n = turns->n;
    bool fine = true;
    for (size_t i = 0; i < n && timed->threads == 1 && fine; i++) {
        const struct contender *c = &turns->contenders[i];
        if (!contender_is_timed(c) || c->steps || c->again || c->seconds > shortest)
            continue;
        if (c->roofline)
            fine = enter_entered(turns, c);
        else if (timed->part_share > 0.0)
            fine = enter_part(turns, timed, c);
    }
    return fine;
}

/* ---- Which one binds ---- */

/* Up to here a share is that of a limit that was reached, give or take noise. */
static const double BEATEN = 1.05;

static bool is_beaten(const struct turns *turns, const struct contender *loop)
{
    for (size_t i = 0; i < turns->n; i++) {
        const struct contender *c = &turns->contenders[i];
        if (c->backend && !c->part && !c->steps && contender_is_timed(c) &&
            turns_speed(turns, c, loop) > BEATEN)
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
static const struct contender *entered(const struct turns *turns,
                                       const struct contender *roofline)
{
    for (size_t i = 0; i < turns->n; i++) {
        const struct contender *c = &turns->contenders[i];
        if (c->entered && c->roofline == roofline->roofline && c->looped == roofline->looped &&
            contender_is_timed(c))
            return c;
    }
    return roofline;
}

/* Returns the longer of a limit and of what some kind of roofline or loop takes. */
static struct limit longer(const struct turns *turns, const struct contender *c,
                           bool (*of)(const struct contender *c), struct limit limit)
{
    const struct contender *best = turns_fastest(turns, of);
    if (!best || (!contender_is_roofline(best) && is_beaten(turns, best)))
        return limit;
    if (contender_is_roofline(best) || !is_beaten(turns, entered(turns, best)))
        best = entered(turns, best);
    const double share = turns_speed(turns, c, best);
    if (share <= limit.share)
        return limit;
    return (struct limit){ .resource = roofline_resource(best->roofline->kind),
                           .kind = roofline_kind_name[best->roofline->kind],
                           .variant = best->roofline->name,
                           .share = share,
                           .seconds = stats_median(turns_samples(turns, best), turns->rounds) };
}

/* Returns the share of a call that is there without rows.  A part takes a constant and its share of what
 * the rows take: T(part) = C + share (T - C). */
static double without_rows(const struct turns *turns, const struct contender *c)
{
    const double share = c->timed->part_share;
    for (size_t i = 0; i < turns->n; i++) {
        const struct contender *part = &turns->contenders[i];
        if (part->part && part->backend == c->backend && contender_is_timed(part))
            return fmax((turns_speed(turns, c, part) - share) / (1.0 - share), 0.0);
    }
    return 0.0;
}

struct limit limits_of(const struct turns *turns, const struct contender *c)
{
    struct limit limit = { .share = 0.0 };
    limit = longer(turns, c, contender_is_roofline, limit);
    limit = longer(turns, c, is_conversion, limit);
    limit = longer(turns, c, is_work, limit);
    const double share = without_rows(turns, c);
    if (share <= limit.share || share > BEATEN) /* a part that takes longer shows nothing */
        return limit;
    const double median = stats_median(turns_samples(turns, c), turns->rounds);
    return (struct limit){ RESOURCE_CALLS, "call", c->backend->name, share, share * median };
}
