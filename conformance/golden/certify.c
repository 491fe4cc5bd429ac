/*
 * Whether the oracle agrees with MPFR, to the bit: frequencies, sines, the arithmetic beneath
 * them, tables of every certified plan, every golden case.
 */
#include "certify.h"
#include "conformance/exact/fixed.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SPECS = 256, MOST_PAIRS = 512, ROWS = 12 };

static int64_t any_position(uint64_t seed, uint64_t index)
{
    const uint64_t z = mix64(seed, index);
    const int bits = 1 + (int)((z >> 32) % 31); /* all magnitudes alike */
    const int64_t p = (int64_t)(z & ((UINT64_C(1) << bits) - 1));
    return z >> 63 ? -p : p;
}

/* n words as a binary fraction, the most significant first. */
static number fraction_of(const uint64_t *words, int n)
{
    number sum = mp_of(0);
    for (int k = n - 1; k >= 0; k--)
        sum = mp_div(mp_add(sum, mp_of_u64(words[k])), mp_of(0x1p64));
    return sum;
}

double turn_distance(const struct reference_plan *plan, int64_t i, const uint64_t *words, int n)
{
    const number turn = mp_div(plan->omega[i], mp_mul(mp_pi(), mp_of(2)));
    const number off = mp_sub(fraction_of(words, n), turn);
    return fabs(mp_double(mp_sub(off, mp_round(off)))); /* whole turns do not count */
}

void complain(const struct posenc_freqs_spec *spec, const char *format, ...)
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
    if (same_f64(s, sine) && same_f64(c, cosine))
        return true;
    complain(plan->spec, "pair %d position %lld:\n  sin %a, MPFR %a;  cos %a, MPFR %a",
             (int)pair, (long long)position, s, sine, c, cosine);
    return false;
}

/* The frequencies of a plan, and pairs at positions of all magnitudes and next to zeros.  Those
 * of ggml_f32 have none: certify_rows has its angles. */
static bool certify_plan(const struct posenc_freqs_spec *spec, uint64_t seed, uint64_t *points)
{
    static uint64_t turn[MOST_PAIRS][3];
    static float inv_freq[MOST_PAIRS];
    struct reference_plan plan;
    double attention;
    bool good = true;
    const int64_t pairs = oracle_freqs(spec, MOST_PAIRS, turn, inv_freq, &attention);
    reference_plan_init(&plan, spec);
    if (!same_f64(attention, plan.attention_factor)) {
        complain(spec, "attention factor %a, MPFR %a", attention, plan.attention_factor);
        good = false;
    }
    for (int64_t i = 0; i < pairs && good && spec->profile != POSENC_GGML_F32; i++) {
        if (!same_f64((double)inv_freq[i], plan.inv_freq[i])) {
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

/* How far a value, a binary fraction times a power of two, is from MPFR's, in shares of it. */
static double share_off(bool negative, number fraction, int64_t exponent, number want)
{
    const number power = mp_pow(mp_of(2), mp_of((double)exponent));
    const number got = mp_mul(negative ? mp_neg(fraction) : fraction, power);
    const number off = mp_sub(got, want);
    return fabs(mp_double(mpfr_zero_p(want) ? off : mp_div(off, want)));
}

/* Whether a big is MPFR's value to 2^-240 of it. */
static bool near_big(struct big value, number want, const char *what, double of)
{
    const double off = share_off(value.negative, fraction_of(value.m, 4), value.exponent, want);
    if (!(off < 0x1p-240))
        fprintf(stderr, "golden: %s of %a wrong by %g of itself\n", what, of, off);
    return off < 0x1p-240;
}

/* Logarithms, exponentials and quotients of 256 bits. */
static bool certify_big(void)
{
    bool good = true;
    for (uint64_t k = 0; k < 2000 && good; k++) {
        const uint64_t z = mix64(31, k);
        const double a = ldexp((double)(z >> 11), (int)(z & 127) - 117);
        const double small = ldexp((double)(int64_t)z, (int)(k % 70) - 124); /* below 2^9 */
        const struct big quotient = big_divide(big_integer(3), big_double(a));
        good = near_big(big_log(big_double(a)), mp_log(mp_of(a)), "log", a) &&
               near_big(quotient, mp_div(mp_of(3), mp_of(a)), "3 / x", a) &&
               near_big(big_exp(big_double(small)), mp_exp(mp_of(small)), "exp", small);
    }
    return good;
}

/* Whether a sine is right to 2^-122 of itself, as fixed.h says: far more than the rounding
 * shows. */
static bool near_mpfr(struct real value, number want)
{
    const uint64_t words[2] = { (uint64_t)(value.mantissa >> 64), (uint64_t)value.mantissa };
    return share_off(value.negative, fraction_of(words, 2), value.exponent, want) < 0x1p-122;
}

static bool certify_digits(double angle)
{
    struct real sine, cosine;
    fixed_sincos(angle, &sine, &cosine);
    const bool good = angle == 0 || (near_mpfr(sine, mp_sin(mp_of(angle))) &&
                                     near_mpfr(cosine, mp_cos(mp_of(angle))));
    if (!good)
        fprintf(stderr, "golden: angle %a: sine or cosine wrong before 122 bits\n", angle);
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
        if (!same_f64(s, sine) || !same_f64(c, cosine)) {
            fprintf(stderr, "golden: angle %a: sin %a, MPFR %a;  cos %a, MPFR %a\n", angle, s,
                    sine, c, cosine);
            return false;
        }
    }
    return true;
}

bool certify_output(const struct call *call, int o, const double *want, const char *name)
{
    const int64_t width = call->outputs[o].width;
    struct oracle *oracle = oracle_create(call);
    double *row = malloc((size_t)(width + 1) * sizeof *row);
    bool good = oracle && row;
    for (int64_t r = 0; r < call->outputs[o].rows && good; r++) {
        oracle_row(oracle, o, r, row, NULL);
        for (int64_t k = 0; k < width && good; k++) {
            good = same_f64(row[k], want[r * width + k]);
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

/* A table of a spec at positions of all magnitudes, at times of most, or at those of a picture:
 * odd dims are those of sinusoidal. */
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

bool check_rows(const struct posenc_freqs_spec *spec, uint64_t seed, check_output *check)
{
    return check_table(spec, seed, WHOLE, check) && check_table(spec, seed, TIMES, check) &&
           (spec->mrope_section[0] == 0 || check_table(spec, seed, GRID, check));
}

int64_t for_specs(const struct vectors *cases, check_spec *check, void *user)
{
    struct posenc_freqs_spec specs[MOST_SPECS];
    const int64_t n = certified_specs(cases, specs, MOST_SPECS);
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

int certify_oracle(const struct vectors *vectors)
{
    uint64_t points = 0, values = 0;
    const int64_t plans = for_specs(vectors, certify_spec, &points);
    if (plans < 0 || !certify_big() || !certify_angles(&points))
        return 1;
    if (!certify_problems(&values))
        return 1;
    for (size_t i = 0; i < vectors->n; i++)
        if (!certify_case(&vectors->cases[i], &values))
            return 1;
    printf("oracle = MPFR: %lld plans, %llu sines and cosines, %zu cases with %llu values\n",
           (long long)plans, (unsigned long long)points, vectors->n,
           (unsigned long long)values);
    return 0;
}
