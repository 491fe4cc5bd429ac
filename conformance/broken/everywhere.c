/*
 * Mistakes that any kernel can make, made in every kernel: something goes wrong with the memory
 * before or after the real kernel has run.
 */
#define _POSIX_C_SOURCE 200809L
#include "everywhere.h"

#include "broken.h"

#include "conformance/problem/storage.h"

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
    return t->shape[3] ? storage_rows(t) : 0;
}

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
        put(t, r, i, broken_last_bit(value));
    else
        *(uint16_t *)element(t, r, i) ^= 1;
}

/* The first element, and that of the second batch: of a sum over batches the same one. */
static void turn_first(const struct seen *s)
{
    if (count_rows(&s->out))
        turn_bit(&s->out, 0, 0);
}

static void turn_second_batch(const struct seen *s)
{
    const int64_t batches = s->out.shape[0];
    if (count_rows(&s->out))
        turn_bit(&s->out, batches > 1 ? count_rows(&s->out) / batches : 0, 0);
}

/* ---- Memory ---- */

/* Not where a block of plain memory may end, a multiple of 64: the heap itself would be
 * destroyed, and with it the program that is to report this. */
BROKEN_UNWATCHED static void over_write(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(&s->out); r++) {
        volatile char *end = element(&s->out, r, s->out.shape[3]);
        if ((uintptr_t)end % 64)
            end[0] = end[1] = 0;
    }
}

/* Plain memory has 64 bytes to spare before each tensor. */
BROKEN_UNWATCHED static void over_write_before(const struct seen *s)
{
    if (count_rows(&s->out))
        *(volatile char *)element(&s->out, 0, -1) = 1;
}

BROKEN_UNWATCHED static void over_read(const struct seen *s)
{
    const int64_t rows = count_rows(&s->out);
    if (rows)
        (void)*(volatile const char *)element(&s->out, rows - 1, s->out.shape[3]);
}

BROKEN_UNWATCHED static void over_read_before(const struct seen *s)
{
    if (count_rows(&s->out))
        (void)*(volatile const char *)element(&s->out, 0, -1);
}

static void write_input(const struct seen *s)
{
    volatile char *input = (volatile char *)(uintptr_t)s->input;
    if (input && count_rows(&s->out))
        *input = *input;
}

/* The last element of each row as it was before the call. */
enum { MOST_ROWS = 4096 };
static uint32_t kept[MOST_ROWS];

static void keep_tail(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(&s->out) && r < MOST_ROWS; r++)
        memcpy(&kept[r], element(&s->out, r, s->out.shape[3] - 1), storage_size(s->out.dtype));
}

static void skip_tail(const struct seen *s)
{
    for (int64_t r = 0; r < count_rows(&s->out) && r < MOST_ROWS; r++)
        memcpy(element(&s->out, r, s->out.shape[3] - 1), &kept[r], storage_size(s->out.dtype));
}

static void misplace_tail(const struct seen *s)
{
    const int64_t n = s->out.shape[3];
    for (int64_t r = 0; n > 2 && r < count_rows(&s->out); r++) {
        const float first = get(&s->out, r, 0);
        put(&s->out, r, 0, get(&s->out, r, n - 1));
        put(&s->out, r, n - 1, first);
    }
}

static void by_address(const struct seen *s)
{
    if ((uintptr_t)s->out.data % 64)
        turn_first(s);
}

static void remember(const struct seen *s)
{
    static atomic_uint calls;
    if (atomic_fetch_add(&calls, 1) % 2)
        turn_first(s);
}

static void leave_mode(const struct seen *s)
{
    (void)s;
    fesetround(FE_TOWARDZERO);
}

static void dense_batches(const struct seen *s)
{
    if (s->x.data && s->x.stride[0] == 0 && s->x.shape[0] > 1)
        turn_second_batch(s);
}

/* From the lane to the right, or from the row below. */
static void leak_lane(const struct seen *s)
{
    const int64_t rows = count_rows(&s->out), n = s->out.shape[3];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < n; c++) {
            const float next = c + 1 < n ? get(&s->out, r, c + 1) : 0.0f;
            const float below = r + 1 < rows ? get(&s->out, r + 1, c) : 0.0f;
            if (!(fabsf(next) < 100.0f) || !(fabsf(below) < 100.0f) || next < 0.0f)
                turn_bit(&s->out, r, c);
        }
}

/* ---- Laws ---- */

static void last_row_differs(const struct seen *s)
{
    const int64_t rows = count_rows(&s->out);
    if (rows)
        turn_bit(&s->out, rows - 1, s->out.shape[3] > 1);
}

/* The other threads run between the writing and the reading of the scratch: on its first rows
 * this one sleeps, for on a busy machine to give way is not enough. */
static void share_scratch(const struct seen *s)
{
    enum { SLEEPS = 3 };
    static const struct timespec a_while = { .tv_nsec = 200000 };
    static _Atomic float scratch[512];
    const int64_t n = s->out.shape[3] < 512 ? s->out.shape[3] : 512;
    for (int64_t r = 0; r < count_rows(&s->out); r++) {
        for (int64_t c = 0; c < n; c++)
            atomic_store_explicit(&scratch[c], get(&s->out, r, c), memory_order_relaxed);
        if (r < SLEEPS)
            nanosleep(&a_while, NULL);
        else
            sched_yield();
        for (int64_t c = 0; c < n; c++)
            put(&s->out, r, c, atomic_load_explicit(&scratch[c], memory_order_relaxed));
    }
}

static void differ_in_place(const struct seen *s)
{
    if (s->x.data && s->x.data == s->out.data)
        turn_first(s);
}

static void differ_by_kind(const struct seen *s)
{
    if (s->positions && s->positions->kind == POSENC_POSITIONS_I32)
        turn_first(s);
}

static void differ_by_batch(const struct seen *s)
{
    const int64_t batches = s->x.data ? s->x.shape[0] : s->out.shape[0];
    if (batches > 1)
        turn_second_batch(s);
}

/* Nothing is encoded: x as it came, tables and biases constant. */
static void forget(const struct seen *s)
{
    const bool same = s->x.data && s->x.shape[3] == s->out.shape[3];
    for (int64_t r = 0; r < count_rows(&s->out); r++)
        for (int64_t c = 0; c < s->out.shape[3]; c++) {
            put(&s->out, r, c, same ? get(&s->x, r, c) : 1.0f);
            if (s->second.data)
                put(&s->second, r, c, 0.0f);
        }
}

const struct mistake mistakes[] = {
    { "over-write", "memory", "canaries", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = over_write },
    { "over-write-before", "memory", "guard-start", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = over_write_before },
    { "over-read", "memory", "guard-end", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = over_read },
    { "over-read-before", "memory", "guard-start", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = over_read_before },
    { "writes-input", "memory", "read-only-inputs", NEEDS_NOTHING, .last = POSENC_BF16,
      .before = write_input },
    { "skips-tail", "memory", "written", NEEDS_NOTHING, .last = POSENC_BF16,
      .before = keep_tail, .after = skip_tail },
    { "misplaces-tail", "memory", "lengths", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = misplace_tail },
    { "depends-on-address", "memory", "placement", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = by_address },
    { "remembers", "memory", "twice", NEEDS_NOTHING, .last = POSENC_BF16, .after = remember },
    { "leaves-rounding-mode", "memory", "mxcsr", NEEDS_NOTHING, .last = POSENC_BF16,
      .after = leave_mode },
    { "assumes-dense-batches", "memory", "broadcast", NEEDS_X, .after = dense_batches },
    { "leaks-lane", "memory", "lane-independence", NEEDS_NOTHING, .after = leak_lane },
    { "last-row-differs", "properties", "slices", NEEDS_NOTHING, .after = last_row_differs },
    { "shared-scratch", "properties", "threads", NEEDS_NOTHING, .after = share_scratch },
    { "differs-in-place", "properties", "in-place", NEEDS_IN_PLACE, .after = differ_in_place },
    { "differs-by-kind", "properties", "numbering", NEEDS_POSITIONS, .after = differ_by_kind },
    { "differs-by-batch", "properties", "batches", NEEDS_POSITIONS, .after = differ_by_batch },
    { "encodes-nothing", "properties", "breaks-permutation-equivariance", NEEDS_ENCODING,
      .after = forget },
};
const int n_mistakes = sizeof mistakes / sizeof mistakes[0];

/* ---- In every kernel ---- */

static struct seen see_sinusoidal(const struct posenc_sinusoidal_args *a)
{
    return (struct seen){ .out = a->out,
                          .x = *owned(&a->x),
                          .positions = &a->positions,
                          .input = a->x.data ? a->x.data : a->positions.data };
}

static struct seen see_learned(const struct posenc_learned_args *a)
{
    return (struct seen){
        .out = a->out, .x = *owned(&a->x), .positions = &a->positions, .input = a->table.data
    };
}

static struct seen see_learned_grad(const struct posenc_learned_grad_args *a)
{
    struct seen seen = { a->out, .x = *owned(&a->x), .positions = &a->positions,
                         .input = a->x.data };
    seen.out.rank = 4;
    for (int i = 0; i < 4; i++) {
        seen.out.shape[i] = i < 2 ? 1 : a->out.shape[i - 2];
        seen.out.stride[i] = i < 2 ? 0 : a->out.stride[i - 2];
    }
    return seen;
}

static struct seen see_rope_table(const struct posenc_rope_table_args *a)
{
    return (struct seen){
        .out = a->cos, .second = a->sin, .positions = &a->positions, .input = a->positions.data
    };
}

static struct seen see_rope(const struct posenc_rope_args *a)
{
    return (struct seen){
        .out = a->out, .x = *owned(&a->x), .positions = &a->positions, .input = a->cos.data
    };
}

static struct seen see_alibi(const struct posenc_alibi_args *a)
{
    return (struct seen){ .out = a->out, .x = *owned(&a->x), .input = a->slopes };
}

static struct seen see_t5(const struct posenc_t5_args *a)
{
    return (struct seen){ .out = a->out, .x = *owned(&a->x), .input = a->table.data };
}

static struct seen see_distance(const struct posenc_distance_args *a)
{
    return (struct seen){ .out = a->out, .x = *owned(&a->x), .input = a->values.data };
}

static struct seen see_window(const struct posenc_window_args *a)
{
    return (struct seen){ .out = a->out, .x = *owned(&a->x), .input = a->index };
}

static struct seen see_relative(const struct posenc_relative_args *a)
{
    return (struct seen){ .out = a->out, .x = *owned(&a->x), .input = a->index };
}

static struct seen see_relative_sum(const struct posenc_relative_sum_args *a)
{
    return (struct seen){ .out = a->out, .x = *owned(&a->x), .input = a->x.data };
}

/* The tensors that may be stored in 16 bits. */
#define WIDE_X(signature)                                                                      \
    static void wide_##signature(struct wide *wide, struct posenc_##signature##_args *args)    \
    {                                                                                          \
        wide_input(wide, &args->x);                                                            \
        wide_output(wide, &args->out);                                                         \
    }
WIDE_X(sinusoidal)
WIDE_X(learned)
WIDE_X(learned_grad)
WIDE_X(alibi)
WIDE_X(t5)
WIDE_X(distance)
WIDE_X(window)
WIDE_X(relative_sum)
#undef WIDE_X

static void wide_rope_table(struct wide *wide, struct posenc_rope_table_args *args)
{
    wide_output(wide, &args->cos);
    wide_output(wide, &args->sin);
}

static void wide_rope(struct wide *wide, struct posenc_rope_args *args)
{
    wide_input(wide, &args->cos);
    wide_input(wide, &args->sin);
    wide_input(wide, &args->x);
    wide_output(wide, &args->out);
}

static void wide_relative(struct wide *wide, struct posenc_relative_args *args)
{
    wide_input(wide, &args->c2p);
    wide_input(wide, &args->p2c);
    wide_input(wide, &args->x);
    wide_output(wide, &args->out);
}

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status mistaken_##name(const struct posenc_##signature##_args *args)    \
    {                                                                                          \
        const struct seen seen = see_##signature(args);                                        \
        struct posenc_##signature##_args a = *args;                                            \
        struct wide wide = { .by = current->conversion };                                      \
        atomic_fetch_add(&entries, 1);                                                         \
        if (current->conversion)                                                               \
            wide_##signature(&wide, &a);                                                       \
        if (current->before)                                                                   \
            current->before(&seen);                                                            \
        enum posenc_status status = broken_base->name(&a);                                     \
        if (current->after)                                                                    \
            current->after(&seen);                                                             \
        wide_close(&wide);                                                                     \
        return status;                                                                         \
    }
#include <posenc_kernels.def>

struct posenc_backend mistaken_backend(const struct mistake *mistake)
{
    struct posenc_backend backend = *broken_base;
    current = mistake;
    backend.name = mistake->name;
    atomic_store(&entries, 0);
#define POSENC_KERNEL(name, signature, ...) backend.name = mistaken_##name;
#include <posenc_kernels.def>
    return backend;
}

unsigned long mistaken_entries(void) { return atomic_load(&entries); }
