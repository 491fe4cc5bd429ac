/*
 * Kernel rope_qk_norm: RMS norm of each head, then the rotation of rope_half, in one pass over memory.
 *
 *   r   = 1 / sqrt((sum of x_i^2) / n + epsilon)
 *   v_i = (x_i r) (weight_i + weight_offset)
 *   y0  = fma(v0, cos, -fl(v1 sin)),   y1 = fma(v1, cos, fl(v0 sin))
 *
 * Shapes: x and out [batch, tokens, heads, head_dim]; weight [1 or heads, head_dim]; cos and sin as in rope.c. The sum
 * is over head_dim (n = head_dim), or with across_heads over all heads of the token (n = heads head_dim).
 *
 * Sources: Zhang and Sennrich 1910.07467 (RMS norm); Qwen3 2505.09388, Gemma 3 2503.19786, OLMo 2 2501.00656 (of
 * queries and keys).
 *
 * Order of the sum. It is fixed, so that every ISA gives the same bits: element i of a head goes to partial sum i % 64
 * by one fma, in ascending order of i; then the upper half of the partial sums is added to the lower half until one is
 * left. 64 is the largest number of lanes here, and gives short vectors enough independent sums to hide the latency of
 * an fma. With across_heads, the sums of heads are added in ascending order. All later operations are rounded one by
 * one.
 *
 * Error, with u = 2^-24. A partial sum has m = ceil(head_dim / 64) roundings of positive terms. Halving adds six, the
 * sum over heads adds heads - 1. With the quotient and the sum with epsilon these are m + 8, or m + 7 + heads over all
 * heads. The root halves their error. Root, reciprocal, weight + weight_offset and two products add five roundings. So
 * the relative error of v is at most theta = ((m + 8) / 2 + 5) u, up to terms in u^2, and each product of the rotation
 * has that of its v. Squares that underflow are negligible beside epsilon >= 2^-64; a product that underflows is off by
 * half the least subnormal.
 *
 * Heads are taken in groups of as many as a vector has lanes. Their last partial sums are added while a matrix is
 * transposed, so that one vector holds the roots and quotients of the group. The group is still in the L1 cache when it
 * is rotated.
 */
#include "kernel.h"

enum { PARTIAL_SUMS = POSENC_FREQS_PAD }; /* 64, see above */

/* For f32 heads in DRAM: heads per group, fewer so that reading and rotating alternate more often, and the prefetch
 * distance of the sums in bytes. */
enum { UNCACHED_HEADS = 4, NORM_PREFETCH_BYTES = 8192 };

/* ---- Sums of squares ---- */

/* Adds the upper half of the partial sums to the lower half until `left` are left. */
SIMD_INLINE void add_halves(float *sums, int64_t left)
{
    for (int64_t n = PARTIAL_SUMS / 2; n >= left; n /= 2)
        for (int64_t k = 0; k < n; k += vf_lanes())
            vf_store(sums + k, vf_add(vf_load(sums + k), vf_load(sums + k + n)));
}

/* Returns the partial sums of the lanes from k on, with three further quarters already added, for heads of whole
 * multiples of PARTIAL_SUMS elements. */
SIMD_INLINE vf sum_quarter(enum posenc_dtype type, const void *x, int64_t dim, int64_t k)
{
    const int64_t lanes = vf_lanes(), quarter = PARTIAL_SUMS / 4;
    vf a = vf_set1(0.0f), b = a, c = a, d = a;

    for (int64_t i = k; i < dim; i += PARTIAL_SUMS) {
        vf p = load_as(type, x, i, lanes), q = load_as(type, x, i + quarter, lanes);
        vf r = load_as(type, x, i + 2 * quarter, lanes);
        vf s = load_as(type, x, i + 3 * quarter, lanes);
        if (type == POSENC_DTYPE_F32 && k == 0) {
            const int64_t at = i * (int64_t)sizeof(float) + NORM_PREFETCH_BYTES;

            prefetch_in_order(x, at);
            prefetch_in_order(x, at + 64);
            prefetch_in_order(x, at + 128);
            prefetch_in_order(x, at + 192);
        }
        a = vf_fma(p, p, a);
        b = vf_fma(q, q, b);
        c = vf_fma(r, r, c);
        d = vf_fma(s, s, d);
    }
    return vf_add(vf_add(a, c), vf_add(b, d));
}

/* Returns the partial sums of a head, halved until they fill one vector. */
SIMD_INLINE vf sum_squares(enum posenc_dtype type, const void *x, int64_t dim)
{
    const int64_t lanes = vf_lanes();
    float sums[PARTIAL_SUMS];

    if (dim % PARTIAL_SUMS == 0 && lanes == PARTIAL_SUMS / 4)
        return sum_quarter(type, x, dim, 0);
    if (dim % PARTIAL_SUMS == 0 && lanes == PARTIAL_SUMS / 8)
        return vf_add(sum_quarter(type, x, dim, 0), sum_quarter(type, x, dim, lanes));

    for (int64_t k = 0; k < PARTIAL_SUMS; k += lanes) {
        vf sum = vf_set1(0.0f);
        int64_t i = k;
        for (; i + lanes <= dim; i += PARTIAL_SUMS) {
            vf value = load_as(type, x, i, lanes);
            sum = vf_fma(value, value, sum);
        }
        if (i < dim) {
            vf value = load_as(type, x, i, dim - i);
            sum = vf_fma(value, value, sum);
        }
        vf_store(sums + k, sum);
    }
    add_halves(sums, lanes);
    return vf_load(sums);
}

/* Returns the same of bf16. Elements are loaded as even and odd ones, and so are the partial sums; zips restore the
 * order of the last two vectors. */
SIMD_INLINE vf sum_squares_bf16(const uint16_t *x, int64_t dim)
{
    const int64_t lanes = vf_lanes();
    float sums[PARTIAL_SUMS];

    for (int64_t k = 0; k < PARTIAL_SUMS; k += 2 * lanes) {
        vf even = vf_set1(0.0f), odd = even, a, b;
        for (int64_t i = k; i < dim; i += PARTIAL_SUMS) {
            vf_load_bf16_pairs(x + i, &a, &b);
            even = vf_fma(a, a, even);
            odd = vf_fma(b, b, odd);
        }
        vf_store(sums + k, even);
        vf_store(sums + k + lanes, odd);
    }
    add_halves(sums, 2 * lanes);
    vf even = vf_load(sums), odd = vf_load(sums + lanes);
    return vf_add(vf_zip_lo(even, odd), vf_zip_hi(even, odd));
}

/* Returns true if a head consists of whole pairs of bf16 vectors, and these are faster. */
SIMD_INLINE bool uses_bf16_pairs(enum posenc_dtype type, int64_t dim)
{
    const int64_t both = 2 * vf_lanes();
    return type == POSENC_DTYPE_BF16 && vf_prefers_bf16_pairs() && both <= PARTIAL_SUMS &&
           dim % both == 0;
}

/* Adds up each head's vector of partial sums. group: [heads = lanes][lanes]. Returns the sum of head h in lane h.
 * Zips combine two heads that are half a group apart, and one addition halves both. */
SIMD_INLINE vf add_across(float *group)
{
    const int64_t lanes = vf_lanes();

    for (int64_t n = lanes / 2; n > 0; n /= 2)
        for (int64_t h = 0; h < n; h++) {
            vf a = vf_load(group + h * lanes), b = vf_load(group + (h + n) * lanes);
            vf_store(group + h * lanes, vf_add(vf_zip_lo(a, b), vf_zip_hi(a, b)));
        }
    return vf_load(group);
}

/* ---- Heads of a token ---- */

/* Heads to normalise and rotate, from the current one on. */
struct normed {
    enum posenc_dtype angles;
    bool exceeds_cache;         /* f32 that exceeds the caches */
    int64_t pairs, dim, offset; /* offset: the first rotated channel */
    const void *cosine, *sine;
    const float *weight;
    int64_t weight_stride; /* floats from head to head; 0 if all share one weight */
    float weight_offset;
    const char *x; /* of the current head */
    char *out;
    int64_t x_stride, out_stride; /* bytes from head to head */
};

/* Returns the sum of squares of each head of a group, 0 in further lanes. */
SIMD_INLINE vf sum_heads(enum posenc_dtype type, const struct normed *heads, int64_t n_heads)
{
    const int64_t lanes = vf_lanes();
    float group[PARTIAL_SUMS * PARTIAL_SUMS];

    for (int64_t h = 0; h < n_heads; h++) {
        const void *x = heads->x + h * heads->x_stride;
        vf_store(group + h * lanes, uses_bf16_pairs(type, heads->dim)
                                        ? sum_squares_bf16(x, heads->dim)
                                        : sum_squares(type, x, heads->dim));
    }
    for (int64_t h = n_heads; h < lanes; h++)
        vf_store(group + h * lanes, vf_set1(0.0f));
    return add_across(group);
}

/* Returns the sum of squares of all heads of a token, in ascending order. */
SIMD_INLINE float sum_token(enum posenc_dtype type, struct normed heads, int64_t n_heads)
{
    const int64_t lanes = vf_lanes();
    float sums[PARTIAL_SUMS], sum = 0.0f;

    for (int64_t h = 0; h < n_heads; h += lanes, heads.x += lanes * heads.x_stride) {
        const int64_t n = min_i64(n_heads - h, lanes);
        vf_store(sums, sum_heads(type, &heads, n));
        for (int64_t k = 0; k < n; k++)
            sum += sums[k];
    }
    return sum;
}

/* Returns 1 / sqrt(sum / n + epsilon). */
SIMD_INLINE vf inverse_root(vf sum, float n, float epsilon)
{
    vf mean = vf_div(sum, vf_set1(n));
    return vf_div(vf_set1(1.0f), vf_sqrt(vf_add(mean, vf_set1(epsilon))));
}

/* Returns weight + weight_offset of n channels from channel i on, head h. */
SIMD_INLINE vf load_weights(const struct normed *heads, int64_t h, int64_t i, int64_t n)
{
    const float *weight = heads->weight + h * heads->weight_stride;
    return vf_add(load_as(POSENC_DTYPE_F32, weight, i, n), vf_set1(heads->weight_offset));
}

/* Normalises and rotates n pairs from pair i on of each head; scales[h] is r of head h. With `shared`, all heads
 * have one weight, which stays in registers as the angles do. */
SIMD_INLINE void rotate_normed(enum posenc_dtype type, bool shared, const struct normed *heads,
                               int64_t n_heads, const float *scales, int64_t i, int64_t n)
{
    /* Copies: as far as the compiler knows, a store through `out` may change the heads. */
    const int64_t a = heads->offset + i, b = a + heads->pairs;
    const int64_t x_stride = heads->x_stride, out_stride = heads->out_stride;
    const char *x = heads->x;
    char *out = heads->out;
    vf c = load_as(heads->angles, heads->cosine, i, n);
    vf s = load_as(heads->angles, heads->sine, i, n);
    vf g0 = load_weights(heads, 0, a, n), g1 = load_weights(heads, 0, b, n);

    for (int64_t h = 0; h < n_heads; h++, x += x_stride, out += out_stride) {
        vf r = vf_set1(scales[h]);
        if (!shared) {
            g0 = load_weights(heads, h, a, n);
            g1 = load_weights(heads, h, b, n);
        }
        vf v0 = vf_mul(vf_mul(load_as(type, x, a, n), r), g0);
        vf v1 = vf_mul(vf_mul(load_as(type, x, b, n), r), g1);
        store_as(type, out, a, vf_cross(v0, c, v1, s), n);
        store_as(type, out, b, vf_fma(v1, c, vf_mul(v0, s)), n);
    }
}

/* Does the same for two whole vectors of pairs in bf16, with a shared weight and f32 angles: even and odd elements
 * are apart (vf_load_bf16_pairs). */
SIMD_INLINE void rotate_bf16_pairs(const struct normed *heads, int64_t n_heads,
                                   const float *scales, int64_t i)
{
    const int64_t a = heads->offset + i, b = a + heads->pairs, lanes = vf_lanes();
    const int64_t x_stride = heads->x_stride, out_stride = heads->out_stride;
    const char *x = heads->x;
    char *out = heads->out;
    const vf offset = vf_set1(heads->weight_offset);
    vf c0, c1, s0, s1, f0, f1, g0, g1, x0, x1, z0, z1;

    vf_load2_n((const float *)heads->cosine + i, lanes, &c0, &c1);
    vf_load2_n((const float *)heads->sine + i, lanes, &s0, &s1);
    vf_load2_n(heads->weight + a, lanes, &f0, &f1);
    vf_load2_n(heads->weight + b, lanes, &g0, &g1);
    f0 = vf_add(f0, offset);
    f1 = vf_add(f1, offset);
    g0 = vf_add(g0, offset);
    g1 = vf_add(g1, offset);
    for (int64_t h = 0; h < n_heads; h++, x += x_stride, out += out_stride) {
        const vf r = vf_set1(scales[h]);
        vf_load_bf16_pairs((const uint16_t *)x + a, &x0, &x1);
        vf_load_bf16_pairs((const uint16_t *)x + b, &z0, &z1);
        x0 = vf_mul(vf_mul(x0, r), f0);
        x1 = vf_mul(vf_mul(x1, r), f1);
        z0 = vf_mul(vf_mul(z0, r), g0);
        z1 = vf_mul(vf_mul(z1, r), g1);
        vf_store_bf16_pairs((uint16_t *)out + a, vf_cross(x0, c0, z0, s0),
                            vf_cross(x1, c1, z1, s1));
        vf_store_bf16_pairs((uint16_t *)out + b, vf_fma(z0, c0, vf_mul(x0, s0)),
                            vf_fma(z1, c1, vf_mul(x1, s1)));
    }
}

/* Normalises channels [from, end), which are not rotated. */
SIMD_INLINE void put_normed(enum posenc_dtype type, const struct normed *heads, int64_t n_heads,
                            const float *scales, int64_t from, int64_t end)
{
    for (int64_t h = 0; h < n_heads; h++)
        for (int64_t i = from; i < end; i += vf_lanes()) {
            const int64_t n = min_i64(end - i, vf_lanes());
            vf x = load_as(type, heads->x + h * heads->x_stride, i, n);
            vf value = vf_mul(vf_mul(x, vf_set1(scales[h])), load_weights(heads, h, i, n));
            store_as(type, heads->out + h * heads->out_stride, i, value, n);
        }
}

/* Normalises and rotates all channels of a group of heads. */
SIMD_INLINE void put_group(enum posenc_dtype type, bool shared, const struct normed *heads,
                           int64_t n_heads, const float *scales)
{
    const int64_t lanes = vf_lanes();
    int64_t i = 0;

    put_normed(type, heads, n_heads, scales, 0, heads->offset);
    if (type == POSENC_DTYPE_BF16 && vf_prefers_bf16_pairs() && shared &&
        heads->angles == POSENC_DTYPE_F32)
        for (; i + 2 * lanes <= heads->pairs; i += 2 * lanes)
            rotate_bf16_pairs(heads, n_heads, scales, i);
    for (; i + lanes <= heads->pairs; i += lanes)
        rotate_normed(type, shared, heads, n_heads, scales, i, lanes);
    if (i < heads->pairs)
        rotate_normed(type, shared, heads, n_heads, scales, i, heads->pairs - i);
    put_normed(type, heads, n_heads, scales, heads->offset + 2 * heads->pairs, heads->dim);
}

/* ---- Calls ---- */

/* Normalises and rotates the heads of a token, group by group. */
SIMD_INLINE void norm_token(enum posenc_dtype type, bool shared, struct normed heads,
                            const struct posenc_rope_qk_norm_args *args)
{
    const int64_t n_heads = args->x.shape[2], lanes = vf_lanes();
    const int64_t group = heads.exceeds_cache ? min_i64(UNCACHED_HEADS, lanes) : lanes;
    const bool across = args->across_heads;
    const float size = (float)(across ? n_heads * heads.dim : heads.dim);
    float scales[PARTIAL_SUMS];
    vf sum = vf_set1(across ? sum_token(type, heads, n_heads) : 0.0f);

    for (int64_t h = 0; h < n_heads; h += group) {
        const int64_t n = min_i64(n_heads - h, group);
        if (!across)
            sum = sum_heads(type, &heads, n);
        vf_store(scales, inverse_root(sum, size, args->epsilon));
        put_group(type, shared, &heads, n, scales);
        heads.x += n * heads.x_stride;
        heads.out += n * heads.out_stride;
        heads.weight += n * heads.weight_stride;
    }
}

SIMD_INLINE void norm_rows(enum posenc_dtype type, bool shared,
                           const struct posenc_rope_qk_norm_args *args)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t *shape = args->x.shape;
    struct normed heads = { .angles = args->cos.dtype,
                            .exceeds_cache = type == POSENC_DTYPE_F32 &&
                                             shape[0] * shape[1] * shape[2] * shape[3] >
                                                 CACHED_MAX_BYTES / size,
                            .pairs = args->cos.shape[1],
                            .dim = args->x.shape[3],
                            .offset = args->rotary_offset,
                            .weight = args->weight.data,
                            .weight_stride = args->weight.stride[0],
                            .weight_offset = args->weight_offset,
                            .x_stride = args->x.stride[2] * size,
                            .out_stride = args->out.stride[2] * size };

    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            const int64_t id = posenc_position(&args->positions, b, t);
            heads.cosine = input_row(&args->cos, id, 0, 0);
            heads.sine = input_row(&args->sin, id, 0, 0);
            heads.x = input_row(&args->x, b, t, 0);
            heads.out = output_row(&args->out, b, t, 0);
            norm_token(type, shared, heads, args);
        }
}

enum posenc_status KERNEL(rope_qk_norm)(const struct posenc_rope_qk_norm_args *args)
{
    if (args->weight.stride[0] == 0)
        FOR_TYPE(args->x.dtype, norm_rows, true, args);
    else
        FOR_TYPE(args->x.dtype, norm_rows, false, args);
    return POSENC_OK;
}
