/* Elements in memory: conversions between f32 and IEEE 754 binary16 or bfloat16 (the upper half of a binary32), and
 * rows of tensors. Conversions use integer arithmetic and exact products, so that neither the rounding mode nor
 * flush-to-zero can change an expected value. They share no code with impl. */
#ifndef POSENC_STORAGE_H
#define POSENC_STORAGE_H

#include <posenc/backend.h>
#include <posenc/experimental.h>

#include <string.h>

size_t storage_size(enum posenc_dtype dtype); /* bytes of an element */

/* Return the bits of an f32 or f64, and the number that has these bits. */
static inline uint32_t float_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float bits_to_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline uint64_t double_to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline double bits_to_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Return the nearest value of the type, ties to even; infinity above the largest one; for NaN a quiet NaN with its sign
 * and upper payload. POSENC_DTYPE_F32 changes nothing. The second rounds n values in place. */
float storage_round(enum posenc_dtype dtype, float value);
void storage_round_row(enum posenc_dtype dtype, float *values, int64_t n);

/* Read and write element i of a row of any type; the last writes elements 0 to n - 1. */
float storage_get(enum posenc_dtype dtype, const void *row, int64_t i);
void storage_put(enum posenc_dtype dtype, void *row, int64_t i, float value);
void storage_put_row(enum posenc_dtype dtype, void *row, int64_t n, const float *values);

/* Returns an input tensor as a writable one, for code that owns its memory. Both structs have the same members, and
 * programs that use this are compiled without strict aliasing. */
static inline struct posenc_tensor *storage_as_writable(const struct posenc_const_tensor *input)
{
    return (struct posenc_tensor *)(uintptr_t)input;
}

/* Return row r of a tensor of any type or of f32, and the number of rows. Rows are counted over all dimensions but
 * the last. */
void *storage_row(const struct posenc_tensor *tensor, int64_t r);
float *storage_row_f32(const struct posenc_tensor *tensor, int64_t r);
int64_t storage_rows(const struct posenc_tensor *tensor);

#endif
