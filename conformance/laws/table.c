/*
 * Laws of the sinusoidal table and of cos and sin of the rotary angles.  E is TABLE_ERROR times
 * the scale; where a sum of products of two entries of the circle is formed, as
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E, which we
 * call 3 E to cover E^2.
 *
 * What E is of an f32 profile: pairs.h.  How far w' is from w: law_frequency.
 *
 * Vaswani et al. 1706.03762 section 3.5: PE(p+k) is a linear function of PE(p) for any fixed k.
 */
#define _POSIX_C_SOURCE 200809L
#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- PE(p+k) = M(k) PE(p) ---- */

/* The rotation from row a to row b of pair i: sine and cosine of its angle. */
static struct pair turn(const struct call *table, int64_t a, int64_t b, int64_t i)
{
    const struct pair from = pair_at(table, a, i), to = pair_at(table, b, i);
    return (struct pair){ to.s * from.c - to.c * from.s, pair_product(from, to) };
}

static void require_pair(struct tally *t, struct pair got, struct pair want, double bound,
                         const char *what)
{
    require_within(t, got.s, want.s, bound, what);
    require_within(t, got.c, want.c, bound, what);
}

/* Two maps, each off by at most 3 E. */
static void law_linear_map(struct tally *t, const struct problem *of)
{
    static const int64_t steps[] = { 1, 2, 7 };
    const struct call *table = run_table_at(t, of, 0, 20);
    for (int j = 0; table && j < 3; j++)
        for (int64_t i = 0; i < of->freqs.dim / 2; i++)
            require_pair(t, turn(table, 12, 12 + steps[j], i), turn(table, 5, 5 + steps[j], i),
                         6 * table_error(&table->problem),
                         "the map from 12 to 12+k and from 5 to 5+k");
}

/* The law above holds for any rotation; this one names its angle: from p to p+1 the pair turns
 * by w. */
static void law_frequency(struct tally *t, const struct problem *of)
{
    const struct call *table = run_table_at(t, of, 0, 5);
    const int64_t n = of->freqs.dim / 2;
    for (int64_t i = 0; table && i < n; i++) {
        bool endpoint = of->freqs.convention == POSENC_ENDPOINT;
        double exponent = !endpoint ? 2.0 * (double)i / (double)of->freqs.dim
                          : n > 1   ? (double)i / (double)(n - 1)
                                    : 0.0;
        double omega = pow(of->freqs.rope_theta, -exponent);
        /* hf_f32: exponent, power and reciprocal are rounded, at most 9 units of 2^-24 of w;
         * torch_exp_f32: the exponent twice, then its exp, less than that.  ggml_f32: its exponent
         * and power are, i times over: 2^-24 w (i + (2i/d) ln theta), at most d/50 + 1/e units. */
        double bound = 3 * table_error(&table->problem) +
                       (of->freqs.profile == POSENC_EXACT ? 0.0 : 16 * 0x1p-24);
        require_pair(t, turn(table, 3, 4, i), (struct pair){ sin(omega), cos(omega) }, bound,
                     "the step from position 3 to 4");
        require_pair(t, pair_at(table, 4, i), (struct pair){ sin(4 * omega), cos(4 * omega) },
                     4 * bound, "position 4");
    }
}

/* ---- Products, norms, bounds ---- */

static double row_product(const struct call *table, int64_t a, int64_t b)
{
    double sum = 0.0;
    for (int64_t i = 0; i < table->problem.freqs.dim / 2; i++)
        sum += pair_product(pair_at(table, a, i), pair_at(table, b, i));
    return sum;
}

/* n = dim/2 pairs of 3 E, for either of two rows compared. */
static void law_product(struct tally *t, const struct problem *of)
{
    const struct call *table = run_table_at(t, of, 0, 40);
    for (int64_t k = 0; table && k < 12; k++) {
        const double bound = 6 * table_error(&table->problem) * (double)(of->freqs.dim / 2);
        const double want = row_product(table, 0, k);
        for (int64_t r = 1; r + k < 40; r++)
            require_within(t, row_product(table, r, r + k), want, bound, "PE(p) . PE(p+k)");
    }
}

/* |PE| = sqrt(n): s^2 + c^2 = 1 within 3 E per pair, so the norm within 3 n E / (2 sqrt n). */
static void law_norm(struct tally *t, const struct problem *of)
{
    const double n = (double)(of->freqs.dim / 2);
    for (int64_t first = 0; first <= 1000; first += 1000) {
        const struct call *table = run_table_at(t, of, first, 66);
        for (int64_t r = 0; table && r < 66; r++)
            require_within(t, sqrt(row_product(table, r, r)), sqrt(n),
                           3 * sqrt(n) * table_error(&table->problem), "norm of a row");
    }
}

static void law_bounded(struct tally *t, const struct problem *of)
{
    const struct call *table = run_table_at(t, of, -40, 400);
    for (int o = 0; table && o < table->n_outputs; o++)
        for (int64_t r = 0; r < table->outputs[o].rows; r++)
            for (int64_t c = 0; c < table->outputs[o].width; c++) {
                const float entry = call_row(table, o, r)[c];
                require(t, fabsf(entry) <= 1.0f, "an entry is %.9g, more than 1 in magnitude",
                        (double)entry);
            }
}

/* At position 0 every sine is 0 and every cosine 1, exactly. */
static void law_origin(struct tally *t, const struct problem *of)
{
    const struct call *table = run_table_at(t, of, 0, 2);
    for (int64_t i = 0; table && i < of->freqs.dim / 2; i++) {
        struct pair zero = pair_at(table, 0, i);
        require(t, zero.s == 0.0 && zero.c == 1.0,
                "position 0 pair %lld is (%.9g, %.9g), not (0, 1)", (long long)i, zero.s,
                zero.c);
    }
}

/* Positions -20 .. 20: the sine flips, the cosine stays, to the bit. */
static void law_mirror(struct tally *t, const struct problem *of)
{
    const struct call *table = run_table_at(t, of, -20, 41);
    for (int64_t r = 1; table && r <= 20; r++)
        for (int64_t i = 0; i < of->freqs.dim / 2; i++) {
            struct pair right = pair_at(table, 20 + r, i), left = pair_at(table, 20 - r, i);
            require(t, left.s == -right.s && left.c == right.c,
                    "position -%lld pair %lld is (%.9g, %.9g), the mirror image of (%.9g, "
                    "%.9g) it is not",
                    (long long)r, (long long)i, left.s, left.c, right.s, right.c);
        }
}

/* ---- Rows are unique ---- */

static int by_row(const void *a, const void *b) { return memcmp(a, b, 64 * sizeof(float)); }

/* Pair 0 turns by 1 a token; below 4096 no multiple of a turn is nearer than 6e-5 (710 tokens),
 * 250 E. */
static void law_unique(struct tally *t, const struct problem *p)
{
    const struct call *table = tally_run(t, p, NULL, NULL);
    if (!table)
        return;
    qsort(table->outputs[0].tensor.data, (size_t)p->tokens, 64 * sizeof(float), by_row);
    for (int64_t r = 1; r < p->tokens; r++)
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

/* 2 ulp: the most any backend here promises near 0.  The template family's own promise, 1, is
 * the accuracy suite's. */
static void law_by_hand(struct tally *t, const struct problem *p)
{
    const struct call *table = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; table && r < 4; r++)
        for (int64_t i = 0; i < 2; i++) {
            const struct pair got = pair_at(table, r, i);
            const double sine = (double)d_model_4[r][2 * i],
                         cosine = (double)d_model_4[r][2 * i + 1];
            require_within(t, got.s, sine, 2 * 0x1p-23 * fabs(sine), "d_model 4, sine");
            require_within(t, got.c, cosine, 2 * 0x1p-23 * fabs(cosine), "d_model 4, cosine");
        }
}

/* ---- Layouts, odd dimensions, scale ---- */

static void law_layouts(struct tally *t, const struct problem *p)
{
    const struct call *interleaved = tally_run(t, p, NULL, NULL);
    for (int layout = POSENC_SIN_COS; layout <= POSENC_COS_SIN; layout++) {
        struct problem q = *p;
        q.layout = (enum posenc_layout)layout;
        const struct call *halves = tally_run(t, &q, NULL, NULL);
        for (int64_t r = 0; interleaved && halves && r < p->tokens; r++)
            for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
                const float *a = call_row(interleaved, 0, r), *b = call_row(halves, 0, r);
                require_same_bits(t, &b[sine_at(&q, i)], &a[2 * i], 1,
                                  "sine in another layout");
                require_same_bits(t, &b[cosine_at(&q, i)], &a[2 * i + 1], 1,
                                  "cosine in another layout");
            }
    }
}

static void law_odd(struct tally *t, const struct problem *p)
{
    const int64_t dim = p->freqs.dim;
    const double omega = pow(10000.0, -(double)(dim - 1) / (double)dim);
    const struct call *table = tally_run(t, p, NULL, NULL);
    for (int64_t r = 0; table && r < p->tokens; r++) {
        const float last = call_row(table, 0, r)[dim - 1];
        if (p->layout == POSENC_INTERLEAVED)
            require_within(t, (double)last, sin((double)(r + 1) * omega), TABLE_ERROR,
                           "odd dim, interleaved, ends in a sine");
        else
            require(t, bits_of(last) == 0, "odd dim, halves: last column is %.9g, not 0",
                    (double)last);
    }
}

/* Powers of two scale the table exactly; sqrt(2/d) within the entry's error and one more
 * rounding. */
static void law_scale(struct tally *t, const struct problem *p)
{
    struct problem eighth = *p, root = *p;
    eighth.scale = 0.125;
    root.scale = sqrt(2.0 / 66.0);
    const struct call *one = tally_run(t, p, NULL, NULL),
                      *two = tally_run(t, &eighth, NULL, NULL),
                      *three = tally_run(t, &root, NULL, NULL);
    for (int64_t r = 0; one && two && three && r < p->tokens; r++)
        for (int64_t c = 0; c < p->freqs.dim; c++) {
            const float entry = call_row(one, 0, r)[c], want = 0.125f * entry;
            require_same_bits(t, &call_row(two, 0, r)[c], &want, 1, "scale 1/8");
            require_within(t, (double)call_row(three, 0, r)[c], root.scale * (double)entry,
                           TABLE_ERROR * root.scale + 0x1p-24, "scale sqrt(2/d)");
        }
}

const struct law laws_table[] = {
    LAW("linear-map", law_linear_map, .problems = "tables"),
    LAW("frequency", law_frequency, .problems = "tables"),
    LAW("product-depends-on-distance", law_product, .problems = "tables"),
    LAW("norm", law_norm, .problems = "tables"),
    LAW("bounded", law_bounded, .problems = "tables"),
    LAW("origin", law_origin, .problems = "tables"),
    LAW("mirror", law_mirror, .problems = "tables"),
    LAW("rows-unique", law_unique),
    LAW("d-model-4", law_by_hand),
    LAW("layouts-are-permutations", law_layouts),
    LAW("odd-dim", law_odd),
    LAW("scale", law_scale),
    { 0 },
};
