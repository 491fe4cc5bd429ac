/*
 * The table of faults, and the backend in which one of them is made: see faulty.h.
 */
#include "faulty.h"

#include "conformance/problem/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels that a fault concerns ---- */

static bool any_kernel(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
static bool has_positions(enum posenc_kernel kernel) { return !kernel_on_scores(kernel); }
static bool in_place_by_position(enum posenc_kernel kernel)
{
    return has_positions(kernel) && kernel_in_place(kernel);
}
static bool has_heads(enum posenc_kernel kernel)
{
    return kernel_on_scores(kernel) || kernel_rotates(kernel);
}

/* Returns true if the first output has batches. */
static bool has_batches(enum posenc_kernel kernel)
{
    return kernel_has_batch(kernel) && kernel != POSENC_KERNEL_learned_grad;
}
static bool encodes(enum posenc_kernel kernel) { return kernel != POSENC_KERNEL_learned_grad; }
static bool encodes_x(enum posenc_kernel kernel)
{
    return kernel_takes_x(kernel) && encodes(kernel);
}

/* Returns true if the kernel has input tensors besides x. */
static bool has_tables(enum posenc_kernel kernel)
{
    bool has = false;
    for (EACH_TENSOR(row, signature_of(kernel)))
        has = has || (row->role == ROLE_INPUT && row->form == FORM_TENSOR);
    return has;
}

static bool counts(enum posenc_kernel kernel, enum dim dim)
{
    const struct tensor_row *out = signature_output(signature_of(kernel), 0);
    bool has = false;
    for (int d = 0; d < tensor_dims(out); d++)
        has = has || out->dims[d] == dim;
    return has;
}
static bool counts_heads(enum posenc_kernel kernel) { return counts(kernel, DIM_HEAD); }
static bool counts_batches(enum posenc_kernel kernel)
{
    return kernel_has_batch(kernel) && counts(kernel, DIM_BATCH);
}
static bool has_wide_rows(enum posenc_kernel kernel)
{
    return kernel_signature(kernel) != SIGNATURE_window;
}

const struct fault faults[N_FAULTS] = {
    [OVER_WRITE] = { "over-write", "memory", "canaries", any_kernel, POSENC_BF16 },
    [OVER_WRITE_BEFORE] = { "over-write-before", "memory", "guard-start", any_kernel,
                            POSENC_BF16 },
    [OVER_READ] = { "over-read", "memory", "guard-end", any_kernel, POSENC_BF16 },
    [OVER_READ_BEFORE] = { "over-read-before", "memory", "guard-start", any_kernel,
                           POSENC_BF16 },
    [WRITE_INPUT] = { "writes-input", "memory", "read-only-inputs", any_kernel, POSENC_BF16 },
    [SKIP_TAIL] = { "skips-tail", "memory", "written", any_kernel, POSENC_BF16 },
    [MISPLACE_TAIL] = { "misplaces-tail", "memory", "lengths", any_kernel, POSENC_BF16 },
    [LEAK_LANE] = { "leaks-lane", "memory", "lane-independence", any_kernel, POSENC_F32 },
    [FORGET] = { "encodes-nothing", "random", "pairs", encodes, POSENC_F32 },
    [DEPEND_ON_ADDRESS] = { "depends-on-address", "memory", "placement", any_kernel,
                            POSENC_BF16 },
    [REMEMBER] = { "remembers", "memory", "twice", any_kernel, POSENC_BF16 },
    [LEAVE_MODE] = { "leaves-rounding-mode", "memory", "mxcsr", any_kernel, POSENC_BF16 },
    [LAST_ROW_DIFFERS] = { "last-row-differs", "properties", "slices", any_kernel, POSENC_F32 },
    [SHARE_SCRATCH] = { "shared-scratch", "properties", "threads", any_kernel, POSENC_F32 },
    [DIFFER_IN_PLACE] = { "differs-in-place", "properties", "in-place", kernel_in_place,
                          POSENC_F32 },
    [DIFFER_BY_KIND] = { "differs-by-kind", "properties", "numbering", has_positions,
                         POSENC_F32 },
    [DIFFER_BY_BATCH] = { "differs-by-batch", "properties", "batches", has_positions,
                          POSENC_F32 },
    [DIFFER_IN_PLACE_BY_I64] = { "in-place-differs-by-i64", "random", "pairs",
                                 in_place_by_position, POSENC_F32 },
    [ASSUME_DENSE_BATCHES] = { "assumes-dense-batches", "memory", "broadcast", kernel_takes_x,
                               POSENC_F32 },
    [ASSUME_FORWARD] = { "assumes-forward-strides", "properties", "layouts", any_kernel,
                         POSENC_F32 },
    [ASSUME_ROWS_APART] = { "assumes-rows-of-x-apart", "random", "pairs", kernel_takes_x,
                            POSENC_F32 },
    [ASSUME_X_FORWARD] = { "assumes-x-forward", "random", "pairs", kernel_takes_x, POSENC_F32 },
    [STRIDES_OF_OUT] = { "x-has-strides-of-out", "random", "pairs", kernel_takes_x,
                         POSENC_F32 },
    [STRIDE_OF_COS] = { "sin-has-stride-of-cos", "random", "pairs", kernel_rotates,
                        POSENC_F32 },
    [TOKEN_STRIDE_IGNORED] = { "token-stride-ignored", "random", "pairs", has_positions,
                               POSENC_F32 },
    [X_SCALE_UNSIGNED] = { "negative-x-scale-lost", "random", "pairs", kernel_adds_onto_x,
                           POSENC_F32 },
    [NAN_HIDDEN_BY_ZERO] = { "zero-x-scale-hides-nan", "random", "pairs", kernel_adds_onto_x,
                             POSENC_F32 },
    [X_OFFSET_NARROW] = { "x-offset-in-32-bits", "memory", "far-strides", kernel_takes_x,
                          POSENC_BF16 },
    [OUT_OFFSET_NARROW] = { "out-offset-in-32-bits", "memory", "far-strides", any_kernel,
                            POSENC_BF16 },
    [TABLE_OFFSET_NARROW] = { "table-offset-in-32-bits", "memory", "far-strides", has_tables,
                              POSENC_BF16 },
    [OUT_AS_X] = { "x-stride-for-out", "memory", "far-strides", encodes_x, POSENC_BF16 },
    [BEYOND_3_BATCHES] = { "batches-beyond-3", "random", "pairs", has_batches, POSENC_F32 },
    [BEYOND_32_HEADS] = { "heads-beyond-32", "random", "pairs", has_heads, POSENC_F32 },
    [HEADS_PAST_8] = { "head-8-wrong", "memory", "sizes", counts_heads, POSENC_BF16 },
    [HEADS_PAST_64] = { "head-64-wrong", "memory", "sizes", counts_heads, POSENC_BF16 },
    [BATCH_MODULO_4] = { "batch-modulo-4", "memory", "sizes", counts_batches, POSENC_BF16 },
    [COLUMNS_PAST_1024] = { "column-1024-wrong", "memory", "sizes", has_wide_rows, POSENC_F32 },
    [ALLOCATE] = { "allocates", "side-effects", "allocations", any_kernel, POSENC_F32 },
    [MAP_MEMORY] = { "maps-memory", "side-effects", "allocations", any_kernel, POSENC_F32 },
    [LEAK] = { "leaks", "side-effects", "leaks", any_kernel, POSENC_F32 },
    [STATIC_SCRATCH] = { "static-scratch", "side-effects", "static-memory", any_kernel,
                         POSENC_F32 },
    [COUNT_CALLS] = { "static-counter", "side-effects", "static-memory", any_kernel,
                      POSENC_F32 },
    [SET_ERRNO] = { "sets-errno", "side-effects", "errno", any_kernel, POSENC_F32 },
    [SHARED_BUFFER] = { "shared-buffer", "side-effects", "together", any_kernel, POSENC_F32 },
};

/* ---- A kernel that was entered ---- */

enum fault_id fault_now;
static const struct posenc_backend *base_now;
/* On the heap: the suites watch writes to static variables. */
static atomic_ulong *calls;

unsigned long faulty_calls(void) { return atomic_load(calls); }

void enter_kernel(struct entered *e)
{
    switch (e->kernel) {
#define POSENC_KERNEL(name, signature, ...)                                                    \
    case POSENC_KERNEL_##name:                                                                 \
        e->status = base_now->name(&e->args.signature);                                        \
        break;
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
        break;
    }
}

/* Finds data to write: of the first tensor that is an input, else of x, else of positions. */
static const void *an_input(const struct signature *s, const union arguments *a)
{
    const void *other = NULL;
    for (EACH_TENSOR(row, s)) {
        const void *data = row_data(a, row);
        if (row->role == ROLE_INPUT && row->form != FORM_POSITIONS && data)
            return data;
        if (row->role == ROLE_X || (row->form == FORM_POSITIONS && !other))
            other = data;
    }
    return other;
}

static void find_arguments(struct entered *e)
{
    const struct signature *s = signature_of(e->kernel);
    const size_t x_scale = signature_argument(s, MEMBER(x_scale));
    e->input = an_input(s, &e->args);
    for (EACH_TENSOR(row, s)) {
        void *at = row_argument(&e->args, row);
        if (row->role == ROLE_X)
            e->x = at;
        else if (row->role == ROLE_OUTPUT && e->out)
            e->second = at;
        else if (row->role == ROLE_OUTPUT)
            e->out = at;
        else if (row->form == FORM_POSITIONS)
            e->positions = at;
    }
    if (x_scale)
        memcpy(&e->x_scale, (const char *)&e->args + x_scale, sizeof e->x_scale);
}

static enum posenc_status enter(enum posenc_kernel kernel, union arguments args)
{
    struct entered e = { .kernel = kernel, .args = args };
    find_arguments(&e);
    atomic_fetch_add(calls, 1);
    change_arguments(&e);
    if (fault_now >= ALLOCATE)
        enter_side_effects(&e);
    else
        enter_memory(&e);
    return e.status;
}

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status faulty_##name(const struct posenc_##signature##_args *args)      \
    {                                                                                          \
        return enter(POSENC_KERNEL_##name, (union arguments){ .signature = *args });           \
    }
#include <posenc_kernels.def>

const struct posenc_backend *faulty_backend(enum fault_id fault,
                                            const struct posenc_backend *base)
{
    static struct posenc_backend backend;
    fault_now = fault;
    base_now = base;
    calls = calls ? calls : malloc(sizeof *calls);
    if (!calls)
        exit(2);
    atomic_init(calls, 0);
    backend = *base;
    backend.name = fault ? faults[fault].name : "right";
#define POSENC_KERNEL(kernel_name, ...)                                                        \
    if (!fault || faults[fault].concerns(POSENC_KERNEL_##kernel_name))                         \
        backend.kernel_name = faulty_##kernel_name;
#include <posenc_kernels.def>
    return &backend;
}
