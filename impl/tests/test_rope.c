/*
 * Tests that posenc_rope gives the bits of the kernels: with cached and with temporary rows, at an offset and at
 * positions, in every layout, in one thread and in several. Tests posenc_sinusoidal_add_dense() in the same way.
 */
#include <posenc.h>
#include <posenc/backend.h>
#include "base/tap/tap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 8, HEAD_DIM = 10, TOKENS = 3, Q_HEADS = 3, K_HEADS = 2 };
enum { Q = TOKENS * Q_HEADS * HEAD_DIM, K = TOKENS * K_HEADS * HEAD_DIM };

static struct posenc_freqs *freqs; /* of make_spec(), shared as emulators take long for it */

/* Fills an array with numbers that are finite in each dtype. */
static void fill(enum posenc_dtype dtype, void *x, int n)
{
    for (int i = 0; i < n; i++)
        if (dtype == POSENC_DTYPE_F32)
            ((float *)x)[i] = (float)(i % 17) - 7.5f;
        else
            ((uint16_t *)x)[i] =
                (uint16_t)(0x3c00 + 97 * i % 0x700 + (i % 3 == 0 ? 0x8000 : 0));
}

static struct posenc_freqs_spec make_spec(void)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    spec.dim = DIM;
    return spec;
}

/* Rotates x [tokens, heads, HEAD_DIM] by posenc_rope_table() and the kernel of the pairing. */
static void rotate_by_kernels(struct posenc_positions positions, enum posenc_pairing pairing,
                              struct posenc_tensor x)
{
    float cosines[TOKENS * DIM / 2], sines[TOKENS * DIM / 2];
    struct posenc_rope_table_args table = posenc_rope_table_args_init();
    struct posenc_rope_args rope = posenc_rope_args_init();
    table.freqs = freqs;
    table.positions = positions;
    table.cos = posenc_tensor_2d(POSENC_DTYPE_F32, cosines, x.shape[0], DIM / 2);
    table.sin = posenc_tensor_2d(POSENC_DTYPE_F32, sines, x.shape[0], DIM / 2);
    rope.cos = posenc_const_view(table.cos);
    rope.sin = posenc_const_view(table.sin);
    rope.out = x;
    if (posenc_rope_table(NULL, &table, NULL) ||
        (pairing == POSENC_PAIRING_HALF ? posenc_rope_half(NULL, &rope, NULL)
                                        : posenc_rope_interleaved(NULL, &rope, NULL)))
        abort();
}

/* A call: its dtypes of q and k, and its offset or, unless that is NULL, its array of positions. */
struct rotation {
    const char *sentence;
    enum posenc_dtype q, k;
    int64_t offset;
    const int32_t *at;
};

/* Compares q and k with the kernels. Dense arrays are those of one dtype at an offset. */
static bool agrees(struct posenc_rope *object, enum posenc_pairing pairing,
                   const struct rotation *r)
{
    float q[Q] = { 0 }, k[K] = { 0 }, want_q[Q], want_k[K], before[Q];
    struct posenc_positions positions = { .offset = r->offset };
    if (r->at)
        positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I32,
                                               .data = r->at,
                                               .stride_token = 1 };
    fill(r->q, q, Q);
    fill(r->k, k, K);
    memcpy(before, q, sizeof q);
    memcpy(want_q, q, sizeof q);
    memcpy(want_k, k, sizeof k);
    rotate_by_kernels(positions, pairing,
                      posenc_tensor_3d(r->q, want_q, TOKENS, Q_HEADS, HEAD_DIM));
    rotate_by_kernels(positions, pairing,
                      posenc_tensor_3d(r->k, want_k, TOKENS, K_HEADS, HEAD_DIM));
    const struct posenc_tensor tensors[2] = {
        posenc_tensor_3d(r->q, q, TOKENS, Q_HEADS, HEAD_DIM),
        posenc_tensor_3d(r->k, k, TOKENS, K_HEADS, HEAD_DIM)
    };
    enum posenc_status status =
        r->at || r->q != r->k
            ? posenc_rope_apply(object, &positions, &tensors[0], &tensors[1], NULL)
            : posenc_rope_apply_dense(object, r->q, TOKENS, HEAD_DIM, r->offset, q, Q_HEADS, k,
                                      K_HEADS, NULL);
    return status == POSENC_OK && memcmp(q, want_q, sizeof q) == 0 &&
           memcmp(k, want_k, sizeof k) == 0 && memcmp(q, before, sizeof q) != 0;
}

static struct posenc_rope *make_rope(enum posenc_pairing pairing)
{
    const struct posenc_freqs_spec spec = make_spec();
    struct posenc_rope *object = NULL;
    if (posenc_rope_create(&spec, pairing, &object, NULL))
        abort();
    return object;
}

static void test_bits(enum posenc_pairing pairing)
{
    static const int32_t near[TOKENS] = { 5, 0, 5000 }, far[TOKENS] = { 7, -3, 1 << 30 };
    static const struct rotation rotations[] = {
        { "a prompt", POSENC_DTYPE_F32, POSENC_DTYPE_F32, 0, NULL },
        { "a step beyond the first rows", POSENC_DTYPE_F32, POSENC_DTYPE_F32, 511, NULL },
        { "negative positions", POSENC_DTYPE_F32, POSENC_DTYPE_F32, -2, NULL },
        { "the last positions", POSENC_DTYPE_F32, POSENC_DTYPE_F32, INT32_MAX - 2, NULL },
        { "positions", POSENC_DTYPE_F32, POSENC_DTYPE_F32, 0, near },
        { "positions far apart", POSENC_DTYPE_F32, POSENC_DTYPE_F32, 0, far },
        { "f16, by rows that are kept", POSENC_DTYPE_F16, POSENC_DTYPE_F16, 3, NULL },
        { "f16, by rows of the call", POSENC_DTYPE_F16, POSENC_DTYPE_F16, -2, NULL },
        { "bf16, by rows that are kept", POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, 3, NULL },
        { "bf16, by rows of the call", POSENC_DTYPE_BF16, POSENC_DTYPE_BF16, -2, NULL },
        { "q and k of different dtypes", POSENC_DTYPE_F32, POSENC_DTYPE_BF16, 3, NULL },
    };
    struct posenc_rope *object = make_rope(pairing);
    for (size_t i = 0; i < sizeof rotations / sizeof *rotations; i++)
        require(agrees(object, pairing, &rotations[i]), rotations[i].sentence);
    posenc_rope_destroy(object);
}

static void *use_rope(void *object)
{
    bool ok = true;
    for (int64_t p = 0; p < 200; p++)
        ok &= agrees(object, POSENC_PAIRING_HALF, &(struct rotation){ .offset = p * 97 });
    return ok ? object : NULL;
}

static void test_threads(void)
{
    struct posenc_rope *object = make_rope(POSENC_PAIRING_HALF);
    pthread_t threads[4];
    bool ok = true;
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, use_rope, object))
            abort();
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ok &= result != NULL;
    }
    require(ok, "four threads while it grows");
    posenc_rope_destroy(object);
}

/* ---- Layouts ---- */

enum { BATCH = 2, SEQUENCE = 4, ROW = (Q_HEADS + 2 * K_HEADS) * HEAD_DIM };

/* Returns the position of a token in every form that `positions` can have. */
static double position_of(const struct posenc_positions *positions, int64_t b, int64_t t)
{
    const int64_t i = b * positions->stride_batch +
                      t * (positions->stride_token ? positions->stride_token : 1);
    switch (positions->kind) {
    case POSENC_POSITIONS_I32:
        return ((const int32_t *)positions->data)[i];
    case POSENC_POSITIONS_I64:
        return (double)((const int64_t *)positions->data)[i];
    case POSENC_POSITIONS_F32:
        return (double)((const float *)positions->data)[i];
    default:
        return (double)(positions->offset + t);
    }
}

/* Rotates one head at a position by the kernels. */
static void rotate_head(double position, float *x)
{
    const float time = (float)position;
    struct posenc_positions positions = { .kind = POSENC_POSITIONS_F32, .data = &time };
    if (position == (double)(int64_t)position)
        positions = (struct posenc_positions){ .offset = (int64_t)position };
    rotate_by_kernels(positions, POSENC_PAIRING_HALF,
                      posenc_tensor_3d(POSENC_DTYPE_F32, x, 1, 1, HEAD_DIM));
}

/* Rotates q and k of a fused QKV, [batch, tokens, (q_heads + 2 k_heads) head_dim] or with heads outside of tokens, and
 * compares each head with one rotated by itself. The values, behind the keys, must stay. */
static bool agrees_fused(struct posenc_rope *object, const struct posenc_positions *positions,
                         bool heads_first)
{
    static float x[BATCH * SEQUENCE * ROW], want[BATCH * SEQUENCE * ROW];
    const int64_t heads = ROW / HEAD_DIM;
    const int64_t token = heads_first ? HEAD_DIM : ROW;
    const int64_t head = heads_first ? SEQUENCE * HEAD_DIM : HEAD_DIM;
    const int64_t stride[4] = { (int64_t)SEQUENCE * ROW, token, head, 1 };
    const int64_t q_shape[4] = { BATCH, SEQUENCE, Q_HEADS, HEAD_DIM };
    const int64_t k_shape[4] = { BATCH, SEQUENCE, K_HEADS, HEAD_DIM };
    const struct posenc_tensor q = posenc_tensor_strided(POSENC_DTYPE_F32, x, 4, q_shape,
                                                         stride),
                               k = posenc_tensor_strided(POSENC_DTYPE_F32, x + Q_HEADS * head,
                                                         4, k_shape, stride);
    fill(POSENC_DTYPE_F32, x, BATCH * SEQUENCE * ROW);
    memcpy(want, x, sizeof x);
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t t = 0; t < SEQUENCE; t++)
            for (int64_t h = 0; h < heads - K_HEADS; h++)
                rotate_head(position_of(positions, b, t),
                            want + b * stride[0] + t * token + h * head);
    return posenc_rope_apply(object, positions, &q, &k, NULL) == POSENC_OK &&
           memcmp(x, want, sizeof x) == 0;
}

static void test_layouts(void)
{
    static const int64_t far[BATCH * SEQUENCE] = { 7, -3, 1 << 30, 0, 2, 2, 5, 1 << 21 };
    static const int32_t near[BATCH * SEQUENCE] = { 5, 0, 5000, 1, 9, 8, 7, 3 };
    static const float times[BATCH * SEQUENCE] = { 0.5f, 1, 2.25f, -3, 4, 5.125f, 6, 7 };
    const struct posenc_positions forms[] = {
        { .offset = 3 },
        { .offset = -2 },
        { .kind = POSENC_POSITIONS_I32, .data = near },
        { .kind = POSENC_POSITIONS_I32, .data = near, .stride_batch = SEQUENCE },
        { .kind = POSENC_POSITIONS_I64, .data = far, .stride_batch = SEQUENCE },
        { .kind = POSENC_POSITIONS_I64, .data = far + SEQUENCE - 1, .stride_token = -1 },
        { .kind = POSENC_POSITIONS_F32, .data = times, .stride_batch = SEQUENCE },
        { .kind = POSENC_POSITIONS_F32, .data = times },
    };
    struct posenc_rope *object = make_rope(POSENC_PAIRING_HALF);
    bool token_major = true, head_major = true;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        token_major = token_major && agrees_fused(object, &forms[i], false);
        head_major = head_major && agrees_fused(object, &forms[i], true);
    }
    require(token_major, "a fused QKV, [batch, tokens, heads, head_dim]");
    require(head_major, "a fused QKV, [batch, heads, tokens, head_dim]");
    posenc_rope_destroy(object);
}

/* ---- Rejections ---- */

/* Rejected calls must change neither q nor k. */
static void test_rejections(void)
{
    const struct posenc_freqs_spec odd = { .size = sizeof odd,
                                           .dim = 7,
                                           .rope_theta = 10000.0 };
    struct posenc_rope *object = make_rope(POSENC_PAIRING_HALF), *none = NULL;
    struct posenc_error error;
    float q[Q], before[Q];
    const struct posenc_tensor good =
        posenc_tensor_3d(POSENC_DTYPE_F32, q, TOKENS, 1, HEAD_DIM);
    struct posenc_tensor bad = good;
    struct posenc_positions positions = { .offset = INT32_MAX };
    fill(POSENC_DTYPE_F32, q, Q);
    memcpy(before, q, sizeof q);
    require(posenc_rope_create(&odd, POSENC_PAIRING_HALF, &none, &error) == POSENC_ERR_ODD &&
                error.value == 7.0,
            "an odd dim");
    require(posenc_rope_apply(object, &positions, &good, NULL, &error) == POSENC_ERR_POSITION,
            "a position beyond 2^31");
    positions = (struct posenc_positions){ .reserved = { 1 } };
    require(posenc_rope_apply(object, &positions, &good, NULL, NULL) == POSENC_ERR_ARGUMENT,
            "a reserved member");
    bad.shape[0] = TOKENS - 1;
    bad.data = q + (ptrdiff_t)TOKENS * HEAD_DIM;
    require(posenc_rope_apply(object, NULL, &good, &bad, NULL) == POSENC_ERR_SHAPE,
            "fewer keys than queries");
    require(posenc_rope_reserve(object, (1 << 20) + 1, NULL) == POSENC_ERR_POSITION,
            "more rows than are kept");
    require(memcmp(q, before, sizeof q) == 0, "and the queries are as they were");
    require(posenc_rope_apply(object, NULL, NULL, NULL, NULL) == POSENC_OK &&
                posenc_rope_apply_dense(object, POSENC_DTYPE_F32, 0, HEAD_DIM, 0, NULL, 1, NULL,
                                        0, NULL) == POSENC_OK,
            "nothing to rotate");
    posenc_rope_destroy(object);
    posenc_rope_destroy(NULL);
}

/* A rejected tensor, and the text of its error, in which %c is q or k. */
struct rejected {
    struct posenc_tensor tensor;
    enum posenc_status status;
    const char *what;
    struct posenc_positions positions;
};

static bool has_error(const struct posenc_error *error, const struct rejected *rejected,
                      char name)
{
    char what[sizeof error->what];
    snprintf(what, sizeof what, rejected->what, name);
    return error->status == rejected->status && strcmp(error->what, what) == 0;
}

/* Passes the tensor as q, as k, and as k beside a valid q. */
static bool is_named(struct posenc_rope *object, const struct posenc_tensor *valid,
                     const struct rejected *rejected)
{
    const struct posenc_positions *positions = &rejected->positions;
    const struct posenc_tensor *bad = &rejected->tensor;
    struct posenc_error q, k, both;
    return posenc_rope_apply(object, positions, bad, NULL, &q) == rejected->status &&
           has_error(&q, rejected, 'q') &&
           posenc_rope_apply(object, positions, NULL, bad, &k) == rejected->status &&
           has_error(&k, rejected, 'k') &&
           posenc_rope_apply(object, positions, valid, bad, &both) == rejected->status &&
           has_error(&both, rejected, 'k');
}

/* Errors name q or k, and no argument of a kernel. */
static void test_names_of_tensors(void)
{
    static float memory[2 * Q], before[2 * Q], zeros[Q]; /* zeros are positions, too */
    const struct posenc_tensor valid =
        posenc_tensor_3d(POSENC_DTYPE_F32, memory, TOKENS, 1, HEAD_DIM);
    struct posenc_tensor base = valid;
    base.data = memory + Q;
    fill(POSENC_DTYPE_F32, memory, 2 * Q);
    memcpy(before, memory, sizeof memory);
    struct rejected all[] = {
        { base, POSENC_ERR_ARGUMENT, "reserved members of %c (not 0)", { 0 } },
        { base, POSENC_ERR_SHAPE, "rank of %c", { 0 } },
        { base, POSENC_ERR_DTYPE, "dtype of %c", { 0 } },
        { base, POSENC_ERR_SHAPE, "dimension of %c", { 0 } },
        { base, POSENC_ERR_SHAPE, "last dimension of %c", { 0 } },
        { base, POSENC_ERR_ROTARY_DIM, "head_dim of %c (dim of the spec at least)", { 0 } },
        { base, POSENC_ERR_ARGUMENT, "data of %c (NULL)", { 0 } },
        { base, POSENC_ERR_ARGUMENT, "alignment of the data of %c in bytes", { 0 } },
        { base, POSENC_ERR_STRIDE, "stride of the last dimension of %c", { 0 } },
        { base, POSENC_ERR_STRIDE, "strides of %c (elements overlap)", { 0 } },
        { base, POSENC_ERR_OVERFLOW, "size of %c in bytes", { 0 } },
        { base, POSENC_ERR_DTYPE, "dtype of %c (this backend takes f32)", { 0 } },
        { base,
          POSENC_ERR_OVERLAP,
          "positions (overlap %c)",
          { .kind = POSENC_POSITIONS_I32, .data = zeros } },
    };
    enum { COUNT = sizeof all / sizeof *all };
    all[0].tensor.reserved[1] = 1;
    all[1].tensor.rank = 2;
    all[2].tensor.dtype = (enum posenc_dtype)7;
    all[3].tensor.shape[1] = -1;
    all[4].tensor.shape[2] = 0;
    all[5].tensor.shape[2] = DIM - 2;
    all[6].tensor.data = NULL;
    all[7].tensor.data = (char *)base.data + 1;
    all[8].tensor.stride[2] = 2;
    all[9].tensor.stride[0] = HEAD_DIM - 1;
    all[10].tensor.stride[0] = INT64_MAX / 2;
    all[11].tensor.dtype = POSENC_DTYPE_BF16;
    all[12].tensor.data = zeros;

    static struct posenc_backend f32_only; /* selected backends must remain */
    f32_only = *posenc_backend_find("scalar");
    f32_only.name = "f32_only";
    f32_only.f16_bf16 = false;
    if (posenc_select_backend(POSENC_KERNEL_ROPE_HALF, &f32_only, NULL))
        abort();
    struct posenc_rope *object = make_rope(POSENC_PAIRING_HALF);
    for (int i = 0; i < COUNT; i++)
        require(is_named(object, &valid, &all[i]), all[i].what);
    if (posenc_select_backend(POSENC_KERNEL_ROPE_HALF, NULL, NULL))
        abort();

    struct posenc_error error;
    require(posenc_rope_apply(object, NULL, &valid, &valid, &error) == POSENC_ERR_OVERLAP &&
                strcmp(error.what, "k (overlaps q)") == 0,
            "k (overlaps q)");
    require(memcmp(memory, before, sizeof memory) == 0, "rejected calls write nothing");
    posenc_rope_destroy(object);
}

/* The same for dense arrays, which become tensors. */
static void test_names_of_arrays(void)
{
    const struct rejected tokens = { .status = POSENC_ERR_SHAPE, .what = "dimension of %c" },
                          head_dim = { .status = POSENC_ERR_ROTARY_DIM,
                                       .what = "head_dim of %c (dim of the spec at least)" };
    struct posenc_rope *object = make_rope(POSENC_PAIRING_HALF);
    struct posenc_error error;
    float x[HEAD_DIM] = { 0 };
    require(posenc_rope_apply_dense(object, POSENC_DTYPE_F32, -1, HEAD_DIM, 0, x, 1, NULL, 0,
                                    &error) == POSENC_ERR_SHAPE &&
                has_error(&error, &tokens, 'q'),
            "tokens of q");
    require(posenc_rope_apply_dense(object, POSENC_DTYPE_F32, 1, DIM - 2, 0, NULL, 0, x, 1,
                                    &error) == POSENC_ERR_ROTARY_DIM &&
                has_error(&error, &head_dim, 'k') && error.value == DIM - 2 &&
                error.least == DIM,
            "head_dim of k");
    posenc_rope_destroy(object);
}

static void test_sinusoids(void)
{
    float x[2 * DIM] = { 0 }, table[2 * DIM];
    struct posenc_sinusoidal_args args = posenc_sinusoidal_args_init();
    args.freqs = freqs;
    args.positions.offset = 9;
    args.out = posenc_tensor_2d(POSENC_DTYPE_F32, table, 2, DIM);
    require(posenc_sinusoidal(NULL, &args, NULL) == POSENC_OK &&
                posenc_sinusoidal_add_dense(freqs, POSENC_LAYOUT_INTERLEAVED, POSENC_DTYPE_F32,
                                            2, 9, 1.0f, x, NULL) == POSENC_OK &&
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
    test_layouts();
    test_rejections();
    test_names_of_tensors();
    test_names_of_arrays();
    test_sinusoids();
    posenc_freqs_destroy(freqs);
    return tap_end();
}
