/*
 * Whether the oracle agrees with MPFR, to the bit, and the library's plans within what they
 * promise: frequencies of every certified spec and tables of them; of the oracle also problems of
 * every kernel at random, and every golden case.
 */
#include "conformance/problem/shapes.h"
#include "golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SPECS = 256, MOST_PAIRS = 512, ROWS = 12, PROBLEMS = 40 };

/* Who is held to MPFR. */
enum side { ORACLE, LIBRARY };

static uint64_t values, points;

static int64_t any_position(uint64_t seed, uint64_t index)
{
    const uint64_t z = mix64(seed, index);
    const int bits = 1 + (int)((z >> 32) % 31); /* all magnitudes alike */
    const int64_t p = (int64_t)(z & ((UINT64_C(1) << bits) - 1));
    return z >> 63 ? -p : p;
}

/* ---- Outputs ---- */

static bool same_rows(enum side side, const struct call *call, int o, const double *want,
                      const char *name)
{
    const int64_t width = call->outputs[o].width;
    struct oracle *oracle = side == ORACLE ? oracle_create(call) : NULL;
    double *row = malloc((size_t)(width + 1) * sizeof *row);
    bool good = row && (oracle || side == LIBRARY);
    for (int64_t r = 0; r < call->outputs[o].rows && good; r++, values += (uint64_t)width) {
        if (oracle)
            oracle_row(oracle, o, r, row, NULL);
        for (int64_t k = 0; k < width && good; k++, want++) {
            const double got = oracle ? row[k] : (double)call_row(call, o, r)[k];
            const double right = oracle ? *want : (double)odd_to_f32(*want);
            good = same_f64(got, right) ||
                   disagree("%s: %s row %lld column %lld: %a, MPFR %a", name,
                            call->outputs[o].name, (long long)r, (long long)k, got, *want);
        }
    }
    free(row);
    oracle_destroy(oracle);
    return good;
}

/* All outputs of a problem, against `known` ones or those that MPFR makes now. */
static bool same_outputs(enum side side, const struct problem *p, const char *name,
                         const double *const *known)
{
    struct call call;
    bool good = true;
    if (call_create(&call, p, &memory_plain) != POSENC_OK)
        return disagree("%s: %s", name, call.error.what);
    if (side == LIBRARY && call_run(&call, posenc_backend_find("scalar")) != POSENC_OK)
        good = disagree("%s: the library refuses it", name);
    for (int o = 0; o < call.n_outputs && good; o++) {
        const int64_t n = call.outputs[o].rows * call.outputs[o].width;
        double *want = malloc((size_t)n * sizeof *want);
        if (!want)
            abort();
        if (!known)
            reference_output(&call, o, want);
        good = same_rows(side, &call, o, known ? known[o] : want, name);
        free(want);
    }
    call_destroy(&call);
    return good;
}

/* A table of a spec at positions of all magnitudes, at times of most, or, where it has sections,
 * at those of a picture: odd dims are those of sinusoidal. */
static bool same_tables(enum side side, const struct posenc_freqs_spec *spec, uint64_t seed)
{
    static const char *const ways[] = { "positions", "times", "picture" };
    enum { TIMES = 1, PICTURE };
    bool good = true;
    for (int way = 0; way <= (spec->mrope_section[0] != 0 ? PICTURE : TIMES) && good; way++) {
        int64_t positions[ROWS];
        struct problem p =
            problem_blank(spec->dim % 2 ? POSENC_KERNEL_sinusoidal : POSENC_KERNEL_rope_table);
        for (uint64_t k = 0; k < ROWS; k++)
            positions[k] = any_position(seed + (uint64_t)way, k) / (way == TIMES ? 256 : 1);
        p.freqs = *spec;
        p.position_kind = way == TIMES ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64;
        p.positions = positions;
        p.tokens = ROWS;
        if (way == TIMES)
            p.time_step = ldexp(1.0 / 3.0, -(int)(seed % 40));
        if (way == PICTURE) {
            p.first = positions[0] / 2;
            p.mrope_grid = 5;
        }
        good = same_outputs(side, &p, ways[way], NULL);
    }
    return good;
}

/* ---- Plans ---- */

/* How far a turn, in three words, is from MPFR's omega / (2 pi); and whether the f32 value and
 * the axis of a pair are right. */
static bool same_frequency(const struct reference_plan *plan, int64_t i, const uint64_t turn[3],
                           double allowed, double f32, double want, int axis)
{
    const number exact = mp_div(plan->omega[i], mp_mul(mp_pi(), mp_of(2)));
    const number off = mp_sub(mp_of_words(turn, 3), exact);
    const double far =
        fabs(mp_double(mp_sub(off, mp_round(off)))); /* whole turns do not count */
    return (far <= allowed && same_f64(f32, want) && axis == reference_axis(plan->spec, i)) ||
           disagree("pair %d on axis %d: f32 %a, MPFR %a;  turn off by %g (allowed %g)", (int)i,
                    axis, f32, want, far, allowed);
}

static bool same_attention(const struct reference_plan *plan, int64_t pairs, double attention)
{
    return (pairs == plan->n_pairs && same_f64(attention, plan->attention_factor)) ||
           disagree("%lld pairs, attention factor %a, MPFR %a", (long long)pairs, attention,
                    plan->attention_factor);
}

/* A pair at one position. */
static bool same_sincos(const struct reference_plan *plan, const uint64_t turn[3], int64_t pair,
                        int64_t position)
{
    double s, c, sine, cosine;
    points++;
    reference_sincos(plan, pair, (double)position, 1, &sine, &cosine);
    if (plan->spec->profile == POSENC_EXACT)
        oracle_sincos_turn(turn, position, &s, &c);
    else
        oracle_sincos((double)((float)position * (float)plan->inv_freq[pair]), &s, &c);
    return (same_f64(s, sine) && same_f64(c, cosine)) ||
           disagree("pair %d position %lld:\n  sin %a, MPFR %a;  cos %a, MPFR %a", (int)pair,
                    (long long)position, s, sine, c, cosine);
}

/* The frequencies of the oracle, and pairs at positions of all magnitudes and next to zeros.
 * Those of ggml_f32 have none: tables have its angles. */
static bool oracle_plan(const struct reference_plan *plan, uint64_t seed)
{
    static uint64_t turn[MOST_PAIRS][3];
    static float inv_freq[MOST_PAIRS];
    const struct posenc_freqs_spec *spec = plan->spec;
    double attention;
    const int64_t pairs = oracle_freqs(spec, MOST_PAIRS, turn, inv_freq, &attention);
    bool good = same_attention(plan, pairs, attention);
    for (int64_t i = 0; i < pairs && good && spec->profile != POSENC_GGML_F32; i++) {
        const double omega = mpfr_get_d(plan->omega[i], MPFR_RNDU);
        good = same_frequency(plan, i, turn[i], 0x1p-191 * fmax(1, omega), (double)inv_freq[i],
                              plan->inv_freq[i], oracle_axis(spec, i));
        for (uint64_t k = 0; k < 12 && good; k++)
            good = same_sincos(plan, turn[i], i, any_position(seed + (uint64_t)i, k));
        for (int kind = 0; kind < 2 && good && !mpfr_zero_p(plan->omega[i]); kind++) {
            int64_t positions[64];
            double distance[64];
            const int64_t n = pair_convergents(plan, i, kind, 64, positions, distance);
            for (int64_t k = n > 4 ? n - 4 : 0; k < n && good; k++)
                good = same_sincos(plan, turn[i], i, k % 2 ? -positions[k] : positions[k]);
        }
    }
    return good;
}

/* Turns of the library have 104 bits, and the last of the 128. */
static bool library_plan(const struct reference_plan *plan)
{
    const struct posenc_freqs_spec *spec = plan->spec;
    const bool framework =
        spec->profile == POSENC_HF_F32 || spec->profile == POSENC_TORCH_EXP_F32;
    struct posenc_freqs *freqs;
    if (posenc_freqs_create(spec, &freqs, NULL) != POSENC_OK)
        return disagree("the library refuses it");
    const struct posenc_freqs_view view = posenc_freqs_view(freqs);
    bool good = same_attention(plan, view.n_pairs, view.attention_factor);
    for (int64_t i = 0; i < plan->n_pairs && good; i++) {
        const double omega = mp_double(plan->omega[i]);
        const uint64_t turn[3] = { view.turn_hi[i], view.turn_lo[i], 0 };
        good = same_frequency(plan, i, turn, ldexp(omega, -102) + 0x1p-127,
                              (double)view.omega_f32[i],
                              framework ? plan->inv_freq[i] : (double)mp_float(plan->omega[i]),
                              view.axis ? view.axis[i] : 0) &&
               (view.omega[i] == omega ||
                disagree("pair %d: omega %a, MPFR %a", (int)i, view.omega[i], omega));
    }
    posenc_freqs_destroy(freqs);
    return good;
}

/* In an f32 profile the sine of an f32 angle is rounded once: of the library, a table with other
 * bits has other angles. */
static bool same_spec(enum side side, const struct posenc_freqs_spec *spec, uint64_t seed)
{
    struct reference_plan plan;
    reference_plan_init(&plan, spec);
    const bool good = side == ORACLE
                          ? oracle_plan(&plan, seed) && same_tables(ORACLE, spec, seed)
                          : library_plan(&plan) && (spec->profile == POSENC_EXACT ||
                                                    same_tables(LIBRARY, spec, seed));
    reference_plan_clear(&plan);
    return good || disagree("that is dim %d theta %g scaling %s profile %s", (int)spec->dim,
                            spec->rope_theta, scaling_names[spec->scaling],
                            profile_names[spec->profile]);
}

/* Every certified spec in every profile that has it; how many, or -1 when one was not right. */
static int64_t same_specs(enum side side, const struct vectors *cases)
{
    struct posenc_freqs_spec specs[MOST_SPECS];
    const int64_t n = certified_specs(cases, specs, MOST_SPECS);
    int64_t checked = 0;
    for (int64_t k = 0; k < n; k++)
        for (int profile = 0; profile_names[profile]; profile++) {
            specs[k].profile = (enum posenc_profile)profile;
            if (!profile_applies(&specs[k]))
                continue;
            if (!same_spec(side, &specs[k], (uint64_t)(1000 * k + profile)))
                return -1;
            checked++;
        }
    return checked;
}

/* ---- Problems ---- */

static bool same_problems(void)
{
    for (int kernel = 0; kernel < POSENC_KERNEL_COUNT; kernel++)
        for (uint64_t k = 0; k < PROBLEMS; k++) {
            int64_t positions[MOST_RANDOM_TOKENS];
            const uint64_t seed = mix64((uint64_t)kernel, k) >> 1;
            const struct problem p =
                problem_random((enum posenc_kernel)kernel, seed, positions);
            if (!same_outputs(ORACLE, &p, posenc_kernel_name(p.kernel), NULL))
                return disagree("that is problem %d of the kernel", (int)k);
        }
    return true;
}

bool certify_library(const struct vectors *cases)
{
    const int64_t plans = same_specs(LIBRARY, cases);
    if (plans >= 0)
        printf("library's frequencies = MPFR: %lld plans\n", (long long)plans);
    return plans >= 0;
}

bool certify_oracle(const struct vectors *vectors)
{
    const int64_t plans = same_specs(ORACLE, vectors);
    bool good = plans >= 0 && same_problems();
    for (size_t i = 0; i < vectors->n && good; i++)
        good = same_outputs(ORACLE, &vectors->cases[i].problem, vectors->cases[i].id,
                            vectors->cases[i].want);
    if (good)
        printf(
            "oracle = MPFR: %lld plans, %llu sines and cosines, %zu cases with %llu values\n",
            (long long)plans, (unsigned long long)points, vectors->n,
            (unsigned long long)values);
    return good;
}
