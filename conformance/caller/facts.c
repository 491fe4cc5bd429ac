/*
 * What the arguments of a call say, by the rows of its signature: sizes, and which bytes are theirs.
 */
#include "caller.h"

#include <string.h>

/* ---- Sizes ---- */

static bool is_size(int64_t n) { return n >= 0 && n <= INT32_MAX; }

/* Of the first tensor that has it, outputs before the others. */
static void take_extents(struct facts *f, const struct tensor_row *row)
{
    const struct posenc_tensor *t = row_argument(&f->args, row);
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

/* Parameters as members of the problem, for the rows' own functions. */
static void take_back(struct facts *f)
{
    for (EACH_PARAMETER(p, f->signature)) {
        const char *from = (const char *)&f->args + p->to;
        char *to = (char *)&f->problem + p->from;
        float narrow;
        double value;
        if (p->from_size == p->to_size) {
            memcpy(to, from, p->to_size);
            continue;
        }
        memcpy(&narrow, from, sizeof narrow);
        value = (double)narrow;
        memcpy(to, &value, sizeof value);
    }
}

/* ---- Rows ---- */

static void describe_tensor(const struct facts *f, struct described *d)
{
    const struct posenc_tensor *t =
        (const struct posenc_tensor *)(const void *)((const char *)&f->args + d->row->offset);
    d->there = d->row->role == ROLE_X ? kernel_takes_x(f->kernel) || t->data
               : d->row->present      ? t->data != NULL
                                      : true;
    d->data = t->data;
    d->item = (int64_t)((unsigned)t->dtype <= POSENC_BF16 ? storage_size(t->dtype) : 4);
    d->sound = t->rank >= 1 && t->rank <= 4;
    d->n = d->sound ? t->rank : 0;
    for (int i = 0; i < d->n; i++) {
        d->shape[i] = t->shape[i];
        d->stride[i] = t->stride[i];
    }
}

static void describe_positions(const struct facts *f, struct described *d)
{
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)((const char *)&f->args +
                                                        d->row->offset);
    const bool several = f->spec && f->spec->mrope_section[1] != 0 && p->stride_axis != 0;
    d->there = p->kind != POSENC_OFFSET;
    d->data = (char *)(uintptr_t)p->data;
    d->item = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    d->sound = (unsigned)p->kind <= POSENC_POSITIONS_F32;
    d->n = 3;
    d->shape[0] = f->extent[DIM_BATCH];
    d->shape[1] = f->extent[DIM_TOKEN];
    d->shape[2] = !several ? 1 : f->spec->mrope_section[2] != 0 ? 3 : 2;
    d->stride[0] = p->stride_batch;
    d->stride[1] = p->stride_token ? p->stride_token : 1;
    d->stride[2] = p->stride_axis;
}

/* Rows of heads, one for each batch or for all; an index; thresholds. */
static void describe_pointer(const struct facts *f, struct described *d)
{
    const struct tensor_row *row = d->row;
    memcpy(&d->data, (const char *)&f->args + row->offset, sizeof d->data);
    d->there = true;
    d->item = 4;
    d->n = 2;
    d->stride[1] = 1;
    d->shape[0] = 1;
    if (row->stride_batch) {
        memcpy(&d->stride[0], (const char *)&f->args + row->stride_batch, sizeof d->stride[0]);
        d->shape[0] = d->stride[0] == 0 ? 1 : f->extent[row->dims[0]];
        d->shape[1] = f->extent[row->dims[1]];
        return;
    }
    d->shape[1] = row->size ? row->size(&f->problem) : 1;
    for (int i = 0; i < tensor_dims(row); i++) {
        const enum dim dim = row->dims[i] == DIM_DISTANCE ? DIM_QUERY : row->dims[i];
        if (f->extent[dim] < 0 || (row->dims[i] == DIM_DISTANCE && f->extent[DIM_KEY] < 0))
            d->shape[1] = -1;
        else if (!row->size)
            d->shape[1] *= f->extent[dim];
    }
}

static void measure(struct described *d)
{
    d->empty = false;
    d->below = 0;
    d->above = d->item;
    for (int i = 0; i < d->n; i++) {
        /* An index of a window has more elements than a dimension. */
        d->sound = d->sound && (is_size(d->shape[i]) ||
                                (d->row->form == FORM_INTEGERS && d->shape[i] >= 0));
        d->empty = d->empty || d->shape[i] == 0;
    }
    for (int i = 0; i < d->n && d->sound && !d->empty; i++) {
        const wide reach = (wide)(d->shape[i] - 1) * d->stride[i] * d->item;
        *(reach < 0 ? &d->below : &d->above) += reach < 0 ? -reach : reach;
    }
}

/* Without elements of x nobody asks for positions or an index: sums and gradients are zeros. */
static void leave_out(struct facts *f)
{
    bool nothing = false;
    for (int r = 0; r < MOST_TENSORS && f->of[r].row; r++)
        nothing = nothing || (f->of[r].row->role == ROLE_X && f->of[r].there &&
                              f->of[r].sound && f->of[r].empty);
    for (int r = 0; r < MOST_TENSORS && f->of[r].row && nothing; r++)
        if (f->of[r].row->form != FORM_TENSOR)
            f->of[r].there = f->of[r].sound = false;
}

void describe(struct facts *f)
{
    find_extents(f);
    take_back(f);
    for (EACH_TENSOR(row, f->signature)) {
        struct described *d = &f->of[row - f->signature->tensors];
        *d = (struct described){ .row = row, .sound = true, .backed = d->backed };
        if (row->form == FORM_TENSOR)
            describe_tensor(f, d);
        else if (row->form == FORM_POSITIONS)
            describe_positions(f, d);
        else
            describe_pointer(f, d);
        measure(d);
    }
    leave_out(f);
}

/* ---- Elements ---- */

int64_t elements(const struct described *d)
{
    int64_t n = d->there && d->sound ? 1 : 0;
    for (int i = 0; i < d->n && n; i++)
        n *= d->shape[i];
    return n;
}

char *element(const struct described *d, int64_t i)
{
    char *at = d->data;
    for (int dim = d->n - 1; dim >= 0; dim--) {
        at += i % d->shape[dim] * d->stride[dim] * d->item;
        i /= d->shape[dim];
    }
    return at;
}

int64_t index_end(const struct facts *f)
{
    return f->extent[f->extent[DIM_COLUMN] >= 0 ? DIM_COLUMN : DIM_ROW];
}
