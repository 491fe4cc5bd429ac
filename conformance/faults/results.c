/* Faults of results: wrong values in calls with certain arguments, layouts or sizes; see faulty.h. */
#define _POSIX_C_SOURCE 200809L
#include "faulty.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Returns true if the call has x. */
static bool has_x(const struct kernel_call *c) { return c->x && c->x->data; }

/* Sets the first element of a row to 1, or to 2. */
static void put_wrong_value(const struct kernel_call *c, int64_t row)
{
    if (tensor_row_count(c->out))
        tensor_put(c->out, row, 0, tensor_get(c->out, row, 0) == 1.0f ? 2.0f : 1.0f);
}

/* Makes a value wrong by more than any error limit. */
static void spoil_value(const struct posenc_tensor *t, int64_t row, int64_t column)
{
    const float value = tensor_get(t, row, column);
    tensor_put(t, row, column, isfinite(value) && value != 0.0f ? -2.0f * value : 1.0f);
}

/* ---- A last bit ---- */

static void flip_first_bit(const struct kernel_call *c)
{
    if (tensor_row_count(c->out))
        tensor_flip_bit(c->out, 0, 0);
}

/* Flips a bit in the second batch, or in the first one if the output is a sum over batches. */
static void flip_bit_of_second_batch(const struct kernel_call *c)
{
    const int64_t batches = c->out->rank == 4 ? c->out->shape[0] : 1,
                  rows = tensor_row_count(c->out);
    if (rows)
        tensor_flip_bit(c->out, batches > 1 ? rows / batches : 0, 0);
}

static void differ_in_last_row(struct kernel_call *c)
{
    const int64_t rows = tensor_row_count(c->out);
    run_kernel(c);
    if (rows)
        tensor_flip_bit(c->out, rows - 1, tensor_width(c->out) > 1);
}

static void differ_in_place(struct kernel_call *c)
{
    run_kernel(c);
    if (has_x(c) && c->x->data == c->out->data)
        flip_first_bit(c);
}

static void differ_by_position_kind(struct kernel_call *c)
{
    run_kernel(c);
    if (c->positions && c->positions->kind == POSENC_POSITIONS_I32)
        flip_first_bit(c);
}

static void differ_by_batch(struct kernel_call *c)
{
    run_kernel(c);
    if ((has_x(c) ? c->x : c->out)->shape[0] > 1)
        flip_bit_of_second_batch(c);
}

/* Computes a wrong result if a call has fewer batches than the call before, at the same stride, as a part of that call
 * would have. */
static void differ_in_part_of_batches(struct kernel_call *c)
{
    static int64_t batches, stride;
    const struct posenc_tensor *out = c->out;
    run_kernel(c);
    if (out->stride[0] == stride && out->shape[0] > 1 && out->shape[0] < batches)
        flip_first_bit(c);
    batches = out->shape[0];
    stride = out->stride[0];
}

static void assume_dense_batches(struct kernel_call *c)
{
    run_kernel(c);
    if (has_x(c) && c->x->stride[0] == 0 && c->x->shape[0] > 1)
        flip_bit_of_second_batch(c);
}

static void assume_forward_strides(struct kernel_call *c)
{
    bool backward = false;
    for (int d = 0; d < c->out->rank; d++)
        backward = backward || c->out->stride[d] < 0;
    run_kernel(c);
    if (backward)
        flip_first_bit(c);
}

/* ---- Layouts and kinds ---- */

static void differ_in_place_by_i64(struct kernel_call *c)
{
    run_kernel(c);
    if (c->x->data == c->out->data && c->positions->kind == POSENC_POSITIONS_I64)
        put_wrong_value(c, 0);
}

/* Returns true if x has a negative stride; with `sign` 0, a stride of 0. */
static bool has_stride(const struct posenc_tensor *x, int sign)
{
    bool has = false;
    for (int d = 0; d + 1 < x->rank; d++)
        has = has || (x->shape[d] > 1 && (sign < 0 ? x->stride[d] < 0 : x->stride[d] == 0));
    return has;
}

static void assume_rows_of_x_apart(struct kernel_call *c)
{
    run_kernel(c);
    if (has_x(c) && has_stride(c->x, 0))
        put_wrong_value(c, 0);
}

static void assume_x_forward(struct kernel_call *c)
{
    run_kernel(c);
    if (has_x(c) && c->x->data != c->out->data && has_stride(c->x, -1))
        put_wrong_value(c, 0);
}

static void give_x_strides_of_out(struct kernel_call *c)
{
    if (c->x->data != c->out->data)
        memcpy(c->x->stride, c->out->stride, sizeof c->x->stride);
    run_kernel(c);
}

static void give_sin_stride_of_cos(struct kernel_call *c)
{
    struct posenc_tensor *cos = NULL;
    for (EACH_TENSOR(row, signature_of(c->kernel)))
        if (row->type == TYPE_TABLE) {
            struct posenc_tensor *table = arguments_get(&c->args, row);
            cos = cos ? cos : table;
            table->stride[0] = cos->stride[0];
        }
    run_kernel(c);
}

static void ignore_token_stride(struct kernel_call *c)
{
    c->positions->stride_token = 1;
    run_kernel(c);
}

/* ---- Parameters ---- */

static void lose_sign_of_x_scale(struct kernel_call *c)
{
    const float magnitude = fabsf(c->x_scale);
    const size_t at = signature_argument(signature_of(c->kernel), MEMBER(x_scale));
    memcpy((char *)&c->args + at, &magnitude, sizeof magnitude);
    run_kernel(c);
}

/* Computes 0 for NaN times an x_scale of 0. */
static void hide_nan_by_zero(struct kernel_call *c)
{
    run_kernel(c);
    for (int64_t r = 0; c->x_scale == 0.0f && r < tensor_row_count(c->out); r++)
        for (int64_t k = 0; k < tensor_width(c->out); k++)
            if (isnan(tensor_get(c->out, r, k)))
                tensor_put(c->out, r, k, 0.0f);
}

/* Computes no encoding: copies x, and makes tables and biases constant. */
static void encode_nothing(struct kernel_call *c)
{
    const struct posenc_tensor *out = c->out, *x = c->x;
    const bool copies_x = has_x(c) && tensor_width(x) == tensor_width(out);
    run_kernel(c);
    for (int64_t r = 0; r < tensor_row_count(out); r++)
        for (int64_t k = 0; k < tensor_width(out); k++) {
            tensor_put(out, r, k, copies_x ? tensor_get(x, r, k) : 1.0f);
            if (c->second_out)
                tensor_put(c->second_out, r, k, 0.0f);
        }
}

/* ---- Sizes ---- */

static void fail_from_batch_3(struct kernel_call *c)
{
    run_kernel(c);
    if (c->out->shape[0] > 3)
        put_wrong_value(c, tensor_row_count(c->out) / c->out->shape[0] * 3);
}

/* Returns the first row of a head in the first batch; -1 if there is no such head. */
static int64_t find_head(const struct kernel_call *c, int64_t head)
{
    const struct posenc_tensor *out = c->out;
    const bool on_scores = kernel_on_scores(c->kernel);
    const int64_t heads = out->shape[on_scores ? 1 : 2];
    if (out->rank < 4 || heads <= head || !tensor_row_count(out))
        return -1;
    return on_scores ? head * out->shape[2] : head;
}

static void spoil_head(struct kernel_call *c, int64_t head)
{
    const int64_t row = find_head(c, head);
    run_kernel(c);
    if (row >= 0)
        spoil_value(c->out, row, 0);
}

static void fail_at_head_8(struct kernel_call *c) { spoil_head(c, 8); }
static void fail_at_head_32(struct kernel_call *c) { spoil_head(c, 32); }
static void fail_at_head_64(struct kernel_call *c) { spoil_head(c, 64); }

static void fail_at_column_1024(struct kernel_call *c)
{
    run_kernel(c);
    for (int64_t r = 0; tensor_width(c->out) > 1024 && r < tensor_row_count(c->out); r++)
        spoil_value(c->out, r, 1024);
}

/* Replaces batch 4 and later ones by copies of the first ones. */
static void count_batches_modulo_4(struct kernel_call *c)
{
    const struct posenc_tensor *out = c->out;
    const int64_t rows = tensor_row_count(out),
                  batch = out->shape[0] ? rows / out->shape[0] : 0;
    run_kernel(c);
    for (int64_t r = 4 * batch; batch && r < rows; r++)
        memcpy(storage_row(out, r), storage_row(out, r - 4 * batch),
               (size_t)tensor_width(out) * storage_size(out->dtype));
}

/* ---- Threads ---- */

/* Writes each row to a static scratch buffer and reads it back. In the first rows it sleeps between the two, so that
 * other threads run. Yielding would have no effect on a busy machine. */
static void share_scratch(struct kernel_call *c)
{
    enum { SLEEPS = 3, SCRATCH = 512 };
    static const struct timespec a_while = { .tv_nsec = 200000 };
    static _Atomic float scratch[SCRATCH];
    const struct posenc_tensor *out = c->out;
    const int64_t n = tensor_width(out) < SCRATCH ? tensor_width(out) : SCRATCH;
    run_kernel(c);
    for (int64_t r = 0; r < tensor_row_count(out); r++) {
        for (int64_t k = 0; k < n; k++)
            atomic_store_explicit(&scratch[k], tensor_get(out, r, k), memory_order_relaxed);
        if (r < SLEEPS)
            nanosleep(&a_while, NULL);
        else
            sched_yield();
        for (int64_t k = 0; k < n; k++)
            tensor_put(out, r, k, atomic_load_explicit(&scratch[k], memory_order_relaxed));
    }
}

/* ---- The table ---- */

static bool encodes(enum posenc_kernel kernel) { return kernel != POSENC_KERNEL_LEARNED_GRAD; }
static bool in_place_by_position(enum posenc_kernel kernel)
{
    return token_kernel(kernel) && kernel_in_place(kernel);
}
static bool has_heads(enum posenc_kernel kernel)
{
    return kernel_on_scores(kernel) || kernel_rotates(kernel);
}

/* Returns true if the first output has batches. */
static bool has_batches(enum posenc_kernel kernel)
{
    return kernel_has_batch(kernel) && encodes(kernel);
}

/* Returns true if a dimension of the first output counts `dim`. */
static bool output_counts(enum posenc_kernel kernel, enum dim dim)
{
    const struct tensor_spec *out = signature_output(signature_of(kernel), 0);
    bool counts = false;
    for (int d = 0; d < tensor_dims(out); d++)
        counts = counts || out->dims[d] == dim;
    return counts;
}
static bool counts_heads(enum posenc_kernel kernel) { return output_counts(kernel, DIM_HEAD); }
static bool counts_batches(enum posenc_kernel kernel)
{
    return kernel_has_batch(kernel) && output_counts(kernel, DIM_BATCH);
}
static bool has_wide_rows(enum posenc_kernel kernel)
{
    return kernel_signature(kernel) != SIGNATURE_window;
}

#define BF16 POSENC_DTYPE_BF16
#define F32  POSENC_DTYPE_F32
const struct fault result_faults[] = {
    { "encodes-nothing", "random", "pairs", F32, encodes, encode_nothing },
    { "last-row-differs", "properties", "slices", F32, every_kernel, differ_in_last_row },
    { "part-of-batches-differs", "properties", "slices", F32, counts_batches,
      differ_in_part_of_batches },
    { "shared-scratch", "properties", "threads", F32, every_kernel, share_scratch },
    { "differs-in-place", "properties", "in-place", F32, kernel_in_place, differ_in_place },
    { "differs-by-kind", "properties", "numbering", F32, token_kernel,
      differ_by_position_kind },
    { "differs-by-batch", "properties", "batches", F32, token_kernel, differ_by_batch },
    { "in-place-differs-by-i64", "random", "pairs", F32, in_place_by_position,
      differ_in_place_by_i64 },
    { "assumes-dense-batches", "memory", "broadcast", F32, kernel_takes_x,
      assume_dense_batches },
    { "assumes-forward-strides", "properties", "layouts", F32, every_kernel,
      assume_forward_strides },
    { "assumes-rows-of-x-apart", "random", "pairs", F32, kernel_takes_x,
      assume_rows_of_x_apart },
    { "assumes-x-forward", "random", "pairs", F32, kernel_takes_x, assume_x_forward },
    { "x-has-strides-of-out", "random", "pairs", F32, kernel_takes_x, give_x_strides_of_out },
    { "sin-has-stride-of-cos", "random", "pairs", F32, kernel_rotates, give_sin_stride_of_cos },
    { "token-stride-ignored", "random", "pairs", F32, token_kernel, ignore_token_stride },
    { "negative-x-scale-lost", "random", "pairs", F32, kernel_adds_onto_x,
      lose_sign_of_x_scale },
    { "zero-x-scale-hides-nan", "random", "pairs", F32, kernel_adds_onto_x, hide_nan_by_zero },
    { "batches-beyond-3", "random", "pairs", F32, has_batches, fail_from_batch_3 },
    { "heads-beyond-32", "random", "pairs", F32, has_heads, fail_at_head_32 },
    { "head-8-wrong", "memory", "sizes", BF16, counts_heads, fail_at_head_8 },
    { "head-64-wrong", "memory", "sizes", BF16, counts_heads, fail_at_head_64 },
    { "batch-modulo-4", "memory", "sizes", BF16, counts_batches, count_batches_modulo_4 },
    { "column-1024-wrong", "memory", "sizes", F32, has_wide_rows, fail_at_column_1024 },
    { .name = NULL },
};
