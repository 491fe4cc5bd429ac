/*
 * The bare loops of rotations (bare.h): angles that stay in registers, and nothing to look up.
 */
#ifndef POSENC_LOOPS_ROTATIONS_H
#define POSENC_LOOPS_ROTATIONS_H

#include "bare.h"
#include "impl/kernels/kernel.h"

enum { TURN_HEAD = 128 };

/* The pair i and half + i of a head, times a factor and a weight where it is `normed`. */
SIMD_INLINE void turn_pair(bool normed, float *dst, const float *src, int64_t i, int64_t half,
                           vf factor)
{
    const vf c = vf_set1(0.8f), s = vf_set1(0.6f), weight = vf_set1(1.5f);
    vf a = vf_keep(vf_load(src + i)), b = vf_keep(vf_load(src + half + i));

    if (normed) {
        a = vf_mul(vf_mul(a, factor), weight);
        b = vf_mul(vf_mul(b, factor), weight);
    }
    vf_store(dst + i, vf_cross(a, c, b, s));
    vf_store(dst + half + i, vf_fma(b, c, vf_mul(a, s)));
}

/* Of heads of 128: halves that lie 4 KiB apart look alike to a load that follows a store. */
SIMD_INLINE void turn(float *dst, const float *src, int64_t n)
{
    const int64_t w = vf_lanes(), half = TURN_HEAD / 2;

    for (int64_t h = 0; h + TURN_HEAD <= n; h += TURN_HEAD)
        for (int64_t i = 0; i + w <= half; i += w)
            turn_pair(false, dst + h, src + h, i, half, vf_set1(1.0f));
}

/* A vector of interleaved pairs. */
SIMD_INLINE vf turned_pairs(const float *src)
{
    const vf c = vf_set1(0.8f), s = vf_zip_lo(vf_set1(-0.6f), vf_set1(0.6f));
    const vf both = vf_keep(vf_load(src));

    return vf_fma(both, c, vf_mul(vf_swap_pairs(both), s));
}

SIMD_INLINE void pairs(float *dst, const float *src, int64_t n)
{
    const int64_t w = vf_lanes();

    for (int64_t i = 0; w == 1 && i + 2 <= n; i += 2)
        turn_pair(false, dst + i, src + i, 0, 1, vf_set1(1.0f));
    for (int64_t i = 0; w > 1 && i + 2 * w <= n; i += 2 * w) {
        const vf a = turned_pairs(src + i), b = turned_pairs(src + i + w);

        vf_store(dst + i, a);
        vf_store(dst + i + w, b);
    }
}

/* Squares are added in as many sums as a head of 128 has, and heads are as long as steps. */
SIMD_INLINE void norm(float *dst, const float *src, int64_t n)
{
    const int64_t w = vf_lanes(), half = BARE_STEP / 2;

    for (int64_t h = 0; h + BARE_STEP <= n; h += BARE_STEP) {
        vf a = vf_set1(0.0f), b = a, c = a, d = a;

        for (int64_t i = h; i < h + BARE_STEP; i += 4 * w) {
            vf x = vf_load(src + i), y = vf_load(src + i + w);
            vf z = vf_load(src + i + 2 * w), u = vf_load(src + i + 3 * w);

            a = vf_fma(x, x, a);
            b = vf_fma(y, y, b);
            c = vf_fma(z, z, c);
            d = vf_fma(u, u, d);
        }
        vf factor = vf_sqrt(vf_add(vf_add(a, b), vf_add(c, d)));
        for (int64_t i = 0; i + w <= half; i += w)
            turn_pair(true, dst + h, src + h, i, half, factor);
    }
}

#endif
