/* The backend whose kernels have a fault, and functions that faults share; see faulty.h. */
#include "faulty.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Faults ---- */

bool every_kernel(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
bool token_kernel(enum posenc_kernel kernel) { return !kernel_on_scores(kernel); }

const struct fault *fault_at(int i)
{
    const struct fault *const tables[] = { memory_faults, result_faults, side_effect_faults };
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct fault *fault = tables[table]; fault->name; fault++)
            if (i-- == 0)
                return fault;
    return NULL;
}

const struct fault *fault_find(const char *name)
{
    const struct fault *fault;
    for (int i = 0; (fault = fault_at(i)); i++)
        if (strcmp(fault->name, name) == 0)
            return fault;
    return NULL;
}

/* ---- Tensors ---- */

int64_t tensor_width(const struct posenc_tensor *t) { return t->shape[t->rank - 1]; }

int64_t tensor_row_count(const struct posenc_tensor *t)
{
    return tensor_width(t) ? storage_rows(t) : 0;
}

char *tensor_at(const struct posenc_tensor *t, int64_t r, int64_t column)
{
    return (char *)storage_row(t, r) + column * (int64_t)storage_size(t->dtype);
}

float tensor_get(const struct posenc_tensor *t, int64_t r, int64_t column)
{
    return storage_get(t->dtype, storage_row(t, r), column);
}

void tensor_put(const struct posenc_tensor *t, int64_t r, int64_t column, float value)
{
    storage_put(t->dtype, storage_row(t, r), column, value);
}

void tensor_flip_bit(const struct posenc_tensor *t, int64_t r, int64_t column)
{
    const float value = tensor_get(t, r, column);
    if (!isfinite(value) || value == 0.0f)
        tensor_put(t, r, column, 1.0f);
    else if (t->dtype == POSENC_DTYPE_F32)
        tensor_put(t, r, column, bits_to_float(float_to_bits(value) ^ 1u));
    else
        *(uint16_t *)tensor_at(t, r, column) ^= 1;
}

/* ---- Calls ---- */

static const struct fault *current_fault;
static const struct posenc_backend *current_base;
/* It is on the heap, because the suites watch writes to static variables. */
static atomic_ulong *n_calls;

unsigned long faulty_calls(void) { return atomic_load(n_calls); }

void run_kernel(struct kernel_call *c)
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

/* Returns the data of the first input tensor. Without one, returns x, or the positions of a call without x. */
static const void *find_input(const struct signature *s, const union arguments *args)
{
    const void *fallback = NULL;
    for (EACH_TENSOR(row, s)) {
        const void *data = arguments_data(args, row);
        if (row->role == ROLE_INPUT && row->form != FORM_POSITIONS && data)
            return data;
        if (row->role == ROLE_X || (row->form == FORM_POSITIONS && !fallback))
            fallback = data;
    }
    return fallback;
}

static void find_arguments(struct kernel_call *c)
{
    const struct signature *s = signature_of(c->kernel);
    const size_t x_scale = signature_argument(s, MEMBER(x_scale));
    c->input = find_input(s, &c->args);
    for (EACH_TENSOR(row, s)) {
        void *at = arguments_get(&c->args, row);
        if (row->role == ROLE_X)
            c->x = at;
        else if (row->role == ROLE_OUTPUT && c->out)
            c->second_out = at;
        else if (row->role == ROLE_OUTPUT)
            c->out = at;
        else if (row->form == FORM_POSITIONS)
            c->positions = at;
    }
    if (x_scale)
        memcpy(&c->x_scale, (const char *)&c->args + x_scale, sizeof c->x_scale);
}

/* Runs a kernel of the faulty backend. */
static enum posenc_status run_faulty(enum posenc_kernel kernel, union arguments args)
{
    struct kernel_call c = { .kernel = kernel, .args = args };
    find_arguments(&c);
    atomic_fetch_add(n_calls, 1);
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
    n_calls = n_calls ? n_calls : malloc(sizeof *n_calls);
    if (!n_calls)
        exit(2);
    atomic_init(n_calls, 0);
    backend = *base;
    backend.name = fault ? fault->name : "right";
#define POSENC_KERNEL(ID, kernel_name, ...)                                                    \
    if (!fault || fault->concerns(POSENC_KERNEL_##ID))                                         \
        backend.kernel_name = faulty_##kernel_name;
#include <posenc_kernels.def>
    return &backend;
}
