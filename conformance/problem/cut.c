/*
 * Parts of a call.  A row's value depends only on its own position and parameters, so a part of
 * the tensors along one dimension, with its positions, slopes or columns, is a call of its own.
 */
#include "cut.h"

#include <string.h>

struct range {
    enum dim dim;
    int64_t from, count;
};

static void cut_tensor(struct call *c, const struct tensor_row *row, const struct range *part)
{
    struct posenc_tensor *t = call_argument(c, row);
    const int d = call_dim(c, row, part->dim);
    if (d < 0 || !t->data)
        return;
    t->data = (char *)t->data + part->from * t->stride[d] * (int64_t)storage_size(t->dtype);
    t->shape[d] = part->count;
}

static void cut_positions(struct call *c, const struct tensor_row *row,
                          const struct range *part)
{
    struct posenc_positions *p = call_argument(c, row);
    const int64_t item = p->kind == POSENC_POSITIONS_I64 ? 8 : 4,
                  stride = part->dim == DIM_TOKEN   ? p->stride_token ? p->stride_token : 1
                           : part->dim == DIM_BATCH ? p->stride_batch
                                                    : 0;
    if (p->kind != POSENC_OFFSET)
        p->data = (const char *)p->data + part->from * stride * item;
    else if (part->dim == DIM_TOKEN)
        p->offset += part->from;
}

/* Elements of the whole before the first of the part.  An index by query - key + keys - 1
 * begins further on for later queries, and for earlier keys. */
static int64_t elements_before(const struct call *c, const struct tensor_row *row,
                               const struct range *part)
{
    const struct problem *p = &c->problem;
    int64_t stride = 1;
    if (row->dims[0] == DIM_DISTANCE)
        return part->dim == DIM_QUERY ? part->from
               : part->dim == DIM_KEY ? p->keys - part->from - part->count
                                      : 0;
    if (part->dim == DIM_BATCH && row->stride_batch)
        memcpy(&stride, (const char *)&c->args + row->stride_batch, sizeof stride);
    for (int i = tensor_dims(row); i-- > 0;) {
        if (row->dims[i] == part->dim)
            return part->from * stride;
        if (part->dim != DIM_BATCH)
            stride *= problem_extent(p, row->dims[i]);
    }
    return 0;
}

static void cut_pointer(struct call *c, const struct tensor_row *row, const struct range *part)
{
    const char *data = call_data(c, row);
    data += 4 * elements_before(c, row, part); /* f32 and int32 alike */
    memcpy(call_argument(c, row), &data, sizeof data);
}

/* query_offset: the position of the part's query 0 minus that of its key 0. */
static void cut_offset(struct call *c, const struct range *part)
{
    const size_t at = signature_argument(signature_of(c->problem.kernel), MEMBER(query_offset));
    int64_t offset;
    if (!at || (part->dim != DIM_QUERY && part->dim != DIM_KEY))
        return;
    memcpy(&offset, (char *)&c->args + at, sizeof offset);
    offset += part->dim == DIM_QUERY ? part->from : -part->from;
    memcpy((char *)&c->args + at, &offset, sizeof offset);
}

struct call call_cut(const struct call *whole, enum dim dim, int64_t from, int64_t count)
{
    const struct range part = { dim, from, count };
    struct call c = *whole;
    for (EACH_TENSOR(row, signature_of(c.problem.kernel)))
        if (row->form == FORM_TENSOR)
            cut_tensor(&c, row, &part);
        else if (row->form == FORM_POSITIONS)
            cut_positions(&c, row, &part);
        else
            cut_pointer(&c, row, &part);
    cut_offset(&c, &part);
    return c;
}

int call_from_last(const struct call *call, enum dim dim)
{
    const struct posenc_tensor *out = call_out((struct call *)(uintptr_t)call);
    const int d = call_dim(call, output_row(signature_of(call->problem.kernel), 0), dim);
    return d < 0 ? -1 : out->rank - 1 - d;
}

int64_t call_extent(const struct call *call, enum dim dim)
{
    const struct posenc_tensor *out = call_out((struct call *)(uintptr_t)call);
    const int last = call_from_last(call, dim);
    return last < 0 ? 1 : out->shape[out->rank - 1 - last];
}
