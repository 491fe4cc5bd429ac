/*
 * Rotation of one or two vector steps of a head: the innermost functions of rope.c.
 *
 * Terms:
 *   step      the pairs that one vector operation rotates (step_pairs)
 *   kind      how x is loaded and out is stored (enum strip_kind)
 *   even_odd  two vectors of bf16 at once, as one vector of even and one of odd elements (vf_load_bf16_pairs)
 *
 * Arguments `pairing`, `type`, `kind`, `steps` are compile-time constants after inlining. `pairs` counts those of a
 * whole head, and `i` is the first pair of the step. Vectors are passed one by one, as they cannot be members of a
 * struct (simd.h): c and s are the cosines and sines of the step.
 */
#ifndef POSENC_KERNELS_ROPE_PAIRS_H
#define POSENC_KERNELS_ROPE_PAIRS_H

#include "store_modes.h"

/* The channels of pair i: i and i + pairs, or 2 i and 2 i + 1. */
enum pairing { HALF, INTERLEAVED };

/* How a strip loads x and stores out. */
enum strip_kind {
    STRIP_CACHED,   /* f32 angles, whole steps */
    STRIP_PREFETCH, /* the same, x prefetched from DRAM */
    STRIP_STREAM,   /* the same, and streaming stores to another array, f32 */
    STRIP_ANY       /* angles of any dtype, overlapping or partial steps */
};

/* A token and its heads; or several consecutive tokens, whose cosines and sines follow one another in the tables. */
struct rope_token {
    enum posenc_dtype angles; /* dtype of cosine and sine */
    float sign;               /* factor of the sine: 1, or -1 for the transpose */
    int64_t pairs, heads;
    const char *x; /* first rotated channel of head 0 */
    const char *cosine;
    char *out;
    const char *sine;
    int64_t x_stride, out_stride; /* bytes from head to head */
    int64_t tokens_after;         /* further tokens */
    int64_t x_token_stride, out_token_stride, cosine_token_stride,
        sine_token_stride; /* bytes from token to token */
    enum strip_kind kind;
};

/* Addresses of a strip's first channel and angle, for the current head. All others are at constant distances. */
struct strip_cursor {
    const char *x, *cosine, *sine;
    char *out;
};

/* Bytes from the end of a token's last head to the next token. They are computed before the loops, so that they are
 * in registers: a load from the stack can wait for stores whose addresses look alike. */
struct token_step {
    int64_t x, out, cosine, sine;
};

/* Returns the addresses of pair i of head 0. */
SIMD_INLINE struct strip_cursor strip_cursor_at(enum pairing pairing, enum posenc_dtype type,
                                                enum posenc_dtype angles,
                                                const struct rope_token *token, int64_t i)
{
    const int64_t at = (pairing == INTERLEAVED ? 2 * i : i) * (int64_t)posenc_dtype_size(type);
    const int64_t angle = i * (int64_t)posenc_dtype_size(angles);

    return (struct strip_cursor){ token->x + at, token->cosine + angle, token->sine + angle,
                                  token->out + at };
}

SIMD_INLINE struct token_step token_step_of(const struct rope_token *token)
{
    return (struct token_step){ token->x_token_stride - token->heads * token->x_stride,
                                token->out_token_stride - token->heads * token->out_stride,
                                token->cosine_token_stride, token->sine_token_stride };
}

/* Moves from the end of a token to the next token. */
SIMD_INLINE void strip_cursor_advance(struct strip_cursor *cursor,
                                      const struct token_step *step)
{
    cursor->x += step->x;
    cursor->out += step->out;
    cursor->cosine += step->cosine;
    cursor->sine += step->sine;
}

/* Returns the number of pairs that one step rotates. HALF: a vector of x0 and one of x1. INTERLEAVED: one vector,
 * hence half as many pairs; but a single lane holds no pair, and is treated as HALF. */
SIMD_INLINE int64_t step_pairs(enum pairing pairing)
{
    return pairing == INTERLEAVED && vf_lanes() > 1 ? vf_lanes() / 2 : vf_lanes();
}

/* Loads the angles of n pairs from i on, as compute_pairs() needs them. HALF: cosines and sines. INTERLEAVED: each
 * cosine twice, and each sine as -s, s. */
SIMD_INLINE void load_angles(enum pairing pairing, enum posenc_dtype type,
                             const struct strip_cursor *cursor, float sign, int64_t i,
                             int64_t n, vf *c, vf *s)
{
    if (pairing == HALF || vf_lanes() == 1) {
        *c = load_as(type, cursor->cosine, i, n);
        *s = vf_mul(load_as(type, cursor->sine, i, n), vf_set1(sign));
        return;
    }
    if (type == POSENC_DTYPE_F32 && n == step_pairs(INTERLEAVED)) {
        *c = vf_load_twice((const float *)(const void *)cursor->cosine + i);
        *s = vf_load_twice((const float *)(const void *)cursor->sine + i);
    } else {
        *c = load_as(type, cursor->cosine, i, n);
        *s = load_as(type, cursor->sine, i, n);
        *c = vf_zip_lo(*c, *c);
        *s = vf_zip_lo(*s, *s);
    }
    *s = vf_mul(*s, vf_zip_lo(vf_set1(-sign), vf_set1(sign)));
}

/* Returns the number of bytes from x0 to x1 of a pair in HALF; 0 in INTERLEAVED. */
SIMD_INLINE int64_t second_half_offset(enum pairing pairing, enum posenc_dtype type,
                                       int64_t pairs)
{
    return pairing == HALF ? pairs * (int64_t)posenc_dtype_size(type) : 0;
}

/* Prefetches x, one cache line at a time. All lines of a head at once would cost time in the L2 cache. */
enum { PREFETCH_BYTES = 2048 };
SIMD_INLINE void prefetch_x(enum posenc_dtype type, const char *x, int64_t i)
{
    const int64_t at = i * (int64_t)posenc_dtype_size(type);

    if (at % 64 == 0)
        prefetch_in_order(x, at + PREFETCH_BYTES);
}

/* Loads n elements of x from element i on. */
SIMD_INLINE vf load_x(enum posenc_dtype type, enum strip_kind kind, const char *x, int64_t i,
                      int64_t n)
{
    if (kind == STRIP_PREFETCH || kind == STRIP_STREAM)
        prefetch_x(type, x, i);
    return vf_pin_here(load_as(type, x, i, n));
}

/* Stores n elements of out from element i on. */
SIMD_INLINE void store_out(enum posenc_dtype type, enum strip_kind kind, char *out, int64_t i,
                           vf v, int64_t n)
{
    if (kind == STRIP_STREAM)
        stream_as(type, out, i, v);
    else
        store_as(type, out, i, v, n);
}

/* Rotates n pairs from pair i on of the head at x. Returns y0 and y1, or all of them interleaved in y0. */
SIMD_INLINE void compute_pairs(enum pairing pairing, enum posenc_dtype type,
                               enum strip_kind kind, int64_t pairs, int64_t i, int64_t n, vf c,
                               vf s, const char *x, vf *y0, vf *y1)
{
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        int64_t lanes = n == step_pairs(pairing) ? vf_lanes() : 2 * n;
        vf both = load_x(type, kind, x, 2 * i, lanes);
        *y0 = *y1 = vf_fma(both, c, vf_mul(vf_swap_pairs(both), s));
        return;
    }
    const char *other = x + second_half_offset(pairing, type, pairs);
    vf x0 = load_x(type, kind, x, pairing == INTERLEAVED ? 2 * i : i, n);
    vf x1 = load_x(type, kind, other, pairing == INTERLEAVED ? 2 * i + 1 : i, n);
    *y0 = vf_cross(x0, c, x1, s);
    *y1 = vf_fma(x1, c, vf_mul(x0, s));
}

/* Stores what compute_pairs() returned. */
SIMD_INLINE void write_pairs(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                             int64_t pairs, int64_t i, int64_t n, vf y0, vf y1, char *out)
{
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        store_out(type, kind, out, 2 * i, y0, n == step_pairs(pairing) ? vf_lanes() : 2 * n);
        return;
    }
    char *other = out + second_half_offset(pairing, type, pairs);

    store_out(type, kind, out, pairing == INTERLEAVED ? 2 * i : i, y0, n);
    store_out(type, kind, other, pairing == INTERLEAVED ? 2 * i + 1 : i, y1, n);
}

SIMD_INLINE void rotate_pairs(enum pairing pairing, enum posenc_dtype type,
                              enum strip_kind kind, int64_t pairs, int64_t i, int64_t n, vf c,
                              vf s, const char *x, char *out)
{
    vf y0, y1;

    compute_pairs(pairing, type, kind, pairs, i, n, c, s, x, &y0, &y1);
    write_pairs(pairing, type, kind, pairs, i, n, y0, y1, out);
}

/* Rotates two steps, at pairs i and j. Both are loaded before either is stored, since the second may overlap the
 * first, and since alternating loads and stores are slower in the L2 cache. */
SIMD_INLINE void rotate_two(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                            int64_t pairs, int64_t i, int64_t j, int64_t n, vf c, vf s, vf d,
                            vf t, const char *x, char *out)
{
    vf y0, y1, z0, z1;

    compute_pairs(pairing, type, kind, pairs, i, n, c, s, x, &y0, &y1);
    compute_pairs(pairing, type, kind, pairs, j, n, d, t, x, &z0, &z1);
    write_pairs(pairing, type, kind, pairs, i, n, y0, y1, out);
    write_pairs(pairing, type, kind, pairs, j, n, z0, z1, out);
}

/* Loads the angles of two vectors of pairs (HALF) or of one (INTERLEAVED), even and odd elements apart. */
SIMD_INLINE void load_even_odd_angles(enum pairing pairing, const struct strip_cursor *cursor,
                                      float sine_sign, int64_t i, vf *c0, vf *c1, vf *s0,
                                      vf *s1)
{
    const float *cosine = (const float *)(const void *)cursor->cosine + i,
                *sine = (const float *)(const void *)cursor->sine + i;
    const vf sign = vf_set1(sine_sign);

    *c0 = *c1 = vf_load(cosine);
    *s0 = *s1 = vf_load(sine);
    if (pairing == HALF) {
        vf_load2_n(cosine, vf_lanes(), c0, c1);
        vf_load2_n(sine, vf_lanes(), s0, s1);
    }
    *s0 = vf_mul(*s0, sign);
    *s1 = vf_mul(*s1, sign);
}

/* Rotates these pairs of one head. */
SIMD_INLINE void rotate_even_odd(enum pairing pairing, enum strip_kind kind, int64_t pairs,
                                 int64_t i, vf c0, vf c1, vf s0, vf s1, const char *x,
                                 char *out)
{
    const uint16_t *from = (const uint16_t *)x;
    uint16_t *to = (uint16_t *)out;
    vf x0, x1, z0, z1;

    if (kind == STRIP_PREFETCH)
        prefetch_x(POSENC_DTYPE_BF16, x, pairing == INTERLEAVED ? 2 * i : i);
    if (kind == STRIP_PREFETCH && pairing == HALF)
        prefetch_x(POSENC_DTYPE_BF16, x + second_half_offset(pairing, POSENC_DTYPE_BF16, pairs),
                   i);
    if (pairing == INTERLEAVED) {
        vf_load_bf16_pairs(from + 2 * i, &x0, &x1);
        vf_store_bf16_pairs(to + 2 * i, vf_cross(x0, c0, x1, s0),
                            vf_fma(x1, c0, vf_mul(x0, s0)));
        return;
    }
    vf_load_bf16_pairs(from + i, &x0, &z0);
    vf_load_bf16_pairs(from + pairs + i, &x1, &z1);
    vf_store_bf16_pairs(to + i, vf_cross(x0, c0, x1, s0), vf_cross(z0, c1, z1, s1));
    vf_store_bf16_pairs(to + pairs + i, vf_fma(x1, c0, vf_mul(x0, s0)),
                        vf_fma(z1, c1, vf_mul(z0, s1)));
}

#endif
