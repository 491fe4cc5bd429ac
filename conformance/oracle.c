/*
 * What each row of an output should be.  Tables come from integer phases (fixed.c); sums of
 * products of f32 values are formed from exact products and rounded to odd.
 */
#include "oracle.h"
#include "fixed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oracle {
    const struct call *call;
    enum signature signature;
    int64_t n_pairs;
    uint64_t (*turn)[3];
    struct big *turns; /* with whole ones, for times */
    float *inv_freq;
    struct oracle_ggml ggml; /* and of its arrays: */
    float *divisor, *kept;
    double attention_factor;
    int32_t *thresholds; /* T5: least distance of each bucket of one direction */
    int64_t n_thresholds;
};

/* ---- Sines ---- */

/* |position| turn mod 1. */
static void position_phase(const uint64_t turn[3], int64_t position, uint64_t phase[3])
{
    const uint64_t p = position < 0 ? -(uint64_t)position : (uint64_t)position;
    u128 carry = 0;
    for (int i = 2; i >= 0; i--) {
        carry += (u128)turn[i] * p;
        phase[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

static void sincos_turn(const uint64_t turn[3], int64_t position, struct real *sine,
                        struct real *cosine)
{
    uint64_t phase[3];
    position_phase(turn, position, phase);
    fixed_sincos_phase(phase, sine, cosine);
    if (position < 0) /* of -0, too: a pair that rests */
        sine->negative = !sine->negative;
}

void oracle_sincos_turn(const uint64_t turn[3], int64_t position, double *sine, double *cosine)
{
    struct real s, c;
    sincos_turn(turn, position, &s, &c);
    *sine = real_times(s, 1.0);
    *cosine = real_times(c, 1.0);
}

void oracle_sincos(double angle, double *sine, double *cosine)
{
    *sine = *cosine = (double)NAN;
    if (!(fabs(angle) < 0x1p60))
        return;
    struct real s, c;
    fixed_sincos(angle, &s, &c);
    *sine = real_times(s, 1.0);
    *cosine = real_times(c, 1.0);
}

/* At a time with a fraction.  192 bits of a turn are too few where the angle is very small. */
static void sincos_time(struct big turns, double time, struct real *sine, struct real *cosine)
{
    const struct big turned = big_multiply(turns, big_double(fabs(time)));
    if (turned.m[0] != 0 && turned.exponent < -60) {
        struct big angle = big_multiply(turned, big_pi());
        angle.exponent++;
        const struct real x = { .exponent = angle.exponent,
                                .mantissa = (u128)angle.m[0] << 64 | angle.m[1] };
        fixed_sincos_small(x, sine, cosine);
    } else {
        uint64_t phase[3];
        big_fraction(turned, phase);
        fixed_sincos_phase(phase, sine, cosine);
    }
    if (time < 0)
        sine->negative = !sine->negative;
}

/* The iterated product, from the position on. */
static float ggml_angle(const struct oracle *oracle, int64_t pair, double position)
{
    float phi = (float)position;
    for (int64_t i = 0; i < pair; i++)
        phi = phi * oracle->ggml.theta_scale;
    const float extrapolated = phi / oracle->divisor[pair];
    const float interpolated = oracle->ggml.freq_scale * extrapolated;
    const float kept = oracle->kept[pair];
    const float left = interpolated * (1.0f - kept), right = extrapolated * kept;
    return left + right;
}

/* m times the sine and cosine of a pair at a position, in the plan's profile.  The f32 ones round
 * the sine to f32 and multiply by (float)m, which an f64 holds exactly; with m = 1 there is
 * no product and the sine itself is the truth. */
static void pair_values(const struct oracle *oracle, int64_t pair, double position, double m,
                        double *sine, double *cosine)
{
    if (oracle->call->problem.freqs.profile == POSENC_EXACT) {
        struct real s, c;
        if (position != floor(position))
            sincos_time(oracle->turns[pair], position, &s, &c);
        else
            sincos_turn(oracle->turn[pair], (int64_t)position, &s, &c);
        *sine = real_times(s, m);
        *cosine = real_times(c, m);
        return;
    }
    const float angle = oracle->divisor ? ggml_angle(oracle, pair, position)
                                        : (float)position * oracle->inv_freq[pair];
    oracle_sincos((double)angle, sine, cosine);
    if (m != 1.0) {
        *sine = (double)odd_to_f32(*sine) * (double)(float)m;
        *cosine = (double)odd_to_f32(*cosine) * (double)(float)m;
    }
}

/* ---- Rows by signature ---- */

/* Position of the token of row r, where each token has `per_token` rows. */
static int64_t row_position(const struct problem *problem, int64_t r, int64_t per_token)
{
    const int64_t token = r / per_token;
    return problem_position(problem, token / problem->tokens, token % problem->tokens);
}

static void row_sinusoidal(const struct oracle *oracle, int64_t r, int64_t width, double *want)
{
    const struct problem *problem = &oracle->call->problem;
    const double position = problem_time(problem, r / problem->tokens, r % problem->tokens, 0);
    const int64_t half = width / 2;
    for (int64_t i = 0; i < oracle->n_pairs; i++) {
        double sine, cosine;
        pair_values(oracle, i, position, problem->scale, &sine, &cosine);
        if (problem->layout == POSENC_INTERLEAVED) {
            want[2 * i] = sine;
            if (2 * i + 1 < width)
                want[2 * i + 1] = cosine;
        } else if (i < half) {
            const bool sine_first = problem->layout == POSENC_SIN_COS;
            want[i] = sine_first ? sine : cosine;
            want[half + i] = sine_first ? cosine : sine;
        }
    }
    if (problem->layout != POSENC_INTERLEAVED && width % 2)
        want[width - 1] = 0.0;
}

static void row_rope_table(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const struct problem *problem = &oracle->call->problem;
    for (int64_t i = 0; i < oracle->n_pairs; i++) {
        double sine, cosine;
        const double position = problem_time(problem, r / problem->tokens, r % problem->tokens,
                                             oracle_axis(&problem->freqs, i));
        pair_values(oracle, i, position, oracle->attention_factor, &sine, &cosine);
        want[i] = o == 0 ? cosine : sine;
    }
}

static void row_rope(const struct oracle *oracle, int64_t r, double *want, double *mass)
{
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    const bool half_split = problem->kernel == POSENC_KERNEL_rope_half;
    const int64_t half = problem->rotary_dim / 2;
    const int64_t row = row_position(problem, r, problem->heads) * half;
    const float *x = call->x + r * problem->dim;
    for (int64_t i = 0; i < half; i++) {
        const int64_t a = half_split ? i : 2 * i, b = half_split ? i + half : 2 * i + 1;
        const double c = (double)call->cos[row + i];
        const double s = (double)call->sin[row + i] * (problem->transpose ? -1.0 : 1.0);
        const double x0 = (double)x[a], x1 = (double)x[b];
        want[a] = add_to_odd(x0 * c, -(x1 * s));
        want[b] = add_to_odd(x1 * c, x0 * s);
        if (mass) {
            mass[a] = fmax(fabs(x0 * c), fabs(x1 * s));
            mass[b] = fmax(fabs(x1 * c), fabs(x0 * s));
        }
    }
    for (int64_t k = problem->rotary_dim; k < problem->dim; k++) {
        want[k] = (double)x[k];
        if (mass)
            mass[k] = fabs(want[k]);
    }
}

/* Casts keep a compiler from contracting, and change nothing: products of two f32 are exact in
 * f64, and a sum of two f32 rounded to f64 first rounds to the same f32. */
static float unfused(float a, float b, float c, float d)
{
    const float ab = (float)((double)a * (double)b), cd = (float)((double)c * (double)d);
    return (float)((double)ab + (double)cd);
}

void oracle_row_unfused(const struct call *call, int64_t r, float *out)
{
    const struct problem *problem = &call->problem;
    const bool half_split = problem->kernel == POSENC_KERNEL_rope_half;
    const int64_t half = problem->rotary_dim / 2;
    const int64_t row = row_position(problem, r, problem->heads) * half;
    const float *x = call->x + r * problem->dim;
    for (int64_t i = 0; i < half; i++) {
        const int64_t a = half_split ? i : 2 * i, b = half_split ? i + half : 2 * i + 1;
        const float c = call->cos[row + i];
        const float s = problem->transpose ? -call->sin[row + i] : call->sin[row + i];
        out[a] = unfused(x[a], c, -x[b], s);
        out[b] = unfused(x[b], c, x[a], s);
    }
    for (int64_t k = problem->rotary_dim; k < problem->dim; k++)
        out[k] = x[k];
}

static void row_learned(const struct oracle *oracle, int64_t r, int64_t width, double *want)
{
    const struct call *call = oracle->call;
    const float *row = call->table + row_position(&call->problem, r, 1) * width;
    for (int64_t k = 0; k < width; k++)
        want[k] = (double)row[k];
}

/* -slope |d| of two f32 values is an f64; +0 at distance 0. */
static void row_alibi(const struct oracle *oracle, int64_t r, int64_t width, double *want)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = r % problem->queries + problem->query_offset;
    const double slope = (double)oracle->call->slopes[r / problem->queries % problem->heads];
    for (int64_t j = 0; j < width; j++) {
        const int64_t distance = query > j ? query - j : j - query;
        want[j] = problem->causal && j > query ? -(double)INFINITY : slope * (double)-distance;
    }
}

static void row_t5(const struct oracle *oracle, int64_t r, int64_t width, double *want)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t query = r % problem->queries + problem->query_offset;
    const int64_t head = r / problem->queries % problem->heads;
    for (int64_t j = 0; j < width; j++) {
        int64_t distance = query - j, base = 0;
        if (distance < 0) {
            distance = problem->bidirectional ? -distance : 0;
            base = problem->bidirectional ? oracle->n_thresholds : 0;
        }
        int64_t bucket = oracle->n_thresholds - 1;
        while (oracle->thresholds[bucket] > distance)
            bucket--;
        want[j] = (double)oracle->call->table[(base + bucket) * problem->heads + head];
    }
}

/* Every *_add: one fma of the input and the value that the table kernel would have stored. */
static void add_input(const struct call *call, int64_t r, int64_t width, double *want)
{
    const float *x = call->x + r * width;
    const double x_scale = (double)call->problem.x_scale;
    for (int64_t k = 0; k < width; k++)
        want[k] = add_to_odd((double)x[k] * x_scale, (double)odd_to_f32(want[k]));
}

void oracle_row(const struct oracle *oracle, int o, int64_t r, double *want, double *mass)
{
    const struct call *call = oracle->call;
    const int64_t width = call->outputs[o].width;
    switch (oracle->signature) {
    case SIGNATURE_sinusoidal:
        row_sinusoidal(oracle, r, width, want);
        break;
    case SIGNATURE_learned:
        row_learned(oracle, r, width, want);
        break;
    case SIGNATURE_rope_table:
        row_rope_table(oracle, o, r, want);
        break;
    case SIGNATURE_rope:
        row_rope(oracle, r, want, mass);
        return;
    case SIGNATURE_alibi:
        row_alibi(oracle, r, width, want);
        break;
    case SIGNATURE_t5:
        row_t5(oracle, r, width, want);
        break;
    }
    if (call->x)
        add_input(call, r, width, want);
    for (int64_t k = 0; mass && k < width; k++)
        mass[k] = fabs(want[k]);
}

/* ---- Creation ---- */

static bool create_ggml(struct oracle *oracle, const struct posenc_freqs_spec *spec)
{
    const size_t n = (size_t)oracle->n_pairs;
    oracle->divisor = calloc(n, sizeof *oracle->divisor);
    oracle->kept = calloc(n, sizeof *oracle->kept);
    if (!oracle->divisor || !oracle->kept)
        return false;
    oracle->ggml = oracle_ggml(spec, oracle->n_pairs, oracle->divisor, oracle->kept);
    return true;
}

static bool create_plan(struct oracle *oracle)
{
    const struct posenc_freqs_spec *spec = &oracle->call->problem.freqs;
    oracle->n_pairs = (spec->dim + 1) / 2;
    const bool exact = spec->profile == POSENC_EXACT, ggml = spec->profile == POSENC_GGML_F32;
    const size_t n = (size_t)oracle->n_pairs;
    oracle->turn = exact ? calloc(n, sizeof *oracle->turn) : NULL;
    oracle->inv_freq = exact || ggml ? NULL : calloc(n, sizeof *oracle->inv_freq);
    if (ggml ? !create_ggml(oracle, spec) : !oracle->turn && !oracle->inv_freq)
        return false;
    if (exact && oracle->call->problem.position_kind == POSENC_POSITIONS_F32) {
        oracle->turns = calloc(n, sizeof *oracle->turns);
        if (!oracle->turns)
            return false;
        oracle_turns(spec, oracle->n_pairs, oracle->turns);
    }
    oracle_freqs(spec, oracle->n_pairs, oracle->turn, oracle->inv_freq,
                 &oracle->attention_factor);
    return true;
}

static uint64_t power_mod(uint64_t base, int64_t exponent, uint64_t prime)
{
    uint64_t power = 1;
    for (base %= prime; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            power = (uint64_t)((u128)power * base % prime);
        base = (uint64_t)((u128)base * base % prime);
    }
    return power;
}

/* Whether n^all = most^k exact^(all - k), decided modulo two primes of 61 bits: asked only
 * where the logarithms agree to 2^-200. */
static bool same_power(int64_t n, int64_t most, int64_t exact, int64_t k, int64_t all)
{
    static const uint64_t primes[] = { 2305843009213693951, 2305843009213693921 };
    for (int i = 0; i < 2; i++) {
        const uint64_t left = power_mod((uint64_t)n, all, primes[i]);
        const uint64_t a = power_mod((uint64_t)most, k, primes[i]);
        const uint64_t b = power_mod((uint64_t)exact, all - k, primes[i]);
        if (left != (uint64_t)((u128)a * b % primes[i]))
            return false;
    }
    return true;
}

/* Bucket exact + k begins at the least n with log(n/exact)/log(most/exact) (all) >= k, that is
 * n >= exact (most/exact)^(k/all). */
static bool create_thresholds(struct oracle *oracle)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t buckets = problem->num_buckets / (problem->bidirectional ? 2 : 1);
    const int64_t exact = buckets / 2, all = buckets - exact, most = problem->max_distance;
    oracle->n_thresholds = buckets;
    oracle->thresholds = calloc((size_t)buckets, sizeof *oracle->thresholds);
    if (!oracle->thresholds)
        return false;
    const struct big base = big_log(big_integer(exact > 0 ? exact : 1));
    const struct big span = big_subtract(big_log(big_integer(most)), base);
    for (int64_t b = 0; b < buckets; b++) {
        oracle->thresholds[b] = (int32_t)b;
        if (b <= exact)
            continue;
        const int64_t k = b - exact;
        const struct big step =
            big_divide(big_multiply(span, big_integer(k)), big_integer(all));
        const struct big least = big_exp(big_add(base, step));
        const struct big tiny = big_multiply(least, big_double(0x1p-200));
        const int64_t n = big_floor(big_add(least, tiny));
        const bool tie = big_compare(big_subtract(least, big_integer(n)), tiny) < 0;
        oracle->thresholds[b] =
            (int32_t)(tie && same_power(n, most, exact, k, all) ? n : n + 1);
    }
    return true;
}

struct oracle *oracle_create(const struct call *call)
{
    struct oracle *oracle = calloc(1, sizeof *oracle);
    if (!oracle)
        return NULL;
    oracle->call = call;
    oracle->signature = kernel_signature(call->problem.kernel);
    bool made = true;
    if (oracle->signature == SIGNATURE_sinusoidal || oracle->signature == SIGNATURE_rope_table)
        made = create_plan(oracle);
    else if (oracle->signature == SIGNATURE_t5)
        made = create_thresholds(oracle);
    if (made)
        return oracle;
    oracle_destroy(oracle);
    return NULL;
}

void oracle_destroy(struct oracle *oracle)
{
    if (!oracle)
        return;
    free(oracle->turn);
    free(oracle->turns);
    free(oracle->inv_freq);
    free(oracle->divisor);
    free(oracle->kept);
    free(oracle->thresholds);
    free(oracle);
}

/* ---- Errors ---- */

float odd_to_f32(double want) { return (float)want; }

/* Classes that need no distance: NaN, infinities, zeros.  True when *error is the verdict. */
static bool class_verdict(float got, double want, double *error)
{
    const float nearest = odd_to_f32(want);
    if (isnan(got) || isnan(want))
        *error = isnan(got) && isnan(want) ? 0.0 : (double)INFINITY;
    else if (isinf(want) || isinf(got))
        *error = got == nearest ? 0.0 : (double)INFINITY;
    else
        return false;
    return true;
}

/* Distance between neighbouring f32 values at a magnitude; 2^-149 below the normal ones. */
static double ulp_at(double magnitude)
{
    int exponent;
    (void)frexp(magnitude, &exponent);
    exponent = magnitude == 0 || exponent < -125 ? -125 : exponent > 128 ? 128 : exponent;
    return ldexp(1.0, exponent - 24);
}

double ulp_error(float got, double want)
{
    double error;
    if (class_verdict(got, want, &error))
        return error;
    if (want == 0 && got == 0) /* an exact zero has a sign */
        return (signbit(got) != 0) == (signbit(want) != 0) ? 0.0 : (double)INFINITY;
    return fabs((double)got - want) / ulp_at(fabs(want));
}

double pair_ulp_error(float got, double want, double mass)
{
    if (mass == 0)
        return ulp_error(got, want);
    double error;
    if (class_verdict(got, want, &error))
        return error;
    return fabs((double)got - want) / ulp_at(fabs(mass));
}
