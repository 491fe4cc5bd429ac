/*
 * What the laws share: see laws.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include "conformance/problem/fields.h"
#include "conformance/problem/storage.h"

#include <stdio.h>
#include <string.h>

/* ---- Which kernels ---- */

bool any_kernel(enum posenc_kernel kernel) { return kernel < POSENC_KERNEL_COUNT; }
bool has_positions(enum posenc_kernel kernel) { return !kernel_on_scores(kernel); }

static bool counts(const struct tensor_row *row, enum dim dim)
{
    for (int d = 0; d < MOST_DIMS; d++)
        if (row->dims[d] == dim)
            return true;
    return false;
}

bool kernel_counts(enum posenc_kernel kernel, enum dim dim)
{
    for (EACH_TENSOR(row, signature_of(kernel)))
        if (row->role == ROLE_OUTPUT)
            return counts(row, dim);
    return false;
}

bool problem_reads(const struct problem *p, enum dim dim)
{
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->role != ROLE_OUTPUT && tensor_present(p, row) && counts(row, dim) &&
            !(row->shared && row->shared(p)))
            return true;
    return false;
}

bool encodes(enum posenc_kernel kernel)
{
    return kernel_on_scores(kernel) || kernel_counts(kernel, DIM_TOKEN);
}

bool has_field(enum posenc_kernel kernel, const char *name)
{
    struct field field;
    return kernel_field_find(kernel, name, &field);
}

bool law_needs(struct tally *t, enum posenc_kernel other)
{
    char reason[100];
    if (posenc_provides(t->run->backend, other))
        return true;
    snprintf(reason, sizeof reason, "the law needs %s too, which this backend does not provide",
             posenc_kernel_name(other));
    tally_skip(t, reason);
    return false;
}

/* ---- Edits ---- */

void edit_same_rows(struct call *call, const void *user)
{
    (void)user;
    const struct posenc_tensor *x = call_x(call);
    for (int64_t r = 1, n = x->data ? storage_rows(x) : 0; r < n; r++)
        memcpy(tensor_row(x, r), tensor_row(x, 0),
               (size_t)x->shape[x->rank - 1] * sizeof(float));
}

void edit_x(struct call *call, const void *value)
{
    const struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = x->data ? storage_rows(x) : 0; r < n; r++)
        for (int64_t c = 0; c < x->shape[x->rank - 1]; c++)
            storage_put(x->dtype, storage_row(x, r), c, *(const float *)value);
}

static void take_rows(const struct posenc_tensor *to, const struct call *from)
{
    for (int64_t r = 0; r < from->outputs[0].rows; r++)
        memcpy(tensor_row(to, r), call_row(from, 0, r),
               (size_t)from->outputs[0].width * sizeof(float));
}

void edit_take(struct call *call, const void *from) { take_rows(call_x(call), from); }
void edit_onto(struct call *call, const void *from) { take_rows(call_out(call), from); }
