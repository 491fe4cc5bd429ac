/*
 * Mistakes that any kernel can make, made in every kernel: something goes wrong with the memory
 * before or after the real kernel has run.
 */
#define _POSIX_C_SOURCE 200809L
#include "everywhere.h"

#include "broken.h"

#include <fenv.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct mistake *current;
static atomic_ulong entries;

/* ---- Rows of the first output ---- */

static int64_t count_rows(const struct posenc_tensor *t)
{
    return t->shape[3] ? t->shape[0] * t->shape[1] * t->shape[2] : 0;
}

static float *nth_row(const struct posenc_tensor *t, int64_t r)
{
    int64_t i2 = r % t->shape[2], i1 = r / t->shape[2] % t->shape[1],
            i0 = r / t->shape[2] / t->shape[1];
    return broken_row(t, i0, i1, i2);
}

static void turn_bit(float *x) { *x = isfinite(*x) && *x != 0.0f ? broken_last_bit(*x) : 1.0f; }

/* ---- Memory ---- */

/* Not where a block of plain memory may end, a multiple of 64: the heap itself would be
 * destroyed, and with it the program that is to report this. */
BROKEN_UNWATCHED static void over_write(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(s->out); r++) {
        float *end = nth_row(s->out, r) + s->out->shape[3];
        if ((uintptr_t)end % 64)
            *end = 0.0f;
    }
}

/* Plain memory has 64 bytes to spare before each tensor. */
BROKEN_UNWATCHED static void over_write_before(const struct seen *s)
{
    if (count_rows(s->out))
        ((float *)s->out->data)[-1] = 1.0f;
}

BROKEN_UNWATCHED static void over_read(const struct seen *s)
{
    int64_t rows = count_rows(s->out);
    if (rows)
        (void)*(volatile const float *)(nth_row(s->out, rows - 1) + s->out->shape[3]);
}

BROKEN_UNWATCHED static void over_read_before(const struct seen *s)
{
    if (count_rows(s->out))
        (void)((volatile const float *)s->out->data)[-1];
}

static void write_input(const struct seen *s)
{
    volatile uint32_t *input = (volatile uint32_t *)(uintptr_t)s->input;
    if (input && count_rows(s->out))
        *input = *input;
}

/* The last element of each row as it was before the call. */
enum { MOST_ROWS = 4096 };
static float kept[MOST_ROWS];

static void keep_tail(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(s->out) && r < MOST_ROWS; r++)
        kept[r] = nth_row(s->out, r)[s->out->shape[3] - 1];
}

static void skip_tail(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(s->out) && r < MOST_ROWS; r++)
        nth_row(s->out, r)[s->out->shape[3] - 1] = kept[r];
}

static void misplace_tail(const struct seen *s)
{
    int64_t n = s->out->shape[3];
    for (int64_t r = 0; n > 2 && r < count_rows(s->out); r++) {
        float *row = nth_row(s->out, r), last = row[n - 1];
        row[n - 1] = row[0];
        row[0] = last;
    }
}

static void by_address(const struct seen *s)
{
    if ((uintptr_t)s->out->data % 64 && count_rows(s->out))
        turn_bit(s->out->data);
}

static void remember(const struct seen *s)
{
    static atomic_uint calls;
    if (atomic_fetch_add(&calls, 1) % 2 && count_rows(s->out))
        turn_bit(s->out->data);
}

static void leave_mode(const struct seen *s)
{
    (void)s;
    fesetround(FE_TOWARDZERO);
}

static void dense_batches(const struct seen *s)
{
    if (s->x && s->x->stride[0] == 0 && s->out->shape[0] > 1 && count_rows(s->out))
        turn_bit(broken_row(s->out, 1, 0, 0));
}

/* From the lane to the right, or from the row below. */
static void leak_lane(const struct seen *s)
{
    int64_t rows = count_rows(s->out), n = s->out->shape[3];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < n; c++) {
            float next = c + 1 < n ? nth_row(s->out, r)[c + 1] : 0.0f;
            float below = r + 1 < rows ? nth_row(s->out, r + 1)[c] : 0.0f;
            if (!(fabsf(next) < 100.0f) || !(fabsf(below) < 100.0f) || next < 0.0f)
                turn_bit(&nth_row(s->out, r)[c]);
        }
}

/* ---- Laws ---- */

static void last_row_differs(const struct seen *s)
{
    int64_t rows = count_rows(s->out);
    if (rows)
        turn_bit(nth_row(s->out, rows - 1) + (s->out->shape[3] > 1));
}

/* The other threads run between the writing and the reading of the scratch: on its first rows
 * this one sleeps, for on a busy machine to give way is not enough. */
static void share_scratch(const struct seen *s)
{
    enum { SLEEPS = 3 };
    static const struct timespec a_while = { .tv_nsec = 200000 };
    static _Atomic float scratch[512];
    int64_t n = s->out->shape[3] < 512 ? s->out->shape[3] : 512;
    for (int64_t r = 0; r < count_rows(s->out); r++) {
        for (int64_t c = 0; c < n; c++)
            atomic_store_explicit(&scratch[c], nth_row(s->out, r)[c], memory_order_relaxed);
        if (r < SLEEPS)
            nanosleep(&a_while, NULL);
        else
            sched_yield();
        for (int64_t c = 0; c < n; c++)
            nth_row(s->out, r)[c] = atomic_load_explicit(&scratch[c], memory_order_relaxed);
    }
}

static void differ_in_place(const struct seen *s)
{
    if (s->x && s->x->data == s->out->data && count_rows(s->out))
        turn_bit(s->out->data);
}

static void differ_by_kind(const struct seen *s)
{
    if (s->positions && s->positions->kind == POSENC_POSITIONS_I32 && count_rows(s->out))
        turn_bit(s->out->data);
}

static void differ_by_batch(const struct seen *s)
{
    if (s->out->shape[0] > 1 && count_rows(s->out))
        turn_bit(broken_row(s->out, 1, 0, 0));
}

/* Nothing is encoded: x as it came, tables and biases constant. */
static void forget(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(s->out); r++)
        for (int64_t c = 0; c < s->out->shape[3]; c++) {
            nth_row(s->out, r)[c] = s->x ? nth_row(s->x, r)[c] : 1.0f;
            if (s->second)
                nth_row(s->second, r)[c] = 0.0f;
        }
}

const struct mistake mistakes[] = {
    { "over-write", "memory", "canaries", NEEDS_NOTHING, NULL, over_write },
    { "over-write-before", "memory", "guard-start", NEEDS_NOTHING, NULL, over_write_before },
    { "over-read", "memory", "guard-end", NEEDS_NOTHING, NULL, over_read },
    { "over-read-before", "memory", "guard-start", NEEDS_NOTHING, NULL, over_read_before },
    { "writes-input", "memory", "read-only-inputs", NEEDS_NOTHING, write_input, NULL },
    { "skips-tail", "memory", "written", NEEDS_NOTHING, keep_tail, skip_tail },
    { "misplaces-tail", "memory", "lengths", NEEDS_NOTHING, NULL, misplace_tail },
    { "depends-on-address", "memory", "placement", NEEDS_NOTHING, NULL, by_address },
    { "remembers", "memory", "twice", NEEDS_NOTHING, NULL, remember },
    { "leaves-rounding-mode", "memory", "mxcsr", NEEDS_NOTHING, NULL, leave_mode },
    { "assumes-dense-batches", "memory", "broadcast", NEEDS_X, NULL, dense_batches },
    { "leaks-lane", "memory", "lane-independence", NEEDS_NOTHING, NULL, leak_lane },
    { "last-row-differs", "properties", "slices", NEEDS_NOTHING, NULL, last_row_differs },
    { "shared-scratch", "properties", "threads", NEEDS_NOTHING, NULL, share_scratch },
    { "differs-in-place", "properties", "in-place", NEEDS_X, NULL, differ_in_place },
    { "differs-by-kind", "properties", "numbering", NEEDS_POSITIONS, NULL, differ_by_kind },
    { "differs-by-batch", "properties", "batches", NEEDS_POSITIONS, NULL, differ_by_batch },
    { "encodes-nothing", "properties", "breaks-permutation-equivariance", NEEDS_NOTHING, NULL,
      forget },
};
const int n_mistakes = sizeof mistakes / sizeof mistakes[0];

/* ---- In every kernel ---- */

static struct seen see_sinusoidal(const struct posenc_sinusoidal_args *a)
{
    return (struct seen){ &a->out, NULL, a->x.data ? &a->x : NULL, &a->positions,
                          a->x.data ? a->x.data : a->positions.data };
}
static struct seen see_learned(const struct posenc_learned_args *a)
{
    return (struct seen){ &a->out, NULL, &a->x, &a->positions, a->table.data };
}
static struct seen see_rope_table(const struct posenc_rope_table_args *a)
{
    return (struct seen){ &a->cos, &a->sin, NULL, &a->positions, a->positions.data };
}
static struct seen see_rope(const struct posenc_rope_args *a)
{
    return (struct seen){ &a->out, NULL, &a->x, &a->positions, a->cos.data };
}
static struct seen see_alibi(const struct posenc_alibi_args *a)
{
    return (struct seen){ &a->out, NULL, a->x.data ? &a->x : NULL, NULL, a->slopes };
}
static struct seen see_t5(const struct posenc_t5_args *a)
{
    return (struct seen){ &a->out, NULL, a->x.data ? &a->x : NULL, NULL, a->table.data };
}

#define POSENC_KERNEL(name, signature, stage, summary)                                         \
    static enum posenc_status mistaken_##name(const struct posenc_##signature##_args *args)    \
    {                                                                                          \
        struct seen seen = see_##signature(args);                                              \
        atomic_fetch_add(&entries, 1);                                                         \
        if (current->before)                                                                   \
            current->before(&seen);                                                            \
        enum posenc_status status = broken_base->name(args);                                   \
        if (current->after)                                                                    \
            current->after(&seen);                                                             \
        return status;                                                                         \
    }
#include <posenc_kernels.def>

struct posenc_backend mistaken_backend(const struct mistake *mistake)
{
    struct posenc_backend backend = *broken_base;
    current = mistake;
    backend.name = mistake->name;
    atomic_store(&entries, 0);
#define POSENC_KERNEL(name, signature, stage, summary) backend.name = mistaken_##name;
#include <posenc_kernels.def>
    return backend;
}

unsigned long mistaken_entries(void) { return atomic_load(&entries); }
