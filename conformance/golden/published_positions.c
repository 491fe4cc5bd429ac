/*
 * Whether the cases next to a zero list the positions that are nearest: convergents, recomputed.
 */
#include "published.h"

#include <string.h>

enum { MOST = 64 };

/* Whether a position is the denominator of some pair's convergent, of either kind. */
static bool is_convergent(const struct reference_plan *plan, int64_t position)
{
    int64_t all[MOST];
    double distance[MOST];
    for (int64_t i = 0; i < 2 * plan->n_pairs; i++) {
        const int64_t n = pair_convergents(plan, i / 2, (int)(i % 2), MOST, all, distance);
        for (int64_t k = 0; k < n; k++)
            if (all[k] == position)
                return true;
    }
    return false;
}

/* The nearest to a zero of a sine or cosine, ascending; the last may be one that a search found
 * before. */
static bool lists_nearest(const struct problem *p, int kind)
{
    struct reference_plan plan;
    int64_t hard[MOST];
    reference_plan_init(&plan, &p->freqs);
    const int64_t all = hard_positions(&plan, kind, p->tokens, hard);
    bool good = all == p->tokens && memcmp(hard, p->positions, (size_t)all * sizeof *hard) == 0;
    if (!good) {
        const int64_t n = hard_positions(&plan, kind, p->tokens - 1, hard);
        good = n == p->tokens - 1 &&
               memcmp(hard, p->positions, (size_t)n * sizeof *hard) == 0 &&
               is_convergent(&plan, p->positions[n]);
    }
    reference_plan_clear(&plan);
    return good;
}

/* Times: the k-th nearest half m/2 is that of token 2 k + 1, whose position is t/2 less; the
 * token before it is at the whole part, every second one below zero. */
static bool lists_halves(const struct problem *p)
{
    int64_t m[MOST];
    const int64_t n = hard_halves(&p->freqs, p->tokens / 2, m);
    bool good = p->time_step == 0.5 && 2 * n == p->tokens;
    for (int64_t k = 0; k < n && good; k++)
        good = p->positions[2 * k] == (k % 2 ? -(m[k] / 2) : m[k] / 2) &&
               p->positions[2 * k + 1] == m[k] / 2 - k;
    return good;
}

void check_positions(const struct vectors *vectors)
{
    int found = 0;
    for (size_t i = 0; i < vectors->n; i++) {
        const struct vector_case *c = &vectors->cases[i];
        const struct problem *p = &c->problem;
        const bool times = p->position_kind == POSENC_POSITIONS_F32;
        if (!strstr(c->flags, "Convergent") || (!times && strcmp(c->group, "convergents") != 0))
            continue;
        const int kind = strcmp(c->name + strlen(c->name) - 4, "-cos") == 0;
        require_that(p->positions && p->tokens <= MOST &&
                         (times ? lists_halves(p) : lists_nearest(p, kind)),
                     "the positions are those nearest to a zero", c->id);
        found++;
    }
    require_that(found > 10, "there are cases next to a zero", "convergents");
}
