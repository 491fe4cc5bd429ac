/*
 * Decoding of tokens one by one, with a cache of rotated keys in bf16.
 *
 *     cc -std=c11 decode_bf16.c $(pkg-config --cflags --libs posenc) -lm -o decode_bf16
 *
 * A language model decodes one token per step. Each attention layer projects the token to queries and keys, and
 * appends the key to the cache. It rotates both in place by the token's position, which is the number of tokens that
 * were in the cache before, and multiplies the query with every cached key.
 *
 * A cached key is never rotated again, because the product of a query at position m and a key at position n depends
 * only on m - n. The program does the same in f32, and compares the scores.
 */
#include <math.h>
#include <posenc.h>
#include <stdio.h>
#include <stdlib.h>

/* Grouped-query attention: HEADS / K_HEADS heads of queries share one head of keys. */
enum {
    STEPS = 128,
    DIM = 64,
    HEADS = 8,
    K_HEADS = 2,
    Q_WIDTH = HEADS * DIM,
    K_WIDTH = K_HEADS * DIM
};

static uint16_t cache[STEPS][K_WIDTH]; /* bf16 */
static float cache_f32[STEPS][K_WIDTH];

static void require(enum posenc_status status)
{
    if (status == POSENC_OK)
        return;
    fprintf(stderr, "decode_bf16: %s\n", posenc_status_string(status));
    exit(1);
}

/* Fills x with random numbers from -1 to 1, in place of a model's projection. */
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

/* Returns the larger error, or NaN if one is NaN: fmax() would drop it. */
static double larger(double a, double b) { return a <= b || isnan(b) ? b : a; }

/* Makes query and key of token n, appends the key to the cache, and rotates both in place. */
static void append(struct posenc_rope *rope, int64_t n, uint16_t *q, float *q_f32)
{
    project(q_f32, Q_WIDTH);
    project(cache_f32[n], K_WIDTH);
    require(posenc_f32_to_bf16(Q_WIDTH, q_f32, q, NULL));
    require(posenc_f32_to_bf16(K_WIDTH, cache_f32[n], cache[n], NULL));
    require(posenc_rope_apply_dense(rope, POSENC_DTYPE_BF16, 1, DIM, n, q, HEADS, cache[n],
                                    K_HEADS, NULL));
    require(posenc_rope_apply_dense(rope, POSENC_DTYPE_F32, 1, DIM, n, q_f32, HEADS,
                                    cache_f32[n], K_HEADS, NULL));
}

/* Returns the largest error of the scores of head h against f32, as a fraction of |query| |key|. */
static double find_error(int64_t n, int h, const uint16_t *q, const float *q_f32)
{
    const int64_t k_head = h / (HEADS / K_HEADS) * DIM; /* offset of the head of keys */
    const float *query = q_f32 + h * DIM;
    float query_bf16[DIM], key_bf16[DIM]; /* values of bf16, as floats */
    double largest = 0.0;
    require(posenc_bf16_to_f32(DIM, q + h * DIM, query_bf16, NULL));
    for (int64_t t = 0; t <= n; t++) {
        const float *key = cache_f32[t] + k_head;
        double norms = sqrt(dot(query, query) * dot(key, key));
        require(posenc_bf16_to_f32(DIM, cache[t] + k_head, key_bf16, NULL));
        largest = larger(largest, fabs(dot(query_bf16, key_bf16) - dot(query, key)) / norms);
    }
    return largest;
}

int main(void)
{
    /* bf16 has 8 significant bits, so rounding changes a number by at most 2^-8 of it. Query and key are each rounded
     * twice, before and after the rotation. 1 % is for terms of higher order. A rotation keeps
 * lengths, so each rounding moves the product by at most 2^-8 |q||k| (Cauchy-Schwarz). */
    double allowed = 1.01 * 4 * 0x1p-8, largest = 0.0;
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_rope *rope;
    spec.dim = DIM;
    require(posenc_rope_create(&spec, POSENC_PAIRING_HALF, &rope, NULL));
    require(posenc_rope_reserve(rope, STEPS, NULL)); /* no step allocates */
    for (int64_t n = 0; n < STEPS; n++) {
        uint16_t q[Q_WIDTH];
        float q_f32[Q_WIDTH];
        append(rope, n, q, q_f32);
        for (int h = 0; h < HEADS; h++)
            largest = larger(largest, find_error(n, h, q, q_f32));
        if ((n & (n + 1)) == 0) /* at 1, 2, 4, 8, ... cached keys */
            printf(
                "position %3d, keys %3d: scores are off by up to %.1e |q||k|, %.1e allowed\n",
                (int)n, (int)n + 1, largest, allowed);
    }
    posenc_rope_destroy(rope);
    return !(largest <= allowed); /* 1 for NaN, too */
}
