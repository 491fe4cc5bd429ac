/*
 * Tests that a prepared call gives the bits of the kernel with other pointers and positions, rejects what the kernel
 * rejects, and then leaves the outputs as they were.
 */
#include <posenc/backend.h>
#include <posenc/experimental.h>
#include "base/tap/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 8, HEADS = 3, WIDTH = HEADS * DIM, TOKENS = 2, ROWS = 16 };
enum { N = TOKENS * WIDTH, HALF = DIM / 2 };

static float cosines[ROWS * HALF], sines[ROWS * HALF];
static struct posenc_error error;

static void fill(float *x)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 13) - 5.5f;
}

static struct posenc_rope_args make_args(float *out)
{
    struct posenc_rope_args args = posenc_rope_args_init();
    args.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cosines, ROWS, HALF);
    args.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, ROWS, HALF);
    args.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, TOKENS, HEADS, DIM);
    args.x = posenc_const_view(args.out);
    return args;
}

static void test_rejections(void)
{
    float x[N + 1], before[N + 1];
    struct posenc_rope_args args = make_args(x);
    struct posenc_prepared *prepared = NULL, *none = NULL;
    char *odd = (char *)x + 1;
    fill(x);
    x[N] = 0.0f;
    memcpy(before, x, sizeof x);
    if (posenc_prepare(NULL, POSENC_KERNEL_ROPE_HALF, &args, &prepared, NULL))
        abort();
    require(posenc_run(prepared, x, x, ROWS - 1, &error) == POSENC_ERR_POSITION &&
                error.value == (double)ROWS && error.most == ROWS - 1,
            "a position beyond the table");
    require(posenc_run(prepared, x, x, -1, NULL) == POSENC_ERR_POSITION, "a negative one");
    require(posenc_run(prepared, x, x, INT64_MAX, NULL) == POSENC_ERR_POSITION,
            "the largest one");
    require(posenc_run(prepared, x, x + 1, 0, NULL) == POSENC_ERR_OVERLAP, "x woven into out");
    require(posenc_run(prepared, x, cosines + HALF, 0, NULL) == POSENC_ERR_OVERLAP,
            "out in cos");
    require(posenc_run(prepared, x, sines, 0, NULL) == POSENC_ERR_OVERLAP, "out in sin");
    require(posenc_run(prepared, x, NULL, 0, NULL) == POSENC_ERR_ARGUMENT, "no out");
    require(posenc_run(prepared, odd, odd, 0, NULL) == POSENC_ERR_ARGUMENT, "data not aligned");
    require(posenc_run_at(prepared, x, x, x, NULL) == POSENC_ERR_ARGUMENT,
            "an array for an offset");
    args.rotary_offset = 1;
    require(posenc_prepare(NULL, POSENC_KERNEL_ROPE_HALF, &args, &none, NULL) ==
                POSENC_ERR_ROTARY_DIM,
            "arguments that the kernel rejects");
    require(posenc_prepare(NULL, POSENC_KERNEL_ALIBI, &args, &none, NULL) ==
                POSENC_ERR_NOT_PROVIDED,
            "a kernel whose shape changes by step");
    require(memcmp(x, before, sizeof x) == 0, "nothing has been written");
    require(posenc_run(prepared, NULL, x, 0, NULL) == POSENC_OK,
            "and it still runs, with NULL in place");
    posenc_prepared_destroy(prepared);
    posenc_prepared_destroy(NULL);
}

/* Puts one table before out and one behind it, in either order. No output may begin within a table. */
static void test_between_tables(bool sines_first)
{
    enum { TABLE = ROWS * HALF };
    static float memory[TABLE + N + TABLE + N];
    float *out = memory + TABLE, *behind = out + N, x[N], want[N];
    struct posenc_rope_args args = make_args(want);
    struct posenc_prepared *prepared = NULL;
    memcpy(memory, sines_first ? sines : cosines, sizeof sines);
    memcpy(behind, sines_first ? cosines : sines, sizeof sines);
    args.cos.data = sines_first ? behind : memory;
    args.sin.data = sines_first ? memory : behind;
    fill(x);
    fill(want);
    if (posenc_prepare(NULL, POSENC_KERNEL_ROPE_HALF, &args, &prepared, NULL))
        abort();
    require(posenc_run(prepared, x, out, 3, NULL) == POSENC_OK &&
                posenc_run(prepared, want, want, 3, NULL) == POSENC_OK &&
                memcmp(out, want, sizeof want) == 0,
            "out between the tables");
    bool rejected = true;
    for (int k = 0; k < TABLE; k++)
        rejected &= posenc_run(prepared, x, memory + k, 3, NULL) == POSENC_ERR_OVERLAP &&
                    posenc_run(prepared, x, behind + k, 3, NULL) == POSENC_ERR_OVERLAP;
    require(rejected, "but at none of their elements");
    require(posenc_run(prepared, x, behind + TABLE, 3, NULL) == POSENC_OK, "behind both");
    posenc_prepared_destroy(prepared);
}

/* `stride` is the token stride of the prepared call; 0 stands for that of a dense array. */
static void test_positions(int64_t stride)
{
    static const int32_t good[TOKENS] = { 5, 3 }, bad[TOKENS] = { 5, ROWS };
    float x[N], want[N];
    struct posenc_rope_args args = make_args(x), direct = make_args(want);
    struct posenc_prepared *prepared = NULL;
    fill(x);
    fill(want);
    args.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I32,
                                                .data = good,
                                                .stride_token = 1 };
    direct.positions = args.positions;
    args.positions.stride_token = stride;
    if (posenc_prepare(NULL, POSENC_KERNEL_ROPE_HALF, &args, &prepared, NULL) ||
        posenc_rope_half(NULL, &direct, NULL))
        abort();
    require(posenc_run_at(prepared, x, x, bad, NULL) == POSENC_ERR_POSITION,
            "a row that is not there");
    require(posenc_run_at(prepared, x, x, good, NULL) == POSENC_OK &&
                memcmp(x, want, sizeof x) == 0,
            "an array of positions");
    require(posenc_run(prepared, x, x, 0, NULL) == POSENC_ERR_ARGUMENT,
            "an offset for an array");
    posenc_prepared_destroy(prepared);
}

/* ---- Each kernel that can be prepared ---- */

/* A call that can be prepared, with pointers to the members that each run sets. */
struct preparable_call {
    enum posenc_kernel kernel;
    const void *args;
    const void **x;
    void **out;
    struct posenc_positions *positions;
    const void *input;   /* another tensor that it reads, or NULL */
    int64_t least, most; /* offsets */
    bool takes_x;
};

static enum posenc_status run_directly(const struct preparable_call *k)
{
    switch ((int)k->kernel) {
    case POSENC_KERNEL_ROPE_HALF:
        return posenc_rope_half(NULL, k->args, NULL);
    case POSENC_KERNEL_ROPE_INTERLEAVED:
        return posenc_rope_interleaved(NULL, k->args, NULL);
    case POSENC_KERNEL_SINUSOIDAL:
        return posenc_sinusoidal(NULL, k->args, NULL);
    case POSENC_KERNEL_SINUSOIDAL_ADD:
        return posenc_sinusoidal_add(NULL, k->args, NULL);
    case POSENC_KERNEL_LEARNED_ADD:
        return posenc_learned_add(NULL, k->args, NULL);
    case POSENC_KERNEL_ROPE_QK_NORM:
        return posenc_rope_qk_norm(NULL, k->args, NULL);
    }
    abort();
}

static void require_kernel(bool holds, const struct preparable_call *k, const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %s", posenc_kernel_name(k->kernel), what);
    require(holds, text);
}

static void test_as_kernel(const struct preparable_call *k)
{
    float x[N], want[N], got[N];
    struct posenc_prepared *prepared = NULL;
    bool same = true;
    if (posenc_prepare(NULL, k->kernel, k->args, &prepared, NULL))
        abort();
    for (int64_t i = 0; i < 8; i++) {
        const int64_t offset = i < 4 ? k->least + i : k->most - (i - 4);
        fill(x);
        *k->x = k->takes_x ? x : NULL;
        *k->out = want;
        k->positions->offset = offset;
        memset(got, 0, sizeof got);
        same &= run_directly(k) == POSENC_OK &&
                posenc_run(prepared, *k->x, got, offset, NULL) == POSENC_OK &&
                memcmp(got, want, sizeof want) == 0;
        same &= !k->takes_x ||
                (posenc_run(prepared, i % 2 ? NULL : x, x, offset, NULL) == POSENC_OK &&
                 memcmp(x, want, sizeof want) == 0);
    }
    require_kernel(same, k, "the same bits, in place and apart");
    fill(got);
    memcpy(want, got, sizeof want);
    const void *in = k->takes_x ? x : NULL;
    require_kernel(posenc_run(prepared, in, got, k->least - 1, NULL) == POSENC_ERR_POSITION &&
                       posenc_run(prepared, in, got, k->most + 1, NULL) == POSENC_ERR_POSITION,
                   k, "positions before the first and after the last");
    require_kernel(k->takes_x ||
                       posenc_run(prepared, x, got, k->least, NULL) == POSENC_ERR_ARGUMENT,
                   k, "an x where there is none");
    require_kernel(!k->input || posenc_run(prepared, in, (void *)(uintptr_t)k->input, k->least,
                                           NULL) == POSENC_ERR_OVERLAP,
                   k, "out in what it reads");
    require_kernel(memcmp(got, want, sizeof got) == 0, k, "nothing has been written");
    posenc_prepared_destroy(prepared);
}

static void test_each_kernel(void)
{
    static float x[N], out[N], table[ROWS * WIDTH], weight[DIM];
    const int64_t most = INT32_MAX - (TOKENS - 1);
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    struct posenc_freqs *freqs = NULL;
    spec.dim = WIDTH;
    if (posenc_freqs_create(&spec, &freqs, NULL))
        abort();
    for (int i = 0; i < ROWS * WIDTH; i++)
        table[i] = (float)(i % 29) * 0.125f;
    for (int i = 0; i < DIM; i++)
        weight[i] = 1.0f + (float)i * 0.25f;

    struct posenc_rope_args rope = make_args(out);
    for (int pairs = 0; pairs < 2; pairs++)
        test_as_kernel(&(struct preparable_call){
            pairs ? POSENC_KERNEL_ROPE_INTERLEAVED : POSENC_KERNEL_ROPE_HALF, &rope,
            &rope.x.data, &rope.out.data, &rope.positions, cosines, 0, ROWS - TOKENS, true });

    struct posenc_sinusoidal_args sinusoidal = posenc_sinusoidal_args_init();
    sinusoidal.freqs = freqs;
    sinusoidal.out = posenc_tensor_2d(POSENC_DTYPE_F32, out, TOKENS, WIDTH);
    test_as_kernel(&(struct preparable_call){
        POSENC_KERNEL_SINUSOIDAL, &sinusoidal, &sinusoidal.x.data, &sinusoidal.out.data,
        &sinusoidal.positions, NULL, -INT32_MAX, most, false });
    sinusoidal.out.data = out;
    sinusoidal.x = posenc_const_view(sinusoidal.out);
    sinusoidal.x.data = x;
    sinusoidal.positions.offset = 0;
    test_as_kernel(&(struct preparable_call){
        POSENC_KERNEL_SINUSOIDAL_ADD, &sinusoidal, &sinusoidal.x.data, &sinusoidal.out.data,
        &sinusoidal.positions, NULL, -INT32_MAX, most, true });

    struct posenc_learned_args learned = posenc_learned_args_init();
    learned.table = posenc_const_tensor_2d(POSENC_DTYPE_F32, table, ROWS, WIDTH);
    learned.out = posenc_tensor_2d(POSENC_DTYPE_F32, out, TOKENS, WIDTH);
    learned.x = posenc_const_view(learned.out);
    test_as_kernel(&(struct preparable_call){
        POSENC_KERNEL_LEARNED_ADD, &learned, &learned.x.data, &learned.out.data,
        &learned.positions, table, 0, ROWS - TOKENS, true });

    struct posenc_rope_qk_norm_args norm = posenc_rope_qk_norm_args_init();
    norm.cos = posenc_const_tensor_2d(POSENC_DTYPE_F32, cosines, ROWS, HALF);
    norm.sin = posenc_const_tensor_2d(POSENC_DTYPE_F32, sines, ROWS, HALF);
    norm.weight = posenc_const_tensor_strided(POSENC_DTYPE_F32, weight, 1,
                                              (const int64_t[]){ DIM }, NULL);
    norm.out = posenc_tensor_3d(POSENC_DTYPE_F32, out, TOKENS, HEADS, DIM);
    norm.x = posenc_const_view(norm.out);
    test_as_kernel(&(struct preparable_call){ POSENC_KERNEL_ROPE_QK_NORM, &norm, &norm.x.data,
                                              &norm.out.data, &norm.positions, weight, 0,
                                              ROWS - TOKENS, true });
    posenc_freqs_destroy(freqs);
}

int main(void)
{
    for (int i = 0; i < ROWS * HALF; i++) {
        cosines[i] = 1.0f / (float)(i + 1);
        sines[i] = 1.0f - cosines[i];
    }
    test_rejections();
    test_between_tables(false);
    test_between_tables(true);
    test_positions(1);
    test_positions(0);
    test_each_kernel();
    return tap_end();
}
