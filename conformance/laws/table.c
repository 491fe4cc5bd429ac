/*
 * Laws of the sinusoidal table and of cos and sin of the rotary angles.  E is TABLE_ERROR times
 * the scale; where a sum of products of two entries of the circle is formed, as
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E, which we
 * call 3 E to cover E^2.
 *
 * What E is of an f32 profile: pairs.h.  How far w' is from w: holds_frequency.
 *
 * Vaswani et al. 1706.03762 section 3.5: PE(p+k) is a linear function of PE(p) for any fixed k.
 */
#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- PE(p+k) = M(k) PE(p) ---- */

/* The rotation from row a to row b of pair i. */
static double complex turn(const struct call *table, int64_t a, int64_t b, int64_t i)
{
    return pair_of(table, b, i) * conj(pair_of(table, a, i));
}

/* Two maps, each off by at most 3 E; k is the row. */
static void holds_linear_map(struct tally *t, const struct call *table)
{
    for (EACH_PAIR(at, table))
        if (at.row >= 1 && at.row <= 7) {
            at.z = turn(table, 12, 12 + at.row, at.i);
            require_pair(t, &at, turn(table, 5, 5 + at.row, at.i),
                         6 * table_error(&table->problem),
                         "the map from 12 to 12+k and from 5 to 5+k");
        }
}

/* The law above holds for any rotation; this one names its angle: from p to p+1 the pair turns
 * by w. */
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
        require_pair(t, &at, pair_turned(4 * omega), 4 * bound, "position 4");
        at.z = turn(table, 3, 4, at.i);
        require_pair(t, &at, pair_turned(omega), bound, "the step from position 3 to 4");
    }
}

/* ---- Products, norms, bounds ---- */

/* n = dim/2 pairs of 3 E, for either of two rows compared. */
static void holds_product(struct tally *t, const struct call *table)
{
    const double bound = 6 * table_error(&table->problem) * (double)n_pairs(&table->problem);
    for (int64_t k = 0; k < 12; k++)
        for (int64_t r = 1; r + k < table->problem.tokens; r++)
            require_within(t, row_product(table, r, r + k), row_product(table, 0, k), bound,
                           "PE(p) . PE(p+k)");
}

/* |PE| = sqrt(n): s^2 + c^2 = 1 within 3 E per pair, so the norm within 3 n E / (2 sqrt n). */
static void holds_norm(struct tally *t, const struct call *table)
{
    const double root = sqrt((double)n_pairs(&table->problem));
    for (int64_t r = 0; r < table->problem.tokens; r++)
        require_within(t, sqrt(row_product(table, r, r)), root,
                       3 * root * table_error(&table->problem), "norm of a row");
}

static void compare_norms(struct tally *t, const struct call *near, const struct call *far)
{
    holds_norm(t, near);
    holds_norm(t, far);
}

static void holds_bounded(struct tally *t, const struct call *table)
{
    for (EACH_ELEMENT(at, table))
        require(t, fabsf(at.value) <= 1.0f, "an entry is %.9g, more than 1 in magnitude",
                (double)at.value);
}

/* At position 0 every sine is 0 and every cosine 1, exactly. */
static void holds_origin(struct tally *t, const struct call *table)
{
    for (EACH_PAIR(at, table))
        if (at.row == 0)
            require_pair(t, &at, 1.0, 0.0, "position 0");
}

/* Positions -20 .. 20: the sine flips, the cosine stays, to the bit. */
static void holds_mirror(struct tally *t, const struct call *table)
{
    for (EACH_PAIR(at, table))
        require_pair(t, &at, conj(pair_of(table, 40 - at.row, at.i)), 0.0,
                     "the mirror image of a position");
}

/* ---- Rows are unique ---- */

static int by_row(const void *a, const void *b) { return memcmp(a, b, 64 * sizeof(float)); }

/* Pair 0 turns by 1 a token; below 4096 no multiple of a turn is nearer than 6e-5 (710 tokens),
 * 250 E. */
static void holds_unique(struct tally *t, const struct call *table)
{
    const size_t rows = (size_t)table->problem.tokens;
    qsort(table->outputs[0].tensor.data, rows, 64 * sizeof(float), by_row);
    for (int64_t r = 1; r < table->problem.tokens; r++)
        require(t, by_row(call_row(table, 0, r - 1), call_row(table, 0, r)) != 0,
                "two of 4096 positions have the same row");
}

/* ---- d_model = 4 by hand ---- */

/* sin p, cos p, sin p/100, cos p/100 for p = 0 .. 3: 300-bit values rounded to f32. */
static const float d_model_4[4][4] = {
    { 0.0f, 1.0f, 0.0f, 1.0f },
    { 0x1.aed548p-1f, 0x1.14a28p-1f, 0x1.47acaep-7f, 0x1.fff972p-1f },
    { 0x1.d18f6ep-1f, -0x1.aa2266p-2f, 0x1.47a87cp-6f, 0x1.ffe5cap-1f },
    { 0x1.210386p-3f, -0x1.fae04cp-1f, 0x1.eb724p-6f, 0x1.ffc506p-1f },
};

/* 2 ulp: the most any backend here promises near 0.  The native family's own promise, 1, is
 * the accuracy suite's. */
static void holds_by_hand(struct tally *t, const struct call *table)
{
    for (EACH_PAIR(at, table)) {
        const double sine = (double)d_model_4[at.row][2 * at.i],
                     cosine = (double)d_model_4[at.row][2 * at.i + 1];
        require_within(t, cimag(at.z), sine, 2 * 0x1p-23 * fabs(sine), "d_model 4, sine");
        require_within(t, creal(at.z), cosine, 2 * 0x1p-23 * fabs(cosine), "d_model 4, cosine");
    }
}

/* ---- Layouts, odd dimensions, scale ---- */

static void compare_layouts(struct tally *t, const struct call *halves,
                            const struct call *interleaved)
{
    for (EACH_PAIR(at, halves))
        require_pair(t, &at, pair_of(interleaved, at.row, at.i), 0.0, "in another layout");
}

static void holds_odd(struct tally *t, const struct call *table)
{
    const struct problem *p = &table->problem;
    const double dim = (double)p->freqs.dim, omega = pow(10000.0, -(dim - 1) / dim);
    const bool sine = p->layout == POSENC_INTERLEAVED;
    for (EACH_ELEMENT(at, table)) {
        if (at.column < p->freqs.dim - 1)
            continue;
        if (sine)
            require_within(t, (double)at.value, sin((double)(at.row + 1) * omega), TABLE_ERROR,
                           "odd dim, interleaved, ends in a sine");
        else
            require_element(t, &at, 0.0f, "odd dim, halves:");
    }
}

/* Powers of two scale the table exactly; sqrt(2/d) within the entry's error and one more
 * rounding. */
static void compare_scale(struct tally *t, const struct call *scaled, const struct call *plain)
{
    const double scale = scaled->problem.scale;
    for (EACH_ELEMENT(at, scaled)) {
        const double want = scale * (double)twin_of(&at, plain),
                     bound = scale == 0.125 ? 0.0 : TABLE_ERROR * scale + 0x1p-24;
        require_within(t, (double)at.value, want, bound, "scaled");
    }
}

const struct law laws_table[] = {
    { "linear-map", .holds = holds_linear_map, .problems = "tables", .with = "tokens=20" },
    { "frequency", .holds = holds_frequency, .problems = "tables", .with = "tokens=5" },
    { "product-depends-on-distance", .holds = holds_product, .problems = "tables",
      .with = "tokens=40" },
    { "norm", .compares = compare_norms, .problems = "tables", .with = "tokens=66",
      .twin = "position_offset=1000" },
    { "bounded", .holds = holds_bounded, .problems = "tables",
      .with = "position_offset=-40 tokens=400" },
    { "origin", .holds = holds_origin, .problems = "tables", .with = "tokens=2" },
    { "mirror", .holds = holds_mirror, .problems = "tables",
      .with = "position_offset=-20 tokens=41" },
    { "rows-unique", .holds = holds_unique },
    { "d-model-4", .holds = holds_by_hand },
    { "layouts-are-permutations", .compares = compare_layouts, .twin = "layout=interleaved" },
    { "odd-dim", .holds = holds_odd },
    { "scale", .compares = compare_scale, .twin = "scale=1" },
    { 0 },
};
