/*
 * Frequencies by MPFR, straight from the formulas: omega_i = theta^(-2i/d), or theta^(-i/(n-1)) with
 * n = d/2, before scalings.c changes them.  The orders in which frameworks take these steps are in
 * frameworks.c.  Where pairs are shared between the axes of a position (2409.12191):
 *
 *     chunked       sections one after the other
 *     interleaved   the k-th pair of axis a is pair 3k + a of all; what is left turns with axis 0
 *     restarted     as chunked, a section of n pairs having omega_j = theta^(-2j/(2n))
 *     dealt         as chunked, pair j of an axis having the frequency of pair rank(axis, j) of all
 *     alternating   as restarted, pair j of an axis being pair rank(axis, j) of all
 *
 * where rank(axis, j) counts the pairs (a, k) that come before, by k and then by axis.
 */
#include "scalings.h"

#include <math.h>
#include <stdlib.h>

struct section reference_section(const struct posenc_freqs_spec *spec, int64_t i)
{
    struct section section = { 0, 0, spec->mrope_section[0] };
    if (section.n == 0)
        return (struct section){ 0, 0, spec->dim / 2 };
    while (section.axis < 2 && i >= section.first + section.n) {
        section.first += section.n;
        section.n = spec->mrope_section[++section.axis];
    }
    return section;
}

static int64_t rank(const struct posenc_freqs_spec *spec, int axis, int64_t j)
{
    int64_t before = 0;
    for (int a = 0; a < 3; a++) {
        const int64_t n = spec->mrope_section[a], to = j + (a < axis);
        before += to < n ? to : n;
    }
    return before;
}

/* The axis and place of the pair of this rank. */
static int unrank(const struct posenc_freqs_spec *spec, int64_t wanted, int64_t *j)
{
    for (int axis = 0;; axis++)
        for (*j = 0; *j < spec->mrope_section[axis]; ++*j)
            if (rank(spec, axis, *j) == wanted)
                return axis;
}

int reference_axis(const struct posenc_freqs_spec *spec, int64_t i)
{
    const int turn = (int)(i % 3);
    int64_t j;
    if (spec->mrope_layout == POSENC_MROPE_ALTERNATING && spec->mrope_section[0] != 0)
        return unrank(spec, i, &j);
    if (spec->mrope_layout != POSENC_MROPE_INTERLEAVED || spec->mrope_section[0] == 0)
        return reference_section(spec, i).axis;
    return i / 3 < spec->mrope_section[turn] ? turn : 0;
}

void reference_exponent(const struct posenc_freqs_spec *spec, int64_t i, long *numerator,
                        long *denominator)
{
    const struct section section = reference_section(spec, i);
    const bool restarts =
        spec->mrope_layout == POSENC_MROPE_RESTARTED && spec->mrope_section[0] != 0;
    const long n = (long)spec->dim / 2;
    *numerator = 2 * (long)(restarts ? i - section.first : i);
    *denominator = (long)(restarts ? 2 * section.n : spec->dim);
    if (spec->mrope_section[0] != 0 && spec->mrope_layout == POSENC_MROPE_DEALT)
        *numerator = 2 * (long)rank(spec, section.axis, i - section.first);
    if (spec->mrope_section[0] != 0 && spec->mrope_layout == POSENC_MROPE_ALTERNATING) {
        int64_t j;
        *denominator = 2 * (long)spec->mrope_section[unrank(spec, i, &j)];
        *numerator = 2 * (long)j;
    }
    if (spec->convention == POSENC_ENDPOINT && !restarts) {
        *numerator = n > 1 ? (long)i : 0;
        *denominator = n > 1 ? n - 1 : 1;
    }
}

static number turn_over(number a) { return mp_div(mp_mul(mp_pi(), mp_of(2)), a); }

int reference_twelfth(const struct reference_plan *plan, int64_t pair, double position)
{
    if (!reference_scaling(plan->spec)->whole || plan->spec->values)
        return -1;
    const number wavelength = mp_round(turn_over(plan->omega[pair]));
    const number twelfths = mp_div(mp_mul(mp_of(fabs(position)), mp_of(12)), wavelength);
    return mpfr_integer_p(twelfths) ? (int)fmod(mp_double(twelfths), 12) : -1;
}

number reference_omega(const struct posenc_freqs_spec *spec, int64_t i)
{
    const struct reference_scaling *scaling = reference_scaling(spec);
    if (spec->values)
        return mp_of(spec->values[i]);
    if (scaling->rests && scaling->rests(spec, i))
        return mp_of(0);
    long numerator, denominator;
    reference_exponent(spec, i, &numerator, &denominator);
    number theta = mp_of(spec->rope_theta);
    if (scaling->theta)
        theta = scaling->theta(theta, spec);
    number omega = mp_pow(theta, mp_div(mp_of((double)-numerator), mp_of((double)denominator)));
    if (scaling->omega)
        omega = scaling->omega(omega, spec, i);
    return scaling->whole ? turn_over(mp_round(turn_over(omega))) : omega;
}

/* ---- Plans ---- */

static double attention_factor(const struct posenc_freqs_spec *spec)
{
    const struct reference_scaling *scaling = reference_scaling(spec);
    if (spec->attention_factor != 0)
        return spec->attention_factor;
    return scaling->attention && !spec->values ? scaling->attention(spec) : 1;
}

void reference_plan_init(struct reference_plan *plan, const struct posenc_freqs_spec *spec)
{
    const int64_t n = (spec->dim + 1) / 2;
    *plan = (struct reference_plan){ .spec = spec, .n_pairs = n };
    plan->omega = calloc((size_t)n, sizeof *plan->omega);
    plan->inv_freq = calloc(3 * (size_t)n, sizeof *plan->inv_freq);
    if (!plan->omega || !plan->inv_freq)
        abort();
    plan->ggml.divisor = plan->inv_freq + n;
    plan->ggml.kept = plan->inv_freq + 2 * n;
    for (int64_t i = 0; i < n; i++) {
        mpfr_init2(plan->omega[i], MP_BITS);
        mpfr_set(plan->omega[i], reference_omega(spec, i), MPFR_RNDN);
        plan->inv_freq[i] = reference_inv_freq(spec, i);
    }
    if (spec->profile == POSENC_GGML_F32)
        reference_ggml_init(plan);
    plan->attention_factor = attention_factor(spec);
}

void reference_plan_clear(struct reference_plan *plan)
{
    for (int64_t i = 0; i < plan->n_pairs; i++)
        mpfr_clear(plan->omega[i]);
    free(plan->omega);
    free(plan->inv_freq);
}
