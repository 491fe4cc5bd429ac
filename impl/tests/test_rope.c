/*
 * Tests that posenc_rope gives the bits of the kernels: with cached and with temporary rows, at an offset and at
 * positions, in one thread and in several. Tests posenc_add_sinusoids() in the same way.
 */
#include <posenc.h>
#include "base/tap/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 8, HEAD_DIM = 10, TOKENS = 3, Q_HEADS = 3, K_HEADS = 2 };
enum { Q = TOKENS * Q_HEADS * HEAD_DIM, K = TOKENS * K_HEADS * HEAD_DIM };

static struct posenc_freqs *freqs; /* of make_spec(), shared as emulators take long for it */

/* Fills an array with numbers that are finite in f16 and in bf16. */
static void fill_16_bits(uint16_t *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (uint16_t)(0x3c00 + 97 * i % 0x700 + (i % 3 == 0 ? 0x8000 : 0));
}

static void fill(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(i % 17) - 7.5f;
}

static struct posenc_freqs_spec make_spec(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = DIM;
    return spec;
}

/* Rotates by posenc_rope_table() and the kernel of the pairing. */
static void rotate_by_kernels(struct posenc_positions positions, enum posenc_pairing pairing,
                              enum posenc_dtype dtype, void *x, int64_t heads)
{
    float cosines[TOKENS * DIM / 2], sines[TOKENS * DIM / 2];
    struct posenc_rope_table_args table = posenc_rope_table_args_init();
    struct posenc_rope_args rope = posenc_rope_args_init();
    table.freqs = freqs;
    table.positions = positions;
    table.cos = posenc_dense(cosines, 2, TOKENS, DIM / 2, 0, 0);
    table.sin = posenc_dense(sines, 2, TOKENS, DIM / 2, 0, 0);
    rope.cos = posenc_view(table.cos);
    rope.sin = posenc_view(table.sin);
    rope.out = posenc_dense(x, 3, TOKENS, heads, HEAD_DIM, 0);
    rope.out.dtype = dtype;
    rope.x = posenc_view(rope.out);
    if (posenc_rope_table(NULL, &table) ||
        (pairing == POSENC_PAIRING_HALF ? posenc_rope_half(NULL, &rope)
                                        : posenc_rope_interleaved(NULL, &rope)))
        abort();
}

/* Compares q and k with the kernels, at an array of positions or, if that is NULL, at an offset. */
static bool agrees_in_f32(struct posenc_rope *rotary, enum posenc_pairing pairing,
                          int64_t offset, const int32_t *at)
{
    float q[Q], k[K], want_q[Q], want_k[K];
    struct posenc_positions positions = { .offset = offset };
    if (at)
        positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I32,
                                               .data = at,
                                               .stride_token = 1 };
    fill(q, Q);
    fill(k, K);
    memcpy(want_q, q, sizeof q);
    memcpy(want_k, k, sizeof k);
    rotate_by_kernels(positions, pairing, POSENC_DTYPE_F32, want_q, Q_HEADS);
    rotate_by_kernels(positions, pairing, POSENC_DTYPE_F32, want_k, K_HEADS);
    enum posenc_status status =
        at ? posenc_rope_apply_at(rotary, POSENC_DTYPE_F32, TOKENS, at, q, Q_HEADS, k, K_HEADS)
           : posenc_rope_apply(rotary, POSENC_DTYPE_F32, TOKENS, offset, q, Q_HEADS, k,
                               K_HEADS);
    return status == POSENC_OK && memcmp(q, want_q, sizeof q) == 0 &&
           memcmp(k, want_k, sizeof k) == 0;
}

static bool agrees_in_16_bits(struct posenc_rope *rotary, enum posenc_pairing pairing,
                              enum posenc_dtype dtype, int64_t offset)
{
    uint16_t q[Q], k[K], want_q[Q], want_k[K], before[Q];
    struct posenc_positions positions = { .offset = offset };
    fill_16_bits(q, Q);
    fill_16_bits(k, K);
    memcpy(before, q, sizeof q);
    memcpy(want_q, q, sizeof q);
    memcpy(want_k, k, sizeof k);
    rotate_by_kernels(positions, pairing, dtype, want_q, Q_HEADS);
    rotate_by_kernels(positions, pairing, dtype, want_k, K_HEADS);
    return posenc_rope_apply(rotary, dtype, TOKENS, offset, q, Q_HEADS, k, K_HEADS) ==
               POSENC_OK &&
           memcmp(q, want_q, sizeof q) == 0 && memcmp(k, want_k, sizeof k) == 0 &&
           memcmp(q, before, sizeof q) != 0;
}

static struct posenc_rope *make_rotary(enum posenc_pairing pairing)
{
    const struct posenc_freqs_spec spec = make_spec();
    struct posenc_rope *rotary = NULL;
    if (posenc_rope_create(&spec, HEAD_DIM, pairing, &rotary, NULL))
        abort();
    return rotary;
}

static void test_bits(enum posenc_pairing pairing)
{
    static const int32_t near[TOKENS] = { 5, 0, 5000 }, far[TOKENS] = { 7, -3, 1 << 30 };
    struct posenc_rope *rotary = make_rotary(pairing);
    require(agrees_in_f32(rotary, pairing, 0, NULL), "a prompt");
    require(agrees_in_f32(rotary, pairing, 511, NULL), "a step beyond the first rows");
    require(agrees_in_f32(rotary, pairing, -2, NULL), "negative positions");
    require(agrees_in_f32(rotary, pairing, INT32_MAX - 2, NULL), "the last positions");
    require(agrees_in_f32(rotary, pairing, 0, near), "positions");
    require(agrees_in_f32(rotary, pairing, 0, far), "positions far apart");
    require(agrees_in_16_bits(rotary, pairing, POSENC_DTYPE_F16, 3),
            "f16, by rows that are kept");
    require(agrees_in_16_bits(rotary, pairing, POSENC_DTYPE_F16, -2),
            "f16, by rows of the call");
    require(agrees_in_16_bits(rotary, pairing, POSENC_DTYPE_BF16, 3),
            "bf16, by rows that are kept");
    require(agrees_in_16_bits(rotary, pairing, POSENC_DTYPE_BF16, -2),
            "bf16, by rows of the call");
    posenc_rope_destroy(rotary);
}

static void *use_rotary(void *rotary)
{
    bool ok = true;
    for (int64_t p = 0; p < 200; p++)
        ok &= agrees_in_f32(rotary, POSENC_PAIRING_HALF, p * 97, NULL);
    return ok ? rotary : NULL;
}

static void test_threads(void)
{
    struct posenc_rope *rotary = make_rotary(POSENC_PAIRING_HALF);
    pthread_t threads[4];
    bool ok = true;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, use_rotary, rotary))
            abort();
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ok &= result != NULL;
    }
    require(ok, "four threads while it grows");
    posenc_rope_destroy(rotary);
}

/* Rejected calls must not change q. */
static void test_rejections(void)
{
    const struct posenc_freqs_spec spec = make_spec();
    const struct posenc_freqs_spec odd = { .size = sizeof odd,
                                           .dim = 7,
                                           .rope_theta = 10000.0 };
    struct posenc_rope *rotary = make_rotary(POSENC_PAIRING_HALF), *none = NULL;
    struct posenc_error error;
    float q[Q], before[Q];
    const int64_t most = INT32_MAX;
    fill(q, Q);
    memcpy(before, q, sizeof q);
    require(posenc_rope_create(&odd, HEAD_DIM, POSENC_PAIRING_HALF, &none, &error) ==
                    POSENC_ERR_ODD &&
                error.value == 7.0,
            "an odd dim");
    require(posenc_rope_create(&spec, 6, POSENC_PAIRING_HALF, &none, &error) ==
                    POSENC_ERR_ROTARY_DIM &&
                error.least == (double)DIM,
            "a head that is too small");
    require(posenc_rope_apply(rotary, POSENC_DTYPE_F32, TOKENS, most, q, Q_HEADS, NULL, 0) ==
                POSENC_ERR_POSITION,
            "a position beyond 2^31");
    require(posenc_rope_apply(rotary, POSENC_DTYPE_F32, TOKENS, 0, q, Q_HEADS, NULL, 1) ==
                POSENC_ERR_ARGUMENT,
            "no keys where there should be");
    require(posenc_rope_apply(rotary, POSENC_DTYPE_F32, TOKENS, 0, q, Q_HEADS, q + 1, 1) ==
                POSENC_ERR_OVERLAP,
            "keys within the queries");
    require(posenc_rope_apply(rotary, POSENC_DTYPE_F32, TOKENS, 0, q, 1, (float *)1 + 0, 1) ==
                POSENC_ERR_ARGUMENT,
            "keys that are not aligned");
    require(posenc_rope_apply(rotary, POSENC_DTYPE_F32, -1, 0, q, 1, NULL, 0) ==
                POSENC_ERR_SHAPE,
            "a negative count of tokens");
    require(posenc_rope_apply(rotary, (enum posenc_dtype)7, 1, 0, q, 1, NULL, 0) ==
                POSENC_ERR_DTYPE,
            "an unknown type");
    require(posenc_rope_reserve(rotary, (1 << 20) + 1) == POSENC_ERR_POSITION,
            "more rows than are kept");
    require(memcmp(q, before, sizeof q) == 0, "and the queries are as they were");
    require(posenc_rope_apply(rotary, POSENC_DTYPE_F32, 0, 0, NULL, 0, NULL, 0) == POSENC_OK,
            "nothing to turn is fine");
    posenc_rope_destroy(rotary);
    posenc_rope_destroy(NULL);
}

static void test_sinusoids(void)
{
    float x[2 * DIM] = { 0 }, table[2 * DIM];
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.positions.offset = 9;
    args.out = posenc_dense(table, 2, 2, DIM, 0, 0);
    require(posenc_sinusoidal(NULL, &args) == POSENC_OK &&
                posenc_add_sinusoids(freqs, POSENC_LAYOUT_INTERLEAVED, POSENC_DTYPE_F32, 2, 9,
                                     1.0f, x) == POSENC_OK &&
                memcmp(x, table, sizeof x) == 0,
            "a sinusoidal encoding added to zeros is its table");
}

int main(void)
{
    const struct posenc_freqs_spec spec = make_spec();
    if (posenc_freqs_create(&spec, &freqs, NULL))
        abort();
    test_bits(POSENC_PAIRING_HALF);
    test_bits(POSENC_PAIRING_INTERLEAVED);
    test_threads();
    test_rejections();
    test_sinusoids();
    posenc_freqs_destroy(freqs);
    return tap_end();
}
