/*
 * Mistakes that any kernel can make: something goes wrong with the memory before or after the
 * real kernel has run.
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

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

/* The first element, and that of the second batch: of a sum over batches the same one. */
static void turn_first(const struct posenc_tensor *out)
{
    if (rows(out))
        turn_bit(out, 0, 0);
}

static void turn_second_batch(const struct posenc_tensor *out)
{
    const int64_t batches = out->rank == 4 ? out->shape[0] : 1;
    if (rows(out))
        turn_bit(out, batches > 1 ? rows(out) / batches : 0, 0);
}

/* ---- Memory ---- */

/* Not where a block of plain memory may end, a multiple of 64: the heap itself would be
 * destroyed, and with it the program that is to report this. */
UNWATCHED void over_write(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    for (int64_t r = 0; r < rows(out); r++) {
        volatile char *end = element(out, r, width(out));
        if ((uintptr_t)end % 64)
            end[0] = end[1] = 0;
    }
}

/* Plain memory has 64 bytes to spare before each tensor. */
UNWATCHED void over_write_before(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    if (rows(out))
        *(volatile char *)element(out, 0, -1) = 1;
}

UNWATCHED void over_read(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    if (rows(out))
        (void)*(volatile const char *)element(out, rows(out) - 1, width(out));
}

UNWATCHED void over_read_before(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    if (rows(out))
        (void)*(volatile const char *)element(out, 0, -1);
}

void write_input(struct entered *e)
{
    volatile char *input = (volatile char *)(uintptr_t)e->parts.input;
    if (input && rows(e->parts.out))
        *input = *input;
}

/* The last element of each row stays as it was before the call. */
void skip_tail(struct entered *e)
{
    const struct posenc_tensor *out = e->parts.out;
    uint32_t *kept = enter_keep(e, rows(out), sizeof *kept);
    for (int64_t r = 0; r < rows(out); r++)
        memcpy(&kept[r], element(out, r, width(out) - 1), storage_size(out->dtype));
    enter_kernel(e);
    for (int64_t r = 0; r < rows(out); r++)
        memcpy(element(out, r, width(out) - 1), &kept[r], storage_size(out->dtype));
}

void misplace_tail(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    const int64_t n = width(out);
    for (int64_t r = 0; n > 2 && r < rows(out); r++) {
        const float first = get(out, r, 0);
        put(out, r, 0, get(out, r, n - 1));
        put(out, r, n - 1, first);
    }
}

void depend_on_address(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    if ((uintptr_t)out->data % 64)
        turn_first(out);
}

void remember(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    static atomic_uint calls;
    if (atomic_fetch_add(&calls, 1) % 2)
        turn_first(out);
}

void leave_mode(struct entered *e, const struct posenc_tensor *out)
{
    (void)e, (void)out;
    fesetround(FE_TOWARDZERO);
}

void assume_dense_batches(struct entered *e, const struct posenc_tensor *out)
{
    const struct posenc_tensor *x = e->parts.x;
    if (x && x->data && x->stride[0] == 0 && x->shape[0] > 1)
        turn_second_batch(out);
}

void assume_forward(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    for (int d = 0; d < out->rank; d++)
        if (out->stride[d] < 0) {
            turn_first(out);
            return;
        }
}

/* From the lane to the right, or from the row below. */
void leak_lane(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    const int64_t n = width(out);
    for (int64_t r = 0; r < rows(out); r++)
        for (int64_t c = 0; c < n; c++) {
            const float next = c + 1 < n ? get(out, r, c + 1) : 0.0f;
            const float below = r + 1 < rows(out) ? get(out, r + 1, c) : 0.0f;
            if (!(fabsf(next) < 100.0f) || !(fabsf(below) < 100.0f) || next < 0.0f)
                turn_bit(out, r, c);
        }
}

/* ---- Laws ---- */

void last_row_differs(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    if (rows(out))
        turn_bit(out, rows(out) - 1, width(out) > 1);
}

/* The other threads run between the writing and the reading of the scratch: on its first rows
 * this one sleeps, for on a busy machine to give way is not enough. */
void share_scratch(struct entered *e, const struct posenc_tensor *out)
{
    (void)e;
    enum { SLEEPS = 3, SCRATCH = 512 };
    static const struct timespec a_while = { .tv_nsec = 200000 };
    static _Atomic float scratch[SCRATCH];
    const int64_t n = width(out) < SCRATCH ? width(out) : SCRATCH;
    for (int64_t r = 0; r < rows(out); r++) {
        for (int64_t c = 0; c < n; c++)
            atomic_store_explicit(&scratch[c], get(out, r, c), memory_order_relaxed);
        if (r < SLEEPS)
            nanosleep(&a_while, NULL);
        else
            sched_yield();
        for (int64_t c = 0; c < n; c++)
            put(out, r, c, atomic_load_explicit(&scratch[c], memory_order_relaxed));
    }
}

void differ_in_place(struct entered *e, const struct posenc_tensor *out)
{
    if (e->parts.x && e->parts.x->data && e->parts.x->data == out->data)
        turn_first(out);
}

void differ_by_kind(struct entered *e, const struct posenc_tensor *out)
{
    if (e->parts.positions && e->parts.positions->kind == POSENC_POSITIONS_I32)
        turn_first(out);
}

void differ_by_batch(struct entered *e, const struct posenc_tensor *out)
{
    const struct posenc_tensor *x = e->parts.x;
    if ((x && x->data ? x : out)->shape[0] > 1)
        turn_second_batch(out);
}

/* Nothing is encoded: x as it came, tables and biases constant. */
void forget(struct entered *e, const struct posenc_tensor *out)
{
    const struct posenc_tensor *x = e->parts.x;
    const bool same = x && x->data && width(x) == width(out);
    for (int64_t r = 0; r < rows(out); r++)
        for (int64_t c = 0; c < width(out); c++) {
            put(out, r, c, same ? get(x, r, c) : 1.0f);
            if (e->parts.second)
                put(e->parts.second, r, c, 0.0f);
        }
}
