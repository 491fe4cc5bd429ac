/*
 * What a call must convert, and nothing else: its limit where memory is not.  Tables are made in
 * f64, elements of 16 bits are widened and rounded.  One object for each instruction set that has
 * the primitives of impl/simd.
 */
#include "roofs.h"
#include "impl/kernels/storage.h"

#define STRING_OF(name) #name
#define STRING(name)    STRING_OF(name)
#define JOINED(a, b)    a##b
#define JOIN(a, b)      JOINED(a, b)

static bool runs(void)
{
    const struct posenc_backend *backend = posenc_backend_find(STRING(POSENC_ISA));
    return backend && !posenc_backend_obstacle(backend);
}

/* f64 numbers that stay in the L1 cache, rounded: nothing is gained by doing so before the loop. */
SIMD_INLINE vf rounded(int64_t i) { return vf_from_vd(vd_load(roof_source + i % 64)); }

/* `n` elements: those of src, of which none is there where a call only writes, or on top of it. */
SIMD_INLINE void convert(enum posenc_dtype type, void *dst, const void *src, int64_t n)
{
    const int64_t w = vf_lanes();

    for (int64_t i = 0; i < n; i += w) {
        const int64_t part = n - i < w ? n - i : w;
        vf value = src ? load_as(type, src, i, part) : rounded(i);
        if (src && type == POSENC_F32)
            value = vf_add(value, rounded(i));
        store_as(type, dst, i, value, part);
    }
}

static void from_f64(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    convert(POSENC_F32, dst, src, (int64_t)n);
}

static void f16(float *dst, const float *src, const float *add, size_t n)
{
    (void)add;
    convert(POSENC_F16, dst, src, 2 * (int64_t)n);
}

/* By pairs of neighbours where that takes less time; of numbers of f64 these are any two. */
static void bf16(float *dst, const float *src, const float *add, size_t n)
{
    const int64_t w = vf_lanes(), all = 2 * (int64_t)n;
    int64_t i = 0;

    (void)add;
    for (; vf_pairs_bf16() && i + 2 * w <= all; i += 2 * w) {
        vf even = rounded(i), odd = rounded(i + w);
        if (src)
            vf_load_bf16_pairs((const uint16_t *)src + i, &even, &odd);
        vf_store_bf16_pairs((uint16_t *)dst + i, even, odd);
    }
    convert(POSENC_BF16, (uint16_t *)dst + i, src ? (const uint16_t *)src + i : NULL, all - i);
}

const struct roof_variant JOIN(conversions_, POSENC_ISA)[CONVERSION_COUNT] = {
    { ROOF_FROM_F64, STRING(POSENC_ISA), from_f64, runs },
    { ROOF_F16, STRING(POSENC_ISA), f16, runs },
    { ROOF_BF16, STRING(POSENC_ISA), bf16, runs },
};
