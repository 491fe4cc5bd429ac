/*
 * Ten tasks, each a function whose body has at most twelve lines. main() checks their results. The file is C11 and
 * C++17:
 *
 *     cc tasks.c -o tasks $(pkg-config --cflags --libs posenc) -lm
 */
#include <posenc/backend.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The tasks ---- */

/* Creates the rotation of Llama 3.1: theta 500000, with scaling for long contexts. */
static enum posenc_status create_llama_3_1(struct posenc_rope **rope,
                                           struct posenc_error *error)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = 128;
    spec.rope_theta = 500000.0;
    spec.scaling = POSENC_SCALING_LLAMA3;
    spec.factor = 8.0;
    spec.low_freq_factor = 1.0;
    spec.high_freq_factor = 4.0;
    spec.original_max_position_embeddings = 8192.0;
    return posenc_rope_create(&spec, POSENC_PAIRING_HALF, rope, error);
}

/* Rotates one new token of each sequence in a batch, in bf16: q [batch, 1, 32, 128], k [batch, 1, 8, 128]. Its position
 * is the length of its sequence so far, and the stride from one sequence to the next is 1. */
static enum posenc_status rotate_batch_bf16(struct posenc_rope *rope, int64_t batch,
                                            const int32_t *lengths, uint16_t *q, uint16_t *k,
                                            struct posenc_error *error)
{
    const struct posenc_tensor queries =
        posenc_tensor_4d(POSENC_DTYPE_BF16, q, batch, 1, 32, 128);
    const struct posenc_tensor keys = posenc_tensor_4d(POSENC_DTYPE_BF16, k, batch, 1, 8, 128);
    const struct posenc_positions positions =
        posenc_positions_array(POSENC_POSITIONS_I32, lengths, 1);
    return posenc_rope_apply(rope, &positions, &queries, &keys, error);
}

/* Rotates q and k inside of a fused projection, [tokens, 32 + 8 + 8, 128]. Without positions they are 0, 1, 2, ... */
static enum posenc_status rotate_fused_qkv(struct posenc_rope *rope, int64_t tokens, float *qkv,
                                           struct posenc_error *error)
{
    const int64_t stride[] = { 48 * 128, 128, 1 };
    const int64_t q_shape[] = { tokens, 32, 128 }, k_shape[] = { tokens, 8, 128 };
    const struct posenc_tensor q =
        posenc_tensor_strided(POSENC_DTYPE_F32, qkv, 3, q_shape, stride);
    const struct posenc_tensor k =
        posenc_tensor_strided(POSENC_DTYPE_F32, qkv + 32 * 128, 3, k_shape, stride);
    return posenc_rope_apply(rope, NULL, &q, &k, error);
}

/* Rotates q [batch, heads, tokens, 128], as PyTorch's attention has it: the strides exchange heads and tokens. */
static enum posenc_status rotate_heads_first(struct posenc_rope *rope, int64_t batch,
                                             int64_t heads, int64_t tokens, float *q,
                                             struct posenc_error *error)
{
    const int64_t shape[] = { batch, tokens, heads, 128 };
    const int64_t stride[] = { heads * tokens * 128, 128, tokens * 128, 1 };
    const struct posenc_tensor queries =
        posenc_tensor_strided(POSENC_DTYPE_F32, q, 4, shape, stride);
    return posenc_rope_apply(rope, NULL, &queries, NULL, error);
}

/* Rotates multi-head latent attention: the last 64 channels of q [tokens, heads, 128 + 64], and k_pe [tokens, 64]. */
static enum posenc_status rotate_mla(struct posenc_rope *rope, int64_t tokens, int64_t heads,
                                     float *q, float *k_pe, struct posenc_error *error)
{
    const int64_t shape[] = { tokens, heads, 64 }, stride[] = { heads * 192, 192, 1 };
    const struct posenc_tensor q_pe =
        posenc_tensor_strided(POSENC_DTYPE_F32, q + 128, 3, shape, stride);
    const struct posenc_tensor keys = posenc_tensor_3d(POSENC_DTYPE_F32, k_pe, tokens, 1, 64);
    return posenc_rope_apply(rope, NULL, &q_pe, &keys, error);
}

/* Computes the sinusoidal table of Vaswani et al., [positions, 512]. */
static enum posenc_status make_sinusoids(int64_t positions, float *table,
                                         struct posenc_error *error)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    spec.dim = 512;
    enum posenc_status status = posenc_freqs_create(&spec, &freqs, error);
    args.freqs = freqs;
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, table, positions, 512);
    status = status ? status : posenc_sinusoidal(NULL, &args, error);
    posenc_freqs_destroy(freqs);
    return status;
}

/* Embeds diffusion timesteps, which may be fractions: out [n, 320], cosines first. `freqs` has dim 320. */
static enum posenc_status embed_timesteps(const struct posenc_freqs *freqs, int64_t n,
                                          const float *timesteps, float *out,
                                          struct posenc_error *error)
{
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.layout = POSENC_LAYOUT_COS_SIN;
    args.positions = posenc_positions_array(POSENC_POSITIONS_F32, timesteps, 0);
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, out, n, 320);
    return posenc_sinusoidal(NULL, &args, error);
}

/* Adds ALiBi to the scores of one new token, [heads, 1, keys], in place. */
static enum posenc_status add_alibi(int64_t heads, int64_t keys, const float *slopes,
                                    float *scores, struct posenc_error *error)
{
    struct posenc_alibi_args args = posenc_alibi_args_init();
    args.slopes = slopes; /* of posenc_alibi_slopes() */
    args.query_offset = keys - 1;
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, scores, heads, 1, keys);
    return posenc_alibi_add(NULL, &args, error);
}

/* Adds the biases of a T5 decoder to the scores of one new token, [heads, 1, keys], in place. */
static enum posenc_status add_t5(const float *table, int64_t heads, int64_t keys, float *scores,
                                 struct posenc_error *error)
{
    int32_t thresholds[32];
    struct posenc_t5_args args = posenc_t5_args_init();
    enum posenc_status status =
        posenc_t5_buckets_compute(32, 128, false, thresholds, &args.buckets, error);
    args.query_offset = keys - 1;
    args.table = posenc_const_tensor_2d(POSENC_DTYPE_F32, table, 32, heads);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, scores, heads, 1, keys);
    return status ? status : posenc_t5_bias_add(NULL, &args, error);
}

/* Lists the backends, and selects the one of this name for rope_half. */
static enum posenc_status list_and_force(const char *name, struct posenc_error *error)
{
    const struct posenc_backend *backend;
    for (size_t i = 0; (backend = posenc_backend_at(i)) != NULL; i++) {
        const char *reason = posenc_backend_unavailable_reason(backend);
        printf("%-12s %s\n", backend->name, reason ? reason : "available");
    }
    return posenc_select_backend(POSENC_KERNEL_ROPE_HALF, posenc_backend_find(name), error);
}

/* ---- Their check ---- */

enum { TOKENS = 3, HEADS = 32, KEY_HEADS = 8, DIM = 128, BATCH = 2 };

static struct posenc_error error;
static int failures;

static void require(bool holds, const char *what)
{
    failures += !holds;
    printf("%s: %s\n", what, holds ? "right" : "WRONG");
}

static void require_ok(enum posenc_status status)
{
    char text[256];
    if (status == POSENC_OK)
        return;
    posenc_error_text(&error, text, sizeof text);
    fprintf(stderr, "tasks: %s\n", text);
    exit(1);
}

/* Returns the frequency of a pair of Llama 3.1: divided by 8 for up to 1 turn in the original context, kept from 4
 * turns on, and interpolated between them. */
static double llama_omega(int pair)
{
    const double omega = pow(500000.0, -2.0 * pair / DIM);
    const double turns = 8192.0 * omega / (2 * 3.14159265358979324),
                 smooth = (turns - 1.0) / 3.0;
    return smooth <= 0.0   ? omega / 8.0
           : smooth >= 1.0 ? omega
                           : (1.0 - smooth) * omega / 8.0 + smooth * omega;
}

/* Returns true if a head of ones was rotated by this position, with errors below a limit. */
static bool is_rotated_within(const float *x, int64_t position, double limit)
{
    bool right = true;
    for (int i = 0; i < DIM / 2; i++) {
        const double angle = (double)position * llama_omega(i);
        right = right && fabs((double)x[i] - (cos(angle) - sin(angle))) < limit &&
                fabs((double)x[i + DIM / 2] - (cos(angle) + sin(angle))) < limit;
    }
    return right;
}

static bool is_rotated(const float *x, int64_t position)
{
    return is_rotated_within(x, position, 1e-5);
}

static float *make_ones(int64_t n)
{
    float *x = (float *)malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; x && i < n; i++)
        x[i] = 1.0f;
    if (!x)
        exit(1);
    return x;
}

static void check_batch(struct posenc_rope *rope)
{
    static uint16_t q[BATCH * HEADS * DIM], k[BATCH * KEY_HEADS * DIM];
    static float wide[BATCH * HEADS * DIM];
    const int32_t lengths[BATCH] = { 5, 1000 };
    for (int i = 0; i < BATCH * HEADS * DIM; i++)
        q[i] = k[i % (BATCH * KEY_HEADS * DIM)] = 0x3f80; /* 1 in bf16 */
    require_ok(rotate_batch_bf16(rope, BATCH, lengths, q, k, &error));
    require_ok(posenc_bf16_to_f32(BATCH * HEADS * DIM, q, wide, &error));
    require(memcmp(q, k, DIM * sizeof *q) == 0 && is_rotated_within(wide, lengths[0], 0.01) &&
                is_rotated_within(wide + HEADS * DIM, lengths[1], 0.01),
            "a batch in bf16");
}

static void check_layouts(struct posenc_rope *rope)
{
    const int64_t row = 48 * DIM;
    float *qkv = make_ones(TOKENS * row), *q = make_ones(BATCH * HEADS * TOKENS * DIM);
    require_ok(rotate_fused_qkv(rope, TOKENS, qkv, &error));
    /* The last head of queries of token 2, and the last one of keys of token 1; values are unchanged. */
    require(is_rotated(qkv + 2 * row + 31 * DIM, 2) && is_rotated(qkv + row + 39 * DIM, 1) &&
                qkv[row + 40 * DIM] == 1.0f,
            "a fused QKV");
    require_ok(rotate_heads_first(rope, BATCH, HEADS, TOKENS, q, &error));
    require(is_rotated(q + ((HEADS + 3) * TOKENS + 2) * DIM, 2) && is_rotated(q, 0),
            "[batch, heads, tokens, head_dim]");
    free(qkv);
    free(q);
}

static void check_mla(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_rope *rope = NULL;
    float *q = make_ones(TOKENS * 2 * 192), *k_pe = make_ones(TOKENS * 64);
    spec.dim = 64;
    require_ok(posenc_rope_create(&spec, POSENC_PAIRING_INTERLEAVED, &rope, &error));
    require_ok(rotate_mla(rope, TOKENS, 2, q, k_pe, &error));
    const float *second = q + (2 * 2 + 1) * 192; /* head 1 of token 2 */
    require(second[127] == 1.0f && fabs((double)second[128] - (cos(2.0) - sin(2.0))) < 1e-6 &&
                memcmp(second + 128, k_pe + 2 * 64, 64 * sizeof *q) == 0,
            "multi-head latent attention");
    posenc_rope_destroy(rope);
    free(q);
    free(k_pe);
}

static void check_sinusoids(void)
{
    const float timesteps[2] = { 999.0f, 0.5f };
    float *table = make_ones(10 * 512), out[2 * 320];
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    require_ok(make_sinusoids(10, table, &error));
    require(fabs((double)table[9 * 512] - sin(9.0)) < 1e-7 &&
                fabs((double)table[9 * 512 + 1] - cos(9.0)) < 1e-7,
            "a table of sinusoids");
    spec.dim = 320;
    require_ok(posenc_freqs_create(&spec, &freqs, &error));
    require_ok(embed_timesteps(freqs, 2, timesteps, out, &error));
    require(fabs((double)out[0] - cos(999.0)) < 1e-7 &&
                fabs((double)out[320 + 160] - sin(0.5)) < 1e-7,
            "timesteps of diffusion");
    posenc_freqs_destroy(freqs);
    free(table);
}

static void check_scores(void)
{
    enum { KEYS = 40 };
    float slopes[4], *scores = make_ones(4 * KEYS), table[32 * 4];
    require_ok(posenc_alibi_slopes(4, 8.0, slopes, &error));
    require_ok(add_alibi(4, KEYS, slopes, scores, &error));
    /* The first of four slopes is 2^-2; key 0 is KEYS - 1 tokens away. */
    require(scores[KEYS - 1] == 1.0f && scores[0] == 1.0f - 0.25f * (KEYS - 1),
            "ALiBi of one token");
    for (int i = 0; i < 32 * 4; i++)
        table[i] = (float)i;
    for (int i = 0; i < 4 * KEYS; i++)
        scores[i] = 0.0f;
    require_ok(add_t5(table, 4, KEYS, scores, &error));
    /* Distances up to 15 have buckets of their own; 39 is in bucket 16 + 16 ln(39/16) / ln(128/16) = 22.9. */
    require(scores[KEYS - 1] == 0.0f && scores[KEYS - 1 - 15] == 15 * 4 && scores[0] == 22 * 4,
            "T5 of one token");
    free(scores);
}

int main(void)
{
    struct posenc_rope *rope = NULL;
    float *q = make_ones(TOKENS * HEADS * DIM), *k = make_ones(TOKENS * KEY_HEADS * DIM);
    require_ok(create_llama_3_1(&rope, &error));
    require_ok(posenc_rope_apply_dense(rope, POSENC_DTYPE_F32, TOKENS, DIM, 4096, q, HEADS, k,
                                       KEY_HEADS, &error));
    require(is_rotated(q, 4096) && is_rotated(k + 2 * KEY_HEADS * DIM, 4098), "Llama 3.1");
    check_batch(rope);
    check_layouts(rope);
    check_mla();
    check_sinusoids();
    check_scores();
    require_ok(list_and_force("scalar", &error));
    require(
        strcmp(posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).backend->name,
               "scalar") == 0,
        "a backend that is forced");
    posenc_rope_destroy(rope);
    free(q);
    free(k);
    return failures != 0;
}
