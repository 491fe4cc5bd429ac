/*
 * Strips of channels: some pairs of each head of a token, whose angles stay in registers while the
 * heads pass.  A strip goes on with the tokens after the first where it is all of their heads.
 */
#ifndef POSENC_KERNELS_STRIPS_H
#define POSENC_KERNELS_STRIPS_H

#include "kernel.h"

enum pairing { HALF, INTERLEAVED };

/* One token of a call: its angles and its heads.  Or several that follow it, with the angles that
 * follow its own. */
struct token {
    enum posenc_dtype angles; /* storage of cosine and sine */
    float sign;               /* of the sine: -1 for the transpose */
    int64_t pairs, heads;
    const char *x; /* from the first channel that turns */
    const char *cosine;
    char *out;
    const char *sine;
    int64_t x_step, out_step;                         /* bytes from head to head */
    int64_t more;                                     /* tokens after the first */
    int64_t x_next, out_next, cosine_next, sine_next; /* bytes from token to token */
};

/* Where a strip reads and writes, of one token after the other: from its own first channel and
 * angle on, so that what follows is at constants from there. */
struct place {
    const char *x, *cosine, *sine;
    char *out;
};

SIMD_INLINE struct place place_of(enum pairing pairing, enum posenc_dtype type,
                                  enum posenc_dtype angles, const struct token *token,
                                  int64_t i)
{
    const int64_t at = (pairing == INTERLEAVED ? 2 * i : i) * (int64_t)posenc_dtype_size(type);
    const int64_t angle = i * (int64_t)posenc_dtype_size(angles);

    return (struct place){ token->x + at, token->cosine + angle, token->sine + angle,
                           token->out + at };
}

SIMD_INLINE void go_on(struct place *place, const struct token *token)
{
    place->x += token->x_next;
    place->out += token->out_next;
    place->cosine += token->cosine_next;
    place->sine += token->sine_next;
}

/* Pairs that one vector step rotates.  Half: a vector of x0 and one of x1.  Interleaved: one
 * vector that holds half as many pairs (with a single lane there is no such vector, and both go
 * alike). */
SIMD_INLINE int64_t step_pairs(enum pairing pairing)
{
    return pairing == INTERLEAVED && vf_lanes() > 1 ? vf_lanes() / 2 : vf_lanes();
}

/* The angles of n pairs from i on, as turn_pairs wants them: c and s, or c c and -s s by
 * turns. */
SIMD_INLINE void load_angles(enum pairing pairing, enum posenc_dtype type,
                             const struct place *place, float sign, int64_t i, int64_t n, vf *c,
                             vf *s)
{
    *c = load_as(type, place->cosine, i, n);
    *s = vf_mul(load_as(type, place->sine, i, n), vf_set1(sign));
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        *c = vf_zip_lo(*c, *c);
        *s = vf_zip_lo(vf_mul(*s, vf_set1(-1.0f)), *s);
    }
}

/* n pairs of one head from pair i on, turned; y0 holds both where vectors interleave them. */
SIMD_INLINE void turn_pairs(enum pairing pairing, enum posenc_dtype type, int64_t pairs,
                            int64_t i, int64_t n, vf c, vf s, const char *x, vf *y0, vf *y1)
{
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        int64_t lanes = n == step_pairs(pairing) ? vf_lanes() : 2 * n;
        vf both = vf_keep(load_as(type, x, 2 * i, lanes));
        *y0 = *y1 = vf_fma(both, c, vf_mul(vf_swap_pairs(both), s));
        return;
    }
    vf x0 = vf_keep(load_as(type, x, pairing == INTERLEAVED ? 2 * i : i, n));
    vf x1 = vf_keep(load_as(type, x, pairing == INTERLEAVED ? 2 * i + 1 : pairs + i, n));
    *y0 = vf_cross(x0, c, x1, s);
    *y1 = vf_fma(x1, c, vf_mul(x0, s));
}

SIMD_INLINE void put_pairs(enum pairing pairing, enum posenc_dtype type, int64_t pairs,
                           int64_t i, int64_t n, vf y0, vf y1, char *out)
{
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        store_as(type, out, 2 * i, y0, n == step_pairs(pairing) ? vf_lanes() : 2 * n);
        return;
    }
    store_as(type, out, pairing == INTERLEAVED ? 2 * i : i, y0, n);
    store_as(type, out, pairing == INTERLEAVED ? 2 * i + 1 : pairs + i, y1, n);
}

SIMD_INLINE void rotate_pairs(enum pairing pairing, enum posenc_dtype type, int64_t pairs,
                              int64_t i, int64_t n, vf c, vf s, const char *x, char *out)
{
    vf y0, y1;

    turn_pairs(pairing, type, pairs, i, n, c, s, x, &y0, &y1);
    put_pairs(pairing, type, pairs, i, n, y0, y1, out);
}

/* Those of two steps, from i and from j on.  Both are read before either is written: the second may
 * take pairs of the first again, and a store after each load costs a twentieth in the L2 cache (Zen
 * 5). */
SIMD_INLINE void rotate_two(enum pairing pairing, enum posenc_dtype type, int64_t pairs,
                            int64_t i, int64_t j, int64_t n, vf c, vf s, vf d, vf t,
                            const char *x, char *out)
{
    vf y0, y1, z0, z1;

    turn_pairs(pairing, type, pairs, i, n, c, s, x, &y0, &y1);
    turn_pairs(pairing, type, pairs, j, n, d, t, x, &z0, &z1);
    put_pairs(pairing, type, pairs, i, n, y0, y1, out);
    put_pairs(pairing, type, pairs, j, n, z0, z1, out);
}

/* The angles of two vectors of pairs of a half, or of one of interleaved pairs, as even and odd
 * elements come (vf_load_bf16_pairs); and these pairs of a head turned. */
SIMD_INLINE void load_split_angles(enum pairing pairing, const struct place *place, float turn,
                                   int64_t i, vf *c0, vf *c1, vf *s0, vf *s1)
{
    const float *cosine = (const float *)(const void *)place->cosine + i,
                *sine = (const float *)(const void *)place->sine + i;
    const vf sign = vf_set1(turn);

    *c0 = *c1 = vf_load(cosine);
    *s0 = *s1 = vf_load(sine);
    if (pairing == HALF) {
        vf_load2_n(cosine, vf_lanes(), c0, c1);
        vf_load2_n(sine, vf_lanes(), s0, s1);
    }
    *s0 = vf_mul(*s0, sign);
    *s1 = vf_mul(*s1, sign);
}

SIMD_INLINE void rotate_split(enum pairing pairing, int64_t pairs, int64_t i, vf c0, vf c1,
                              vf s0, vf s1, const char *x, char *out)
{
    const uint16_t *from = (const uint16_t *)x;
    uint16_t *to = (uint16_t *)out;
    vf x0, x1, z0, z1;

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

/* Two or four steps of whole vectors of bf16. */
SIMD_INLINE void rotate_split_strip(enum pairing pairing, const struct token *token, int64_t i,
                                    int steps)
{
    /* copies: for all the compiler knows, a store through out could change the token */
    const int64_t pairs = token->pairs, heads = token->heads, next = 2 * step_pairs(pairing);
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    struct place place = place_of(pairing, POSENC_BF16, POSENC_F32, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, token)) {
        const char *x = place.x;
        char *out = place.out;

        load_split_angles(pairing, &place, sign, 0, &c0, &c1, &s0, &s1);
        c2 = c0;
        c3 = c1;
        s2 = s0;
        s3 = s1;
        if (steps > 2)
            load_split_angles(pairing, &place, sign, next, &c2, &c3, &s2, &s3);
        for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step) {
            rotate_split(pairing, pairs, 0, c0, c1, s0, s1, x, out);
            if (steps > 2)
                rotate_split(pairing, pairs, next, c2, c3, s2, s3, x, out);
        }
    }
}

/* Eight steps of interleaved pairs of bf16; see rotate_eight(). */
SIMD_INLINE void rotate_split_eight(const struct token *token, int64_t i)
{
    const enum pairing pairing = INTERLEAVED;
    const int64_t pairs = token->pairs, heads = token->heads, w = vf_lanes();
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    struct place place = place_of(pairing, POSENC_BF16, POSENC_F32, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3, same, too;

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, token)) {
        const char *x = place.x;
        char *out = place.out;

        load_split_angles(pairing, &place, sign, 0, &c0, &same, &s0, &too);
        load_split_angles(pairing, &place, sign, w, &c1, &same, &s1, &too);
        load_split_angles(pairing, &place, sign, 2 * w, &c2, &same, &s2, &too);
        load_split_angles(pairing, &place, sign, 3 * w, &c3, &same, &s3, &too);
        for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step) {
            rotate_split(pairing, pairs, 0, c0, c0, s0, s0, x, out);
            rotate_split(pairing, pairs, w, c1, c1, s1, s1, x, out);
            rotate_split(pairing, pairs, 2 * w, c2, c2, s2, s2, x, out);
            rotate_split(pairing, pairs, 3 * w, c3, c3, s3, s3, x, out);
        }
    }
}

/* One to four steps of n pairs, whose angles stay in registers while the heads pass: from i on,
 * but the last one from `last`, which may take pairs of the step before again. */
SIMD_INLINE void rotate_strip(enum pairing pairing, enum posenc_dtype type,
                              enum posenc_dtype angles, const struct token *token, int64_t i,
                              int steps, int64_t last, int64_t n)
{
    const int64_t pairs = token->pairs, heads = token->heads, before = (steps - 2) * n;
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    struct place place = place_of(pairing, type, angles, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    last -= i;
    for (int64_t more = token->more; more >= 0; more--, go_on(&place, token)) {
        const char *x = place.x;
        char *out = place.out;

        load_angles(pairing, angles, &place, sign, last, n, &c3, &s3);
        c0 = c1 = c2 = c3;
        s0 = s1 = s2 = s3;
        if (steps > 1)
            load_angles(pairing, angles, &place, sign, before, n, &c2, &s2);
        if (steps > 2)
            load_angles(pairing, angles, &place, sign, 0, n, &c0, &s0);
        if (steps > 3)
            load_angles(pairing, angles, &place, sign, n, n, &c1, &s1);
        for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step) {
            if (steps > 3)
                rotate_two(pairing, type, pairs, 0, n, n, c0, s0, c1, s1, x, out);
            else if (steps > 2)
                rotate_pairs(pairing, type, pairs, 0, n, c0, s0, x, out);
            if (steps > 1)
                rotate_two(pairing, type, pairs, before, last, n, c2, s2, c3, s3, x, out);
            else
                rotate_pairs(pairing, type, pairs, last, n, c3, s3, x, out);
        }
    }
}

/* Eight steps of interleaved pairs, which a head of 128 channels has with 16 lanes: in halves its
 * heads would pass twice, which takes a third longer in the L2 cache of Zen 5. */
SIMD_INLINE void rotate_eight(enum posenc_dtype type, const struct token *token, int64_t i)
{
    const enum pairing pairing = INTERLEAVED;
    const enum posenc_dtype angles = POSENC_F32;
    const int64_t pairs = token->pairs, heads = token->heads, n = step_pairs(pairing);
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    struct place place = place_of(pairing, type, angles, token, i);
    vf c0, c1, c2, c3, c4, c5, c6, c7, s0, s1, s2, s3, s4, s5, s6, s7;

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, token)) {
        const char *x = place.x;
        char *out = place.out;

        load_angles(pairing, angles, &place, sign, 0, n, &c0, &s0);
        load_angles(pairing, angles, &place, sign, n, n, &c1, &s1);
        load_angles(pairing, angles, &place, sign, 2 * n, n, &c2, &s2);
        load_angles(pairing, angles, &place, sign, 3 * n, n, &c3, &s3);
        load_angles(pairing, angles, &place, sign, 4 * n, n, &c4, &s4);
        load_angles(pairing, angles, &place, sign, 5 * n, n, &c5, &s5);
        load_angles(pairing, angles, &place, sign, 6 * n, n, &c6, &s6);
        load_angles(pairing, angles, &place, sign, 7 * n, n, &c7, &s7);
        for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step) {
            rotate_two(pairing, type, pairs, 0, n, n, c0, s0, c1, s1, x, out);
            rotate_two(pairing, type, pairs, 2 * n, 3 * n, n, c2, s2, c3, s3, x, out);
            rotate_two(pairing, type, pairs, 4 * n, 5 * n, n, c4, s4, c5, s5, x, out);
            rotate_two(pairing, type, pairs, 6 * n, 7 * n, n, c6, s6, c7, s7, x, out);
        }
    }
}

/* One to four whole steps, or at 0 pairs that do not fill one.  PLAIN: f32 angles, steps side by
 * side; then eight steps of interleaved pairs, too. */
enum strip_kind { PLAIN, ANY };
enum { EIGHT = 8 };
SIMD_INLINE void turn_strip(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                            int steps, const struct token *token, int64_t i, int64_t last)
{
    const int64_t n = steps > 0 ? step_pairs(pairing) : token->pairs;
    const bool split = kind == PLAIN && type == POSENC_BF16 && vf_pairs_bf16();

    if (kind == PLAIN)
        last = steps > 0 ? i + (steps - 1) * n : i;
    if (steps == EIGHT && split)
        rotate_split_eight(token, i);
    else if (steps == EIGHT)
        rotate_eight(type, token, i);
    else if (split && steps > 0 && steps % 2 == 0)
        rotate_split_strip(pairing, token, i, steps);
    else
        rotate_strip(pairing, type, kind == PLAIN ? POSENC_F32 : token->angles, token, i,
                     steps > 0 ? steps : 1, last, n);
}

/* Each is a function of its own: in one, gcc runs out of registers for the loops.  C has no
 * other way to name sixty of them. */
typedef void strip(const struct token *token, int64_t i, int64_t last);
#define STRIP(pairing, type, kind, steps)                                                      \
    static __attribute__((noinline)) void pairing##_##type##_##kind##_##steps(                 \
        const struct token *token, int64_t i, int64_t last)                                    \
    {                                                                                          \
        turn_strip(pairing, POSENC_##type, kind, steps, token, i, last);                       \
    }
#define STRIPS(pairing, type, kind)                                                            \
    STRIP(pairing, type, kind, 0)                                                              \
    STRIP(pairing, type, kind, 1)                                                              \
    STRIP(pairing, type, kind, 2)                                                              \
    STRIP(pairing, type, kind, 3)                                                              \
    STRIP(pairing, type, kind, 4)                                                              \
    static strip *const pairing##_##type##_##kind[] = {                                        \
        pairing##_##type##_##kind##_0, pairing##_##type##_##kind##_1,                          \
        pairing##_##type##_##kind##_2, pairing##_##type##_##kind##_3,                          \
        pairing##_##type##_##kind##_4,                                                         \
    };
STRIPS(HALF, F32, PLAIN)
STRIPS(HALF, F32, ANY)
STRIPS(HALF, F16, PLAIN)
STRIPS(HALF, F16, ANY)
STRIPS(HALF, BF16, PLAIN)
STRIPS(HALF, BF16, ANY)
STRIPS(INTERLEAVED, F32, PLAIN)
STRIPS(INTERLEAVED, F32, ANY)
STRIPS(INTERLEAVED, F16, PLAIN)
STRIPS(INTERLEAVED, F16, ANY)
STRIPS(INTERLEAVED, BF16, PLAIN)
STRIPS(INTERLEAVED, BF16, ANY)
STRIP(INTERLEAVED, F32, PLAIN, EIGHT)
STRIP(INTERLEAVED, F16, PLAIN, EIGHT)
STRIP(INTERLEAVED, BF16, PLAIN, EIGHT)
#undef STRIPS
#undef STRIP

/* By steps; eight: NULL, or for eight of plain ones. */
struct strips {
    strip *const *plain, *const *any, *eight;
};
static const struct strips all_strips[][POSENC_BF16 + 1] = {
    [HALF] = { { HALF_F32_PLAIN, HALF_F32_ANY, NULL },
               { HALF_F16_PLAIN, HALF_F16_ANY, NULL },
               { HALF_BF16_PLAIN, HALF_BF16_ANY, NULL } },
    [INTERLEAVED] = { { INTERLEAVED_F32_PLAIN, INTERLEAVED_F32_ANY,
                        INTERLEAVED_F32_PLAIN_EIGHT },
                      { INTERLEAVED_F16_PLAIN, INTERLEAVED_F16_ANY,
                        INTERLEAVED_F16_PLAIN_EIGHT },
                      { INTERLEAVED_BF16_PLAIN, INTERLEAVED_BF16_ANY,
                        INTERLEAVED_BF16_PLAIN_EIGHT } },
};

/* Steps of w pairs in the next strip, of those that `left` pairs take.  Five are taken as three and
 * two, since the last one may need the one before it, and nine not as eight and one.  ISAs of 16
 * lanes have the registers for eight. */
SIMD_INLINE int64_t strip_steps(const struct strips *strips, const struct token *token,
                                int64_t w, int64_t left)
{
    const int64_t steps = (left + w - 1) / w;

    if (strips->eight && vf_lanes() >= 16 && token->angles == POSENC_F32 && left >= EIGHT * w &&
        steps != EIGHT + 1)
        return EIGHT;
    return steps < 5 ? steps : steps == 5 ? 3 : 4;
}

SIMD_INLINE void rotate_in_strips(enum pairing pairing, const struct strips *strips,
                                  const struct token *token)
{
    int64_t w = step_pairs(pairing), pairs = token->pairs;
    strip *const *whole = token->angles == POSENC_F32 ? strips->plain : strips->any;

    if (pairs < w) {
        whole[0](token, 0, 0);
        return;
    }
    for (int64_t i = 0, steps; i < pairs; i += steps * w) {
        steps = strip_steps(strips, token, w, pairs - i);
        if (i + steps * w > pairs)
            strips->any[steps](token, i, pairs - w);
        else if (steps == EIGHT)
            strips->eight(token, i, 0);
        else
            whole[steps](token, i, i + (steps - 1) * w);
    }
}

#endif
