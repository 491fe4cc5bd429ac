/*
 * The changes that make a set of a valid problem: which there are follows from the rows of the signature.
 */
#include "caller.h"

#include <stdio.h>
#include <string.h>

/* ---- Arguments ---- */

static struct posenc_tensor *tensor_at(struct set *set, int row)
{
    return row_argument(&set->after.args, &set->after.signature->tensors[row]);
}

static struct posenc_positions *positions_at(struct set *set, int row)
{
    return row_argument(&set->after.args, &set->after.signature->tensors[row]);
}

static void add_dimension(struct posenc_tensor *t)
{
    memmove(t->shape + 1, t->shape, sizeof t->shape - sizeof *t->shape);
    memmove(t->stride + 1, t->stride, sizeof t->stride - sizeof *t->stride);
    t->shape[0] = 1;
    t->rank++;
}

static void drop_dimension(struct posenc_tensor *t)
{
    t->rank--;
    memmove(t->shape, t->shape + 1, sizeof t->shape - sizeof *t->shape);
    memmove(t->stride, t->stride + 1, sizeof t->stride - sizeof *t->stride);
}

/* That dimension of every tensor. */
static void shape_all(struct set *set, enum dim dim, int64_t size)
{
    for (EACH_TENSOR(row, set->after.signature)) {
        struct posenc_tensor *t = row_argument(&set->after.args, row);
        const int64_t lacks =
            (int64_t)tensor_dims(row) - (row->form == FORM_TENSOR ? t->rank : 0);
        for (int i = 0; row->form == FORM_TENSOR && i < tensor_dims(row); i++)
            if (row->dims[i] == dim && i >= lacks && i - lacks < 4)
                t->shape[i - lacks] = size;
    }
}

static void set_parameter(struct set *set, const struct change *c)
{
    const struct parameter *p = c->parameter;
    const float narrow = (float)c->real;
    const int member = (int)c->whole;
    const bool flag = c->whole & 1;
    const void *from = p->kind == FIELD_F64    ? (const void *)&c->real
                       : p->kind == FIELD_F32  ? (const void *)&narrow
                       : p->kind == FIELD_BOOL ? (const void *)&flag
                       : p->kind == FIELD_ENUM ? (const void *)&member
                                               : (const void *)&c->whole;
    memcpy((char *)&set->after.args + p->to, from, p->to_size);
}

static void set_stride(struct set *set, const struct change *c)
{
    const struct tensor_row *row = &set->after.signature->tensors[c->row];
    struct posenc_positions *p = row_argument(&set->after.args, row);
    if (row->form == FORM_TENSOR)
        tensor_at(set, c->row)->stride[c->dim] = c->whole;
    else if (row->form == FORM_POSITIONS)
        *(c->dim == 0   ? &p->stride_batch
          : c->dim == 1 ? &p->stride_token
                        : &p->stride_axis) = c->whole;
    else
        memcpy((char *)&set->after.args + row->stride_batch, &c->whole, sizeof c->whole);
}

static void set_plan(struct set *set, const struct change *c)
{
    struct posenc_freqs *freqs = NULL;
    set->after.spec =
        c->whole < 0 ? NULL : other_plan((int)c->whole, set->base->problem.freqs.dim, &freqs);
    memcpy((char *)&set->after.args + set->after.signature->freqs, &freqs, sizeof freqs);
}

void change_arguments(struct set *set, const struct change *c)
{
    struct posenc_tensor *t = tensor_at(set, c->row);
    switch (c->member) {
    case CHANGE_SIZE:
        set->size = (size_t)c->whole;
        set->filled = c->dim;
        break;
    case CHANGE_PLAN:
        set_plan(set, c);
        break;
    case CHANGE_COMPUTED:
        memcpy((char *)&set->after.args + set->after.signature->computed, &c->whole,
               sizeof c->whole);
        break;
    case CHANGE_PARAMETER:
        set_parameter(set, c);
        break;
    case CHANGE_RANK:
        t->rank = (int32_t)c->whole;
        break;
    case CHANGE_ADD_DIMENSION:
        if (t->rank >= 0 && t->rank < 4)
            add_dimension(t);
        break;
    case CHANGE_DROP_DIMENSION:
        if (t->rank > 0 && t->rank <= 4)
            drop_dimension(t);
        break;
    case CHANGE_DTYPE:
        t->dtype = (enum posenc_dtype)c->whole;
        break;
    case CHANGE_SHAPE:
        t->shape[c->dim] = c->whole;
        break;
    case CHANGE_ALL_SHAPES:
        shape_all(set, (enum dim)c->dim, c->whole);
        break;
    case CHANGE_STRIDE:
        set_stride(set, c);
        break;
    case CHANGE_KIND:
        positions_at(set, c->row)->kind = (enum posenc_position_kind)c->whole;
        break;
    case CHANGE_OFFSET:
        positions_at(set, c->row)->offset = c->whole;
        break;
    case CHANGE_PLACE:
    case CHANGE_CONTENT:
        break;
    }
}

/* ---- Words ---- */

static size_t print_place(const struct set *set, const struct change *c, char *text,
                          size_t room, size_t at)
{
    const struct tensor_row *rows = set->after.signature->tensors;
    const char *name = rows[c->row].name;
    return c->place == PLACE_NULL ? text_append(text, room, at, "%s NULL", name)
           : c->place == PLACE_ODD
               ? text_append(text, room, at, "%s off by %d bytes", name, (int)c->whole)
               : text_append(text, room, at, "%s %lld bytes from %s", name, (long long)c->whole,
                             rows[c->dim].name);
}

static size_t print_change(const struct set *set, const struct change *c, char *text,
                           size_t room, size_t at)
{
    const char *name = set->after.signature->tensors[c->row].name;
    const long long whole = (long long)c->whole;
    switch (c->member) {
    case CHANGE_SIZE:
        return text_append(text, room, at, "size %zu%s", (size_t)c->whole,
                           c->dim ? " filled" : "");
    case CHANGE_PLAN:
        return text_append(text, room, at, "plan %lld", whole);
    case CHANGE_COMPUTED:
        return text_append(text, room, at, "computed %lld", whole);
    case CHANGE_PARAMETER:
        return c->parameter->kind == FIELD_F64 || c->parameter->kind == FIELD_F32
                   ? text_append(text, room, at, "byte %zu %.17g", c->parameter->to, c->real)
                   : text_append(text, room, at, "byte %zu %lld", c->parameter->to, whole);
    case CHANGE_RANK:
        return text_append(text, room, at, "%s.rank %lld", name, whole);
    case CHANGE_ADD_DIMENSION:
        return text_append(text, room, at, "%s with a dimension more", name);
    case CHANGE_DROP_DIMENSION:
        return text_append(text, room, at, "%s without its first dimension", name);
    case CHANGE_DTYPE:
        return text_append(text, room, at, "%s.dtype %lld", name, whole);
    case CHANGE_SHAPE:
        return text_append(text, room, at, "%s.shape[%d] %lld", name, c->dim, whole);
    case CHANGE_ALL_SHAPES:
        return text_append(text, room, at, "every %s dimension of kind %d %lld", name, c->dim,
                           whole);
    case CHANGE_STRIDE:
        return text_append(text, room, at, "%s.stride[%d] %lld", name, c->dim, whole);
    case CHANGE_PLACE:
        return print_place(set, c, text, room, at);
    case CHANGE_CONTENT:
        return text_append(text, room, at, "%s[%d] %lld or %.9g", name, c->dim, whole, c->real);
    case CHANGE_KIND:
        return text_append(text, room, at, "%s.kind %lld", name, whole);
    case CHANGE_OFFSET:
        return text_append(text, room, at, "%s.offset %lld", name, whole);
    }
    return at;
}

size_t set_print(const struct set *set, char *text, size_t room)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < set->n_changes; i++)
        if (set->kept >> i & 1u) {
            at = text_append(text, room, at, "%s", at ? ", " : "");
            at = print_change(set, &set->changes[i], text, room, at);
        }
    return at ? at : text_append(text, room, at, "nothing changed");
}
