/*
 * Checks that what must be refused is refused, with the status that posenc.h promises, and that
 * every output stays as it was: each bad argument on an otherwise valid call.  The row of a
 * signature says what they are: of each tensor its data, type, rank, strides and every
 * dimension that it shares with another, of each parameter its range.  What no row says, and the
 * plans, are problems of cases/refused.txt.  Where the header allows two readings (a size that is
 * both too large a shape and an overflow) either status will do.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/cases.h"
#include "conformance/problem/signature.h"
#include "suites.h"
#include "conformance/engine/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- What is bad ---- */

/* Of which tensor or parameter, which of its dimensions, to what value. */
struct spoiled {
    const struct tensor_row *row;
    const struct parameter *parameter;
    int dim;
    double value;
};

struct bad_argument {
    const char *name, *allowed; /* the statuses of posenc.h, without POSENC_ERR_ */
    void (*make)(struct call *c, const struct spoiled *of); /* NULL: its problem is bad */
};

/* `expression` makes an argument of call `c` bad; where it is a tensor, `t`. */
#define BAD(id, name, allowed, expression)                                                     \
    static void make_##id(struct call *c, const struct spoiled *of)                            \
    {                                                                                          \
        (void)of;                                                                              \
        expression;                                                                            \
    }                                                                                          \
    static const struct bad_argument id = { name, allowed, make_##id };
#define BAD_TENSOR(id, name, allowed, expression)                                              \
    BAD(id, name, allowed, struct posenc_tensor *t = call_argument(c, of->row); expression)

/* Without its first dimension. */
static void drop_dimension(struct posenc_tensor *t)
{
    t->rank--;
    memmove(t->shape, t->shape + 1, sizeof t->shape - sizeof *t->shape);
    memmove(t->stride, t->stride + 1, sizeof t->stride - sizeof *t->stride);
}

/* Another one before it, of one element. */
static void add_dimension(struct posenc_tensor *t)
{
    memmove(t->shape + 1, t->shape, sizeof t->shape - sizeof *t->shape);
    memmove(t->stride + 1, t->stride, sizeof t->stride - sizeof *t->stride);
    t->stride[0] *= t->shape[0] = 1;
    t->rank++;
}

/* All that have their type from the same place. */
static void retype_all(struct call *c, const struct tensor_row *like)
{
    for (EACH_TENSOR(row, signature_of(c->problem.kernel)))
        if (row->form == FORM_TENSOR && row->type == like->type)
            ((struct posenc_tensor *)call_argument(c, row))->dtype = (enum posenc_dtype)77;
}

/* Pairs for twice the channels of a head. */
static void widen_pairs(struct call *c)
{
    for (EACH_TENSOR(row, signature_of(c->problem.kernel)))
        if (row->role == ROLE_INPUT && row->dims[tensor_dims(row) - 1] == DIM_PAIR)
            ((struct posenc_tensor *)call_argument(c, row))->shape[1] = c->problem.dim;
}

BAD_TENSOR(no_data, "no data", "ARGUMENT", t->data = NULL)
BAD_TENSOR(odd_byte, "data at an odd byte", "ARGUMENT", t->data = (char *)t->data + 1)
BAD_TENSOR(unknown_dtype, "an unknown dtype", "DTYPE ARGUMENT",
           t->dtype = (enum posenc_dtype)77)
BAD(unknown_dtypes, "an unknown dtype, as its likes", "DTYPE", retype_all(c, of->row))
BAD_TENSOR(other_dtype, "another dtype", "DTYPE", t->dtype = POSENC_BF16)
BAD_TENSOR(rank_0, "rank 0", "SHAPE", t->rank = 0)
BAD_TENSOR(rank_5, "rank 5", "SHAPE", t->rank = 5)
BAD_TENSOR(rank_less, "a dimension less", "SHAPE", drop_dimension(t))
BAD_TENSOR(rank_more, "a batch of one", "SHAPE", add_dimension(t))
BAD_TENSOR(negative, "a negative size", "SHAPE", t->shape[0] = -1)
BAD_TENSOR(huge, "2^62 rows", "SHAPE OVERFLOW", t->shape[0] = INT64_MAX / 2)
BAD_TENSOR(wider, "wider than the rest", "SHAPE STRIDE", t->shape[t->rank - 1] += 2)
BAD(too_wide, "rotary_dim twice head_dim", "ROTARY_DIM STRIDE", widen_pairs(c))
BAD_TENSOR(other_size, "another size", "SHAPE",
           t->shape[of->dim] += t->shape[of->dim] > 1 ? -1 : 1)
BAD(index_end, "a row or column less", "POSITION", make_other_size(c, of))
BAD_TENSOR(not_contiguous, "not contiguous", "STRIDE", t->stride[t->rank - 1] = 2)
BAD_TENSOR(overlaps_itself, "rows one apart", "STRIDE", t->stride[t->rank - 2] = 1)
BAD_TENSOR(stride_zero, "stride 0", "STRIDE", t->stride[t->rank - 2] = 0)
BAD_TENSOR(is_output, "it is the output", "OVERLAP", t->data = call_out(c)->data)
BAD(near_output, "elements from the output", "OVERLAP",
    call_x(c)->data = (float *)call_out(c)->data + (int)of->value)

/* An index of rows of a table, or of columns, at a share of its elements. */
static int32_t *index_at(struct call *c, const struct spoiled *of, int64_t parts, int64_t all)
{
    const int64_t last = tensor_elements(&c->problem, of->row) - 1;
    return (int32_t *)(uintptr_t)call_data(c, of->row) + last * parts / all;
}

static int32_t past_last(const struct call *c)
{
    return (int32_t)(c->columns ? c->columns : problem_extent(&c->problem, DIM_ROW));
}

BAD(pointer_null, "NULL", "ARGUMENT", memset(call_argument(c, of->row), 0, sizeof(void *)))
BAD(float_nan, "NaN", "PARAMETER", ((float *)(uintptr_t)call_data(c, of->row))[1] = NAN)
BAD(index_negative, "-1", "POSITION", *index_at(c, of, 0, 1) = -1)
BAD(index_beyond, "past the last", "POSITION", *index_at(c, of, 1, 1) = past_last(c))
BAD(index_huge, "2^31 - 1", "POSITION", *index_at(c, of, 1, 2) = INT32_MAX)

static void set_parameter(struct call *c, const struct parameter *at, double value)
{
    const float narrow = (float)value;
    const int64_t whole = fabs(value) < 0x1p63 ? (int64_t)value : INT64_MAX;
    const void *from = at->kind == FIELD_F64   ? (const void *)&value
                       : at->kind == FIELD_F32 ? (const void *)&narrow
                                               : (const void *)&whole;
    memcpy((char *)&c->args + at->to, from, at->to_size);
}

static void *argument_at(struct call *c, size_t offset) { return (char *)&c->args + offset; }

/* Which of the statuses is the better one for what is too far nobody says. */
#define TOO_FAR "PARAMETER POSITION SHAPE OVERFLOW"
BAD(real, "a value", "PARAMETER", set_parameter(c, of->parameter, of->value))
BAD(member, "a member", "ARGUMENT", set_parameter(c, of->parameter, of->value))
BAD(whole, "a whole number", "SHAPE PARAMETER", set_parameter(c, of->parameter, of->value))
BAD(far, "too far", TOO_FAR, set_parameter(c, of->parameter, of->value))
BAD(size_zero, "size 0", "ARGUMENT", *(size_t *)argument_at(c, 0) = 0)
BAD(size_odd, "unknown size", "ARGUMENT", ++*(size_t *)argument_at(c, 0))
BAD(no_plan, "no plan", "ARGUMENT",
    memset(argument_at(c, signature_of(c->problem.kernel)->freqs), 0, sizeof(void *)))
BAD(computed_late, "computed, and one more", "SHAPE",
    ++*(int64_t *)argument_at(c, signature_of(c->problem.kernel)->computed))
BAD(computed_wraps, "computed, -2^63", TOO_FAR,
    *(int64_t *)argument_at(c, signature_of(c->problem.kernel)->computed) = INT64_MIN)
BAD(unknown_kind, "unknown kind of positions", "ARGUMENT",
    call_positions(c)->kind = (enum posenc_position_kind)9)
BAD(no_positions, "as kind of an array of positions without data", "ARGUMENT",
    *call_positions(c) = ((struct posenc_positions){
        .kind = (enum posenc_position_kind)of->value, .stride_token = 1 }))

/* The first of them is there. */
static const int64_t first_row[1];
BAD(far_positions, "as kind of an array of positions beyond the address space", "OVERFLOW",
    *call_positions(c) = ((struct posenc_positions){
        .kind = (enum posenc_position_kind)of->value,
        .data = first_row,
        .stride_token = INT64_MAX / 2 }))

/* ---- Checking ---- */

/* To the bit, the payloads of NaN included: outputs hold a NaN that no kernel writes. */
static void require_untouched(struct tally *t, const struct call *after,
                              const struct call *before, const char *what)
{
    for (int o = 0; o < after->n_outputs; o++) {
        const size_t bytes = (size_t)after->outputs[o].width * sizeof(float);
        bool same = true;
        for (int64_t r = 0; r < after->outputs[o].rows; r++)
            same = same && memcmp(call_row(after, o, r), call_row(before, o, r), bytes) == 0;
        require(t, same, "%s: output %d was written", what, o);
    }
}

static bool is_among(enum posenc_status status, const char *names)
{
    static const char *const name[] = {
        "OK",         "ARGUMENT",    "SHAPE",        "STRIDE",   "DTYPE",   "ODD",
        "ROTARY_DIM", "THETA",       "PARAMETER",    "POSITION", "OVERLAP", "OVERFLOW",
        "UNKNOWN",    "UNSUPPORTED", "NOT_PROVIDED", "MEMORY",
    };
    const char *at = strstr(names, name[status]);
    return at && strchr(" ", at[strlen(name[status])]);
}

/* A valid call with one bad argument: the status is one of those allowed, the outputs do
 * not move. */
static void check_argument(struct tally *t, const struct problem *p,
                           const struct bad_argument *m, struct spoiled of)
{
    char what[96];
    snprintf(what, sizeof what, "%s%s%s", of.row ? of.row->name : "", of.row ? ": " : "",
             m->name);
    if (of.parameter)
        snprintf(what, sizeof what, "%s %g at byte %zu", m->name, of.value, of.parameter->to);
    else if (of.value != 0.0)
        snprintf(what, sizeof what, "%g %s", of.value, m->name);
    const struct call *before = tally_call(t, t->run->implementation, p);
    struct call *call = before ? tally_call(t, t->run->implementation, p) : NULL;
    if (!call)
        return;
    if (m->make)
        m->make(call, &of);
    struct guarded g = guarded_run(call, t->run->backend, NULL);
    require(t, !g.crashed, "%s: %s", what, g.reason);
    require(t, g.crashed || is_among(g.status, m->allowed), "%s: answered \"%s\"", what,
            posenc_status_string(g.status));
    require_untouched(t, call, before, what);
    tally_forget(t);
}

#define CHECK(bad, ...) check_argument(t, p, &(bad), (struct spoiled){ __VA_ARGS__ })

/* ---- What the rows say ---- */

/* Another tensor of the call that counts the same thing, or has its type from the same place. */
static bool has_dim(const struct problem *p, const struct tensor_row *but, enum dim dim)
{
    bool has = false;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        for (int d = 0; d < tensor_dims(row); d++)
            has = has || (row != but && row->form == FORM_TENSOR && tensor_present(p, row) &&
                          row->dims[d] == dim);
    return has;
}

static bool shares_type(const struct problem *p, const struct tensor_row *but)
{
    bool shares = but->type == TYPE_F32;
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        shares = shares || (row != but && row->form == FORM_TENSOR && tensor_present(p, row) &&
                            row->type == but->type);
    return shares;
}

static bool has_index(const struct signature *s)
{
    bool has = false;
    for (EACH_TENSOR(row, s))
        has = has || (row->form == FORM_INTEGERS && tensor_dims(row) > 0);
    return has;
}

/* A dimension that other tensors have too, or that follows from the problem; or the end of what an
 * index may be. */
static void check_dimension(struct tally *t, const struct problem *p, const struct call *made,
                            const struct tensor_row *row, enum dim dim)
{
    const struct signature *s = signature_of(p->kernel);
    const struct spoiled of = { .row = row, .dim = call_dim(made, row, dim) };
    const bool follows = (dim == DIM_ROW && s->rows) || (dim == DIM_COLUMN && s->columns);
    if (of.dim < 0 || row == signature_output(s, 0))
        return;
    if (has_dim(p, row, dim))
        check_argument(t, p, &other_size, of);
    else if (follows)
        check_argument(t, p, has_index(s) ? &index_end : &other_size, of);
}

static void check_tensor(struct tally *t, const struct problem *p, const struct call *made,
                         const struct tensor_row *row)
{
    const struct signature *s = signature_of(p->kernel);
    const bool optional = row->role == ROLE_INPUT && row->present;
    const enum dim last = row->dims[tensor_dims(row) - 1];
    const struct bad_argument *const of_every[] = { &odd_byte, &unknown_dtype, &unknown_dtypes,
                                                    &rank_0,   &rank_5,        &negative,
                                                    &huge,     &not_contiguous };
    for (size_t i = 0; i < sizeof of_every / sizeof *of_every; i++)
        CHECK(*of_every[i], .row = row);
    if (!optional)
        CHECK(no_data, .row = row);
    if (row->role == ROLE_OUTPUT) {
        CHECK(overlaps_itself, .row = row);
        CHECK(stride_zero, .row = row);
        if (!kernel_has_batch(p->kernel)) /* one bias for all batches */
            CHECK(rank_more, .row = row);
    } else if (!row->one_for_all && (tensor_dims(row) == 2 || has_dim(p, row, row->dims[0]))) {
        CHECK(rank_less, .row = row);
    }
    if (shares_type(p, row))
        CHECK(other_dtype, .row = row);
    if (row != signature_output(s, 0) && !(row->role == ROLE_X && kernel_in_place(p->kernel)))
        CHECK(is_output, .row = row);
    if (row == signature_output(s, 0) && (has_dim(p, row, last) || kernel_has_freqs(p->kernel)))
        CHECK(wider, .row = row);
    for (int d = 0; d < tensor_dims(row); d++)
        check_dimension(t, p, made, row, row->dims[d]);
}

static void check_pointer(struct tally *t, const struct problem *p,
                          const struct tensor_row *row)
{
    CHECK(pointer_null, .row = row);
    if (row->form == FORM_FLOATS) {
        CHECK(float_nan, .row = row);
    } else if (tensor_dims(row) > 0) {
        CHECK(index_negative, .row = row);
        CHECK(index_beyond, .row = row);
        CHECK(index_huge, .row = row);
    }
}

/* The next number of the argument's type after one that is accepted, up or down. */
static double beyond(const struct parameter *of, double end, double way)
{
    return of->kind == FIELD_F64   ? nextafter(end, way)
           : of->kind == FIELD_F32 ? (double)nextafterf((float)end, (float)way)
           : way < 0               ? end - 1
                                   : end + 1;
}

/* What is not finite, no member of its enum, or outside of its range. */
static void check_parameter(struct tally *t, const struct problem *p,
                            const struct parameter *of)
{
    const bool is_real = of->kind == FIELD_F64 || of->kind == FIELD_F32;
    if (of->from == MEMBER(x_scale) && !kernel_takes_x(p->kernel))
        return;
    const double reals[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
    for (int i = 0; is_real && i < 3; i++)
        CHECK(real, .parameter = of, .value = reals[i]);
    if (of->kind == FIELD_ENUM)
        CHECK(member, .parameter = of, .value = 77);
    const double distances[] = { 1 << 24, 0x1p63, -0x1p62 };
    for (int i = 0; of->from == MEMBER(query_offset) && i < 3; i++)
        CHECK(far, .parameter = of, .value = distances[i]);
    if (of->from == MEMBER(num_buckets))
        CHECK(whole, .parameter = of, .value = 1);
    const double ends[] = { beyond(of, of->least, -(double)INFINITY),
                            beyond(of, of->most, (double)INFINITY) };
    for (int i = 0; of->least < of->most && i < 2; i++)
        check_argument(t, p, is_real ? &real : &whole,
                       (struct spoiled){ .parameter = of, .value = ends[i] });
}

/* What no problem can say; others are in cases/refused.txt. */
static void check_positions(struct tally *t, const struct problem *p)
{
    CHECK(unknown_kind, 0);
    for (int kind = POSENC_POSITIONS_I32; kind <= POSENC_POSITIONS_F32; kind++)
        CHECK(no_positions, .value = kind);
    for (int kind = POSENC_POSITIONS_I32; kind <= POSENC_POSITIONS_I64; kind++)
        CHECK(far_positions, .value = kind);
}

static void check_arguments(struct tally *t, const struct problem *p)
{
    const struct signature *s = signature_of(p->kernel);
    struct call made;
    if (!require(t,
                 call_create_by(t->run->implementation, &made, p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    CHECK(size_zero, 0);
    CHECK(size_odd, 0);
    if (s->freqs)
        CHECK(no_plan, 0);
    if (kernel_rotates(p->kernel))
        CHECK(too_wide, 0);
    if (s->computed) {
        CHECK(computed_late, 0);
        CHECK(computed_wraps, 0);
    }
    for (EACH_TENSOR(row, s)) {
        if (row->form == FORM_POSITIONS)
            check_positions(t, p);
        else if (row->form == FORM_TENSOR && tensor_present(p, row))
            check_tensor(t, p, &made, row);
        else if (row->form != FORM_TENSOR)
            check_pointer(t, p, row);
    }
    for (EACH_PARAMETER(parameter, s))
        check_parameter(t, p, parameter);
    call_destroy(&made);
}

/* The input a little before and after the output, in the output's own memory. */
static void check_overlap(struct tally *t, const struct problem *p)
{
    const int shifts[] = { 1, -1, 4, 17, -16 };
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++)
        CHECK(near_output, .value = shifts[i]);
}

/* ---- What cases/refused.txt says ---- */

/* The problems of a kernel's signature, of which there are some wherever there are positions. */
static void check_listed(struct tally *t, enum posenc_kernel kernel)
{
    size_t n = 0;
    for (EACH_CASE(line, CASES_REFUSED)) {
        struct problem p = line->problem;
        const char *of = *line->note ? line->note : signature_of(p.kernel)->name;
        if (strcmp(of, signature_of(kernel)->name) != 0)
            continue;
        p.kernel = kernel;
        check_argument(t, &p, &(struct bad_argument){ line->name, line->flags, NULL },
                       (struct spoiled){ 0 });
        n++;
    }
    require(t, n > 0 || kernel_on_scores(kernel), "refused.txt has no problem of %s",
            posenc_kernel_name(kernel));
}

/* Plans without a status are made; the others are refused with it for a reason, and none comes. */
static void check_plan(struct tally *t, const char *name, const char *allowed,
                       const struct posenc_freqs_spec *spec)
{
    struct posenc_error error = { .what = NULL };
    struct posenc_freqs *freqs = NULL;
    const enum posenc_status status = posenc_freqs_create(spec, &freqs, &error);
    const bool refused = *allowed != '\0';
    require(t, is_among(status, refused ? allowed : "OK"), "%s: answered \"%s\"", name,
            posenc_status_string(status));
    require(t, !refused || (status == error.status && error.what), "%s: no reason", name);
    require(t, !freqs == refused, "%s: %s", name, refused ? "a plan all the same" : "no plan");
    posenc_freqs_destroy(freqs);
}

/* A valid plan of an unknown size, then with a member that its enums do not have. */
static void check_unknown(struct tally *t, struct problem valid)
{
    struct field field;
    valid.freqs.size--;
    check_plan(t, "unknown size", "ARGUMENT", &valid.freqs);
    valid.freqs.size++;
    for (int i = 0; kernel_field(valid.kernel, i, &field); i++) {
        struct problem p = valid;
        if (field.kind != FIELD_ENUM || field.offset - MEMBER(freqs) >= sizeof p.freqs)
            continue;
        field_set(&field, &p, 77);
        check_plan(t, field.name, "ARGUMENT", &p.freqs);
    }
}

/* Each family is made in the profiles that the list says it has, and in no other. */
static void check_profiles(struct tally *t, struct posenc_freqs_spec spec)
{
    for (int scaling = 0; scaling_names[scaling]; scaling++)
        for (int profile = 0; profile_names[profile]; profile++) {
            char name[64];
            spec.scaling = (enum posenc_scaling)scaling;
            spec.profile = (enum posenc_profile)profile;
            snprintf(name, sizeof name, "%s in %s", scaling_names[scaling],
                     profile_names[profile]);
            check_plan(t, name,
                       scaling_in_profile(spec.scaling, spec.profile) ? "" : "ARGUMENT", &spec);
        }
}

static void check_plans(struct tally *t)
{
    const struct problem *valid = &cases_read(CASES_REFUSED)->lines[0].problem;
    check_profiles(t, valid->freqs);
    check_unknown(t, *valid);
    for (EACH_CASE(line, CASES_REFUSED))
        if (strcmp(line->note, "plan") == 0)
            check_plan(t, line->name, line->flags, &line->problem.freqs);
}

void check_refusals(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    struct problem p = problem_of_length(kernel, 24, 0);
    p.heads = p.queries = 3; /* rows that a wrong stride puts on each other */
    p.query_offset = p.keys - p.queries;
    if (tally_begin(&t, run, kernel, POSENC_F32, "memory", NULL,
                    "errors-leave-outputs-untouched")) {
        check_arguments(&t, &p);
        check_listed(&t, kernel);
        tally_end(&t);
    }
    if (kernel_takes_x(kernel) &&
        tally_begin(&t, run, kernel, POSENC_F32, "memory", NULL, "overlap-refused")) {
        check_overlap(&t, &p);
        tally_end(&t);
    }
    if (signature_of(kernel)->rotary && kernel_has_freqs(kernel) &&
        tally_begin(&t, run, kernel, POSENC_F32, "memory", NULL, "plans-refused")) {
        check_plans(&t);
        tally_end(&t);
    }
}
