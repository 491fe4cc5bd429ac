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
    const number x = mp_mul(mp_div(plan->omega[pair], mp_pi()), mp_of(kind ? 2 : 1));
    number rest = x, h0 = mp_of(0), h1 = mp_of(1), k0 = mp_of(1), k1 = mp_of(0);
    int64_t n = 0;
    for (int term = 0; term < 64 && n < most; term++) {
        const number a = mp_floor(rest);
        const number h = mp_add(h0, mp_mul(a, h1)), k = mp_add(k0, mp_mul(a, k1));
        rest = mp_sub(rest, a);
        if (mpfr_cmp_d(k, 0x7fffffff) > 0)
            break;
        const bool odd = !mpfr_integer_p(mp_div(h, mp_of(2)));
        const bool counts = kind ? odd : mpfr_sgn(h) > 0;
        if (counts && mpfr_cmp_d(k, 1) > 0) {
            distance[n] = fabs(mp_double(mp_sub(mp_mul(x, k), h)));
            positions[n++] = (int64_t)mp_double(k);
        }
        if (mpfr_zero_p(rest))
            break;
        rest = mp_div(mp_of(1), rest);
        h0 = h1;
        h1 = h;
        k0 = k1;
        k1 = k;
    }
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

/* The n nearest of all pairs, of kinds from `kind` to `last`, the nearest first; of halves the odd
 * ones below 2^24. */
static int64_t nearest(const struct reference_plan *plan, int kind, int last, bool halves,
                       int64_t n, int64_t *positions)
{
    enum { MOST = 64 };
    struct candidate *all = calloc(2 * (size_t)plan->n_pairs * MOST, sizeof *all);
    int64_t found = 0, taken = 0, p[MOST];
    double distance[MOST];
    if (!all)
        abort();
    for (; kind <= last; kind++)
        for (int64_t i = 0; i < plan->n_pairs; i++) {
            const int64_t here = pair_convergents(plan, i, kind, MOST, p, distance);
            for (int64_t k = 0; k < here; k++)
                if (!halves || (p[k] % 2 != 0 && p[k] < 1 << 24))
                    all[found++] = (struct candidate){ distance[k], p[k] };
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
    return taken;
}

int64_t hard_positions(const struct reference_plan *plan, int kind, int64_t n,
                       int64_t *positions)
{
    const int64_t taken = nearest(plan, kind, kind, false, n, positions);
    qsort(positions, (size_t)taken, sizeof *positions, by_value);
    return taken;
}

int64_t hard_halves(const struct posenc_freqs_spec *spec, int64_t n, int64_t *numerators)
{
    struct reference_plan plan;
    reference_plan_init(&plan, spec);
    for (int64_t i = 0; i < plan.n_pairs; i++) /* steps of half a frequency */
        mpfr_div_ui(plan.omega[i], plan.omega[i], 2, MPFR_RNDN);
    const int64_t taken = nearest(&plan, 0, 1, true, n, numerators);
    reference_plan_clear(&plan);
    return taken;
}
