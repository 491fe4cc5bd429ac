/* Compares the outputs of a call with the expected values; see judge.h. */
#include "judge.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *problem_numerics_name(const struct problem *problem)
{
    return kernel_has_freqs(problem->kernel) ? numerics_names[problem->freqs.numerics]
                                             : "given";
}

enum posenc_dtype problem_output_dtype(const struct problem *problem)
{
    return tensor_dtype(problem, signature_output(signature_of(problem->kernel), 0));
}

static int problem_range(const struct problem *p)
{
    int range = 0;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t t = 0; t < p->tokens; t++) {
            for (int axis = 0; axis < problem_axes(p); axis++) {
                int r = range_of_position((int64_t)problem_time(p, b, t, axis));
                range = r > range ? r : range;
            }
        }
    return range;
}

/* Returns the power of two at or above a scale, the factor of absolute limits: half an ulp grows with the binade. */
static double power_above(double scale)
{
    double power = 1.0;
    while (power < scale && power < 0x1p100)
        power *= 2.0;
    return power;
}

static bool is_power_of_two(double scale)
{
    int exponent;
    return frexp(scale, &exponent) == 0.5;
}

/* Largest error of an angle below position 2^10 in families that round it to f64. Near zeros of a sine it is many ulp
 * of the result, although limits are in ulp there (error_limits.txt). */
static const double ANGLE_ERROR = 0x1p-42;
static bool rounds_angle(const char *family)
{
    return strcmp(family, "libm") == 0 || strcmp(family, "autovec") == 0;
}

/* Returns true if the sine is rounded to f32 before its product with a scale: in the f32 numerics modes, and by SLEEF's
 * functions. */
static bool rounds_sine(const struct problem *p, const char *family)
{
    return p->freqs.numerics != POSENC_NUMERICS_EXACT || strcmp(family, "sleef") == 0;
}

/* Returns the limit of the product of a rounded sine and a scale. A sine within L ulp is at most k = floor(L + 1/2)
 * steps from the correctly rounded one. A step changes the product by less than 2 ulp. */
static double scaled_limit(double limit) { return 2.0 * floor(limit + 0.5) + 0.5; }

static bool is_program(const struct comparison *c)
{
    return c->tally->run && c->tally->run->options && c->tally->run->options->program;
}

/* Sets kind and limit for a program: of a term that is added to x, or of a result. */
static void allow_roundings(struct comparison *c, enum posenc_kernel kernel)
{
    const struct signature *s = signature_of(kernel);
    c->limit = s->rounded_limit ? s->rounded_limit(&c->call->problem) : 0.0;
    if (kernel_adds_onto_x(kernel))
        c->kind = COMPARE_SUM;
    else if (c->limit > 0.0)
        c->kind = COMPARE_PAIR;
}

void compare_begin(struct comparison *c, struct tally *t)
{
    *c = (struct comparison){ .tally = t, .kind = COMPARE_EXACT, .ratio = -1.0 };
}

/* Allows a little more than the limit, as expected values are known only to 2^-28 ulp. */
static bool within_limit(const struct comparison *c)
{
    return c->kind == COMPARE_EXACT ? c->misrounded == 0 : c->ratio <= 1.0 + 0x1p-26;
}

/* Returns true if a rotation copies a channel. */
static bool is_copied(const struct comparison *c, int64_t column)
{
    const struct problem *p = &c->call->problem;
    return c->kind == COMPARE_PAIR && signature_of(p->kernel)->copies &&
           !problem_rotation(p, column).rotates;
}

static bool is_unwritten(const struct comparison *c)
{
    return float_to_bits(c->tally->result.got) == CALL_CANARY;
}

/* Describes the place of the worst value while its call still exists. */
static void describe_worst(struct comparison *c)
{
    struct conf_result *r = &c->tally->result;
    if (c->needs_place)
        describe_place(c->call, c->output, c->row, c->column, r->worst_at, sizeof r->worst_at);
    if (c->needs_place && !within_limit(c))
        tally_set_problem(c->tally, &c->call->problem);
    c->needs_place = false;
}

void compare_next(struct comparison *c, const struct call *call,
                  const struct posenc_backend *backend, int range)
{
    enum posenc_kernel kernel = call->problem.kernel;
    describe_worst(c);
    c->call = call;
    c->dtype = problem_output_dtype(&call->problem);
    if (kernel_rotates(kernel)) {
        c->kind = COMPARE_PAIR;
        c->limit = signature_of(kernel)->error_limit(&call->problem, backend->fused);
    }
    if (!kernel_has_freqs(kernel)) {
        if (is_program(c) && !kernel_rotates(kernel))
            allow_roundings(c, kernel);
        return;
    }
    int at = range == RANGE_FARTHEST ? problem_range(&call->problem) : range;
    const enum posenc_kernel table =
        is_table_kernel(kernel) ? kernel : POSENC_KERNEL_SINUSOIDAL;
    const struct error_limit *limit =
        error_limits_find(table, backend, problem_numerics_name(&call->problem), at);
    c->range = range_name[at];
    c->lacks_limit = !limit;
    if (!limit)
        return;
    double scale = signature_argument(signature_of(kernel), MEMBER(scale))
                       ? fabs(call->problem.scale)
                       : posenc_freqs_view_of(call->freqs).attention_factor;
    const bool absolute = limit->is_absolute;
    c->kind = is_table_kernel(kernel) ? absolute ? COMPARE_ABS : COMPARE_ULP : COMPARE_SUM;
    if (absolute)
        c->limit = limit->limit * power_above(scale);
    else if (is_power_of_two(scale) || !rounds_sine(&call->problem, limit->family))
        c->limit = limit->limit;
    else
        c->limit = scaled_limit(limit->limit);
    c->table_abs = absolute ? c->limit : 0.0;
    c->least_unit = rounds_angle(limit->family) ? ANGLE_ERROR : 0.0;
    if (is_program(c)) /* also at an exact zero, which the other families have */
        c->least_unit *= power_above(scale);
}

static double ulp_of_f32(double value) { return exact_ulp(POSENC_DTYPE_F32, fabs(value)); }

/* Compares the classes: returns infinity for different ones, 0 for equal special values, -1 for finite values. */
static double class_error(const struct comparison *c, float got, double want, double mass)
{
    bool same = false;
    if (float_to_bits(got) == CALL_CANARY)
        return (double)INFINITY;
    if (isnan(want) || isnan(got))
        same = isnan(want) && isnan(got);
    else if (isinf(want) || isinf(got))
        same = (double)got == want;
    else if (want == 0.0 && c->kind == COMPARE_PAIR && mass > 0.0)
        return -1.0; /* products that cancel leave their rounding errors */
    else if (want == 0.0 && c->kind == COMPARE_SUM && got != 0.0f)
        return -1.0; /* a sum that cancels */
    else if (want == 0.0 && is_program(c) && c->kind != COMPARE_EXACT && got != 0.0f)
        return -1.0; /* a sine of an angle that is rounded */
    else if (want == 0.0)
        same = got == 0.0f && (is_program(c) || (signbit(got) != 0) == (signbit(want) != 0));
    else
        return -1.0;
    return same ? 0.0 : (double)INFINITY;
}

/* Unit and limit of the error of an f32 result. */
struct measure {
    double unit, limit;
};

/* Returns the measure of x x_scale + v, in ulp of the larger term. The sum of a correctly rounded table value v and a
 * product, rounded once, is off by ulp(sum)/2. A backend whose table may be off by L ulp adds (L + 1/2) ulp(v). A
 * property test checks to the bit that the sum equals build-then-add with the backend's own table. A program may round
 * the product, too; the limit of its term is in ulp of the oracle's magnitude, if there is one. */
static struct measure measure_sum(const struct comparison *c, double x, double want,
                                  double mass)
{
    double product = x * (double)c->call->problem.x_scale, value = want - product;
    double of_table = oracle_has_magnitudes(c->call->problem.kernel) ? mass : value;
    double least = is_program(c) ? c->least_unit : 0.0;
    double table =
        c->table_abs > 0.0 ? c->table_abs : c->limit * fmax(ulp_of_f32(of_table), least);
    double unit = ulp_of_f32(fmax(fabs(product), fabs(value)));
    double own = is_program(c) ? 0.5 * ulp_of_f32(product) : 0.0;
    return (struct measure){
        unit, (table + own + 0.5 * ulp_of_f32(value) + 0.5 * ulp_of_f32(want)) / unit
    };
}

/* Returns the power of two at or above the factor of xPos, by which absolute limits scale. */
static double xpos_binade(const struct call *call, int64_t r, int64_t pair)
{
    const struct problem *p = &call->problem;
    const struct posenc_freqs_spec *f = &p->freqs;
    if (f->xpos_scale_base == 0.0)
        return 1.0;
    double zeta = (2.0 * (double)pair + 0.4 * (double)f->dim) / (1.4 * (double)f->dim);
    double position = problem_time(p, r / p->tokens, r % p->tokens, 0);
    double power = (position - f->xpos_centre) / f->xpos_scale_base;
    return exp2(ceil(log2(zeta) * (f->xpos_inverse ? -power : power)));
}

static struct measure measure_of(const struct comparison *c, int64_t r, int64_t column,
                                 double want, double mass)
{
    int64_t width = c->call->outputs[0].width;
    switch (c->kind) {
    case COMPARE_ABS:
        return (struct measure){ 1.0, c->limit * xpos_binade(c->call, r, column) };
    case COMPARE_PAIR:
        return (struct measure){ ulp_of_f32(mass > 0.0 ? mass : want), c->limit };
    case COMPARE_SUM:
        return measure_sum(c, (double)c->call->x[r * width + column], want, mass);
    case COMPARE_EXACT:
    case COMPARE_ULP:
        break;
    }
    return (struct measure){ fmax(ulp_of_f32(want), c->least_unit), c->limit };
}

/* Returns true if inputs of a program may overflow on the way: a square, a product that is added, or a term or partial
 * sum, which the magnitude bounds. The result then depends on the order of operations. Besides an infinite term, others
 * that overflow in one order alone make a NaN of an infinity. */
static bool may_overflow(const struct comparison *c, int64_t r, int64_t column, float got,
                         double want, double mass)
{
    const struct call *call = c->call;
    const double most = 0x1.ffffffp127; /* rounds to infinity */
    if (!is_program(c))
        return false;
    const struct signature *s = signature_of(call->problem.kernel);
    if (s->rounded_limit && isinf(mass) &&
        ((isnan(got) && isinf(want)) || (isinf(got) && isnan(want))))
        return true;
    if ((s->rounded_limit || s->error_limit) && isfinite(mass) && mass >= most)
        return true;
    if (s->overflows && s->overflows(call, r))
        return true;
    if (c->kind != COMPARE_SUM)
        return false;
    const double x = (double)call->x[r * call->outputs[0].width + column];
    return isfinite(x) && fabs(x * (double)call->problem.x_scale) >= most;
}

/* Infinity by overflow of a 16-bit type counts as a finite value, not as a different class. */
struct stored_error compare_value(const struct comparison *c, int64_t r, int64_t column,
                                  float got, double want, double mass, bool *is_rounded)
{
    struct stored_error e = { class_error(c, got, want, mass), c->limit };
    *is_rounded = isnan(want)
                      ? isnan(got) && float_to_bits(got) != CALL_CANARY
                      : float_to_bits(got) == float_to_bits(exact_round(c->dtype, want));
    if (is_program(c) && got == 0.0f && exact_round(c->dtype, want) == 0.0f)
        *is_rounded = true; /* of either sign */
    if (is_copied(c, column)) {
        *is_rounded = float_to_bits(got) ==
                      float_to_bits(c->call->x[r * c->call->outputs[0].width + column]);
        e.error = *is_rounded ? 0.0 : (double)INFINITY;
    } else if (*is_rounded && (c->kind == COMPARE_EXACT || isinf(got))) {
        e.error = 0.0;
    } else if (c->dtype != POSENC_DTYPE_F32 && (e.error < 0.0 || isinf(got))) {
        struct measure f32 = measure_of(c, r, column, want, mass);
        e = exact_stored_error(c->dtype, got, want,
                               c->kind == COMPARE_EXACT ? 0.0 : f32.limit * f32.unit);
    } else if (e.error < 0.0) {
        struct measure f32 = measure_of(c, r, column, want, mass);
        e = (struct stored_error){ fabs((double)got - want) / f32.unit, f32.limit };
    }
    if (e.error > e.limit && may_overflow(c, r, column, got, want, mass))
        e.error = 0.0;
    return e;
}

/* Counts a value, and keeps it if it is the worst so far. */
static void count_value(struct comparison *c, int o, int64_t r, int64_t column, float got,
                        double want, struct stored_error e, bool is_rounded)
{
    c->checked++;
    c->misrounded += !is_rounded;
    double ratio = e.error == 0.0 ? 0.0 : e.error / e.limit;
    struct conf_result *result = &c->tally->result;
    if (ratio > c->ratio || (ratio == c->ratio && e.error > result->max)) {
        c->ratio = ratio;
        c->needs_place = true;
        c->output = o;
        c->row = r;
        c->column = column;
        result->got = got;
        result->want = want;
        result->max = e.error;
        result->limit = e.limit;
    }
}

void compare_values(struct comparison *c, int o, int64_t r, int64_t column, int64_t n,
                    const double *want, const double *mass)
{
    const float *got = call_row(c->call, o, r) + column;
    for (int64_t i = 0; i < n; i++) {
        bool is_rounded;
        double weight = mass ? mass[i] : fabs(want[i]);
        struct stored_error e =
            compare_value(c, r, column + i, got[i], want[i], weight, &is_rounded);
        count_value(c, o, r, column + i, got[i], want[i], e, is_rounded);
    }
}

void compare_peer_next(struct comparison *c, struct comparison *peer, const struct call *call,
                       const struct posenc_backend *backend, const struct posenc_backend *other)
{
    compare_next(c, call, backend, RANGE_FARTHEST);
    compare_next(peer, call, other, RANGE_FARTHEST);
    if (strcmp(backend->family, other->family) == 0) {
        c->kind = COMPARE_EXACT;
        c->limit = 0.0;
    }
}

/* Returns the larger result of the pair to which a channel belongs, or of the channel itself if it is not rotated. */
static double larger_of_pair(const struct problem *p, const float *row, int64_t channel)
{
    const int64_t other = problem_rotation(p, channel).partner;
    return fmax(fabs((double)row[channel]), fabs((double)row[other]));
}

/* Returns the distance of a result from that of a peer, and its limit. Each result is within its limit of the exact value, so that both differ by at most the sum of the limits. Units are
 * taken at the peer's result, which may lie one binade below the exact value (the larger product of a rotation is at
 * most sqrt 2 times the larger result of the pair). So the sum is doubled. Results in 16 bits may also be rounded to
 * different neighbours, one ulp apart. */
static struct stored_error measure_distance(const struct comparison *c,
                                            const struct comparison *peer, int64_t r,
                                            int64_t column, float got, const float *reference)
{
    double want = (double)reference[column], mass = fabs(want);
    if (c->kind == COMPARE_EXACT || is_copied(c, column) || !isfinite(got) || !isfinite(want))
        return (struct stored_error){ (double)INFINITY, c->limit };
    if (c->kind == COMPARE_PAIR)
        mass = larger_of_pair(&c->call->problem, reference, column);
    struct measure own_measure = measure_of(c, r, column, want, mass),
                   peer_measure = measure_of(peer, r, column, want, mass);
    double most = 2.0 * (own_measure.limit * own_measure.unit +
                         peer_measure.limit * peer_measure.unit),
           unit = own_measure.unit;
    if (c->dtype != POSENC_DTYPE_F32) {
        unit = exact_ulp(c->dtype, fmax(fabs(want), fabs((double)got)));
        most += unit;
    }
    return (struct stored_error){ fabs((double)got - want) / unit, most / unit };
}

void compare_peer_row(struct comparison *c, const struct comparison *peer, int o, int64_t r,
                      const float *reference)
{
    const float *got = call_row(c->call, o, r);
    int64_t width = c->call->outputs[o].width;
    if (memcmp(got, reference, (size_t)width * sizeof *got) == 0) {
        c->checked += (uint64_t)width;
        return;
    }
    for (int64_t i = 0; i < width; i++) {
        bool same =
            float_to_bits(got[i]) == float_to_bits(reference[i]) ||
            (isnan(got[i]) && isnan(reference[i]) && float_to_bits(got[i]) != CALL_CANARY);
        struct stored_error e = { 0.0, c->limit };
        if (!same)
            e = measure_distance(c, peer, r, i, got[i], reference);
        count_value(c, o, r, i, got[i], (double)reference[i], e, same);
    }
}

static bool is_row_rounded(const struct call *call, const struct oracle_answer *answer, int o,
                           int64_t r)
{
    const int64_t width = call->outputs[o].width;
    return memcmp(call_row(call, o, r), answer->stored[o] + r * width,
                  (size_t)width * sizeof(float)) == 0;
}

void compare_call(struct comparison *c, const double *const *given)
{
    const struct call *call = c->call;
    const bool has_unit = c->kind == COMPARE_PAIR || c->kind == COMPARE_SUM;
    const bool needs_oracle =
        !given || (has_unit && oracle_has_magnitudes(call->problem.kernel));
    struct oracle_answer *answer = needs_oracle ? oracle_get_answer(call) : NULL;
    const bool ready = require(c->tally, answer || !needs_oracle, "out of memory");
    for (int o = 0; ready && o < call->n_outputs; o++)
        for (int64_t r = 0, width = call->outputs[o].width; r < call->outputs[o].rows; r++)
            if (c->skips_rounded && !given && is_row_rounded(call, answer, o, r))
                c->checked += (uint64_t)width;
            else
                compare_values(
                    c, o, r, 0, width, (given ? given[o] : answer->want[o]) + r * width,
                    answer && answer->magnitudes[o] ? answer->magnitudes[o] + r * width : NULL);
    oracle_release_answer(answer);
}

void require_within_limits(struct tally *t, const struct call *call,
                           const struct posenc_backend *backend)
{
    struct comparison c;
    struct tally own = { .run = t->run,
                         .result = { .kernel = call->problem.kernel,
                                     .numerics = problem_numerics_name(&call->problem) } };
    compare_begin(&c, &own);
    c.skips_rounded = true;
    compare_next(&c, call, backend, RANGE_FARTHEST);
    compare_call(&c, NULL);
    compare_end(&c);
    t->result.checked += c.checked;
    if (own.result.status != CONF_PASS)
        require(t, false, "%s: %s", call->outputs[c.output].name, own.result.reason);
}

void compare_problem(struct comparison *c, const struct problem *problem, int range)
{
    struct tally *t = c->tally;
    const struct call *call =
        t->result.status == CONF_PASS ? tally_run(t, problem, NULL, NULL) : NULL;
    if (!call)
        return;
    compare_next(c, call, t->run->backend, range);
    compare_call(c, NULL);
    compare_end_call(c);
}

void compare_end_call(struct comparison *c)
{
    describe_worst(c);
    c->call = NULL;
    tally_free_calls(c->tally);
}

const char *compare_metric(const struct comparison *c)
{
    static const char *const metric[] = { "exact", "ulp", "abs", "pair_ulp", "pair_ulp" };
    return c->dtype != POSENC_DTYPE_F32 && c->kind != COMPARE_EXACT ? "ulp" : metric[c->kind];
}

void compare_end(struct comparison *c)
{
    struct tally *t = c->tally;
    struct conf_result *r = &t->result;
    bool narrow = c->dtype != POSENC_DTYPE_F32,
         table = c->kind == COMPARE_ULP || c->kind == COMPARE_ABS;
    if (r->status != CONF_PASS || (t->skipped && !c->checked)) /* a call was not made */
        return;
    describe_worst(c);
    r->metric = compare_metric(c);
    r->range = table && !narrow ? c->range : NULL; /* error limits are for f32 results */
    if (c->lacks_limit)
        require(t, false, "no error limit for %s %s %s", posenc_kernel_name(r->kernel),
                r->numerics, c->range);
    else if (!c->checked)
        require(t, false, "no value was compared");
    else if (within_limit(c))
        ;
    else if (is_unwritten(c))
        require(t, false, "not written, want %a, at %s", r->want, r->worst_at);
    else if (c->kind == COMPARE_EXACT)
        require(t, false, "got %a want %a, not the same bits, at %s", (double)r->got, r->want,
                r->worst_at);
    else
        require(t, false, "got %a want %a error %.4g %s limit %.4g at %s", (double)r->got,
                r->want, r->max, r->metric, r->limit, r->worst_at);
    r->checked = c->checked;
    r->misrounded = c->misrounded;
}
