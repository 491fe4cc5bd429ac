/*
 * How elements are stored, as conformance sees it: IEEE 754 binary16 and bfloat16 (the upper
 * half of a binary32) from integer arithmetic and exact products, so that neither the rounding
 * mode nor a CPU's flush-to-zero can change what a test expects.  Shares no code with impl.
 */
#ifndef POSENC_STORAGE_H
#define POSENC_STORAGE_H

#include <posenc.h>

#include <string.h>

size_t storage_size(enum posenc_dtype dtype); /* bytes of an element */

/* The 32 bits of an f32, and the f32 of those. */
static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The nearest value of the type, ties to even; beyond the largest one an infinity; NaN stays
 * NaN.  POSENC_F32: the value itself. */
float round_to(enum posenc_dtype dtype, float value);
void round_row(enum posenc_dtype dtype, float *values, int64_t n); /* each in its place */

/* The same as the 16 bits of POSENC_F16 or POSENC_BF16 (a quiet NaN with the sign and the upper
 * payload), and from them, which is exact. */
uint16_t storage_narrow(enum posenc_dtype dtype, float value);
float storage_widen(enum posenc_dtype dtype, uint16_t narrow);

/* Element i of a row of any type; n of them from the first on. */
float storage_get(enum posenc_dtype dtype, const void *row, int64_t i);
void storage_put(enum posenc_dtype dtype, void *row, int64_t i, float value);
void storage_put_row(enum posenc_dtype dtype, void *row, int64_t n, const float *values);

/* An input as the owner of its memory sees it: the two kinds of tensor are alike member for
 * member, and whoever made a call may also write what its kernel only reads.  (What includes
 * this is compiled without assumptions about such casts.) */
static inline struct posenc_tensor *owned(const struct posenc_const_tensor *input)
{
    return (struct posenc_tensor *)(uintptr_t)input;
}

/* Row r of a tensor of any type and rank, rows counted over all dimensions but the last. */
void *storage_row(const struct posenc_tensor *tensor, int64_t r);
float *tensor_row(const struct posenc_tensor *tensor, int64_t r); /* of f32 alone */
int64_t storage_rows(const struct posenc_tensor *tensor);

#endif
