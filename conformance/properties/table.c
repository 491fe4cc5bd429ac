/*
 * Properties of the sinusoidal table, and of cos and sin of the rotary angles. E is TABLE_ERROR times
 * the scale. In a sum of products of two entries, such as
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E. The bound is 3 E,
 * to cover E^2. For the f32 modes, pairs.h has E, and holds_frequency() the error of a frequency.
 *
 * Vaswani et al. 1706.03762 section 3.5: PE(p+k) is a linear function of PE(p) for any fixed k.
 *
 * xPos (Sun et al. 2212.10554) scales queries by zeta^((m - centre)/base) and keys by one over
 * that, so that a pair contributes
 *
 *     c(m) c'(n) + s(m) s'(n) = zeta^((m - n)/base) cos((m - n) omega)
 *
 * to the product of a query at m and a key at n, within 3 E of what they are scaled by.
 */
#include "pairs.h"

#include <math.h>

/* ---- PE(p+k) = M(k) PE(p) ---- */

/* Returns the rotation from row a to row b of pair i. */
static double complex rotation_between(const struct call *table, int64_t a, int64_t b,
                                       int64_t i)
{
    return pair_of(table, b, i) * conj(pair_of(table, a, i));
}

/* Compares two maps, each with an error of at most 3 E; k is the row. */
static void holds_linear_map(struct tally *t, const struct call *table)
{
    for (EACH_PAIR(at, table))
        if (at.row >= 1 && at.row <= 7) {
            at.z = rotation_between(table, 12, 12 + at.row, at.i);
            require_pair(t, &at, rotation_between(table, 5, 5 + at.row, at.i),
                         6 * table_error(&table->problem),
                         "the map from 12 to 12+k and from 5 to 5+k");
        }
}

/* Checks the angle of the rotation: from p to p+1 the pair rotates by w. */
static void holds_frequency(struct tally *t, const struct call *table)
{
    const struct posenc_freqs_spec *spec = &table->problem.freqs;
    const double n = (double)(spec->dim / 2);
    /* hf_f32: exponent, power and reciprocal are rounded, at most 9 units of 2^-24 of w;
     * torch_exp_f32: the exponent twice, then its exp, less than that.  ggml_f32: its exponent
     * and power are, i times over: 2^-24 w (i + (2i/d) ln theta), at most d/50 + 1/e units. */
    const double bound =
        3 * table_error(&table->problem) + (spec->profile == POSENC_EXACT ? 0.0 : 16 * 0x1p-24);
    for (EACH_PAIR(at, table)) {
        const double steps = spec->convention == POSENC_ENDPOINT ? fmax(n - 1, 1) : n;
        const double omega = pow(spec->rope_theta, -(double)at.i / steps);
        if (at.row < 4)
            continue;
        require_pair(t, &at, pair_of_angle(4 * omega), 4 * bound, "position 4");
        at.z = rotation_between(table, 3, 4, at.i);
        require_pair(t, &at, pair_of_angle(omega), bound, "the step from position 3 to 4");
    }
}

/* ---- Layouts ---- */

static void compare_layouts(struct tally *t, const struct call *halves,
                            const struct call *interleaved)
{
    for (EACH_PAIR(at, halves))
        require_pair(t, &at, pair_of(interleaved, at.row, at.i), 0.0, "in another layout");
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

const struct property properties_table[] = {
    { "linear-map", .holds = holds_linear_map, .problems = "tables", .with = "tokens=20" },
    { "frequency", .holds = holds_frequency, .problems = "tables", .with = "tokens=5" },
    { "layouts-are-permutations", .compares = compare_layouts, .twin = "layout=interleaved" },
    { "neutral-scaling", .twin = "scaling=none" },
    { "xpos-relative", .compares = compare_relative, .problems = "xpos",
      .twin = "xpos_inverse=true" },
    { 0 },
};
