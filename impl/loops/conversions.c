/*
 * The loops of conversions.h for one instruction set.  POSENC_SIMD, POSENC_ISA and flags are those
 * that impl/meson.build has for a backend.
 */
#include "conversions.h"
#include "impl/kernels/storage.h"

#define LOOP_OF(type, isa) CONVERSION(type, isa)
#define LOOP(type)         LOOP_OF(type, POSENC_ISA)

/* Rounded in the loop: nothing is gained by doing so before it. */
SIMD_INLINE vf rounded(int64_t i) { return vf_from_vd(vd_load(conversion_source + i % 64)); }

/* What is stored where nothing is read. */
SIMD_INLINE vf made(const float *wide, int64_t i)
{
    return wide ? vf_load(wide + i % 64) : rounded(i);
}

SIMD_INLINE vf taken(enum posenc_dtype type, const void *src, const float *wide, int64_t i,
                     int64_t n)
{
    vf value = src ? load_as(type, src, i, n) : made(wide, i);
    return src && type == POSENC_F32 ? vf_add(value, rounded(i)) : value;
}

/* Four vectors at a time, all read before one is written. */
SIMD_INLINE void convert(enum posenc_dtype type, void *dst, const void *src, const float *wide,
                         int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;

    for (; i + 4 * w <= n; i += 4 * w) {
        vf a = vf_keep(taken(type, src, wide, i, w)),
           b = vf_keep(taken(type, src, wide, i + w, w));
        vf c = vf_keep(taken(type, src, wide, i + 2 * w, w));
        vf d = vf_keep(taken(type, src, wide, i + 3 * w, w));
        store_as(type, dst, i, a, w);
        store_as(type, dst, i + w, b, w);
        store_as(type, dst, i + 2 * w, c, w);
        store_as(type, dst, i + 3 * w, d, w);
    }
    for (; i < n; i += w) {
        const int64_t part = n - i < w ? n - i : w;
        store_as(type, dst, i, taken(type, src, wide, i, part), part);
    }
}

LOOP(from_f64)
{
    (void)wide;
    convert(POSENC_F32, dst, src, NULL, (int64_t)n);
}

LOOP(f16) { convert(POSENC_F16, dst, src, wide, 2 * (int64_t)n); }

/* By pairs of neighbours where that takes less time; of numbers that are made these are any two. */
LOOP(bf16)
{
    const int64_t w = vf_lanes(), all = 2 * (int64_t)n;
    int64_t i = 0;

    for (; vf_pairs_bf16() && i + 2 * w <= all; i += 2 * w) {
        vf even = made(wide, i), odd = made(wide, i + w);
        if (src)
            vf_load_bf16_pairs((const uint16_t *)src + i, &even, &odd);
        vf_store_bf16_pairs((uint16_t *)dst + i, even, odd);
    }
    convert(POSENC_BF16, (uint16_t *)dst + i, src ? (const uint16_t *)src + i : NULL, wide,
            all - i);
}
