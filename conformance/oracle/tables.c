/*
 * Rows of tables: sines and cosines from integer phases (fixed.c), in the plan's profile;
 * scaled, with several axes, with xPos.
 *
 * References: Vaswani et al. 1706.03762 section 3.5; Su et al. 2104.09864 section 3.4; Sun et
 * al. 2212.10554 section 3.2 with torchscale, xpos_relative_position.py.
 */
#define _POSIX_C_SOURCE 200809L
#include "rows.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sines ---- */

/* n phase mod 1; returns the whole turns. */
static uint64_t phase_times(const uint64_t phase[3], uint64_t n, uint64_t product[3])
{
    u128 carry = 0;
    for (int i = 2; i >= 0; i--) {
        carry += (u128)phase[i] * n;
        product[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return (uint64_t)carry;
}

/* Which twelfth of a turn a phase is, from 0 to 11; -1 where it is none.  Twelfths are the only
 * rational phases whose sine or cosine is rational (Niven), and where a wavelength is a whole
 * number a position can have one.  A phase nearer than 2^-150 to a twelfth is taken for it:
 * 2^31 positions of a frequency cut to 192 bits are off by less than 2^-160, and no other
 * frequency in use comes so near. */
static int twelfth_of(const uint64_t phase[3])
{
    uint64_t rest[3];
    const int below = (int)phase_times(phase, 12, rest);
    if (rest[0] == 0 && rest[1] == 0 && rest[2] >> 40 == 0)
        return below;
    if (~rest[0] == 0 && ~rest[1] == 0 && ~rest[2] >> 40 == 0)
        return (below + 1) % 12;
    return -1;
}

/* sin and cos of 2 pi phase, exact where they are rational. */
static void sincos_phase(uint64_t phase[3], struct real *sine, struct real *cosine)
{
    const int twelfth = twelfth_of(phase);
    if (twelfth >= 0 && twelfth % 3 == 0) {
        phase[0] = (uint64_t)(twelfth / 3) << 62;
        phase[1] = phase[2] = 0;
    }
    fixed_sincos_phase(phase, sine, cosine);
    if (twelfth < 0 || twelfth % 3 == 0)
        return;
    struct real *half = twelfth % 2 ? sine : cosine; /* of 30 degrees, of 60 */
    half->exact = true;
    half->exponent = 0;
    half->mantissa = (u128)1 << 127;
}

static void sincos_turn(const uint64_t turn[3], int64_t position, struct real *sine,
                        struct real *cosine)
{
    uint64_t phase[3];
    phase_times(turn, position < 0 ? -(uint64_t)position : (uint64_t)position, phase);
    if (turn[0] | turn[1])
        sincos_phase(phase, sine, cosine);
    else /* at rest, or so slow that a phase near nothing is what it is */
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
        sincos_phase(phase, sine, cosine);
    }
    if (time < 0)
        sine->negative = !sine->negative;
}

/* ---- Profile ggml_f32 ---- */

/* The iterated product, from the position on. */
static float ggml_angle(const struct oracle *oracle, int64_t pair, double position)
{
    float phi = (float)position;
    for (int64_t i = 0; i < pair; i++)
        phi = phi * oracle->ggml.theta_scale;
    const float extrapolated = phi / oracle->ggml.divisor[pair];
    const float interpolated = oracle->ggml.freq_scale * extrapolated;
    const float kept = oracle->ggml.kept[pair];
    const float left = interpolated * (1.0f - kept), right = extrapolated * kept;
    return left + right;
}

/* ---- xPos ---- */

/* zeta_i = (2i + 0.4 dim) / (1.4 dim), as a fraction of integers. */
static bool create_zeta(struct oracle *oracle, const struct posenc_freqs_spec *spec)
{
    oracle->log_zeta = calloc((size_t)oracle->n_pairs, sizeof *oracle->log_zeta);
    for (int64_t i = 0; oracle->log_zeta && i < oracle->n_pairs; i++)
        oracle->log_zeta[i] = big_log(
            big_divide(big_integer(10 * i + 2 * spec->dim), big_integer(7 * spec->dim)));
    return oracle->log_zeta != NULL;
}

/* zeta_i^((position - centre) / scale_base), or one over it. */
static struct big zeta_power(const struct oracle *oracle, int64_t pair, double position)
{
    const struct posenc_freqs_spec *spec = &oracle->call->problem.freqs;
    const struct big from = big_subtract(big_double(position), big_double(spec->xpos_centre));
    const struct big power = big_divide(from, big_double(spec->xpos_scale_base));
    const struct big exponent = big_multiply(power, oracle->log_zeta[pair]);
    return big_exp(spec->xpos_inverse ? big_negate(exponent) : exponent);
}

/* A product with the 128 bits of a sine, of which it keeps 120.  The cosine of position 0,
 * which is 1, leaves the factor, and a whole power of a zeta such as 3/8 is an f64: it is one
 * where its 256 bits, some 250 of them right, are those of a number of 64. */
static struct real real_scaled(struct real value, struct big factor)
{
    const struct big mantissa = { .exponent = value.exponent,
                                  .m = { (uint64_t)(value.mantissa >> 64),
                                         (uint64_t)value.mantissa } };
    struct big product = big_multiply(mantissa, factor);
    bool exact = value.mantissa == 0;
    if (value.exact && !exact) {
        const struct big above = big_add(product, big_multiply(product, big_double(0x1p-200)));
        exact = above.m[1] == 0 && above.m[2] == 0;
        product = exact ? above : product;
    }
    return (struct real){ .negative = value.negative,
                          .exact = exact,
                          .exponent = product.exponent,
                          .mantissa = (u128)product.m[0] << 64 | product.m[1] };
}

/* ---- Angles ---- */

/* m times the sine and cosine of a pair in row r, in the plan's profile.  The f32 ones
 * round the sine to f32 and multiply by (float)m, which an f64 holds exactly; with m = 1 there
 * is no product and the sine itself is the truth. */
static void pair_values(const struct oracle *oracle, int64_t pair, int64_t r, double m,
                        double *sine, double *cosine)
{
    const struct problem *p = &oracle->call->problem;
    const double position =
        problem_time(p, r / p->tokens, r % p->tokens, oracle_axis(&p->freqs, pair));
    if (p->freqs.profile == POSENC_EXACT) {
        struct real s, c;
        if (position != floor(position))
            sincos_time(oracle->turns[pair], position, &s, &c);
        else
            sincos_turn(oracle->frequencies->turn[pair], (int64_t)position, &s, &c);
        if (oracle->log_zeta && position != p->freqs.xpos_centre) {
            const struct big scale = zeta_power(oracle, pair, position);
            s = real_scaled(s, scale);
            c = real_scaled(c, scale);
        }
        *sine = real_times(s, m);
        *cosine = real_times(c, m);
        return;
    }
    const float angle = oracle->ggml.divisor
                            ? ggml_angle(oracle, pair, position)
                            : (float)position * oracle->frequencies->inv_freq[pair];
    oracle_sincos((double)angle, sine, cosine);
    if (m != 1.0) {
        *sine = (double)odd_to_f32(*sine) * (double)(float)m;
        *cosine = (double)odd_to_f32(*cosine) * (double)(float)m;
    }
}

/* ---- Rows ---- */

/* The pairs that turn with the axis of pair i, all of them where there is one: an encoding of
 * its own beside the others. */
struct section {
    int64_t start, pairs;
};

static struct section section_of(const struct posenc_freqs_spec *spec, int64_t i)
{
    struct section section = { 0, spec->dim / 2 };
    for (int axis = 0; axis < 3 && spec->mrope_section[0] != 0; axis++) {
        section.pairs = spec->mrope_section[axis];
        if (i < section.start + section.pairs)
            break;
        section.start += section.pairs;
    }
    return section;
}

static void row_sinusoidal(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    if (problem->layout != POSENC_INTERLEAVED && width % 2)
        want[width - 1] = 0.0;
    for (int64_t i = 0; i < oracle->n_pairs; i++) {
        double sine, cosine;
        pair_values(oracle, i, r, problem->scale, &sine, &cosine);
        const struct section section = section_of(&problem->freqs, i);
        const int64_t own = i - section.start;
        if (problem->layout == POSENC_INTERLEAVED) {
            want[2 * i] = sine;
            if (2 * i + 1 < width)
                want[2 * i + 1] = cosine;
        } else if (own < section.pairs) {
            const bool sine_first = problem->layout == POSENC_SIN_COS;
            double *at = want + 2 * section.start + own;
            at[0] = sine_first ? sine : cosine;
            at[section.pairs] = sine_first ? cosine : sine;
        }
    }
}

static void row_rope_table(const struct oracle *oracle, int o, int64_t r, double *want)
{
    for (int64_t i = 0; i < oracle->n_pairs; i++) {
        double sine, cosine;
        pair_values(oracle, i, r, oracle->frequencies->attention_factor, &sine, &cosine);
        want[i] = o == 0 ? cosine : sine;
    }
}

/* ---- Creation ---- */

static bool create_ggml(struct oracle *oracle, const struct posenc_freqs_spec *spec)
{
    const size_t n = (size_t)oracle->n_pairs;
    oracle->ggml.n = oracle->n_pairs;
    oracle->ggml.divisor = calloc(n, sizeof *oracle->ggml.divisor);
    oracle->ggml.kept = calloc(n, sizeof *oracle->ggml.kept);
    if (!oracle->ggml.divisor || !oracle->ggml.kept)
        return false;
    oracle_ggml(spec, &oracle->ggml);
    return true;
}

static void frequencies_free(struct frequencies *f)
{
    if (f) {
        free(f->turn);
        free(f->inv_freq);
    }
    free(f);
}

static struct frequencies *frequencies_create(const struct posenc_freqs_spec *spec)
{
    const int64_t n = (spec->dim + 1) / 2;
    const bool exact = spec->profile == POSENC_EXACT;
    struct frequencies *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->spec = *spec;
    f->turn = exact ? calloc((size_t)n, sizeof *f->turn) : NULL;
    f->inv_freq = exact ? NULL : calloc((size_t)n, sizeof *f->inv_freq);
    if (!f->turn && !f->inv_freq) {
        frequencies_free(f);
        return NULL;
    }
    oracle_freqs(spec, n, f->turn, f->inv_freq, &f->attention_factor);
    return f;
}

/* The suites ask for the same few specs for each backend again, so they are kept, unless they
 * are made from arrays, which may change; padding that differs makes another one at worst. */
static bool find_frequencies(struct oracle *oracle, const struct posenc_freqs_spec *spec)
{
    enum { MOST_KEPT = 512 };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct frequencies *all;
    static int n_kept;
    const bool arrays = spec->values || spec->short_factor || spec->long_factor;
    pthread_mutex_lock(&lock);
    struct frequencies *f = arrays ? NULL : all;
    while (f && memcmp(&f->spec, spec, sizeof *spec) != 0)
        f = f->next;
    if (!f && (f = frequencies_create(spec))) {
        if (arrays || n_kept == MOST_KEPT) {
            oracle->own = f;
        } else {
            f->next = all;
            all = f;
            n_kept++;
        }
    }
    pthread_mutex_unlock(&lock);
    oracle->frequencies = f;
    return f != NULL;
}

static bool create_plan(struct oracle *oracle)
{
    const struct posenc_freqs_spec *spec = &oracle->call->problem.freqs;
    oracle->n_pairs = (spec->dim + 1) / 2;
    const size_t n = (size_t)oracle->n_pairs;
    if (!find_frequencies(oracle, spec))
        return false;
    if (spec->profile == POSENC_GGML_F32 && !create_ggml(oracle, spec))
        return false;
    if (spec->profile == POSENC_EXACT &&
        oracle->call->problem.position_kind == POSENC_POSITIONS_F32) {
        oracle->turns = calloc(n, sizeof *oracle->turns);
        if (!oracle->turns)
            return false;
        oracle_turns(spec, oracle->n_pairs, oracle->turns);
    }
    return spec->xpos_scale_base == 0 || create_zeta(oracle, spec);
}

void destroy_plan(struct oracle *oracle)
{
    frequencies_free(oracle->own);
    free(oracle->turns);
    free(oracle->log_zeta);
    free(oracle->ggml.divisor);
    free(oracle->ggml.kept);
}

const struct oracle_rows oracle_sinusoidal = { .row = row_sinusoidal, .create = create_plan };
const struct oracle_rows oracle_rope_table = { .row = row_rope_table, .create = create_plan };
