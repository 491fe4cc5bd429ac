/*
 * Checks that what must be refused is refused, with the status that posenc.h promises, and that
 * every output stays as it was: each bad argument on an otherwise valid call.  The row of a
 * signature says what they are: of each tensor its data, type, rank, strides and every
 * dimension that it shares with another, of each parameter its range; refused_calls.c has what
 * no row says, refused_plans.c the plans.  Where the header allows two readings (a size that is
 * both too large a shape and an overflow) either status will do.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/lengths.h"
#include "conformance/problem/signature.h"
#include "refusals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Bad tensors ---- */

#define MAKE(name, expression)                                                                 \
    static void name(struct call *c, const struct spoiled *of)                                 \
    {                                                                                          \
        struct posenc_tensor *t = call_argument(c, of->row);                                   \
        const int last = t->rank - 1;                                                          \
        (void)last;                                                                            \
        expression;                                                                            \
    }
MAKE(no_data, t->data = NULL)
MAKE(odd_byte, t->data = (char *)t->data + 1)
MAKE(is_output, t->data = call_out(c)->data)
MAKE(dtype_unknown, t->dtype = (enum posenc_dtype)77)
MAKE(dtype_other, t->dtype = POSENC_BF16)
MAKE(rank_0, t->rank = 0)
MAKE(rank_5, t->rank = 5)
MAKE(negative, t->shape[0] = -1)
MAKE(huge, t->shape[0] = INT64_MAX / 2)
MAKE(wider, t->shape[last] += 2)
MAKE(strided, t->stride[last] = 2)
MAKE(overlaps_itself, t->stride[last - 1] = 1)
MAKE(stride_zero, t->stride[last - 1] = 0)
MAKE(other_size, t->shape[of->dim] += t->shape[of->dim] > 1 ? -1 : 1)
#undef MAKE

/* Without its first dimension. */
static void rank_less(struct call *c, const struct spoiled *of)
{
    struct posenc_tensor *t = call_argument(c, of->row);
    for (int d = 0; d + 1 < t->rank; d++) {
        t->shape[d] = t->shape[d + 1];
        t->stride[d] = t->stride[d + 1];
    }
    t->rank--;
}

static const struct bad_argument of_no_data = { "no data", STATUS(ARGUMENT), no_data };
static const struct bad_argument of_tensor[] = {
    { "data at an odd byte", STATUS(ARGUMENT), odd_byte },
    { "an unknown dtype", STATUS(DTYPE) | STATUS(ARGUMENT), dtype_unknown },
    { "rank 0", STATUS(SHAPE), rank_0 },
    { "rank 5", STATUS(SHAPE), rank_5 },
    { "a negative size", STATUS(SHAPE), negative },
    { "2^62 rows", STATUS(SHAPE) | STATUS(OVERFLOW), huge },
    { "not contiguous", STATUS(STRIDE), strided },
};
static const struct bad_argument of_output[] = {
    { "rows one apart", STATUS(STRIDE), overlaps_itself },
    { "stride 0", STATUS(STRIDE), stride_zero },
};
static const struct bad_argument of_dimension = { "another size", STATUS(SHAPE), other_size };
static const struct bad_argument of_index_end = { "a row or column less", STATUS(POSITION),
                                                  other_size };
static const struct bad_argument of_width = { "wider than the rest",
                                              STATUS(SHAPE) | STATUS(STRIDE), wider };
static const struct bad_argument of_rank = { "a dimension less", STATUS(SHAPE), rank_less };
static const struct bad_argument of_type = { "another dtype", STATUS(DTYPE), dtype_other };
static const struct bad_argument of_data = { "it is the output", STATUS(OVERLAP), is_output };

/* ---- Bad pointers ---- */

static void pointer_null(struct call *c, const struct spoiled *of)
{
    const void *none = NULL;
    memcpy(call_argument(c, of->row), &none, sizeof none);
}

static void float_nan(struct call *c, const struct spoiled *of)
{
    ((float *)(uintptr_t)call_data(c, of->row))[1] = NAN;
}

static int32_t *index_at(struct call *c, const struct spoiled *of, int64_t parts, int64_t all)
{
    const int64_t last = tensor_elements(&c->problem, of->row) - 1;
    return (int32_t *)(uintptr_t)call_data(c, of->row) + last * parts / all;
}

static void index_negative(struct call *c, const struct spoiled *of)
{
    *index_at(c, of, 0, 1) = -1;
}

/* It is of rows of a table, or of columns. */
static void index_beyond(struct call *c, const struct spoiled *of)
{
    *index_at(c, of, 1, 1) =
        (int32_t)(c->columns ? c->columns : problem_extent(&c->problem, DIM_ROW));
}

static void index_huge(struct call *c, const struct spoiled *of)
{
    *index_at(c, of, 1, 2) = INT32_MAX;
}

static const struct bad_argument of_pointer = { "NULL", STATUS(ARGUMENT), pointer_null };
static const struct bad_argument of_floats = { "NaN", STATUS(PARAMETER), float_nan };
static const struct bad_argument of_index[] = {
    { "-1", STATUS(POSITION), index_negative },
    { "past the last", STATUS(POSITION), index_beyond },
    { "2^31 - 1", STATUS(POSITION), index_huge },
};

/* ---- Bad parameters ---- */

static void set_parameter(struct call *c, const struct spoiled *of)
{
    const struct parameter *at = of->parameter;
    const float narrow = (float)of->value;
    const int64_t whole = fabs(of->value) < 0x1p63 ? (int64_t)of->value : INT64_MAX;
    const void *from = at->kind == FIELD_F64   ? (const void *)&of->value
                       : at->kind == FIELD_F32 ? (const void *)&narrow
                                               : (const void *)&whole;
    memcpy((char *)&c->args + at->to, from, at->to_size);
}

static const struct bad_argument of_real = { "a value", STATUS(PARAMETER), set_parameter };
static const struct bad_argument of_member = { "a member", STATUS(ARGUMENT), set_parameter };
static const struct bad_argument of_whole = { "a whole number",
                                              STATUS(SHAPE) | STATUS(PARAMETER),
                                              set_parameter };
/* Which of the statuses is the better one nobody says. */
static const struct bad_argument of_far = { "too far",
                                            STATUS(PARAMETER) | STATUS(POSITION) |
                                                STATUS(SHAPE) | STATUS(OVERFLOW),
                                            set_parameter };

static size_t *size_of(struct call *c)
{
    return (size_t *)&c->args; /* the first member of every args struct */
}
static void size_zero(struct call *c, const struct spoiled *of)
{
    (void)of;
    *size_of(c) = 0;
}
static void size_odd(struct call *c, const struct spoiled *of)
{
    (void)of;
    *size_of(c) += 1;
}
static void no_plan(struct call *c, const struct spoiled *of)
{
    (void)of;
    memset((char *)&c->args + signature_of(c->problem.kernel)->freqs, 0, sizeof(void *));
}
static const struct bad_argument of_size[] = {
    { "size 0", STATUS(ARGUMENT), size_zero },
    { "unknown size", STATUS(ARGUMENT), size_odd },
};
static const struct bad_argument of_plan = { "no plan", STATUS(ARGUMENT), no_plan };

/* ---- Bad positions ---- */

static void put_positions(struct call *c, const struct spoiled *of)
{
    *call_positions(c) = *of->positions;
}

static void row_too_far(struct call *c, const struct spoiled *of)
{
    (void)of;
    *call_positions(c) =
        (struct posenc_positions){ .offset = c->problem.rows - 1 }; /* token 1 */
}

#define AT(kind_, data_)                                                                       \
    {                                                                                          \
        .kind = POSENC_POSITIONS_##kind_, .data = data_, .stride_token = 1                     \
    }
/* Token 1 at a time, the others at 1/2. */
#define TIME(time) AT(F32, ((const float[8]){ 0.5f, time, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f }))
static const int64_t far_position[8] = { 0, 1, INT64_C(0x80000000), 1, 1, 1, 1, 1 };
static const int32_t far_row[8] = { 0, 1, 1000000, 1, 1, 1, 1, 1 };

/* Of every kernel with positions; of those that compute with them; of those whose are rows. */
enum whose { EVERY, COMPUTED, ROWS };
static const struct bad_positions {
    enum whose whose;
    struct bad_argument argument;
    struct posenc_positions positions;
} bad_positions[] = {
#define BAD(whose, name, status, ...)                                                          \
    {                                                                                          \
        whose, { name, status, put_positions }, __VA_ARGS__                                    \
    }
    BAD(EVERY, "unknown kind of positions", STATUS(ARGUMENT),
        { .kind = (enum posenc_position_kind)9 }),
    BAD(EVERY, "array of positions without data", STATUS(ARGUMENT), AT(I64, NULL)),
    BAD(EVERY, "offset that wraps", STATUS(POSITION) | STATUS(OVERFLOW),
        { .offset = INT64_MAX }),
    BAD(COMPUTED, "position 2^31", STATUS(POSITION), { .offset = 0x7fffffff }),
    BAD(COMPUTED, "position -2^31", STATUS(POSITION), { .offset = -INT64_C(0x80000000) }),
    BAD(COMPUTED, "position 2^31 in an array", STATUS(POSITION), AT(I64, far_position)),
    BAD(COMPUTED, "a time that is NaN", STATUS(POSITION), TIME(NAN)),
    BAD(COMPUTED, "an infinite time", STATUS(POSITION), TIME(INFINITY)),
    BAD(COMPUTED, "time 2^31", STATUS(POSITION), TIME(0x1p31f)),
    BAD(COMPUTED, "time -2^31", STATUS(POSITION), TIME(-0x1p31f)),
    BAD(COMPUTED, "times without data", STATUS(ARGUMENT), AT(F32, NULL)),
    BAD(ROWS, "row -1", STATUS(POSITION), { .offset = -1 }),
    BAD(ROWS, "row past the table in an array", STATUS(POSITION), AT(I32, far_row)),
    BAD(ROWS, "a time for a row", STATUS(ARGUMENT), TIME(1.0f)),
#undef BAD
};
static const struct bad_argument of_rows = { "row past the table", STATUS(POSITION),
                                             row_too_far };

/* ---- Checking ---- */

/* To the bit, the payloads of NaN included: outputs hold a NaN that no kernel writes. */
static void require_untouched(struct tally *t, const struct copy *after,
                              const struct copy *before, const char *what)
{
    for (int o = 0; o < after->n; o++) {
        size_t bytes = (size_t)(after->rows[o] * after->width[o]) * sizeof(float);
        require(t, memcmp(after->data[o], before->data[o], bytes) == 0,
                "%s: output %d was written", what, o);
    }
}

/* A valid call with one bad argument: the status is one of those allowed, the outputs do
 * not move. */
static void check_argument(struct tally *t, const struct problem *p,
                           const struct bad_argument *m, struct spoiled of)
{
    struct call call;
    char what[96];
    t->problem = p;
    enum posenc_status made = call_create_by(t->run->subject, &call, p, &memory_plain);
    if (!require(t, made == POSENC_OK, "the call was not made: %s", posenc_status_string(made)))
        return;
    struct copy before, after;
    call_reset(&call);
    bool copied = copy_outputs(&before, &call);
    snprintf(what, sizeof what, "%s%s%s", of.row ? of.row->name : "", of.row ? ": " : "",
             m->name);
    if (of.parameter)
        snprintf(what, sizeof what, "%s %g at byte %zu", m->name, of.value, of.parameter->to);
    m->make(&call, &of);
    struct guarded g = guarded_run(&call, t->run->backend, NULL);
    require(t, !g.crashed, "%s: %s", what, g.reason);
    require(t, g.crashed || (m->allowed >> g.status & 1u), "%s: answered \"%s\"", what,
            posenc_status_string(g.status));
    if (copied && copy_outputs(&after, &call)) {
        require_untouched(t, &after, &before, what);
        copy_free(&after);
    }
    if (copied)
        copy_free(&before);
    call_destroy(&call);
}

#define CHECK(list, ...)                                                                       \
    for (size_t i_ = 0; i_ < sizeof(list) / sizeof(list)[0]; i_++)                             \
    check_argument(t, p, &(list)[i_], (struct spoiled){ __VA_ARGS__ })

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
    if (of.dim < 0 || row == output_row(s, 0))
        return;
    if (has_dim(p, row, dim))
        check_argument(t, p, &of_dimension, of);
    else if (follows)
        check_argument(t, p, has_index(s) ? &of_index_end : &of_dimension, of);
}

static void check_tensor(struct tally *t, const struct problem *p, const struct call *made,
                         const struct tensor_row *row)
{
    const struct signature *s = signature_of(p->kernel);
    const bool optional = row->role == ROLE_INPUT && row->present;
    const enum dim last = row->dims[tensor_dims(row) - 1];
    if (!optional)
        check_argument(t, p, &of_no_data, (struct spoiled){ .row = row });
    CHECK(of_tensor, .row = row);
    if (row->role == ROLE_OUTPUT)
        CHECK(of_output, .row = row);
    else if (!row->one_for_all && (tensor_dims(row) == 2 || has_dim(p, row, row->dims[0])))
        check_argument(t, p, &of_rank, (struct spoiled){ .row = row });
    if (shares_type(p, row))
        check_argument(t, p, &of_type, (struct spoiled){ .row = row });
    if (row != output_row(s, 0) && !(row->role == ROLE_X && kernel_in_place(p->kernel)))
        check_argument(t, p, &of_data, (struct spoiled){ .row = row });
    if (row == output_row(s, 0) && (has_dim(p, row, last) || kernel_has_plan(p->kernel)))
        check_argument(t, p, &of_width, (struct spoiled){ .row = row });
    for (int d = 0; d < tensor_dims(row); d++)
        check_dimension(t, p, made, row, row->dims[d]);
}

static void check_pointer(struct tally *t, const struct problem *p,
                          const struct tensor_row *row)
{
    check_argument(t, p, &of_pointer, (struct spoiled){ .row = row });
    if (row->form == FORM_FLOATS)
        check_argument(t, p, &of_floats, (struct spoiled){ .row = row });
    else if (tensor_dims(row) > 0)
        CHECK(of_index, .row = row);
}

static void check_positions(struct tally *t, const struct problem *p)
{
    const enum whose whose = kernel_has_plan(p->kernel) ? COMPUTED : ROWS;
    for (size_t i = 0; i < sizeof bad_positions / sizeof *bad_positions; i++)
        if (bad_positions[i].whose == EVERY || bad_positions[i].whose == whose)
            check_argument(t, p, &bad_positions[i].argument,
                           (struct spoiled){ .positions = &bad_positions[i].positions });
    if (whose == ROWS)
        check_argument(t, p, &of_rows, (struct spoiled){ 0 });
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
    const bool real = of->kind == FIELD_F64 || of->kind == FIELD_F32;
    if (of->from == MEMBER(x_scale) && !kernel_takes_x(p->kernel))
        return;
    const double reals[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
    for (int i = 0; real && i < 3; i++)
        check_argument(t, p, &of_real, (struct spoiled){ .parameter = of, .value = reals[i] });
    if (of->kind == FIELD_ENUM)
        check_argument(t, p, &of_member, (struct spoiled){ .parameter = of, .value = 77 });
    const double far[] = { 1 << 24, 0x1p63, -0x1p62 };
    for (int i = 0; of->from == MEMBER(query_offset) && i < 3; i++)
        check_argument(t, p, &of_far, (struct spoiled){ .parameter = of, .value = far[i] });
    const double ends[] = { beyond(of, of->least, -(double)INFINITY),
                            beyond(of, of->most, (double)INFINITY) };
    for (int i = 0; of->least < of->most && i < 2; i++)
        check_argument(t, p, real ? &of_real : &of_whole,
                       (struct spoiled){ .parameter = of, .value = ends[i] });
}

static void check_arguments(struct tally *t, const struct problem *p)
{
    const struct signature *s = signature_of(p->kernel);
    struct call made;
    if (!require(t, call_create_by(t->run->subject, &made, p, &memory_plain) == POSENC_OK,
                 "the call was not made"))
        return;
    CHECK(of_size, 0);
    if (s->freqs)
        check_argument(t, p, &of_plan, (struct spoiled){ 0 });
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
    const struct bad_argument *own;
    for (size_t i = 0; (own = bad_argument_next(kernel_signature(p->kernel), &i));)
        check_argument(t, p, own, (struct spoiled){ 0 });
    call_destroy(&made);
}

/* The input a little before and after the output, in the output's own memory. */
static void check_overlap(struct tally *t, const struct problem *p)
{
    const int64_t shifts[] = { 1, -1, 4, 17, -16 };
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        struct call call;
        struct copy before, after;
        t->problem = p;
        if (!require(t, call_create_by(t->run->subject, &call, p, &memory_plain) == POSENC_OK,
                     "the call was not made"))
            return;
        if (copy_outputs(&before, &call)) {
            call_x(&call)->data = (float *)call_out(&call)->data + shifts[i];
            struct guarded g = guarded_run(&call, t->run->backend, NULL);
            require(t, !g.crashed && g.status == POSENC_ERR_OVERLAP,
                    "input %lld elements from the output: \"%s\"", (long long)shifts[i],
                    g.crashed ? g.reason : posenc_status_string(g.status));
            if (copy_outputs(&after, &call)) {
                require_untouched(t, &after, &before, "overlapping input");
                copy_free(&after);
            }
            copy_free(&before);
        }
        call_destroy(&call);
    }
}

void check_refusals(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    tally_begin(&t, run, kernel, POSENC_F32, "memory", "errors-leave-outputs-untouched");
    struct problem p = memory_problem(kernel, 24, 0);
    p.heads = p.queries = 3; /* rows that a wrong stride puts on each other */
    p.query_offset = p.keys - p.queries;
    if (t.selected)
        check_arguments(&t, &p);
    tally_end(&t);
    tally_begin(&t, run, kernel, POSENC_F32, "memory", "overlap-refused");
    if (t.selected && kernel_takes_x(kernel)) {
        check_overlap(&t, &p);
        tally_end(&t);
    }
    if (!signature_of(kernel)->turning || !kernel_has_plan(kernel))
        return;
    tally_begin(&t, run, kernel, POSENC_F32, "memory", "plans-refused");
    if (t.selected)
        check_plans(&t);
    tally_end(&t);
}
