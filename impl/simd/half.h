/*
 * f16 (IEEE 754 binary16: 5 bits of exponent, 10 of fraction) and bf16 (the upper half of a
 * binary32) as storage, in plain C: exact to f32, rounded once to nearest even from it. The
 * instructions behind the primitives of simd.h must give the same bits; of NaN any quiet one will
 * do, for some ISAs know no other.
 *
 * Without branches or calls, so that compilers vectorise the loops they stand in. A NaN
 * narrows to a quiet one with its sign and the upper bits of its payload.
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

/* Exponent and fraction where f32 has them: a number 2^112 too small, f16's bias being 112
 * less. The product is exact, subnormals included; infinity and NaN then lack an exponent of
 * all ones. */
static inline float f32_from_f16(uint16_t h)
{
    uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t bits = posenc_f32_bits(posenc_f32_from_bits(magnitude) * 0x1p112f);

    return posenc_f32_from_bits(bits | sign | (magnitude >= 0x0f800000 ? 0x7f800000 : 0));
}

/* The sum with a power of two whose last place is that of the result rounds to it; what the
 * sum's bits exceed the power's by counts such places: 1024 to 2048 of them, and below 2^-14,
 * where the last place stays 2^-24, 0 to 1024. Carries, to infinity too, come right by
 * addition. */
static inline uint16_t f16_from_f32(float x)
{
    uint32_t bits = posenc_f32_bits(x), magnitude = bits & 0x7fffffff;
    uint32_t capped = magnitude < 0x47800000 ? magnitude : 0x47800000; /* 2^16: infinity */
    uint32_t exponent = capped >> 23 > 113 ? capped >> 23 : 113;       /* at least 2^-14's */
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
