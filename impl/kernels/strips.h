/*
 * Strips of channels: some pairs of each head of a token, whose angles stay in registers while the
 * heads pass. A strip goes on with the tokens after the first where it is all of their heads.
 */
#ifndef POSENC_KERNELS_STRIPS_H
#define POSENC_KERNELS_STRIPS_H

#include "stores.h"

enum pairing { HALF, INTERLEAVED };

/* PLAIN: f32 angles, steps side by side. FAR: the same, and x comes from DRAM. PAST: out, another
 * array in f32, is stored past the caches, too. ANY: none of these. */
enum strip_kind { PLAIN, FAR, PAST, ANY };

/* One token of a call: its angles and its heads. Or several that follow it, with the angles that
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
    enum strip_kind kind;
};

/* Addresses that a strip reads and writes, from its own first channel and angle on, so that all others have
 * constant distances: a head of one token after the other. */
struct place {
    const char *x, *cosine, *sine;
    char *out;
};

/* Bytes from behind the last head of a token to the first of the next one. They have to be in
 * registers: a load from the stack, whose address looks like that of a store under way, waits for it,
 * and with it all of the next token (a third of the time, of 8 heads in the L2 cache of Zen 5). */
struct step {
    int64_t x, out, cosine, sine;
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

SIMD_INLINE struct step step_of(const struct token *token)
{
    return (struct step){ token->x_next - token->heads * token->x_step,
                          token->out_next - token->heads * token->out_step, token->cosine_next,
                          token->sine_next };
}

SIMD_INLINE void go_on(struct place *place, const struct step *step)
{
    place->x += step->x;
    place->out += step->out;
    place->cosine += step->cosine;
    place->sine += step->sine;
}

/* Pairs that one vector step rotates. Half: a vector of x0 and one of x1. Interleaved: one
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
    if (pairing == HALF || vf_lanes() == 1) {
        *c = load_as(type, place->cosine, i, n);
        *s = vf_mul(load_as(type, place->sine, i, n), vf_set1(sign));
        return;
    }
    if (type == POSENC_F32 && n == step_pairs(INTERLEAVED)) {
        *c = vf_load_twice((const float *)(const void *)place->cosine + i);
        *s = vf_load_twice((const float *)(const void *)place->sine + i);
    } else {
        *c = load_as(type, place->cosine, i, n);
        *s = load_as(type, place->sine, i, n);
        *c = vf_zip_lo(*c, *c);
        *s = vf_zip_lo(*s, *s);
    }
    *s = vf_mul(*s, vf_zip_lo(vf_set1(-sign), vf_set1(sign)));
}

/* Bytes from the first of two halves to the second: one index serves all vectors of it. */
SIMD_INLINE int64_t to_second(enum pairing pairing, enum posenc_dtype type, int64_t pairs)
{
    return pairing == HALF ? pairs * (int64_t)posenc_dtype_size(type) : 0;
}

/* Prefetches memory further on, a line at a time. Prefetching all lines of a head at once gains nothing
 * in DRAM, and costs time in the L2 cache. */
enum { AHEAD = 2048 };
SIMD_INLINE void prefetch(enum posenc_dtype type, const char *x, int64_t i)
{
    const int64_t at = i * (int64_t)posenc_dtype_size(type);

    if (at % 64 == 0)
        ask_ahead(x, at + AHEAD);
}

/* n elements from x[i] on. */
SIMD_INLINE vf read_as(enum posenc_dtype type, enum strip_kind kind, const char *x, int64_t i,
                       int64_t n)
{
    if (kind == FAR || kind == PAST)
        prefetch(type, x, i);
    return vf_keep_here(load_as(type, x, i, n));
}

/* n elements to out[i] and what follows it. */
SIMD_INLINE void write_as(enum posenc_dtype type, enum strip_kind kind, char *out, int64_t i,
                          vf v, int64_t n)
{
    if (kind == PAST)
        stream_as(type, out, i, v);
    else
        store_as(type, out, i, v, n);
}

/* n pairs of one head from pair i on, turned; y0 holds both where vectors interleave them. */
SIMD_INLINE void turn_pairs(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                            int64_t pairs, int64_t i, int64_t n, vf c, vf s, const char *x,
                            vf *y0, vf *y1)
{
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        int64_t lanes = n == step_pairs(pairing) ? vf_lanes() : 2 * n;
        vf both = read_as(type, kind, x, 2 * i, lanes);
        *y0 = *y1 = vf_fma(both, c, vf_mul(vf_swap_pairs(both), s));
        return;
    }
    const char *other = x + to_second(pairing, type, pairs);
    vf x0 = read_as(type, kind, x, pairing == INTERLEAVED ? 2 * i : i, n);
    vf x1 = read_as(type, kind, other, pairing == INTERLEAVED ? 2 * i + 1 : i, n);
    *y0 = vf_cross(x0, c, x1, s);
    *y1 = vf_fma(x1, c, vf_mul(x0, s));
}

SIMD_INLINE void put_pairs(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                           int64_t pairs, int64_t i, int64_t n, vf y0, vf y1, char *out)
{
    if (pairing == INTERLEAVED && vf_lanes() > 1) {
        write_as(type, kind, out, 2 * i, y0, n == step_pairs(pairing) ? vf_lanes() : 2 * n);
        return;
    }
    char *other = out + to_second(pairing, type, pairs);

    write_as(type, kind, out, pairing == INTERLEAVED ? 2 * i : i, y0, n);
    write_as(type, kind, other, pairing == INTERLEAVED ? 2 * i + 1 : i, y1, n);
}

SIMD_INLINE void rotate_pairs(enum pairing pairing, enum posenc_dtype type,
                              enum strip_kind kind, int64_t pairs, int64_t i, int64_t n, vf c,
                              vf s, const char *x, char *out)
{
    vf y0, y1;

    turn_pairs(pairing, type, kind, pairs, i, n, c, s, x, &y0, &y1);
    put_pairs(pairing, type, kind, pairs, i, n, y0, y1, out);
}

/* Rotates two steps, from i and from j on. Both are read before either is written, as the second may
 * have pairs of the first again, and as a store after each load costs a twentieth in the L2
 * cache. */
SIMD_INLINE void rotate_two(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                            int64_t pairs, int64_t i, int64_t j, int64_t n, vf c, vf s, vf d,
                            vf t, const char *x, char *out)
{
    vf y0, y1, z0, z1;

    turn_pairs(pairing, type, kind, pairs, i, n, c, s, x, &y0, &y1);
    turn_pairs(pairing, type, kind, pairs, j, n, d, t, x, &z0, &z1);
    put_pairs(pairing, type, kind, pairs, i, n, y0, y1, out);
    put_pairs(pairing, type, kind, pairs, j, n, z0, z1, out);
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

SIMD_INLINE void rotate_split(enum pairing pairing, enum strip_kind kind, int64_t pairs,
                              int64_t i, vf c0, vf c1, vf s0, vf s1, const char *x, char *out)
{
    const uint16_t *from = (const uint16_t *)x;
    uint16_t *to = (uint16_t *)out;
    vf x0, x1, z0, z1;

    if (kind == FAR)
        prefetch(POSENC_BF16, x, pairing == INTERLEAVED ? 2 * i : i);
    if (kind == FAR && pairing == HALF)
        prefetch(POSENC_BF16, x + to_second(pairing, POSENC_BF16, pairs), i);
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
SIMD_INLINE void rotate_split_strip(enum pairing pairing, enum strip_kind kind,
                                    const struct token *token, int64_t i, int steps)
{
    /* copies: for all the compiler knows, a store through out could change the token */
    const int64_t pairs = token->pairs, heads = token->heads, next = 2 * step_pairs(pairing);
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    const struct step step = step_of(token);
    struct place place = place_of(pairing, POSENC_BF16, POSENC_F32, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, &step)) {
        load_split_angles(pairing, &place, sign, 0, &c0, &c1, &s0, &s1);
        c2 = c0;
        c3 = c1;
        s2 = s0;
        s3 = s1;
        if (steps > 2)
            load_split_angles(pairing, &place, sign, next, &c2, &c3, &s2, &s3);
        for (int64_t h = 0; h < heads; h++, place.x += x_step, place.out += out_step) {
            rotate_split(pairing, kind, pairs, 0, c0, c1, s0, s1, place.x, place.out);
            if (steps > 2)
                rotate_split(pairing, kind, pairs, next, c2, c3, s2, s3, place.x, place.out);
        }
    }
}

/* Eight steps of interleaved pairs of bf16; see rotate_eight(). */
SIMD_INLINE void rotate_split_eight(enum strip_kind kind, const struct token *token, int64_t i)
{
    const enum pairing pairing = INTERLEAVED;
    const int64_t pairs = token->pairs, heads = token->heads, w = vf_lanes();
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    const struct step step = step_of(token);
    struct place place = place_of(pairing, POSENC_BF16, POSENC_F32, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3, same, too;

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, &step)) {
        load_split_angles(pairing, &place, sign, 0, &c0, &same, &s0, &too);
        load_split_angles(pairing, &place, sign, w, &c1, &same, &s1, &too);
        load_split_angles(pairing, &place, sign, 2 * w, &c2, &same, &s2, &too);
        load_split_angles(pairing, &place, sign, 3 * w, &c3, &same, &s3, &too);
        for (int64_t h = 0; h < heads; h++, place.x += x_step, place.out += out_step) {
            rotate_split(pairing, kind, pairs, 0, c0, c0, s0, s0, place.x, place.out);
            rotate_split(pairing, kind, pairs, w, c1, c1, s1, s1, place.x, place.out);
            rotate_split(pairing, kind, pairs, 2 * w, c2, c2, s2, s2, place.x, place.out);
            rotate_split(pairing, kind, pairs, 3 * w, c3, c3, s3, s3, place.x, place.out);
        }
    }
}

/* One to four steps of n pairs, whose angles stay in registers while the heads pass: from i on,
 * but the last one from `last`, which may take pairs of the step before again. */
SIMD_INLINE void rotate_strip(enum pairing pairing, enum posenc_dtype type,
                              enum strip_kind kind, enum posenc_dtype angles,
                              const struct token *token, int64_t i, int steps, int64_t last,
                              int64_t n)
{
    const int64_t pairs = token->pairs, heads = token->heads, before = (steps - 2) * n;
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    const struct step step = step_of(token);
    struct place place = place_of(pairing, type, angles, token, i);
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    last -= i;
    for (int64_t more = token->more; more >= 0; more--, go_on(&place, &step)) {
        load_angles(pairing, angles, &place, sign, last, n, &c3, &s3);
        c0 = c1 = c2 = c3;
        s0 = s1 = s2 = s3;
        if (steps > 1)
            load_angles(pairing, angles, &place, sign, before, n, &c2, &s2);
        if (steps > 2)
            load_angles(pairing, angles, &place, sign, 0, n, &c0, &s0);
        if (steps > 3)
            load_angles(pairing, angles, &place, sign, n, n, &c1, &s1);
        for (int64_t h = 0; h < heads; h++, place.x += x_step, place.out += out_step) {
            if (steps > 3)
                rotate_two(pairing, type, kind, pairs, 0, n, n, c0, s0, c1, s1, place.x,
                           place.out);
            else if (steps > 2)
                rotate_pairs(pairing, type, kind, pairs, 0, n, c0, s0, place.x, place.out);
            if (steps > 1)
                rotate_two(pairing, type, kind, pairs, before, last, n, c2, s2, c3, s3, place.x,
                           place.out);
            else
                rotate_pairs(pairing, type, kind, pairs, last, n, c3, s3, place.x, place.out);
        }
    }
}

/* Eight steps of interleaved pairs, which a head of 128 channels has with 16 lanes: in halves its
 * heads would pass twice, which takes a third longer in the L2 cache of Zen 5. */
SIMD_INLINE void rotate_eight(enum posenc_dtype type, enum strip_kind kind,
                              const struct token *token, int64_t i)
{
    const enum pairing pairing = INTERLEAVED;
    const enum posenc_dtype angles = POSENC_F32;
    const int64_t pairs = token->pairs, heads = token->heads, n = step_pairs(pairing);
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const float sign = token->sign;
    const struct step step = step_of(token);
    struct place place = place_of(pairing, type, angles, token, i);
    vf c0, c1, c2, c3, c4, c5, c6, c7, s0, s1, s2, s3, s4, s5, s6, s7;

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, &step)) {
        load_angles(pairing, angles, &place, sign, 0, n, &c0, &s0);
        load_angles(pairing, angles, &place, sign, n, n, &c1, &s1);
        load_angles(pairing, angles, &place, sign, 2 * n, n, &c2, &s2);
        load_angles(pairing, angles, &place, sign, 3 * n, n, &c3, &s3);
        load_angles(pairing, angles, &place, sign, 4 * n, n, &c4, &s4);
        load_angles(pairing, angles, &place, sign, 5 * n, n, &c5, &s5);
        load_angles(pairing, angles, &place, sign, 6 * n, n, &c6, &s6);
        load_angles(pairing, angles, &place, sign, 7 * n, n, &c7, &s7);
        for (int64_t h = 0; h < heads; h++, place.x += x_step, place.out += out_step) {
            rotate_two(pairing, type, kind, pairs, 0, n, n, c0, s0, c1, s1, place.x, place.out);
            rotate_two(pairing, type, kind, pairs, 2 * n, 3 * n, n, c2, s2, c3, s3, place.x,
                       place.out);
            rotate_two(pairing, type, kind, pairs, 4 * n, 5 * n, n, c4, s4, c5, s5, place.x,
                       place.out);
            rotate_two(pairing, type, kind, pairs, 6 * n, 7 * n, n, c6, s6, c7, s7, place.x,
                       place.out);
        }
    }
}

/* One to four whole steps, or at 0 pairs that do not fill one. But for ANY eight steps of interleaved
 * pairs, too. */
enum { EIGHT = 8 };
SIMD_INLINE void turn_strip(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                            int steps, const struct token *token, int64_t i, int64_t last)
{
    const int64_t n = steps > 0 ? step_pairs(pairing) : token->pairs;
    const bool split = kind != ANY && type == POSENC_BF16 && vf_pairs_bf16();

    if (kind != ANY)
        last = steps > 0 ? i + (steps - 1) * n : i;
    if (steps == EIGHT && split)
        rotate_split_eight(kind, token, i);
    else if (steps == EIGHT)
        rotate_eight(type, kind, token, i);
    else if (split && steps > 0 && steps % 2 == 0)
        rotate_split_strip(pairing, kind, token, i, steps);
    else
        rotate_strip(pairing, type, kind, kind == ANY ? token->angles : POSENC_F32, token, i,
                     steps > 0 ? steps : 1, last, n);
}

/* Each is a function of its own: in one, gcc runs out of registers for the loops. C has no
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
#define KINDS(pairing, type)                                                                   \
    STRIPS(pairing, type, PLAIN)                                                               \
    STRIPS(pairing, type, FAR)                                                                 \
    STRIPS(pairing, type, ANY)
#ifndef POSENC_F32_ISA
KINDS(HALF, F32)
STRIPS(HALF, F32, PAST)
KINDS(HALF, F16)
KINDS(INTERLEAVED, F32)
STRIPS(INTERLEAVED, F32, PAST)
KINDS(INTERLEAVED, F16)
STRIP(INTERLEAVED, F32, PLAIN, EIGHT)
STRIP(INTERLEAVED, F32, FAR, EIGHT)
STRIP(INTERLEAVED, F32, PAST, EIGHT)
STRIP(INTERLEAVED, F16, PLAIN, EIGHT)
STRIP(INTERLEAVED, F16, FAR, EIGHT)
#endif
KINDS(HALF, BF16)
KINDS(INTERLEAVED, BF16)
STRIP(INTERLEAVED, BF16, PLAIN, EIGHT)
STRIP(INTERLEAVED, BF16, FAR, EIGHT)
#undef KINDS
#undef STRIPS
#undef STRIP

/* By kind and steps; eight: NULL, or by kind for eight of them. */
struct strips {
    strip *const *kinds[ANY + 1], *eight[ANY + 1];
};
#define HALVES(type, past)                                                                     \
    {                                                                                          \
        .kinds = { HALF_##type##_PLAIN, HALF_##type##_FAR, past, HALF_##type##_ANY }           \
    }
#define TURNS(type, past, past_eight)                                                          \
    {                                                                                          \
        .kinds = { INTERLEAVED_##type##_PLAIN, INTERLEAVED_##type##_FAR, past,                 \
                   INTERLEAVED_##type##_ANY },                                                 \
        .eight = {                                                                             \
            INTERLEAVED_##type##_PLAIN_EIGHT,                                                  \
            INTERLEAVED_##type##_FAR_EIGHT,                                                    \
            past_eight                                                                         \
        }                                                                                      \
    }
static const struct strips all_strips[][POSENC_BF16 + 1] = {
#ifndef POSENC_F32_ISA
    [HALF][POSENC_F32] = HALVES(F32, HALF_F32_PAST),
    [HALF][POSENC_F16] = HALVES(F16, NULL),
    [INTERLEAVED][POSENC_F32] = TURNS(F32, INTERLEAVED_F32_PAST, INTERLEAVED_F32_PAST_EIGHT),
    [INTERLEAVED][POSENC_F16] = TURNS(F16, NULL, NULL),
#endif
    [HALF][POSENC_BF16] = HALVES(BF16, NULL),
    [INTERLEAVED][POSENC_BF16] = TURNS(BF16, NULL, NULL),
};
#undef TURNS
#undef HALVES

/* Steps of w pairs in the next strip, of those that `left` pairs take. Five are taken as three and
 * two, since the last one may need the one before it, and nine not as eight and one. ISAs of 16
 * lanes have the registers for eight. */
SIMD_INLINE int64_t strip_steps(const struct strips *strips, const struct token *token,
                                int64_t w, int64_t left)
{
    const int64_t steps = (left + w - 1) / w;

    if (strips->eight[PLAIN] && vf_lanes() >= 16 && token->angles == POSENC_F32 &&
        left >= EIGHT * w && steps != EIGHT + 1)
        return EIGHT;
    return steps < 5 ? steps : steps == 5 ? 3 : 4;
}

SIMD_INLINE void rotate_in_strips(enum pairing pairing, const struct strips *strips,
                                  const struct token *token)
{
    int64_t w = step_pairs(pairing), pairs = token->pairs;
    strip *const *whole = strips->kinds[token->kind];

    if (pairs < w) {
        whole[0](token, 0, 0);
        return;
    }
    for (int64_t i = 0, steps; i < pairs; i += steps * w) {
        steps = strip_steps(strips, token, w, pairs - i);
        if (i + steps * w > pairs)
            strips->kinds[ANY][steps](token, i, pairs - w);
        else if (steps == EIGHT)
            strips->eight[token->kind](token, i, 0);
        else
            whole[steps](token, i, i + (steps - 1) * w);
    }
}

#endif
