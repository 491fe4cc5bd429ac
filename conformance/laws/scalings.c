/*
 * Laws of scaled frequencies: what a family multiplies, what it leaves alone, what repeats.
 */
#include "pairs.h"

#include <math.h>

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
const struct law laws_scalings[] = {
    { "attention-factor", law_attention_factor, KERNELS(K(rope_table)) },
    { "neutral-scaling", law_neutral, KERNELS(K(sinusoidal), K(rope_table)) },
    { "proportional-share", law_share, KERNELS(K(sinusoidal), K(rope_table)) },
    { "resonance-period", law_period, KERNELS(K(sinusoidal), K(rope_table)) },
};
const int n_laws_scalings = sizeof laws_scalings / sizeof laws_scalings[0];
