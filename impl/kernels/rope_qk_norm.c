/*
 * Kernel rope_qk_norm: each head divided by its root mean square, times a weight, and turned as
 * rope_half turns it, in one pass over memory.
 *
 *     r  = 1 / sqrt((sum of x_i^2) / n + epsilon)
 *     v_i = (x_i r) (weight_i + weight_offset)
 *     y0 = v0 cos - v1 sin,   y1 = v1 cos + v0 sin
 *
 * The order of the sum is fixed, so that every ISA and vector length gives the same bits:
 * element i of a head goes to partial sum i % 64 by one fma, in ascending order of i; then the
 * upper half of the partial sums is added to the lower one until one is left. 64 is as many
 * lanes as any vector has here, and gives short ones enough sums under way at once to hide the
 * latency of an fma. The sums of heads, where the norm is over all of them, are added in
 * ascending order. What follows is one operation after the other, each rounded: quotient, sum,
 * square root, reciprocal, the two products, and the rotation as rope.c has it.
 *
 * The error, u = 2^-24. A partial sum has m = ceil(head_dim / 64) roundings, of terms that are
 * all positive; six more halve the sums, heads - 1 add them up; quotient and sum with epsilon
 * make m + 8 or, over all heads, m + 7 + heads. The root halves what has gathered. Root,
 * reciprocal, weight + weight_offset and two products add five: v is right to
 * theta = ((m + 8) / 2 + 5) u, relatively and but for terms in u^2. Each product of the
 * rotation carries that of its v. Squares that underflow are nothing beside epsilon, which is
 * at least 2^-64; a product that underflows is off by half the least subnormal.
 *
 * Heads go by groups of as many as a vector has lanes. Their last partial sums are added as a
 * matrix is turned, so that the roots and quotients of a whole group are one vector. A group
 * lies in the L1 cache when it is read a second time.
 *
 * Source: Zhang and Sennrich 1910.07467 (RMS norm); Qwen3 2505.09388, Gemma 3 2503.19786, OLMo 2
 * 2501.00656 (of queries and keys).
 */
#include "kernel.h"

enum { PARTIAL_SUMS = POSENC_PLAN_PAD };

/* Constants for f32 heads in DRAM: the heads of a group, so that reading and rotating alternate sooner, and
 * the bytes from a sum to the memory that it prefetches. Together they save a fifth of the time
 * there. */
enum { FAR_HEADS = 4, NORM_AHEAD = 8192 };

/* ---- Sums of squares ---- */

/* The upper half of the partial sums added to the lower one, until `left` are left. */
SIMD_INLINE void add_halves(float *sums, int64_t left)
{
    for (int64_t n = PARTIAL_SUMS / 2; n >= left; n /= 2)
        for (int64_t k = 0; k < n; k += vf_lanes())
            vf_store(sums + k, vf_add(vf_load(sums + k), vf_load(sums + k + n)));
}

/* A quarter of the partial sums from k on, whose others are added to it by halves; of heads that
 * have as many elements for each. */
SIMD_INLINE vf sum_quarter(enum posenc_dtype type, const void *x, int64_t dim, int64_t k)
{
    const int64_t lanes = vf_lanes(), quarter = PARTIAL_SUMS / 4;
    vf a = vf_set1(0.0f), b = a, c = a, d = a;

    for (int64_t i = k; i < dim; i += PARTIAL_SUMS) {
        vf p = load_as(type, x, i, lanes), q = load_as(type, x, i + quarter, lanes);
        vf r = load_as(type, x, i + 2 * quarter, lanes);
        vf s = load_as(type, x, i + 3 * quarter, lanes);
        if (type == POSENC_F32 && k == 0) {
            const int64_t at = i * (int64_t)sizeof(float) + NORM_AHEAD;

            ask_ahead(x, at);
            ask_ahead(x, at + 64);
            ask_ahead(x, at + 128);
            ask_ahead(x, at + 192);
        }
        a = vf_fma(p, p, a);
        b = vf_fma(q, q, b);
        c = vf_fma(r, r, c);
        d = vf_fma(s, s, d);
    }
    return vf_add(vf_add(a, c), vf_add(b, d));
}

/* The partial sums of a head, added by halves until they fill one vector. */
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

/* The same of bf16 by pairs of neighbours: each two vectors of partial sums are the even ones and
 * the odd ones of so many, until the zips bring the last two into their order. */
SIMD_INLINE vf sum_squares_by_pairs(const uint16_t *x, int64_t dim)
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

/* Returns true if a head of `dim` elements consists of whole pairs of vectors, which take less time. */
SIMD_INLINE bool by_pairs(enum posenc_dtype type, int64_t dim)
{
    const int64_t both = 2 * vf_lanes();
    return type == POSENC_BF16 && vf_pairs_bf16() && both <= PARTIAL_SUMS && dim % both == 0;
}

/* A vector of partial sums of each head of a group -> a vector of their sums, head by head.
 * Zipped with that of the head half a group further on, both have their halves added by one
 * add; the last of these steps leaves lane h to head h. */
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

/* Factors of heads, and their angles. */
struct normed {
    enum posenc_dtype angles;
    bool far;                   /* f32, and from DRAM */
    int64_t pairs, dim, offset; /* offset: the first channel that turns */
    const void *cosine, *sine;
    const float *weight;
    int64_t weight_step; /* elements from head to head; 0: one weight for all */
    float weight_offset;
    const char *x; /* of the first head */
    char *out;
    int64_t x_step, out_step; /* bytes from head to head */
};

/* The sum of the squares of each head of a group; 0 in the lanes of no head. */
SIMD_INLINE vf sum_heads(enum posenc_dtype type, const struct normed *heads, int64_t n_heads)
{
    const int64_t lanes = vf_lanes();
    float group[PARTIAL_SUMS * PARTIAL_SUMS];

    for (int64_t h = 0; h < n_heads; h++) {
        const void *x = heads->x + h * heads->x_step;
        vf_store(group + h * lanes, by_pairs(type, heads->dim)
                                        ? sum_squares_by_pairs(x, heads->dim)
                                        : sum_squares(type, x, heads->dim));
    }
    for (int64_t h = n_heads; h < lanes; h++)
        vf_store(group + h * lanes, vf_set1(0.0f));
    return add_across(group);
}

/* Returns the sum of all heads of a token, one after the other. */
SIMD_INLINE float sum_token(enum posenc_dtype type, struct normed heads, int64_t n_heads)
{
    const int64_t lanes = vf_lanes();
    float sums[PARTIAL_SUMS], sum = 0.0f;

    for (int64_t h = 0; h < n_heads; h += lanes, heads.x += lanes * heads.x_step) {
        const int64_t n = least(n_heads - h, lanes);
        vf_store(sums, sum_heads(type, &heads, n));
        for (int64_t k = 0; k < n; k++)
            sum += sums[k];
    }
    return sum;
}

/* One over the root mean square of n elements, from the sum of their squares. */
SIMD_INLINE vf inverse_root(vf sum, float n, float epsilon)
{
    vf mean = vf_div(sum, vf_set1(n));
    return vf_div(vf_set1(1.0f), vf_sqrt(vf_add(mean, vf_set1(epsilon))));
}

/* Returns the factors of head h for n channels from channel i on. */
SIMD_INLINE vf weights(const struct normed *heads, int64_t h, int64_t i, int64_t n)
{
    const float *weight = heads->weight + h * heads->weight_step;
    return vf_add(load_as(POSENC_F32, weight, i, n), vf_set1(heads->weight_offset));
}

/* n pairs of each head from pair i on. Where heads share their weights (`shared`) these stay in
 * registers, as the angles do. */
SIMD_INLINE void turn_normed(enum posenc_dtype type, bool shared, const struct normed *heads,
                             int64_t n_heads, const float *scales, int64_t i, int64_t n)
{
    /* copies: for all the compiler knows, a store through out could change the heads */
    const int64_t a = heads->offset + i, b = a + heads->pairs;
    const int64_t x_step = heads->x_step, out_step = heads->out_step;
    const char *x = heads->x;
    char *out = heads->out;
    vf c = load_as(heads->angles, heads->cosine, i, n);
    vf s = load_as(heads->angles, heads->sine, i, n);
    vf g0 = weights(heads, 0, a, n), g1 = weights(heads, 0, b, n);

    for (int64_t h = 0; h < n_heads; h++, x += x_step, out += out_step) {
        vf r = vf_set1(scales[h]);
        if (!shared) {
            g0 = weights(heads, h, a, n);
            g1 = weights(heads, h, b, n);
        }
        vf v0 = vf_mul(vf_mul(load_as(type, x, a, n), r), g0);
        vf v1 = vf_mul(vf_mul(load_as(type, x, b, n), r), g1);
        store_as(type, out, a, vf_cross(v0, c, v1, s), n);
        store_as(type, out, b, vf_fma(v1, c, vf_mul(v0, s)), n);
    }
}

/* Two whole vectors of pairs from i on of heads in bf16 that share their weights, with angles in
 * f32: even elements and odd ones apart (vf_load_bf16_pairs). */
SIMD_INLINE void turn_by_pairs(const struct normed *heads, int64_t n_heads, const float *scales,
                               int64_t i)
{
    const int64_t a = heads->offset + i, b = a + heads->pairs, lanes = vf_lanes();
    const int64_t x_step = heads->x_step, out_step = heads->out_step;
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
    for (int64_t h = 0; h < n_heads; h++, x += x_step, out += out_step) {
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

/* Channels [from, end), which do not turn. */
SIMD_INLINE void put_normed(enum posenc_dtype type, const struct normed *heads, int64_t n_heads,
                            const float *scales, int64_t from, int64_t end)
{
    for (int64_t h = 0; h < n_heads; h++)
        for (int64_t i = from; i < end; i += vf_lanes()) {
            const int64_t n = least(end - i, vf_lanes());
            vf x = load_as(type, heads->x + h * heads->x_step, i, n);
            vf value = vf_mul(vf_mul(x, vf_set1(scales[h])), weights(heads, h, i, n));
            store_as(type, heads->out + h * heads->out_step, i, value, n);
        }
}

SIMD_INLINE void put_group(enum posenc_dtype type, bool shared, const struct normed *heads,
                           int64_t n_heads, const float *scales)
{
    const int64_t lanes = vf_lanes();
    int64_t i = 0;

    put_normed(type, heads, n_heads, scales, 0, heads->offset);
    if (type == POSENC_BF16 && vf_pairs_bf16() && shared && heads->angles == POSENC_F32)
        for (; i + 2 * lanes <= heads->pairs; i += 2 * lanes)
            turn_by_pairs(heads, n_heads, scales, i);
    for (; i + lanes <= heads->pairs; i += lanes)
        turn_normed(type, shared, heads, n_heads, scales, i, lanes);
    if (i < heads->pairs)
        turn_normed(type, shared, heads, n_heads, scales, i, heads->pairs - i);
    put_normed(type, heads, n_heads, scales, heads->offset + 2 * heads->pairs, heads->dim);
}

/* ---- Calls ---- */

SIMD_INLINE void norm_token(enum posenc_dtype type, bool shared, struct normed heads,
                            const struct posenc_rope_qk_norm_args *args)
{
    const int64_t n_heads = args->x.shape[2], lanes = vf_lanes();
    const int64_t together = heads.far ? least(FAR_HEADS, lanes) : lanes;
    const bool across = args->across_heads;
    const float size = (float)(across ? n_heads * heads.dim : heads.dim);
    float scales[PARTIAL_SUMS];
    vf sum = vf_set1(across ? sum_token(type, heads, n_heads) : 0.0f);

    for (int64_t h = 0; h < n_heads; h += together) {
        const int64_t n = least(n_heads - h, together);
        if (!across)
            sum = sum_heads(type, &heads, n);
        vf_store(scales, inverse_root(sum, size, args->epsilon));
        put_group(type, shared, &heads, n, scales);
        heads.x += n * heads.x_step;
        heads.out += n * heads.out_step;
        heads.weight += n * heads.weight_step;
    }
}

SIMD_INLINE void norm_rows(enum posenc_dtype type, bool shared,
                           const struct posenc_rope_qk_norm_args *args)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t *shape = args->x.shape;
    struct normed heads = { .angles = args->cos.dtype,
                            .far = type == POSENC_F32 &&
                                   shape[0] * shape[1] * shape[2] * shape[3] > IN_CACHE / size,
                            .pairs = args->cos.shape[1],
                            .dim = args->x.shape[3],
                            .offset = args->rotary_offset,
                            .weight = args->weight.data,
                            .weight_step = args->weight.stride[0],
                            .weight_offset = args->weight_offset,
                            .x_step = args->x.stride[2] * size,
                            .out_step = args->out.stride[2] * size };

    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            const int64_t id = posenc_position(&args->positions, b, t);
            heads.cosine = input_at(&args->cos, id, 0, 0);
            heads.sine = input_at(&args->sin, id, 0, 0);
            heads.x = input_at(&args->x, b, t, 0);
            heads.out = row_at(&args->out, b, t, 0);
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
