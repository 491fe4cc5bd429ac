/*
 * A prepared call gives what the kernel gives, with other pointers and positions, and refuses
 * what the kernel refuses, with the outputs as they were.
 */
#define POSENC_EXPERIMENTAL
#include <posenc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIM = 8, HEADS = 3, TOKENS = 2, ROWS = 16, N = TOKENS * HEADS * DIM, HALF = DIM / 2 };

static int failures;
static float cosines[ROWS * HALF], sines[ROWS * HALF];
static struct posenc_error error;

static void require(bool holds, const char *what)
{
    failures += !holds;
    printf("%s: %s\n", holds ? "ok" : "FAILED", what);
}

static void fill(float *x)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)(i % 13) - 5.5f;
}

static struct posenc_rope_args args_of(float *out)
{
    struct posenc_rope_args args = posenc_rope_args_init();
    args.error = &error;
    args.cos = posenc_const_dense(cosines, 2, ROWS, HALF, 0, 0);
    args.sin = posenc_const_dense(sines, 2, ROWS, HALF, 0, 0);
    args.out = posenc_dense(out, 3, TOKENS, HEADS, DIM, 0);
    args.x = posenc_view(args.out);
    return args;
}

static void at_offsets(enum posenc_kernel kernel)
{
    float first[N], other[N], want[N], apart[N];
    struct posenc_rope_args args = args_of(first);
    struct posenc_prepared *prepared = NULL;
    bool same = true;
    if (posenc_prepare(NULL, kernel, &args, &prepared))
        abort();
    for (int64_t offset = 0; offset + TOKENS <= ROWS; offset++) {
        fill(other);
        fill(want);
        struct posenc_rope_args plain = args_of(want);
        plain.positions.offset = offset;
        enum posenc_status status = kernel == POSENC_KERNEL_rope_half
                                        ? posenc_rope_half(NULL, &plain)
                                        : posenc_rope_interleaved(NULL, &plain);
        same &= status == POSENC_OK &&
                posenc_run(prepared, other, apart, offset) == POSENC_OK &&
                memcmp(apart, want, sizeof want) == 0;
        same &= posenc_run(prepared, other, other, offset) == POSENC_OK &&
                memcmp(other, want, sizeof want) == 0;
    }
    require(same, "the same bits, in place and apart");
    posenc_prepared_destroy(prepared);
}

static void refusals(void)
{
    float x[N + 1], before[N + 1];
    struct posenc_rope_args args = args_of(x);
    struct posenc_prepared *prepared = NULL, *none = NULL;
    char *odd = (char *)x + 1;
    fill(x);
    x[N] = 0.0f;
    memcpy(before, x, sizeof x);
    if (posenc_prepare(NULL, POSENC_KERNEL_rope_half, &args, &prepared))
        abort();
    require(posenc_run(prepared, x, x, ROWS - 1) == POSENC_ERR_POSITION &&
                error.value == ROWS && error.most == ROWS - 1,
            "a position beyond the table");
    require(posenc_run(prepared, x, x, -1) == POSENC_ERR_POSITION, "a negative one");
    require(posenc_run(prepared, x, x, INT64_MAX) == POSENC_ERR_POSITION, "the largest one");
    require(posenc_run(prepared, x, x + 1, 0) == POSENC_ERR_OVERLAP, "x woven into out");
    require(posenc_run(prepared, x, cosines + HALF, 0) == POSENC_ERR_OVERLAP, "out in cos");
    require(posenc_run(prepared, x, sines, 0) == POSENC_ERR_OVERLAP, "out in sin");
    require(posenc_run(prepared, x, NULL, 0) == POSENC_ERR_ARGUMENT, "no out");
    require(posenc_run(prepared, NULL, x, 0) == POSENC_ERR_ARGUMENT, "no x");
    require(posenc_run(prepared, odd, odd, 0) == POSENC_ERR_ARGUMENT, "data not aligned");
    require(posenc_run_at(prepared, x, x, x) == POSENC_ERR_ARGUMENT, "an array for an offset");
    args.rotary_offset = 1;
    require(posenc_prepare(NULL, POSENC_KERNEL_rope_half, &args, &none) ==
                POSENC_ERR_ROTARY_DIM,
            "arguments that the kernel refuses");
    require(posenc_prepare(NULL, POSENC_KERNEL_alibi, &args, &none) == POSENC_ERR_NOT_PROVIDED,
            "a kernel whose shape changes by step");
    require(memcmp(x, before, sizeof x) == 0, "nothing has been written");
    require(posenc_run(prepared, x, x, 0) == POSENC_OK, "and it still runs");
    posenc_prepared_destroy(prepared);
    posenc_prepared_destroy(NULL);
}

static void at_positions(void)
{
    static const int32_t good[TOKENS] = { 5, 3 }, bad[TOKENS] = { 5, ROWS };
    float x[N], want[N];
    struct posenc_rope_args args = args_of(x), plain = args_of(want);
    struct posenc_prepared *prepared = NULL;
    fill(x);
    fill(want);
    args.positions = (struct posenc_positions){ .kind = POSENC_POSITIONS_I32,
                                                .data = good,
                                                .stride_token = 1 };
    plain.positions = args.positions;
    if (posenc_prepare(NULL, POSENC_KERNEL_rope_half, &args, &prepared) ||
        posenc_rope_half(NULL, &plain))
        abort();
    require(posenc_run_at(prepared, x, x, bad) == POSENC_ERR_POSITION,
            "a row that is not there");
    require(posenc_run_at(prepared, x, x, good) == POSENC_OK && memcmp(x, want, sizeof x) == 0,
            "an array of positions");
    require(posenc_run(prepared, x, x, 0) == POSENC_ERR_ARGUMENT, "an offset for an array");
    posenc_prepared_destroy(prepared);
}

int main(void)
{
    for (int i = 0; i < ROWS * HALF; i++) {
        cosines[i] = 1.0f / (float)(i + 1);
        sines[i] = 1.0f - cosines[i];
    }
    at_offsets(POSENC_KERNEL_rope_half);
    at_offsets(POSENC_KERNEL_rope_interleaved);
    refusals();
    at_positions();
    printf("%d failed\n", failures);
    return failures != 0;
}
