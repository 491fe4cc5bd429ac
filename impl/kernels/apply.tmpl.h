/*
 * Kernels rope_half, rope_interleaved and learned_add: activations, row by row.
 *
 *     y0 = x0 cos - x1 sin,   y1 = x1 cos + x0 sin
 *
 * In this order: x1 sin and x0 sin are rounded, the other product is fused, in both pairings,
 * so that they agree to the bit under the permutation that relates them.  The transpose negates
 * sin, and the interleaved form adds x1 (-sin) in its even lanes: both are exact.
 *
 * Bound by memory.  Heads are taken in strips of channels whose angles stay in registers while
 * the heads pass.  What comes from DRAM and has more than one strip is taken in the order of
 * memory instead: strips make the hardware's prefetchers lose the thread (half the speed on
 * Zen 4).  Software prefetch was tried: there it cost up to a third in the caches and a tenth
 * in DRAM.
 */
#ifndef POSENC_APPLY_TMPL_H
#define POSENC_APPLY_TMPL_H

#include "../simd/simd.h"
#include "common.h"

enum pairing { HALF, INTERLEAVED };

/* Activations of more bytes than this are taken to come from DRAM. */
enum { IN_CACHE = 16 << 20 };

/* One token of a call: its angles and its heads. */
struct token {
    int64_t pairs, heads;
    float sign; /* of the sine: -1 for the transpose */
    const float *cosine, *sine;
    const float *x;
    float *out;
    int64_t x_stride, out_stride; /* between heads */
};

/* Pairs that one vector step rotates.  Half: a vector of x0 and one of x1.  Interleaved: one
 * vector that holds half as many pairs (with a single lane there is no such vector, and both go
 * alike). */
SIMD_INLINE int64_t step_pairs(enum pairing pairing)
{
    return pairing == INTERLEAVED && vf_lanes() > 1 ? vf_lanes() / 2 : vf_lanes();
}

/* The angles of n pairs from i on, as rotate_pairs wants them: c and s, or c c and -s s by
 * turns. */
SIMD_INLINE void load_angles(enum pairing pairing, const struct token *token, int64_t i,
                             int64_t n, vf *c, vf *s)
{
    bool whole = n == vf_lanes();

    *c = whole ? vf_load(token->cosine + i) : vf_load_n(token->cosine + i, n);
    *s = whole ? vf_load(token->sine + i) : vf_load_n(token->sine + i, n);
    *s = vf_mul(*s, vf_set1(token->sign));
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        *c = vf_zip_lo(*c, *c);
        *s = vf_zip_lo(vf_mul(*s, vf_set1(-1.0f)), *s);
    }
}

/* n pairs of one head from pair i on. */
SIMD_INLINE void rotate_pairs(enum pairing pairing, int64_t pairs, int64_t i, int64_t n, vf c,
                              vf s, const float *x, float *out)
{
    bool whole = n == step_pairs(pairing);

    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        vf both = vf_keep(whole ? vf_load(x + 2 * i) : vf_load_n(x + 2 * i, 2 * n));
        both = vf_fma(both, c, vf_mul(vf_swap_pairs(both), s));
        if (whole)
            vf_store(out + 2 * i, both);
        else
            vf_store_n(out + 2 * i, both, 2 * n);
        return;
    }
    int64_t first = pairing == INTERLEAVED ? 2 * i : i;
    int64_t second = pairing == INTERLEAVED ? 2 * i + 1 : pairs + i;
    vf x0 = vf_keep(whole ? vf_load(x + first) : vf_load_n(x + first, n));
    vf x1 = vf_keep(whole ? vf_load(x + second) : vf_load_n(x + second, n));
    vf y0 = vf_cross(x0, c, x1, s), y1 = vf_fma(x1, c, vf_mul(x0, s));
    if (whole) {
        vf_store(out + first, y0);
        vf_store(out + second, y1);
    } else {
        vf_store_n(out + first, y0, n);
        vf_store_n(out + second, y1, n);
    }
}

/* One to four steps of pairs from i on, the last one of n pairs, whose angles stay in registers
 * while the heads pass. */
SIMD_INLINE void rotate_strip(enum pairing pairing, const struct token *token, int64_t i,
                              int steps, int64_t n)
{
    /* copies: for all the compiler knows, a store through out could change the token */
    int64_t w = step_pairs(pairing), pairs = token->pairs, heads = token->heads;
    int64_t x_stride = token->x_stride, out_stride = token->out_stride;
    const float *x = token->x;
    float *out = token->out;
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    load_angles(pairing, token, i, steps > 1 ? w : n, &c0, &s0);
    c1 = c2 = c3 = c0;
    s1 = s2 = s3 = s0;
    if (steps > 1)
        load_angles(pairing, token, i + w, steps > 2 ? w : n, &c1, &s1);
    if (steps > 2)
        load_angles(pairing, token, i + 2 * w, steps > 3 ? w : n, &c2, &s2);
    if (steps > 3)
        load_angles(pairing, token, i + 3 * w, n, &c3, &s3);
    for (int64_t h = 0; h < heads; h++, x += x_stride, out += out_stride) {
        rotate_pairs(pairing, pairs, i, steps > 1 ? w : n, c0, s0, x, out);
        if (steps > 1)
            rotate_pairs(pairing, pairs, i + w, steps > 2 ? w : n, c1, s1, x, out);
        if (steps > 2)
            rotate_pairs(pairing, pairs, i + 2 * w, steps > 3 ? w : n, c2, s2, x, out);
        if (steps > 3)
            rotate_pairs(pairing, pairs, i + 3 * w, n, c3, s3, x, out);
    }
}

/* Each strip is a function of its own: in one, gcc runs out of registers for the loops. */
#define STRIP(name, pairing, steps)                                                            \
    static __attribute__((noinline)) void name(const struct token *token, int64_t i,           \
                                               int64_t n)                                      \
    {                                                                                          \
        if (n == step_pairs(pairing))                                                          \
            rotate_strip(pairing, token, i, steps, step_pairs(pairing));                       \
        else                                                                                   \
            rotate_strip(pairing, token, i, steps, n);                                         \
    }
STRIP(half_1, HALF, 1)
STRIP(half_2, HALF, 2)
STRIP(half_3, HALF, 3)
STRIP(half_4, HALF, 4)
STRIP(interleaved_1, INTERLEAVED, 1)
STRIP(interleaved_2, INTERLEAVED, 2)
STRIP(interleaved_3, INTERLEAVED, 3)
STRIP(interleaved_4, INTERLEAVED, 4)
#undef STRIP

typedef void strip(const struct token *token, int64_t i, int64_t n);

static void rotate_in_strips(enum pairing pairing, const struct token *token)
{
    static strip *const strips[2][4] = { { half_1, half_2, half_3, half_4 },
                                         { interleaved_1, interleaved_2, interleaved_3,
                                           interleaved_4 } };
    int64_t w = step_pairs(pairing);

    for (int64_t i = 0; i < token->pairs; i += 4 * w) {
        int64_t left = token->pairs - i, steps = left < 4 * w ? (left + w - 1) / w : 4;
        int64_t n = left - (steps - 1) * w;
        strips[pairing][steps - 1](token, i, n < w ? n : w);
    }
}

static void rotate_in_order(enum pairing pairing, const struct token *token)
{
    struct token head = *token;

    head.heads = 1;
    for (int64_t h = 0; h < token->heads; h++) {
        rotate_in_strips(pairing, &head);
        head.x += token->x_stride;
        head.out += token->out_stride;
    }
}

/* The channels past rotary_dim, out of place. */
static void copy_rest(const struct token *token, int64_t head_dim)
{
    int64_t rotary_dim = 2 * token->pairs;

    for (int64_t h = 0; h < token->heads; h++)
        memcpy(token->out + h * token->out_stride + rotary_dim,
               token->x + h * token->x_stride + rotary_dim,
               (size_t)(head_dim - rotary_dim) * sizeof *token->x);
}

static void rope(const struct posenc_rope_args *args, enum pairing pairing)
{
    const int64_t *shape = args->x.shape;
    bool strips =
        args->cos.shape[1] <= 4 * step_pairs(pairing) ||
        shape[0] * shape[1] * shape[2] * shape[3] <= IN_CACHE / (int64_t)sizeof(float);
    struct token token = { .pairs = args->cos.shape[1],
                           .heads = shape[2],
                           .sign = args->transpose ? -1.0f : 1.0f,
                           .x_stride = args->x.stride[2],
                           .out_stride = args->out.stride[2] };

    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0; t < shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            token.cosine = (const float *)args->cos.data + id * args->cos.stride[0];
            token.sine = (const float *)args->sin.data + id * args->sin.stride[0];
            token.x = posenc_row(&args->x, b, t, 0);
            token.out = posenc_row(&args->out, b, t, 0);
            if (strips)
                rotate_in_strips(pairing, &token);
            else
                rotate_in_order(pairing, &token);
            if (token.x != token.out && shape[3] > 2 * token.pairs)
                copy_rest(&token, shape[3]);
        }
}

static enum posenc_status rope_half(const struct posenc_rope_args *args)
{
    rope(args, HALF);
    return POSENC_OK;
}

static enum posenc_status rope_interleaved(const struct posenc_rope_args *args)
{
    rope(args, INTERLEAVED);
    return POSENC_OK;
}

static enum posenc_status learned_add(const struct posenc_learned_args *args)
{
    int64_t dim = args->out.shape[3];
    vf scale = vf_set1(args->x_scale);

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t), i = 0;
            const float *x = posenc_row(&args->x, b, t, 0);
            const float *row = (const float *)args->table.data + id * args->table.stride[0];
            float *out = posenc_row(&args->out, b, t, 0);

            for (; i + vf_lanes() <= dim; i += vf_lanes()) {
                vf_store(out + i, vf_fma(vf_load(x + i), scale, vf_load(row + i)));
            }
            if (i < dim) {
                vf sum = vf_fma(vf_load_n(x + i, dim - i), scale, vf_load_n(row + i, dim - i));
                vf_store_n(out + i, sum, dim - i);
            }
        }
    return POSENC_OK;
}

#endif
