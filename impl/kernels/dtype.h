/*
 * Loads and stores of tensor elements: f32, f16 or bf16 in memory (enum posenc_dtype), f32 in registers.
 *
 * `type` is a compile-time constant after inlining: a kernel chooses it once outside its loops (FOR_TYPE), and each of
 * these functions becomes one load or store. The plain loops use the scalar functions; the vector functions below exist
 * only where a backend has chosen its primitives (POSENC_SIMD).
 */
#ifndef POSENC_KERNELS_DTYPE_H
#define POSENC_KERNELS_DTYPE_H

#include "impl/internal.h"
#include "impl/simd/half.h"

#define DTYPE_INLINE POSENC_PART

/* Code for f32 and f16 outputs. A backend that takes these kernels from another ISA leaves it out (backend.h). */
#ifdef POSENC_F32_ISA
#define IF_F32_F16(...)
#else
#define IF_F32_F16(...) __VA_ARGS__
#endif

/* Calls function(type, ...) with a constant type. Compilers inline the function three times, once per dtype. */
#define FOR_TYPE(dtype, function, ...)                                                         \
    do {                                                                                       \
        (void)(dtype);                                                                         \
        IF_F32_F16(if ((dtype) == POSENC_DTYPE_F32) function(POSENC_DTYPE_F32, __VA_ARGS__);   \
                   else)                                                                       \
        IF_F32_F16(if ((dtype) == POSENC_DTYPE_F16) function(POSENC_DTYPE_F16, __VA_ARGS__);   \
                   else)                                                                       \
        function(POSENC_DTYPE_BF16, __VA_ARGS__);                                              \
    } while (0)

/* Return the address of element 0 of row (i0, i1, i2) of an output and of an input of rank 4. */
DTYPE_INLINE void *output_row(const struct posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2)
{
    int64_t at = i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
    return (char *)t->data + at * (int64_t)posenc_dtype_size(t->dtype);
}

DTYPE_INLINE const void *input_row(const struct posenc_const_tensor *t, int64_t i0, int64_t i1,
                                   int64_t i2)
{
    int64_t at = i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
    return (const char *)t->data + at * (int64_t)posenc_dtype_size(t->dtype);
}

/* Convert element i of a row to f32, and from it. */
DTYPE_INLINE float posenc_get(enum posenc_dtype type, const void *row, int64_t i)
{
    switch (type) {
    case POSENC_DTYPE_F16:
        return f32_from_f16(((const uint16_t *)row)[i]);
    case POSENC_DTYPE_BF16:
        return f32_from_bf16(((const uint16_t *)row)[i]);
    case POSENC_DTYPE_F32:
        break;
    }
    return ((const float *)row)[i];
}

DTYPE_INLINE void posenc_put(enum posenc_dtype type, void *row, int64_t i, float value)
{
    switch (type) {
    case POSENC_DTYPE_F32:
        ((float *)row)[i] = value;
        break;
    case POSENC_DTYPE_F16:
        ((uint16_t *)row)[i] = f16_from_f32(value);
        break;
    case POSENC_DTYPE_BF16:
        ((uint16_t *)row)[i] = bf16_from_f32(value);
        break;
    }
}

#ifdef POSENC_SIMD
#include "impl/simd/simd.h"

/* Prefetches the cache line that is `bytes` from p, which may lie outside of the array (hence the integer
 * arithmetic). gcc drops the prefetch unless the function is always inlined. */
SIMD_INLINE void prefetch_at(const void *p, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)bytes));
}

/* Prefetches a line further on in a sequential read, on CPUs where this helps the hardware prefetcher. */
SIMD_INLINE void prefetch_in_order(const void *p, int64_t bytes)
{
    if (posenc_prefetch_enabled)
        prefetch_at(p, bytes);
}

/* Load and store elements i to i + n - 1, n <= lanes. If n is known to be all lanes, this is one instruction. */
SIMD_INLINE vf load_as(enum posenc_dtype type, const void *row, int64_t i, int64_t n)
{
    const uint16_t *half = (const uint16_t *)row + i;
    bool whole = n == vf_lanes();

    switch (type) {
    case POSENC_DTYPE_F16:
        return whole ? vf_load_f16(half) : vf_load_f16_n(half, n);
    case POSENC_DTYPE_BF16:
        return whole ? vf_load_bf16(half) : vf_load_bf16_n(half, n);
    case POSENC_DTYPE_F32:
        break;
    }
    return whole ? vf_load((const float *)row + i) : vf_load_n((const float *)row + i, n);
}

SIMD_INLINE void store_f16(uint16_t *p, vf v, int64_t n)
{
    if (n == vf_lanes())
        vf_store_f16(p, v);
    else
        vf_store_f16_n(p, v, n);
}
SIMD_INLINE void store_bf16(uint16_t *p, vf v, int64_t n)
{
    if (n == vf_lanes())
        vf_store_bf16(p, v);
    else
        vf_store_bf16_n(p, v, n);
}
SIMD_INLINE void store_f32(float *p, vf v, int64_t n)
{
    if (n == vf_lanes())
        vf_store(p, v);
    else
        vf_store_n(p, v, n);
}
SIMD_INLINE void store_as(enum posenc_dtype type, void *row, int64_t i, vf v, int64_t n)
{
    switch (type) {
    case POSENC_DTYPE_F32:
        store_f32((float *)row + i, v, n);
        break;
    case POSENC_DTYPE_F16:
        store_f16((uint16_t *)row + i, v, n);
        break;
    case POSENC_DTYPE_BF16:
        store_bf16((uint16_t *)row + i, v, n);
        break;
    }
}
#endif

#endif
