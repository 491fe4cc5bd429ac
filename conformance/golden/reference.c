/*
 * Reference outputs by MPFR: tables, rotations, what is added to tokens.  The bits of mp.h hold sums
 * of two products of f32 values whole; sines are irrational but at angle 0 and at some twelfths of
 * a turn.  By queries and keys: reference_scores.c.
 *
 * With xPos a pair's sine and cosine are multiplied by zeta^((p - centre) / scale_base), zeta =
 * (2i + 0.4 d) / (1.4 d) = (10 i + 2 d) / (7 d), or by one over it (2212.10554, section 3.2).
 */
#include "golden.h"

#include <math.h>
#include <string.h>

double round_to_odd(number value, bool exact)
{
    const double toward_zero = mpfr_get_d(value, MPFR_RNDZ);
    const bool cut = mpfr_cmp_d(value, toward_zero) != 0;
    if (!mpfr_regular_p(value) || (exact && !cut))
        return toward_zero;
    uint64_t bits = double_to_bits(toward_zero);
    if (!cut && fabs(toward_zero) == 1)
        bits--; /* a cosine so near 1 that its bits do not tell them apart is still below */
    return bits_to_double(bits | 1);
}

void reference_sincos_angle(double angle, double *sine, double *cosine)
{
    number s, c;
    mp_sin_cos(mp_of(angle), &s, &c);
    *sine = round_to_odd(s, angle == 0);
    *cosine = round_to_odd(c, angle == 0);
}

/* By MPFR and not by a C cast. */
double reference_nearest_f32(double odd) { return (double)mp_float(mp_of(odd)); }

/* What xPos multiplies by; MPFR's flag says whether that is inexact: a whole power of a zeta such as
 * 3/8 is not. */
static number xpos_scale(const struct posenc_freqs_spec *spec, int64_t pair, double position)
{
    const number up = mp_of((double)(10 * pair + 2 * spec->dim)),
                 down = mp_of((double)(7 * spec->dim));
    const number distance = mp_sub(mp_of(position), mp_of(spec->xpos_centre));
    const bool inverse = spec->xpos_inverse != (mpfr_sgn(distance) < 0);
    number power = mp_div(distance, mp_of(spec->xpos_scale_base));
    if (mpfr_zero_p(power))
        return mp_of(1);
    if (mpfr_sgn(power) < 0)
        power = mp_neg(power);
    return mp_pow(inverse ? mp_div(down, up) : mp_div(up, down), power);
}

/* The sine of so many twelfths of a turn where it is a rational number: of 0, 1/12, 3/12, 5/12, ... */
static bool rational_sine(number *sine, int twelfth, bool negative)
{
    static const int halves[12] = { 0, 1, 9, 2, 9, 1, 0, -1, 9, -2, 9, -1 };
    if (twelfth < 0 || halves[twelfth] == 9)
        return false;
    *sine = mp_of(halves[twelfth] / (negative ? -2.0 : 2.0));
    return true;
}

static void exact_sincos(const struct reference_plan *plan, int64_t pair, double position,
                         double m, double *sine, double *cosine)
{
    const number angle = mp_mul(plan->omega[pair], mp_of(position));
    const bool rests = mpfr_zero_p(angle) != 0; /* with -0 before position 0 */
    const int twelfth = rests ? -1 : reference_twelfth(plan, pair, position);
    number s, c, scale = mp_of(m);
    mp_sin_cos(angle, &s, &c);
    const bool exact_sine = rational_sine(&s, twelfth, position < 0) || rests;
    const bool exact = rational_sine(&c, twelfth < 0 ? -1 : (twelfth + 3) % 12, false) || rests;
    mpfr_clear_inexflag();
    if (plan->spec->xpos_scale_base != 0)
        scale = mp_mul(scale, xpos_scale(plan->spec, pair, position));
    const bool scaled = mpfr_inexflag_p() == 0;
    *sine = round_to_odd(mp_mul(s, scale), exact_sine && scaled);
    *cosine = round_to_odd(mp_mul(c, scale), exact && scaled);
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
    const number ab = mp_mul(mp_of(a), mp_of(b)), cd = mp_mul(mp_of(c), mp_of(d));
    return round_to_odd(mp_add(ab, cd), true);
}

double reference_add_f32(double a, double b)
{
    return (double)mp_float(mp_add(mp_of(a), mp_of(b)));
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

void output_sinusoidal(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const struct reference_plan *plan = of->plan;
    const int64_t dim = call->outputs[o].width;
    const double scale = call->problem.scale;
    for (int64_t k = 0; k < dim; k++) {
        const struct section section = reference_section(plan->spec, k / 2);
        const int64_t half = section.n, own = k - 2 * section.first;
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
        pair += section.first;
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
 * of a token.  Where a square is none of f32's, what IEEE arithmetic makes of it, which is exact. */
static number inverse_root(const struct call *call, int64_t r, bool *exact)
{
    const struct problem *p = &call->problem;
    const struct posenc_rope_qk_norm_args *args = &call->args.rope_qk_norm;
    const int64_t heads = args->across_heads ? p->heads : 1, n = heads * p->dim;
    const float *x = call->x + r / heads * heads * p->dim;
    number sum = mp_of(0);
    for (int64_t i = 0; i < n; i++)
        sum = mp_add(sum, mp_mul(mp_of((double)x[i]), mp_of((double)x[i])));
    *exact = mpfr_nan_p(sum) || mpfr_cmp_d(sum, 0x1p128) >= 0;
    if (*exact)
        return mp_of(mpfr_nan_p(sum) ? (double)NAN : 0.0);
    const number mean = mp_div(sum, mp_of((double)n));
    return mp_div(mp_of(1), mp_sqrt(mp_add(mean, mp_of((double)args->epsilon))));
}

/* x (weight + offset) times the root and a cosine or sine. */
static number weighted(const struct call *call, int64_t r, int64_t k, number root, double turn)
{
    const struct problem *p = &call->problem;
    const number weight = mp_of((double)call->table[r % p->heads * p->dim + k]);
    const number factor = mp_add(weight, mp_of((double)call->args.rope_qk_norm.weight_offset));
    const number own = mp_mul(factor, mp_of((double)call->x[r * p->dim + k]));
    return mp_mul(mp_mul(own, mp_of(turn)), root);
}

void output_rope_qk_norm(const struct reference *of, int o, int64_t r, double *want)
{
    const struct call *call = of->call;
    const int64_t dim = call->outputs[o].width, half = call->problem.rotary_dim / 2;
    const int64_t at = position_of(call, r, call->problem.heads) * half;
    bool exact;
    mpfr_t root;
    mpfr_init2(root, MP_BITS);
    mpfr_set(root, inverse_root(call, r, &exact), MPFR_RNDN);
    for (int64_t k = 0; k < dim; k++) {
        const int64_t turning = k - call->problem.rotary_offset;
        const bool turns = turning >= 0 && turning < 2 * half, second = turning >= half;
        const double cosine = turns ? (double)call->cos[at + turning % half] : 1.0;
        number sum = weighted(call, r, k, root, cosine);
        if (turns) {
            const double sine = (double)call->sin[at + turning % half];
            const int64_t other = second ? k - half : k + half;
            sum = mp_add(sum, weighted(call, r, other, root, second ? sine : -sine));
        }
        want[k] = round_to_odd(sum, exact);
    }
    mpfr_clear(root);
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
