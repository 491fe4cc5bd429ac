/*
 * Faults of memory and arguments: something goes wrong before or after the real kernel has run.
 */
#define _POSIX_C_SOURCE 200809L
#include "faulty.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <fenv.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Marks functions that leave their memory on purpose: AddressSanitizer would end the program there,
 * while the suites detect it by guard pages and patterns. */
#if defined(__GNUC__)
#define UNWATCHED __attribute__((no_sanitize("address")))
#else
#define UNWATCHED
#endif

/* ---- Rows of the first output ---- */

static int64_t width(const struct posenc_tensor *t) { return t->shape[t->rank - 1]; }
static int64_t rows(const struct posenc_tensor *t) { return width(t) ? storage_rows(t) : 0; }

/* Returns element i of row r, which may lie in front of it or past its end. */
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

/* Flips the last bit of a value; one that has no neighbours becomes 1. */
static void flip_bit(const struct posenc_tensor *t, int64_t r, int64_t i)
{
    const float value = get(t, r, i);
    if (!isfinite(value) || value == 0.0f)
        put(t, r, i, 1.0f);
    else if (t->dtype == POSENC_F32)
        put(t, r, i, bits_to_float(float_to_bits(value) ^ 1u));
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
    if (FAULT_IS(OVER_WRITE_BEFORE))
        *before = 1;
    if (FAULT_IS(OVER_READ))
        (void)*end;
    if (FAULT_IS(OVER_READ_BEFORE))
        (void)*before;
    /* Not where a block of plain memory may end, a multiple of 64: the heap itself would be
     * destroyed, and with it the program that is to report this. */
    for (int64_t r = 0; FAULT_IS(OVER_WRITE) && r < rows(out); r++) {
        volatile char *past = element(out, r, width(out));
        if ((uintptr_t)past % 64)
            past[0] = past[1] = 0;
    }
}

static void write_input(const struct entered *e)
{
    volatile char *input = (volatile char *)(uintptr_t)e->input;
    if (input && rows(e->out))
        *input = *input;
}

/* Leaves the last element of each row as it was before the call. */
static void skip_tail(struct entered *e)
{
    const struct posenc_tensor *out = e->out;
    uint32_t *kept = calloc((size_t)rows(out) + 1, sizeof *kept);
    if (!kept)
        exit(2);
    for (int64_t r = 0; r < rows(out); r++)
        memcpy(&kept[r], element(out, r, width(out) - 1), storage_size(out->dtype));
    enter_kernel(e);
    for (int64_t r = 0; r < rows(out); r++)
        memcpy(element(out, r, width(out) - 1), &kept[r], storage_size(out->dtype));
    free(kept);
}

/* ---- Far apart ---- */

static void narrow_strides(struct posenc_tensor *t)
{
    for (int d = 0; d < t->rank; d++)
        t->stride[d] = (int32_t)t->stride[d];
}

static void spoil_strides(struct entered *e)
{
    struct posenc_tensor *out = e->out, *x = e->x;
    for (EACH_TENSOR(row, signature_of(e->kernel)))
        if (row->form == FORM_TENSOR &&
            (row->role == ROLE_X        ? FAULT_IS(X_OFFSET_NARROW)
             : row->role == ROLE_OUTPUT ? FAULT_IS(OUT_OFFSET_NARROW)
                                        : FAULT_IS(TABLE_OFFSET_NARROW)))
            narrow_strides(row_argument(&e->args, row));
    if (FAULT_IS(OUT_AS_X) && x && x->data && x->rank == out->rank)
        memcpy(x->stride, out->stride, sizeof x->stride);
}

/* ---- Large ---- */

/* Makes a value wrong beyond any limit. */
static void spoil(const struct posenc_tensor *t, int64_t r, int64_t i)
{
    const float value = get(t, r, i);
    put(t, r, i, isfinite(value) && value != 0.0f ? -2.0f * value : 1.0f);
}

/* Spoils the first row of a head in the first batch; every row at a column. */
static void spoil_head(const struct entered *e, int64_t head)
{
    const struct posenc_tensor *out = e->out;
    const bool scores = kernel_on_scores(e->kernel);
    if (out->shape[scores ? 1 : 2] > head && rows(out))
        spoil(out, scores ? head * out->shape[2] : head, 0);
}

static void spoil_column(const struct posenc_tensor *out, int64_t column)
{
    for (int64_t r = 0; width(out) > column && r < rows(out); r++)
        spoil(out, r, column);
}

/* Writes the first batch again in place of batch 4. */
static void repeat_batches(const struct posenc_tensor *out)
{
    const int64_t batch = out->shape[0] ? rows(out) / out->shape[0] : 0;
    for (int64_t r = 4 * batch; batch && r < rows(out); r++)
        memcpy(storage_row(out, r), storage_row(out, r - 4 * batch),
               (size_t)width(out) * storage_size(out->dtype));
}

static void spoil_sizes(const struct entered *e)
{
    if (FAULT_IS(HEADS_PAST_8) || FAULT_IS(HEADS_PAST_64))
        spoil_head(e, FAULT_IS(HEADS_PAST_8) ? 8 : 64);
    if (FAULT_IS(COLUMNS_PAST_1024))
        spoil_column(e->out, 1024);
    if (FAULT_IS(BATCH_MODULO_4))
        repeat_batches(e->out);
}

/* ---- Calls ---- */

/* Returns true if something goes wrong in such a call. */
static bool goes_wrong(const struct entered *e)
{
    static atomic_uint calls;
    const struct posenc_tensor *out = e->out, *x = e->x;
    const struct posenc_positions *positions = e->positions;
    const bool given = x && x->data;
    bool backward = false;
    for (int d = 0; d < out->rank; d++)
        backward = backward || out->stride[d] < 0;
    return FAULT_IS(REMEMBER)               ? atomic_fetch_add(&calls, 1) % 2 == 1
           : FAULT_IS(DEPEND_ON_ADDRESS)    ? (uintptr_t)out->data % 64 != 0
           : FAULT_IS(ASSUME_FORWARD)       ? backward
           : FAULT_IS(ASSUME_DENSE_BATCHES) ? given && x->stride[0] == 0 && x->shape[0] > 1
           : FAULT_IS(DIFFER_IN_PLACE)      ? given && x->data == out->data
           : FAULT_IS(DIFFER_BY_KIND)  ? positions && positions->kind == POSENC_POSITIONS_I32
           : FAULT_IS(DIFFER_BY_BATCH) ? (given ? x : out)->shape[0] > 1
                                       : FAULT_IS(LAST_ROW_DIFFERS);
}

/* ---- Combinations and sizes ---- */

static bool has_stride(const struct posenc_tensor *x, bool backward)
{
    bool has = false;
    for (int d = 0; d + 1 < x->rank; d++)
        has = has || (x->shape[d] > 1 && (backward ? x->stride[d] < 0 : x->stride[d] == 0));
    return has;
}

/* Returns the row that is wrong; -1: none. */
static int64_t wrong_row(const struct entered *e)
{
    const struct posenc_tensor *out = e->out, *x = e->x;
    const struct posenc_positions *positions = e->positions;
    const bool scores = kernel_on_scores(e->kernel), given = x && x->data;
    const int64_t heads = out->rank < 4 ? 0 : scores ? out->shape[1] : out->shape[2];
    const int64_t beyond = FAULT_IS(BEYOND_32_HEADS) ? 32 : heads;
    const bool here =
        (FAULT_IS(ASSUME_ROWS_APART) && given && has_stride(x, false)) ||
        (FAULT_IS(ASSUME_X_FORWARD) && given && x->data != out->data && has_stride(x, true)) ||
        (FAULT_IS(DIFFER_IN_PLACE_BY_I64) && x->data == out->data &&
         positions->kind == POSENC_POSITIONS_I64);
    if (FAULT_IS(BEYOND_3_BATCHES) && out->shape[0] > 3)
        return rows(out) / out->shape[0] * 3;
    return beyond < heads ? (scores ? beyond * out->shape[2] : beyond) : here ? 0 : -1;
}

static void differ_here(const struct entered *e)
{
    const struct posenc_tensor *out = e->out;
    const int64_t r = rows(out) ? wrong_row(e) : -1;
    if (r >= 0)
        put(out, r, 0, get(out, r, 0) == 1.0f ? 2.0f : 1.0f);
    for (int64_t i = 0;
         FAULT_IS(NAN_HIDDEN_BY_ZERO) && e->x_scale == 0.0f && i < rows(out) * width(out); i++)
        if (isnan(get(out, i / width(out), i % width(out))))
            put(out, i / width(out), i % width(out), 0.0f);
}

/* Changes an element of the first row, of the last, or of the second batch; of a sum over batches
 * the first again. */
static void flip_one(const struct posenc_tensor *out)
{
    const int64_t batches = out->rank == 4 ? out->shape[0] : 1;
    const bool second = FAULT_IS(ASSUME_DENSE_BATCHES) || FAULT_IS(DIFFER_BY_BATCH);
    if (rows(out) && FAULT_IS(LAST_ROW_DIFFERS))
        flip_bit(out, rows(out) - 1, width(out) > 1);
    else if (rows(out))
        flip_bit(out, second && batches > 1 ? rows(out) / batches : 0, 0);
}

/* ---- Rows ---- */

static void misplace_tail(const struct posenc_tensor *out, int64_t r)
{
    const float first = get(out, r, 0);
    put(out, r, 0, get(out, r, width(out) - 1));
    put(out, r, width(out) - 1, first);
}

/* Lets a value of the lane to the right, or of the row below, change a result. */
static void leak_lanes(const struct posenc_tensor *out, int64_t r)
{
    const int64_t n = width(out);
    for (int64_t c = 0; c < n; c++) {
        const float next = c + 1 < n ? get(out, r, c + 1) : 0.0f;
        const float below = r + 1 < rows(out) ? get(out, r + 1, c) : 0.0f;
        if (!(fabsf(next) < 100.0f) || !(fabsf(below) < 100.0f) || next < 0.0f)
            flip_bit(out, r, c);
    }
}

/* Lets other threads run between writing and reading the scratch.  It sleeps in the first rows:
 * on a busy machine yielding is not enough. */
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

/* Encodes nothing: copies x, and makes tables and biases constant. */
static void forget(const struct entered *e, int64_t r)
{
    const struct posenc_tensor *out = e->out, *x = e->x;
    const bool same = x && x->data && width(x) == width(out);
    for (int64_t c = 0; c < width(out); c++) {
        put(out, r, c, same ? get(x, r, c) : 1.0f);
        if (e->second)
            put(e->second, r, c, 0.0f);
    }
}

void enter_memory(struct entered *e)
{
    const struct posenc_tensor *out = e->out;
    if (FAULT_IS(WRITE_INPUT))
        write_input(e);
    spoil_strides(e);
    if (FAULT_IS(SKIP_TAIL))
        skip_tail(e);
    else
        enter_kernel(e);
    leave_memory(out);
    spoil_sizes(e);
    differ_here(e);
    if (goes_wrong(e))
        flip_one(out);
    for (int64_t r = 0; r < rows(out); r++) {
        if (FAULT_IS(MISPLACE_TAIL) && width(out) > 2)
            misplace_tail(out, r);
        if (FAULT_IS(LEAK_LANE))
            leak_lanes(out, r);
        if (FAULT_IS(SHARE_SCRATCH))
            share_scratch(out, r);
        if (FAULT_IS(FORGET))
            forget(e, r);
    }
    if (FAULT_IS(LEAVE_MODE))
        fesetround(FE_TOWARDZERO);
}
