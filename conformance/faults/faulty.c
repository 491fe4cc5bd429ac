/* The backend whose kernels have a fault; see faulty.h. */
#include "faulty.h"

#include "conformance/problem/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const struct fault *fault_find(const char *name)
{
    for (const struct fault *fault = faults; fault->name; fault++)
        if (strcmp(fault->name, name) == 0)
            return fault;
    return NULL;
}

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

/* Finds tensors among the arguments. The input is the first tensor that is neither x nor positions; without one, x or
 * the positions. */
static void find_arguments(struct kernel_call *c)
{
    bool has_own_input = false;
    for (EACH_TENSOR(row, signature_of(c->kernel))) {
        void *at = arguments_get(&c->args, row);
        const void *data = arguments_data(&c->args, row);
        const bool is_own_input = row->role == ROLE_INPUT && row->form != FORM_POSITIONS;
        if (row->role == ROLE_X)
            c->x = at;
        if (row->role == ROLE_OUTPUT)
            c->out = c->out ? c->out : at;
        else if (data && !has_own_input && (is_own_input || !c->input))
            c->input = data;
        has_own_input = has_own_input || (is_own_input && data);
    }
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
