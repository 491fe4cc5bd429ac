/* Derives sizes and bytes from the arguments of a call, by the rows of its signature. */
#include "calls.h"

#include <string.h>

struct posenc_tensor *facts_tensor(struct facts *f, const struct tensor_row *row)
{
    return row_argument(&f->args, row);
}

const struct posenc_tensor *facts_view(const struct facts *f, const struct tensor_row *row)
{
    return (const struct posenc_tensor *)(const void *)((const char *)&f->args + row->offset);
}

/* ---- Sizes ---- */

static bool is_size(int64_t n) { return n >= 0 && n <= INT32_MAX; }

/* Takes the extents that no tensor before has given. */
static void take_extents(struct facts *f, const struct tensor_row *row)
{
    const struct posenc_tensor *t = facts_view(f, row);
    const int64_t n = tensor_dims(row), lacks = n - t->rank;
    if (row->form != FORM_TENSOR || t->rank < 1 || t->rank > 4 || lacks < 0 || lacks > 1 ||
        (row->role == ROLE_INPUT && row->present && !t->data))
        return;
    for (int i = 0; i < n; i++) {
        int64_t *extent = &f->extent[row->dims[i]];
        const int64_t size = i >= lacks                  ? t->shape[i - lacks]
                             : row->dims[i] == DIM_BATCH ? 1
                                                         : -1;
        if (*extent < 0 && is_size(size))
            *extent = size;
    }
}

/* Outputs decide before x, and x before other inputs. */
static void find_extents(struct facts *f)
{
    static const enum role order[] = { ROLE_OUTPUT, ROLE_X, ROLE_INPUT };
    static const struct {
        enum dim dim;
        size_t member;
    } members[] = { { DIM_BATCH, MEMBER(batch) }, { DIM_TOKEN, MEMBER(tokens) },
                    { DIM_HEAD, MEMBER(heads) },  { DIM_QUERY, MEMBER(queries) },
                    { DIM_KEY, MEMBER(keys) },    { DIM_CHANNEL, MEMBER(dim) } };
    for (int i = 0; i <= DIM_DISTANCE; i++)
        f->extent[i] = -1;
    for (int i = 0; i < 3; i++)
        for (EACH_TENSOR(row, f->signature))
            if (row->role == order[i] && (i != 1 || kernel_takes_x(f->kernel)))
                take_extents(f, row);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const int64_t extent = f->extent[members[i].dim], one = 1;
        memcpy((char *)&f->problem + members[i].member, extent < 0 ? &one : &extent,
               sizeof one);
    }
}

/* Makes parameters members of the problem again, for the rows' own functions. */
static void take_parameters(struct facts *f)
{
    for (EACH_PARAMETER(p, f->signature)) {
        const char *from = (const char *)&f->args + p->to;
        char *to = (char *)&f->problem + p->from;
        float narrow;
        memcpy(&narrow, from, p->to_size == sizeof narrow ? sizeof narrow : 0);
        if (p->from_size == p->to_size)
            memcpy(to, from, p->to_size);
        else
            memcpy(to, &(double){ (double)narrow }, sizeof(double));
    }
}

/* ---- Operands ---- */

static void describe_tensor(const struct facts *f, struct operand *o)
{
    const struct posenc_tensor *t = facts_view(f, o->row);
    o->used = o->row->role == ROLE_X ? kernel_takes_x(f->kernel) || t->data
                                     : !o->row->present || t->data;
    o->data = t->data;
    o->item = (int64_t)((unsigned)t->dtype <= POSENC_BF16 ? storage_size(t->dtype) : 4);
    o->sound = t->rank >= 1 && t->rank <= 4;
    o->n = o->sound ? t->rank : 0;
    for (int i = 0; i < o->n; i++) {
        o->shape[i] = t->shape[i];
        o->stride[i] = t->stride[i];
    }
}

static void describe_positions(const struct facts *f, struct operand *o)
{
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)facts_view(f, o->row);
    const bool several = f->spec && f->spec->mrope_section[1] != 0 && p->stride_axis != 0;
    o->used = p->kind != POSENC_OFFSET;
    o->data = (char *)(uintptr_t)p->data;
    o->item = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    o->sound = (unsigned)p->kind <= POSENC_POSITIONS_F32;
    o->n = 3;
    o->shape[0] = f->extent[DIM_BATCH];
    o->shape[1] = f->extent[DIM_TOKEN];
    o->shape[2] = !several ? 1 : f->spec->mrope_section[2] != 0 ? 3 : 2;
    o->stride[0] = p->stride_batch;
    o->stride[1] = p->stride_token ? p->stride_token : 1;
    o->stride[2] = p->stride_axis;
}

/* Values of heads, for each batch or for all; an index; thresholds. */
static void describe_pointer(const struct facts *f, struct operand *o)
{
    const struct tensor_row *row = o->row;
    memcpy(&o->data, (const char *)&f->args + row->offset, sizeof o->data);
    o->used = true;
    o->item = 4;
    o->n = 2;
    o->stride[1] = 1;
    o->shape[0] = 1;
    if (row->stride_batch) {
        memcpy(&o->stride[0], (const char *)&f->args + row->stride_batch, sizeof o->stride[0]);
        o->shape[0] = o->stride[0] == 0 ? 1 : f->extent[row->dims[0]];
        o->shape[1] = f->extent[row->dims[1]];
        return;
    }
    o->shape[1] = row->size ? row->size(&f->problem) : 1;
    for (int i = 0; i < tensor_dims(row); i++) {
        const enum dim dim = row->dims[i] == DIM_DISTANCE ? DIM_QUERY : row->dims[i];
        if (f->extent[dim] < 0 || (row->dims[i] == DIM_DISTANCE && f->extent[DIM_KEY] < 0))
            o->shape[1] = -1;
        else if (!row->size)
            o->shape[1] *= f->extent[dim];
    }
}

static void measure(struct operand *o)
{
    o->empty = false;
    o->below = 0;
    o->above = o->item;
    for (int i = 0; i < o->n; i++) {
        /* An index of a window has more elements than a dimension may have. */
        const bool many = o->row->form == FORM_INTEGERS && o->shape[i] >= 0;
        o->sound = o->sound && (is_size(o->shape[i]) || many);
        o->empty = o->empty || o->shape[i] == 0;
    }
    for (int i = 0; i < o->n && o->sound && !o->empty; i++) {
        const wide reach = (wide)(o->shape[i] - 1) * o->stride[i] * o->item;
        *(reach < 0 ? &o->below : &o->above) += reach < 0 ? -reach : reach;
    }
}

/* Without elements of x neither positions nor an index are read: sums and gradients are zeros. */
static void leave_out(struct facts *f)
{
    bool nothing = false;
    for (EACH_OPERAND(o, f))
        nothing = nothing || (o->row->role == ROLE_X && o->used && o->sound && o->empty);
    for (int r = 0; r < MOST_TENSORS && f->of[r].row && nothing; r++)
        if (f->of[r].row->form != FORM_TENSOR)
            f->of[r].used = f->of[r].sound = false;
}

void facts_derive(struct facts *f)
{
    find_extents(f);
    take_parameters(f);
    for (EACH_TENSOR(row, f->signature)) {
        struct operand *o = &f->of[row - f->signature->tensors];
        *o = (struct operand){ .row = row, .sound = true, .backed = o->backed };
        if (row->form == FORM_TENSOR)
            describe_tensor(f, o);
        else if (row->form == FORM_POSITIONS)
            describe_positions(f, o);
        else
            describe_pointer(f, o);
        measure(o);
    }
    leave_out(f);
}

/* ---- Elements ---- */

int64_t operand_count(const struct operand *o)
{
    int64_t n = o->used && o->sound ? 1 : 0;
    for (int i = 0; i < o->n && n; i++)
        n *= o->shape[i];
    return n;
}

char *operand_element(const struct operand *o, int64_t i)
{
    char *at = o->data;
    for (int dim = o->n - 1; dim >= 0; dim--) {
        at += i % o->shape[dim] * o->stride[dim] * o->item;
        i /= o->shape[dim];
    }
    return at;
}

int64_t facts_index_end(const struct facts *f)
{
    return f->extent[f->extent[DIM_COLUMN] >= 0 ? DIM_COLUMN : DIM_ROW];
}
