/*
 * Laws of xPos (Sun et al. 2212.10554).  Queries are scaled by zeta^((m - centre)/base), keys
 * by one over that, so that a pair contributes
 *
 *     c(m) c'(n) + s(m) s'(n) = zeta^((m - n)/base) cos((m - n) omega)
 *
 * to the product of a query at m and a key at n.  Entries of both tables are within E times
 * what they are scaled by, so that the sum is within 2 sqrt(2) E zeta^((m - n)/base), which we
 * call 3 E to cover E^2.
 *
 *   relative      the product depends on m - n alone: it is that formula
 *   decays        and what it can be at most, zeta^((m - n)/base), falls with the distance
 *   at-centre     at its centre xPos is RoPE, to the bit
 */
#define _POSIX_C_SOURCE 200809L
#include "pairs.h"

#include <math.h>

static double zeta_of(const struct problem *p, int64_t pair)
{
    const double dim = (double)p->freqs.dim;
    return (2.0 * (double)pair + 0.4 * dim) / (1.4 * dim);
}

/* The table of the keys that meet the queries of a problem. */
static const struct call *keys_of(struct tally *t, const struct problem *queries)
{
    struct problem keys = *queries;
    keys.freqs.xpos_inverse = true;
    return tally_run(t, &keys, NULL, NULL);
}

static void law_relative(struct tally *t, const struct problem *p)
{
    const struct call *queries = tally_run(t, p, NULL, NULL), *keys = keys_of(t, p);
    for (int64_t i = 0; queries && keys && i < p->freqs.dim / 2; i++) {
        const double omega = pow(10000.0, -2.0 * (double)i / (double)p->freqs.dim);
        for (int64_t m = 0; m < p->tokens; m += 3)
            for (int64_t n = 0; n < p->tokens; n++) {
                const double d = (double)(m - n);
                const double scale = pow(zeta_of(p, i), d / p->freqs.xpos_scale_base);
                require_within(t, pair_product(pair_at(queries, m, i), pair_at(keys, n, i)),
                               scale * cos(d * omega), 3 * TABLE_ERROR * scale,
                               "the product of a query and a key");
            }
    }
}

static double length_of(struct pair p) { return sqrt(pair_product(p, p)); }

static void law_decays(struct tally *t, const struct problem *p)
{
    const struct call *queries = tally_run(t, p, NULL, NULL), *keys = keys_of(t, p);
    for (int64_t m = 1; queries && keys && m < p->tokens; m++)
        for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
            const double key = length_of(pair_at(keys, 0, i)),
                         near = length_of(pair_at(queries, m - 1, i)) * key,
                         far = length_of(pair_at(queries, m, i)) * key;
            require(t, far < near, "pair %lld at distance %lld can give %.9g, one nearer %.9g",
                    (long long)i, (long long)m, far, near);
        }
}

static void law_at_centre(struct tally *t, const struct problem *p)
{
    const int64_t row = (int64_t)p->freqs.xpos_centre - p->first;
    struct problem plain = *p;
    plain.freqs.xpos_scale_base = 0.0;
    const struct call *got = tally_run(t, p, NULL, NULL),
                      *want = tally_run(t, &plain, NULL, NULL);
    for (int o = 0; got && want && o < 2; o++)
        require_same_bits(t, call_row(got, o, row), call_row(want, o, row), p->freqs.dim / 2,
                          "at the centre of xPos");
}

const struct law laws_xpos[] = {
    LAW("xpos-relative", law_relative, .problems = "xpos"),
    LAW("xpos-decays", law_decays, .problems = "xpos"),
    LAW("xpos-at-centre", law_at_centre),
    { 0 },
};
