/*
 * Elements as they are stored (enum posenc_dtype) and as kernels compute with them: f32.
 *
 * `type` is meant to be a constant once the caller is inlined: a kernel decides once, outside
 * its loops, and what is left of these functions is one load or store. The second part is
 * there where a backend has named its primitives (POSENC_SIMD).
 */
#ifndef POSENC_KERNELS_STORAGE_H
#define POSENC_KERNELS_STORAGE_H

#include "impl/internal.h"
#include "impl/simd/half.h"

#define STORAGE_INLINE POSENC_PART

/* Code for outputs of f32 and f16: none if another ISA has these kernels (backend.h). */
#ifdef POSENC_F32_ISA
#define IF_F32(...)
#else
#define IF_F32(...) __VA_ARGS__
#endif

/* Calls function(type, ...) with a type that is a constant: the body of an inline function stands
 * there three times, each with loads and stores of one kind. */
#define FOR_TYPE(dtype, function, ...)                                                         \
    do {                                                                                       \
        (void)(dtype);                                                                         \
        IF_F32(if ((dtype) == POSENC_F32) function(POSENC_F32, __VA_ARGS__); else)             \
        IF_F32(if ((dtype) == POSENC_F16) function(POSENC_F16, __VA_ARGS__); else)             \
        function(POSENC_BF16, __VA_ARGS__);                                                    \
    } while (0)

/* Element 0 of a row of a rank-4 output of any type, */
STORAGE_INLINE void *row_at(const struct posenc_tensor *t, int64_t i0, int64_t i1, int64_t i2)
{
    int64_t at = i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
    return (char *)t->data + at * (int64_t)posenc_dtype_size(t->dtype);
}

/* and of an input. */
STORAGE_INLINE const void *input_at(const struct posenc_const_tensor *t, int64_t i0, int64_t i1,
                                    int64_t i2)
{
    int64_t at = i0 * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
    return (const char *)t->data + at * (int64_t)posenc_dtype_size(t->dtype);
}

STORAGE_INLINE float posenc_get(enum posenc_dtype type, const void *row, int64_t i)
{
    switch (type) {
    case POSENC_F16:
        return f32_from_f16(((const uint16_t *)row)[i]);
    case POSENC_BF16:
        return f32_from_bf16(((const uint16_t *)row)[i]);
    case POSENC_F32:
        break;
    }
    return ((const float *)row)[i];
}

STORAGE_INLINE void posenc_put(enum posenc_dtype type, void *row, int64_t i, float value)
{
    switch (type) {
    case POSENC_F32:
        ((float *)row)[i] = value;
        break;
    case POSENC_F16:
        ((uint16_t *)row)[i] = f16_from_f32(value);
        break;
    case POSENC_BF16:
        ((uint16_t *)row)[i] = bf16_from_f32(value);
        break;
    }
}

#ifdef POSENC_SIMD
#include "impl/simd/simd.h"

/* Asks for the line that is so many bytes from p on to be brought near. No pointer: it may leave the array.
 * (As a function that is not always inlined gcc leaves it out: it seems to have no effect.) */
SIMD_INLINE void ask_for(const void *p, int64_t bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)bytes));
}

/* The same of a line that follows p in the order in which memory is read, where this CPU brings such lines
 * sooner when it is asked to. */
SIMD_INLINE void ask_ahead(const void *p, int64_t bytes)
{
    if (posenc_prefetch_enabled)
        ask_for(p, bytes);
}

/* Elements i ... i + n - 1, n at most the lanes: with all of them known at compile time, one
 * whole vector. */
SIMD_INLINE vf load_as(enum posenc_dtype type, const void *row, int64_t i, int64_t n)
{
    const uint16_t *half = (const uint16_t *)row + i;
    bool whole = n == vf_lanes();

    switch (type) {
    case POSENC_F16:
        return whole ? vf_load_f16(half) : vf_load_f16_n(half, n);
    case POSENC_BF16:
        return whole ? vf_load_bf16(half) : vf_load_bf16_n(half, n);
    case POSENC_F32:
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
    case POSENC_F32:
        store_f32((float *)row + i, v, n);
        break;
    case POSENC_F16:
        store_f16((uint16_t *)row + i, v, n);
        break;
    case POSENC_BF16:
        store_bf16((uint16_t *)row + i, v, n);
        break;
    }
}
#endif

#endif
