/*
 * Whether cases hold what their flags promise, without which a kernel that does otherwise would
 * pass them: values that round as the flag says, sums that depend on their order, positions that
 * are the nearest to a zero (convergents, recomputed).
 */
#include "conformance/problem/spelling.h"
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Values: what one is in f32, and beyond it ---- */

static double nearest(enum posenc_dtype type, double value)
{
    return reference_rounded(type, value, MPFR_RNDN);
}

static bool is_tie(enum posenc_dtype type, double odd)
{
    const double value = reference_nearest_f32(odd);
    const double up = reference_rounded(type, value, MPFR_RNDU),
                 down = reference_rounded(type, value, MPFR_RNDD);
    return up != down && up - value == value - down;
}

static bool is_subnormal(enum posenc_dtype type, double odd)
{
    const double value = fabs(nearest(type, odd));
    return value != 0 && value < (type == POSENC_F16 ? 0x1p-14 : 0x1p-126);
}

static bool overflows(enum posenc_dtype type, double odd)
{
    const double value = reference_nearest_f32(odd);
    return isfinite(value) && isinf(nearest(type, value));
}

static bool rounds_twice(enum posenc_dtype type, double odd)
{
    return isfinite(odd) && nearest(type, odd) != nearest(type, reference_nearest_f32(odd));
}

/* ---- Order of sums ---- */

/* A sum of the inputs that `row` takes, from the last to the first. */
static double descending(const struct call *call, int64_t row, int64_t column)
{
    const struct problem *p = &call->problem;
    const int64_t width = call->outputs[0].width;
    const bool gradient = kernel_signature(p->kernel) == SIGNATURE_learned_grad;
    double sum = p->accumulate ? (double)call->table[row * width + column] : 0;
    if (gradient) {
        for (int64_t t = p->batch * p->tokens - 1; t >= 0; t--)
            if (problem_position(p, t / p->tokens, t % p->tokens) == row)
                sum = reference_add_f32(sum, (double)call->x[t * width + column]);
        return sum;
    }
    for (int64_t j = p->keys - 1; j >= 0; j--)
        if (reference_column(p, row % p->queries, j) == column)
            sum = reference_add_f32(sum, (double)call->x[row * p->keys + j]);
    return sum;
}

static bool order_matters(const struct vector_case *c)
{
    struct call call;
    int64_t other = 0;
    if (call_create(&call, &c->problem, &memory_plain) != POSENC_OK)
        return false;
    for (int64_t i = 0; i < c->rows[0] * c->width[0]; i++)
        other += descending(&call, i / c->width[0], i % c->width[0]) != c->want[0][i];
    call_destroy(&call);
    return other > 0;
}

/* ---- Positions next to a zero ---- */

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

static bool lists_convergents(const struct vector_case *c)
{
    const struct problem *p = &c->problem;
    const int kind = strcmp(c->name + strlen(c->name) - 4, "-cos") == 0;
    return p->positions && p->tokens <= MOST &&
           (p->position_kind == POSENC_POSITIONS_F32 ? lists_halves(p)
                                                     : lists_nearest(p, kind));
}

/* ---- Flags ---- */

/* Of some value of 16 bits, or of a case; and how many cases there are at least. */
static const struct {
    const char *flag;
    bool (*of_value)(enum posenc_dtype type, double odd);
    bool (*of_case)(const struct vector_case *c);
    int least;
} promises[] = {
    { "Tie", is_tie, NULL, 1 },          { "Subnormal", is_subnormal, NULL, 1 },
    { "Overflow", overflows, NULL, 1 },  { "TwoRoundings", rounds_twice, NULL, 1 },
    { "Order", NULL, order_matters, 1 }, { "Convergent", NULL, lists_convergents, 11 },
};

/* Whether a case makes a promise: one of values in 16 bits; one of convergents where positions
 * are searched for, not where whole wavelengths have zeros or one is needed for a value. */
static bool promised(const struct vector_case *c, size_t f)
{
    const bool searched = c->problem.position_kind == POSENC_POSITIONS_F32 ||
                          strcmp(c->group, "convergents") == 0;
    return has_word(c->flags, ' ', promises[f].flag, strlen(promises[f].flag)) &&
           (!promises[f].of_value || c->problem.dtype != POSENC_F32) &&
           (promises[f].of_case != lists_convergents || searched);
}

static bool keeps(const struct vector_case *c, size_t f)
{
    if (promises[f].of_case)
        return promises[f].of_case(c);
    for (int o = 0; o < c->n_outputs; o++)
        for (int64_t i = 0; i < c->rows[o] * c->width[o]; i++)
            if (c->problem.dtype != POSENC_F32 &&
                promises[f].of_value(c->problem.dtype, c->want[o][i]))
                return true;
    return false;
}

/* A promise about values is kept by the case in one type of those that there are. */
static bool kept(struct vectors *vectors, const struct vector_case *c, size_t f)
{
    bool found = keeps(c, f);
    for (size_t k = 0; k < vectors->n && !found && promises[f].of_value; k++) {
        const struct vector_case *other = &vectors->cases[k];
        const char *id = vectors_id(vectors, c, other->problem.dtype);
        found = id && strcmp(other->id, id) == 0 && keeps(other, f);
    }
    return found || disagree("%s: the flag %s is not kept", c->id, promises[f].flag);
}

bool certify_flags(struct vectors *vectors)
{
    bool good = true;
    for (size_t f = 0; f < sizeof promises / sizeof *promises; f++) {
        int cases = 0;
        for (size_t i = 0; i < vectors->n; i++) {
            const struct vector_case *c = &vectors->cases[i];
            if (promised(c, f)) {
                good = kept(vectors, c, f) && good;
                cases++;
            }
        }
        good = (cases >= promises[f].least ||
                disagree("%d cases have the flag %s", cases, promises[f].flag)) &&
               good;
    }
    return good;
}
