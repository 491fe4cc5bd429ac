/*
 * Strips: the inner loops of rope.c. A strip is up to eight vector steps of pairs of each head of a token. Its cosines
 * and sines are loaded to registers once, and the strip then passes over all heads of the token, and over the tokens
 * after it.
 */
#ifndef POSENC_KERNELS_ROPE_STRIPS_H
#define POSENC_KERNELS_ROPE_STRIPS_H

#include "rope_pairs.h"

/* Rotates two or four steps of whole vectors of bf16, over all heads. */
SIMD_INLINE void rotate_even_odd_strip(enum pairing pairing, enum strip_kind kind,
                                       const struct rope_token *token, int64_t i, int steps)
{
    /* Copies: as far as the compiler knows, a store through `out` may change the token. */
    const int64_t pairs = token->pairs, heads = token->heads, next = 2 * step_pairs(pairing);
    const int64_t x_stride = token->x_stride, out_stride = token->out_stride;
    const float sign = token->sign;
    const struct token_step step = token_step_of(token);
    struct strip_cursor cursor =
        strip_cursor_at(pairing, POSENC_DTYPE_BF16, POSENC_DTYPE_F32, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    for (int64_t tokens_after = token->tokens_after; tokens_after >= 0;
         tokens_after--, strip_cursor_advance(&cursor, &step)) {
        load_even_odd_angles(pairing, &cursor, sign, 0, &c0, &c1, &s0, &s1);
        c2 = c0;
        c3 = c1;
        s2 = s0;
        s3 = s1;
        if (steps > 2)
            load_even_odd_angles(pairing, &cursor, sign, next, &c2, &c3, &s2, &s3);
        for (int64_t h = 0; h < heads; h++, cursor.x += x_stride, cursor.out += out_stride) {
            rotate_even_odd(pairing, kind, pairs, 0, c0, c1, s0, s1, cursor.x, cursor.out);
            if (steps > 2)
                rotate_even_odd(pairing, kind, pairs, next, c2, c3, s2, s3, cursor.x,
                                cursor.out);
        }
    }
}

/* Rotates eight steps of interleaved pairs of bf16, over all heads; see rotate_eight(). */
SIMD_INLINE void rotate_even_odd_eight(enum strip_kind kind, const struct rope_token *token,
                                       int64_t i)
{
    const enum pairing pairing = INTERLEAVED;
    const int64_t pairs = token->pairs, heads = token->heads, w = vf_lanes();
    const int64_t x_stride = token->x_stride, out_stride = token->out_stride;
    const float sign = token->sign;
    const struct token_step step = token_step_of(token);
    struct strip_cursor cursor =
        strip_cursor_at(pairing, POSENC_DTYPE_BF16, POSENC_DTYPE_F32, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3, same, too;

    for (int64_t tokens_after = token->tokens_after; tokens_after >= 0;
         tokens_after--, strip_cursor_advance(&cursor, &step)) {
        load_even_odd_angles(pairing, &cursor, sign, 0, &c0, &same, &s0, &too);
        load_even_odd_angles(pairing, &cursor, sign, w, &c1, &same, &s1, &too);
        load_even_odd_angles(pairing, &cursor, sign, 2 * w, &c2, &same, &s2, &too);
        load_even_odd_angles(pairing, &cursor, sign, 3 * w, &c3, &same, &s3, &too);
        for (int64_t h = 0; h < heads; h++, cursor.x += x_stride, cursor.out += out_stride) {
            rotate_even_odd(pairing, kind, pairs, 0, c0, c0, s0, s0, cursor.x, cursor.out);
            rotate_even_odd(pairing, kind, pairs, w, c1, c1, s1, s1, cursor.x, cursor.out);
            rotate_even_odd(pairing, kind, pairs, 2 * w, c2, c2, s2, s2, cursor.x, cursor.out);
            rotate_even_odd(pairing, kind, pairs, 3 * w, c3, c3, s3, s3, cursor.x, cursor.out);
        }
    }
}

/* Rotates one to four steps of n pairs, over all heads: consecutive steps from pair i on, but the last one at pair
 * `last`, where it may overlap the step before. */
SIMD_INLINE void rotate_strip(enum pairing pairing, enum posenc_dtype type,
                              enum strip_kind kind, enum posenc_dtype angles,
                              const struct rope_token *token, int64_t i, int steps,
                              int64_t last, int64_t n)
{
    const int64_t pairs = token->pairs, heads = token->heads, before = (steps - 2) * n;
    const int64_t x_stride = token->x_stride, out_stride = token->out_stride;
    const float sign = token->sign;
    const struct token_step step = token_step_of(token);
    struct strip_cursor cursor = strip_cursor_at(pairing, type, angles, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    last -= i;
    for (int64_t tokens_after = token->tokens_after; tokens_after >= 0;
         tokens_after--, strip_cursor_advance(&cursor, &step)) {
        load_angles(pairing, angles, &cursor, sign, last, n, &c3, &s3);
        c0 = c1 = c2 = c3;
        s0 = s1 = s2 = s3;
        if (steps > 1)
            load_angles(pairing, angles, &cursor, sign, before, n, &c2, &s2);
        if (steps > 2)
            load_angles(pairing, angles, &cursor, sign, 0, n, &c0, &s0);
        if (steps > 3)
            load_angles(pairing, angles, &cursor, sign, n, n, &c1, &s1);
        for (int64_t h = 0; h < heads; h++, cursor.x += x_stride, cursor.out += out_stride) {
            if (steps > 3)
                rotate_two(pairing, type, kind, pairs, 0, n, n, c0, s0, c1, s1, cursor.x,
                           cursor.out);
            else if (steps > 2)
                rotate_pairs(pairing, type, kind, pairs, 0, n, c0, s0, cursor.x, cursor.out);
            if (steps > 1)
                rotate_two(pairing, type, kind, pairs, before, last, n, c2, s2, c3, s3,
                           cursor.x, cursor.out);
            else
                rotate_pairs(pairing, type, kind, pairs, last, n, c3, s3, cursor.x, cursor.out);
        }
    }
}

/* Rotates eight steps of interleaved pairs, over all heads. A head of 128 channels has as many with 16 lanes; two
 * strips of four steps would pass over all heads twice. */
SIMD_INLINE void rotate_eight(enum posenc_dtype type, enum strip_kind kind,
                              const struct rope_token *token, int64_t i)
{
    const enum pairing pairing = INTERLEAVED;
    const enum posenc_dtype angles = POSENC_DTYPE_F32;
    const int64_t pairs = token->pairs, heads = token->heads, n = step_pairs(pairing);
    const int64_t x_stride = token->x_stride, out_stride = token->out_stride;
    const float sign = token->sign;
    const struct token_step step = token_step_of(token);
    struct strip_cursor cursor = strip_cursor_at(pairing, type, angles, token, i);
    vf c0, c1, c2, c3, c4, c5, c6, c7, s0, s1, s2, s3, s4, s5, s6, s7;

    for (int64_t tokens_after = token->tokens_after; tokens_after >= 0;
         tokens_after--, strip_cursor_advance(&cursor, &step)) {
        load_angles(pairing, angles, &cursor, sign, 0, n, &c0, &s0);
        load_angles(pairing, angles, &cursor, sign, n, n, &c1, &s1);
        load_angles(pairing, angles, &cursor, sign, 2 * n, n, &c2, &s2);
        load_angles(pairing, angles, &cursor, sign, 3 * n, n, &c3, &s3);
        load_angles(pairing, angles, &cursor, sign, 4 * n, n, &c4, &s4);
        load_angles(pairing, angles, &cursor, sign, 5 * n, n, &c5, &s5);
        load_angles(pairing, angles, &cursor, sign, 6 * n, n, &c6, &s6);
        load_angles(pairing, angles, &cursor, sign, 7 * n, n, &c7, &s7);
        for (int64_t h = 0; h < heads; h++, cursor.x += x_stride, cursor.out += out_stride) {
            rotate_two(pairing, type, kind, pairs, 0, n, n, c0, s0, c1, s1, cursor.x,
                       cursor.out);
            rotate_two(pairing, type, kind, pairs, 2 * n, 3 * n, n, c2, s2, c3, s3, cursor.x,
                       cursor.out);
            rotate_two(pairing, type, kind, pairs, 4 * n, 5 * n, n, c4, s4, c5, s5, cursor.x,
                       cursor.out);
            rotate_two(pairing, type, kind, pairs, 6 * n, 7 * n, n, c6, s6, c7, s7, cursor.x,
                       cursor.out);
        }
    }
}

/* Rotates one to four whole steps; for steps == 0, a head that has fewer pairs than one step. Eight steps only for
 * interleaved pairs in f32 angles. */
enum { EIGHT_STEPS = 8 };
SIMD_INLINE void rotate_steps(enum pairing pairing, enum posenc_dtype type,
                              enum strip_kind kind, int steps, const struct rope_token *token,
                              int64_t i, int64_t last)
{
    const int64_t n = steps > 0 ? step_pairs(pairing) : token->pairs;
    const bool even_odd =
        kind != STRIP_ANY && type == POSENC_DTYPE_BF16 && vf_prefers_bf16_pairs();

    if (kind != STRIP_ANY)
        last = steps > 0 ? i + (steps - 1) * n : i;
    if (steps == EIGHT_STEPS && even_odd)
        rotate_even_odd_eight(kind, token, i);
    else if (steps == EIGHT_STEPS)
        rotate_eight(type, kind, token, i);
    else if (even_odd && steps > 0 && steps % 2 == 0)
        rotate_even_odd_strip(pairing, kind, token, i, steps);
    else
        rotate_strip(pairing, type, kind, kind == STRIP_ANY ? token->angles : POSENC_DTYPE_F32,
                     token, i, steps > 0 ? steps : 1, last, n);
}

/* Each combination is a function, HALF_F32_STRIP_CACHED_2 for example: in one body gcc runs out of registers. */
typedef void strip_function(const struct rope_token *token, int64_t i, int64_t last);
#define STRIP(pairing, type, kind, steps)                                                      \
    static __attribute__((noinline)) void pairing##_##type##_##kind##_##steps(                 \
        const struct rope_token *token, int64_t i, int64_t last)                               \
    {                                                                                          \
        rotate_steps(pairing, POSENC_DTYPE_##type, kind, steps, token, i, last);               \
    }
#define STRIPS(pairing, type, kind)                                                            \
    STRIP(pairing, type, kind, 0)                                                              \
    STRIP(pairing, type, kind, 1)                                                              \
    STRIP(pairing, type, kind, 2)                                                              \
    STRIP(pairing, type, kind, 3)                                                              \
    STRIP(pairing, type, kind, 4)                                                              \
    static strip_function *const pairing##_##type##_##kind[] = {                               \
        pairing##_##type##_##kind##_0, pairing##_##type##_##kind##_1,                          \
        pairing##_##type##_##kind##_2, pairing##_##type##_##kind##_3,                          \
        pairing##_##type##_##kind##_4,                                                         \
    };
#define KINDS(pairing, type)                                                                   \
    STRIPS(pairing, type, STRIP_CACHED)                                                        \
    STRIPS(pairing, type, STRIP_PREFETCH)                                                      \
    STRIPS(pairing, type, STRIP_ANY)
#ifndef POSENC_F32_ISA
KINDS(HALF, F32)
STRIPS(HALF, F32, STRIP_STREAM)
KINDS(HALF, F16)
KINDS(INTERLEAVED, F32)
STRIPS(INTERLEAVED, F32, STRIP_STREAM)
KINDS(INTERLEAVED, F16)
STRIP(INTERLEAVED, F32, STRIP_CACHED, EIGHT_STEPS)
STRIP(INTERLEAVED, F32, STRIP_PREFETCH, EIGHT_STEPS)
STRIP(INTERLEAVED, F32, STRIP_STREAM, EIGHT_STEPS)
STRIP(INTERLEAVED, F16, STRIP_CACHED, EIGHT_STEPS)
STRIP(INTERLEAVED, F16, STRIP_PREFETCH, EIGHT_STEPS)
#endif
KINDS(HALF, BF16)
KINDS(INTERLEAVED, BF16)
STRIP(INTERLEAVED, BF16, STRIP_CACHED, EIGHT_STEPS)
STRIP(INTERLEAVED, BF16, STRIP_PREFETCH, EIGHT_STEPS)
#undef KINDS
#undef STRIPS
#undef STRIP

/* The functions of one pairing and dtype: kinds[kind][steps], and eight[kind] for eight steps or NULL. */
struct strip_table {
    strip_function *const *kinds[STRIP_ANY + 1], *eight[STRIP_ANY + 1];
};
#define HALF_STRIPS(type, past)                                                                \
    {                                                                                          \
        .kinds = {                                                                             \
            HALF_##type##_STRIP_CACHED,                                                        \
            HALF_##type##_STRIP_PREFETCH,                                                      \
            past,                                                                              \
            HALF_##type##_STRIP_ANY                                                            \
        }                                                                                      \
    }
#define INTERLEAVED_STRIPS(type, past, past_eight)                                             \
    {                                                                                          \
        .kinds = { INTERLEAVED_##type##_STRIP_CACHED, INTERLEAVED_##type##_STRIP_PREFETCH,     \
                   past, INTERLEAVED_##type##_STRIP_ANY },                                     \
        .eight = {                                                                             \
            INTERLEAVED_##type##_STRIP_CACHED_EIGHT_STEPS,                                     \
            INTERLEAVED_##type##_STRIP_PREFETCH_EIGHT_STEPS,                                   \
            past_eight                                                                         \
        }                                                                                      \
    }
static const struct strip_table strip_tables[][POSENC_DTYPE_BF16 + 1] = {
#ifndef POSENC_F32_ISA
    [HALF][POSENC_DTYPE_F32] = HALF_STRIPS(F32, HALF_F32_STRIP_STREAM),
    [HALF][POSENC_DTYPE_F16] = HALF_STRIPS(F16, NULL),
    [INTERLEAVED][POSENC_DTYPE_F32] = INTERLEAVED_STRIPS(
        F32, INTERLEAVED_F32_STRIP_STREAM, INTERLEAVED_F32_STRIP_STREAM_EIGHT_STEPS),
    [INTERLEAVED][POSENC_DTYPE_F16] = INTERLEAVED_STRIPS(F16, NULL, NULL),
#endif
    [HALF][POSENC_DTYPE_BF16] = HALF_STRIPS(BF16, NULL),
    [INTERLEAVED][POSENC_DTYPE_BF16] = INTERLEAVED_STRIPS(BF16, NULL, NULL),
};
#undef INTERLEAVED_STRIPS
#undef HALF_STRIPS

/* Returns the number of steps in the next strip, of those that `left` pairs need; w: pairs per step. Five are split
 * into three and two, since an overlapping last step needs the one before it; nine are not split into eight and
 * one. Only ISAs of 16 lanes have enough registers for eight steps. */
SIMD_INLINE int64_t next_strip_steps(const struct strip_table *strips,
                                     const struct rope_token *token, int64_t w, int64_t left)
{
    const int64_t steps = (left + w - 1) / w;

    if (strips->eight[STRIP_CACHED] && vf_lanes() >= 16 && token->angles == POSENC_DTYPE_F32 &&
        left >= EIGHT_STEPS * w && steps != EIGHT_STEPS + 1)
        return EIGHT_STEPS;
    return steps < 5 ? steps : steps == 5 ? 3 : 4;
}

/* Rotates all pairs of a token, strip after strip. */
SIMD_INLINE void rotate_in_strips(enum pairing pairing, const struct strip_table *strips,
                                  const struct rope_token *token)
{
    int64_t w = step_pairs(pairing), pairs = token->pairs;
    strip_function *const *whole = strips->kinds[token->kind];

    if (pairs < w) {
        whole[0](token, 0, 0);
        return;
    }
    for (int64_t i = 0, steps; i < pairs; i += steps * w) {
        steps = next_strip_steps(strips, token, w, pairs - i);
        if (i + steps * w > pairs)
            strips->kinds[STRIP_ANY][steps](token, i, pairs - w);
        else if (steps == EIGHT_STEPS)
            strips->eight[token->kind](token, i, 0);
        else
            whole[steps](token, i, i + (steps - 1) * w);
    }
}

#endif
