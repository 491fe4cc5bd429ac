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

SIMD_INLINE void convert(enum posenc_dtype type, void *dst, const void *src, const float *wide,
                         int64_t n)
{
    const int64_t w = vf_lanes();

    for (int64_t i = 0; i < n; i += w) {
        const int64_t part = n - i < w ? n - i : w;
        vf value = src ? load_as(type, src, i, part) : made(wide, i);
        if (src && type == POSENC_F32)
            value = vf_add(value, rounded(i));
        store_as(type, dst, i, value, part);
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
