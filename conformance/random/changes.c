/* Draws the changes of a call's arguments and makes them; the rows of the signature say which there
 * are. */
#include "calls.h"

#include <stdio.h>
#include <string.h>

/* ---- Numbers ---- */

/* Numbers of a tensor, of positions and of a pointer; `n` of one name stand in a row. */
struct number {
    const char *name;
    size_t offset;
    enum field_kind type;
    int n;
};

#define TENSOR_NUMBER(member, type, n)                                                         \
    {                                                                                          \
        "." #member, offsetof(struct posenc_tensor, member), type, n                           \
    }
#define POSITION_NUMBER(member, type)                                                          \
    {                                                                                          \
        "." #member, offsetof(struct posenc_positions, member), type, 1                        \
    }

static const struct number of_tensor[] = {
    TENSOR_NUMBER(rank, FIELD_ENUM, 1),
    TENSOR_NUMBER(dtype, FIELD_ENUM, 1),
    TENSOR_NUMBER(shape, FIELD_I64, 4),
    TENSOR_NUMBER(stride, FIELD_I64, 4),
};
static const struct number of_positions[] = {
    POSITION_NUMBER(kind, FIELD_ENUM),        POSITION_NUMBER(offset, FIELD_I64),
    POSITION_NUMBER(stride_batch, FIELD_I64), POSITION_NUMBER(stride_token, FIELD_I64),
    POSITION_NUMBER(stride_axis, FIELD_I64),
};
enum { STRIDE = 3, POSITION_OFFSET = 1 };

/* Draws another value of an argument, close to the one it has or far from any. */
static void draw_value(const struct facts *f, struct draws *d, struct change *c)
{
    const char *at = (const char *)&f->args + c->offset;
    int64_t whole = 1;
    int member = 1;
    float narrow = 0.0f;
    double real = 0.0;
    memcpy(&member, at, c->type == FIELD_ENUM ? sizeof member : 0);
    memcpy(&whole, at, c->type == FIELD_I64 ? sizeof whole : 0);
    memcpy(&narrow, at, c->type == FIELD_F32 ? sizeof narrow : 0);
    memcpy(&real, at, c->type == FIELD_F64 ? sizeof real : 0);
    c->kind = CHANGE_VALUE;
    c->real = draw_real(d, c->type == FIELD_F32 ? (double)narrow : real);
    c->whole = c->type == FIELD_ENUM && !draw_one_in(d, 3)
                   ? draw_between(d, -1, 5)
                   : draw_whole(d, c->type == FIELD_ENUM ? member : whole);
}

/* Draws a number of a row that begins at `from`. */
static void draw_number(const struct facts *f, const struct number *number, size_t from,
                        int dim, struct draws *d, struct change *c)
{
    const char *row = f->signature->tensors[c->row].name;
    c->offset = from + number->offset + (size_t)dim * sizeof(int64_t);
    c->type = number->type;
    snprintf(c->name, sizeof c->name, number->n > 1 ? "%s%s[%d]" : "%s%s", row, number->name,
             dim);
    draw_value(f, d, c);
}

/* ---- Drawing ---- */

static void draw_join(const struct facts *f, struct draws *d, struct change *c)
{
    const struct operand *o = &f->of[c->row];
    const int64_t far =
        o->below + o->above < 1 << 16 ? (int64_t)(o->below + o->above) : 1 << 16;
    const int64_t shifts[] = { 0,   o->item, -o->item,
                               far, -far,    draw_between(d, -far, far) / o->item * o->item };
    do
        c->dim = (int)draw_between(d, 0, MOST_TENSORS - 1);
    while (!f->of[c->dim].row);
    c->whole = shifts[draw_between(d, 0, 5)];
    c->kind = c->dim == c->row ? CHANGE_NULL : CHANGE_JOINED;
}

static void draw_place(const struct facts *f, struct draws *d, struct change *c)
{
    const int64_t pick = draw_between(d, 0, 5);
    c->kind = pick == 0 ? CHANGE_NULL : CHANGE_ODD;
    c->whole = draw_between(d, 1, 3);
    if (pick > 1)
        draw_join(f, d, c);
}

static void draw_element(const struct facts *f, struct draws *d, struct change *c)
{
    const int64_t end = facts_index_end(f);
    const int64_t wholes[] = { -1, 0, end, end - 1, INT32_MAX, INT32_MIN, draw_whole(d, end) };
    c->kind = CHANGE_ELEMENT;
    c->dim = (int)draw_between(d, 0, draw_one_in(d, 2) ? 3 : 1 << 16);
    c->whole = wholes[draw_between(d, 0, 6)];
    c->real = draw_real(d, (double)end);
}

/* Gives every dimension that counts the same as this one another size. */
static void draw_extent(const struct facts *f, struct draws *d, struct change *c)
{
    const struct tensor_row *row = &f->signature->tensors[c->row];
    const struct posenc_tensor *t = facts_view(f, row);
    const int n = tensor_dims(row), at = (int)draw_between(d, 0, t->rank - 1);
    c->kind = CHANGE_EXTENT;
    c->dim = (int)row->dims[at + (n > t->rank ? n - t->rank : 0)];
    c->whole = draw_one_in(d, 2) ? draw_between(d, 0, 5) : draw_whole(d, t->shape[at]);
}

/* A stride may be the dense one, or lead anywhere. */
static void draw_stride(const struct posenc_tensor *t, int dim, struct draws *d,
                        struct change *c)
{
    if (draw_one_in(d, 3))
        c->whole = dim + 1 < t->rank ? t->stride[dim + 1] * t->shape[dim + 1] : 1;
    else if (draw_one_in(d, 3))
        c->whole =
            (int64_t)(draw_bits(d) >> draw_between(d, 1, 33)) * (draw_one_in(d, 2) ? -1 : 1);
}

static void draw_tensor(const struct facts *f, struct draws *d, struct change *c)
{
    const struct tensor_row *row = &f->signature->tensors[c->row];
    const struct posenc_tensor *t = facts_view(f, row);
    const int64_t pick = t->rank >= 1 && t->rank <= 4 ? draw_between(d, 0, 15) : 0;
    const int number = pick < 2   ? (int)pick
                       : pick < 5 ? STRIDE - 1
                                  : STRIDE,
              dim = number < 2 ? 0 : (int)draw_between(d, 0, t->rank - 1);
    if (pick < 8) {
        draw_number(f, &of_tensor[number], row->offset, dim, d, c);
        if (number == STRIDE)
            draw_stride(t, dim, d, c);
    } else if (pick < 10) {
        c->kind = pick == 8 ? CHANGE_ADD_DIMENSION : CHANGE_DROP_DIMENSION;
    } else if (pick < 12) {
        draw_extent(f, d, c);
    } else if (pick == 12) {
        draw_element(f, d, c);
    } else {
        draw_place(f, d, c);
    }
}

static void draw_positions(const struct facts *f, struct draws *d, struct change *c)
{
    const struct tensor_row *row = &f->signature->tensors[c->row];
    const int64_t pick = draw_between(d, 0, 7);
    if (pick < 6)
        draw_number(f, &of_positions[pick < 5 ? pick : POSITION_OFFSET], row->offset, 0, d, c);
    else if (pick == 6)
        draw_place(f, d, c);
    else
        draw_element(f, d, c);
    if (pick == 5) /* the last row of the table */
        c->whole = draw_whole(d, f->extent[DIM_ROW]);
}

static void draw_pointer(const struct facts *f, struct draws *d, struct change *c)
{
    static const struct number stride = { ".stride_batch", 0, FIELD_I64, 1 };
    const struct tensor_row *row = &f->signature->tensors[c->row];
    if (row->stride_batch && draw_one_in(d, 3))
        draw_number(f, &stride, row->stride_batch, 0, d, c);
    else if (draw_one_in(d, 2))
        draw_place(f, d, c);
    else
        draw_element(f, d, c);
}

static void draw_argument(const struct facts *f, size_t offset, enum field_kind type,
                          struct draws *d, struct change *c)
{
    c->offset = offset;
    c->type = type;
    snprintf(c->name, sizeof c->name, "argument at byte %zu", offset);
    draw_value(f, d, c);
}

/* Sizes of older and newer headers, and of none; `dim`: bytes beyond are not 0. */
static void draw_size(const struct facts *f, struct draws *d, struct change *c)
{
    const int64_t size = (int64_t)f->signature->size, word = sizeof(void *);
    c->kind = CHANGE_SIZE;
    c->dim = draw_one_in(d, 2);
    c->whole = draw_one_in(d, 3)   ? size + word * draw_between(d, 1, 3 * size / word)
               : draw_one_in(d, 2) ? word * draw_between(d, 0, size / word - 1)
               : draw_one_in(d, 2) ? draw_between(d, 0, size - 1)
                                   : draw_whole(d, size);
}

/* Changes a row or a parameter, each as likely, or now and then what every signature has. */
static void draw_change(const struct facts *f, struct draws *d, struct change *c)
{
    const struct signature *s = f->signature;
    int rows = 0, parameters = 0;
    for (EACH_TENSOR(row, s))
        rows++;
    for (EACH_PARAMETER(p, s))
        parameters++;
    const int site = (int)draw_between(d, 0, 2 * rows + parameters);
    *c = (struct change){ .row = site % rows };
    if (draw_one_in(d, 12)) {
        draw_size(f, d, c);
    } else if (s->freqs && draw_one_in(d, 8)) {
        c->kind = CHANGE_FREQS;
        c->whole = draw_between(d, -1, 6);
    } else if (s->computed && draw_one_in(d, 8)) {
        draw_argument(f, s->computed, FIELD_I64, d, c);
    } else if (site >= 2 * rows && parameters) {
        const struct parameter *p = &s->parameters[(site - 2 * rows) % parameters];
        draw_argument(f, p->to, p->kind, d, c);
    } else if (s->tensors[c->row].form == FORM_TENSOR) {
        draw_tensor(f, d, c);
    } else if (s->tensors[c->row].form == FORM_POSITIONS) {
        draw_positions(f, d, c);
    } else {
        draw_pointer(f, d, c);
    }
}

void changes_draw(struct changed_call *c, struct draws *d)
{
    c->n_changes = (int)draw_between(d, 5, 24) / 8;
    for (int i = 0; i < c->n_changes; i++)
        draw_change(&c->before, d, &c->changes[i]);
}

/* ---- Making them ---- */

static void set_number(struct facts *f, const struct change *c)
{
    const float narrow = (float)c->real;
    const int member = (int)c->whole;
    const bool flag = c->whole & 1;
    char *at = (char *)&f->args + c->offset;
    if (c->type == FIELD_F64)
        memcpy(at, &c->real, sizeof c->real);
    else if (c->type == FIELD_F32)
        memcpy(at, &narrow, sizeof narrow);
    else if (c->type == FIELD_BOOL)
        memcpy(at, &flag, sizeof flag);
    else if (c->type == FIELD_ENUM)
        memcpy(at, &member, sizeof member);
    else
        memcpy(at, &c->whole, sizeof c->whole);
}

/* Adds or drops a first dimension, of size 1. */
static void set_dimensions(struct posenc_tensor *t, int by)
{
    const size_t bytes = sizeof t->shape - sizeof *t->shape;
    const int from = by<0, to = by> 0;
    if (t->rank + by < 0 || t->rank + by > 4 || t->rank < 0 || t->rank > 4)
        return;
    memmove(t->shape + to, t->shape + from, bytes);
    memmove(t->stride + to, t->stride + from, bytes);
    t->shape[0] = by > 0 ? 1 : t->shape[0];
    t->rank += by;
}

static void set_extent(struct facts *f, enum dim dim, int64_t size)
{
    for (EACH_TENSOR(row, f->signature)) {
        struct posenc_tensor *t = facts_tensor(f, row);
        const int lacks = row->form == FORM_TENSOR ? tensor_dims(row) - t->rank : 0;
        for (int i = 0; row->form == FORM_TENSOR && i < tensor_dims(row); i++)
            if (row->dims[i] == dim && i >= lacks && i - lacks < 4)
                t->shape[i - lacks] = size;
    }
}

/* Frequencies of another kind: fewer channels, several axes, xPos, other numerics modes, more. */
static void set_freqs(struct changed_call *c, int kind)
{
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    const int64_t dim = c->base->problem.freqs.dim;
    spec.dim = kind == 0 && dim > 1 ? dim - 1 : kind == 6 ? dim + 2 : dim;
    if ((kind == 1 || kind == 2) && dim % 2 == 0 && dim >= 4) {
        spec.mrope_section[0] = dim / 2 - 1;
        spec.mrope_section[1] = 1;
    }
    spec.mrope_layout = kind == 2 ? POSENC_MROPE_RESTARTED : POSENC_MROPE_CHUNKED;
    spec.xpos_scale_base = kind == 3 && dim % 2 == 0 ? 512.0 : 0.0;
    spec.profile = kind == 4 ? POSENC_GGML_F32 : kind == 5 ? POSENC_HF_F32 : POSENC_EXACT;
    c->spec = spec;
    posenc_freqs_destroy(c->freqs);
    c->freqs = NULL;
    if (kind < 0 || posenc_freqs_create(&spec, &c->freqs, NULL) != POSENC_OK)
        c->freqs = NULL;
    c->after.spec = c->freqs ? &c->spec : NULL;
    memcpy((char *)&c->after.args + c->after.signature->freqs, &c->freqs, sizeof c->freqs);
}

/* Arguments beyond the size that is claimed are as in a call that gives none. */
static void cut_arguments(struct changed_call *c)
{
    const struct signature *s = c->after.signature;
    union arguments fresh;
    s->blank(&fresh);
    if (c->size < s->size)
        memcpy((char *)&c->after.args + c->size, (const char *)&fresh + c->size,
               s->size - c->size);
    memcpy(&c->after.args, &c->size, sizeof c->size);
}

void changes_apply(struct changed_call *c)
{
    struct facts *f = &c->after;
    *f = c->before;
    c->size = f->signature->size;
    for (int i = 0; i < c->n_changes; i++) {
        const struct change *change = &c->changes[i];
        const struct tensor_row *row = &f->signature->tensors[change->row];
        if (!(c->kept >> i & 1u))
            continue;
        if (change->kind == CHANGE_VALUE)
            set_number(f, change);
        else if (change->kind == CHANGE_SIZE)
            c->size = (size_t)change->whole;
        else if (change->kind == CHANGE_FREQS)
            set_freqs(c, (int)change->whole);
        else if (change->kind == CHANGE_EXTENT)
            set_extent(f, (enum dim)change->dim, change->whole);
        else if (change->kind == CHANGE_ADD_DIMENSION || change->kind == CHANGE_DROP_DIMENSION)
            set_dimensions(facts_tensor(f, row), change->kind == CHANGE_ADD_DIMENSION ? 1 : -1);
        c->filled = change->kind == CHANGE_SIZE ? change->dim : c->filled;
    }
    cut_arguments(c);
}

/* ---- Words ---- */

static size_t print_change(const struct changed_call *call, const struct change *c, char *text,
                           size_t room, size_t at)
{
    const struct tensor_row *rows = call->after.signature->tensors;
    const char *name = rows[c->row].name;
    const long long whole = (long long)c->whole;
    switch (c->kind) {
    case CHANGE_VALUE:
        return c->type == FIELD_F64 || c->type == FIELD_F32
                   ? text_append(text, room, at, "%s = %.17g", c->name, c->real)
                   : text_append(text, room, at, "%s = %lld", c->name, whole);
    case CHANGE_SIZE:
        return text_append(text, room, at, "size = %lld%s", whole, c->dim ? ", filled" : "");
    case CHANGE_FREQS:
        return text_append(text, room, at, "freqs of kind %lld", whole);
    case CHANGE_ADD_DIMENSION:
        return text_append(text, room, at, "%s with a dimension more", name);
    case CHANGE_DROP_DIMENSION:
        return text_append(text, room, at, "%s without its first dimension", name);
    case CHANGE_EXTENT:
        return text_append(text, room, at, "every dimension of kind %d = %lld", c->dim, whole);
    case CHANGE_NULL:
        return text_append(text, room, at, "%s = NULL", name);
    case CHANGE_ODD:
        return text_append(text, room, at, "%s moved by %lld bytes", name, whole);
    case CHANGE_JOINED:
        return text_append(text, room, at, "%s %lld bytes from %s", name, whole,
                           rows[c->dim].name);
    case CHANGE_ELEMENT:
        return text_append(text, room, at, "element %d of %s = %lld or %.9g", c->dim, name,
                           whole, c->real);
    }
    return at;
}

size_t changes_print(const struct changed_call *c, char *text, size_t room)
{
    size_t at = text_append(text, room, 0, "with");
    for (int i = 0; i < c->n_changes; i++)
        if (c->kept >> i & 1u) {
            at = text_append(text, room, at, "%s ", at > 4 ? "," : "");
            at = print_change(c, &c->changes[i], text, room, at);
        }
    return at > 4 ? at : text_append(text, room, 0, "with nothing changed");
}
