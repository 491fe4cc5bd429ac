/*
 * Whether the oracle and the library's plans agree with MPFR: to the bit for the oracle, within
 * what a plan promises for the library.
 */
#include "fixed.h"
#include "golden.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPECS = 128, MOST_PAIRS = 512, ROWS = 12 };

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

/* What is wrong, and with which plan. */
static void complain(const struct posenc_freqs_spec *spec, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(const struct posenc_freqs_spec *spec, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "golden: dim %d theta %g scaling %s profile %s: ", (int)spec->dim,
            spec->rope_theta, scaling_names[spec->scaling], profile_names[spec->profile]);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* A pair at one position. */
static bool same_pair(const struct reference_plan *plan, uint64_t (*turn)[3], int64_t pair,
                      int64_t position)
{
    double s, c, sine, cosine;
    reference_sincos(plan, pair, (double)position, 1, &sine, &cosine);
    if (plan->spec->profile == POSENC_EXACT)
        oracle_sincos_turn(turn[pair], position, &s, &c);
    else
        oracle_sincos((double)((float)position * (float)plan->inv_freq[pair]), &s, &c);
    if (same(s, sine) && same(c, cosine))
        return true;
    complain(plan->spec, "pair %d position %lld:\n  sin %a, MPFR %a;  cos %a, MPFR %a",
             (int)pair, (long long)position, s, sine, c, cosine);
    return false;
}

/* The frequencies of a plan, and pairs at positions of all magnitudes and next to zeros.  Those of
 * ggml_f32 have none: certify_rows has its angles. */
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
        complain(spec, "attention factor %a, MPFR %a", attention, plan.attention_factor);
        good = false;
    }
    for (int64_t i = 0; i < pairs && good && spec->profile != POSENC_GGML_F32; i++) {
        if (!same((double)inv_freq[i], plan.inv_freq[i])) {
            complain(spec, "inv_freq of pair %d is %a, MPFR %a", (int)i, (double)inv_freq[i],
                     plan.inv_freq[i]);
            good = false;
        }
        const double off = turn_distance(&plan, i, turn[i], 3);
        if (!(off <= 0x1p-191 * fmax(1, mpfr_get_d(plan.omega[i], MPFR_RNDU)))) {
            complain(spec, "turn of pair %d is off by %g", (int)i, off);
            good = false;
        }
        for (uint64_t k = 0; k < 12 && good; k++, ++*points)
            good = same_pair(&plan, turn, i, any_position(seed + (uint64_t)i, k));
        for (int kind = 0; kind < 2 && good && !mpfr_zero_p(plan.omega[i]); kind++) {
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

/* Every row of output o of a call by the oracle, against MPFR's. */
static bool certify_output(const struct call *call, int o, const double *want, const char *name)
{
    const int64_t width = call->outputs[o].width;
    struct oracle *oracle = oracle_create(call);
    double *row = malloc((size_t)(width + 1) * sizeof *row);
    bool good = oracle && row;
    for (int64_t r = 0; r < call->outputs[o].rows && good; r++) {
        oracle_row(oracle, o, r, row, NULL);
        for (int64_t k = 0; k < width && good; k++) {
            good = same(row[k], want[r * width + k]);
            if (!good)
                fprintf(stderr, "golden: %s: %s row %lld column %lld: %a, MPFR %a\n", name,
                        call->outputs[o].name, (long long)r, (long long)k, row[k],
                        want[r * width + k]);
        }
    }
    free(row);
    oracle_destroy(oracle);
    return good;
}

/* Every golden case, against what the generator computed for it. */
static bool certify_case(const struct vector_case *v, uint64_t *values)
{
    struct call call;
    if (call_create(&call, &v->problem, &memory_plain) != POSENC_OK)
        return false;
    bool good = true;
    for (int o = 0; o < v->n_outputs && good; o++) {
        good = certify_output(&call, o, v->want[o], v->id);
        *values += (uint64_t)(v->rows[o] * v->width[o]);
    }
    call_destroy(&call);
    return good;
}

/* How a spec's table is placed. */
enum way { WHOLE, TIMES, GRID, WAYS };

/* A table of a spec at positions of all magnitudes, at times of most, or at those of a picture: odd
 * dims are those of sinusoidal. */
static struct problem table_of(const struct posenc_freqs_spec *spec, uint64_t seed,
                               enum way way, int64_t positions[ROWS])
{
    struct problem p =
        problem_blank(spec->dim % 2 ? POSENC_KERNEL_sinusoidal : POSENC_KERNEL_rope_table);
    for (uint64_t k = 0; k < ROWS; k++)
        positions[k] = any_position(seed + way, k) / (way == TIMES ? 256 : 1);
    p.freqs = *spec;
    p.position_kind = way == TIMES ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64;
    p.positions = positions;
    p.tokens = ROWS;
    if (way == TIMES)
        p.time_step = ldexp(1.0 / 3.0, -(int)(seed % 40));
    if (way == GRID) {
        p.first = positions[0] / 2;
        p.mrope_grid = 5;
    }
    return p;
}

typedef bool check_output(const struct call *call, int o, const double *want, const char *name);

/* Calls `check` with each output of one of a spec's tables and what MPFR has for it. */
static bool check_table(const struct posenc_freqs_spec *spec, uint64_t seed, enum way way,
                        check_output *check)
{
    static const char *const names[WAYS] = { "positions", "times", "picture" };
    int64_t positions[ROWS];
    const struct problem p = table_of(spec, seed, way, positions);
    struct call call;
    const enum posenc_status status = call_create(&call, &p, &memory_plain);
    if (status != POSENC_OK) {
        complain(spec, "%s: %s", posenc_status_string(status), call.error.what);
        return false;
    }
    bool good = true;
    for (int o = 0; o < call.n_outputs && good; o++) {
        const int64_t n = call.outputs[o].rows * call.outputs[o].width;
        double *want = malloc((size_t)n * sizeof *want);
        if (!want)
            abort();
        reference_output(&call, o, want);
        good = check(&call, o, want, names[way]);
        if (!good)
            complain(spec, "these rows");
        free(want);
    }
    call_destroy(&call);
    return good;
}

static bool check_rows(const struct posenc_freqs_spec *spec, uint64_t seed, check_output *check)
{
    return check_table(spec, seed, WHOLE, check) && check_table(spec, seed, TIMES, check) &&
           (spec->mrope_section[0] == 0 || check_table(spec, seed, GRID, check));
}

/* Calls `check` with every certified spec in every profile that has it; how many, or -1 when one
 * was not right. */
typedef bool check_spec(const struct posenc_freqs_spec *spec, uint64_t seed, void *user);

static int64_t for_specs(check_spec *check, void *user)
{
    struct posenc_freqs_spec specs[MOST_SPECS];
    const int64_t n = certified_specs(specs, MOST_SPECS);
    int64_t checked = 0;
    for (int64_t k = 0; k < n; k++)
        for (int profile = 0; profile_names[profile]; profile++) {
            specs[k].profile = (enum posenc_profile)profile;
            if (!profile_applies(&specs[k]))
                continue;
            if (!check(&specs[k], (uint64_t)(1000 * k + profile), user))
                return -1;
            checked++;
        }
    return checked;
}

static bool certify_spec(const struct posenc_freqs_spec *spec, uint64_t seed, void *points)
{
    return certify_plan(spec, seed, points) && check_rows(spec, seed, certify_output);
}

int certify_oracle(const struct golden *golden)
{
    uint64_t points = 0, values = 0;
    const int64_t plans = for_specs(certify_spec, &points);
    if (plans < 0 || !certify_big() || !certify_angles(&points))
        return 1;
    for (size_t i = 0; i < golden->vectors.n; i++)
        if (!certify_case(&golden->vectors.cases[i], &values))
            return 1;
    printf("oracle = MPFR: %lld plans, %llu sines and cosines, %zu cases with %llu values\n",
           (long long)plans, (unsigned long long)points, golden->vectors.n,
           (unsigned long long)values);
    return 0;
}

/* ---- The library's plans ---- */

static bool library_pair(const struct reference_plan *plan,
                         const struct posenc_freqs_view *view, int64_t i)
{
    const enum posenc_profile profile = plan->spec->profile;
    const bool framework = profile == POSENC_HF_F32 || profile == POSENC_TORCH_EXP_F32;
    const double omega = mpfr_get_d(plan->omega[i], MPFR_RNDN);
    const double f32 =
        framework ? plan->inv_freq[i] : (double)mpfr_get_flt(plan->omega[i], MPFR_RNDN);
    const uint64_t turn[2] = { view->turn_hi[i], view->turn_lo[i] };
    const double distance = turn_distance(plan, i, turn, 2);
    const double allowed =
        ldexp(omega, -102) + 0x1p-127; /* 104 bits and the last of the turn's */
    if (view->omega[i] == omega && (double)view->omega_f32[i] == f32 && distance <= allowed)
        return true;
    complain(plan->spec,
             "library, pair %d:\n"
             "  omega %a, MPFR %a;  f32 %a, MPFR %a;  turn off by %g (allowed %g)",
             (int)i, view->omega[i], omega, (double)view->omega_f32[i], f32, distance, allowed);
    return false;
}

/* In an f32 profile the sine of an f32 angle is rounded once: a table with other bits has other
 * angles. */
static bool library_output(const struct call *call, int o, const double *want, const char *name)
{
    const int64_t width = call->outputs[o].width;
    for (int64_t k = 0; k < call->outputs[o].rows * width; k++) {
        const float got = call_row(call, o, k / width)[k % width], right = odd_to_f32(want[k]);
        if (memcmp(&got, &right, sizeof got) == 0)
            continue;
        fprintf(stderr, "golden: library, %s: %s row %lld column %lld: %a, MPFR %a\n", name,
                call->outputs[o].name, (long long)(k / width), (long long)(k % width),
                (double)got, want[k]);
        return false;
    }
    return true;
}

static bool library_rows(const struct call *call, int o, const double *want, const char *name)
{
    struct call run = *call;
    return call_run(&run, posenc_backend_find("scalar")) == POSENC_OK &&
           library_output(&run, o, want, name);
}

static bool library_plan(const struct posenc_freqs_spec *spec, uint64_t seed, void *user)
{
    struct posenc_freqs *freqs;
    struct reference_plan plan;
    bool good = true;
    (void)user;
    if (posenc_freqs_create(spec, &freqs, NULL) != POSENC_OK) {
        complain(spec, "library refuses it");
        return false;
    }
    const struct posenc_freqs_view view = posenc_freqs_view(freqs);
    reference_plan_init(&plan, spec);
    for (int64_t i = 0; i < plan.n_pairs; i++) {
        good = library_pair(&plan, &view, i) && good;
        const int axis = view.axis ? view.axis[i] : 0;
        if (axis != reference_axis(spec, i)) {
            complain(spec, "library, pair %d on axis %d", (int)i, axis);
            good = false;
        }
    }
    if (view.n_pairs != plan.n_pairs || view.attention_factor != plan.attention_factor) {
        complain(spec, "library, attention factor %a, MPFR %a", view.attention_factor,
                 plan.attention_factor);
        good = false;
    }
    reference_plan_clear(&plan);
    posenc_freqs_destroy(freqs);
    return good && (spec->profile == POSENC_EXACT || check_rows(spec, seed, library_rows));
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
    const int64_t plans = for_specs(library_plan, NULL);
    int bad = plans < 0;
    for (int64_t heads = 1; heads <= 256; heads++)
        bad += library_slopes(heads, 8) + library_slopes(heads, 5.5);
    static const int64_t t5[][2] = { { 32, 128 }, { 64, 128 },  { 320, 800 }, { 32, 1000 },
                                     { 32, 256 }, { 128, 512 }, { 4, 9 } };
    for (size_t k = 0; k < sizeof t5 / sizeof *t5; k++)
        for (int bidirectional = 0; bidirectional < 2; bidirectional++)
            bad += library_thresholds(t5[k][0], t5[k][1], bidirectional != 0);
    if (bad == 0)
        printf("library's frequencies, slopes and thresholds = MPFR: %lld plans\n",
               (long long)plans);
    return bad;
}
