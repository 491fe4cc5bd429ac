/* Lower-bound loops of conversions, a part of bounds.c: tables from f64 to f32, elements of 16 bits to f32 and back. */
#include "impl/kernels/dtype.h"

/* Numbers of a table before rounding: eight values repeated, for vectors of any length. */
#define EIGHT 0.7, -0.71, 0.72, -0.73, 0.74, -0.75, 0.76, -0.77
#define FORTY EIGHT, EIGHT, EIGHT, EIGHT, EIGHT
static const double conversion_source[128] = { FORTY, FORTY, FORTY, EIGHT };
#undef FORTY
#undef EIGHT

/* Returns numbers of a table, rounded from f64. */
SIMD_INLINE vf load_rounded_constants(int64_t i)
{
    return vf_from_vd(vd_load(conversion_source + i % 64));
}

/* Returns computed numbers: those at `wide` in f32, or numbers in f64 that are rounded. */
SIMD_INLINE vf load_constants(const float *wide, int64_t i)
{
    return wide ? vf_load(wide + i % 64) : load_rounded_constants(i);
}

/* Returns the elements at src + i, plus those of a table in f32; without src, computed numbers. */
SIMD_INLINE vf load_or_constants(enum posenc_dtype type, const void *src, const float *wide,
                                 int64_t i, int64_t n)
{
    vf value = src ? load_as(type, src, i, n) : load_constants(wide, i);
    return src && type == POSENC_DTYPE_F32 ? vf_add(value, load_rounded_constants(i)) : value;
}

/* Converts four vectors at a time, after reading all of them. */
SIMD_INLINE void convert(enum posenc_dtype type, void *dst, const void *src, const float *wide,
                         int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;

    for (; i + 4 * w <= n; i += 4 * w) {
        vf a = vf_pin(load_or_constants(type, src, wide, i, w)),
           b = vf_pin(load_or_constants(type, src, wide, i + w, w));
        vf c = vf_pin(load_or_constants(type, src, wide, i + 2 * w, w));
        vf d = vf_pin(load_or_constants(type, src, wide, i + 3 * w, w));
        store_as(type, dst, i, a, w);
        store_as(type, dst, i + w, b, w);
        store_as(type, dst, i + 2 * w, c, w);
        store_as(type, dst, i + 3 * w, d, w);
    }
    for (; i < n; i += w) {
        const int64_t part = n - i < w ? n - i : w;
        store_as(type, dst, i, load_or_constants(type, src, wide, i, part), part);
    }
}

/* Converts pairs of adjacent elements where that is faster. */
SIMD_INLINE void convert_bf16(uint16_t *dst, const uint16_t *src, const float *wide, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = 0;

    for (; vf_prefers_bf16_pairs() && i + 2 * w <= n; i += 2 * w) {
        vf even = load_constants(wide, i), odd = load_constants(wide, i + w);
        if (src)
            vf_load_bf16_pairs(src + i, &even, &odd);
        vf_store_bf16_pairs(dst + i, even, odd);
    }
    convert(POSENC_DTYPE_BF16, dst + i, src ? src + i : NULL, wide, n - i);
}
