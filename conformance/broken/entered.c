/*
 * A kernel that was entered with a mistake (see mistake.h), and what the ways of making one have
 * in common.
 */
#include "mistake.h"

#include "conformance/problem/signature.h"
#include "conformance/problem/storage.h"

#include <stdlib.h>
#include <string.h>

/* One to write: the first tensor that is an input, else x, else positions. */
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

static struct parts parts_of(enum posenc_kernel kernel, union arguments *a)
{
    const struct signature *s = signature_of(kernel);
    const size_t x_scale = signature_argument(s, MEMBER(x_scale));
    struct parts parts = { .input = an_input(s, a) };
    for (EACH_TENSOR(row, s)) {
        void *at = row_argument(a, row);
        if (row->role == ROLE_X)
            parts.x = at;
        else if (row->role == ROLE_OUTPUT && parts.out)
            parts.second = at;
        else if (row->role == ROLE_OUTPUT)
            parts.out = at;
        else if (row->form == FORM_POSITIONS)
            parts.positions = at;
    }
    if (s->freqs)
        memcpy(&parts.freqs, (const char *)a + s->freqs, sizeof parts.freqs);
    if (x_scale)
        memcpy(&parts.x_scale, (const char *)a + x_scale, sizeof parts.x_scale);
    return parts;
}

float *row_at(const struct posenc_tensor *t, int64_t b, int64_t i1, int64_t i2)
{
    return (float *)t->data + b * t->stride[0] + i1 * t->stride[1] + i2 * t->stride[2];
}

double position_on(const struct posenc_positions *p, int64_t b, int64_t t, int axis)
{
    if (p->kind == POSENC_OFFSET)
        return (double)(p->offset + t);
    const int64_t at = b * p->stride_batch + t * p->stride_token + axis * p->stride_axis;
    return p->kind == POSENC_POSITIONS_I32   ? (double)((const int32_t *)p->data)[at]
           : p->kind == POSENC_POSITIONS_I64 ? (double)((const int64_t *)p->data)[at]
                                             : (double)((const float *)p->data)[at];
}

void *enter_keep(struct entered *e, int64_t n, size_t size)
{
    e->kept = calloc((size_t)n + 1, size);
    if (!e->kept)
        exit(2);
    return e->kept;
}

float other_last_bit(float x) { return bits_to_float(float_to_bits(x) ^ 1u); }

void enter_kernel(struct entered *e)
{
    switch (e->kernel) {
#define POSENC_KERNEL(name, signature, ...)                                                    \
    case POSENC_KERNEL_##name:                                                                 \
        e->status = mistake_base->name(&e->args.signature);                                    \
        break;
#include <posenc_kernels.def>
    case POSENC_KERNEL_COUNT:
        break;
    }
}

/* NULL where a mistake is not made in kernels. */
static void (*const enter_by[HOWS])(struct entered *) = {
    [HOW_position] = enter_position, [HOW_arguments] = enter_arguments,
    [HOW_pair] = enter_pair,         [HOW_storage] = enter_storage,
    [HOW_memory] = enter_memory,     [HOW_element] = enter_element,
    [HOW_rotation] = enter_rotation, [HOW_norm] = enter_norm,
    [HOW_sum] = enter_sum,           [HOW_conduct] = enter_conduct,
};

static enum posenc_status enter(enum posenc_kernel kernel, union arguments args)
{
    struct entered e = { .kernel = kernel, .args = args };
    e.parts = parts_of(kernel, &e.args);
    e.stored = (e.parts.x && e.parts.x->data ? e.parts.x : e.parts.out)->dtype;
    mistake_made();
    enter_by[mistake_now->how](&e);
    in_f32_close(&e);
    posenc_freqs_destroy(e.freqs);
    free(e.kept);
    leave_conduct();
    return e.status;
}

#define POSENC_KERNEL(name, signature, ...)                                                    \
    static enum posenc_status mistaken_##name(const struct posenc_##signature##_args *args)    \
    {                                                                                          \
        return enter(POSENC_KERNEL_##name, (union arguments){ .signature = *args });           \
    }
#include <posenc_kernels.def>

void take_kernels(struct posenc_backend *backend)
{
    if (!enter_by[mistake_now->how])
        return;
#define POSENC_KERNEL(kernel_name, ...)                                                        \
    if (mistake_concerns(mistake_now, POSENC_KERNEL_##kernel_name))                            \
        backend->kernel_name = mistaken_##kernel_name;
#include <posenc_kernels.def>
}
