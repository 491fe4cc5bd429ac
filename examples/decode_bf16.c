/*
 * Steps of decoding, with a cache of keys in bf16.
 *
 *     cc -std=c11 decode_bf16.c $(pkg-config --cflags --libs posenc) -lm -o decode_bf16
 *
 * A model that writes text takes one token a step.  Each layer projects it to queries and keys,
 * turns both by the token's position, which is the number of tokens in the cache so far,
 * appends the key to the cache and compares the query with every key that is there.
 *
 * A cached key is never turned again: a query at position m times a key at position n depends
 * on m - n alone.  Everything is done a second time in f32, to see what 16 bits cost.
 */
#include <math.h>
#include <posenc.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 128, DIM = 64, HEADS = 8, K_HEADS = 2, Q = HEADS * DIM, K = K_HEADS * DIM };

static uint16_t cache[STEPS][K]; /* bf16 */
static float cache_f32[STEPS][K];

static void require(enum posenc_status status)
{
    if (status == POSENC_OK)
        return;
    fprintf(stderr, "decode_bf16: %s\n", posenc_status_string(status));
    exit(1);
}

/* In place of a model's projection: numbers between -1 and 1. */
static void project(float *x, int n)
{
    static uint32_t state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
}

static double dot(const float *a, const float *b)
{
    double sum = 0.0;
    for (int i = 0; i < DIM; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The token of step n: q is turned, k too, where it stays in the cache. */
static void append(struct posenc_rotary *rope, int64_t n, uint16_t *q, float *q_f32)
{
    project(q_f32, Q);
    project(cache_f32[n], K);
    require(posenc_f32_to_bf16(Q, q_f32, q));
    require(posenc_f32_to_bf16(K, cache_f32[n], cache[n]));
    require(posenc_rotary_turn(rope, POSENC_BF16, 1, n, q, HEADS, cache[n], K_HEADS));
    require(posenc_rotary_turn(rope, POSENC_F32, 1, n, q_f32, HEADS, cache_f32[n], K_HEADS));
}

/* The largest difference of a score of head h from that in f32, as a share of |query| |key|. */
static double compare(int64_t n, int h, const uint16_t *q, const float *q_f32)
{
    const int64_t shared = h / (HEADS / K_HEADS) * DIM; /* four heads have one head of keys */
    const float *query = q_f32 + h * DIM;
    float wide[DIM], key[DIM];
    double largest = 0.0;
    require(posenc_bf16_to_f32(DIM, q + h * DIM, wide));
    for (int64_t t = 0; t <= n; t++) {
        const float *exact = cache_f32[t] + shared;
        double size = sqrt(dot(query, query) * dot(exact, exact));
        require(posenc_bf16_to_f32(DIM, cache[t] + shared, key));
        largest = fmax(largest, fabs(dot(wide, key) - dot(query, exact)) / size);
    }
    return largest;
}

int main(void)
{
    /* bf16 rounds by at most 2^-9 of a number.  Queries and keys are rounded as they come and
     * when they have been turned: four roundings, and a little for their products. */
    double allowed = 1.01 * 4 * 0x1p-9, largest = 0.0;
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_rotary *rope;
    spec.dim = DIM;
    require(posenc_rotary_create(&spec, DIM, POSENC_PAIRS_HALF, &rope, NULL));
    require(posenc_rotary_reserve(rope, STEPS)); /* no step allocates */
    for (int64_t n = 0; n < STEPS; n++) {
        uint16_t q[Q];
        float q_f32[Q];
        append(rope, n, q, q_f32);
        for (int h = 0; h < HEADS; h++)
            largest = fmax(largest, compare(n, h, q, q_f32));
        if ((n & (n + 1)) == 0)
            printf(
                "position %3d, keys %3d: scores are off by up to %.1e |q||k|, %.1e allowed\n",
                (int)n, (int)n + 1, largest, allowed);
    }
    posenc_rotary_destroy(rope);
    return largest > allowed;
}
