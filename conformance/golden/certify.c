/*
 * Whether the oracle and the library's plans agree with MPFR: to the bit for the oracle, within
 * what a plan promises for the library.
 */
#include "fixed.h"
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPECS = 64, MOST_PAIRS = 512 };

/* NaN equals NaN; zeros differ by sign. */
static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static int64_t any_position(uint64_t seed, uint64_t index)
{
    const uint64_t z = mix64(seed, index);
    const int bits = 1 + (int)((z >> 32) % 31); /* all magnitudes alike */
    const int64_t p = (int64_t)(z & ((UINT64_C(1) << bits) - 1));
    return z >> 63 ? -p : p;
}

/* A fraction of a turn, n words of it, as MPFR has it; a plan's turn is omega / (2 pi). */
static double turn_distance(const struct reference_plan *plan, int64_t i, const uint64_t *words,
                            int n)
{
    mpfr_t want, got;
    mpfr_inits2(PRECISION, want, got, (mpfr_ptr)0);
    mpfr_const_pi(want, MPFR_RNDN);
    mpfr_div(want, plan->omega[i], want, MPFR_RNDN);
    mpfr_div_ui(want, want, 2, MPFR_RNDN);
    mpfr_set_zero(got, 1);
    for (int k = 0; k < n; k++) {
        mpfr_mul_2ui(got, got, 64, MPFR_RNDN);
        mpfr_add_ui(got, got, (unsigned long)words[k], MPFR_RNDN);
    }
    mpfr_div_2ui(got, got, (unsigned long)(64 * n), MPFR_RNDN);
    mpfr_sub(got, got, want, MPFR_RNDN);
    mpfr_rint(want, got, MPFR_RNDN); /* whole turns do not count */
    mpfr_sub(got, got, want, MPFR_RNDN);
    const double distance = fabs(mpfr_get_d(got, MPFR_RNDA));
    mpfr_clears(want, got, (mpfr_ptr)0);
    return distance;
}

/* A pair at one position. */
static bool same_pair(const struct reference_plan *plan, uint64_t (*turn)[3], int64_t pair,
                      int64_t position)
{
    double s, c, sine, cosine;
    reference_sincos(plan, pair, position, 1, &sine, &cosine);
    if (plan->spec->profile == POSENC_EXACT)
        oracle_sincos_turn(turn[pair], position, &s, &c);
    else
        oracle_sincos((double)((float)position * (float)plan->inv_freq[pair]), &s, &c);
    if (same(s, sine) && same(c, cosine))
        return true;
    fprintf(stderr,
            "golden: dim %d theta %g scaling %d profile %d pair %d position %lld:\n"
            "  sin %a, MPFR %a;  cos %a, MPFR %a\n",
            (int)plan->spec->dim, plan->spec->rope_theta, (int)plan->spec->scaling,
            (int)plan->spec->profile, (int)pair, (long long)position, s, sine, c, cosine);
    return false;
}

static bool certify_plan(const struct posenc_freqs_spec *spec, uint64_t seed, uint64_t *points)
{
    static uint64_t turn[MOST_PAIRS][3];
    static float inv_freq[MOST_PAIRS];
    struct reference_plan plan;
    double attention;
    bool good = true;
    const int64_t pairs = oracle_freqs(spec, MOST_PAIRS, turn, inv_freq, &attention);
    reference_plan_init(&plan, spec);
    if (!same(attention, plan.attention_factor)) {
        fprintf(stderr, "golden: attention factor %a, MPFR %a\n", attention,
                plan.attention_factor);
        good = false;
    }
    for (int64_t i = 0; i < pairs && good; i++) {
        if (!same((double)inv_freq[i], plan.inv_freq[i])) {
            fprintf(stderr,
                    "golden: dim %d theta %g scaling %d: inv_freq of pair %d is %a, MPFR %a\n",
                    (int)spec->dim, spec->rope_theta, (int)spec->scaling, (int)i,
                    (double)inv_freq[i], plan.inv_freq[i]);
            good = false;
        }
        const double off = turn_distance(&plan, i, turn[i], 3);
        if (!(off <= 0x1p-191 * fmax(1, mpfr_get_d(plan.omega[i], MPFR_RNDU)))) {
            fprintf(stderr,
                    "golden: dim %d theta %g scaling %d: turn of pair %d is off by %g\n",
                    (int)spec->dim, spec->rope_theta, (int)spec->scaling, (int)i, off);
            good = false;
        }
        for (uint64_t k = 0; k < 12 && good; k++, ++*points)
            good = same_pair(&plan, turn, i, any_position(seed + (uint64_t)i, k));
        for (int kind = 0; kind < 2 && good; kind++) {
            int64_t positions[64];
            double distance[64];
            const int64_t n = pair_convergents(&plan, i, kind, 64, positions, distance);
            for (int64_t k = n > 4 ? n - 4 : 0; k < n && good; k++, ++*points)
                good = same_pair(&plan, turn, i, k % 2 ? -positions[k] : positions[k]);
        }
    }
    reference_plan_clear(&plan);
    return good;
}

/* Whether a sine is right to 2^-122 of itself, as fixed.h says: far more than the rounding
 * shows. */
static bool near_mpfr(struct real value, const mpfr_t want)
{
    mpfr_t got;
    mpfr_init2(got, PRECISION);
    mpfr_set_ui(got, (unsigned long)(value.mantissa >> 64), MPFR_RNDN);
    mpfr_mul_2ui(got, got, 64, MPFR_RNDN);
    mpfr_add_ui(got, got, (unsigned long)(uint64_t)value.mantissa, MPFR_RNDN);
    mpfr_mul_2si(got, got, (long)value.exponent - 128, MPFR_RNDN);
    mpfr_setsign(got, got, value.negative, MPFR_RNDN);
    mpfr_sub(got, got, want, MPFR_RNDN);
    mpfr_div(got, got, want, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(got, MPFR_RNDA));
    mpfr_clear(got);
    return error < 0x1p-122;
}

/* Whether a big is MPFR's value to 2^-240 of it. */
static bool near_big(struct big value, const mpfr_t want, const char *what, double of)
{
    mpfr_t got;
    mpfr_init2(got, PRECISION);
    mpfr_set_zero(got, 1);
    for (int k = 0; k < 4; k++) {
        mpfr_mul_2ui(got, got, 64, MPFR_RNDN);
        mpfr_add_ui(got, got, (unsigned long)value.m[k], MPFR_RNDN);
    }
    mpfr_mul_2si(got, got, (long)value.exponent - 256, MPFR_RNDN);
    mpfr_setsign(got, got, value.negative, MPFR_RNDN);
    mpfr_sub(got, got, want, MPFR_RNDN);
    if (!mpfr_zero_p(want))
        mpfr_div(got, got, want, MPFR_RNDN);
    const double error = fabs(mpfr_get_d(got, MPFR_RNDA));
    mpfr_clear(got);
    if (!(error < 0x1p-240))
        fprintf(stderr, "golden: %s of %a wrong by %g of itself\n", what, of, error);
    return error < 0x1p-240;
}

/* Logarithms, exponentials and quotients of 256 bits. */
static bool certify_big(void)
{
    mpfr_t x, y;
    mpfr_inits2(PRECISION, x, y, (mpfr_ptr)0);
    bool good = true;
    for (uint64_t k = 0; k < 2000 && good; k++) {
        const uint64_t z = mix64(31, k);
        const double a = ldexp((double)(z >> 11), (int)(z & 127) - 117);
        const double small = ldexp((double)(int64_t)z, (int)(k % 70) - 124); /* below 2^9 */
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_log(y, x, MPFR_RNDN);
        good = near_big(big_log(big_double(a)), y, "log", a);
        mpfr_ui_div(y, 3, x, MPFR_RNDN);
        good = good && near_big(big_divide(big_integer(3), big_double(a)), y, "3 / x", a);
        mpfr_set_d(x, small, MPFR_RNDN);
        mpfr_exp(y, x, MPFR_RNDN);
        good = good && near_big(big_exp(big_double(small)), y, "exp", small);
    }
    mpfr_clears(x, y, (mpfr_ptr)0);
    return good;
}

static bool certify_digits(double angle)
{
    mpfr_t x, s, c;
    struct real sine, cosine;
    mpfr_inits2(PRECISION, x, s, c, (mpfr_ptr)0);
    mpfr_set_d(x, angle, MPFR_RNDN);
    mpfr_sin_cos(s, c, x, MPFR_RNDN);
    fixed_sincos(angle, &sine, &cosine);
    const bool good = angle == 0 || (near_mpfr(sine, s) && near_mpfr(cosine, c));
    if (!good)
        fprintf(stderr, "golden: angle %a: sine or cosine wrong before 122 bits\n", angle);
    mpfr_clears(x, s, c, (mpfr_ptr)0);
    return good;
}

/* Angles of every magnitude below 2^60, as f64 and as f32. */
static bool certify_angles(uint64_t *points)
{
    for (uint64_t k = 0; k < 20000; k++, ++*points) {
        const uint64_t z = mix64(77, k);
        double angle = ldexp((double)(z >> 11), (int)(z % 130) - 124);
        angle = z & 512 ? -angle : angle;
        angle = z & 1024 ? (double)(float)angle : angle;
        double s, c, sine, cosine;
        if (!certify_digits(angle))
            return false;
        oracle_sincos(angle, &s, &c);
        reference_sincos_angle(angle, &sine, &cosine);
        if (!same(s, sine) || !same(c, cosine)) {
            fprintf(stderr, "golden: angle %a: sin %a, MPFR %a;  cos %a, MPFR %a\n", angle, s,
                    sine, c, cosine);
            return false;
        }
    }
    return true;
}

/* Every row of every golden case, against what the generator computed for it. */
static bool certify_case(const struct vector_case *v)
{
    struct call call;
    if (call_create(&call, &v->problem, &memory_plain) != POSENC_OK)
        return false;
    struct oracle *oracle = oracle_create(&call);
    double *row = malloc((size_t)(v->width[0] + 1) * sizeof *row);
    bool good = oracle && row;
    for (int o = 0; o < v->n_outputs && good; o++)
        for (int64_t r = 0; r < v->rows[o] && good; r++) {
            oracle_row(oracle, o, r, row, NULL);
            for (int64_t k = 0; k < v->width[o] && good; k++) {
                const double want = v->want[o][r * v->width[o] + k];
                good = same(row[k], want);
                if (!good)
                    fprintf(stderr, "golden: %s: %s row %lld column %lld: %a, MPFR %a\n", v->id,
                            v->output_names[o], (long long)r, (long long)k, row[k], want);
            }
        }
    free(row);
    oracle_destroy(oracle);
    call_destroy(&call);
    return good;
}

int certify_oracle(const struct golden *golden)
{
    struct posenc_freqs_spec specs[MOST_SPECS];
    const int64_t n = certified_specs(specs, MOST_SPECS);
    uint64_t points = 0, values = 0;
    for (int64_t k = 0; k < n; k++)
        for (int profile = 0; profile < 2; profile++) {
            specs[k].profile = profile ? POSENC_HF_F32 : POSENC_EXACT;
            if (!certify_plan(&specs[k], (uint64_t)(1000 * k + profile), &points))
                return 1;
        }
    if (!certify_big() || !certify_angles(&points))
        return 1;
    for (size_t i = 0; i < golden->vectors.n; i++) {
        const struct vector_case *v = &golden->vectors.cases[i];
        if (!certify_case(v))
            return 1;
        for (int o = 0; o < v->n_outputs; o++)
            values += (uint64_t)(v->rows[o] * v->width[o]);
    }
    printf("oracle = MPFR: %lld plans, %llu sines and cosines, %zu cases with %llu values\n",
           (long long)(2 * n), (unsigned long long)points, golden->vectors.n,
           (unsigned long long)values);
    return 0;
}

/* ---- The library's plans ---- */

static bool library_pair(const struct reference_plan *plan,
                         const struct posenc_freqs_view *view, int64_t i)
{
    const struct posenc_freqs_spec *spec = plan->spec;
    const double omega = mpfr_get_d(plan->omega[i], MPFR_RNDN);
    const double f32 = spec->profile == POSENC_HF_F32
                           ? plan->inv_freq[i]
                           : (double)mpfr_get_flt(plan->omega[i], MPFR_RNDN);
    const uint64_t turn[2] = { view->turn_hi[i], view->turn_lo[i] };
    const double distance = turn_distance(plan, i, turn, 2);
    const double allowed =
        ldexp(omega, -102) + 0x1p-127; /* 104 bits and the last of the turn's */
    if (view->omega[i] == omega && (double)view->omega_f32[i] == f32 && distance <= allowed)
        return true;
    fprintf(stderr,
            "golden: library, dim %d theta %g scaling %d profile %d pair %d:\n"
            "  omega %a, MPFR %a;  f32 %a, MPFR %a;  turn off by %g (allowed %g)\n",
            (int)spec->dim, spec->rope_theta, (int)spec->scaling, (int)spec->profile, (int)i,
            view->omega[i], omega, (double)view->omega_f32[i], f32, distance, allowed);
    return false;
}

static int library_plan(const struct posenc_freqs_spec *spec)
{
    struct posenc_freqs *freqs;
    struct reference_plan plan;
    int bad = 0;
    if (posenc_freqs_create(spec, &freqs, NULL) != POSENC_OK) {
        fprintf(stderr, "golden: library refuses dim %d theta %g scaling %d\n", (int)spec->dim,
                spec->rope_theta, (int)spec->scaling);
        return 1;
    }
    const struct posenc_freqs_view view = posenc_freqs_view(freqs);
    reference_plan_init(&plan, spec);
    for (int64_t i = 0; i < plan.n_pairs; i++)
        bad += !library_pair(&plan, &view, i);
    if (view.n_pairs != plan.n_pairs || view.attention_factor != plan.attention_factor) {
        fprintf(stderr, "golden: library, attention factor %a, MPFR %a\n",
                view.attention_factor, plan.attention_factor);
        bad++;
    }
    reference_plan_clear(&plan);
    posenc_freqs_destroy(freqs);
    return bad;
}

static int library_slopes(int64_t heads, double bias_max)
{
    float got[256], want[256];
    if (posenc_alibi_slopes(heads, bias_max, got) != POSENC_OK)
        return 1;
    reference_slopes(heads, bias_max, want);
    for (int64_t h = 0; h < heads; h++)
        if (got[h] != want[h]) {
            fprintf(stderr, "golden: library, slope %d of %d heads: %a, MPFR %a\n", (int)h,
                    (int)heads, (double)got[h], (double)want[h]);
            return 1;
        }
    return 0;
}

static int library_thresholds(int64_t buckets, int64_t most, bool bidirectional)
{
    int32_t thresholds[512];
    const int64_t n = bidirectional ? buckets / 2 : buckets;
    if (posenc_t5_thresholds(buckets, most, bidirectional, thresholds) != POSENC_OK)
        return 1;
    for (int64_t distance = 0, b = 0; distance < 2 * most; distance++) {
        while (b + 1 < n && thresholds[b + 1] <= distance)
            b++;
        const int64_t want = reference_bucket(distance, buckets, most, bidirectional);
        if (b != want) {
            fprintf(stderr, "golden: library, T5 %d/%d: distance %d in bucket %d, exactly %d\n",
                    (int)buckets, (int)most, (int)distance, (int)b, (int)want);
            return 1;
        }
    }
    return 0;
}

int certify_library(void)
{
    struct posenc_freqs_spec specs[MOST_SPECS];
    const int64_t n = certified_specs(specs, MOST_SPECS);
    int bad = 0;
    for (int64_t k = 0; k < n; k++)
        for (int profile = 0; profile < 2; profile++) {
            specs[k].profile = profile ? POSENC_HF_F32 : POSENC_EXACT;
            bad += library_plan(&specs[k]);
        }
    for (int64_t heads = 1; heads <= 256; heads++)
        bad += library_slopes(heads, 8) + library_slopes(heads, 5.5);
    static const int64_t t5[][2] = { { 32, 128 }, { 64, 128 },  { 320, 800 }, { 32, 1000 },
                                     { 32, 256 }, { 128, 512 }, { 4, 9 } };
    for (size_t k = 0; k < sizeof t5 / sizeof *t5; k++)
        for (int bidirectional = 0; bidirectional < 2; bidirectional++)
            bad += library_thresholds(t5[k][0], t5[k][1], bidirectional != 0);
    if (bad == 0)
        printf("library's frequencies, slopes and thresholds = MPFR: %lld plans\n",
               (long long)(2 * n));
    return bad;
}
