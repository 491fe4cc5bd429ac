/* Faults of memory and side effects, and the backend whose kernels have one of them; see faulty.h. The fault over-read,
 * for example, reads one element behind the last row, so that alibi/bf16/memory/guard-end must fail. The table of all
 * faults is near the end. */
#define _GNU_SOURCE
#include "faulty.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- A call of a kernel ---- */

static const struct fault *current_fault;
static const struct posenc_backend *current_base;

/* Faults may change `args`, a copy of the arguments, through the pointers into it. */
struct kernel_call {
    enum posenc_kernel kernel;
    union arguments args;
    struct posenc_tensor *out, *x; /* the first output; NULL if the kernel takes no x */
    const void *input;             /* data of an input, or NULL */
    enum posenc_status status;
};

/* Calls the real kernel with the arguments as they are now. */
static void run_kernel(struct kernel_call *c)
{
    switch (c->kernel) {
#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    case POSENC_KERNEL_##ID:                                                                   \
        c->status = current_base->name(&c->args.signature);                                    \
        break;
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
    case POSENC_KERNEL_NONE:
        break;
    }
}

/* Finds tensors among the arguments. The input is the first tensor that is neither x nor positions; without one, x or
 * the positions. */
static void find_arguments(struct kernel_call *c)
{
    bool has_own_input = false;
    for (EACH_TENSOR(row, signature_of(c->kernel))) {
        struct posenc_tensor *tensor = arguments_get(&c->args, row);
        const void *data = arguments_data(&c->args, row);
        const bool is_own_input = row->role == ROLE_INPUT && row->form != FORM_POSITIONS;
        if (row->role == ROLE_X)
            c->x = tensor;
        if (row->role == ROLE_OUTPUT)
            c->out = c->out ? c->out : tensor;
        else if (data && !has_own_input && (is_own_input || !c->input))
            c->input = data;
        has_own_input = has_own_input || (is_own_input && data);
    }
}

/* ---- Elements, by row in the order of storage_row() and by column, which may lie outside of the row ---- */

static int64_t tensor_width(const struct posenc_tensor *t) { return t->shape[t->rank - 1]; }

static int64_t tensor_row_count(const struct posenc_tensor *t)
{
    return tensor_width(t) ? storage_rows(t) : 0;
}

static char *tensor_at(const struct posenc_tensor *t, int64_t r, int64_t column)
{
    return (char *)storage_row(t, r) + column * (int64_t)storage_size(t->dtype);
}

/* Flips the last bit of a value. A zero, an infinity or NaN becomes 1. */
static void tensor_flip_bit(const struct posenc_tensor *t, int64_t r, int64_t column)
{
    const float value = storage_get(t->dtype, storage_row(t, r), column);
    if (!isfinite(value) || value == 0.0f)
        storage_put(t->dtype, storage_row(t, r), column, 1.0f);
    else if (t->dtype == POSENC_DTYPE_F32)
        *(uint32_t *)tensor_at(t, r, column) ^= 1;
    else
        *(uint16_t *)tensor_at(t, r, column) ^= 1;
}

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
    const int64_t last = tensor_row_count(c->out) - 1;
    run_kernel(c);
    if (last >= 0)
        (void)*(volatile char *)tensor_at(c->out, last, tensor_width(c->out));
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
        void *row = storage_row(out, r);
        const float first = storage_get(out->dtype, row, 0);
        storage_put(out->dtype, row, 0, storage_get(out->dtype, row, last));
        storage_put(out->dtype, row, last, first);
    }
}

/* Flips the last bit of a value in the last row. */
static void differ_in_last_row(struct kernel_call *c)
{
    const int64_t last = tensor_row_count(c->out) - 1;
    run_kernel(c);
    if (last >= 0)
        tensor_flip_bit(c->out, last, tensor_width(c->out) > 1);
}

/* ---- Offsets ---- */

/* Truncates the strides of all tensors of a role to 32 bits. */
static void narrow_strides(struct kernel_call *c, enum tensor_role role)
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

static void narrow_x_strides(struct kernel_call *c) { narrow_strides(c, ROLE_X); }
static void narrow_out_strides(struct kernel_call *c) { narrow_strides(c, ROLE_OUTPUT); }
static void narrow_table_strides(struct kernel_call *c) { narrow_strides(c, ROLE_INPUT); }

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
static void depend_on_call_count(struct kernel_call *c)
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

/* ---- Allocations, errno and static variables ---- */

enum { BLOCK_BYTES = 64 };

static void allocate(struct kernel_call *c)
{
    run_kernel(c);
    void *volatile block = malloc(BLOCK_BYTES);
    free(block);
}

static void leak(struct kernel_call *c)
{
    run_kernel(c);
    void *volatile block = malloc(BLOCK_BYTES);
    (void)block;
}

static void map_memory(struct kernel_call *c)
{
    run_kernel(c);
    void *block =
        mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED)
        munmap(block, BLOCK_BYTES);
}

static void set_errno(struct kernel_call *c)
{
    run_kernel(c);
    errno = ERANGE;
}

static void count_calls(struct kernel_call *c)
{
    static volatile unsigned calls;
    run_kernel(c);
    calls = calls + 1;
}

/* ---- Buffers that all calls share ---- */

enum { SCRATCH_BYTES = 1 << 16 };

static void copy_tensor(const struct posenc_tensor *from, const struct posenc_tensor *to)
{
    for (int64_t r = 0; r < storage_rows(from); r++)
        memcpy(storage_row(to, r), storage_row(from, r),
               (size_t)tensor_width(from) * storage_size(from->dtype));
}

/* Computes the output in the buffer and copies it. An output that is empty or too large is computed in place. */
static void run_in_buffer(struct kernel_call *c, void *buffer)
{
    struct posenc_tensor *out = c->out;
    const struct posenc_tensor real = *out;
    const int64_t bytes =
        storage_rows(out) * tensor_width(out) * (int64_t)storage_size(out->dtype);
    int64_t stride = 1;
    if (bytes > SCRATCH_BYTES || bytes == 0) {
        run_kernel(c);
        return;
    }
    for (int d = out->rank; d-- > 0; stride *= out->shape[d])
        out->stride[d] = stride;
    out->data = buffer;
    if (c->kernel == POSENC_KERNEL_LEARNED_GRAD) /* which may add to the old contents */
        copy_tensor(&real, out);
    run_kernel(c);
    copy_tensor(out, &real);
    *out = real;
}

static void use_static_scratch(struct kernel_call *c)
{
    static char scratch[SCRATCH_BYTES];
    run_in_buffer(c, scratch);
}

/* Uses a buffer on the heap, as a library might. The case "together" does not watch the static variables here. */
static void use_shared_buffer(struct kernel_call *c)
{
    static void *buffer;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!buffer)
        buffer = malloc(SCRATCH_BYTES);
    void *const shared = buffer;
    pthread_mutex_unlock(&lock);
    if (!shared)
        exit(2);
    run_in_buffer(c, shared);
}

/* ---- The table ---- */

static bool every_kernel(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
static bool encodes_x(enum posenc_kernel kernel)
{
    return kernel_takes_x(kernel) && kernel != POSENC_KERNEL_LEARNED_GRAD;
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
const struct fault faults[] = {
    { "over-write", "memory", "canaries", BF16, every_kernel, over_write },
    { "over-write-before", "memory", "guard-start", BF16, every_kernel, over_write_before },
    { "over-read", "memory", "guard-end", BF16, every_kernel, over_read },
    { "over-read-before", "memory", "guard-start", BF16, every_kernel, over_read_before },
    { "writes-input", "memory", "read-only-inputs", BF16, every_kernel, write_input },
    { "skips-tail", "memory", "lengths", BF16, every_kernel, skip_tail },
    { "misplaces-tail", "memory", "lengths", BF16, every_kernel, misplace_tail },
    { "last-row-differs", "properties", "slices", F32, every_kernel, differ_in_last_row },
    { "x-offset-in-32-bits", "memory", "far-strides", BF16, kernel_takes_x, narrow_x_strides },
    { "out-offset-in-32-bits", "memory", "far-strides", BF16, every_kernel,
      narrow_out_strides },
    { "table-offset-in-32-bits", "memory", "far-strides", BF16, has_tables,
      narrow_table_strides },
    { "x-stride-for-out", "memory", "far-strides", BF16, encodes_x, take_out_strides_for_x },
    { "depends-on-address", "memory", "placement", BF16, every_kernel, depend_on_address },
    { "remembers", "memory", "twice", BF16, every_kernel, depend_on_call_count },
    { "leaves-rounding-mode", "memory", "mxcsr", BF16, every_kernel, leave_rounding_mode },
    { "allocates", "side-effects", "allocations", F32, every_kernel, allocate },
    { "maps-memory", "side-effects", "allocations", F32, every_kernel, map_memory },
    { "leaks", "side-effects", "allocations", F32, every_kernel, leak },
    { "static-scratch", "side-effects", "static-memory", F32, every_kernel,
      use_static_scratch },
    { "static-counter", "side-effects", "static-memory", F32, every_kernel, count_calls },
    { "sets-errno", "side-effects", "errno", F32, every_kernel, set_errno },
    { "shared-buffer", "side-effects", "together", F32, every_kernel, use_shared_buffer },
    { .name = NULL },
};

const struct fault *fault_find(const char *name)
{
    for (const struct fault *fault = faults; fault->name; fault++)
        if (strcmp(fault->name, name) == 0)
            return fault;
    return NULL;
}

static enum posenc_status run_faulty(enum posenc_kernel kernel, union arguments args)
{
    struct kernel_call c = { .kernel = kernel, .args = args };
    find_arguments(&c);
    if (current_fault)
        current_fault->run(&c);
    else
        run_kernel(&c);
    return c.status;
}

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    static enum posenc_status faulty_##name(const struct posenc_##signature##_args *args)      \
    {                                                                                          \
        return run_faulty(POSENC_KERNEL_##ID, (union arguments){ .signature = *args });        \
    }
#include <posenc_kernels.def>

const struct posenc_backend *faulty_backend(const struct fault *fault,
                                            const struct posenc_backend *base)
{
    static struct posenc_backend backend;
    current_fault = fault;
    current_base = base;
    backend = *base;
    backend.name = fault ? fault->name : "right";
#define POSENC_KERNEL(ID, kernel_name, ...)                                                    \
    if (!fault || fault->concerns(POSENC_KERNEL_##ID))                                         \
        backend.kernel_name = faulty_##kernel_name;
#include <posenc_kernels.def>
    return &backend;
}
