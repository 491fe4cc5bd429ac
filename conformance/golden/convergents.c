/*
 * Positions at which a sine or cosine almost vanishes.
 *
 * |sin(p omega)| is small where p omega is near h pi, so p is the denominator of a convergent
 * h/p of the continued fraction of omega/pi; |cos(p omega)| where 2 p omega / pi is near an odd
 * integer (Khinchin, "Continued Fractions", theorem 17: nothing below the next denominator is
 * nearer).
 */
#include "golden.h"

#include <math.h>
#include <stdlib.h>

int64_t pair_convergents(const struct reference_plan *plan, int64_t pair, int kind,
                         int64_t most, int64_t *positions, double *distance)
{
    mpfr_t x, rest, pi;
    mpfr_inits2(PRECISION, x, rest, pi, (mpfr_ptr)0);
    mpfr_const_pi(pi, MPFR_RNDN);
    mpfr_div(x, plan->omega[pair], pi, MPFR_RNDN);
    mpfr_mul_ui(x, x, kind ? 2 : 1, MPFR_RNDN);
    mpfr_set(rest, x, MPFR_RNDN);
    mpz_t h0, h1, k0, k1, a;
    mpz_inits(h0, h1, k0, k1, a, (mpz_ptr)0);
    mpz_set_ui(h1, 1);
    mpz_set_ui(k0, 1);
    int64_t n = 0;
    for (int term = 0; term < 64 && n < most; term++) {
        mpfr_get_z(a, rest, MPFR_RNDD);
        mpfr_sub_z(rest, rest, a, MPFR_RNDN);
        mpz_addmul(h0, a, h1);
        mpz_swap(h0, h1);
        mpz_addmul(k0, a, k1);
        mpz_swap(k0, k1);
        if (mpz_cmp_ui(k1, 0x7fffffff) > 0 || mpfr_zero_p(rest))
            break;
        const bool counts = kind == 0 ? mpz_sgn(h1) > 0 : mpz_odd_p(h1) != 0;
        if (counts && mpz_cmp_ui(k1, 1) > 0) {
            mpfr_t d;
            mpfr_init2(d, PRECISION);
            mpfr_mul_z(d, x, k1, MPFR_RNDN);
            mpfr_sub_z(d, d, h1, MPFR_RNDN);
            distance[n] = fabs(mpfr_get_d(d, MPFR_RNDN));
            positions[n++] = (int64_t)mpz_get_ui(k1);
            mpfr_clear(d);
        }
        mpfr_ui_div(rest, 1, rest, MPFR_RNDN);
    }
    mpz_clears(h0, h1, k0, k1, a, (mpz_ptr)0);
    mpfr_clears(x, rest, pi, (mpfr_ptr)0);
    return n;
}

struct candidate {
    double distance;
    int64_t position;
};

static int by_distance(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance < y->distance ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t hard_positions(const struct reference_plan *plan, int kind, int64_t n,
                       int64_t *positions)
{
    enum { MOST = 64 };
    struct candidate *all = calloc((size_t)plan->n_pairs * MOST, sizeof *all);
    if (!all)
        abort();
    int64_t found = 0, taken = 0;
    for (int64_t i = 0; i < plan->n_pairs; i++) {
        int64_t p[MOST];
        double d[MOST];
        const int64_t here = pair_convergents(plan, i, kind, MOST, p, d);
        for (int64_t k = 0; k < here; k++)
            all[found++] = (struct candidate){ d[k], p[k] };
    }
    qsort(all, (size_t)found, sizeof *all, by_distance);
    for (int64_t c = 0; c < found && taken < n; c++) {
        bool seen = false;
        for (int64_t k = 0; k < taken; k++)
            seen = seen || positions[k] == all[c].position;
        if (!seen)
            positions[taken++] = all[c].position;
    }
    free(all);
    qsort(positions, (size_t)taken, sizeof *positions, by_value);
    return taken;
}

struct hard {
    int64_t numerator;
    double distance;
};

int64_t hard_halves(const struct posenc_freqs_spec *spec, int64_t n, int64_t *numerators)
{
    enum { MOST = 64 };
    struct hard best[MOST] = { { 0, 0 } };
    struct reference_plan plan;
    int64_t found = 0, m[MOST];
    double distance[MOST];
    reference_plan_init(&plan, spec);
    for (int64_t i = 0; i < plan.n_pairs; i++) /* steps of half a frequency */
        mpfr_div_ui(plan.omega[i], plan.omega[i], 2, MPFR_RNDN);
    for (int64_t k = 0; k < 2 * plan.n_pairs; k++) {
        const int64_t here = pair_convergents(&plan, k / 2, (int)(k % 2), MOST, m, distance);
        for (int64_t j = 0; j < here; j++) {
            if (m[j] % 2 == 0 || m[j] >= 1 << 24)
                continue;
            int64_t at = found < n ? found++ : n - 1;
            if (at == n - 1 && best[at].numerator && best[at].distance <= distance[j])
                continue;
            for (; at > 0 && best[at - 1].distance > distance[j]; at--)
                best[at] = best[at - 1];
            best[at] = (struct hard){ m[j], distance[j] };
        }
    }
    reference_plan_clear(&plan);
    for (int64_t k = 0; k < found; k++)
        numerators[k] = best[k].numerator;
    return found;
}
