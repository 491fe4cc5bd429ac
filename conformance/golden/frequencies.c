/*
 * Frequencies by MPFR, straight from the formulas.
 *
 *     omega_i = theta^(-2i/d)  or  theta^(-i/(n-1)), n = d/2
 *     linear        omega/f
 *     llama3        by wavelength: above L/low omega/f, below L/high omega, between a blend
 *     yarn          a blend of omega/f and omega along a ramp over the pairs (2309.00071, 3.2)
 *     ntk           theta f^(d/(d-2)) for theta
 *     dynamic       theta (f s/M - (f-1))^(d/(d-2)), s the sequence and at least M
 *     longrope      omega over the pair's long factor for sequences above L, else its short one
 *     proportional  omega/f for the first share of the d/2 pairs; the others rest
 *
 * The orders in which frameworks take these steps are in frameworks.c.  Where pairs are shared
 * between the axes of a position (2409.12191):
 *
 *     chunked       sections one after the other
 *     interleaved   the k-th pair of axis a is pair 3k + a of all; what is left turns with axis 0
 *     restarted     as chunked, a section of n pairs having omega_j = theta^(-2j/(2n))
 */
#include "golden.h"

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

/* d log(L / (2 pi rotations)) / (2 log theta) */
static void correction_dim(mpfr_t to, const struct posenc_freqs_spec *spec, double rotations)
{
    mpfr_t log_theta;
    mpfr_init2(log_theta, PRECISION);
    mpfr_const_pi(to, MPFR_RNDN);
    mpfr_mul_d(to, to, 2 * rotations, MPFR_RNDN);
    mpfr_d_div(to, spec->original_max_position_embeddings, to, MPFR_RNDN);
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_mul_si(to, to, (long)spec->dim, MPFR_RNDN);
    mpfr_set_d(log_theta, spec->rope_theta, MPFR_RNDN);
    mpfr_log(log_theta, log_theta, MPFR_RNDN);
    mpfr_div(to, to, log_theta, MPFR_RNDN);
    mpfr_div_ui(to, to, 2, MPFR_RNDN);
    mpfr_clear(log_theta);
}

void reference_yarn_range(mpfr_t low, mpfr_t high, const struct posenc_freqs_spec *spec)
{
    correction_dim(low, spec, spec->beta_fast);
    correction_dim(high, spec, spec->beta_slow);
    if (spec->truncate) {
        mpfr_floor(low, low);
        mpfr_ceil(high, high);
    }
    if (mpfr_sgn(low) < 0)
        mpfr_set_zero(low, 1);
    if (mpfr_cmp_si(high, (long)spec->dim - 1) > 0)
        mpfr_set_si(high, (long)spec->dim - 1, MPFR_RNDN);
}

/* omega (1 - ramp) + omega/f ramp */
static void scale_yarn(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    mpfr_t low, high, ramp, scaled;
    mpfr_inits2(PRECISION, low, high, ramp, scaled, (mpfr_ptr)0);
    reference_yarn_range(low, high, spec);
    mpfr_sub(high, high, low, MPFR_RNDN);
    if (mpfr_zero_p(high)) {
        mpfr_set_ui(high, 1, MPFR_RNDN);
        mpfr_div_ui(high, high, 1000, MPFR_RNDN);
    }
    mpfr_si_sub(ramp, (long)i, low, MPFR_RNDN);
    mpfr_div(ramp, ramp, high, MPFR_RNDN);
    if (mpfr_sgn(ramp) < 0)
        mpfr_set_zero(ramp, 1);
    if (mpfr_cmp_ui(ramp, 1) > 0)
        mpfr_set_ui(ramp, 1, MPFR_RNDN);
    mpfr_div_d(scaled, omega, spec->factor, MPFR_RNDN);
    mpfr_mul(scaled, scaled, ramp, MPFR_RNDN);
    mpfr_ui_sub(ramp, 1, ramp, MPFR_RNDN);
    mpfr_mul(omega, omega, ramp, MPFR_RNDN);
    mpfr_add(omega, omega, scaled, MPFR_RNDN);
    mpfr_clears(low, high, ramp, scaled, (mpfr_ptr)0);
}

static void scale_llama3(mpfr_t omega, const struct posenc_freqs_spec *spec)
{
    const double context = spec->original_max_position_embeddings;
    mpfr_t wavelength, bound, smooth, scaled;
    mpfr_inits2(PRECISION, wavelength, bound, smooth, scaled, (mpfr_ptr)0);
    mpfr_const_pi(wavelength, MPFR_RNDN);
    mpfr_mul_ui(wavelength, wavelength, 2, MPFR_RNDN);
    mpfr_div(wavelength, wavelength, omega, MPFR_RNDN);
    mpfr_div_d(scaled, omega, spec->factor, MPFR_RNDN);
    mpfr_set_d(bound, context, MPFR_RNDN);
    mpfr_div_d(bound, bound, spec->low_freq_factor, MPFR_RNDN);
    const bool is_long = mpfr_cmp(wavelength, bound) > 0;
    mpfr_set_d(bound, context, MPFR_RNDN);
    mpfr_div_d(bound, bound, spec->high_freq_factor, MPFR_RNDN);
    const bool is_short = mpfr_cmp(wavelength, bound) < 0;
    if (is_long) {
        mpfr_set(omega, scaled, MPFR_RNDN);
    } else if (!is_short) {
        mpfr_d_div(smooth, context, wavelength, MPFR_RNDN);
        mpfr_sub_d(smooth, smooth, spec->low_freq_factor, MPFR_RNDN);
        mpfr_set_d(bound, spec->high_freq_factor, MPFR_RNDN);
        mpfr_sub_d(bound, bound, spec->low_freq_factor, MPFR_RNDN);
        mpfr_div(smooth, smooth, bound, MPFR_RNDN);
        mpfr_mul(omega, omega, smooth, MPFR_RNDN);
        mpfr_ui_sub(smooth, 1, smooth, MPFR_RNDN);
        mpfr_mul(scaled, scaled, smooth, MPFR_RNDN);
        mpfr_add(omega, omega, scaled, MPFR_RNDN);
    }
    mpfr_clears(wavelength, bound, smooth, scaled, (mpfr_ptr)0);
}

/* theta of dynamic and static NTK scaling. */
static void scale_theta(mpfr_t theta, const struct posenc_freqs_spec *spec)
{
    const bool dynamic = spec->scaling == POSENC_SCALING_DYNAMIC;
    mpfr_t stretch, power;
    if (!dynamic && spec->scaling != POSENC_SCALING_NTK)
        return;
    mpfr_inits2(PRECISION, stretch, power, (mpfr_ptr)0);
    mpfr_set_d(stretch, spec->factor, MPFR_RNDN);
    if (dynamic && (double)spec->seq_len <= spec->max_position_embeddings) {
        mpfr_set_ui(stretch, 1, MPFR_RNDN);
    } else if (dynamic) {
        mpfr_mul_si(stretch, stretch, (long)spec->seq_len, MPFR_RNDN);
        mpfr_div_d(stretch, stretch, spec->max_position_embeddings, MPFR_RNDN);
        mpfr_sub_d(stretch, stretch, spec->factor, MPFR_RNDN);
        mpfr_add_ui(stretch, stretch, 1, MPFR_RNDN);
    }
    mpfr_set_si(power, (long)spec->dim, MPFR_RNDN);
    mpfr_div_si(power, power, (long)spec->dim - 2, MPFR_RNDN);
    mpfr_pow(stretch, stretch, power, MPFR_RNDN);
    mpfr_mul(theta, theta, stretch, MPFR_RNDN);
    mpfr_clears(stretch, power, (mpfr_ptr)0);
}

double reference_longrope_factor(const struct posenc_freqs_spec *spec, int64_t i)
{
    const bool beyond = (double)spec->seq_len > spec->original_max_position_embeddings;
    return beyond ? spec->long_factor[i] : spec->short_factor[i];
}

/* int(share * dim // 2) of Python: the product is a float. */
bool reference_rests(const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->scaling != POSENC_SCALING_PROPORTIONAL)
        return false;
    mpfr_t turning;
    mpfr_init2(turning, 53);
    mpfr_set_d(turning, spec->partial_rotary_factor, MPFR_RNDN);
    mpfr_mul_si(turning, turning, (long)spec->dim, MPFR_RNDN);
    mpfr_div_ui(turning, turning, 2, MPFR_RNDN);
    const bool rests = mpfr_get_si(turning, MPFR_RNDD) <= (long)i;
    mpfr_clear(turning);
    return rests;
}

void reference_omega(mpfr_t omega, const struct posenc_freqs_spec *spec, int64_t i)
{
    if (spec->values) {
        mpfr_set_d(omega, spec->values[i], MPFR_RNDN);
        return;
    }
    if (reference_rests(spec, i)) {
        mpfr_set_zero(omega, 1);
        return;
    }
    long numerator, denominator;
    reference_exponent(spec, i, &numerator, &denominator);
    mpfr_t exponent;
    mpfr_init2(exponent, PRECISION);
    mpfr_set_si(exponent, -numerator, MPFR_RNDN);
    mpfr_div_si(exponent, exponent, denominator, MPFR_RNDN);
    mpfr_set_d(omega, spec->rope_theta, MPFR_RNDN);
    scale_theta(omega, spec);
    mpfr_pow(omega, omega, exponent, MPFR_RNDN);
    mpfr_clear(exponent);
    if (spec->scaling == POSENC_SCALING_LINEAR || spec->scaling == POSENC_SCALING_PROPORTIONAL)
        mpfr_div_d(omega, omega, spec->factor, MPFR_RNDN);
    else if (spec->scaling == POSENC_SCALING_LLAMA3)
        scale_llama3(omega, spec);
    else if (spec->scaling == POSENC_SCALING_YARN)
        scale_yarn(omega, spec, i);
    else if (spec->scaling == POSENC_SCALING_LONGROPE)
        mpfr_div_d(omega, omega, reference_longrope_factor(spec, i), MPFR_RNDN);
}

/* ---- Plans ---- */

/* mscale log(f)/10 + 1, 1 for f <= 1 */
static void magnitude(mpfr_t to, double factor, double mscale)
{
    mpfr_set_d(to, factor, MPFR_RNDN);
    if (factor <= 1) {
        mpfr_set_ui(to, 1, MPFR_RNDN);
        return;
    }
    mpfr_log(to, to, MPFR_RNDN);
    mpfr_mul_d(to, to, mscale, MPFR_RNDN);
    mpfr_div_ui(to, to, 10, MPFR_RNDN);
    mpfr_add_ui(to, to, 1, MPFR_RNDN);
}

/* sqrt(1 + log(f)/log(L)) */
static double longrope_magnitude(const struct posenc_freqs_spec *spec)
{
    mpfr_t m, log_context;
    mpfr_inits2(PRECISION, m, log_context, (mpfr_ptr)0);
    mpfr_set_d(log_context, spec->original_max_position_embeddings, MPFR_RNDN);
    mpfr_log(log_context, log_context, MPFR_RNDN);
    mpfr_set_d(m, spec->factor, MPFR_RNDN);
    mpfr_log(m, m, MPFR_RNDN);
    mpfr_div(m, m, log_context, MPFR_RNDN);
    mpfr_add_ui(m, m, 1, MPFR_RNDN);
    mpfr_sqrt(m, m, MPFR_RNDN);
    const double magnitude_of = mpfr_get_d(m, MPFR_RNDN);
    mpfr_clears(m, log_context, (mpfr_ptr)0);
    return magnitude_of;
}

static double attention_factor(const struct posenc_freqs_spec *spec)
{
    if (spec->attention_factor != 0)
        return spec->attention_factor;
    if (spec->values)
        return 1;
    if (spec->scaling == POSENC_SCALING_LONGROPE)
        return longrope_magnitude(spec);
    if (spec->scaling != POSENC_SCALING_YARN)
        return 1;
    const bool both = spec->mscale != 0 && spec->mscale_all_dim != 0;
    if (spec->profile == POSENC_GGML_F32 && !both)
        return reference_ggml_magnitude(spec);
    mpfr_t a, b;
    mpfr_inits2(PRECISION, a, b, (mpfr_ptr)0);
    magnitude(a, spec->factor, both ? spec->mscale : 1);
    magnitude(b, both ? spec->factor : 1, spec->mscale_all_dim);
    mpfr_div(a, a, b, MPFR_RNDN);
    const double m = mpfr_get_d(a, MPFR_RNDN);
    mpfr_clears(a, b, (mpfr_ptr)0);
    return m;
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
        reference_omega(plan->omega[i], spec, i);
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
