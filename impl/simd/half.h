/*
 * Conversions between f32 and the 16-bit types, in plain C: f16 (IEEE 754 binary16: 5 bits of exponent, 10 of fraction)
 * and bf16 (the upper half of a binary32). Conversion to f32 is exact; conversion from it rounds once, to nearest even.
 * The primitives of simd.h give the same bits, except that a NaN may become any quiet NaN.
 *
 * The code has no branches and no calls, so that compilers vectorise loops over it. A NaN narrows to a quiet NaN with
 * its sign and the upper bits of its payload.
 */
#ifndef POSENC_SIMD_HALF_H
#define POSENC_SIMD_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t posenc_f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float posenc_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Places f16's exponent and fraction at those of f32. The exponents' biases differ by 112, so the result is too
 * small by 2^112, and the product with 2^112 is exact, subnormals included. Infinity and NaN then still need an
 * exponent of all ones. */
static inline float f32_from_f16(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t bits = posenc_f32_bits(posenc_f32_from_bits(magnitude) * 0x1p112f);

    return posenc_f32_from_bits(bits | sign | (magnitude >= 0x0f800000 ? 0x7f800000 : 0));
}

/* Rounds by the addition of a power of two whose sum has its last place where f16 has it. The excess of the sum's
 * bits over the power's bits counts such places: 1024 to 2048, or 0 to 1024 below 2^-14, where the last place stays
 * 2^-24. Carries into the exponent, up to infinity, are right by addition. */
static inline uint16_t f16_from_f32(float x)
{
    uint32_t bits = posenc_f32_bits(x), magnitude = bits & 0x7fffffff;
    uint32_t capped = magnitude < 0x47800000 ? magnitude : 0x47800000; /* 2^16: infinity */
    uint32_t exponent = capped >> 23 > 113 ? capped >> 23 : 113; /* at least that of 2^-14 */
    uint32_t power = (exponent + 13) << 23;
    uint32_t sum = posenc_f32_bits(posenc_f32_from_bits(capped) + posenc_f32_from_bits(power));
    uint32_t half = ((exponent - 113) << 10) + (sum - power);

    uint32_t nan = magnitude > 0x7f800000 ? 0x200 | (bits >> 13 & 0x1ff) : 0;

    return (uint16_t)((bits >> 16 & 0x8000) | half | nan);
}

static inline float f32_from_bf16(uint16_t h)
{
    return posenc_f32_from_bits((uint32_t)h << 16);
}

static inline uint16_t bf16_from_f32(float x)
{
    uint32_t bits = posenc_f32_bits(x), quiet = bits | 0x400000;
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);

    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded) >> 16);
}

#endif
