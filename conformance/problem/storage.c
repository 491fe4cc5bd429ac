/*
 * Conversions between f32 and the 16-bit types, and rows of tensors (see storage.h).
 *
 * A finite value is n 2^q, where q is the exponent of its last place. Narrowing shifts n to the last place of the
 * narrow type and rounds by the bits shifted out. This one rule covers normal numbers, subnormals and the step
 * between them.
 */
#include "storage.h"

#include <assert.h>

/* Format of a 16-bit type: bits of the fraction, bias of the exponent, bits of infinity. */
struct float_format {
    int fraction, bias;
    uint32_t infinity;
};

static struct float_format format_of(enum posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_F16 ? (struct float_format){ 10, 15, 0x7c00 }
                                     : (struct float_format){ 7, 127, 0x7f80 };
}

size_t storage_size(enum posenc_dtype dtype) { return dtype == POSENC_DTYPE_F32 ? 4 : 2; }

/* Rounds a finite magnitude to the narrow type; both are bits. */
static inline uint32_t narrow_finite(struct float_format f, uint32_t magnitude)
{
    int exponent = (int)(magnitude >> 23);
    uint32_t n = exponent ? (magnitude & 0x7fffffu) | 0x800000u : magnitude;
    int from = (exponent ? exponent : 1) - 150; /* the value is n 2^from */
    int least = 1 - f.bias - f.fraction;        /* last place of a narrow subnormal */
    int to = from + 23 - f.fraction;            /* as many bits as the narrow type has */
    to = to < least ? least : to;
    int shift = to - from;
    if (shift > 24)
        return 0; /* below half of the least subnormal */
    uint32_t half = 1u << (shift - 1), rest = n & (2 * half - 1);
    n >>= shift;
    n += rest > half || (rest == half && n % 2 == 1);
    /* The implicit bit of a normal n adds 1 to the exponent. */
    uint32_t bits = ((uint32_t)(to - least) << f.fraction) + n;
    return bits < f.infinity ? bits : f.infinity;
}

/* Inline, so that each loop below is compiled for one constant format. */
static inline uint16_t narrow(struct float_format f, float value)
{
    const uint32_t bits = float_to_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t kept;
    if (magnitude < 0x7f800000u)
        kept = narrow_finite(f, magnitude);
    else if (magnitude == 0x7f800000u)
        kept = f.infinity;
    else
        kept =
            f.infinity | 1u << (f.fraction - 1) | (magnitude & 0x7fffffu) >> (23 - f.fraction);
    return (uint16_t)(bits >> 31 << 15 | kept);
}

/* Multiplies an integer below 2^11 by a power of two, which is exact in any rounding mode. */
static float of_f16(uint16_t narrow)
{
    const uint32_t exponent = narrow >> 10 & 31, fraction = narrow & 0x3ff;
    const uint32_t n = exponent ? fraction | 0x400 : fraction, last = exponent ? exponent : 1;
    const float finite = (float)n * bits_to_float((last + 127 - 25) << 23);
    return bits_to_float(
        (uint32_t)(narrow >> 15) << 31 |
        (exponent == 31 ? 0x7f800000 | fraction << 13 : float_to_bits(finite)));
}

static float widen(enum posenc_dtype dtype, uint16_t narrow)
{
    return dtype == POSENC_DTYPE_BF16 ? bits_to_float((uint32_t)narrow << 16) : of_f16(narrow);
}

float storage_get(enum posenc_dtype dtype, const void *row, int64_t i)
{
    return dtype == POSENC_DTYPE_F32 ? ((const float *)row)[i]
                                     : widen(dtype, ((const uint16_t *)row)[i]);
}

void storage_put(enum posenc_dtype dtype, void *row, int64_t i, float value)
{
    if (dtype == POSENC_DTYPE_F32)
        ((float *)row)[i] = value;
    else
        ((uint16_t *)row)[i] = narrow(format_of(dtype), value);
}

void storage_put_row(enum posenc_dtype dtype, void *row, int64_t n, const float *values)
{
    uint16_t *to = row;
    if (dtype == POSENC_DTYPE_F32 && n)
        memcpy(row, values, (size_t)n * sizeof *values);
    else if (dtype == POSENC_DTYPE_F16)
        for (int64_t i = 0; i < n; i++)
            to[i] = narrow(format_of(POSENC_DTYPE_F16), values[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = narrow(format_of(POSENC_DTYPE_BF16), values[i]);
}

void storage_round_row(enum posenc_dtype dtype, float *values, int64_t n)
{
    if (dtype == POSENC_DTYPE_F16)
        for (int64_t i = 0; i < n; i++)
            values[i] = of_f16(narrow(format_of(POSENC_DTYPE_F16), values[i]));
    else if (dtype == POSENC_DTYPE_BF16)
        for (int64_t i = 0; i < n; i++)
            values[i] =
                bits_to_float((uint32_t)narrow(format_of(POSENC_DTYPE_BF16), values[i]) << 16);
}

float storage_round(enum posenc_dtype dtype, float value)
{
    storage_round_row(dtype, &value, 1);
    return value;
}

int64_t storage_rows(const struct posenc_tensor *tensor)
{
    int64_t rows = 1;
    for (int d = 0; d + 1 < tensor->rank; d++)
        rows *= tensor->shape[d];
    return rows;
}

void *storage_row(const struct posenc_tensor *tensor, int64_t r)
{
    const int64_t *stride = tensor->stride, *shape = tensor->shape;
    const int last = tensor->rank - 2;
    int64_t at = 0;
    int d = last;
    while (d > 0 && stride[d - 1] == stride[d] * shape[d])
        d--;
    if (d == 0) /* rows at equal distances */
        at = r * stride[last];
    for (int k = last; d > 0 && k >= 0; k--) {
        at += r % shape[k] * stride[k];
        r /= shape[k];
    }
    return (char *)tensor->data + at * (int64_t)storage_size(tensor->dtype);
}

float *storage_row_f32(const struct posenc_tensor *tensor, int64_t r)
{
    assert(tensor->dtype == POSENC_DTYPE_F32);
    return storage_row(tensor, r);
}
