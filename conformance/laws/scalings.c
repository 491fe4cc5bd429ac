/*
 * Laws of scaled frequencies: what a family multiplies, what it leaves alone, what repeats.
 */
#include "pairs.h"

#include <math.h>

static struct problem without_scaling(const struct problem *p)
{
    struct problem plain = *p;
    plain.freqs.scaling = POSENC_SCALING_NONE;
    return plain;
}

/* The attention factor m of YaRN and of LongRoPE multiplies both: c^2 + s^2 = m^2 within 3 m E,
 * and c = m at position 0. */
static void law_attention_factor(struct tally *t, const struct problem *p)
{
    const double derived = p->freqs.scaling == POSENC_SCALING_YARN
                               ? 0.1 * log(4.0) + 1.0
                               : sqrt(1.0 + log(4.0) / log(4096.0));
    const double given = p->freqs.attention_factor, m = given > 0.0 ? given : derived;
    const double bound = 4 * m * (m > 1 ? m : 1) * table_error(p);
    const struct call *table = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; table && r < p->tokens; r++)
        for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
            const struct pair at = pair_at(table, r, i);
            require_within(t, pair_product(at, at), m * m, bound,
                           "cos^2 + sin^2, the factor squared");
        }
}

static void law_neutral(struct tally *t, const struct problem *p)
{
    const struct problem plain = without_scaling(p);
    const struct call *want = tally_run(t, &plain, NULL, NULL),
                      *got = tally_run(t, p, NULL, NULL);
    if (want && got)
        require_same_outputs(t, got, want, "scaling with nothing to scale");
}

/* A quarter of 48 pairs turns as it does without scaling; the others rest, at (0, 1) with the
 * position's sign. */
static void law_share(struct tally *t, const struct problem *p)
{
    const struct problem plain = without_scaling(p);
    const struct call *whole = tally_run(t, &plain, NULL, NULL),
                      *share = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; whole && share && r < p->tokens; r++)
        for (int64_t i = 0; i < 48; i++) {
            const bool turns = i < 12;
            const struct pair at = pair_at(share, r, i),
                              as = turns ? pair_at(whole, r, i) : (struct pair){ 0.0, 1.0 };
            const bool sign = turns || (signbit(at.s) != 0) == (p->first + r < 0);
            require(t, at.s == as.s && at.c == as.c && sign,
                    "position %lld pair %lld is (%.9g, %.9g), not (%.9g, %.9g)",
                    (long long)(p->first + r), (long long)i, at.s, at.c, as.s, as.c);
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
        const struct call *there = run_table_at(t, p, p->first + lambda, p->tokens);
        for (int64_t r = 0; there && r < p->tokens; r++) {
            const struct pair at = pair_at(here, r, i), later = pair_at(there, r, i);
            const int64_t position = p->first + lambda + r;
            require_within(t, later.s, at.s, 2 * TABLE_ERROR, "sin a period later");
            require_within(t, later.c, at.c, 2 * TABLE_ERROR, "cos a period later");
            require(t, 2 * position % lambda != 0 || later.s == 0.0,
                    "position %lld pair %lld: sin is %.9g, not 0", (long long)position,
                    (long long)i, later.s);
        }
    }
}

const struct law laws_scalings[] = {
    LAW("attention-factor", law_attention_factor),
    LAW("neutral-scaling", law_neutral),
    LAW("proportional-share", law_share),
    LAW("resonance-period", law_period),
    { 0 },
};
