/*
 * Laws of the sinusoidal table and of cos and sin of the rotary angles.  E is TABLE_ERROR times
 * the scale; where a sum of products of two entries of the circle is formed, as
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E, which we
 * call 3 E to cover E^2.
 *
 * Settings, and what E is of an f32 profile: pairs.h.  How far w' is from w: turns_by_omega.
 *
 * Vaswani et al. 1706.03762 section 3.5: PE(p+k) is a linear function of PE(p) for any fixed k.
 */
#define _POSIX_C_SOURCE 200809L
#include "pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t dims[] = { 2, 6, 64, 130 };
enum { DIMS = sizeof dims / sizeof dims[0] };

typedef void table_law(struct tally *t, const struct problem *p, const struct copy *table);

static void for_tables(struct tally *t, enum posenc_kernel kernel, int64_t first,
                       int64_t tokens, table_law *law)
{
    for (int d = 0; d < DIMS; d++)
        for (int s = 0; s < SETTINGS; s++) {
            struct problem p = table_problem(kernel, dims[d], s, first, tokens);
            struct copy table = { .n = 0 };
            bool taken = t->run->options->full || (d + s) % 2 == 0; /* a quick run: half */
            if (taken && run_problem(t, &p, NULL, NULL, &table))
                law(t, &p, &table);
            copy_free(&table);
            t->problem = NULL;
        }
}

/* ---- PE(p+k) = M(k) PE(p) ---- */

/* The rotation from a to b: sine and cosine of its angle. */
static struct pair map_of(struct pair a, struct pair b)
{
    return (struct pair){ b.s * a.c - b.c * a.s, a.s * b.s + a.c * b.c };
}

/* Two maps, each off by at most 3 E. */
static void linear_map(struct tally *t, const struct problem *p, const struct copy *table)
{
    static const int64_t steps[] = { 1, 2, 7 };
    for (int j = 0; j < 3; j++)
        for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
            int64_t k = steps[j];
            struct pair five = map_of(pair_at(p, table, 5, i), pair_at(p, table, 5 + k, i));
            struct pair twelve = map_of(pair_at(p, table, 12, i), pair_at(p, table, 12 + k, i));
            require_within(t, twelve.c, five.c, 6 * table_error(p),
                           "the map from 12 to 12+k and from 5 to 5+k, cosine");
            require_within(t, twelve.s, five.s, 6 * table_error(p),
                           "the map from 12 to 12+k and from 5 to 5+k, sine");
        }
}

static void law_linear_map(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, 0, 20, linear_map);
}

/* The law above holds for any rotation; this one names its angle: from p to p+1 the pair turns
 * by w. */
static void turns_by_omega(struct tally *t, const struct problem *p, const struct copy *table)
{
    int64_t n = p->freqs.dim / 2;
    for (int64_t i = 0; i < n; i++) {
        bool endpoint = p->freqs.convention == POSENC_ENDPOINT;
        double exponent = !endpoint ? 2.0 * (double)i / (double)p->freqs.dim
                          : n > 1   ? (double)i / (double)(n - 1)
                                    : 0.0;
        double omega = pow(p->freqs.rope_theta, -exponent);
        /* hf_f32: exponent, power and reciprocal are rounded, at most 9 units of 2^-24 of w;
         * torch_exp_f32: the exponent twice, then its exp, less than that.  ggml_f32: its exponent
         * and power are, i times over: 2^-24 w (i + (2i/d) ln theta), at most d/50 + 1/e units. */
        double bound =
            3 * table_error(p) + (p->freqs.profile == POSENC_EXACT ? 0.0 : 16 * 0x1p-24);
        struct pair step = map_of(pair_at(p, table, 3, i), pair_at(p, table, 4, i));
        require_within(t, step.s, sin(omega), bound, "sine of the step from position 3 to 4");
        require_within(t, step.c, cos(omega), bound, "cosine of the step from position 3 to 4");
        struct pair at = pair_at(p, table, 4, i);
        require_within(t, at.s, sin(4 * omega), 4 * bound, "sine at position 4");
        require_within(t, at.c, cos(4 * omega), 4 * bound, "cosine at position 4");
    }
}

static void law_frequency(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, 0, 5, turns_by_omega);
}

/* ---- Products, norms, bounds ---- */

static double row_product(const struct problem *p, const struct copy *table, int64_t a,
                          int64_t b)
{
    double sum = 0.0;
    for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
        struct pair u = pair_at(p, table, a, i), v = pair_at(p, table, b, i);
        sum += u.s * v.s + u.c * v.c;
    }
    return sum;
}

/* n = dim/2 pairs of 3 E, for either of two rows compared. */
static void product_law(struct tally *t, const struct problem *p, const struct copy *table)
{
    double bound = 6 * table_error(p) * (double)(p->freqs.dim / 2);
    for (int64_t k = 0; k < 12; k++)
        for (int64_t r = 1; r + k < p->tokens; r++)
            require_within(t, row_product(p, table, r, r + k), row_product(p, table, 0, k),
                           bound, "PE(p) . PE(p+k)");
}

static void law_product(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, 0, 40, product_law);
}

/* |PE| = sqrt(n): s^2 + c^2 = 1 within 3 E per pair, so the norm within 3 n E / (2 sqrt n). */
static void norm_law(struct tally *t, const struct problem *p, const struct copy *table)
{
    double n = (double)(p->freqs.dim / 2);
    for (int64_t r = 0; r < p->tokens; r++)
        require_within(t, sqrt(row_product(p, table, r, r)), sqrt(n),
                       3 * sqrt(n) * table_error(p), "norm of a row");
}

static void law_norm(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, 0, 66, norm_law);
    for_tables(t, kernel, 1000, 66, norm_law);
}

static void bounded(struct tally *t, const struct problem *p, const struct copy *table)
{
    (void)p;
    for (int o = 0; o < table->n; o++)
        for (int64_t i = 0; i < table->rows[o] * table->width[o]; i++)
            require(t, fabsf(table->data[o][i]) <= 1.0f,
                    "an entry is %.9g, more than 1 in magnitude", (double)table->data[o][i]);
}

static void law_bounded(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, -40, 400, bounded);
}

/* At position 0 every sine is 0 and every cosine 1, exactly. */
static void origin(struct tally *t, const struct problem *p, const struct copy *table)
{
    for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
        struct pair zero = pair_at(p, table, 0, i);
        require(t, zero.s == 0.0 && zero.c == 1.0,
                "position 0 pair %lld is (%.9g, %.9g), not (0, 1)", (long long)i, zero.s,
                zero.c);
    }
}

static void law_origin(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, 0, 2, origin);
}

/* Positions -20 .. 20: the sine flips, the cosine stays, to the bit. */
static void mirror(struct tally *t, const struct problem *p, const struct copy *table)
{
    for (int64_t r = 1; r <= 20; r++)
        for (int64_t i = 0; i < p->freqs.dim / 2; i++) {
            struct pair right = pair_at(p, table, 20 + r, i),
                        left = pair_at(p, table, 20 - r, i);
            require(t, left.s == -right.s && left.c == right.c,
                    "position -%lld pair %lld is (%.9g, %.9g), the mirror image of (%.9g, "
                    "%.9g) it is not",
                    (long long)r, (long long)i, left.s, left.c, right.s, right.c);
        }
}

static void law_mirror(struct tally *t, enum posenc_kernel kernel)
{
    for_tables(t, kernel, -20, 41, mirror);
}

/* ---- Rows are unique ---- */

/* Pair 0 turns by 1 a token; below 4096 no multiple of a turn is nearer than 6e-5 (710 tokens),
 * 250 E. */
static int by_row(const void *a, const void *b) { return memcmp(a, b, 64 * sizeof(float)); }

static void law_unique(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < 2; setting++) {
        struct problem p = table_problem(kernel, 64, setting, 0, 4096);
        struct copy table;
        if (run_problem(t, &p, NULL, NULL, &table)) {
            qsort(table.data[0], 4096, 64 * sizeof(float), by_row);
            for (int64_t r = 1; r < 4096; r++)
                require(t, by_row(copy_row(&table, 0, r - 1), copy_row(&table, 0, r)) != 0,
                        "two of 4096 positions have the same row");
        }
        copy_free(&table);
        t->problem = NULL;
    }
}

/* ---- d_model = 4 by hand ---- */

/* sin p, cos p, sin p/100, cos p/100 for p = 0 .. 3: 300-bit values rounded to f32. */
static const float by_hand[4][4] = {
    { 0.0f, 1.0f, 0.0f, 1.0f },
    { 0x1.aed548p-1f, 0x1.14a28p-1f, 0x1.47acaep-7f, 0x1.fff972p-1f },
    { 0x1.d18f6ep-1f, -0x1.aa2266p-2f, 0x1.47a87cp-6f, 0x1.ffe5cap-1f },
    { 0x1.210386p-3f, -0x1.fae04cp-1f, 0x1.eb724p-6f, 0x1.ffc506p-1f },
};

/* 2 ulp: the most any backend here promises near 0.  The template family's own promise, 1, is
 * the accuracy suite's. */
static void law_by_hand(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = table_problem(kernel, 4, 0, 0, 4);
    struct copy table;
    if (run_problem(t, &p, NULL, NULL, &table))
        for (int64_t r = 0; r < 4; r++)
            for (int64_t i = 0; i < 2; i++) {
                struct pair got = pair_at(&p, &table, r, i);
                const float *want = &by_hand[r][2 * i];
                require_within(t, got.s, (double)want[0], 2 * 0x1p-23 * fabs((double)want[0]),
                               "d_model 4, sine");
                require_within(t, got.c, (double)want[1], 2 * 0x1p-23 * fabs((double)want[1]),
                               "d_model 4, cosine");
            }
    copy_free(&table);
    t->problem = NULL;
}

/* ---- Layouts, odd dimensions, scale ---- */

static void law_layouts(struct tally *t, enum posenc_kernel kernel)
{
    for (int64_t dim = 1; dim < 70; dim += dim < 40 ? 1 : 6) {
        struct problem p = table_problem(kernel, dim, 0, 60, 7);
        struct copy interleaved;
        bool ok = run_problem(t, &p, NULL, NULL, &interleaved);
        for (int layout = POSENC_SIN_COS; ok && layout <= POSENC_COS_SIN; layout++) {
            struct problem q = p;
            struct copy halves;
            q.layout = (enum posenc_layout)layout;
            if (run_problem(t, &q, NULL, NULL, &halves))
                for (int64_t r = 0; r < 7; r++)
                    for (int64_t i = 0; i < dim / 2; i++) {
                        const float *a = copy_row(&interleaved, 0, r),
                                    *b = copy_row(&halves, 0, r);
                        require_same_bits(t, &b[sine_at(&q, i)], &a[2 * i], 1,
                                          "sine in another layout");
                        require_same_bits(t, &b[cosine_at(&q, i)], &a[2 * i + 1], 1,
                                          "cosine in another layout");
                    }
            copy_free(&halves);
        }
        copy_free(&interleaved);
        t->problem = NULL;
    }
}

static void law_odd(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t odd[] = { 1, 3, 7, 33, 65 };
    for (int d = 0; d < 5; d++)
        for (int layout = 0; layout < 3; layout++) {
            struct problem p = table_problem(kernel, odd[d], 0, 1, 9);
            struct copy table;
            p.layout = (enum posenc_layout)layout;
            double omega = pow(10000.0, -(double)(odd[d] - 1) / (double)odd[d]);
            bool ok = run_problem(t, &p, NULL, NULL, &table);
            for (int64_t r = 0; ok && r < p.tokens; r++) {
                float last = copy_row(&table, 0, r)[odd[d] - 1];
                if (p.layout == POSENC_INTERLEAVED)
                    require_within(t, (double)last, sin((double)(r + 1) * omega), TABLE_ERROR,
                                   "odd dim, interleaved, ends in a sine");
                else
                    require(t, bits_of(last) == 0,
                            "odd dim, halves: last column is %.9g, not 0", (double)last);
            }
            copy_free(&table);
            t->problem = NULL;
        }
}

/* Powers of two scale the table exactly; sqrt(2/d) within the entry's error and one more
 * rounding. */
static void law_scale(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        struct problem p = table_problem(kernel, 66, setting, 3, 9), eighth = p, root = p;
        struct copy one = { .n = 0 }, two = { .n = 0 }, three = { .n = 0 };
        eighth.scale = 0.125;
        root.scale = sqrt(2.0 / 66.0);
        if (run_problem(t, &p, NULL, NULL, &one) && run_problem(t, &eighth, NULL, NULL, &two) &&
            run_problem(t, &root, NULL, NULL, &three))
            for (int64_t i = 0; i < one.rows[0] * one.width[0]; i++) {
                float want = 0.125f * one.data[0][i];
                require_same_bits(t, &two.data[0][i], &want, 1, "scale 1/8");
                require_within(t, (double)three.data[0][i], root.scale * (double)one.data[0][i],
                               TABLE_ERROR * root.scale + 0x1p-24, "scale sqrt(2/d)");
            }
        copy_free(&one);
        copy_free(&two);
        copy_free(&three);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_table[] = {
    { "linear-map", law_linear_map, KERNELS(K(sinusoidal), K(rope_table)) },
    { "frequency", law_frequency, KERNELS(K(sinusoidal), K(rope_table)) },
    { "product-depends-on-distance", law_product, KERNELS(K(sinusoidal), K(rope_table)) },
    { "norm", law_norm, KERNELS(K(sinusoidal), K(rope_table)) },
    { "bounded", law_bounded, KERNELS(K(sinusoidal), K(rope_table)) },
    { "origin", law_origin, KERNELS(K(sinusoidal), K(rope_table)) },
    { "mirror", law_mirror, KERNELS(K(sinusoidal), K(rope_table)) },
    { "rows-unique", law_unique, KERNELS(K(sinusoidal)) },
    { "d-model-4", law_by_hand, KERNELS(K(sinusoidal), K(rope_table)) },
    { "layouts-are-permutations", law_layouts, KERNELS(K(sinusoidal)) },
    { "odd-dim", law_odd, KERNELS(K(sinusoidal)) },
    { "scale", law_scale, KERNELS(K(sinusoidal)) },
};
const int n_laws_table = sizeof laws_table / sizeof laws_table[0];
