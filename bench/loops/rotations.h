/*
 * Lower-bound loops of rotations, a part of bounds.c: (a, b) becomes (c a - s b, c b + s a). Cosine c = 0.8 and sine
 * s = 0.6 stay in registers, as for a token of many heads. `type` is the element type of dst and src, n the number of
 * elements.
 */
#include "impl/kernels/kernel.h"

enum { HEAD_CHANNELS = 128 };

/* Rotates pairs, whose first elements are a and whose second elements are b. */
SIMD_INLINE void rotate_vectors(vf a, vf b, vf *first, vf *second)
{
    const vf c = vf_set1(0.8f), s = vf_set1(0.6f);
    *first = vf_cross(a, c, b, s);
    *second = vf_fma(b, c, vf_mul(a, s));
}

/* Rotates a vector of pairs: first elements from i on, second ones from j on. If `normed`, multiplies them by a factor
 * and a weight before. */
SIMD_INLINE void rotate_pair(enum posenc_dtype type, bool normed, void *dst, const void *src,
                             int64_t i, int64_t j, vf factor)
{
    const int64_t w = vf_lanes();
    const vf weight = vf_set1(1.5f);
    vf a = vf_pin(load_as(type, src, i, w)), b = vf_pin(load_as(type, src, j, w));
    if (normed) {
        a = vf_mul(vf_mul(a, factor), weight);
        b = vf_mul(vf_mul(b, factor), weight);
    }
    rotate_vectors(a, b, &a, &b);
    store_as(type, dst, i, a, w);
    store_as(type, dst, j, b, w);
}

/* Rotates two vectors of each half in bf16; even and odd elements are loaded separately. */
SIMD_INLINE void rotate_even_and_odd(uint16_t *dst, const uint16_t *src, int64_t half)
{
    vf even_a, even_b, odd_a, odd_b;
    vf_load_bf16_pairs(src, &even_a, &odd_a);
    vf_load_bf16_pairs(src + half, &even_b, &odd_b);
    rotate_vectors(even_a, even_b, &even_a, &even_b);
    rotate_vectors(odd_a, odd_b, &odd_a, &odd_b);
    vf_store_bf16_pairs(dst, even_a, odd_a);
    vf_store_bf16_pairs(dst + half, even_b, odd_b);
}

/* Rotates halves of heads. Heads have 128 channels, so that halves are not 4 KiB apart (4 KiB aliasing). */
SIMD_INLINE void rotate_halves_as(enum posenc_dtype type, void *dst, const void *src, int64_t n)
{
    const int64_t w = vf_lanes(), half = HEAD_CHANNELS / 2;
    const bool in_pairs = type == POSENC_DTYPE_BF16 && vf_prefers_bf16_pairs() && 2 * w <= half;
    for (int64_t h = 0; h + HEAD_CHANNELS <= n; h += HEAD_CHANNELS) {
        for (int64_t i = h; in_pairs && i + 2 * w <= h + half; i += 2 * w)
            rotate_even_and_odd((uint16_t *)dst + i, (const uint16_t *)src + i, half);
        for (int64_t i = h; !in_pairs && i + w <= h + half; i += w)
            rotate_pair(type, false, dst, src, i, half + i, vf_set1(1.0f));
    }
}

/* Rotates a vector of interleaved pairs, from element i on. */
SIMD_INLINE vf rotated_pairs(enum posenc_dtype type, const void *src, int64_t i)
{
    const vf c = vf_set1(0.8f), s = vf_zip_lo(vf_set1(-0.6f), vf_set1(0.6f));
    const vf both = vf_pin(load_as(type, src, i, vf_lanes()));
    return vf_fma(both, c, vf_mul(vf_swap_pairs(both), s));
}

/* Rotates two vectors of pairs; in bf16 even and odd elements are loaded separately. */
SIMD_INLINE void rotate_two_vectors(enum posenc_dtype type, void *dst, const void *src,
                                    int64_t i)
{
    const int64_t w = vf_lanes();
    vf a, b;
    if (type == POSENC_DTYPE_BF16 && vf_prefers_bf16_pairs()) {
        vf_load_bf16_pairs((const uint16_t *)src + i, &a, &b);
        rotate_vectors(a, b, &a, &b);
        vf_store_bf16_pairs((uint16_t *)dst + i, a, b);
        return;
    }
    a = rotated_pairs(type, src, i);
    b = rotated_pairs(type, src, i + w);
    store_as(type, dst, i, a, w);
    store_as(type, dst, i + w, b, w);
}

/* Rotates interleaved pairs. */
SIMD_INLINE void rotate_pairs_as(enum posenc_dtype type, void *dst, const void *src, int64_t n)
{
    const int64_t w = vf_lanes();
    for (int64_t i = 0; w == 1 && i + 2 <= n; i += 2)
        rotate_pair(type, false, dst, src, i, i + 1, vf_set1(1.0f));
    for (int64_t i = 0; w > 1 && i + 2 * w <= n; i += 2 * w)
        rotate_two_vectors(type, dst, src, i);
}

/* Normalises heads of BOUND_STEP floats and rotates their halves. Sums squares in four vectors, as for a head of 128
 * channels. The factor of each lane is the root of its sum. */
SIMD_INLINE void normalize(float *dst, const float *src, int64_t n)
{
    const int64_t w = vf_lanes(), half = BOUND_STEP / 2;
    for (int64_t h = 0; h + BOUND_STEP <= n; h += BOUND_STEP) {
        vf a = vf_set1(0.0f), b = a, c = a, d = a;
        for (int64_t i = h; i < h + BOUND_STEP; i += 4 * w) {
            vf x = vf_load(src + i), y = vf_load(src + i + w);
            vf z = vf_load(src + i + 2 * w), u = vf_load(src + i + 3 * w);
            a = vf_fma(x, x, a);
            b = vf_fma(y, y, b);
            c = vf_fma(z, z, c);
            d = vf_fma(u, u, d);
        }
        vf factor = vf_sqrt(vf_add(vf_add(a, b), vf_add(c, d)));
        for (int64_t i = 0; i + w <= half; i += w)
            rotate_pair(POSENC_DTYPE_F32, true, dst, src, h + i, h + half + i, factor);
    }
}
