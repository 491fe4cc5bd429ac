/*
 * Laws of the sinusoidal table and of cos and sin of the rotary angles.  E is TABLE_ERROR times
 * the scale; where a sum of products of two entries of the circle is formed, as
 *
 *     cos(k w) = s(p) s(p+k) + c(p) c(p+k),     |s|, |c| <= 1,  s^2 + c^2 = 1,
 *
 * errors of E in each factor give at most E (|s| + |c| + |s'| + |c'|) <= 2 sqrt(2) E, which we
 * call 3 E to cover E^2.
 *
 * The f32 profiles turn by some frequency w' of their own, to which the laws of a turn apply, and
 * round the angle; with u = 2^-24 an entry is off by what the angle is, so E grows by
 *
 *     hf_f32, torch_exp_f32   p u             the product p w' is rounded once, and w' <= 1
 *     ggml_f32                p u (1 + d/50)  w' = s^i of the f32 scale s, and the product is rounded
 *                                             i times: off by i p s^i u, where i theta^(-2i/d) is at
 *                                             most d/(2 e ln theta), d/50 for theta = 10000; the 1
 *                                             covers (1 + u)^i - 1 - i u
 *
 * How far w' is from w: turns_by_omega.
 *
 * Vaswani et al. 1706.03762 section 3.5: PE(p+k) is a linear function of PE(p) for any fixed k.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t dims[] = { 2, 6, 64, 130 };
enum { DIMS = sizeof dims / sizeof dims[0], SETTINGS = 8 };

/* One of SETTINGS settings of profile, convention and layout. */
static struct problem table_problem(enum posenc_kernel kernel, int64_t dim, int setting,
                                    int64_t first, int64_t tokens)
{
    struct problem p = problem_default(kernel);
    p.freqs.dim = dim;
    p.first = first;
    p.tokens = tokens;
    p.freqs.profile = setting == 6   ? POSENC_GGML_F32
                      : setting == 7 ? POSENC_TORCH_EXP_F32
                      : setting & 1  ? POSENC_HF_F32
                                     : POSENC_EXACT;
    if (kernel == POSENC_KERNEL_sinusoidal) {
        p.layout = (enum posenc_layout)(setting % 3);
        p.freqs.convention = setting < 3 || setting == 6 ? POSENC_EXPONENT : POSENC_ENDPOINT;
    } else if (setting >= 4 && setting != 6) {
        p.freqs.rope_theta = 500000.0;
    }
    return p;
}

static double table_error(const struct problem *p)
{
    double last = (double)(llabs(p->first) + p->tokens);
    if (p->freqs.profile == POSENC_EXACT)
        return TABLE_ERROR;
    double iterated = p->freqs.profile == POSENC_GGML_F32 ? (double)p->freqs.dim / 50.0 : 0.0;
    return TABLE_ERROR + last * (1.0 + iterated) * 0x1p-24;
}

/* Where sine and cosine of pair i stand in a row. */
static int64_t sine_at(const struct problem *p, int64_t i)
{
    int64_t half = p->freqs.dim / 2;
    return p->layout == POSENC_INTERLEAVED ? 2 * i : p->layout == POSENC_SIN_COS ? i : half + i;
}

static int64_t cosine_at(const struct problem *p, int64_t i)
{
    int64_t half = p->freqs.dim / 2;
    return p->layout == POSENC_INTERLEAVED ? 2 * i + 1
           : p->layout == POSENC_SIN_COS   ? half + i
                                           : i;
}

struct pair {
    double s, c;
};

static struct pair pair_at(const struct problem *p, const struct copy *table, int64_t r,
                           int64_t i)
{
    if (table->n == 2) /* rope_table: cos, sin */
        return (struct pair){ (double)copy_row(table, 1, r)[i],
                              (double)copy_row(table, 0, r)[i] };
    const float *row = copy_row(table, 0, r);
    return (struct pair){ (double)row[sine_at(p, i)], (double)row[cosine_at(p, i)] };
}

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

/* The attention factor m of YaRN and of LongRoPE multiplies both: c^2 + s^2 = m^2 within 3 m E,
 * and c = m at position 0. */
static void law_attention_factor(struct tally *t, enum posenc_kernel kernel)
{
    static const double factors[] = { 0.0, 1.5, 0.25 };
    for (int k = 0; k < 6; k++)
        for (int profile = POSENC_EXACT; profile <= POSENC_GGML_F32; profile++) {
            struct problem p = table_problem(kernel, 64, 0, 0, 20);
            struct copy table;
            bool yarn = k < 3;
            p.freqs.profile = (enum posenc_profile)profile;
            p.freqs.scaling = yarn ? POSENC_SCALING_YARN : POSENC_SCALING_LONGROPE;
            p.freqs.factor = 4.0;
            p.freqs.original_max_position_embeddings = 4096.0;
            p.freqs.attention_factor = factors[k % 3];
            p.short_factor_last = 1.5;
            p.long_factor_last = 4.0;
            double derived = yarn ? 0.1 * log(4.0) + 1.0 : sqrt(1.0 + log(4.0) / log(4096.0));
            double m = factors[k % 3] > 0.0 ? factors[k % 3] : derived;
            if (run_problem(t, &p, NULL, NULL, &table))
                for (int64_t r = 0; r < p.tokens; r++)
                    for (int64_t i = 0; i < 32; i++) {
                        struct pair at = pair_at(&p, &table, r, i);
                        double bound = 4 * m * (m > 1 ? m : 1) * table_error(&p);
                        require_within(t, at.s * at.s + at.c * at.c, m * m, bound,
                                       "cos^2 + sin^2, the factor squared");
                    }
            copy_free(&table);
            t->problem = NULL;
        }
}

/* Scaling with nothing to scale: factor 1, a sequence within the model's own length, divisors of
 * 1, all pairs. */
static struct problem neutral(enum posenc_kernel kernel, int setting, int way)
{
    static const enum posenc_scaling scaling[] = {
        POSENC_SCALING_LINEAR,  POSENC_SCALING_NTK,      POSENC_SCALING_DYNAMIC,
        POSENC_SCALING_DYNAMIC, POSENC_SCALING_LONGROPE, POSENC_SCALING_PROPORTIONAL
    };
    struct problem p = table_problem(kernel, 64, setting, -3, 70);
    p.freqs.scaling = scaling[way];
    p.freqs.factor = scaling[way] == POSENC_SCALING_DYNAMIC ? 4.0 : 1.0;
    p.freqs.max_position_embeddings = 4096.0;
    p.freqs.original_max_position_embeddings = 4096.0;
    p.freqs.seq_len = way == 2 ? 100 : way == 3 ? 4096 : 5000;
    p.short_factor_last = p.long_factor_last = 1.0;
    return p;
}

static void law_neutral(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < 4; setting++) {
        struct problem p = table_problem(kernel, 64, setting, -3, 70);
        struct copy plain, scaled;
        bool ok = run_problem(t, &p, NULL, NULL, &plain);
        for (int way = 0; way < 6 && ok; way++) {
            struct problem q = neutral(kernel, setting, way);
            if (run_problem(t, &q, NULL, NULL, &scaled))
                require_same_copy(t, &scaled, &plain, "scaling with nothing to scale");
            copy_free(&scaled);
        }
        copy_free(&plain);
        t->problem = NULL;
    }
}

/* A quarter of 48 pairs turns as it does without scaling; the others rest, at (0, 1) with the
 * position's sign. */
static void law_share(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < 2; setting++) {
        struct problem p = table_problem(kernel, 96, setting, -20, 41), q = p;
        struct copy plain = { .n = 0 }, share = { .n = 0 };
        q.freqs.scaling = POSENC_SCALING_PROPORTIONAL;
        q.freqs.partial_rotary_factor = 0.25;
        bool ok =
            run_problem(t, &p, NULL, NULL, &plain) && run_problem(t, &q, NULL, NULL, &share);
        for (int64_t r = 0; ok && r < p.tokens; r++)
            for (int64_t i = 0; i < 48; i++) {
                struct pair at = pair_at(&q, &share, r, i),
                            as = i < 12 ? pair_at(&p, &plain, r, i) : (struct pair){ 0.0, 1.0 };
                bool sign = i < 12 || (signbit(at.s) != 0) == (p.first + r < 0);
                require(t, at.s == as.s && at.c == as.c && sign,
                        "position %lld pair %lld is (%.9g, %.9g), not (%.9g, %.9g)",
                        (long long)(p.first + r), (long long)i, at.s, at.c, as.s, as.c);
            }
        copy_free(&plain);
        copy_free(&share);
        t->problem = NULL;
    }
}

/* Resonance: pair i is at p + lambda where it was at p, lambda = round(2 pi theta^(2i/d)), and its sine is
 * 0, nothing less, at whole multiples of lambda / 2. */
static void law_period(struct tally *t, enum posenc_kernel kernel)
{
    enum { PAIRS = 8 };
    struct problem p = table_problem(kernel, 2 * PAIRS, 0, -20, 41), q = p;
    struct copy here, there;
    p.freqs.scaling = q.freqs.scaling = POSENC_SCALING_RESONANCE;
    if (run_problem(t, &p, NULL, NULL, &here))
        for (int64_t i = 0; i < PAIRS; i++) {
            const double turn = 6.283185307179586;
            const int64_t lambda = llround(turn * pow(p.freqs.rope_theta, (double)i / PAIRS));
            q.first = p.first + lambda;
            if (run_problem(t, &q, NULL, NULL, &there))
                for (int64_t r = 0; r < p.tokens; r++) {
                    struct pair at = pair_at(&p, &here, r, i),
                                later = pair_at(&q, &there, r, i);
                    require_within(t, later.s, at.s, 2 * TABLE_ERROR, "sin a period later");
                    require_within(t, later.c, at.c, 2 * TABLE_ERROR, "cos a period later");
                    require(t, 2 * (q.first + r) % lambda != 0 || later.s == 0.0,
                            "position %lld pair %lld: sin is %.9g, not 0",
                            (long long)(q.first + r), (long long)i, later.s);
                }
            copy_free(&there);
        }
    copy_free(&here);
    t->problem = NULL;
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
    { "attention-factor", law_attention_factor, KERNELS(K(rope_table)) },
    { "neutral-scaling", law_neutral, KERNELS(K(sinusoidal), K(rope_table)) },
    { "proportional-share", law_share, KERNELS(K(sinusoidal), K(rope_table)) },
    { "resonance-period", law_period, KERNELS(K(sinusoidal), K(rope_table)) },
};
const int n_laws_table = sizeof laws_table / sizeof laws_table[0];
