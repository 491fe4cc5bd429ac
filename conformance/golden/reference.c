/*
 * Reference outputs by MPFR.  Sums of products of f32 values are exact in 1200 bits; sines
 * carry 320 and are irrational but at angle 0; cosines twice as many, to be told from 1.
 */
#include "golden.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_BITS = 1200 };

double round_to_odd(const mpfr_t value, bool exact)
{
    double toward_zero = mpfr_get_d(value, MPFR_RNDZ);
    if (!mpfr_number_p(value) || mpfr_zero_p(value) ||
        (exact && mpfr_cmp_d(value, toward_zero) == 0))
        return toward_zero;
    uint64_t bits;
    memcpy(&bits, &toward_zero, sizeof bits);
    if (!exact && mpfr_cmp_d(value, toward_zero) == 0 && fabs(toward_zero) == 1)
        bits--; /* a cosine so near 1 that even 320 bits do not tell them apart is still
                   below */
    bits |= 1;
    memcpy(&toward_zero, &bits, sizeof bits);
    return toward_zero;
}

void reference_sincos_angle(double angle, double *sine, double *cosine)
{
    mpfr_t x, s, c;
    mpfr_inits2(PRECISION, x, s, c, (mpfr_ptr)0);
    mpfr_set_d(x, angle, MPFR_RNDN);
    mpfr_sin_cos(s, c, x, MPFR_RNDN);
    *sine = round_to_odd(s, angle == 0);
    *cosine = round_to_odd(c, angle == 0);
    mpfr_clears(x, s, c, (mpfr_ptr)0);
}

/* Nearest f32 of a value rounded to odd, by MPFR and not by a C cast. */
static double nearest_f32(double odd)
{
    mpfr_t x;
    mpfr_init2(x, 53);
    mpfr_set_d(x, odd, MPFR_RNDN);
    const double nearest = (double)mpfr_get_flt(x, MPFR_RNDN);
    mpfr_clear(x);
    return nearest;
}

static void exact_sincos(const struct reference_plan *plan, int64_t pair, double position,
                         double m, double *sine, double *cosine)
{
    mpfr_t x, s, c;
    mpfr_inits2(2 * PRECISION, x, s, c, (mpfr_ptr)0);
    mpfr_mul_d(x, plan->omega[pair], position, MPFR_RNDN);
    mpfr_sin_cos(s, c, x, MPFR_RNDN);
    const bool exact = mpfr_zero_p(x) != 0; /* a pair that rests has -0 before position 0 */
    mpfr_mul_d(s, s, m, MPFR_RNDN);
    mpfr_mul_d(c, c, m, MPFR_RNDN);
    *sine = round_to_odd(s, exact);
    *cosine = round_to_odd(c, exact);
    mpfr_clears(x, s, c, (mpfr_ptr)0);
}

void reference_sincos(const struct reference_plan *plan, int64_t pair, double position,
                      double m, double *sine, double *cosine)
{
    if (plan->spec->profile == POSENC_EXACT) {
        exact_sincos(plan, pair, position, m, sine, cosine);
        return;
    }
    reference_sincos_angle(reference_angle(plan, pair, position), sine, cosine);
    if (m != 1) {
        *sine = nearest_f32(*sine) * nearest_f32(m);
        *cosine = nearest_f32(*cosine) * nearest_f32(m);
    }
}

/* a b + c d of f64 values, each product exact, rounded to odd. */
static double sum_of_products(double a, double b, double c, double d)
{
    mpfr_t x, y;
    mpfr_inits2(EXACT_BITS, x, y, (mpfr_ptr)0);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_mul_d(x, x, b, MPFR_RNDN);
    mpfr_set_d(y, c, MPFR_RNDN);
    mpfr_mul_d(y, y, d, MPFR_RNDN);
    mpfr_add(x, x, y, MPFR_RNDN);
    const double sum = round_to_odd(x, true);
    mpfr_clears(x, y, (mpfr_ptr)0);
    return sum;
}

static int64_t position_of(const struct call *call, int64_t row, int64_t rows_per_token)
{
    const int64_t tokens = call->problem.tokens, token = row / rows_per_token;
    return problem_position(&call->problem, token / tokens, token % tokens);
}

/* As a table takes it: on one of the axes, perhaps with a fraction. */
static double time_of(const struct call *call, int64_t row, int axis)
{
    const int64_t tokens = call->problem.tokens;
    return problem_time(&call->problem, row / tokens, row % tokens, axis);
}

/* ---- Outputs by signature ---- */

static void output_sinusoidal(const struct call *call, const struct reference_plan *plan,
                              int64_t r, int64_t dim, double *want)
{
    const int64_t half = dim / 2;
    const double scale = call->problem.scale;
    for (int64_t k = 0; k < dim; k++) {
        double sine, cosine;
        int64_t pair = k / 2;
        bool is_sine = k % 2 == 0;
        if (call->problem.layout != POSENC_INTERLEAVED) {
            pair = k < half ? k : k - half;
            is_sine = (k < half) == (call->problem.layout == POSENC_SIN_COS);
            if (k == 2 * half) {
                want[k] = 0;
                continue;
            }
        }
        reference_sincos(plan, pair, time_of(call, r, 0), scale, &sine, &cosine);
        want[k] = is_sine ? sine : cosine;
    }
}

static void output_rope_table(const struct call *call, const struct reference_plan *plan, int o,
                              int64_t r, int64_t n_pairs, double *want)
{
    for (int64_t i = 0; i < n_pairs; i++) {
        double sine, cosine;
        const double position = time_of(call, r, reference_axis(plan->spec, i));
        reference_sincos(plan, i, position, plan->attention_factor, &sine, &cosine);
        want[i] = strcmp(call->outputs[o].name, "cos") == 0 ? cosine : sine;
    }
}

static void output_rope(const struct call *call, int64_t r, int64_t dim, double *want)
{
    const struct problem *p = &call->problem;
    const int64_t half = p->rotary_dim / 2;
    const int64_t at = position_of(call, r, p->heads) * half;
    for (int64_t k = 0; k < dim; k++) {
        const bool adjacent = p->kernel == POSENC_KERNEL_rope_interleaved;
        const int64_t i = adjacent ? k / 2 : k % half;
        const bool second = adjacent ? k % 2 == 1 : k >= half;
        const int64_t partner = adjacent ? k ^ 1 : second ? k - half : k + half;
        if (k >= p->rotary_dim) {
            want[k] = (double)call->x[r * dim + k];
            continue;
        }
        const double own = (double)call->x[r * dim + k],
                     other = (double)call->x[r * dim + partner];
        double sine = (double)call->sin[at + i];
        if (p->transpose)
            sine = -sine;
        want[k] =
            sum_of_products(own, (double)call->cos[at + i], second ? other : -other, sine);
    }
}

void reference_slopes(int64_t heads, double bias_max, float *slopes)
{
    int64_t power = 1;
    while (2 * power <= heads)
        power *= 2;
    mpfr_t exponent, slope;
    mpfr_inits2(PRECISION, exponent, slope, (mpfr_ptr)0);
    for (int64_t h = 0; h < heads; h++) {
        const int64_t numerator = h < power ? h + 1 : 2 * (h - power) + 1;
        mpfr_set_d(exponent, -bias_max, MPFR_RNDN);
        mpfr_mul_si(exponent, exponent, (long)numerator, MPFR_RNDN);
        mpfr_div_si(exponent, exponent, (long)(h < power ? power : 2 * power), MPFR_RNDN);
        mpfr_exp2(slope, exponent, MPFR_RNDN);
        slopes[h] = mpfr_get_flt(slope, MPFR_RNDN);
    }
    mpfr_clears(exponent, slope, (mpfr_ptr)0);
}

static void output_alibi(const struct call *call, const float *slopes, int64_t r, int64_t keys,
                         double *want)
{
    const struct problem *p = &call->problem;
    const int64_t query = r % p->queries + p->query_offset;
    const double slope = (double)slopes[r / p->queries % p->heads];
    for (int64_t j = 0; j < keys; j++)
        want[j] = p->causal && j > query ? -(double)INFINITY
                                         : slope * (double)(j < query ? j - query : query - j);
}

/* The bucket by its definition in integers, with n distance, e exact buckets of N:
 * e + k for the greatest k < N - e with n^(N-e) >= M^k e^(N-e-k). */
int64_t reference_bucket(int64_t distance, int64_t num_buckets, int64_t max_distance,
                         bool bidirectional)
{
    const int64_t buckets = bidirectional ? num_buckets / 2 : num_buckets, exact = buckets / 2;
    int64_t n = distance, base = 0; /* distance = query - key */
    if (n < 0) {
        base = bidirectional ? buckets : 0;
        n = bidirectional ? -n : 0;
    }
    if (n < exact)
        return base + n;
    const unsigned long all = (unsigned long)(buckets - exact);
    mpz_t power, bound, factor;
    mpz_inits(power, bound, factor, (mpz_ptr)0);
    mpz_ui_pow_ui(power, (unsigned long)n, all);
    unsigned long k = all - 1;
    for (;; k--) {
        mpz_ui_pow_ui(bound, (unsigned long)max_distance, k);
        mpz_ui_pow_ui(factor, (unsigned long)exact, all - k);
        mpz_mul(bound, bound, factor);
        if (k == 0 || mpz_cmp(power, bound) >= 0)
            break;
    }
    mpz_clears(power, bound, factor, (mpz_ptr)0);
    return base + exact + (int64_t)k;
}

static void output_t5(const struct call *call, int64_t r, int64_t keys, double *want)
{
    const struct problem *p = &call->problem;
    const int64_t query = r % p->queries + p->query_offset;
    const int64_t head = r / p->queries % p->heads;
    for (int64_t j = 0; j < keys; j++) {
        const int64_t bucket =
            reference_bucket(query - j, p->num_buckets, p->max_distance, p->bidirectional);
        want[j] = (double)call->table[bucket * p->heads + head];
    }
}

static bool adds(enum posenc_kernel kernel)
{
    return kernel == POSENC_KERNEL_sinusoidal_add || kernel == POSENC_KERNEL_learned_add ||
           kernel == POSENC_KERNEL_alibi_add || kernel == POSENC_KERNEL_t5_bias_add;
}

void reference_output(const struct call *call, int o, double *want)
{
    const enum signature signature = kernel_signature(call->problem.kernel);
    const int64_t rows = call->outputs[o].rows, width = call->outputs[o].width;
    const bool planned = signature == SIGNATURE_sinusoidal || signature == SIGNATURE_rope_table;
    struct reference_plan plan;
    float *slopes = NULL;
    if (planned)
        reference_plan_init(&plan, &call->problem.freqs);
    if (signature == SIGNATURE_alibi) {
        slopes = calloc((size_t)call->problem.heads, sizeof *slopes);
        if (!slopes)
            abort();
        reference_slopes(call->problem.heads, call->problem.alibi_bias_max, slopes);
    }
    for (int64_t r = 0; r < rows; r++) {
        double *row = want + r * width;
        if (signature == SIGNATURE_sinusoidal)
            output_sinusoidal(call, &plan, r, width, row);
        else if (signature == SIGNATURE_rope_table)
            output_rope_table(call, &plan, o, r, width, row);
        else if (signature == SIGNATURE_rope)
            output_rope(call, r, width, row);
        else if (signature == SIGNATURE_alibi)
            output_alibi(call, slopes, r, width, row);
        else if (signature == SIGNATURE_t5)
            output_t5(call, r, width, row);
        for (int64_t k = 0; signature == SIGNATURE_learned && k < width; k++)
            row[k] = (double)call->table[position_of(call, r, 1) * width + k];
        for (int64_t k = 0; adds(call->problem.kernel) && k < width; k++)
            row[k] = sum_of_products((double)call->x[r * width + k],
                                     (double)call->problem.x_scale, nearest_f32(row[k]), 1);
    }
    if (planned)
        reference_plan_clear(&plan);
    free(slopes);
}
