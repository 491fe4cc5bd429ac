/*
 * Draws the changes of a call's arguments and makes them; see calls.h. The rows of the signature say which changes
 * there are. Changes depend on the seed of the test alone, so a test with fewer of them draws the same ones.
 */
#include "calls.h"

#include <stdio.h>
#include <string.h>

/* ---- Numbers ---- */

/* Reads a flag as 1, since number_write() sets a flag by the lowest bit of its new number. */
struct number number_read(const void *from, enum field_kind kind)
{
    struct number number = { .whole = 1 };
    int member;
    float narrow;
    if (kind == FIELD_ENUM)
        number.whole = *(const int *)memcpy(&member, from, sizeof member);
    else if (kind == FIELD_F32)
        number.real = (double)*(const float *)memcpy(&narrow, from, sizeof narrow);
    else if (kind == FIELD_I64)
        memcpy(&number.whole, from, sizeof number.whole);
    else if (kind == FIELD_F64)
        memcpy(&number.real, from, sizeof number.real);
    return number;
}

static void number_write(void *to, enum field_kind kind, struct number number)
{
    const int member = (int)number.whole;
    const float narrow = (float)number.real;
    const bool flag = number.whole & 1;
    if (kind == FIELD_F64)
        memcpy(to, &number.real, sizeof number.real);
    else if (kind == FIELD_F32)
        memcpy(to, &narrow, sizeof narrow);
    else if (kind == FIELD_BOOL)
        memcpy(to, &flag, sizeof flag);
    else if (kind == FIELD_ENUM)
        memcpy(to, &member, sizeof member);
    else
        memcpy(to, &number.whole, sizeof number.whole);
}

/* Draws a new value of an argument, close to its present one or far away. */
static void draw_value(const struct call_facts *f, size_t offset, enum field_kind type,
                       struct random_state *d, struct argument_change *c)
{
    const struct number old = number_read((const char *)&f->args + offset, type);
    c->kind = CHANGE_VALUE;
    c->offset = offset;
    c->type = type;
    c->value.real = draw_real(d, old.real);
    if (type == FIELD_ENUM && !draw_one_in(d, 3))
        c->value.whole = draw_between(d, -1, 5);
    else
        c->value.whole = draw_whole(d, old.whole);
}

/* A number in a tensor or in positions. */
struct tensor_member {
    const char *name;
    size_t offset;
    enum field_kind type;
};

#define MEMBER_OF(type, member, kind)                                                          \
    {                                                                                          \
#member, offsetof(struct posenc_##type, member), kind                                  \
    }

/* Changes of a tensor. RANK to STRIDE set a member; SHAPE and STRIDE have one for each dimension. */
enum { RANK, DTYPE, SHAPE, STRIDE, ADD_DIMENSION, DROP_DIMENSION, EXTENT, ELEMENT, PLACE };
static const struct tensor_member tensor_members[] = {
    [RANK] = MEMBER_OF(tensor, rank, FIELD_ENUM),
    [DTYPE] = MEMBER_OF(tensor, dtype, FIELD_ENUM),
    [SHAPE] = MEMBER_OF(tensor, shape, FIELD_I64),
    [STRIDE] = MEMBER_OF(tensor, stride, FIELD_I64),
};

enum { KIND, OFFSET, STRIDE_BATCH, STRIDE_TOKEN, STRIDE_AXIS };
static const struct tensor_member position_members[] = {
    [KIND] = MEMBER_OF(positions, kind, FIELD_ENUM),
    [OFFSET] = MEMBER_OF(positions, offset, FIELD_I64),
    [STRIDE_BATCH] = MEMBER_OF(positions, stride_batch, FIELD_I64),
    [STRIDE_TOKEN] = MEMBER_OF(positions, stride_token, FIELD_I64),
    [STRIDE_AXIS] = MEMBER_OF(positions, stride_axis, FIELD_I64),
};

/* Draws a member of the tensor or the positions at `base` in the arguments: of an array the one of dimension `dim`. */
static void draw_member(const struct call_facts *f, const struct tensor_member *member,
                        size_t base, int dim, struct random_state *d, struct argument_change *c)
{
    const char *row = f->signature->tensors[c->row].name;
    snprintf(c->name, sizeof c->name, "%s.%s[%d]", row, member->name, dim);
    draw_value(f, base + member->offset + (size_t)dim * sizeof(int64_t), member->type, d, c);
}

/* ---- Changes of one operand ---- */

/* Places the row in the memory of another one, at a random distance. Sets it to NULL if the other one is the row
 * itself. */
static void draw_join(const struct call_facts *f, struct random_state *d,
                      struct argument_change *c)
{
    const struct operand *o = &f->operands[c->row];
    const int128 extent = o->bytes_below + o->bytes_above;
    const int64_t item = o->item_bytes, far = extent < 1 << 16 ? (int64_t)extent : 1 << 16;
    const int64_t distances[] = { 0,   item, -item,
                                  far, -far, draw_between(d, -far, far) / item * item };
    do
        c->other_row = (int)draw_between(d, 0, MOST_TENSORS - 1);
    while (!f->operands[c->other_row].row);
    c->value.whole = distances[draw_between(d, 0, 5)];
    c->kind = c->other_row == c->row ? CHANGE_NULL : CHANGE_JOINED;
}

static void draw_place(const struct call_facts *f, struct random_state *d,
                       struct argument_change *c)
{
    const int64_t pick = draw_between(d, 0, 5);
    c->kind = pick == 0 ? CHANGE_NULL : CHANGE_ODD;
    c->value.whole = draw_between(d, 1, 3);
    if (pick > 1)
        draw_join(f, d, c);
}

/* Draws an element and its new value. Values at the ends of an index are likely. */
static void draw_element(const struct call_facts *f, struct random_state *d,
                         struct argument_change *c)
{
    const int64_t end = facts_index_end(f);
    const int64_t wholes[] = { -1, 0, end, end - 1, INT32_MAX, INT32_MIN, draw_whole(d, end) };
    c->kind = CHANGE_ELEMENT;
    c->element = (int)draw_between(d, 0, draw_one_in(d, 2) ? 3 : 1 << 16);
    c->value.whole = wholes[draw_between(d, 0, 6)];
    c->value.real = draw_real(d, (double)end);
}

/* Draws a new size for all dimensions that count the same thing as a dimension of this row. */
static void draw_extent(const struct call_facts *f, struct random_state *d,
                        struct argument_change *c)
{
    const struct tensor_spec *row = &f->signature->tensors[c->row];
    const struct posenc_tensor *t = facts_tensor(f, row);
    const int n = tensor_dims(row), at = (int)draw_between(d, 0, t->rank - 1);
    c->kind = CHANGE_EXTENT;
    c->dim = row->dims[at + (n > t->rank ? n - t->rank : 0)];
    c->value.whole = draw_one_in(d, 2) ? draw_between(d, 0, 5) : draw_whole(d, t->shape[at]);
}

/* Sometimes replaces a drawn stride by the dense one, or by a very large one. */
static void draw_stride(const struct posenc_tensor *t, int dim, struct random_state *d,
                        struct argument_change *c)
{
    if (draw_one_in(d, 3))
        c->value.whole = dim + 1 < t->rank ? t->stride[dim + 1] * t->shape[dim + 1] : 1;
    else if (draw_one_in(d, 3))
        c->value.whole =
            (int64_t)(draw_bits(d) >> draw_between(d, 1, 33)) * (draw_one_in(d, 2) ? -1 : 1);
}

static void draw_tensor(const struct call_facts *f, struct random_state *d,
                        struct argument_change *c)
{
    static const int picks[] = { RANK,    DTYPE,  SHAPE,         SHAPE,          SHAPE,  STRIDE,
                                 STRIDE,  STRIDE, ADD_DIMENSION, DROP_DIMENSION, EXTENT, EXTENT,
                                 ELEMENT, PLACE,  PLACE,         PLACE };
    const struct tensor_spec *row = &f->signature->tensors[c->row];
    const struct posenc_tensor *t = facts_tensor(f, row);
    const bool has_dims = t->rank >= 1 && t->rank <= 4;
    const int pick = has_dims ? picks[draw_between(d, 0, 15)] : RANK,
              dim = pick >= SHAPE ? (int)draw_between(d, 0, t->rank - 1) : 0;
    switch (pick) {
    case ADD_DIMENSION:
        c->kind = CHANGE_ADD_DIMENSION;
        break;
    case DROP_DIMENSION:
        c->kind = CHANGE_DROP_DIMENSION;
        break;
    case EXTENT:
        draw_extent(f, d, c);
        break;
    case ELEMENT:
        draw_element(f, d, c);
        break;
    case PLACE:
        draw_place(f, d, c);
        break;
    default:
        draw_member(f, &tensor_members[pick], row->offset, dim, d, c);
        if (pick == STRIDE)
            draw_stride(t, dim, d, c);
    }
}

static void draw_positions(const struct call_facts *f, struct random_state *d,
                           struct argument_change *c)
{
    enum { LAST_ROW = STRIDE_AXIS + 1, MOVE, VALUE };
    const size_t base = f->signature->tensors[c->row].offset;
    const int pick = (int)draw_between(d, 0, VALUE);
    if (pick <= STRIDE_AXIS) {
        draw_member(f, &position_members[pick], base, 0, d, c);
    } else if (pick == LAST_ROW) { /* an offset near the end of the table */
        draw_member(f, &position_members[OFFSET], base, 0, d, c);
        c->value.whole = draw_whole(d, f->extent[DIM_ROW]);
    } else if (pick == MOVE) {
        draw_place(f, d, c);
    } else {
        draw_element(f, d, c);
    }
}

static void draw_pointer(const struct call_facts *f, struct random_state *d,
                         struct argument_change *c)
{
    static const struct tensor_member stride = { "stride_batch", 0, FIELD_I64 };
    const struct tensor_spec *row = &f->signature->tensors[c->row];
    if (row->stride_batch && draw_one_in(d, 3))
        draw_member(f, &stride, row->stride_batch, 0, d, c);
    else if (draw_one_in(d, 2))
        draw_place(f, d, c);
    else
        draw_element(f, d, c);
}

/* ---- Changes of a call ---- */

static void draw_argument(const struct call_facts *f, size_t offset, enum field_kind type,
                          struct random_state *d, struct argument_change *c)
{
    snprintf(c->name, sizeof c->name, "argument at byte %zu", offset);
    draw_value(f, offset, type, d, c);
}

/* Draws a size of an older or newer struct, or one that no struct has. */
static void draw_size(const struct call_facts *f, struct random_state *d,
                      struct argument_change *c)
{
    const int64_t size = (int64_t)f->signature->size, word = sizeof(void *);
    c->kind = CHANGE_SIZE;
    c->filled = draw_one_in(d, 2);
    if (draw_one_in(d, 3))
        c->value.whole = size + word * draw_between(d, 1, 3 * size / word);
    else if (draw_one_in(d, 2))
        c->value.whole = word * draw_between(d, 0, size / word - 1);
    else if (draw_one_in(d, 2))
        c->value.whole = draw_between(d, 0, size - 1);
    else
        c->value.whole = draw_whole(d, size);
}

/* Draws a change of a row or a parameter, sometimes of the size, the frequencies, or a computed argument. Rows
 * are twice as likely as parameters. */
static void draw_change(const struct call_facts *f, struct random_state *d,
                        struct argument_change *c)
{
    const struct signature *s = f->signature;
    int rows = 0, parameters = 0;
    for (EACH_TENSOR(row, s))
        rows++;
    for (EACH_PARAMETER(p, s))
        parameters++;
    const int site = (int)draw_between(d, 0, 2 * rows + parameters);
    *c = (struct argument_change){ .row = site % rows };
    if (draw_one_in(d, 12)) {
        draw_size(f, d, c);
    } else if (s->freqs && draw_one_in(d, 8)) {
        c->kind = CHANGE_FREQS;
        c->value.whole = draw_between(d, -1, 6);
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

/* Draws one or two changes in most cases, else three or none. */
void changes_draw(struct call_test *t, struct random_state *d)
{
    t->n_changes = (int)draw_between(d, 5, 24) / 8;
    for (int i = 0; i < t->n_changes; i++)
        draw_change(&t->before, d, &t->changes[i]);
}

/* ---- Making the changes ---- */

/* Adds a first dimension of size 1, or drops the first one. */
static void set_dimensions(struct posenc_tensor *t, bool add)
{
    const size_t bytes = sizeof t->shape - sizeof *t->shape;
    const int rank = t->rank + (add ? 1 : -1), from = add ? 0 : 1, to = add ? 1 : 0;
    if (rank < 0 || rank > 4 || t->rank < 0 || t->rank > 4)
        return;
    memmove(t->shape + to, t->shape + from, bytes);
    memmove(t->stride + to, t->stride + from, bytes);
    t->shape[0] = add ? 1 : t->shape[0];
    t->rank = rank;
}

static void set_extent(struct call_facts *f, enum dim dim, int64_t size)
{
    for (EACH_TENSOR(row, f->signature)) {
        struct posenc_tensor *t = arguments_get(&f->args, row);
        if (row->form != FORM_TENSOR)
            continue;
        const int missing = tensor_dims(row) - t->rank;
        for (int i = 0; i < tensor_dims(row); i++)
            if (row->dims[i] == dim && i >= missing && i - missing < 4)
                t->shape[i - missing] = size;
    }
}

/* Replaces the frequencies by those of a kind, or by NULL for -1. */
static void set_freqs(struct call_test *t, int kind)
{
    enum { FEWER_CHANNELS, TWO_AXES, RESTARTED_AXES, XPOS, GGML, HF, MORE_CHANNELS };
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
    const int64_t dim = t->base->problem.freqs.dim;
    spec.dim = dim;
    if (kind == FEWER_CHANNELS && dim > 1)
        spec.dim = dim - 1;
    if (kind == MORE_CHANNELS)
        spec.dim = dim + 2;
    if ((kind == TWO_AXES || kind == RESTARTED_AXES) && dim % 2 == 0 && dim >= 4) {
        spec.mrope_section[0] = dim / 2 - 1;
        spec.mrope_section[1] = 1;
    }
    spec.mrope_layout = kind == RESTARTED_AXES ? POSENC_MROPE_LAYOUT_QWEN2_VL_VISION
                                               : POSENC_MROPE_LAYOUT_QWEN2_VL;
    spec.xpos_scale_base = kind == XPOS && dim % 2 == 0 ? 512.0 : 0.0;
    if (kind == GGML)
        spec.numerics = POSENC_NUMERICS_GGML_F32;
    if (kind == HF)
        spec.numerics = POSENC_NUMERICS_HF_F32;
    t->freqs_spec = spec;
    t->implementation->freqs_destroy(t->freqs);
    t->freqs = NULL;
    if (kind < 0 || t->implementation->freqs_create(&spec, &t->freqs, NULL) != POSENC_OK)
        t->freqs = NULL;
    t->after.freqs_spec = t->freqs ? &t->freqs_spec : NULL;
    memcpy((char *)&t->after.args + t->after.signature->freqs, &t->freqs, sizeof t->freqs);
}

/* Sets arguments beyond the claimed size to their defaults, as the library does. */
static void apply_claimed_size(struct call_test *t)
{
    const struct signature *s = t->after.signature;
    union arguments defaults;
    s->blank(&defaults);
    if (t->size < s->size)
        memcpy((char *)&t->after.args + t->size, (const char *)&defaults + t->size,
               s->size - t->size);
    memcpy(&t->after.args, &t->size, sizeof t->size);
}

static void apply_change(struct call_test *t, const struct argument_change *c)
{
    struct call_facts *f = &t->after;
    switch (c->kind) {
    case CHANGE_VALUE:
        number_write((char *)&f->args + c->offset, c->type, c->value);
        break;
    case CHANGE_SIZE:
        t->size = (size_t)c->value.whole;
        t->filled = c->filled;
        break;
    case CHANGE_FREQS:
        set_freqs(t, (int)c->value.whole);
        break;
    case CHANGE_EXTENT:
        set_extent(f, c->dim, c->value.whole);
        break;
    case CHANGE_ADD_DIMENSION:
    case CHANGE_DROP_DIMENSION:
        set_dimensions(arguments_get(&f->args, &f->signature->tensors[c->row]),
                       c->kind == CHANGE_ADD_DIMENSION);
        break;
    default: /* call_test_place() makes all others */
        break;
    }
}

void changes_apply(struct call_test *t)
{
    t->after = t->before;
    t->size = t->after.signature->size;
    for (int i = 0; i < t->n_changes; i++)
        if (t->enabled >> i & 1u)
            apply_change(t, &t->changes[i]);
    apply_claimed_size(t);
}

/* ---- Text ---- */

/* Appends, for example, "set x.shape[1]: 5 or 0.5"; the kind of the number decides which of the two applies. */
static size_t print_change(const struct call_test *t, const struct argument_change *c,
                           char *text, size_t at)
{
    static const char *const verbs[] = {
        [CHANGE_VALUE] = "set",
        [CHANGE_SIZE] = "claim a size of the arguments",
        [CHANGE_FREQS] = "take frequencies of a kind",
        [CHANGE_ADD_DIMENSION] = "add a dimension to",
        [CHANGE_DROP_DIMENSION] = "drop the first dimension of",
        [CHANGE_EXTENT] = "set every dimension that counts the same as one of",
        [CHANGE_NULL] = "set to NULL",
        [CHANGE_ODD] = "move by some bytes",
        [CHANGE_JOINED] = "place in another tensor's memory",
        [CHANGE_ELEMENT] = "set an element of",
    };
    const struct tensor_spec *rows = t->after.signature->tensors;
    at = text_append(text, CHANGES_TEXT, at, "%s %s: %lld or %.9g", verbs[c->kind],
                     c->kind == CHANGE_VALUE ? c->name : rows[c->row].name,
                     (long long)c->value.whole, c->value.real);
    if (c->kind == CHANGE_JOINED)
        at = text_append(text, CHANGES_TEXT, at, " from %s", rows[c->other_row].name);
    if (c->kind == CHANGE_ELEMENT)
        at = text_append(text, CHANGES_TEXT, at, " at index %d", c->element);
    return at;
}

void changes_print(struct call_test *t)
{
    char *text = t->changes_text;
    size_t at = 0;
    for (int i = 0; i < t->n_changes; i++)
        if (t->enabled >> i & 1u) {
            at = text_append(text, CHANGES_TEXT, at, at ? ", " : "with changes: ");
            at = print_change(t, &t->changes[i], text, at);
        }
    if (at == 0)
        snprintf(text, CHANGES_TEXT, "with nothing changed");
}
