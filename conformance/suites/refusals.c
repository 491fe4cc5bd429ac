/*
 * What must be refused is, with the status posenc.h promises, and every output is as it was:
 * each bad argument on an otherwise valid call; refused_scores.c has those of kernels on
 * scores, refused_plans.c the plans.  Where the header
 * allows two readings (a size that is both too large a shape and an overflow) either status
 * will do.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/lengths.h"
#include "conformance/problem/signature.h"
#include "refusals.h"

#include <math.h>
#include <string.h>

/* ---- Bad arguments ---- */

static size_t *size_of(struct call *c)
{
    return (size_t *)&c->args; /* the first member of every args struct */
}

static void size_zero(struct call *c) { *size_of(c) = 0; }
static void size_odd(struct call *c) { *size_of(c) += 1; }
static void out_null(struct call *c) { call_out(c)->data = NULL; }
static void out_dtype(struct call *c) { call_out(c)->dtype = (enum posenc_dtype)77; }
static void out_rank_0(struct call *c) { call_out(c)->rank = 0; }
static void out_rank_5(struct call *c) { call_out(c)->rank = 5; }
static void out_wider(struct call *c) { call_out(c)->shape[call_out(c)->rank - 1] += 2; }
static void out_negative(struct call *c) { call_out(c)->shape[0] = -1; }
static void out_huge(struct call *c) { call_out(c)->shape[0] = INT64_MAX / 2; }
static void out_strided(struct call *c) { call_out(c)->stride[call_out(c)->rank - 1] = 2; }
static void out_overlaps_itself(struct call *c)
{
    call_out(c)->stride[call_out(c)->rank - 2] = 1;
}
static void out_unaligned(struct call *c) { call_out(c)->data = (char *)call_out(c)->data + 1; }
static void out_stride_zero(struct call *c) { call_out(c)->stride[call_out(c)->rank - 2] = 0; }

static void x_null(struct call *c) { call_x(c)->data = NULL; }
static void x_dtype(struct call *c) { call_x(c)->dtype = (enum posenc_dtype)77; }
static void x_other_dtype(struct call *c) { call_x(c)->dtype = POSENC_BF16; }
static void x_is_out(struct call *c) { call_x(c)->data = call_out(c)->data; }
static void x_shape(struct call *c) { call_x(c)->shape[call_x(c)->rank - 1] -= 2; }
static void x_strided(struct call *c) { call_x(c)->stride[call_x(c)->rank - 1] = 2; }

static void position_kind(struct call *c)
{
    call_positions(c)->kind = (enum posenc_position_kind)9;
}
static void position_null(struct call *c)
{
    *call_positions(c) =
        (struct posenc_positions){ .kind = POSENC_POSITIONS_I64, .stride_token = 1 };
}
static void position_beyond(struct call *c)
{
    *call_positions(c) =
        (struct posenc_positions){ .offset = INT64_C(0x80000000) - 1 }; /* token 1 */
}
static void position_below(struct call *c)
{
    *call_positions(c) = (struct posenc_positions){ .offset = -INT64_C(0x80000000) };
}
static void position_wraps(struct call *c)
{
    *call_positions(c) = (struct posenc_positions){ .offset = INT64_MAX };
}
static void position_array(struct call *c)
{
    static const int64_t bad[8] = { 0, 1, INT64_C(0x80000000), 1, 1, 1, 1, 1 };
    *call_positions(c) = (struct posenc_positions){ .kind = POSENC_POSITIONS_I64,
                                                    .data = bad,
                                                    .stride_token = 1 };
}
static void row_negative(struct call *c)
{
    *call_positions(c) = (struct posenc_positions){ .offset = -1 };
}
static void row_too_far(struct call *c)
{
    *call_positions(c) =
        (struct posenc_positions){ .offset = c->problem.rows - 1 }; /* token 1 */
}
static void row_array(struct call *c)
{
    static const int32_t bad[8] = { 0, 1, 1000000, 1, 1, 1, 1, 1 };
    *call_positions(c) = (struct posenc_positions){ .kind = POSENC_POSITIONS_I32,
                                                    .data = bad,
                                                    .stride_token = 1 };
}

/* Token 1 at a time, the others at 1/2. */
static void at_time(struct call *c, float time)
{
    static float times[8];
    for (int i = 0; i < 8; i++)
        times[i] = i == 1 ? time : 0.5f;
    *call_positions(c) = (struct posenc_positions){ .kind = POSENC_POSITIONS_F32,
                                                    .data = times,
                                                    .stride_token = 1 };
}
static void time_nan(struct call *c) { at_time(c, NAN); }
static void time_infinite(struct call *c) { at_time(c, INFINITY); }
static void time_beyond(struct call *c) { at_time(c, 0x1p31f); }
static void time_below(struct call *c) { at_time(c, -0x1p31f); }
static void time_whole(struct call *c) { at_time(c, 1.0f); }
static void time_null(struct call *c)
{
    at_time(c, 1.0f);
    call_positions(c)->data = NULL;
}

/* A valid plan of three axes in place of the call's. */
static const struct posenc_freqs *three_axes(struct call *c)
{
    struct posenc_freqs_spec spec = c->problem.freqs;
    int64_t pairs = spec.dim / 2;
    spec.mrope_section[0] = pairs - 2;
    spec.mrope_section[1] = spec.mrope_section[2] = 1;
    posenc_freqs_destroy(c->freqs);
    c->freqs = NULL;
    return posenc_freqs_create(&spec, &c->freqs, NULL) == POSENC_OK ? c->freqs : NULL;
}
static void sinusoidal_axes(struct call *c) { c->args.sinusoidal.freqs = three_axes(c); }

static const struct posenc_freqs *with_xpos(struct call *c)
{
    struct posenc_freqs_spec spec = c->problem.freqs;
    spec.xpos_scale_base = 512.0;
    posenc_freqs_destroy(c->freqs);
    c->freqs = NULL;
    return posenc_freqs_create(&spec, &c->freqs, NULL) == POSENC_OK ? c->freqs : NULL;
}
static void sinusoidal_xpos(struct call *c) { c->args.sinusoidal.freqs = with_xpos(c); }
static void xpos_far(struct call *c)
{
    c->args.rope_table.freqs = with_xpos(c);
    *call_positions(c) = (struct posenc_positions){ .offset = 1 << 20 };
}

/* Only the last of three axes, each in an array of its own, is out of range. */
static void last_axis(struct call *c)
{
    static int64_t bad[3][8];
    bad[2][2] = INT64_C(1) << 31;
    c->args.rope_table.freqs = three_axes(c);
    *call_positions(c) = (struct posenc_positions){
        .kind = POSENC_POSITIONS_I64, .data = bad, .stride_token = 1, .stride_axis = 8
    };
}

#define SET(name, expression)                                                                  \
    static void name(struct call *c) { expression; }
SET(sinusoidal_no_plan, c->args.sinusoidal.freqs = NULL)
SET(sinusoidal_layout, c->args.sinusoidal.layout = (enum posenc_layout)7)
SET(sinusoidal_scale, c->args.sinusoidal.scale = (double)NAN)
SET(sinusoidal_x_scale, c->args.sinusoidal.x_scale = INFINITY)
SET(learned_x_scale, c->args.learned.x_scale = NAN)
SET(learned_table_null, c->args.learned.table.data = NULL)
SET(learned_table_width, c->args.learned.table.shape[1] -= 1)
SET(learned_table_dtype, c->args.learned.table.dtype = POSENC_F16)
SET(learned_grad_out_dtype, c->args.learned_grad.out.dtype = POSENC_BF16)
SET(rope_table_no_plan, c->args.rope_table.freqs = NULL)
SET(rope_table_no_sin, c->args.rope_table.sin.data = NULL)
SET(rope_table_alias, c->args.rope_table.sin.data = c->args.rope_table.cos.data)
SET(rope_table_sin_width, c->args.rope_table.sin.shape[c->args.rope_table.sin.rank - 1] -= 1)
SET(rope_table_sin_dtype, c->args.rope_table.sin.dtype = POSENC_F16)
SET(rope_no_cos, c->args.rope.cos.data = NULL)
SET(rope_sin_width, c->args.rope.sin.shape[1] -= 1)
SET(rope_too_wide, c->args.rope.cos.shape[1] = c->args.rope.sin.shape[1] = c->problem.dim)
SET(rope_sin_dtype, c->args.rope.sin.dtype = POSENC_BF16)
SET(rope_cos_dtype, c->args.rope.cos.dtype = c->args.rope.sin.dtype = (enum posenc_dtype)77)
SET(rope_offset_negative, c->args.rope.rotary_offset = -1)
SET(rope_offset_far, c->args.rope.rotary_offset = c->problem.dim - c->problem.rotary_dim + 1)
SET(rope_offset_wraps, c->args.rope.rotary_offset = INT64_MAX)
SET(rope_cos_is_out, c->args.rope.cos.data = c->args.rope.out.data)
#undef SET

static const struct bad_argument of_all[] = {
    { "size 0", STATUS(ARGUMENT), size_zero },
    { "unknown size", STATUS(ARGUMENT), size_odd },
    { "no output", STATUS(ARGUMENT), out_null },
    { "output of an unknown dtype", STATUS(DTYPE) | STATUS(ARGUMENT), out_dtype },
    { "output of rank 0", STATUS(SHAPE), out_rank_0 },
    { "output of rank 5", STATUS(SHAPE), out_rank_5 },
    { "output of a negative size", STATUS(SHAPE), out_negative },
    { "output of 2^62 rows", STATUS(SHAPE) | STATUS(OVERFLOW), out_huge },
    { "output not contiguous", STATUS(STRIDE), out_strided },
    { "output rows one apart", STATUS(STRIDE), out_overlaps_itself },
    { "output of stride 0", STATUS(STRIDE), out_stride_zero },
    { "output at an odd byte", STATUS(ARGUMENT), out_unaligned },
};
static const struct bad_argument of_x[] = {
    { "no input", STATUS(ARGUMENT), x_null },
    { "input of an unknown dtype", STATUS(DTYPE) | STATUS(ARGUMENT), x_dtype },
    { "input not contiguous", STATUS(STRIDE), x_strided },
};
static const struct bad_argument of_x_as_out[] = {
    { "input of another dtype", STATUS(DTYPE), x_other_dtype },
};
static const struct bad_argument of_x_width[] = {
    { "input narrower than the output", STATUS(SHAPE), x_shape },
};
static const struct bad_argument of_x_apart[] = {
    { "input is the output", STATUS(OVERLAP), x_is_out },
};
static const struct bad_argument of_positions[] = {
    { "unknown kind of positions", STATUS(ARGUMENT), position_kind },
    { "array of positions without data", STATUS(ARGUMENT), position_null },
    { "offset that wraps", STATUS(POSITION) | STATUS(OVERFLOW), position_wraps },
};
static const struct bad_argument of_computed[] = {
    { "position 2^31", STATUS(POSITION), position_beyond },
    { "position -2^31", STATUS(POSITION), position_below },
    { "position 2^31 in an array", STATUS(POSITION), position_array },
    { "a time that is NaN", STATUS(POSITION), time_nan },
    { "an infinite time", STATUS(POSITION), time_infinite },
    { "time 2^31", STATUS(POSITION), time_beyond },
    { "time -2^31", STATUS(POSITION), time_below },
    { "times without data", STATUS(ARGUMENT), time_null },
};
static const struct bad_argument of_rows[] = {
    { "row -1", STATUS(POSITION), row_negative },
    { "row past the table", STATUS(POSITION), row_too_far },
    { "row past the table in an array", STATUS(POSITION), row_array },
    { "a time for a row", STATUS(ARGUMENT), time_whole },
};
static const struct bad_argument of_sinusoidal[] = {
    { "output wider than the rest", STATUS(SHAPE) | STATUS(STRIDE), out_wider },
    { "no plan", STATUS(ARGUMENT), sinusoidal_no_plan },
    { "unknown layout", STATUS(ARGUMENT), sinusoidal_layout },
    { "scale NaN", STATUS(PARAMETER), sinusoidal_scale },
    { "a plan of three axes that do not restart", STATUS(ARGUMENT), sinusoidal_axes },
    { "a plan with xPos", STATUS(ARGUMENT), sinusoidal_xpos },
};
static const struct bad_argument of_sinusoidal_add[] = {
    { "x_scale infinite", STATUS(PARAMETER), sinusoidal_x_scale },
};
static const struct bad_argument of_learned[] = {
    { "output wider than the rest", STATUS(SHAPE) | STATUS(STRIDE), out_wider },
    { "x_scale NaN", STATUS(PARAMETER), learned_x_scale },
    { "no table", STATUS(ARGUMENT), learned_table_null },
    { "table narrower than the output", STATUS(SHAPE), learned_table_width },
    { "table in 16 bits", STATUS(DTYPE), learned_table_dtype },
};
static const struct bad_argument of_learned_grad[] = {
    { "gradient in 16 bits", STATUS(DTYPE), learned_grad_out_dtype },
};
static const struct bad_argument of_rope_table[] = {
    { "output wider than the rest", STATUS(SHAPE) | STATUS(STRIDE), out_wider },
    { "no plan", STATUS(ARGUMENT), rope_table_no_plan },
    { "no sin", STATUS(ARGUMENT), rope_table_no_sin },
    { "sin is cos", STATUS(OVERLAP), rope_table_alias },
    { "sin narrower than cos", STATUS(SHAPE), rope_table_sin_width },
    { "sin of another dtype than cos", STATUS(DTYPE), rope_table_sin_dtype },
    { "position 2^31 on the last axis", STATUS(POSITION), last_axis },
    { "a position that xPos scales beyond f32", STATUS(POSITION), xpos_far },
};
static const struct bad_argument of_rope[] = {
    { "no cos", STATUS(ARGUMENT), rope_no_cos },
    { "sin narrower than cos", STATUS(SHAPE), rope_sin_width },
    { "rotary_dim twice head_dim", STATUS(ROTARY_DIM) | STATUS(STRIDE), rope_too_wide },
    { "sin of another dtype than cos", STATUS(DTYPE), rope_sin_dtype },
    { "cos and sin of an unknown dtype", STATUS(DTYPE), rope_cos_dtype },
    { "rotary_offset -1", STATUS(ROTARY_DIM), rope_offset_negative },
    { "rotary_offset one too far", STATUS(ROTARY_DIM), rope_offset_far },
    { "rotary_offset that wraps", STATUS(ROTARY_DIM), rope_offset_wraps },
    { "cos is the output", STATUS(OVERLAP), rope_cos_is_out },
};

const struct bad_arguments_of bad_arguments_of_sinusoidal = { ARGUMENTS(of_sinusoidal),
                                                              ARGUMENTS(of_sinusoidal_add) };
const struct bad_arguments_of bad_arguments_of_learned = { ARGUMENTS(of_learned), { NULL, 0 } };
const struct bad_arguments_of bad_arguments_of_learned_grad = { ARGUMENTS(of_learned_grad),
                                                                { NULL, 0 } };
const struct bad_arguments_of bad_arguments_of_rope_table = { ARGUMENTS(of_rope_table),
                                                              { NULL, 0 } };
const struct bad_arguments_of bad_arguments_of_rope = { ARGUMENTS(of_rope), { NULL, 0 } };

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
                           const struct bad_argument *m)
{
    struct call call;
    t->problem = p;
    enum posenc_status made = call_create_by(t->run->subject, &call, p, &memory_plain);
    if (!require(t, made == POSENC_OK, "the call was not made: %s", posenc_status_string(made)))
        return;
    struct copy before, after;
    call_reset(&call);
    bool copied = copy_outputs(&before, &call);
    m->make(&call);
    struct guarded g = guarded_run(&call, t->run->backend, NULL);
    require(t, !g.crashed, "%s: %s", m->name, g.reason);
    require(t, g.crashed || (m->allowed >> g.status & 1u), "%s: answered \"%s\"", m->name,
            posenc_status_string(g.status));
    if (copied && copy_outputs(&after, &call)) {
        require_untouched(t, &after, &before, m->name);
        copy_free(&after);
    }
    if (copied)
        copy_free(&before);
    call_destroy(&call);
}

static void check_list(struct tally *t, const struct problem *p, struct bad_arguments bad)
{
    for (size_t i = 0; i < bad.n; i++)
        check_argument(t, p, &bad.list[i]);
}

#define CHECK(list) check_list(t, p, (struct bad_arguments)ARGUMENTS(list))

static const struct tensor_row *row_of(const struct signature *s, enum role role)
{
    for (EACH_TENSOR(row, s))
        if (row->role == role && row->form == FORM_TENSOR)
            return row;
    return NULL;
}

static void check_x(struct tally *t, const struct problem *p, const struct signature *s)
{
    const struct tensor_row *x = row_of(s, ROLE_X), *out = row_of(s, ROLE_OUTPUT);
    CHECK(of_x);
    if (x->type == out->type)
        CHECK(of_x_as_out);
    if (x->dims[tensor_dims(x) - 1] == out->dims[tensor_dims(out) - 1])
        CHECK(of_x_width);
    if (!kernel_in_place(p->kernel))
        CHECK(of_x_apart);
}

static void check_positions(struct tally *t, const struct problem *p)
{
    CHECK(of_positions);
    if (kernel_has_plan(p->kernel))
        CHECK(of_computed);
    else
        CHECK(of_rows);
}

static void check_arguments(struct tally *t, const struct problem *p)
{
    static const struct bad_arguments_of *const of_signature[] = {
#define POSENC_SIGNATURE(name) [SIGNATURE_##name] = &bad_arguments_of_##name,
#include <posenc_signatures.def>
    };
    const struct bad_arguments_of *own = of_signature[kernel_signature(p->kernel)];
    const struct signature *s = signature_of(p->kernel);
    CHECK(of_all);
    check_list(t, p, own->all);
    if (kernel_takes_x(p->kernel)) {
        check_x(t, p, s);
        check_list(t, p, own->with_x);
    }
    for (EACH_TENSOR(row, s)) {
        if (row->form == FORM_POSITIONS)
            check_positions(t, p);
        if (row->form == FORM_INTEGERS && tensor_dims(row) > 0)
            check_list(t, p, bad_arguments_of_index);
    }
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
