/*
 * The inner loops of the templates, each in a function of its own, for llvm-mca
 * (cross/estimate.py).  The loops are those of impl/kernels, called as the kernels call them with
 * whole vectors of positions that are not zero; none is written again here.
 *
 * POSENC_SIMD, POSENC_ISA and flags are those that impl/meson.build has for a backend.
 */
#include "impl/kernels/bias.c"
#include "impl/kernels/learned.c"
#include "impl/kernels/rope.c"
#include "impl/kernels/table.c"
#include "loops.h"

/* `count` rows of so many vectors of pairs. */
static struct run rows(const struct loop *loop, int64_t count, int64_t vectors)
{
    const int64_t pairs = vectors * vf_lanes();

    return (struct run){
        .freqs = loop->freqs,
        .first = (uint32_t)loop->query,
        .count = count,
        .scale = (double)loop->scale,
        .dim = 2 * pairs,
        .cosine_at = pairs,
        .pairs = pairs,
        .out = loop->out,
        .sine = loop->sines,
        .x = loop->x,
        .x_scale = loop->scale,
        .out_stride = 2 * pairs,
        .sine_stride = 2 * pairs,
        .x_stride = 2 * pairs,
    };
}

static struct token heads(const struct loop *loop)
{
    return (struct token){
        .pairs = loop->stride / 2,
        .heads = loop->turns,
        .sign = loop->scale,
        .cosine = (const char *)loop->table,
        .sine = (const char *)(loop->table + 4 * vf_lanes()),
        .x = (const char *)loop->x,
        .out = (char *)loop->out,
        .x_step = loop->stride * (int64_t)sizeof *loop->x,
        .out_step = loop->stride * (int64_t)sizeof *loop->out,
    };
}

static struct posenc_learned_args one_token(const struct loop *loop)
{
    struct posenc_learned_args args = posenc_learned_args_init();
    int64_t dim = loop->vectors * vf_lanes();

    args.table = (struct posenc_const_tensor){ .data = loop->table, .shape = { 1, dim } };
    args.x = (struct posenc_const_tensor){ .data = loop->x, .shape = { 1, 1, 1, dim } };
    args.out = (struct posenc_tensor){ .data = loop->out, .shape = { 1, 1, 1, dim } };
    args.x_scale = loop->scale;
    return args;
}

/* flatten: a kernel has nothing to call in its loop but rest_of_column, and neither has this. */
#define LOOP(kernel, profile, variant, body)                                                   \
    __attribute__((flatten)) void LOOP_NAME(kernel, profile, variant)(const struct loop *loop) \
    {                                                                                          \
        body;                                                                                  \
    }

_Static_assert(sizeof(struct anchors) == LOOP_ANCHORS * sizeof(double), "");
#define EXACT(sink, how)                                                                       \
    const struct run run = rows(loop, POSENC_GROUP, loop->turns);                              \
    const struct pitch pitch = pitch_of(&run, sink);                                           \
    whole_group(&run, sink, how, 0, 0, run.pairs, 0, vd_from_vf(sign_of(&run)), run.x_scale,   \
                &pitch, (const struct anchors *)loop->anchors)
#define HF_F32(sink, how)                                                                      \
    const struct run run = rows(loop, loop->turns, 1);                                         \
    run_angles(&run, sink, how, false)
LOOP(sinusoidal, exact, interleaved, EXACT(TO_INTERLEAVED, STORED))
LOOP(sinusoidal, exact, sin_cos, EXACT(TO_HALVES, STORED))
LOOP(sinusoidal, hf_f32, interleaved, HF_F32(TO_INTERLEAVED, STORED))
LOOP(sinusoidal_add, exact, interleaved, EXACT(TO_INTERLEAVED, ADDED))
LOOP(sinusoidal_add, exact, sin_cos, EXACT(TO_HALVES, ADDED))
LOOP(rope_table, exact, plain, EXACT(TO_COS_AND_SIN, STORED))
LOOP(rope_table, hf_f32, plain, HF_F32(TO_COS_AND_SIN, STORED))

#define ROPE(pairing)                                                                          \
    struct token token = heads(loop);                                                          \
    turn_strip(pairing, POSENC_F32, PLAIN, 4, &token, 0, 0)
LOOP(rope_half, given, plain, ROPE(HALF))
LOOP(rope_interleaved, given, plain, ROPE(INTERLEAVED))

LOOP(learned_add, given, plain, struct posenc_learned_args args = one_token(loop);
     add_rows(POSENC_F32, ADDED, &args))

#define ALIBI(how)                                                                             \
    alibi_row(POSENC_F32, how, false, loop->scale, loop->query, vf_lanes() * loop->vectors,    \
              loop->scale, loop->x, loop->out)
/* Before the query: later keys are all alike. */
#define CAUSAL(how)                                                                            \
    alibi_side(POSENC_F32, how, loop->scale, -loop->query, 0, vf_lanes() * loop->vectors,      \
               loop->scale, loop->x, loop->out)
LOOP(alibi, given, plain, ALIBI(STORED))
LOOP(alibi, given, causal, CAUSAL(STORED))
LOOP(alibi_add, given, plain, ALIBI(SUMMED))
LOOP(alibi_add, given, causal, CAUSAL(SUMMED))

#define T5(how)                                                                                \
    put_biases(POSENC_F32, how, ALONG, loop->table, loop->scale, loop->x, loop->out, 0,        \
               vf_lanes() * loop->vectors)
LOOP(t5_bias, given, plain, T5(STORED))
LOOP(t5_bias_add, given, plain, T5(SUMMED))
#undef LOOP
