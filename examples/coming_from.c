/*
 * Calls of other libraries, expressed in posenc: the examples of docs/coming-from.md. main() checks them.
 *
 *     cc -std=c11 coming_from.c $(pkg-config --cflags --libs posenc) -lm -o coming_from
 */
#include <posenc.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The calls ---- */

/* Hugging Face, apply_rotary_pos_emb(): q [batch, heads, tokens, 128], cos and sin [tokens, 128] of rotary_emb(). */
static enum posenc_status apply_rotary_pos_emb(int64_t batch, int64_t heads, int64_t tokens,
                                               float *q, const float *cos, const float *sin)
{
    const int64_t shape[] = { batch, tokens, heads, 128 };
    const int64_t stride[] = { heads * tokens * 128, 128, tokens * 128, 1 };
    const int64_t half[] = { tokens, 64 }, row[] = { 128, 1 };
    struct posenc_rope_args args = posenc_rope_args_init();
    args.cos = posenc_const_tensor_strided(POSENC_DTYPE_F32, cos, 2, half, row);
    args.sin = posenc_const_tensor_strided(POSENC_DTYPE_F32, sin, 2, half, row);
    args.out = posenc_tensor_strided(POSENC_DTYPE_F32, q, 4, shape, stride);
    return posenc_rope_half(NULL, &args, NULL);
}

/* ggml, ggml_rope_ext(): GGML_ROPE_TYPE_NEOX, n_dims 128, freq_base 500000 and freq_factors [64]. */
static enum posenc_status create_ggml_rope(const double *freq_factors,
                                           struct posenc_rope **rope)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.numerics = POSENC_NUMERICS_GGML_F32;
    spec.dim = 128;
    spec.rope_theta = 500000.0;
    spec.scaling = POSENC_SCALING_LONGROPE; /* a divisor for each pair, here at any length */
    spec.original_max_position_embeddings = 8192.0;
    spec.short_factor = spec.long_factor = freq_factors;
    return posenc_rope_create(&spec, POSENC_PAIRING_HALF, rope, NULL);
}

/* ONNX, RotaryEmbedding with interleaved=0: X and Y [1, heads, tokens, 128], caches [rows, 64]. */
static enum posenc_status rotary_embedding(int64_t heads, int64_t tokens, int64_t rows,
                                           const float *x, const float *cos_cache,
                                           const float *sin_cache, const int64_t *position_ids,
                                           float *y)
{
    const int64_t shape[] = { tokens, heads, 128 }, stride[] = { 128, tokens * 128, 1 };
    struct posenc_rope_args args = posenc_rope_args_init();
    args.positions = posenc_positions_array(POSENC_POSITIONS_I64, position_ids, 0);
    args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cos_cache, rows, 64);
    args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sin_cache, rows, 64);
    args.x = posenc_const_tensor_strided(POSENC_DTYPE_F32, x, 3, shape, stride);
    args.out = posenc_tensor_strided(POSENC_DTYPE_F32, y, 3, shape, stride);
    return posenc_rope_half(NULL, &args, NULL);
}

/* PyTorch's tutorial, PositionalEncoding.forward() without dropout: x [tokens, 512]. */
static enum posenc_status add_positional_encoding(int64_t tokens, float *x)
{
    struct posenc_freqs *freqs = NULL;
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = 512;
    spec.numerics = POSENC_NUMERICS_TORCH_EXP_F32;
    enum posenc_status status = posenc_freqs_create(&spec, &freqs, NULL);
    if (status == POSENC_OK)
        status = posenc_sinusoidal_add_dense(freqs, POSENC_LAYOUT_INTERLEAVED, POSENC_DTYPE_F32,
                                             tokens, 0, 1.0f, x, NULL);
    posenc_freqs_destroy(freqs);
    return status;
}

/* vLLM, is_neox_style=True: q [tokens, heads, 128] in bf16. A row of the cache has 64 cosines, then 64 sines. */
static enum posenc_status rotate_by_cache(int64_t tokens, int64_t heads, int64_t rows,
                                          const uint16_t *cos_sin_cache,
                                          const int64_t *positions, uint16_t *q)
{
    const int64_t half[] = { rows, 64 }, row[] = { 128, 1 };
    const uint16_t *sin = cos_sin_cache + 64;
    struct posenc_rope_args args = posenc_rope_args_init();
    args.positions = posenc_positions_array(POSENC_POSITIONS_I64, positions, 0);
    args.cos = posenc_const_tensor_strided(POSENC_DTYPE_BF16, cos_sin_cache, 2, half, row);
    args.sin = posenc_const_tensor_strided(POSENC_DTYPE_BF16, sin, 2, half, row);
    args.out = posenc_tensor_3d(POSENC_DTYPE_BF16, q, tokens, heads, 128);
    return posenc_rope_half(NULL, &args, NULL);
}

/* ---- Their check ---- */

enum { TOKENS = 3, HEADS = 2, DIM = 128, HALF = DIM / 2, WIDTH = 512 };

static int failures;

static void require(bool holds, const char *what)
{
    failures += !holds;
    printf("%s: %s\n", what, holds ? "right" : "WRONG");
}

static bool is_near(double value, double expected, double limit)
{
    return fabs(value - expected) <= limit;
}

/* Angle of a pair: any function that differs from row to row. */
static double angle_of(int64_t row, int pair) { return 0.25 * (double)row + 0.01 * pair; }

/* Returns true if this head held ones and was rotated by this row. */
static bool is_rotated(const float *x, int64_t row, double limit)
{
    bool right = true;
    for (int i = 0; i < HALF; i++) {
        const double angle = angle_of(row, i);
        right = right && is_near((double)x[i], cos(angle) - sin(angle), limit) &&
                is_near((double)x[i + HALF], cos(angle) + sin(angle), limit);
    }
    return right;
}

static void check_caches(void)
{
    static float q[HEADS * TOKENS * DIM], y[HEADS * TOKENS * DIM], cosines[TOKENS * HALF];
    static float sines[TOKENS * HALF], cos_full[TOKENS * DIM], sin_full[TOKENS * DIM];
    static float cos_sin[TOKENS * DIM];
    static uint16_t cache[TOKENS * DIM], q16[HEADS * TOKENS * DIM];
    const int64_t ids[TOKENS] = { 2, 0, 1 };
    for (int i = 0; i < HEADS * TOKENS * DIM; i++)
        q[i] = 1.0f;
    for (int i = 0; i < TOKENS * HALF; i++) {
        const int row = i / HALF, pair = i % HALF;
        cosines[i] = (float)cos(angle_of(row, pair));
        sines[i] = (float)sin(angle_of(row, pair));
        cos_full[row * DIM + pair] = cos_full[row * DIM + pair + HALF] = cosines[i];
        sin_full[row * DIM + pair] = sin_full[row * DIM + pair + HALF] = sines[i];
        cos_sin[row * DIM + pair] = cosines[i];
        cos_sin[row * DIM + pair + HALF] = sines[i];
    }
    require(!posenc_f32_to_bf16(TOKENS * DIM, cos_sin, cache, NULL) &&
                !posenc_f32_to_bf16(HEADS * TOKENS * DIM, q, q16, NULL) &&
                !rotary_embedding(HEADS, TOKENS, TOKENS, q, cosines, sines, ids, y) &&
                is_rotated(y, 2, 1e-6) && is_rotated(y + (TOKENS + 2) * DIM, 1, 1e-6),
            "ONNX");
    require(!apply_rotary_pos_emb(1, HEADS, TOKENS, q, cos_full, sin_full) &&
                is_rotated(q + 2 * DIM, 2, 1e-6) && is_rotated(q + (TOKENS + 1) * DIM, 1, 1e-6),
            "Hugging Face");
    require(!rotate_by_cache(TOKENS, HEADS, TOKENS, cache, ids, q16) &&
                !posenc_bf16_to_f32(HEADS * TOKENS * DIM, q16, q, NULL) &&
                is_rotated(q, 2, 0.02) && is_rotated(q + (2 * HEADS + 1) * DIM, 1, 0.02),
            "vLLM");
}

static void check_ggml(void)
{
    static float q[DIM];
    double factors[HALF];
    struct posenc_rope *rope = NULL;
    for (int i = 0; i < HALF; i++) {
        factors[i] = 1.0 + i;
        q[i] = q[i + HALF] = 1.0f;
    }
    bool right =
        !create_ggml_rope(factors, &rope) &&
        !posenc_rope_apply_dense(rope, POSENC_DTYPE_F32, 1, DIM, 100, q, 1, NULL, 0, NULL);
    for (int i = 0; i < HALF; i++) {
        const double angle = 100.0 * pow(500000.0, -2.0 * i / DIM) / factors[i];
        right = right && is_near((double)q[i], cos(angle) - sin(angle), 1e-4);
    }
    require(right, "ggml");
    posenc_rope_destroy(rope);
}

static void check_tutorial(void)
{
    static float x[TOKENS * WIDTH];
    require(!add_positional_encoding(TOKENS, x) &&
                is_near((double)x[2 * WIDTH], sin(2.0), 1e-6) &&
                is_near((double)x[2 * WIDTH + 1], cos(2.0), 1e-6),
            "PyTorch's tutorial");
}

int main(void)
{
    check_caches();
    check_ggml();
    check_tutorial();
    return failures != 0;
}
