/*
 * Kernels rope_half and rope_interleaved: activations turned, row by row.
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
 *
 * Pairs that do not fill the last vector are turned with some of those before them again, in a
 * whole one.  A part of a vector holds up the loads that follow: a masked store passes nothing
 * on to a load whose bytes it spans, masked or not (3.8 times the time, for 40 pairs in the L2
 * cache of Zen 4).  Where both halves of a head fit into one vector they are turned in it, and so
 * are several heads that lie side by side.
 */
#include "kernel.h"

enum pairing { HALF, INTERLEAVED };

/* Activations of more bytes than this are taken to come from DRAM. */
enum { IN_CACHE = 16 << 20 };

/* How heads that are narrower than a vector lie in one: lanes of the same pair, of the other half
 * and of the halves' signs.  heads: how many, 0 where they do not fill it. */
struct narrow {
    int64_t heads;
    int32_t pair[POSENC_PLAN_PAD], other[POSENC_PLAN_PAD];
    float sign[POSENC_PLAN_PAD];
};

/* One token of a call: its angles and its heads. */
struct token {
    enum posenc_dtype angles; /* storage of cosine and sine */
    float sign;               /* of the sine: -1 for the transpose */
    int64_t pairs, heads;
    const char *x; /* from the first channel that turns */
    const void *cosine;
    char *out;
    const void *sine;
    int64_t x_step, out_step; /* bytes from head to head */
};

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
                             const struct token *token, int64_t i, int64_t n, vf *c, vf *s)
{
    *c = load_as(type, token->cosine, i, n);
    *s = vf_mul(load_as(type, token->sine, i, n), vf_set1(token->sign));
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

/* The angles of two vectors of pairs of a half, or of one of interleaved pairs, as even and odd
 * elements come (vf_load_bf16_pairs); and these pairs of a head turned. */
SIMD_INLINE void load_split_angles(enum pairing pairing, const struct token *token, int64_t i,
                                   vf *c0, vf *c1, vf *s0, vf *s1)
{
    const float *cosine = (const float *)token->cosine + i,
                *sine = (const float *)token->sine + i;
    const vf sign = vf_set1(token->sign);

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
    int64_t pairs = token->pairs, heads = token->heads, next = i + 2 * step_pairs(pairing);
    int64_t x_step = token->x_step, out_step = token->out_step;
    const char *x = token->x;
    char *out = token->out;
    vf c0, c1, c2, c3, s0, s1, s2, s3;

    load_split_angles(pairing, token, i, &c0, &c1, &s0, &s1);
    c2 = c0;
    c3 = c1;
    s2 = s0;
    s3 = s1;
    if (steps > 2)
        load_split_angles(pairing, token, next, &c2, &c3, &s2, &s3);
    for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step) {
        rotate_split(pairing, pairs, i, c0, c1, s0, s1, x, out);
        if (steps > 2)
            rotate_split(pairing, pairs, next, c2, c3, s2, s3, x, out);
    }
}

/* One to four steps of n pairs, whose angles stay in registers while the heads pass: from i on,
 * but the last one from `last`.  Where that may take pairs of the step before again (`again`),
 * both are read before either is written. */
SIMD_INLINE void rotate_strip(enum pairing pairing, enum posenc_dtype type,
                              enum posenc_dtype angles, const struct token *token, int64_t i,
                              int steps, int64_t last, int64_t n, bool again)
{
    /* copies: for all the compiler knows, a store through out could change the token */
    int64_t pairs = token->pairs, heads = token->heads, before = i + (steps - 2) * n;
    int64_t x_step = token->x_step, out_step = token->out_step;
    const char *x = token->x;
    char *out = token->out;
    vf c0, c1, c2, c3, s0, s1, s2, s3, y0, y1, z0, z1;

    load_angles(pairing, angles, token, last, n, &c3, &s3);
    c0 = c1 = c2 = c3;
    s0 = s1 = s2 = s3;
    if (steps > 1)
        load_angles(pairing, angles, token, before, n, &c2, &s2);
    if (steps > 2)
        load_angles(pairing, angles, token, i, n, &c0, &s0);
    if (steps > 3)
        load_angles(pairing, angles, token, i + n, n, &c1, &s1);
    for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step) {
        if (steps > 2)
            rotate_pairs(pairing, type, pairs, i, n, c0, s0, x, out);
        if (steps > 3)
            rotate_pairs(pairing, type, pairs, i + n, n, c1, s1, x, out);
        if (steps > 1 && again) {
            turn_pairs(pairing, type, pairs, before, n, c2, s2, x, &y0, &y1);
            turn_pairs(pairing, type, pairs, last, n, c3, s3, x, &z0, &z1);
            put_pairs(pairing, type, pairs, before, n, y0, y1, out);
            put_pairs(pairing, type, pairs, last, n, z0, z1, out);
            continue;
        }
        if (steps > 1)
            rotate_pairs(pairing, type, pairs, before, n, c2, s2, x, out);
        rotate_pairs(pairing, type, pairs, last, n, c3, s3, x, out);
    }
}

/* One to four whole steps, or at 0 pairs that do not fill one.  PLAIN: f32 angles, steps side by
 * side. */
enum strip_kind { PLAIN, ANY };
SIMD_INLINE void turn_strip(enum pairing pairing, enum posenc_dtype type, enum strip_kind kind,
                            int steps, const struct token *token, int64_t i, int64_t last)
{
    const int64_t n = steps > 0 ? step_pairs(pairing) : token->pairs;

    if (kind == PLAIN && type == POSENC_BF16 && vf_pairs_bf16() && steps > 0 &&
        steps % 2 == 0) {
        rotate_split_strip(pairing, token, i, steps);
        return;
    }
    if (kind == PLAIN)
        last = steps > 0 ? i + (steps - 1) * n : i;
    rotate_strip(pairing, type, kind == PLAIN ? POSENC_F32 : token->angles, token, i,
                 steps > 0 ? steps : 1, last, n, kind == ANY);
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
#undef STRIPS
#undef STRIP

/* By steps. */
struct strips {
    strip *const *plain, *const *any;
};
static const struct strips all_strips[][POSENC_BF16 + 1] = {
    [HALF] = { { HALF_F32_PLAIN, HALF_F32_ANY },
               { HALF_F16_PLAIN, HALF_F16_ANY },
               { HALF_BF16_PLAIN, HALF_BF16_ANY } },
    [INTERLEAVED] = { { INTERLEAVED_F32_PLAIN, INTERLEAVED_F32_ANY },
                      { INTERLEAVED_F16_PLAIN, INTERLEAVED_F16_ANY },
                      { INTERLEAVED_BF16_PLAIN, INTERLEAVED_BF16_ANY } },
};

/* Five steps are taken as three and two, since the last one may need the one before it. */
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
        steps = (pairs - i + w - 1) / w;
        steps = steps < 5 ? steps : steps == 5 ? 3 : 4;
        if (i + steps * w <= pairs)
            whole[steps](token, i, i + (steps - 1) * w);
        else
            strips->any[steps](token, i, pairs - w);
    }
}

/* Several heads have to follow one another; one may lie anywhere. */
SIMD_INLINE void lay_narrow(int64_t size, const struct token *token, struct narrow *narrow)
{
    int64_t w = vf_lanes(), pairs = token->pairs, head = 2 * pairs * size;
    bool fills = w % (2 * pairs) == 0 &&
                 (w == 2 * pairs || (token->x_step == head && token->out_step == head));

    narrow->heads = fills ? w / (2 * pairs) : 0;
    for (int64_t lane = 0; fills && lane < w; lane++) {
        bool second = lane / pairs % 2 == 1;

        narrow->pair[lane] = (int32_t)(lane % pairs);
        narrow->other[lane] = (int32_t)(second ? lane - pairs : lane + pairs);
        narrow->sign[lane] = second ? 1.0f : -1.0f;
    }
}

/* As many heads as fill vectors; the token's are those that are left. */
SIMD_INLINE void rotate_narrow(enum posenc_dtype type, const struct narrow *narrow,
                               struct token *token)
{
    int64_t heads = narrow->heads, x_step = heads * token->x_step;
    int64_t out_step = heads * token->out_step, w = vf_lanes();
    vf c = vf_lookup(load_as(token->angles, token->cosine, 0, token->pairs), narrow->pair, 0);
    vf s = vf_lookup(load_as(token->angles, token->sine, 0, token->pairs), narrow->pair, 0);

    s = vf_mul(s, vf_mul(vf_load(narrow->sign), vf_set1(token->sign)));
    for (; token->heads >= heads; token->heads -= heads) {
        vf both = vf_keep(load_as(type, token->x, 0, w));
        vf other = vf_lookup(both, narrow->other, 0);

        store_as(type, token->out, 0, vf_fma(both, c, vf_mul(other, s)), w);
        token->x += x_step;
        token->out += out_step;
    }
}

/* Interleaved heads of whole vectors, in the order of memory: the angles are laid out once for all
 * heads of a token, as vectors want them. */
enum { LAID_OUT = 512 };
SIMD_INLINE bool may_lay_out(const struct token *token)
{
    return vf_lanes() > 1 && token->pairs % vf_lanes() == 0 && 2 * token->pairs <= LAID_OUT;
}

SIMD_INLINE void rotate_laid_out(enum posenc_dtype type, const struct token *token)
{
    _Alignas(64) float cosine[LAID_OUT], sine[LAID_OUT];
    int64_t w = vf_lanes(), n = 2 * token->pairs, heads = token->heads;
    int64_t x_step = token->x_step, out_step = token->out_step;
    const char *x = token->x;
    char *out = token->out;

    for (int64_t i = 0; i < n; i += w) {
        vf c, s;

        load_angles(INTERLEAVED, token->angles, token, i / 2, w / 2, &c, &s);
        vf_store(cosine + i, c);
        vf_store(sine + i, s);
    }
    for (int64_t h = 0; h < heads; h++, x += x_step, out += out_step)
        for (int64_t i = 0; i < n; i += 2 * w) {
            vf a = vf_keep(load_as(type, x, i, w)), b = vf_keep(load_as(type, x, i + w, w));

            a = vf_keep(
                vf_fma(a, vf_load(cosine + i), vf_mul(vf_swap_pairs(a), vf_load(sine + i))));
            b = vf_keep(vf_fma(b, vf_load(cosine + i + w),
                               vf_mul(vf_swap_pairs(b), vf_load(sine + i + w))));
            store_as(type, out, i, a, w);
            store_as(type, out, i + w, b, w);
        }
}

SIMD_INLINE void rotate_in_order(enum pairing pairing, const struct strips *strips,
                                 const struct token *token)
{
    struct token head = *token;

    head.heads = 1;
    for (int64_t h = 0; h < token->heads; h++) {
        rotate_in_strips(pairing, strips, &head);
        head.x += token->x_step;
        head.out += token->out_step;
    }
}

/* Bytes [from, end) of each head, counted from the first channel that turns. */
static void copy_channels(const struct token *token, int64_t from, int64_t end)
{
    for (int64_t h = 0; h < token->heads && from < end; h++)
        memcpy(token->out + h * token->out_step + from, token->x + h * token->x_step + from,
               (size_t)(end - from));
}

SIMD_INLINE void rope(enum posenc_dtype type, const struct posenc_rope_args *args,
                      enum pairing pairing)
{
    const struct strips *strips = &all_strips[pairing][type];
    const int64_t *shape = args->x.shape, size = (int64_t)posenc_dtype_size(type);
    const int64_t before = args->rotary_offset * size, after = shape[3] * size - before;
    const int64_t angle_size = (int64_t)posenc_dtype_size(args->cos.dtype);
    const int64_t cos_step = args->cos.stride[0] * angle_size;
    const int64_t sin_step = args->sin.stride[0] * angle_size;
    bool in_strips = args->cos.shape[1] <= 4 * step_pairs(pairing) ||
                     shape[0] * shape[1] * shape[2] * shape[3] <= IN_CACHE / size;
    struct token token = { .angles = args->cos.dtype,
                           .sign = args->transpose ? -1.0f : 1.0f,
                           .pairs = args->cos.shape[1],
                           .heads = shape[2],
                           .x_step = args->x.stride[2] * size,
                           .out_step = args->out.stride[2] * size };
    struct narrow narrow;

    narrow.heads = 0; /* all of it would take longer than a call of one token */
    if (pairing == HALF && 2 * token.pairs <= vf_lanes())
        lay_narrow(size, &token, &narrow);
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0; t < shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t);
            const int64_t *x = args->x.stride, *out = args->out.stride;
            token.cosine = (const char *)args->cos.data + id * cos_step;
            token.sine = (const char *)args->sin.data + id * sin_step;
            token.x = (const char *)args->x.data + (b * x[0] + t * x[1]) * size + before;
            token.out = (char *)args->out.data + (b * out[0] + t * out[1]) * size + before;
            if (narrow.heads > 0) {
                struct token rest = token;
                rotate_narrow(type, &narrow, &rest);
                rotate_in_strips(pairing, strips, &rest);
            } else if (in_strips)
                rotate_in_strips(pairing, strips, &token);
            else if (pairing == INTERLEAVED && may_lay_out(&token))
                rotate_laid_out(type, &token);
            else
                rotate_in_order(pairing, strips, &token);
            if (token.x != token.out) {
                copy_channels(&token, -before, 0);
                copy_channels(&token, 2 * token.pairs * size, after);
            }
        }
}

enum posenc_status KERNEL(rope_half)(const struct posenc_rope_args *args)
{
    FOR_TYPE(args->x.dtype, rope, args, HALF);
    return POSENC_OK;
}

enum posenc_status KERNEL(rope_interleaved)(const struct posenc_rope_args *args)
{
    FOR_TYPE(args->x.dtype, rope, args, INTERLEAVED);
    return POSENC_OK;
}
