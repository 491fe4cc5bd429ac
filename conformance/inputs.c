/*
 * Inputs of calls, made from numbers.  Their recipe is part of the golden vectors and therefore
 * fixed:
 *
 *     z = mix64(mix64(seed, stream), index)
 *     stream = 0 for activations x, 1 for a learned or T5 table
 *     sign = bit 63;  exponent = bits 60..62 - 4;  mantissa = bits 0..22
 *
 * that is (-1)^sign 2^exponent (1 + mantissa / 2^23): both signs, magnitudes in [2^-4, 2^4),
 * never zero.  `index` counts the elements in row order.  With `special`, one element in eight
 * (bits 32..34 zero) is instead, by bits 35..37: NaN, +inf, -inf, +0, -0, a subnormal of each
 * sign with the same mantissa (its lowest bit set), the least subnormal.
 *
 * cos and sin of a rope call are the correctly rounded cos and sin of
 * (row mod 4096) 10000^(-2i/r).
 */
#define _POSIX_C_SOURCE 200809L
#include "inputs.h"
#include "oracle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 4096 };

uint64_t mix64(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t input_bits(uint64_t z, bool special)
{
    uint32_t sign = (uint32_t)(z >> 63) << 31;
    uint32_t mantissa = (uint32_t)z & 0x7fffffu;
    if (special && ((z >> 32) & 7) == 0) {
        const uint32_t kinds[8] = { 0x7fc00000u,
                                    0x7f800000u,
                                    0xff800000u,
                                    0x00000000u,
                                    0x80000000u,
                                    mantissa | 1u,
                                    0x80000001u | mantissa,
                                    0x00000001u };
        return kinds[(z >> 35) & 7];
    }
    return sign | (123u + ((uint32_t)(z >> 60) & 7u)) << 23 | mantissa;
}

void fill_inputs(float *to, int64_t n, const struct problem *problem, uint64_t stream)
{
    uint64_t key = mix64(problem->seed, stream);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = input_bits(mix64(key, (uint64_t)i), problem->special);
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* Rows of cos and sin already worked out for one rotary_dim. */
struct kept {
    struct kept *next;
    int64_t half, rows;
    uint64_t (*turn)[3];
    float *cos, *sin; /* [TABLE_ROWS, half] */
};

static struct kept *kept_create(int64_t half)
{
    struct posenc_freqs_spec spec = POSENC_FREQS_SPEC;
    size_t table = (size_t)(TABLE_ROWS * half) * sizeof(float);
    struct kept *k = calloc(1, sizeof *k);
    float *f32 = malloc((size_t)half * sizeof *f32);
    double factor;
    spec.dim = 2 * half;
    if (!k || !f32 || !(k->turn = malloc((size_t)half * sizeof *k->turn)) ||
        !(k->cos = malloc(table)) || !(k->sin = malloc(table)))
        goto fail;
    k->half = half;
    oracle_freqs(&spec, half, k->turn, f32, &factor);
    free(f32);
    return k;
fail:
    if (k) {
        free(k->turn);
        free(k->cos);
    }
    free(k);
    free(f32);
    return NULL;
}

/* Copies the first rows of that rotary_dim's table, which is kept between calls and grows to
 * the most rows asked for: a bench or a suite asks for the same few again and again. */
bool rotation_rows(int64_t half, int64_t rows, float *cosines, float *sines)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kept *all;
    size_t bytes = (size_t)half * sizeof(float);
    pthread_mutex_lock(&lock);
    struct kept *k = all;
    while (k && k->half != half)
        k = k->next;
    if (!k && (k = kept_create(half))) {
        k->next = all;
        all = k;
    }
    for (; k && k->rows < rows && k->rows < TABLE_ROWS; k->rows++)
        for (int64_t i = 0; i < half; i++) {
            double s, c;
            oracle_sincos_turn(k->turn[i], k->rows, &s, &c);
            k->cos[k->rows * half + i] = odd_to_f32(c);
            k->sin[k->rows * half + i] = odd_to_f32(s);
        }
    for (int64_t r = 0; k && r < rows; r++) {
        memcpy(cosines + r * half, k->cos + r % TABLE_ROWS * half, bytes);
        memcpy(sines + r * half, k->sin + r % TABLE_ROWS * half, bytes);
    }
    pthread_mutex_unlock(&lock);
    return k != NULL;
}
