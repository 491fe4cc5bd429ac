/*
 * Bad arguments that no row of a signature says (refusals.c has the others): arguments that are
 * wrong together, ranges that depend on others, plans for another kernel.
 */
#include "refusals.h"

#include "conformance/problem/plans.h"

/* Distances that no call may have; which of the statuses is the better one nobody says. */
#define TOO_FAR (STATUS(PARAMETER) | STATUS(POSITION) | STATUS(SHAPE) | STATUS(OVERFLOW))

/* A valid plan in place of the call's. */
static const struct posenc_freqs *with_plan(struct call *c,
                                            const struct posenc_freqs_spec *spec)
{
    plan_give_back(c->freqs);
    c->freqs = NULL;
    return posenc_freqs_create(spec, &c->freqs, NULL) == POSENC_OK ? c->freqs : NULL;
}

static const struct posenc_freqs *three_axes(struct call *c)
{
    struct posenc_freqs_spec spec = c->problem.freqs;
    spec.mrope_section[0] = spec.dim / 2 - 2;
    spec.mrope_section[1] = spec.mrope_section[2] = 1;
    return with_plan(c, &spec);
}

static const struct posenc_freqs *with_xpos(struct call *c)
{
    struct posenc_freqs_spec spec = c->problem.freqs;
    spec.xpos_scale_base = 512.0;
    return with_plan(c, &spec);
}

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
    static void name(struct call *c, const struct spoiled *of)                                 \
    {                                                                                          \
        (void)of;                                                                              \
        expression;                                                                            \
    }
SET(sinusoidal_axes, c->args.sinusoidal.freqs = three_axes(c))
SET(sinusoidal_xpos, c->args.sinusoidal.freqs = with_xpos(c))
SET(rope_table_axis, last_axis(c))
SET(rope_table_xpos, xpos_far(c))
SET(rope_too_wide, c->args.rope.cos.shape[1] = c->args.rope.sin.shape[1] = c->problem.dim)
SET(rope_dtype, c->args.rope.cos.dtype = c->args.rope.sin.dtype = (enum posenc_dtype)77)
SET(rope_offset_negative, c->args.rope.rotary_offset = -1)
SET(rope_offset_far, c->args.rope.rotary_offset = c->problem.dim - c->problem.rotary_dim + 1)
SET(rope_offset_wraps, c->args.rope.rotary_offset = INT64_MAX)
SET(t5_buckets, c->args.t5.num_buckets = 1)
SET(distance_late, c->args.distance.first++)
SET(distance_first_wraps, c->args.distance.first = INT64_MIN)
SET(relative_terms, c->args.relative.c2p.data = c->args.relative.p2c.data = NULL)
#undef SET

static const struct {
    enum signature_id signature;
    struct bad_argument argument;
} listed[] = {
    { SIGNATURE_sinusoidal,
      { "a plan of three axes that do not restart", STATUS(ARGUMENT), sinusoidal_axes } },
    { SIGNATURE_sinusoidal, { "a plan with xPos", STATUS(ARGUMENT), sinusoidal_xpos } },
    { SIGNATURE_rope_table,
      { "position 2^31 on the last axis", STATUS(POSITION), rope_table_axis } },
    { SIGNATURE_rope_table,
      { "a position that xPos scales beyond f32", STATUS(POSITION), rope_table_xpos } },
    { SIGNATURE_rope,
      { "rotary_dim twice head_dim", STATUS(ROTARY_DIM) | STATUS(STRIDE), rope_too_wide } },
    { SIGNATURE_rope, { "cos and sin of an unknown dtype", STATUS(DTYPE), rope_dtype } },
    { SIGNATURE_rope, { "rotary_offset -1", STATUS(ROTARY_DIM), rope_offset_negative } },
    { SIGNATURE_rope, { "rotary_offset one too far", STATUS(ROTARY_DIM), rope_offset_far } },
    { SIGNATURE_rope, { "rotary_offset that wraps", STATUS(ROTARY_DIM), rope_offset_wraps } },
    { SIGNATURE_t5, { "num_buckets 1", STATUS(SHAPE) | STATUS(PARAMETER), t5_buckets } },
    { SIGNATURE_distance,
      { "values without the least distance", STATUS(SHAPE), distance_late } },
    { SIGNATURE_distance, { "first that wraps", TOO_FAR, distance_first_wraps } },
    { SIGNATURE_relative, { "no terms", STATUS(ARGUMENT), relative_terms } },
};

const struct bad_argument *bad_argument_next(enum signature_id signature, size_t *i)
{
    while (*i < sizeof listed / sizeof *listed)
        if (listed[(*i)++].signature == signature)
            return &listed[*i - 1].argument;
    return NULL;
}
