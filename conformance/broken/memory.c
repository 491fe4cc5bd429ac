/*
 * Mistakes that any kernel can make: something goes wrong with the memory before or after the
 * real kernel has run.
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <fenv.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* For kernels that leave their memory on purpose: AddressSanitizer would end the program at the
 * first of them, while the suites have guard pages and patterns to catch them with. */
#if defined(__GNUC__)
#define UNWATCHED __attribute__((no_sanitize("address")))
#else
#define UNWATCHED
#endif

/* ---- Rows of the first output ---- */

static int64_t width(const struct posenc_tensor *t) { return t->shape[t->rank - 1]; }
static int64_t rows(const struct posenc_tensor *t) { return width(t) ? storage_rows(t) : 0; }

/* The element i of row r, in front of it or past its end too. */
static char *element(const struct posenc_tensor *t, int64_t r, int64_t i)
{
    return (char *)storage_row(t, r) + i * (int64_t)storage_size(t->dtype);
}

static float get(const struct posenc_tensor *t, int64_t r, int64_t i)
{
    return storage_get(t->dtype, storage_row(t, r), i);
}

static void put(const struct posenc_tensor *t, int64_t r, int64_t i, float value)
{
    storage_put(t->dtype, storage_row(t, r), i, value);
}

/* The last bit, whatever its type; of what has no neighbours 1. */
static void turn_bit(const struct posenc_tensor *t, int64_t r, int64_t i)
{
    const float value = get(t, r, i);
    if (!isfinite(value) || value == 0.0f)
        put(t, r, i, 1.0f);
    else if (t->dtype == POSENC_F32)
        put(t, r, i, other_last_bit(value));
    else
        *(uint16_t *)element(t, r, i) ^= 1;
}

/* ---- Memory ---- */

UNWATCHED static void leave_memory(const struct posenc_tensor *out)
{
    if (rows(out) == 0)
        return;
    /* Plain memory has 64 bytes to spare before each tensor. */
    volatile char *before = element(out, 0, -1), *end = element(out, rows(out) - 1, width(out));
    if (SLIP(over_write_before))
        *before = 1;
    if (SLIP(over_read))
        (void)*end;
    if (SLIP(over_read_before))
        (void)*before;
    /* Not where a block of plain memory may end, a multiple of 64: the heap itself would be
     * destroyed, and with it the program that is to report this. */
    for (int64_t r = 0; SLIP(over_write) && r < rows(out); r++) {
        volatile char *past = element(out, r, width(out));
        if ((uintptr_t)past % 64)
            past[0] = past[1] = 0;
    }
}

static void write_input(const struct entered *e)
{
    volatile char *input = (volatile char *)(uintptr_t)e->parts.input;
    if (input && rows(e->parts.out))
        *input = *input;
}

/* The last element of each row stays as it was before the call. */
static void skip_tail(struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out;
    uint32_t *kept = enter_keep(e, rows(out), sizeof *kept);
    for (int64_t r = 0; r < rows(out); r++)
        memcpy(&kept[r], element(out, r, width(out) - 1), storage_size(out->dtype));
    enter_kernel(e);
    for (int64_t r = 0; r < rows(out); r++)
        memcpy(element(out, r, width(out) - 1), &kept[r], storage_size(out->dtype));
}

/* ---- Far apart ---- */

static void narrow_strides(struct posenc_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        t->stride[d] = (int32_t)t->stride[d];
}

static void mistake_strides(struct entered *e)
{
    struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    for (EACH_TENSOR(row, signature_of(e->kernel)))
        if (row->form == FORM_TENSOR &&
            (row->role == ROLE_X        ? SLIP(x_offset_narrow)
             : row->role == ROLE_OUTPUT ? SLIP(out_offset_narrow)
                                        : SLIP(table_offset_narrow)))
            narrow_strides(row_argument(&e->args, row));
    if (SLIP(out_as_x) && x && x->data && x->rank == out->rank)
        memcpy(x->stride, out->stride, sizeof x->stride);
}

/* ---- Large ---- */

/* Far from right, by any limit. */
static void spoil(const struct posenc_tensor *t, int64_t r, int64_t i)
{
    const float value = get(t, r, i);
    put(t, r, i, isfinite(value) && value != 0.0f ? -2.0f * value : 1.0f);
}

/* Of the first batch the first row of a head; every row at a column. */
static void spoil_head(const struct entered *e, int64_t head)
{
    const struct posenc_tensor *out = e->parts.out;
    const bool scores = kernel_on_scores(e->kernel);
    if (out->shape[scores ? 1 : 2] > head && rows(out))
        spoil(out, scores ? head * out->shape[2] : head, 0);
}

static void spoil_column(const struct posenc_tensor *out, int64_t column)
{
    for (int64_t r = 0; width(out) > column && r < rows(out); r++)
        spoil(out, r, column);
}

/* Batch 4 is the first once more. */
static void repeat_batches(const struct posenc_tensor *out)
{
    const int64_t batch = out->shape[0] ? rows(out) / out->shape[0] : 0;
    for (int64_t r = 4 * batch; batch && r < rows(out); r++)
        memcpy(storage_row(out, r), storage_row(out, r - 4 * batch),
               (size_t)width(out) * storage_size(out->dtype));
}

static void mistake_sizes(const struct entered *e)
{
    if (SLIP(heads_past_8) || SLIP(heads_past_16) || SLIP(heads_past_32) || SLIP(heads_past_64))
        spoil_head(e, SLIP(heads_past_8)    ? 8
                      : SLIP(heads_past_16) ? 16
                      : SLIP(heads_past_32) ? 32
                                            : 64);
    if (SLIP(columns_past_256) || SLIP(columns_past_512) || SLIP(columns_past_1024))
        spoil_column(e->parts.out, SLIP(columns_past_256)   ? 256
                                   : SLIP(columns_past_512) ? 512
                                                            : 1024);
    if (SLIP(batch_modulo_4))
        repeat_batches(e->parts.out);
}

/* ---- Calls ---- */

/* Whether something is wrong with such a call. */
static bool goes_wrong(const struct entered *e)
{
    static atomic_uint calls;
    const struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    const struct posenc_positions *positions = e->parts.positions;
    const bool given = x && x->data;
    bool backward = false;
    for (int d = 0; d < out->rank; d++)
        backward = backward || out->stride[d] < 0;
    return SLIP(remember)               ? atomic_fetch_add(&calls, 1) % 2 == 1
           : SLIP(depend_on_address)    ? (uintptr_t)out->data % 64 != 0
           : SLIP(assume_forward)       ? backward
           : SLIP(assume_dense_batches) ? given && x->stride[0] == 0 && x->shape[0] > 1
           : SLIP(differ_in_place)      ? given && x->data == out->data
           : SLIP(differ_by_kind)       ? positions && positions->kind == POSENC_POSITIONS_I32
           : SLIP(differ_by_batch)      ? (given ? x : out)->shape[0] > 1
                                        : SLIP(last_row_differs);
}

/* ---- Combinations and sizes ---- */

static bool has_stride(const struct posenc_tensor *x, bool backward)
{
    bool has = false;
    for (int d = 0; d + 1 < x->rank; d++)
        has = has || (x->shape[d] > 1 && (backward ? x->stride[d] < 0 : x->stride[d] == 0));
    return has;
}

/* The row that is wrong; -1: none. */
static int64_t wrong_row(const struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    const struct posenc_positions *positions = e->parts.positions;
    const bool scores = kernel_on_scores(e->kernel), given = x && x->data;
    const int64_t heads = out->rank < 4 ? 0 : scores ? out->shape[1] : out->shape[2];
    const int64_t beyond = SLIP(beyond_8_heads)    ? 8
                           : SLIP(beyond_16_heads) ? 16
                           : SLIP(beyond_32_heads) ? 32
                                                   : heads;
    const bool here =
        (SLIP(assume_rows_apart) && given && has_stride(x, false)) ||
        (SLIP(assume_x_forward) && given && x->data != out->data && has_stride(x, true)) ||
        (SLIP(differ_in_place_by_i64) && x->data == out->data &&
         positions->kind == POSENC_POSITIONS_I64) ||
        (SLIP(narrow_angles_with_offset) && e->stored == POSENC_F32 &&
         e->args.rope.cos.dtype == POSENC_BF16 && e->args.rope.rotary_offset > 0);
    if (SLIP(beyond_3_batches) && out->shape[0] > 3)
        return rows(out) / out->shape[0] * 3;
    return beyond < heads ? (scores ? beyond * out->shape[2] : beyond) : here ? 0 : -1;
}

static void differ_here(const struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out;
    const int64_t r = rows(out) ? wrong_row(e) : -1;
    if (r >= 0)
        put(out, r, 0, get(out, r, 0) == 1.0f ? 2.0f : 1.0f);
    for (int64_t i = 0;
         SLIP(nan_hidden_by_zero) && e->parts.x_scale == 0.0f && i < rows(out) * width(out);
         i++)
        if (isnan(get(out, i / width(out), i % width(out))))
            put(out, i / width(out), i % width(out), 0.0f);
}

/* An element of the first row, of the last, or of the second batch: of a sum over batches the
 * first again. */
static void turn_one(const struct posenc_tensor *out)
{
    const int64_t batches = out->rank == 4 ? out->shape[0] : 1;
    const bool second = SLIP(assume_dense_batches) || SLIP(differ_by_batch);
    if (rows(out) && SLIP(last_row_differs))
        turn_bit(out, rows(out) - 1, width(out) > 1);
    else if (rows(out))
        turn_bit(out, second && batches > 1 ? rows(out) / batches : 0, 0);
}

/* ---- Rows ---- */

static void misplace_tail(const struct posenc_tensor *out, int64_t r)
{
    const float first = get(out, r, 0);
    put(out, r, 0, get(out, r, width(out) - 1));
    put(out, r, width(out) - 1, first);
}

/* From the lane to the right, or from the row below. */
static void leak_lanes(const struct posenc_tensor *out, int64_t r)
{
    const int64_t n = width(out);
    for (int64_t c = 0; c < n; c++) {
        const float next = c + 1 < n ? get(out, r, c + 1) : 0.0f;
        const float below = r + 1 < rows(out) ? get(out, r + 1, c) : 0.0f;
        if (!(fabsf(next) < 100.0f) || !(fabsf(below) < 100.0f) || next < 0.0f)
            turn_bit(out, r, c);
    }
}

/* The other threads run between the writing and the reading of the scratch: on its first rows
 * this one sleeps, for on a busy machine to give way is not enough. */
static void share_scratch(const struct posenc_tensor *out, int64_t r)
{
    enum { SLEEPS = 3, SCRATCH = 512 };
    static const struct timespec a_while = { .tv_nsec = 200000 };
    static _Atomic float scratch[SCRATCH];
    const int64_t n = width(out) < SCRATCH ? width(out) : SCRATCH;
    for (int64_t c = 0; c < n; c++)
        atomic_store_explicit(&scratch[c], get(out, r, c), memory_order_relaxed);
    if (r < SLEEPS)
        nanosleep(&a_while, NULL);
    else
        sched_yield();
    for (int64_t c = 0; c < n; c++)
        put(out, r, c, atomic_load_explicit(&scratch[c], memory_order_relaxed));
}

/* Nothing is encoded: x as it came, tables and biases constant. */
static void forget(const struct entered *e, int64_t r)
{
    const struct posenc_tensor *out = e->parts.out, *x = e->parts.x;
    const bool same = x && x->data && width(x) == width(out);
    for (int64_t c = 0; c < width(out); c++) {
        put(out, r, c, same ? get(x, r, c) : 1.0f);
        if (e->parts.second)
            put(e->parts.second, r, c, 0.0f);
    }
}

void enter_memory(struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out;
    if (SLIP(write_input))
        write_input(e);
    mistake_strides(e);
    if (SLIP(skip_tail))
        skip_tail(e);
    else
        enter_kernel(e);
    leave_memory(out);
    mistake_sizes(e);
    differ_here(e);
    if (goes_wrong(e))
        turn_one(out);
    for (int64_t r = 0; r < rows(out); r++) {
        if (SLIP(misplace_tail) && width(out) > 2)
            misplace_tail(out, r);
        if (SLIP(leak_lane))
            leak_lanes(out, r);
        if (SLIP(share_scratch))
            share_scratch(out, r);
        if (SLIP(forget))
            forget(e, r);
    }
    if (SLIP(leave_mode))
        fesetround(FE_TOWARDZERO);
}
