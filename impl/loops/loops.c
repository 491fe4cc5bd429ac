/*
 * The inner loops of the templates, each in a function of its own: what llvm-mca is given and
 * what measure.c times.  The loops are those of impl/kernels, called as the kernels call them with
 * whole vectors of positions from zero up; none is written again here.
 *
 * POSENC_SIMD, POSENC_ISA and flags are those that impl/meson.build has for a backend.
 */
#include "impl/kernels/bias.c"
#include "impl/kernels/learned.c"
#include "impl/kernels/rope.c"
#include "impl/kernels/table.c"
#include "loops.h"

int64_t lanes_of_loops(void) { return vf_lanes(); }

/* Rows of one vector of pairs. */
static struct run rows(const struct loop *loop)
{
    return (struct run){
        .freqs = loop->freqs,
        .count = loop->turns,
        .scale = (double)loop->scale,
        .dim = 2 * vf_lanes(),
        .cosine_at = vf_lanes(),
        .pairs = vf_lanes(),
        .out = loop->out,
        .sine = loop->sines,
        .x = loop->x,
        .x_scale = loop->scale,
        .out_stride = loop->stride,
        .sine_stride = loop->stride,
        .x_stride = loop->stride,
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

/* flatten: a kernel has nothing to call in its loop but mend_small, and neither has this. */
#define LOOP(kernel, profile, variant, body)                                                   \
    __attribute__((flatten)) void LOOP_NAME(kernel, profile, variant)(const struct loop *loop) \
    {                                                                                          \
        body;                                                                                  \
    }

#define EXACT(sink, how)                                                                       \
    struct run run = rows(loop);                                                               \
    run.out_stride = run.sine_stride = run.x_stride = loop->stride / POSENC_GROUP;             \
    for (int64_t row = 0; row < run.count * POSENC_GROUP; row += POSENC_GROUP)                 \
    group_rows(&run, sink, how, false, true, row, row, row + POSENC_GROUP, 0, 0, vf_lanes(),   \
               vf_set1(loop->limit), vd_set1((double)loop->scale),                             \
               (const struct anchors *)loop->anchors, 0)
#define HF_F32(sink, how)                                                                      \
    struct run run = rows(loop);                                                               \
    run_elements(&run, sink, how, POSENC_HF_F32, false)
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
     KERNEL(learned_add)(&args))

#define ALIBI(add, causal)                                                                     \
    alibi_row(POSENC_F32, add, causal, loop->scale, loop->query, vf_lanes() * loop->vectors,   \
              loop->scale, loop->x, loop->out)
LOOP(alibi, given, plain, ALIBI(false, false))
LOOP(alibi, given, causal, ALIBI(false, true))
LOOP(alibi_add, given, plain, ALIBI(true, false))
LOOP(alibi_add, given, causal, ALIBI(true, true))

#define T5(add)                                                                                \
    put_line(POSENC_F32, add, loop->table, loop->scale, loop->x, loop->out, 0,                 \
             vf_lanes() * loop->vectors)
LOOP(t5_bias, given, plain, T5(false))
LOOP(t5_bias_add, given, plain, T5(true))
#undef LOOP
