/*
 * Kernels rope_half and rope_interleaved: rotary position embedding. Each pair (x0, x1) of a head is rotated by its
 * angle:
 *
 *   y0 = fma(x0, cos, -fl(x1 sin)),   y1 = fma(x1, cos, fl(x0 sin))
 *
 * Shapes: x and out [batch, tokens, heads, head_dim]; cos and sin [rows, pairs], whose row is the token's position.
 * Pair i has the channels rotary_offset + i and rotary_offset + pairs + i (rope_half: GPT-NeoX, Hugging Face
 * rotate_half), or rotary_offset + 2 i and rotary_offset + 2 i + 1 (rope_interleaved: GPT-J). Other channels are
 * copied. The transpose negates sin.
 *
 * Source: Su et al. 2104.09864.
 *
 * The roundings are those above in both pairings, so that they agree to the bit. The interleaved form adds x1 (-sin) in
 * even lanes, which is exact.
 *
 * The kernels are bound by memory. A strip (rope_strips.h) keeps its angles in registers while it passes over the
 * heads. Three cases take other ways:
 *   - heads of several strips in DRAM are rotated head by head, as strips confuse the hardware prefetcher;
 *   - heads of several strips in large caches use packed angles, laid out once per token as vectors need them;
 *   - narrow heads, of at most a vector, are rotated within one vector, several heads at once if they are adjacent.
 *
 * Pairs that do not fill the last vector are rotated in a whole vector that overlaps the one before. A partial vector
 * would delay the loads that follow, as CPUs do not forward a masked store to a load.
 */
#include "rope_strips.h"

/* Lane layout of narrow heads: each lane's pair, the lane of the other half, and the sign of the sine. `heads` is
 * the number of heads per vector, or 0 if they do not fill it. */
struct narrow {
    int64_t heads;
    int32_t pair[POSENC_FREQS_PAD], other[POSENC_FREQS_PAD];
    float sign[POSENC_FREQS_PAD];
};

/* Fills the layout. Several heads have to be adjacent in memory; a single one may lie anywhere. */
SIMD_INLINE void plan_narrow(int64_t size, const struct rope_token *token,
                             struct narrow *narrow)
{
    int64_t w = vf_lanes(), pairs = token->pairs, head = 2 * pairs * size;
    bool fills = w % (2 * pairs) == 0 &&
                 (w == 2 * pairs || (token->x_stride == head && token->out_stride == head));

    narrow->heads = fills ? w / (2 * pairs) : 0;
    for (int64_t lane = 0; fills && lane < w; lane++) {
        bool second = lane / pairs % 2 == 1;

        narrow->pair[lane] = (int32_t)(lane % pairs);
        narrow->other[lane] = (int32_t)(second ? lane - pairs : lane + pairs);
        narrow->sign[lane] = second ? 1.0f : -1.0f;
    }
}

/* Rotates as many heads as fill vectors. `token` is left with the others. */
SIMD_INLINE void rotate_narrow(enum posenc_dtype type, const struct narrow *narrow,
                               struct rope_token *token)
{
    int64_t heads = narrow->heads, x_stride = heads * token->x_stride;
    int64_t out_stride = heads * token->out_stride, w = vf_lanes();
    vf c = vf_lookup(load_as(token->angles, token->cosine, 0, token->pairs), narrow->pair, 0);
    vf s = vf_lookup(load_as(token->angles, token->sine, 0, token->pairs), narrow->pair, 0);

    s = vf_mul(s, vf_mul(vf_load(narrow->sign), vf_set1(token->sign)));
    for (; token->heads >= heads; token->heads -= heads) {
        vf both = vf_pin(load_as(type, token->x, 0, w));
        vf other = vf_lookup(both, narrow->other, 0);

        store_as(type, token->out, 0, vf_fma(both, c, vf_mul(other, s)), w);
        token->x += x_stride;
        token->out += out_stride;
    }
}

/* Rotation with packed angles: the angles of all pairs of a token are laid out once, as vectors need them, and
 * heads are then rotated in the order of memory. A strip reads and writes a part of each head and returns for the
 * next one. This is faster than packed angles in an L2 cache, and slower beyond it. */
enum { PACKED_ANGLES = 512 }; /* most floats of packed cosines */

/* Returns the size of x in bytes from which packed angles are faster than strips. */
SIMD_INLINE int64_t packed_min_bytes(enum pairing pairing, enum posenc_dtype type,
                                     bool in_place)
{
    if (!in_place)
        return type == POSENC_DTYPE_F32 ? 32 << 10 : 384 << 10;
    if (type != POSENC_DTYPE_F32)
        return 8 << 20;
    return pairing == INTERLEAVED ? 2 << 20 : INT64_MAX;
}

SIMD_INLINE bool uses_packed_angles(enum pairing pairing, enum posenc_dtype type,
                                    const struct rope_token *token, int64_t bytes,
                                    bool in_place)
{
    const int64_t step = step_pairs(pairing), n = token->pairs / step * vf_lanes();

    return vf_lanes() > 1 && token->pairs % (2 * step) == 0 && n <= PACKED_ANGLES &&
           bytes > packed_min_bytes(pairing, type, in_place);
}

/* Packs the angles of two steps from pair i on; `even_odd`: for rotate_even_odd(). */
SIMD_INLINE void pack_angles(enum pairing pairing, bool even_odd,
                             const struct rope_token *token, const struct strip_cursor *cursor,
                             int64_t i, float *cosine, float *sine)
{
    const int64_t step = step_pairs(pairing);
    vf c, d, s, t;

    if (even_odd) {
        load_even_odd_angles(pairing, cursor, token->sign, i, &c, &d, &s, &t);
    } else {
        load_angles(pairing, token->angles, cursor, token->sign, i, step, &c, &s);
        load_angles(pairing, token->angles, cursor, token->sign, i + step, step, &d, &t);
    }
    vf_store(cosine, c);
    vf_store(cosine + vf_lanes(), d);
    vf_store(sine, s);
    vf_store(sine + vf_lanes(), t);
}

/* Rotates the two steps at pair i of one head with packed angles. */
SIMD_INLINE void rotate_packed(enum pairing pairing, enum posenc_dtype type,
                               enum strip_kind kind, bool even_odd, int64_t pairs, int64_t i,
                               const float *cosine, const float *sine, const char *x, char *out)
{
    const int64_t step = step_pairs(pairing);
    const vf c = vf_load(cosine), d = vf_load(cosine + vf_lanes());
    const vf s = vf_load(sine), t = vf_load(sine + vf_lanes());

    if (even_odd)
        rotate_even_odd(pairing, kind, pairs, i, c, d, s, t, x, out);
    else
        rotate_two(pairing, type, kind, pairs, i, i + step, step, c, s, d, t, x, out);
}

/* Rotates the heads of a token, and of those after it, with packed angles. */
SIMD_INLINE void rotate_with_packed_angles(enum pairing pairing, enum posenc_dtype type,
                                           enum strip_kind kind, bool even_odd,
                                           const struct rope_token *token)
{
    _Alignas(64) float cosine[PACKED_ANGLES], sine[PACKED_ANGLES];
    const int64_t w = vf_lanes(), step = step_pairs(pairing);
    const int64_t pairs = token->pairs, heads = token->heads;
    const int64_t x_stride = token->x_stride, out_stride = token->out_stride;
    const struct token_step next = token_step_of(token);
    struct strip_cursor cursor = strip_cursor_at(pairing, type, token->angles, token, 0);

    for (int64_t tokens_after = token->tokens_after; tokens_after >= 0;
         tokens_after--, strip_cursor_advance(&cursor, &next)) {
        for (int64_t i = 0, k = 0; i < pairs; i += 2 * step, k += 2 * w)
            pack_angles(pairing, even_odd, token, &cursor, i, cosine + k, sine + k);
        for (int64_t h = 0; h < heads; h++, cursor.x += x_stride, cursor.out += out_stride)
            for (int64_t i = 0, k = 0; i < pairs; i += 2 * step, k += 2 * w)
                rotate_packed(pairing, type, kind, even_odd, pairs, i, cosine + k, sine + k,
                              cursor.x, cursor.out);
    }
}

/* Rotates the heads of a token one by one, each strip by strip. */
SIMD_INLINE void rotate_head_by_head(enum pairing pairing, const struct strip_table *strips,
                                     const struct rope_token *token)
{
    struct rope_token head = *token;

    head.heads = 1;
    for (int64_t h = 0; h < token->heads; h++) {
        rotate_in_strips(pairing, strips, &head);
        head.x += token->x_stride;
        head.out += token->out_stride;
    }
}

/* Copies bytes [from, end) of each head, counted from the first rotated channel. */
static void copy_channels(const struct rope_token *token, int64_t from, int64_t end)
{
    for (int64_t h = 0; h < token->heads && from < end; h++)
        memcpy(token->out + h * token->out_stride + from, token->x + h * token->x_stride + from,
               (size_t)(end - from));
}

/* Most tokens that a strip passes over before the next strip begins, if heads have several strips. Token by token,
 * strips are too short; over too many tokens, the first ones leave the L2 cache. */
enum { TOKENS_PER_STRIP = 32 };

/* Returns the number of tokens from t on, at most n, whose positions are consecutive. */
static int64_t count_consecutive(const struct posenc_positions *positions, int64_t b, int64_t t,
                                 int64_t n)
{
    int64_t first = posenc_position(positions, b, t), k = 1;

    if (positions->kind == POSENC_POSITIONS_OFFSET)
        return n;
    while (k < n && posenc_position(positions, b, t + k) == first + k)
        k++;
    return k;
}

/* Copies the channels that are not rotated: `before` bytes before the first rotated one, and all up to `after`. */
static void copy_unrotated(const struct rope_token *first, int64_t before, int64_t after,
                           int64_t size)
{
    struct rope_token token = *first;

    for (; token.tokens_after >= 0; token.tokens_after--) {
        copy_channels(&token, -before, 0);
        copy_channels(&token, 2 * token.pairs * size, after);
        token.x += token.x_token_stride;
        token.out += token.out_token_stride;
    }
}

/* Returns true if streaming stores are possible: a large f32 output, not in place, whose heads are whole vectors
 * (`left` pairs remain) at multiples of a vector's size. */
SIMD_INLINE bool can_stream(enum posenc_dtype type, const struct posenc_rope_args *args,
                            int64_t left)
{
    const int64_t *out = args->out.stride, size = (int64_t)sizeof(float);
    const int64_t steps = (out[0] | out[1] | out[2] | args->rotary_offset) * size;

    return type == POSENC_DTYPE_F32 && vf_has_streams() && args->x.data != args->out.data &&
           left == 0 && tensor_bytes(&args->out) >= STREAM_MIN_BYTES &&
           ((int64_t)(uintptr_t)args->out.data | steps) % (vf_lanes() * size) == 0;
}

/* Rotates all tokens of a call: by narrow heads, strips, packed angles, or head by head. */
SIMD_INLINE void rope(enum posenc_dtype type, const struct posenc_rope_args *args,
                      enum pairing pairing)
{
    const struct strip_table *strips = &strip_tables[pairing][type];
    const int64_t *shape = args->x.shape, *x = args->x.stride, *out = args->out.stride;
    const int64_t size = (int64_t)posenc_dtype_size(type), w = step_pairs(pairing);
    const int64_t before = args->rotary_offset * size, after = shape[3] * size - before;
    const int64_t angle_size = (int64_t)posenc_dtype_size(args->cos.dtype);
    struct rope_token token = { .angles = args->cos.dtype,
                                .sign = args->transpose ? -1.0f : 1.0f,
                                .pairs = args->cos.shape[1],
                                .heads = shape[2],
                                .x_stride = x[2] * size,
                                .out_stride = out[2] * size,
                                .x_token_stride = x[1] * size,
                                .out_token_stride = out[1] * size,
                                .cosine_token_stride = args->cos.stride[0] * angle_size,
                                .sine_token_stride = args->sin.stride[0] * angle_size };
    const bool one_strip = next_strip_steps(strips, &token, w, token.pairs) * w >= token.pairs;
    const int64_t bytes = shape[0] * shape[1] * shape[2] * shape[3] * size;
    const bool exceeds_cache = bytes > CACHED_MAX_BYTES;
    const bool in_place = args->x.data == args->out.data;
    const bool packed =
        !one_strip && uses_packed_angles(pairing, type, &token, bytes, in_place);
    const bool in_strips = one_strip || !(exceeds_cache || packed);
    const bool even_odd = type == POSENC_DTYPE_BF16 && vf_prefers_bf16_pairs() &&
                          token.angles == POSENC_DTYPE_F32;
    struct narrow narrow;

    token.kind = token.angles != POSENC_DTYPE_F32          ? STRIP_ANY
                 : !exceeds_cache                          ? STRIP_CACHED
                 : can_stream(type, args, token.pairs % w) ? STRIP_STREAM
                                                           : STRIP_PREFETCH;
    narrow.heads = 0; /* initialising the rest would take longer than a call of one token */
    if (pairing == HALF && 2 * token.pairs <= vf_lanes())
        plan_narrow(size, &token, &narrow);
    const int64_t tokens_per_strip = narrow.heads > 0      ? 1
                                     : one_strip || packed ? shape[1]
                                     : in_strips           ? TOKENS_PER_STRIP
                                                           : 1;
    for (int64_t b = 0; b < shape[0]; b++)
        for (int64_t t = 0, n; t < shape[1]; t += n) {
            int64_t id = posenc_position(&args->positions, b, t);

            n = count_consecutive(&args->positions, b, t,
                                  min_i64(shape[1] - t, tokens_per_strip));
            token.tokens_after = n - 1;
            token.cosine = (const char *)args->cos.data + id * token.cosine_token_stride;
            token.sine = (const char *)args->sin.data + id * token.sine_token_stride;
            token.x = (const char *)args->x.data + (b * x[0] + t * x[1]) * size + before;
            token.out = (char *)args->out.data + (b * out[0] + t * out[1]) * size + before;
            if (narrow.heads > 0) {
                struct rope_token rest = token;
                rotate_narrow(type, &narrow, &rest);
                rotate_in_strips(pairing, strips, &rest);
            } else if (in_strips)
                rotate_in_strips(pairing, strips, &token);
            else if (packed && even_odd)
                rotate_with_packed_angles(pairing, type, STRIP_ANY, true, &token);
            else if (packed)
                rotate_with_packed_angles(pairing, type,
                                          token.kind == STRIP_STREAM ? STRIP_STREAM : STRIP_ANY,
                                          false, &token);
            else
                rotate_head_by_head(pairing, strips, &token);
            if (token.x != token.out)
                copy_unrotated(&token, before, after, size);
        }
    if (token.kind == STRIP_STREAM)
        vf_stream_end();
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
