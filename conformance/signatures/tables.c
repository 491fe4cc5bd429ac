/*
 * Tables of sines and cosines: sinusoidal, alone or added to activations, and those of the rotary angles. Expected
 * rows are computed in each numerics mode and with xPos.
 *
 * Learned tables: rows added to activations, and the gradient of the table. If a gradient accumulates, call_reset()
 * fills out with the values of a learned table.
 *
 * References: Vaswani et al. 1706.03762 section 3.5; Su et al. 2104.09864 section 3.4; Sun et al. 2212.10554 section
 * 3.2 with torchscale, xpos_relative_position.py.
 */
#include "conformance/oracle/rows.h"

#include <math.h>
#include <string.h>

#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL }

const struct signature signature_sinusoidal = {
    BLANK(sinusoidal),
    .tensors = { { OUT(sinusoidal, out), ACTIVATIONS },
                 { X(sinusoidal), ACTIVATIONS },
                 POSITIONS(sinusoidal) },
    .parameters = { PARAMETER(sinusoidal, layout), PARAMETER(sinusoidal, scale),
                    PARAMETER(sinusoidal, x_scale) },
    .freqs = ARGUMENT(sinusoidal, freqs),
    .channels = MEMBER(freqs.dim),
    .fields = FIELDS_FREQS "dim values_dtype layout scale x_scale",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_ANGLES,
};

#define PAIRS .dims = { DIM_BATCH, DIM_TOKEN, DIM_PAIR }

const struct signature signature_rope_table = {
    BLANK(rope_table),
    .tensors = { { OUT(rope_table, cos), PAIRS },
                 { OUT(rope_table, sin), PAIRS },
                 POSITIONS(rope_table) },
    .freqs = ARGUMENT(rope_table, freqs),
    .rotary = MEMBER(freqs.dim),
    .fields = FIELDS_FREQS "rotary_dim xpos_scale_base xpos_centre xpos_inverse",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_ANGLES,
};

/* ---- Numerics ggml_f32 ---- */

/* ggml multiplies the position by theta_scale once for each preceding pair, rounding each time. */
static float ggml_angle(const struct oracle *oracle, int64_t pair, double position)
{
    const struct exact_ggml *ggml = &oracle->ggml;
    float phi = (float)position;
    for (int64_t i = 0; i < pair; i++)
        phi = phi * ggml->theta_scale;
    const float extrapolated = phi / ggml->divisor[pair];
    const float interpolated = ggml->freq_scale * extrapolated;
    const float mix = ggml->ramp_mix[pair];
    const float left = interpolated * (1.0f - mix), right = extrapolated * mix;
    return left + right;
}

/* ---- xPos ---- */

/* Returns zeta_i^((position - centre) / scale_base) or its inverse, where zeta_i = (2i + 0.4 dim) / (1.4 dim). */
static struct big zeta_power(const struct oracle *oracle, int64_t pair, double position)
{
    const struct posenc_freqs_spec *spec = &oracle->call->problem.freqs;
    const struct big from = big_subtract(big_double(position), big_double(spec->xpos_centre));
    const struct big power = big_divide(from, big_double(spec->xpos_scale_base));
    const struct big exponent = big_multiply(power, oracle->log_zeta[pair]);
    return big_exp(spec->xpos_inverse ? big_negate(exponent) : exponent);
}

/* Multiplies a sine or cosine by a power of zeta. A product that is an f64 must not count as inexact: the cosine at
 * position 0 is 1, and an integer power of a zeta such as 3/8 can be an f64. */
static struct big scale_value(struct big value, struct big factor)
{
    if (!value.m[0]) /* a zero keeps its sign */
        return value;
    struct big product = big_multiply(value, factor);
    /* The product has an error below 2^-200 of itself. With that much added, an f64 has 128 zero bits after its first
     * 64. */
    const struct big above = big_add(product, big_multiply(product, big_double(0x1p-200)));
    product.inexact = value.inexact || above.m[1] != 0 || above.m[2] != 0;
    if (product.inexact)
        return product;
    return (struct big){ .negative = above.negative,
                         .exponent = above.exponent,
                         .m = { above.m[0] } };
}

/* ---- Angles ---- */

/* Computes `factor` times the sine and cosine of a pair in row r. The f32 modes round a sine to f32 before they
 * multiply it by (float)factor, and an f64 holds that product exactly. With a factor of 1 they do not multiply. */
static void compute_pair(const struct oracle *oracle, int64_t pair, int64_t r, double factor,
                         double *sine, double *cosine)
{
    const struct problem *p = &oracle->call->problem;
    const double position =
        problem_time(p, r / p->tokens, r % p->tokens, exact_axis(&p->freqs, pair));
    if (p->freqs.numerics == POSENC_NUMERICS_EXACT) {
        struct big s, c;
        big_sincos_time(oracle->turns[pair], position, &s, &c);
        if (oracle->log_zeta && position != p->freqs.xpos_centre) {
            const struct big scale = zeta_power(oracle, pair, position);
            s = scale_value(s, scale);
            c = scale_value(c, scale);
        }
        *sine = big_times(s, factor);
        *cosine = big_times(c, factor);
        return;
    }
    const float angle = p->freqs.numerics == POSENC_NUMERICS_GGML_F32
                            ? ggml_angle(oracle, pair, position)
                            : (float)position * oracle->inv_freq[pair];
    exact_sincos((double)angle, sine, cosine);
    if (factor != 1.0) {
        *sine = (double)exact_round_f32(*sine) * (double)(float)factor;
        *cosine = (double)exact_round_f32(*cosine) * (double)(float)factor;
    }
}

/* ---- Rows ---- */

static void row_sinusoidal(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct problem *problem = &oracle->call->problem;
    if (problem->layout != POSENC_LAYOUT_INTERLEAVED && width % 2)
        want[width - 1] = 0.0;
    for (int64_t i = 0; i < oracle->n_pairs; i++) {
        double sine, cosine;
        compute_pair(oracle, i, r, problem->scale, &sine, &cosine);
        const struct exact_section section = exact_section(&problem->freqs, i);
        const int64_t in_section = i - section.start;
        if (problem->layout == POSENC_LAYOUT_INTERLEAVED) {
            want[2 * i] = sine;
            if (2 * i + 1 < width)
                want[2 * i + 1] = cosine;
        } else if (in_section < section.pairs) {
            const bool sine_first = problem->layout == POSENC_LAYOUT_SIN_COS;
            double *at = want + 2 * section.start + in_section;
            at[0] = sine_first ? sine : cosine;
            at[section.pairs] = sine_first ? cosine : sine;
        }
    }
}

/* Computes the cosines and sines of a row together, and keeps them for the other output. Callers should ask for both
 * outputs of a row before the next row. */
static void row_rope_table(const struct oracle *oracle, int o, int64_t r, double *want)
{
    struct oracle_angles *angles = oracle->angles;
    const int64_t n = oracle->n_pairs;
    double *sines = angles->sines, *cosines = angles->cosines;
    for (int64_t i = 0; angles->row != r && i < n; i++)
        compute_pair(oracle, i, r, oracle->attention_factor, &sines[i], &cosines[i]);
    angles->row = r;
    memcpy(want, o == 0 ? cosines : sines, (size_t)n * sizeof *want);
}

/* ---- Creation ---- */

static bool create_freqs(struct oracle *oracle)
{
    const struct posenc_freqs_spec *spec = &oracle->call->problem.freqs;
    const size_t n = ((size_t)spec->dim + 1) / 2;
    struct big *bigs = arena_get(&oracle->arena, 2 * n * sizeof *bigs);
    float *floats = arena_get(&oracle->arena, 3 * n * sizeof *floats);
    struct oracle_angles *angles = arena_get(&oracle->arena, sizeof *angles);
    double *values = arena_get(&oracle->arena, 2 * n * sizeof *values);
    if (!bigs || !floats || !angles || !values)
        return false;
    *angles = (struct oracle_angles){ .row = -1, .sines = values, .cosines = values + n };
    oracle->angles = angles;
    oracle->n_pairs = (int64_t)n;
    oracle->turns = bigs;
    oracle->inv_freq = floats;
    oracle->ggml = (struct exact_ggml){ .n = (int64_t)n,
                                        .divisor = floats + n,
                                        .ramp_mix = floats + 2 * n };
    if (spec->numerics == POSENC_NUMERICS_EXACT)
        exact_turns(spec, oracle->n_pairs, oracle->turns);
    else
        exact_freqs(spec, oracle->n_pairs, NULL, oracle->inv_freq, NULL);
    exact_freqs(spec, 0, NULL, NULL, &oracle->attention_factor);
    if (spec->numerics == POSENC_NUMERICS_GGML_F32)
        exact_ggml(spec, &oracle->ggml);
    if (spec->xpos_scale_base != 0)
        oracle->log_zeta = bigs + n;
    for (int64_t i = 0; oracle->log_zeta && i < oracle->n_pairs; i++)
        oracle->log_zeta[i] = big_log(
            big_divide(big_integer(10 * i + 2 * spec->dim), big_integer(7 * spec->dim)));
    return true;
}

const struct oracle_functions oracle_sinusoidal = { .row = row_sinusoidal,
                                                    .create = create_freqs };
const struct oracle_functions oracle_rope_table = { .row = row_rope_table,
                                                    .create = create_freqs };

/* ---- Learned tables ---- */

/* Returns an upper bound of the rows of a table that the tokens use. */
static int64_t used_rows(const struct problem *p)
{
    bool shared = p->position_kind == POSENC_POSITIONS_OFFSET || p->batch_shift == 0;
    return signature_min(shared ? p->tokens : p->batch * p->tokens, p->rows);
}

static int64_t rows_moved(const struct problem *p) { return used_rows(p) * p->dim; }

const struct signature signature_learned = {
    BLANK(learned),
    .tensors = { { OUT(learned, out), ACTIVATIONS },
                 { X(learned), ACTIVATIONS },
                 { TABLE(learned, table), .dims = { DIM_ROW, DIM_CHANNEL },
                   .moved = rows_moved },
                 POSITIONS(learned) },
    .parameters = { PARAMETER(learned, x_scale) },
    .channels = MEMBER(dim),
    .fields = FIELDS_TOKENS "values_dtype dim rows x_scale",
    .cuts = { DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_NONE,
};

static void row_learned(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const float *row = call->table + oracle_row_position(&call->problem, r, 1) * width;
    for (int64_t k = 0; k < width; k++)
        want[k] = (double)row[k];
}

const struct oracle_functions oracle_learned = { .row = row_learned };

/* ---- Their gradient ---- */

/* A call that accumulates reads and writes the rows of its tokens. Others write all rows. */
static int64_t out_moved(const struct problem *p)
{
    return (p->accumulate ? 2 * used_rows(p) : p->rows) * p->dim;
}

const struct signature signature_learned_grad = {
    BLANK(learned_grad),
    .tensors = { { TABLE(learned_grad, out), .role = ROLE_OUTPUT,
                   .dims = { DIM_ROW, DIM_CHANNEL }, .moved = out_moved },
                 { X(learned_grad), .dims = { DIM_BATCH, DIM_TOKEN, DIM_CHANNEL } },
                 POSITIONS(learned_grad) },
    .parameters = { PARAMETER(learned_grad, accumulate) },
    .channels = MEMBER(dim),
    .rounded_limit = signature_limit_of_sums,
    .fields = FIELDS_TOKENS "values_dtype dim rows accumulate",
    .cuts = { DIM_CHANNEL }, /* tokens may share a row */
    .shares = { DIM_CHANNEL },
    .work = WORK_NONE,
};

/* Sums the rows of x whose position is r, in the order of tokens, by f32 additions. */
static void row_learned_grad(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const int64_t width = oracle->call->outputs[o].width;
    const struct call *call = oracle->call;
    const struct problem *problem = &call->problem;
    for (int64_t k = 0; k < width; k++)
        want[k] = problem->accumulate ? (double)call->table[r * width + k] : 0.0;
    for (int64_t t = oracle->first_token[r]; t >= 0; t = oracle->next_token[t])
        for (int64_t k = 0; k < width; k++)
            want[k] = (double)oracle_add_f32((float)want[k], call->x[t * width + k]);
}

/* Makes a linked list of the tokens of each row of the table, in their order. */
static bool create_learned_grad(struct oracle *oracle)
{
    const struct problem *problem = &oracle->call->problem;
    const int64_t rows = oracle->call->outputs[0].rows, n = problem->batch * problem->tokens;
    oracle->first_token = arena_get(&oracle->arena, (size_t)(rows + 1) * sizeof(int64_t));
    oracle->next_token = arena_get(&oracle->arena, (size_t)(n + 1) * sizeof(int64_t));
    if (!oracle->first_token || !oracle->next_token)
        return false;
    for (int64_t r = 0; r < rows; r++)
        oracle->first_token[r] = -1;
    for (int64_t t = n - 1; t >= 0; t--) {
        const int64_t r = oracle_row_position(problem, t, 1);
        if (r < 0 || r >= rows)
            continue;
        oracle->next_token[t] = oracle->first_token[r];
        oracle->first_token[r] = t;
    }
    return true;
}

/* Sets n times the sum of the magnitudes of a channel's n terms. */
static void magnitudes_learned_grad(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    const struct call *call = oracle->call;
    const int64_t width = call->problem.dim;
    double n = 0.0;
    for (int64_t k = 0; k < width; k++)
        magnitudes[k] =
            call->problem.accumulate ? fabs((double)call->table[r * width + k]) : 0.0;
    for (int64_t t = oracle->first_token[r]; t >= 0; t = oracle->next_token[t], n++)
        for (int64_t k = 0; k < width; k++)
            magnitudes[k] += fabs((double)call->x[t * width + k]);
    for (int64_t k = 0; k < width; k++)
        magnitudes[k] *= n;
}

const struct oracle_functions oracle_learned_grad = { row_learned_grad, create_learned_grad,
                                                      magnitudes_learned_grad };
