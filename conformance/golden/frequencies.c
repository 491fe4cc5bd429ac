/*
 * Frequencies by MPFR, straight from the formulas: omega_i = theta^(-2i/d), or theta^(-i/(n-1)) with
 * n = d/2, before scalings.c changes them.  The orders in which frameworks take these steps are in
 * frameworks.c.  Where pairs are shared between the axes of a position (2409.12191):
 *
 *     chunked       sections one after the other
 *     interleaved   the k-th pair of axis a is pair 3k + a of all; what is left turns with axis 0
 *     restarted     as chunked, a section of n pairs having omega_j = theta^(-2j/(2n))
 */
#include "scalings.h"

#include <math.h>
#include <stdlib.h>

/* The section of pair i where sections follow each other; its place in it. */
static int section_of(const struct posenc_freqs_spec *spec, int64_t i, int64_t *place)
{
    int section = 0;
    *place = i;
    while (section < 2 && *place >= spec->mrope_section[section])
        *place -= spec->mrope_section[section++];
    return section;
}

int reference_axis(const struct posenc_freqs_spec *spec, int64_t i)
{
    int64_t place;
    if (spec->mrope_section[0] == 0)
        return 0;
    if (spec->mrope_layout != POSENC_MROPE_INTERLEAVED)
        return section_of(spec, i, &place);
    const int turn = (int)(i % 3);
    return i / 3 < spec->mrope_section[turn] ? turn : 0;
}

/* Exponent of 1/theta: numerator over denominator. */
void reference_exponent(const struct posenc_freqs_spec *spec, int64_t i, long *numerator,
                        long *denominator)
{
    if (spec->mrope_section[0] != 0 && spec->mrope_layout == POSENC_MROPE_RESTARTED) {
        int64_t place;
        const int section = section_of(spec, i, &place);
        *numerator = 2 * (long)place;
        *denominator = 2 * (long)spec->mrope_section[section];
        return;
    }
    *numerator = 2 * (long)i;
    *denominator = (long)spec->dim;
    if (spec->convention == POSENC_ENDPOINT) {
        const long n = (long)spec->dim / 2;
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
    plan->inv_freq = calloc((size_t)n, sizeof *plan->inv_freq);
    if (!plan->omega || !plan->inv_freq)
        abort();
    for (int64_t i = 0; i < n; i++) {
        mpfr_init2(plan->omega[i], PRECISION);
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
    free(plan->ggml.divisor);
    free(plan->ggml.kept);
}
