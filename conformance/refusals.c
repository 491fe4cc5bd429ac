/*
 * What must be refused is, with the status posenc.h promises, and every output is as it was:
 * each bad argument on an otherwise valid call, each bad member of an otherwise valid plan.  Where the header allows two readings (a size
 * that is both too large a shape and an overflow) either status will do.
 */
#define _POSIX_C_SOURCE 200809L
#include "inputs.h"
#include "memory.h"

#include <math.h>
#include <string.h>

#define STATUS(name) (1u << POSENC_ERR_##name)

struct mistake {
    const char *name;
    unsigned allowed; /* statuses, as bits */
    void (*make)(struct call *call);
};

/* ---- Mistakes ---- */

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
static void out_stride_zero(struct call *c) { call_out(c)->stride[call_out(c)->rank - 2] = 0; }

static void x_null(struct call *c) { call_x(c)->data = NULL; }
static void x_dtype(struct call *c) { call_x(c)->dtype = (enum posenc_dtype)77; }
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

#define SET(name, expression)                                                                  \
    static void name(struct call *c) { expression; }
SET(sinusoidal_no_plan, c->args.sinusoidal.freqs = NULL)
SET(sinusoidal_layout, c->args.sinusoidal.layout = (enum posenc_layout)7)
SET(sinusoidal_scale, c->args.sinusoidal.scale = (double)NAN)
SET(sinusoidal_x_scale, c->args.sinusoidal.x_scale = INFINITY)
SET(learned_x_scale, c->args.learned.x_scale = NAN)
SET(learned_table_null, c->args.learned.table.data = NULL)
SET(learned_table_width, c->args.learned.table.shape[1] -= 1)
SET(rope_table_no_plan, c->args.rope_table.freqs = NULL)
SET(rope_table_no_sin, c->args.rope_table.sin.data = NULL)
SET(rope_table_alias, c->args.rope_table.sin.data = c->args.rope_table.cos.data)
SET(rope_table_sin_width, c->args.rope_table.sin.shape[c->args.rope_table.sin.rank - 1] -= 1)
SET(rope_no_cos, c->args.rope.cos.data = NULL)
SET(rope_sin_width, c->args.rope.sin.shape[1] -= 1)
SET(rope_too_wide, c->args.rope.cos.shape[1] = c->args.rope.sin.shape[1] = c->problem.dim)
SET(rope_cos_is_out, c->args.rope.cos.data = c->args.rope.out.data)
SET(alibi_no_slopes, c->args.alibi.slopes = NULL)
SET(alibi_x_scale, c->args.alibi.x_scale = NAN)
SET(alibi_far, c->args.alibi.query_offset = 1 << 24)
SET(alibi_wraps, c->args.alibi.query_offset = INT64_MAX)
SET(t5_no_thresholds, c->args.t5.thresholds = NULL)
SET(t5_no_table, c->args.t5.table.data = NULL)
SET(t5_buckets, c->args.t5.num_buckets = 1)
SET(t5_table_rows, c->args.t5.table.shape[0] -= 1)
SET(t5_x_scale, c->args.t5.x_scale = NAN)
SET(t5_wraps, c->args.t5.query_offset = INT64_MAX)
#undef SET

static const struct mistake of_all[] = {
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
};
static const struct mistake of_x[] = {
    { "no input", STATUS(ARGUMENT), x_null },
    { "input of an unknown dtype", STATUS(DTYPE) | STATUS(ARGUMENT), x_dtype },
    { "input narrower than the output", STATUS(SHAPE), x_shape },
    { "input not contiguous", STATUS(STRIDE), x_strided },
};
static const struct mistake of_width[] = {
    { "output wider than the rest", STATUS(SHAPE) | STATUS(STRIDE), out_wider },
};
static const struct mistake of_positions[] = {
    { "unknown kind of positions", STATUS(ARGUMENT), position_kind },
    { "array of positions without data", STATUS(ARGUMENT), position_null },
    { "offset that wraps", STATUS(POSITION) | STATUS(OVERFLOW), position_wraps },
};
static const struct mistake of_computed[] = {
    { "position 2^31", STATUS(POSITION), position_beyond },
    { "position -2^31", STATUS(POSITION), position_below },
    { "position 2^31 in an array", STATUS(POSITION), position_array },
};
static const struct mistake of_rows[] = {
    { "row -1", STATUS(POSITION), row_negative },
    { "row past the table", STATUS(POSITION), row_too_far },
    { "row past the table in an array", STATUS(POSITION), row_array },
};
static const struct mistake of_sinusoidal[] = {
    { "no plan", STATUS(ARGUMENT), sinusoidal_no_plan },
    { "unknown layout", STATUS(ARGUMENT), sinusoidal_layout },
    { "scale NaN", STATUS(PARAMETER), sinusoidal_scale },
};
static const struct mistake of_sinusoidal_add[] = {
    { "x_scale infinite", STATUS(PARAMETER), sinusoidal_x_scale },
};
static const struct mistake of_learned[] = {
    { "x_scale NaN", STATUS(PARAMETER), learned_x_scale },
    { "no table", STATUS(ARGUMENT), learned_table_null },
    { "table narrower than the output", STATUS(SHAPE), learned_table_width },
};
static const struct mistake of_rope_table[] = {
    { "no plan", STATUS(ARGUMENT), rope_table_no_plan },
    { "no sin", STATUS(ARGUMENT), rope_table_no_sin },
    { "sin is cos", STATUS(OVERLAP), rope_table_alias },
    { "sin narrower than cos", STATUS(SHAPE), rope_table_sin_width },
};
static const struct mistake of_rope[] = {
    { "no cos", STATUS(ARGUMENT), rope_no_cos },
    { "sin narrower than cos", STATUS(SHAPE), rope_sin_width },
    { "rotary_dim twice head_dim", STATUS(ROTARY_DIM) | STATUS(STRIDE), rope_too_wide },
    { "cos is the output", STATUS(OVERLAP), rope_cos_is_out },
};
static const struct mistake of_alibi[] = {
    { "no slopes", STATUS(ARGUMENT), alibi_no_slopes },
    { "distance 2^24", STATUS(PARAMETER) | STATUS(POSITION) | STATUS(SHAPE), alibi_far },
    { "query_offset that wraps",
      STATUS(PARAMETER) | STATUS(POSITION) | STATUS(SHAPE) | STATUS(OVERFLOW), alibi_wraps },
};
static const struct mistake of_alibi_add[] = {
    { "x_scale NaN", STATUS(PARAMETER), alibi_x_scale },
};
static const struct mistake of_t5[] = {
    { "no thresholds", STATUS(ARGUMENT), t5_no_thresholds },
    { "no table", STATUS(ARGUMENT), t5_no_table },
    { "num_buckets 1", STATUS(SHAPE) | STATUS(PARAMETER), t5_buckets },
    { "table a row short", STATUS(SHAPE), t5_table_rows },
    { "query_offset that wraps",
      STATUS(PARAMETER) | STATUS(POSITION) | STATUS(SHAPE) | STATUS(OVERFLOW), t5_wraps },
};
static const struct mistake of_t5_add[] = {
    { "x_scale NaN", STATUS(PARAMETER), t5_x_scale },
};

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

/* A valid call with one mistake: the status is one of those allowed, the outputs do
 * not move. */
static void check_mistake(struct tally *t, const struct problem *p, const struct mistake *m)
{
    struct call call;
    t->problem = p;
    enum posenc_status made = call_create(&call, p, &memory_plain);
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

static void check_list(struct tally *t, const struct problem *p, const struct mistake *list,
                       size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_mistake(t, p, &list[i]);
}
#define CHECK(list) check_list(t, p, list, sizeof(list) / sizeof(list)[0])

static void check_mistakes(struct tally *t, const struct problem *p)
{
    bool has_x = kernel_takes_x(p->kernel);
    CHECK(of_all);
    if (has_x)
        CHECK(of_x);
    switch (kernel_signature(p->kernel)) {
    case SIGNATURE_sinusoidal:
        CHECK(of_width);
        CHECK(of_positions);
        CHECK(of_computed);
        CHECK(of_sinusoidal);
        if (has_x)
            CHECK(of_sinusoidal_add);
        break;
    case SIGNATURE_learned:
        CHECK(of_width);
        CHECK(of_positions);
        CHECK(of_rows);
        CHECK(of_learned);
        break;
    case SIGNATURE_rope_table:
        CHECK(of_width);
        CHECK(of_positions);
        CHECK(of_computed);
        CHECK(of_rope_table);
        break;
    case SIGNATURE_rope:
        CHECK(of_positions);
        CHECK(of_rows);
        CHECK(of_rope);
        break;
    case SIGNATURE_alibi:
        CHECK(of_alibi);
        if (has_x)
            CHECK(of_alibi_add);
        break;
    case SIGNATURE_t5:
        CHECK(of_t5);
        if (has_x)
            CHECK(of_t5_add);
        break;
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
        if (!require(t, call_create(&call, p, &memory_plain) == POSENC_OK,
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

/* ---- Plans ---- */

struct plan_mistake {
    const char *name;
    enum posenc_scaling scaling; /* of the valid spec */
    enum posenc_status want;
    void (*make)(struct posenc_freqs_spec *spec);
};

enum { PLAN_PAIRS = 32 };
static const double with_zero[PLAN_PAIRS] = { 1.0 };
static const double nan_first[PLAN_PAIRS] = { (double)NAN };

#define SET(name, expression)                                                                  \
    static void name(struct posenc_freqs_spec *s) { expression; }
SET(plan_size, s->size--)
SET(plan_profile, s->profile = (enum posenc_profile)77)
SET(plan_convention, s->convention = (enum posenc_convention)77)
SET(plan_scaling, s->scaling = (enum posenc_scaling)77)
SET(plan_empty, s->dim = 0)
SET(plan_two, s->dim = 2)
SET(plan_theta_zero, s->rope_theta = 0.0)
SET(plan_theta_one, s->rope_theta = 1.0)
SET(plan_theta_nan, s->rope_theta = (double)NAN)
SET(plan_theta_wide, (s->rope_theta = 1e39, s->profile = POSENC_HF_F32))
SET(plan_attention, s->attention_factor = -1.0)
SET(plan_factor_half, s->factor = 0.5)
SET(plan_factor_nan, s->factor = (double)NAN)
SET(plan_no_context, s->original_max_position_embeddings = 0.0)
SET(plan_no_most, s->max_position_embeddings = 0.0)
SET(plan_seq_len, s->seq_len = -1)
SET(plan_high_low, s->high_freq_factor = 0.5)
SET(plan_fast_slow, s->beta_fast = 0.5)
SET(plan_no_short, s->short_factor = NULL)
SET(plan_no_long, s->long_factor = NULL)
SET(plan_long_zero, s->long_factor = with_zero)
SET(plan_short_nan, s->short_factor = nan_first)
SET(plan_no_share, s->partial_rotary_factor = 0.0)
SET(plan_share_wide, s->partial_rotary_factor = 1.01)
SET(plan_share_small, s->partial_rotary_factor = 0.03)
SET(plan_torch, s->profile = POSENC_TORCH_EXP_F32)
SET(plan_ggml, s->profile = POSENC_GGML_F32)
SET(plan_ggml_endpoint, (s->profile = POSENC_GGML_F32, s->convention = POSENC_ENDPOINT))
SET(plan_ggml_values, (s->profile = POSENC_GGML_F32, s->values = with_zero))
SET(plan_values, s->values = with_zero)
SET(plan_values_nan, s->values = nan_first)
#undef SET

#define NONE     POSENC_SCALING_NONE
#define OF(name) POSENC_SCALING_##name
static const struct plan_mistake of_plans[] = {
    { "unknown size", NONE, POSENC_ERR_ARGUMENT, plan_size },
    { "unknown profile", NONE, POSENC_ERR_ARGUMENT, plan_profile },
    { "unknown convention", NONE, POSENC_ERR_ARGUMENT, plan_convention },
    { "unknown scaling", NONE, POSENC_ERR_ARGUMENT, plan_scaling },
    { "dim 0", NONE, POSENC_ERR_SHAPE, plan_empty },
    { "rope_theta 0", NONE, POSENC_ERR_THETA, plan_theta_zero },
    { "rope_theta NaN", NONE, POSENC_ERR_THETA, plan_theta_nan },
    { "rope_theta that is no f32", NONE, POSENC_ERR_THETA, plan_theta_wide },
    { "attention_factor -1", NONE, POSENC_ERR_PARAMETER, plan_attention },
    { "a frequency NaN", NONE, POSENC_ERR_PARAMETER, plan_values_nan },
    { "own frequencies in ggml_f32", NONE, POSENC_ERR_ARGUMENT, plan_ggml_values },
    { "the endpoint in ggml_f32", NONE, POSENC_ERR_ARGUMENT, plan_ggml_endpoint },
    { "own frequencies, scaled", OF(LINEAR), POSENC_ERR_ARGUMENT, plan_values },
    { "factor 1/2", OF(LINEAR), POSENC_ERR_PARAMETER, plan_factor_half },
    { "factor NaN", OF(LINEAR), POSENC_ERR_PARAMETER, plan_factor_nan },
    { "torch_exp_f32, scaled", OF(LINEAR), POSENC_ERR_ARGUMENT, plan_torch },
    { "llama3 without its context", OF(LLAMA3), POSENC_ERR_PARAMETER, plan_no_context },
    { "llama3, high below low", OF(LLAMA3), POSENC_ERR_PARAMETER, plan_high_low },
    { "yarn of theta 1", OF(YARN), POSENC_ERR_THETA, plan_theta_one },
    { "yarn, fast below slow", OF(YARN), POSENC_ERR_PARAMETER, plan_fast_slow },
    { "ntk of 2 channels", OF(NTK), POSENC_ERR_SHAPE, plan_two },
    { "dynamic of 2 channels", OF(DYNAMIC), POSENC_ERR_SHAPE, plan_two },
    { "dynamic without its length", OF(DYNAMIC), POSENC_ERR_PARAMETER, plan_no_most },
    { "dynamic of -1 tokens", OF(DYNAMIC), POSENC_ERR_PARAMETER, plan_seq_len },
    { "longrope without short factors", OF(LONGROPE), POSENC_ERR_ARGUMENT, plan_no_short },
    { "longrope without long factors", OF(LONGROPE), POSENC_ERR_ARGUMENT, plan_no_long },
    { "longrope, a factor 0", OF(LONGROPE), POSENC_ERR_PARAMETER, plan_long_zero },
    { "longrope, a factor NaN", OF(LONGROPE), POSENC_ERR_PARAMETER, plan_short_nan },
    { "longrope without its context", OF(LONGROPE), POSENC_ERR_PARAMETER, plan_no_context },
    { "no share of pairs", OF(PROPORTIONAL), POSENC_ERR_PARAMETER, plan_no_share },
    { "more than all pairs", OF(PROPORTIONAL), POSENC_ERR_PARAMETER, plan_share_wide },
    { "less than a pair", OF(PROPORTIONAL), POSENC_ERR_PARAMETER, plan_share_small },
    { "ggml_f32, proportional", OF(PROPORTIONAL), POSENC_ERR_ARGUMENT, plan_ggml },
};
#undef OF
#undef NONE

/* Valid in every scaling. */
static struct posenc_freqs_spec valid_spec(enum posenc_scaling scaling, const double *factors)
{
    struct posenc_freqs_spec s = POSENC_FREQS_SPEC;
    s.dim = 2 * PLAN_PAIRS;
    s.scaling = scaling;
    s.factor = 4.0;
    s.original_max_position_embeddings = s.max_position_embeddings = 4096.0;
    s.low_freq_factor = 1.0;
    s.high_freq_factor = 4.0;
    s.short_factor = s.long_factor = factors;
    return s;
}

/* Without the mistake the plan is made; with it, it is refused for a reason and none is given. */
static void check_plan(struct tally *t, const struct plan_mistake *m)
{
    double factors[PLAN_PAIRS];
    for (int i = 0; i < PLAN_PAIRS; i++)
        factors[i] = 1.0;
    struct posenc_freqs_spec spec = valid_spec(m->scaling, factors);
    struct posenc_error error = { .what = NULL };
    struct posenc_freqs *freqs = NULL;
    enum posenc_status status = posenc_freqs_create(&spec, &freqs, NULL);
    require(t, status == POSENC_OK && freqs, "the plan was not made: %s",
            posenc_status_string(status));
    posenc_freqs_destroy(freqs);
    freqs = NULL;
    m->make(&spec);
    status = posenc_freqs_create(&spec, &freqs, &error);
    require(t, status == m->want, "%s: answered \"%s\"", m->name, posenc_status_string(status));
    require(t, status == error.status && error.what, "%s: no reason", m->name);
    require(t, !freqs, "%s: a plan all the same", m->name);
    posenc_freqs_destroy(freqs);
}

void check_refusals(struct suite_run *run, enum posenc_kernel kernel)
{
    struct tally t;
    tally_begin(&t, run, kernel, "memory", "errors-leave-outputs-untouched");
    struct problem p = memory_problem(kernel, 24, 0);
    p.heads = p.queries = 3; /* rows that a wrong stride puts on each other */
    if (t.selected)
        check_mistakes(&t, &p);
    tally_end(&t);
    tally_begin(&t, run, kernel, "memory", "overlap-refused");
    if (t.selected && kernel_takes_x(kernel)) {
        check_overlap(&t, &p);
        tally_end(&t);
    }
    if (kernel_signature(kernel) != SIGNATURE_rope_table)
        return;
    tally_begin(&t, run, kernel, "memory", "plans-refused");
    for (size_t i = 0; t.selected && i < sizeof of_plans / sizeof of_plans[0]; i++)
        check_plan(&t, &of_plans[i]);
    tally_end(&t);
}
