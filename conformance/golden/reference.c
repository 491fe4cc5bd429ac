/*
 * Reference outputs by MPFR: tables, rotations, what is added to tokens.  Sums of products of
 * f32 values are exact in 1200 bits; sines carry 320 and are irrational but at angle 0; cosines
 * twice as many, to be told from 1.  By queries and keys: reference_scores.c.
 *
 * With xPos a pair's sine and cosine are multiplied by zeta^((p - centre) / scale_base), zeta =
 * (2i + 0.4 d) / (1.4 d) = (10 i + 2 d) / (7 d), or by one over it (2212.10554, section 3.2).
 */
#include "golden.h"

#include <math.h>
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

/* By MPFR and not by a C cast. */
double reference_nearest_f32(double odd)
{
    mpfr_t x;
    mpfr_init2(x, 53);
    mpfr_set_d(x, odd, MPFR_RNDN);
    const double nearest = (double)mpfr_get_flt(x, MPFR_RNDN);
    mpfr_clear(x);
    return nearest;
}

/* What xPos multiplies by; whether that is exact: a whole power of a zeta such as 3/8 is. */
static bool xpos_scale(mpfr_t scale, const struct posenc_freqs_spec *spec, int64_t pair,
                       double position)
{
    const long up = 10 * (long)pair + 2 * (long)spec->dim, down = 7 * (long)spec->dim;
    mpfr_t power;
    mpfr_init2(power, 2 * PRECISION);
    mpfr_set_d(power, position, MPFR_RNDN);
    mpfr_sub_d(power, power, spec->xpos_centre, MPFR_RNDN);
    if (spec->xpos_inverse)
        mpfr_neg(power, power, MPFR_RNDN);
    const bool inverse = mpfr_sgn(power) < 0;
    mpfr_abs(power, power, MPFR_RNDN);
    bool inexact = mpfr_div_d(power, power, spec->xpos_scale_base, MPFR_RNDN) != 0;
    mpfr_set_si(scale, inverse ? down : up, MPFR_RNDN);
    inexact = mpfr_div_si(scale, scale, inverse ? up : down, MPFR_RNDN) != 0 || inexact;
    inexact = mpfr_pow(scale, scale, power, MPFR_RNDN) != 0 || inexact;
    const bool one = mpfr_zero_p(power) != 0;
    mpfr_clear(power);
    return one || !inexact;
}

/* Sines of twelfths of a turn that are rational numbers: of 0, 1/12, 3/12, 5/12, ...; sets `sine` and says
 * so. */
static bool rational_sine(mpfr_t sine, int twelfth, bool negative)
{
    static const int halves[12] = { 0, 1, 9, 2, 9, 1, 0, -1, 9, -2, 9, -1 };
    if (twelfth < 0 || halves[twelfth] == 9)
        return false;
    mpfr_set_d(sine, halves[twelfth] / 2.0, MPFR_RNDN);
    if (negative)
        mpfr_neg(sine, sine, MPFR_RNDN);
    return true;
}

static void exact_sincos(const struct reference_plan *plan, int64_t pair, double position,
                         double m, double *sine, double *cosine)
{
    mpfr_t x, s, c;
    mpfr_inits2(2 * PRECISION, x, s, c, (mpfr_ptr)0);
    mpfr_mul_d(x, plan->omega[pair], position, MPFR_RNDN);
    mpfr_sin_cos(s, c, x, MPFR_RNDN);
    const bool rests = mpfr_zero_p(x) != 0; /* with -0 before position 0 */
    const int twelfth = rests ? -1 : reference_twelfth(plan, pair, position);
    bool exact_sine = rests || rational_sine(s, twelfth, position < 0);
    bool exact = rests || rational_sine(c, twelfth < 0 ? -1 : (twelfth + 3) % 12, false);
    if (plan->spec->xpos_scale_base != 0) {
        const bool scaled = xpos_scale(x, plan->spec, pair, position);
        exact = exact && (scaled || mpfr_zero_p(c));
        exact_sine = exact_sine && (scaled || mpfr_zero_p(s));
        mpfr_mul(s, s, x, MPFR_RNDN);
        mpfr_mul(c, c, x, MPFR_RNDN);
    }
    mpfr_mul_d(s, s, m, MPFR_RNDN);
    mpfr_mul_d(c, c, m, MPFR_RNDN);
    *sine = round_to_odd(s, exact_sine);
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
        *sine = reference_nearest_f32(*sine) * reference_nearest_f32(m);
        *cosine = reference_nearest_f32(*cosine) * reference_nearest_f32(m);
    }
}

double reference_sum_of_products(double a, double b, double c, double d)
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

double reference_add_f32(double a, double b)
{
    mpfr_t x;
    mpfr_init2(x, EXACT_BITS);
    mpfr_set_d(x, a, MPFR_RNDN);
    mpfr_add_d(x, x, b, MPFR_RNDN);
    const double sum = (double)mpfr_get_flt(x, MPFR_RNDN);
    mpfr_clear(x);
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

/* Columns of one axis of a row: an encoding of its own, from pair first / 2 on. */
struct part {
    int64_t first, n;
};

static struct part part_of(const struct posenc_freqs_spec *spec, int64_t column)
{
    struct part part = { 0, spec->dim };
    if (spec->mrope_section[0] == 0)
        return part;
    part.n = 2 * spec->mrope_section[0];
    for (int axis = 1; column >= part.first + part.n; axis++) {
        part.first += part.n;
        part.n = 2 * spec->mrope_section[axis];
    }
    return part;
}

void output_sinusoidal(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const struct reference_plan *plan = of->plan;
    const int64_t dim = call->outputs[o].width;
    const double scale = call->problem.scale;
    for (int64_t k = 0; k < dim; k++) {
        const struct part part = part_of(plan->spec, k);
        const int64_t half = part.n / 2, own = k - part.first;
        double sine, cosine;
        int64_t pair = own / 2;
        bool is_sine = own % 2 == 0;
        if (call->problem.layout != POSENC_INTERLEAVED) {
            pair = own < half ? own : own - half;
            is_sine = (own < half) == (call->problem.layout == POSENC_SIN_COS);
            if (own == 2 * half) {
                want[k] = 0;
                continue;
            }
        }
        pair += part.first / 2;
        const double position = time_of(call, r, reference_axis(plan->spec, pair));
        reference_sincos(plan, pair, position, scale, &sine, &cosine);
        want[k] = is_sine ? sine : cosine;
    }
}

void output_rope_table(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const struct reference_plan *plan = of->plan;
    const int64_t n_pairs = call->outputs[o].width;
    for (int64_t i = 0; i < n_pairs; i++) {
        double sine, cosine;
        const double position = time_of(call, r, reference_axis(plan->spec, i));
        reference_sincos(plan, i, position, plan->attention_factor, &sine, &cosine);
        want[i] = strcmp(call->outputs[o].name, "cos") == 0 ? cosine : sine;
    }
}

void output_rope(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t dim = call->outputs[o].width;
    const struct problem *p = &call->problem;
    const int64_t half = p->rotary_dim / 2;
    const int64_t at = position_of(call, r, p->heads) * half;
    const float *x = call->x + r * dim;
    for (int64_t k = 0; k < dim; k++) {
        const int64_t own = k - p->rotary_offset; /* channel of the window that turns */
        const bool adjacent = kernel_pairs_adjacent(p->kernel);
        const int64_t i = adjacent ? own / 2 : own % half;
        const bool second = adjacent ? own % 2 == 1 : own >= half;
        const int64_t partner = adjacent ? own ^ 1 : second ? own - half : own + half;
        if (own < 0 || own >= p->rotary_dim) {
            want[k] = (double)x[k];
            continue;
        }
        const double other = (double)x[p->rotary_offset + partner];
        double sine = (double)call->sin[at + i];
        if (p->transpose)
            sine = -sine;
        want[k] = reference_sum_of_products((double)x[k], (double)call->cos[at + i],
                                            second ? other : -other, sine);
    }
}

/* What a row is multiplied by: one over the root of the mean square and epsilon, over a head or all
 * of a token.  Where a square is none of f32's, what IEEE arithmetic makes of it; says which. */
static bool inverse_root(mpfr_t root, const struct call *call, int64_t r, double *otherwise)
{
    const struct problem *p = &call->problem;
    const struct posenc_rope_qk_norm_args *args = &call->args.rope_qk_norm;
    const int64_t heads = args->across_heads ? p->heads : 1, n = heads * p->dim;
    const float *x = call->x + r / heads * heads * p->dim;
    mpfr_t square;
    mpfr_init2(square, EXACT_BITS);
    mpfr_set_zero(root, 1);
    for (int64_t i = 0; i < n; i++) {
        mpfr_set_d(square, (double)x[i], MPFR_RNDN);
        mpfr_sqr(square, square, MPFR_RNDN);
        mpfr_add(root, root, square, MPFR_RNDN);
    }
    const bool known = !mpfr_nan_p(root), finite = known && mpfr_cmp_d(root, 0x1p128) < 0;
    *otherwise = known ? 0.0 : (double)NAN;
    mpfr_div_si(root, root, (long)n, MPFR_RNDN);
    mpfr_add_d(root, root, (double)args->epsilon, MPFR_RNDN);
    mpfr_rec_sqrt(root, root, MPFR_RNDN);
    mpfr_clear(square);
    return finite;
}

/* x (weight + offset) times a cosine or sine. */
static void weighted(mpfr_t to, const struct call *call, int64_t r, int64_t k, double turn)
{
    const struct problem *p = &call->problem;
    mpfr_set_d(to, (double)call->table[r % p->heads * p->dim + k], MPFR_RNDN);
    mpfr_add_d(to, to, (double)call->args.rope_qk_norm.weight_offset, MPFR_RNDN);
    mpfr_mul_d(to, to, (double)call->x[r * p->dim + k], MPFR_RNDN);
    mpfr_mul_d(to, to, turn, MPFR_RNDN);
}

void output_rope_qk_norm(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t dim = call->outputs[o].width, half = call->problem.rotary_dim / 2;
    const int64_t at = position_of(call, r, call->problem.heads) * half;
    double otherwise;
    mpfr_t root, own, other;
    mpfr_inits2(EXACT_BITS, root, own, other, (mpfr_ptr)0);
    const bool finite = inverse_root(root, call, r, &otherwise);
    if (!finite)
        mpfr_set_d(root, otherwise, MPFR_RNDN);
    for (int64_t k = 0; k < dim; k++) {
        const int64_t turning = k - call->problem.rotary_offset;
        const bool turns = turning >= 0 && turning < 2 * half, second = turning >= half;
        weighted(own, call, r, k, turns ? (double)call->cos[at + turning % half] : 1.0);
        mpfr_mul(own, own, root, MPFR_RNDN);
        if (turns) {
            const double sine = (double)call->sin[at + turning % half];
            weighted(other, call, r, second ? k - half : k + half, second ? sine : -sine);
            mpfr_mul(other, other, root, MPFR_RNDN);
            mpfr_add(own, own, other, MPFR_RNDN);
        }
        want[k] = round_to_odd(own, !finite);
    }
    mpfr_clears(root, own, other, (mpfr_ptr)0);
}

void output_learned(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t dim = call->outputs[o].width;
    for (int64_t k = 0; k < dim; k++)
        want[k] = (double)call->table[position_of(call, r, 1) * dim + k];
}

void output_learned_grad(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t dim = call->outputs[o].width;
    const struct problem *p = &call->problem;
    for (int64_t k = 0; k < dim; k++)
        want[k] = p->accumulate ? (double)call->table[r * dim + k] : 0;
    for (int64_t t = 0; t < p->batch * p->tokens; t++)
        for (int64_t k = 0; position_of(call, t, 1) == r && k < dim; k++)
            want[k] = reference_add_f32(want[k], (double)call->x[t * dim + k]);
}

void reference_output(const struct call *call, int o, double *want)
{
    static reference_row *const rows[] = {
#define POSENC_SIGNATURE(name) [SIGNATURE_##name] = output_##name,
#include <posenc_signatures.def>
    };
    const enum posenc_kernel kernel = call->problem.kernel;
    const int64_t width = call->outputs[o].width;
    struct reference_plan plan;
    const struct reference of = { call, &plan };
    if (kernel_has_plan(kernel))
        reference_plan_init(&plan, &call->problem.freqs);
    for (int64_t r = 0; r < call->outputs[o].rows; r++) {
        double *row = want + r * width;
        rows[kernel_signature(kernel)](&of, o, r, row);
        for (int64_t k = 0; kernel_adds_onto_x(kernel) && k < width; k++)
            row[k] = reference_sum_of_products((double)call->x[r * width + k],
                                               (double)call->problem.x_scale,
                                               reference_nearest_f32(row[k]), 1);
    }
    if (kernel_has_plan(kernel))
        reference_plan_clear(&plan);
}
