/* Faults of memory: accesses outside of tensors, unwritten elements, and wrong offsets; see faulty.h. */
#include "faulty.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <fenv.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Marks functions that access memory outside of tensors on purpose. AddressSanitizer would end the program there,
 * before the suites detect the access by guard pages and patterns. */
#if defined(__GNUC__)
#define UNWATCHED __attribute__((no_sanitize("address")))
#else
#define UNWATCHED
#endif

/* ---- Outside a tensor ---- */

/* Writes past each row, except at a multiple of 64, where a heap block may end: this would corrupt the heap of the
 * program that has to report the fault. */
UNWATCHED static void over_write(struct kernel_call *c)
{
    run_kernel(c);
    for (int64_t r = 0; r < tensor_row_count(c->out); r++) {
        volatile char *past = tensor_at(c->out, r, tensor_width(c->out));
        if ((uintptr_t)past % 64)
            past[0] = past[1] = 0;
    }
}

/* Writes before the first row, where heap blocks of calls have 64 spare bytes. */
UNWATCHED static void over_write_before(struct kernel_call *c)
{
    run_kernel(c);
    if (tensor_row_count(c->out))
        *(volatile char *)tensor_at(c->out, 0, -1) = 1;
}

UNWATCHED static void over_read(struct kernel_call *c)
{
    const int64_t rows = tensor_row_count(c->out);
    run_kernel(c);
    if (rows)
        (void)*(volatile char *)tensor_at(c->out, rows - 1, tensor_width(c->out));
}

UNWATCHED static void over_read_before(struct kernel_call *c)
{
    run_kernel(c);
    if (tensor_row_count(c->out))
        (void)*(volatile char *)tensor_at(c->out, 0, -1);
}

static void write_input(struct kernel_call *c)
{
    volatile char *input = (volatile char *)(uintptr_t)c->input;
    if (input && tensor_row_count(c->out))
        *input = *input;
    run_kernel(c);
}

/* ---- Tails of rows ---- */

/* Leaves the last element of each row as it was before the call. */
static void skip_tail(struct kernel_call *c)
{
    const struct posenc_tensor *out = c->out;
    const int64_t rows = tensor_row_count(out), last = tensor_width(out) - 1;
    const size_t size = storage_size(out->dtype);
    uint32_t *saved = calloc((size_t)rows + 1, sizeof *saved);
    if (!saved)
        exit(2);
    for (int64_t r = 0; r < rows; r++)
        memcpy(&saved[r], tensor_at(out, r, last), size);
    run_kernel(c);
    for (int64_t r = 0; r < rows; r++)
        memcpy(tensor_at(out, r, last), &saved[r], size);
    free(saved);
}

/* Swaps the first and the last element of each row. */
static void misplace_tail(struct kernel_call *c)
{
    const struct posenc_tensor *out = c->out;
    const int64_t last = tensor_width(out) - 1;
    run_kernel(c);
    for (int64_t r = 0; last > 1 && r < tensor_row_count(out); r++) {
        const float first = tensor_get(out, r, 0);
        tensor_put(out, r, 0, tensor_get(out, r, last));
        tensor_put(out, r, last, first);
    }
}

/* Changes a result by a value of the lane to the right, or of the row below. */
static void leak_lane(struct kernel_call *c)
{
    const struct posenc_tensor *out = c->out;
    const int64_t rows = tensor_row_count(out), width = tensor_width(out);
    run_kernel(c);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < width; k++) {
            const float next = k + 1 < width ? tensor_get(out, r, k + 1) : 0.0f,
                        below = r + 1 < rows ? tensor_get(out, r + 1, k) : 0.0f;
            if (!(fabsf(next) < 100.0f) || !(fabsf(below) < 100.0f) || next < 0.0f)
                tensor_flip_bit(out, r, k);
        }
}

/* Changes some scores by the lane to the right: those of keys 1, 6, 11, ... in even heads, which one round of the case
 * compares. */
static void leak_lane_of_few(struct kernel_call *c)
{
    const struct posenc_tensor *out = c->out;
    const int64_t width = tensor_width(out);
    run_kernel(c);
    for (int64_t r = 0; r < tensor_row_count(out); r++)
        for (int64_t k = 1; k + 1 < width; k += 5)
            if (r / out->shape[2] % out->shape[1] % 2 == 0 &&
                !(fabsf(tensor_get(out, r, k + 1)) < 100.0f))
                tensor_flip_bit(out, r, k);
}

/* ---- Offsets ---- */

/* Truncates the strides of all tensors of a role to 32 bits. */
static void run_with_narrow_strides(struct kernel_call *c, enum tensor_role role)
{
    for (EACH_TENSOR(row, signature_of(c->kernel))) {
        if (row->form != FORM_TENSOR || row->role != role)
            continue;
        struct posenc_tensor *t = arguments_get(&c->args, row);
        for (int d = 0; d < t->rank; d++)
            t->stride[d] = (int32_t)t->stride[d];
    }
    run_kernel(c);
}

static void narrow_x_strides(struct kernel_call *c) { run_with_narrow_strides(c, ROLE_X); }
static void narrow_out_strides(struct kernel_call *c)
{
    run_with_narrow_strides(c, ROLE_OUTPUT);
}
static void narrow_table_strides(struct kernel_call *c)
{
    run_with_narrow_strides(c, ROLE_INPUT);
}

static void take_out_strides_for_x(struct kernel_call *c)
{
    struct posenc_tensor *x = c->x;
    if (x && x->data && x->rank == c->out->rank)
        memcpy(x->stride, c->out->stride, sizeof x->stride);
    run_kernel(c);
}

/* ---- The state around a call ---- */

/* Changes the first bit of an output that is not aligned to 64 bytes. */
static void depend_on_address(struct kernel_call *c)
{
    run_kernel(c);
    if (tensor_row_count(c->out) && (uintptr_t)c->out->data % 64 != 0)
        tensor_flip_bit(c->out, 0, 0);
}

/* Changes a bit in every second call. */
static void remember(struct kernel_call *c)
{
    static atomic_uint calls;
    run_kernel(c);
    if (atomic_fetch_add(&calls, 1) % 2 == 1 && tensor_row_count(c->out))
        tensor_flip_bit(c->out, 0, 0);
}

static void leave_rounding_mode(struct kernel_call *c)
{
    run_kernel(c);
    fesetround(FE_TOWARDZERO);
}

/* ---- The table ---- */

static bool encodes_x(enum posenc_kernel kernel)
{
    return kernel_takes_x(kernel) && kernel != POSENC_KERNEL_LEARNED_GRAD;
}

static bool adds_to_scores(enum posenc_kernel kernel)
{
    return kernel_on_scores(kernel) && kernel_takes_x(kernel);
}

/* Returns true if the kernel has input tensors besides x. */
static bool has_tables(enum posenc_kernel kernel)
{
    bool has = false;
    for (EACH_TENSOR(row, signature_of(kernel)))
        has = has || (row->role == ROLE_INPUT && row->form == FORM_TENSOR);
    return has;
}

#define BF16 POSENC_DTYPE_BF16
#define F32  POSENC_DTYPE_F32
const struct fault memory_faults[] = {
    { "over-write", "memory", "canaries", BF16, every_kernel, over_write },
    { "over-write-before", "memory", "guard-start", BF16, every_kernel, over_write_before },
    { "over-read", "memory", "guard-end", BF16, every_kernel, over_read },
    { "over-read-before", "memory", "guard-start", BF16, every_kernel, over_read_before },
    { "writes-input", "memory", "read-only-inputs", BF16, every_kernel, write_input },
    { "skips-tail", "memory", "written", BF16, every_kernel, skip_tail },
    { "misplaces-tail", "memory", "lengths", BF16, every_kernel, misplace_tail },
    { "leaks-lane", "memory", "lane-independence", F32, every_kernel, leak_lane },
    { "leaks-lane-of-few", "memory", "lane-independence", F32, adds_to_scores,
      leak_lane_of_few },
    { "x-offset-in-32-bits", "memory", "far-strides", BF16, kernel_takes_x, narrow_x_strides },
    { "out-offset-in-32-bits", "memory", "far-strides", BF16, every_kernel,
      narrow_out_strides },
    { "table-offset-in-32-bits", "memory", "far-strides", BF16, has_tables,
      narrow_table_strides },
    { "x-stride-for-out", "memory", "far-strides", BF16, encodes_x, take_out_strides_for_x },
    { "depends-on-address", "memory", "placement", BF16, every_kernel, depend_on_address },
    { "remembers", "memory", "twice", BF16, every_kernel, remember },
    { "leaves-rounding-mode", "memory", "mxcsr", BF16, every_kernel, leave_rounding_mode },
    { .name = NULL },
};
