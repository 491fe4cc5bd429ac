/* Compares the outputs of a call with the expected values; see judge.h. compare_value() is the core: it compares the
 * classes (class_error()), finds unit and limit of the error (measure_of()), and divides the difference by the unit. */
#include "judge.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns the range of the largest |position|. */
static int farthest_range(const struct problem *p)
{
    int farthest = 0;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t t = 0; t < p->tokens; t++)
            for (int axis = 0; axis < problem_axes(p); axis++) {
                const int range = range_of_position((int64_t)problem_time(p, b, t, axis));
                farthest = range > farthest ? range : farthest;
            }
    return farthest;
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

/* Returns the limit in the f32 numerics modes, which round the sine, then its product with a scale. A sine within L ulp
 * is at most k = floor(L + 1/2) steps from the correctly rounded one. A step changes the product by less than 2 ulp. */
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

/* Copies the worst value to the result, with its place, while its call still exists. */
static void describe_worst(struct comparison *c)
{
    struct conf_result *r = &c->tally->result;
    const struct compared_value *v = &c->worst;
    if (!c->has_new_worst)
        return;
    r->got = v->got;
    r->want = v->want;
    r->max = v->error.error;
    r->limit = v->error.limit;
    describe_place(c->call, v->output, v->row, v->column, r->worst_at, sizeof r->worst_at);
    if (!within_limit(c))
        tally_set_problem(c->tally, &c->call->problem);
    c->has_new_worst = false;
}

/* Sets kind and limit of a call with frequencies from the error limits of tables. */
static void use_error_limit(struct comparison *c, const struct posenc_backend *backend,
                            int range)
{
    const struct problem *p = &c->call->problem;
    const bool is_table = is_table_kernel(p->kernel);
    const struct error_limit *row =
        error_limits_find(is_table ? p->kernel : POSENC_KERNEL_SINUSOIDAL, backend,
                          problem_numerics_name(p), range);
    c->range = range_name[range];
    c->lacks_limit = !row;
    if (!row)
        return;
    const double scale = signature_argument(signature_of(p->kernel), MEMBER(scale))
                             ? fabs(p->scale)
                             : posenc_freqs_view_of(c->call->freqs).attention_factor;
    c->kind = COMPARE_SUM;
    if (is_table)
        c->kind = row->is_absolute ? COMPARE_ABS : COMPARE_ULP;
    if (row->is_absolute)
        c->limit = row->limit * power_above(scale);
    else if (p->freqs.numerics == POSENC_NUMERICS_EXACT || is_power_of_two(scale))
        c->limit = row->limit;
    else
        c->limit = scaled_limit(row->limit);
    c->table_abs = row->is_absolute ? c->limit : 0.0;
    c->least_unit = rounds_angle(row->family) ? ANGLE_ERROR : 0.0;
    if (is_program(c)) /* also at an exact zero, which the other families have */
        c->least_unit *= power_above(scale);
}

void compare_next(struct comparison *c, const struct call *call,
                  const struct posenc_backend *backend, int range)
{
    const struct problem *p = &call->problem;
    describe_worst(c);
    c->call = call;
    c->dtype = problem_output_dtype(p);
    if (kernel_rotates(p->kernel)) {
        c->kind = COMPARE_PAIR;
        c->limit = signature_of(p->kernel)->error_limit(p, backend->fused);
    }
    if (kernel_has_freqs(p->kernel))
        use_error_limit(c, backend, range == RANGE_FARTHEST ? farthest_range(p) : range);
    else if (is_program(c) && !kernel_rotates(p->kernel))
        allow_roundings(c, p->kernel);
}

static double ulp_of_f32(double value) { return exact_ulp(POSENC_DTYPE_F32, fabs(value)); }

/* Returns true if a result may differ from an expected zero. */
static bool may_miss_zero(const struct comparison *c, const struct compared_value *v)
{
    if (c->kind == COMPARE_PAIR && v->magnitude > 0.0)
        return true; /* products that cancel leave their rounding errors */
    if (v->got == 0.0f)
        return false;
    return c->kind == COMPARE_SUM ||                    /* a sum that cancels */
           (is_program(c) && c->kind != COMPARE_EXACT); /* a sine of an angle that is rounded */
}

/* Returns infinity for values of different classes, 0 for equal special values, and -1 for finite values, whose error
 * is measured. */
static double class_error(const struct comparison *c, const struct compared_value *v)
{
    const float got = v->got;
    const double want = v->want;
    bool same = false;
    if (float_to_bits(got) == CALL_CANARY)
        same = false;
    else if (isnan(want) || isnan(got))
        same = isnan(want) && isnan(got);
    else if (isinf(want) || isinf(got))
        same = (double)got == want;
    else if (want != 0.0 || may_miss_zero(c, v))
        return -1.0;
    else
        same = got == 0.0f && (is_program(c) || (signbit(got) != 0) == (signbit(want) != 0));
    return same ? 0.0 : (double)INFINITY;
}

/* Unit and limit of the error of an f32 result. */
struct measure {
    double unit, limit;
};

/* Returns the input x at the place of a value. */
static float x_at(const struct comparison *c, const struct compared_value *v)
{
    return c->call->x[v->row * c->call->outputs[0].width + v->column];
}

/* Returns the measure of x x_scale + term, in ulp of the larger of both. The sum of a correctly rounded term and a
 * product, rounded once, is off by ulp(sum)/2. A backend whose table may be off by L ulp adds (L + 1/2) ulp(term). A
 * property test checks to the bit that the sum equals build-then-add with the backend's own table. A program may round
 * the product, too; the limit of its term is in ulp of the oracle's magnitude, if there is one. */
static struct measure measure_sum(const struct comparison *c, const struct compared_value *v)
{
    const struct problem *p = &c->call->problem;
    const double product = (double)x_at(c, v) * (double)p->x_scale, term = v->want - product;
    const double of_term = oracle_has_magnitudes(p->kernel) ? v->magnitude : term;
    const double least = is_program(c) ? c->least_unit : 0.0;
    const double in_term =
        c->table_abs > 0.0 ? c->table_abs : c->limit * fmax(ulp_of_f32(of_term), least);
    const double in_product = is_program(c) ? 0.5 * ulp_of_f32(product) : 0.0;
    const double unit = ulp_of_f32(fmax(fabs(product), fabs(term)));
    return (struct measure){
        unit, (in_term + in_product + 0.5 * ulp_of_f32(term) + 0.5 * ulp_of_f32(v->want)) / unit
    };
}

/* Returns the power of two at or above the factor of xPos, by which absolute limits scale. The columns of a value are
 * pairs. */
static double xpos_binade(const struct call *call, const struct compared_value *v)
{
    const struct problem *p = &call->problem;
    const struct posenc_freqs_spec *f = &p->freqs;
    if (f->xpos_scale_base == 0.0)
        return 1.0;
    const double zeta =
        (2.0 * (double)v->column + 0.4 * (double)f->dim) / (1.4 * (double)f->dim);
    const double position = problem_time(p, v->row / p->tokens, v->row % p->tokens, 0);
    const double power = (position - f->xpos_centre) / f->xpos_scale_base;
    return exp2(ceil(log2(zeta) * (f->xpos_inverse ? -power : power)));
}

static struct measure measure_of(const struct comparison *c, const struct compared_value *v)
{
    switch (c->kind) {
    case COMPARE_ABS:
        return (struct measure){ 1.0, c->limit * xpos_binade(c->call, v) };
    case COMPARE_PAIR:
        return (struct measure){ ulp_of_f32(v->magnitude > 0.0 ? v->magnitude : v->want),
                                 c->limit };
    case COMPARE_SUM:
        return measure_sum(c, v);
    case COMPARE_EXACT:
    case COMPARE_ULP:
        break;
    }
    return (struct measure){ fmax(ulp_of_f32(v->want), c->least_unit), c->limit };
}

/* Returns true if inputs of a program may overflow on the way: a square, a product that is added, or a term or partial
 * sum, which the magnitude bounds. The result then depends on the order of operations. Besides an infinite term, others
 * that overflow in one order alone make a NaN of an infinity. */
static bool may_overflow(const struct comparison *c, const struct compared_value *v)
{
    const struct signature *s = signature_of(c->call->problem.kernel);
    const double most = 0x1.ffffffp127; /* rounds to infinity */
    if (!is_program(c))
        return false;
    if (s->rounded_limit && isinf(v->magnitude) &&
        ((isnan(v->got) && isinf(v->want)) || (isinf(v->got) && isnan(v->want))))
        return true;
    if ((s->rounded_limit || s->error_limit) && isfinite(v->magnitude) && v->magnitude >= most)
        return true;
    if (s->overflows && s->overflows(c->call, v->row))
        return true;
    if (c->kind != COMPARE_SUM)
        return false;
    const double x = (double)x_at(c, v);
    return isfinite(x) && fabs(x * (double)c->call->problem.x_scale) >= most;
}

/* Returns true for the value nearest to the expected one, or for any NaN in place of a NaN. */
static bool is_nearest(const struct comparison *c, const struct compared_value *v)
{
    if (isnan(v->want))
        return isnan(v->got) && float_to_bits(v->got) != CALL_CANARY;
    const float nearest = exact_round(c->dtype, v->want);
    if (is_program(c) && v->got == 0.0f && nearest == 0.0f)
        return true; /* of either sign */
    return float_to_bits(v->got) == float_to_bits(nearest);
}

/* Infinity by overflow of a 16-bit type counts as a finite value, not as a different class. */
void compare_value(const struct comparison *c, struct compared_value *v)
{
    struct stored_error e = { class_error(c, v), c->limit };
    const bool is_f32 = c->dtype == POSENC_DTYPE_F32;
    v->is_rounded = is_nearest(c, v);
    if (is_copied(c, v->column)) {
        v->is_rounded = float_to_bits(v->got) == float_to_bits(x_at(c, v));
        e.error = v->is_rounded ? 0.0 : (double)INFINITY;
    } else if (v->is_rounded && (c->kind == COMPARE_EXACT || isinf(v->got))) {
        e.error = 0.0;
    } else if (e.error < 0.0 || (!is_f32 && isinf(v->got))) {
        const struct measure f32 = measure_of(c, v);
        if (is_f32)
            e = (struct stored_error){ fabs((double)v->got - v->want) / f32.unit, f32.limit };
        else
            e = exact_stored_error(c->dtype, v->got, v->want,
                                   c->kind == COMPARE_EXACT ? 0.0 : f32.limit * f32.unit);
    }
    if (e.error > e.limit && may_overflow(c, v))
        e.error = 0.0;
    v->error = e;
}

/* Counts a value, and keeps it if it is the worst so far. */
static void count_value(struct comparison *c, const struct compared_value *v)
{
    const double error = v->error.error, ratio = error == 0.0 ? 0.0 : error / v->error.limit;
    c->checked++;
    c->misrounded += !v->is_rounded;
    if (ratio > c->ratio || (ratio == c->ratio && error > c->worst.error.error)) {
        c->ratio = ratio;
        c->worst = *v;
        c->has_new_worst = true;
    }
}

void compare_values(struct comparison *c, int o, int64_t r, int64_t column, int64_t n,
                    const double *want, const double *magnitudes)
{
    const float *got = call_row(c->call, o, r) + column;
    struct compared_value v = { .output = o, .row = r };
    for (int64_t i = 0; i < n; i++) {
        v.column = column + i;
        v.got = got[i];
        v.want = want[i];
        v.magnitude = magnitudes ? magnitudes[i] : fabs(want[i]);
        compare_value(c, &v);
        count_value(c, &v);
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

/* Sets the distance of a result from that of a peer, and its limit. Each result is within its limit of the exact value,
 * so that both differ by at most the sum of the limits. Units are taken at the peer's result, which may lie one binade
 * below the exact value (the larger product of a rotation is at most sqrt 2 times the larger result of the pair). So
 * the sum is doubled. Results in 16 bits may also be rounded to different neighbours, one ulp apart. */
static void measure_distance(const struct comparison *c, const struct comparison *peer,
                             const float *reference, struct compared_value *v)
{
    v->error = (struct stored_error){ (double)INFINITY, c->limit };
    if (c->kind == COMPARE_EXACT || is_copied(c, v->column) || !isfinite(v->got) ||
        !isfinite(v->want))
        return;
    v->magnitude = fabs(v->want);
    if (c->kind == COMPARE_PAIR)
        v->magnitude = larger_of_pair(&c->call->problem, reference, v->column);
    const struct measure own = measure_of(c, v), others = measure_of(peer, v);
    double unit = own.unit, most = 2.0 * (own.limit * own.unit + others.limit * others.unit);
    if (c->dtype != POSENC_DTYPE_F32) {
        unit = exact_ulp(c->dtype, fmax(fabs(v->want), fabs((double)v->got)));
        most += unit;
    }
    v->error = (struct stored_error){ fabs((double)v->got - v->want) / unit, most / unit };
}

void compare_peer_row(struct comparison *c, const struct comparison *peer, int o, int64_t r,
                      const float *reference)
{
    const float *got = call_row(c->call, o, r);
    const int64_t width = c->call->outputs[o].width;
    if (memcmp(got, reference, (size_t)width * sizeof *got) == 0) {
        c->checked += (uint64_t)width;
        return;
    }
    struct compared_value v = { .output = o, .row = r };
    for (v.column = 0; v.column < width; v.column++) {
        v.got = got[v.column];
        v.want = (double)reference[v.column];
        v.error = (struct stored_error){ 0.0, c->limit };
        v.is_rounded = float_to_bits(v.got) == float_to_bits(reference[v.column]) ||
                       (isnan(v.got) && isnan(v.want) && float_to_bits(v.got) != CALL_CANARY);
        if (!v.is_rounded)
            measure_distance(c, peer, reference, &v);
        count_value(c, &v);
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
        require(t, false, "%s: %s", call->outputs[c.worst.output].name, own.result.reason);
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
    const bool is_table = c->kind == COMPARE_ULP || c->kind == COMPARE_ABS;
    if (r->status != CONF_PASS || (t->skipped && !c->checked)) /* a call was not made */
        return;
    describe_worst(c);
    r->metric = compare_metric(c);
    r->range =
        is_table && c->dtype == POSENC_DTYPE_F32 ? c->range : NULL; /* others: no limit */
    if (c->lacks_limit)
        require(t, false, "no error limit for %s %s %s", posenc_kernel_name(r->kernel),
                r->numerics, c->range);
    else if (!c->checked)
        require(t, false, "no value was compared");
    else if (!within_limit(c) && float_to_bits(r->got) == CALL_CANARY)
        require(t, false, "not written, want %a, at %s", r->want, r->worst_at);
    else if (!within_limit(c) && c->kind == COMPARE_EXACT)
        require(t, false, "got %a want %a, not the same bits, at %s", (double)r->got, r->want,
                r->worst_at);
    else if (!within_limit(c))
        require(t, false, "got %a want %a error %.4g %s limit %.4g at %s", (double)r->got,
                r->want, r->max, r->metric, r->limit, r->worst_at);
    r->checked = c->checked;
    r->misrounded = c->misrounded;
}
