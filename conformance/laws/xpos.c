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
#include "laws.h"

#include <math.h>

enum { TOKENS = 70, DIM = 64, SETTINGS = 4 };

static struct problem xpos_problem(enum posenc_kernel kernel, int setting, bool keys)
{
    struct problem p = problem_default(kernel);
    p.freqs.dim = DIM;
    p.tokens = TOKENS;
    p.first = setting & 1 ? 1000 : -20;
    p.freqs.xpos_scale_base = setting & 2 ? 32.0 : 512.0;
    p.freqs.xpos_centre = setting & 1 ? 1040.0 : 0.0;
    p.freqs.xpos_inverse = keys;
    return p;
}

static double zeta_of(int64_t pair) { return (2.0 * (double)pair + 0.4 * DIM) / (1.4 * DIM); }

/* The product of pair i of a query at row m and a key at row n. */
static double product_of(const struct copy *queries, const struct copy *keys, int64_t m,
                         int64_t n, int64_t i)
{
    double sum = 0.0;
    for (int o = 0; o < 2; o++)
        sum += (double)copy_row(queries, o, m)[i] * (double)copy_row(keys, o, n)[i];
    return sum;
}

static void law_relative(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        struct problem q = xpos_problem(kernel, setting, false),
                       k = xpos_problem(kernel, setting, true);
        struct copy queries = { .n = 0 }, keys = { .n = 0 };
        if (run_problem(t, &q, NULL, NULL, &queries) && run_problem(t, &k, NULL, NULL, &keys))
            for (int64_t m = 0; m < TOKENS; m += 3)
                for (int64_t n = 0; n < TOKENS; n++)
                    for (int64_t i = 0; i < DIM / 2; i++) {
                        const double d = (double)(m - n);
                        const double scale = pow(zeta_of(i), d / q.freqs.xpos_scale_base);
                        const double omega = pow(10000.0, -2.0 * (double)i / DIM);
                        require_within(t, product_of(&queries, &keys, m, n, i),
                                       scale * cos(d * omega), 3 * TABLE_ERROR * scale,
                                       "the product of a query and a key");
                    }
        copy_free(&queries);
        copy_free(&keys);
        t->problem = NULL;
    }
}

/* The length of a pair. */
static double length_of(const struct copy *table, int64_t r, int64_t i)
{
    return hypot((double)copy_row(table, 0, r)[i], (double)copy_row(table, 1, r)[i]);
}

static void law_decays(struct tally *t, enum posenc_kernel kernel)
{
    for (int setting = 0; setting < SETTINGS; setting++) {
        struct problem q = xpos_problem(kernel, setting, false),
                       k = xpos_problem(kernel, setting, true);
        struct copy queries = { .n = 0 }, keys = { .n = 0 };
        if (run_problem(t, &q, NULL, NULL, &queries) && run_problem(t, &k, NULL, NULL, &keys))
            for (int64_t m = 1; m < TOKENS; m++)
                for (int64_t i = 0; i < DIM / 2; i++) {
                    const double near = length_of(&queries, m - 1, i) * length_of(&keys, 0, i);
                    const double far = length_of(&queries, m, i) * length_of(&keys, 0, i);
                    require(t, far < near,
                            "pair %lld at distance %lld can give %.9g, one nearer %.9g",
                            (long long)i, (long long)m, far, near);
                }
        copy_free(&queries);
        copy_free(&keys);
        t->problem = NULL;
    }
}

static void law_at_centre(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t centres[] = { 0, 7, -77, 64, 131072 };
    for (int k = 0; k < 10; k++) {
        struct problem p = xpos_problem(kernel, k % 2, k % 2), plain;
        struct copy got = { .n = 0 }, want = { .n = 0 };
        const int64_t row = k % 5 * 9;
        p.freqs.xpos_centre = (double)centres[k / 2];
        p.first = centres[k / 2] - row;
        plain = p;
        plain.freqs.xpos_scale_base = 0.0;
        if (run_problem(t, &p, NULL, NULL, &got) && run_problem(t, &plain, NULL, NULL, &want))
            for (int o = 0; o < 2; o++)
                require_same_bits(t, copy_row(&got, o, row), copy_row(&want, o, row), DIM / 2,
                                  "at the centre of xPos");
        copy_free(&got);
        copy_free(&want);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_xpos[] = {
    { "xpos-relative", law_relative, KERNELS(K(rope_table)) },
    { "xpos-decays", law_decays, KERNELS(K(rope_table)) },
    { "xpos-at-centre", law_at_centre, KERNELS(K(rope_table)) },
};
const int n_laws_xpos = sizeof laws_xpos / sizeof laws_xpos[0];
