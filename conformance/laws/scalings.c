/*
 * Laws of scaled frequencies: what a family multiplies, what it leaves alone, what repeats.
 *
 * And of xPos (Sun et al. 2212.10554).  Queries are scaled by zeta^((m - centre)/base), keys
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
#include "pairs.h"

#include <math.h>

/* The attention factor m of YaRN and of LongRoPE multiplies both: c^2 + s^2 = m^2 within 3 m E,
 * and c = m at position 0. */
static void holds_attention_factor(struct tally *t, const struct call *table)
{
    const struct posenc_freqs_spec *spec = &table->problem.freqs;
    const double derived = spec->scaling == POSENC_SCALING_YARN
                               ? 0.1 * log(4.0) + 1.0
                               : sqrt(1.0 + log(4.0) / log(4096.0));
    const double m = spec->attention_factor > 0.0 ? spec->attention_factor : derived;
    const double bound = 4 * m * (m > 1 ? m : 1) * table_error(&table->problem);
    for (EACH_PAIR(at, table))
        require_within(t, creal(at.z * conj(at.z)), m * m, bound,
                       "cos^2 + sin^2, the factor squared");
}

/* A quarter of 48 pairs turns as it does without scaling; the others rest, at (0, 1) with the
 * position's sign. */
static void compare_share(struct tally *t, const struct call *share, const struct call *whole)
{
    for (EACH_PAIR(at, share)) {
        const bool turns = at.i < 12;
        const bool minus = signbit(cimag(at.z)) != 0;
        require_pair(t, &at, turns ? pair_of(whole, at.row, at.i) : 1.0, 0.0, "a share");
        require(t, turns || minus == (share->problem.first + at.row < 0),
                "row %lld pair %lld rests with the other sign of 0", (long long)at.row,
                (long long)at.i);
    }
}

/* Resonance: pair i is at p + lambda where it was at p, lambda = round(2 pi theta^(2i/d)), and
 * its sine is 0, nothing less, at whole multiples of lambda / 2. */
static void law_period(struct tally *t, const struct problem *p)
{
    const struct call *here = tally_run(t, p, NULL, NULL);
    for (int64_t i = 0; here && i < p->freqs.dim / 2; i++) {
        const double turn = 6.283185307179586, part = 2.0 * (double)i / (double)p->freqs.dim;
        const int64_t lambda = llround(turn * pow(p->freqs.rope_theta, part));
        struct problem later = *p;
        later.first += lambda;
        const struct call *there = tally_run(t, &later, NULL, NULL);
        for (EACH_PAIR(at, there)) {
            const int64_t position = later.first + at.row;
            if (at.i != i)
                continue;
            require_pair(t, &at, pair_of(here, at.row, i), 2 * TABLE_ERROR, "a period later");
            require(t, 2 * position % lambda != 0 || cimag(at.z) == 0.0,
                    "position %lld pair %lld: sin is %.9g, not 0", (long long)position,
                    (long long)i, cimag(at.z));
        }
    }
}

/* ---- xPos: queries, and keys that are scaled the other way ---- */

static void compare_relative(struct tally *t, const struct call *queries,
                             const struct call *keys)
{
    const struct problem *p = &queries->problem;
    const double dim = (double)p->freqs.dim;
    for (EACH_PAIR(query, queries))
        for (int64_t n = 0; n < p->tokens && query.row % 3 == 0; n++) {
            const double zeta = (2.0 * (double)query.i + 0.4 * dim) / (1.4 * dim),
                         omega = pow(10000.0, -2.0 * (double)query.i / dim),
                         d = (double)(query.row - n),
                         scale = pow(zeta, d / p->freqs.xpos_scale_base);
            require_within(t, creal(query.z * conj(pair_of(keys, n, query.i))),
                           scale * cos(d * omega), 3 * TABLE_ERROR * scale,
                           "the product of a query and a key");
        }
}

static void compare_decays(struct tally *t, const struct call *queries, const struct call *keys)
{
    for (EACH_PAIR(near, queries)) {
        if (near.row + 1 == queries->problem.tokens)
            break;
        const double key = cabs(pair_of(keys, 0, near.i)), most = cabs(near.z) * key,
                     next = cabs(pair_of(queries, near.row + 1, near.i)) * key;
        require(t, next < most, "pair %lld at distance %lld can give %.9g, one farther %.9g",
                (long long)near.i, (long long)near.row, most, next);
    }
}

static void compare_at_centre(struct tally *t, const struct call *out, const struct call *plain)
{
    const struct problem *p = &out->problem;
    for (EACH_ELEMENT(at, out))
        if (at.row == (int64_t)p->freqs.xpos_centre - p->first)
            require_element(t, &at, twin_of(&at, plain), "without xPos");
}

const struct law laws_scalings[] = {
    { "attention-factor", .holds = holds_attention_factor },
    { "neutral-scaling", .twin = "scaling=none" },
    { "proportional-share", .compares = compare_share, .twin = "scaling=none" },
    { "resonance-period", .check = law_period },
    { "xpos-relative", .compares = compare_relative, .problems = "xpos",
      .twin = "xpos_inverse=true" },
    { "xpos-decays", .compares = compare_decays, .problems = "xpos",
      .twin = "xpos_inverse=true" },
    { "xpos-at-centre", .compares = compare_at_centre, .twin = "xpos_scale_base=0" },
    { 0 },
};
