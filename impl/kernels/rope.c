/*
 * Kernels rope_half and rope_interleaved: activations turned, row by row.
 *
 *     y0 = x0 cos - x1 sin,   y1 = x1 cos + x0 sin
 *
 * In this order: x1 sin and x0 sin are rounded, the other product is fused, in both pairings,
 * so that they agree to the bit under the permutation that relates them. The transpose negates
 * sin, and the interleaved form adds x1 (-sin) in its even lanes: both are exact.
 *
 * Bound by memory. Heads are taken in strips of channels whose angles stay in registers while
 * the heads pass. What comes from DRAM and has more than one strip is taken in the order of
 * memory instead: strips make the hardware's prefetchers lose the thread (half the speed on
 * Zen 4). Software prefetch was tried: there it cost up to a third in the caches and a tenth
 * in DRAM.
 *
 * Pairs that do not fill the last vector are turned with some of those before them again, in a
 * whole one. A part of a vector holds up the loads that follow: a masked store passes nothing
 * on to a load whose bytes it spans, masked or not (3.8 times the time, for 40 pairs in the L2
 * cache of Zen 4). Where both halves of a head fit into one vector they are turned in it, and so
 * are several heads that lie side by side.
 */
#include "strips.h"

/* Layout of heads that are narrower than a vector: lanes of the same pair, of the other half
 * and of the halves' signs. heads: their number, or 0 if they do not fill the vector. */
struct narrow {
    int64_t heads;
    int32_t pair[POSENC_PLAN_PAD], other[POSENC_PLAN_PAD];
    float sign[POSENC_PLAN_PAD];
};

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

/* Heads of whole vectors, in the order of memory: the angles are laid out once for all heads of a token, as
 * vectors want them. Strips read and write a part of each head and come back for the next one, which has to be
 * in an L2 still, and lines that are written follow one another here. So it takes 0.65 to 0.95 of the time in an
 * L3, in 16 bits and from one array to another down to 0.35 (avx2, Zen 4 and 5), but in place 1.05 to 1.2 times as
 * long in an L2, and halves in f32 1.25 to 1.5 times in any. */
enum { LAID_OUT = 512 };

SIMD_INLINE int64_t laid_out_from(enum pairing pairing, enum posenc_dtype type, bool in_place)
{
    if (!in_place)
        return type == POSENC_F32 ? 32 << 10 : 384 << 10;
    if (type != POSENC_F32)
        return 8 << 20;
    return pairing == INTERLEAVED ? 2 << 20 : INT64_MAX;
}

SIMD_INLINE bool is_laid_out(enum pairing pairing, enum posenc_dtype type,
                             const struct token *token, int64_t bytes, bool in_place)
{
    const int64_t step = step_pairs(pairing), n = token->pairs / step * vf_lanes();

    return vf_lanes() > 1 && token->pairs % (2 * step) == 0 && n <= LAID_OUT &&
           bytes > laid_out_from(pairing, type, in_place);
}

/* The angles of two steps from pair i on, as their vectors want them: `split` ones as even and odd elements
 * of bf16 come. */
SIMD_INLINE void lay_out_two(enum pairing pairing, bool split, const struct token *token,
                             const struct place *place, int64_t i, float *cosine, float *sine)
{
    const int64_t step = step_pairs(pairing);
    vf c, d, s, t;

    if (split) {
        load_split_angles(pairing, place, token->sign, i, &c, &d, &s, &t);
    } else {
        load_angles(pairing, token->angles, place, token->sign, i, step, &c, &s);
        load_angles(pairing, token->angles, place, token->sign, i + step, step, &d, &t);
    }
    vf_store(cosine, c);
    vf_store(cosine + vf_lanes(), d);
    vf_store(sine, s);
    vf_store(sine + vf_lanes(), t);
}

/* And those pairs of a head turned. */
SIMD_INLINE void turn_laid_out(enum pairing pairing, enum posenc_dtype type,
                               enum strip_kind kind, bool split, int64_t pairs, int64_t i,
                               const float *cosine, const float *sine, const char *x, char *out)
{
    const int64_t step = step_pairs(pairing);
    const vf c = vf_load(cosine), d = vf_load(cosine + vf_lanes());
    const vf s = vf_load(sine), t = vf_load(sine + vf_lanes());

    if (split)
        rotate_split(pairing, kind, pairs, i, c, d, s, t, x, out);
    else
        rotate_two(pairing, type, kind, pairs, i, i + step, step, c, s, d, t, x, out);
}

SIMD_INLINE void rotate_laid_out(enum pairing pairing, enum posenc_dtype type,
                                 enum strip_kind kind, bool split, const struct token *token)
{
    _Alignas(64) float cosine[LAID_OUT], sine[LAID_OUT];
    const int64_t w = vf_lanes(), step = step_pairs(pairing);
    const int64_t pairs = token->pairs, heads = token->heads;
    const int64_t x_step = token->x_step, out_step = token->out_step;
    const struct step next = step_of(token);
    struct place place = place_of(pairing, type, token->angles, token, 0);

    for (int64_t more = token->more; more >= 0; more--, go_on(&place, &next)) {
        for (int64_t i = 0, k = 0; i < pairs; i += 2 * step, k += 2 * w)
            lay_out_two(pairing, split, token, &place, i, cosine + k, sine + k);
        for (int64_t h = 0; h < heads; h++, place.x += x_step, place.out += out_step)
            for (int64_t i = 0, k = 0; i < pairs; i += 2 * step, k += 2 * w)
                turn_laid_out(pairing, type, kind, split, pairs, i, cosine + k, sine + k,
                              place.x, place.out);
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

/* Tokens that pass through one strip after the other, where there are several and memory is near: token by
 * token, 8 heads of 128 take 1.3 times as long in L2, 2 heads of 256 twice; all of them at once 1.2 times in
 * an L3 (f32, in place, avx2, Zen 5). */
enum { TOGETHER = 32 };

/* Tokens from t on, at most n, whose angles follow one another as they do. */
static int64_t tokens_in_line(const struct posenc_positions *positions, int64_t b, int64_t t,
                              int64_t n)
{
    int64_t first = posenc_position(positions, b, t), k = 1;

    if (positions->kind == POSENC_OFFSET)
        return n;
    while (k < n && posenc_position(positions, b, t + k) == first + k)
        k++;
    return k;
}

/* Channels that do not turn: `before` bytes and up to `after` from the first that does. */
static void copy_others(const struct token *first, int64_t before, int64_t after, int64_t size)
{
    struct token token = *first;

    for (; token.more >= 0; token.more--) {
        copy_channels(&token, -before, 0);
        copy_channels(&token, 2 * token.pairs * size, after);
        token.x += token.x_next;
        token.out += token.out_next;
    }
}

/* Returns true if streaming stores are possible: an output apart from x, in f32, whose heads are whole
 * vectors (`left` pairs remain) that lie on multiples of their size. */
SIMD_INLINE bool may_pass(enum posenc_dtype type, const struct posenc_rope_args *args,
                          int64_t left)
{
    const int64_t *out = args->out.stride, size = (int64_t)sizeof(float);
    const int64_t steps = (out[0] | out[1] | out[2] | args->rotary_offset) * size;

    return type == POSENC_F32 && vf_streams() && args->x.data != args->out.data && left == 0 &&
           bytes_of(&args->out) >= STREAM_FROM &&
           ((int64_t)(uintptr_t)args->out.data | steps) % (vf_lanes() * size) == 0;
}

SIMD_INLINE void rope(enum posenc_dtype type, const struct posenc_rope_args *args,
                      enum pairing pairing)
{
    const struct strips *strips = &all_strips[pairing][type];
    const int64_t *shape = args->x.shape, *x = args->x.stride, *out = args->out.stride;
    const int64_t size = (int64_t)posenc_dtype_size(type), w = step_pairs(pairing);
    const int64_t before = args->rotary_offset * size, after = shape[3] * size - before;
    const int64_t angle_size = (int64_t)posenc_dtype_size(args->cos.dtype);
    struct token token = { .angles = args->cos.dtype,
                           .sign = args->transpose ? -1.0f : 1.0f,
                           .pairs = args->cos.shape[1],
                           .heads = shape[2],
                           .x_step = x[2] * size,
                           .out_step = out[2] * size,
                           .x_next = x[1] * size,
                           .out_next = out[1] * size,
                           .cosine_next = args->cos.stride[0] * angle_size,
                           .sine_next = args->sin.stride[0] * angle_size };
    const bool one_strip = strip_steps(strips, &token, w, token.pairs) * w >= token.pairs;
    const int64_t bytes = shape[0] * shape[1] * shape[2] * shape[3] * size;
    const bool far = bytes > IN_CACHE;
    const bool in_place = args->x.data == args->out.data;
    const bool laid_out = !one_strip && is_laid_out(pairing, type, &token, bytes, in_place);
    const bool in_strips = one_strip || !(far || laid_out);
    const bool split = type == POSENC_BF16 && vf_pairs_bf16() && token.angles == POSENC_F32;
    struct narrow narrow;

    token.kind = token.angles != POSENC_F32              ? ANY
                 : !far                                  ? PLAIN
                 : may_pass(type, args, token.pairs % w) ? PAST
                                                         : FAR;
    narrow.heads = 0; /* all of it would take longer than a call of one token */
    if (pairing == HALF && 2 * token.pairs <= vf_lanes())
        lay_narrow(size, &token, &narrow);
    const int64_t together = narrow.heads > 0        ? 1
                             : one_strip || laid_out ? shape[1]
                             : in_strips             ? TOGETHER
                                                     : 1;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0, n; t < shape[1]; t += n) {
            int64_t id = posenc_position(&args->positions, b, t);

            n = tokens_in_line(&args->positions, b, t, least(shape[1] - t, together));
            token.more = n - 1;
            token.cosine = (const char *)args->cos.data + id * token.cosine_next;
            token.sine = (const char *)args->sin.data + id * token.sine_next;
            token.x = (const char *)args->x.data + (b * x[0] + t * x[1]) * size + before;
            token.out = (char *)args->out.data + (b * out[0] + t * out[1]) * size + before;
            if (narrow.heads > 0) {
                struct token rest = token;
                rotate_narrow(type, &narrow, &rest);
                rotate_in_strips(pairing, strips, &rest);
            } else if (in_strips)
                rotate_in_strips(pairing, strips, &token);
            else if (laid_out && split)
                rotate_laid_out(pairing, type, ANY, true, &token);
            else if (laid_out)
                rotate_laid_out(pairing, type, token.kind == PAST ? PAST : ANY, false, &token);
            else
                rotate_in_order(pairing, strips, &token);
            if (token.x != token.out)
                copy_others(&token, before, after, size);
        }
    if (token.kind == PAST)
        stream_end();
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
