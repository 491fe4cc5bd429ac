/*
 * Mistakes of storage in 16 bits that any kernel can make: the real kernel, in f32, between
 * loads and stores that are not those of IEEE 754.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>

/* Whether the magnitude of 16 bits is below the least normal number. */
static bool is_subnormal(enum posenc_dtype dtype, uint16_t bits)
{
    return (bits & (dtype == POSENC_F16 ? 0x7c00 : 0x7f80)) == 0;
}

/* ---- Stores ---- */

uint16_t truncated(enum posenc_dtype dtype, float value)
{
    const uint16_t nearest = storage_narrow(dtype, value);
    return fabsf(storage_widen(dtype, nearest)) > fabsf(value) ? nearest - 1 : nearest;
}

uint16_t saturated(enum posenc_dtype dtype, float value)
{
    const uint16_t nearest = storage_narrow(dtype, value);
    return isinf(storage_widen(dtype, nearest)) && !isinf(value) ? nearest - 1 : nearest;
}

uint16_t flushed(enum posenc_dtype dtype, float value)
{
    const uint16_t nearest = storage_narrow(dtype, value);
    return is_subnormal(dtype, nearest) ? nearest & 0x8000 : nearest;
}

/* To 11 bits first, then to as many as a subnormal of f16 has. */
uint16_t rounded_in_steps(enum posenc_dtype dtype, float value)
{
    const uint32_t bits = bits_of(value), up = 0xfffu + (bits >> 13 & 1u);
    return storage_narrow(dtype, isfinite(value) ? of_bits((bits + up) & ~0x1fffu) : value);
}

uint16_t through_the_other(enum posenc_dtype dtype, float value)
{
    return storage_narrow(dtype,
                          round_to(dtype == POSENC_F16 ? POSENC_BF16 : POSENC_F16, value));
}

/* bf16 by one addition: ties go away from zero. */
uint16_t half_added(enum posenc_dtype dtype, float value)
{
    return isnan(value) ? storage_narrow(dtype, value)
                        : (uint16_t)((bits_of(value) + 0x8000u) >> 16);
}

/* bf16 to nearest even without a look at NaN: one with all payload bits becomes -0, others an
 * infinity. */
uint16_t nan_not_seen(enum posenc_dtype dtype, float value)
{
    const uint32_t bits = bits_of(value);
    (void)dtype;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* ---- Loads ---- */

float read_flushed(enum posenc_dtype dtype, uint16_t bits)
{
    return is_subnormal(dtype, bits) ? of_bits((uint32_t)(bits & 0x8000) << 16)
                                     : storage_widen(dtype, bits);
}

/* f16 whose largest exponent is one like the others: infinity is 65536. */
float read_finite(enum posenc_dtype dtype, uint16_t bits)
{
    if ((bits & 0x7c00) != 0x7c00)
        return storage_widen(dtype, bits);
    return of_bits((uint32_t)(bits & 0x8000) << 16 | 143u << 23 |
                   (uint32_t)(bits & 0x3ff) << 13);
}
