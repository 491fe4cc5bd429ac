/*
 * Changes the arguments of a call; see calls.h. The rows of the signature say which changes there are. Each change has
 * random numbers of its own and is drawn from the unchanged arguments, so a test with fewer changes makes the same ones.
 */
#include "calls.h"

#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

static void note(struct call_test *t, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends a change to the description of the test. */
static void note(struct call_test *t, const char *format, ...)
{
    char text[CHANGES_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_append(t->changes_text, CHANGES_TEXT, strlen(t->changes_text), "%s%s",
                *t->changes_text ? ", " : "with changes: ", text);
}

/* ---- Numbers ---- */

/* Draws a new value for a number, close to its present one or far away. */
static uint64_t draw_value(struct random_state *d, enum field_kind kind, uint64_t old)
{
    if (kind == FIELD_BOOL)
        return draw_bits(d) & 1;
    if (kind == FIELD_F64 || kind == FIELD_F32)
        return double_to_bits(draw_real(d, bits_to_double(old)));
    if (kind == FIELD_ENUM && !draw_one_in(d, 3))
        return (uint64_t)draw_between(d, -1, 5);
    return (uint64_t)draw_whole(d, (int64_t)old);
}

/* Sets the number at an offset in the arguments to a drawn value. */
static void change_number(struct call_test *t, struct random_state *d, enum field_kind kind,
                          size_t offset)
{
    const uint64_t old = value_get(kind, (const char *)&t->before.args + offset),
                   bits = draw_value(d, kind, old);
    value_set(kind, (char *)&t->after.args + offset, bits);
    if (kind == FIELD_F64 || kind == FIELD_F32)
        note(t, "set the argument at byte %zu to %.9g", offset, bits_to_double(bits));
    else
        note(t, "set the argument at byte %zu to %lld", offset, (long long)bits);
}

/* An integer in a tensor, in positions, or beside a pointer. */
struct member {
    const char *name;
    size_t offset;
    enum field_kind kind;
};
static const struct member rank = { "rank", offsetof(struct posenc_tensor, rank), FIELD_ENUM };
static const struct member dtype = { "dtype", offsetof(struct posenc_tensor, dtype),
                                     FIELD_ENUM };
static const struct member shape = { "shape", offsetof(struct posenc_tensor, shape),
                                     FIELD_I64 };
static const struct member stride = { "stride", offsetof(struct posenc_tensor, stride),
                                      FIELD_I64 };

/* Sets a member of a row's argument: of an array the element of dimension `dim`. */
static void set_member(struct call_test *t, const struct operand *o,
                       const struct member *member, int dim, int64_t value)
{
    char *argument = arguments_get(&t->after.args, o->row);
    value_set(member->kind, argument + member->offset + (size_t)dim * sizeof value,
              (uint64_t)value);
    note(t, "set %s.%s[%d] to %lld", o->row->name, member->name, dim, (long long)value);
}

static void change_member(struct call_test *t, struct random_state *d, const struct operand *o,
                          const struct member *member, int dim)
{
    const char *argument = facts_argument(&t->before, o->row);
    const uint64_t old =
        value_get(member->kind, argument + member->offset + (size_t)dim * sizeof(int64_t));
    set_member(t, o, member, dim, (int64_t)draw_value(d, member->kind, old));
}

/* ---- Places and elements ---- */

/* Places a row in the memory of another one: at the same address, next to it, or at a random distance. */
static void join(struct call_test *t, struct random_state *d, const struct operand *o,
                 const struct operand *other)
{
    const int row = (int)(o - t->before.operands), host = (int)(other - t->before.operands);
    const int128 extent = o->bytes_below + o->bytes_above;
    const int64_t item = o->item_bytes, far = extent < 1 << 16 ? (int64_t)extent : 1 << 16;
    const int64_t distances[] = { 0,   item, -item,
                                  far, -far, draw_between(d, -far, far) / item * item };
    const int64_t distance = distances[draw_between(d, 0, 5)];
    t->places[row] = (struct place){ .row = row }; /* so that places never form a circle */
    if (place_host(t, host).row == row)
        t->places[host] = (struct place){ .row = host };
    t->places[row] = (struct place){ .row = host, .bytes = distance };
    note(t, "place %s at %s plus %lld bytes", o->row->name, other->row->name,
         (long long)distance);
}

/* Moves a row to NULL, to an address that is not aligned, or to the memory of another row. An x at NULL may become one
 * that is left zero, by which a call is in place. */
static void change_place(struct call_test *t, struct random_state *d, const struct operand *o)
{
    struct place *place = &t->places[o - t->before.operands];
    const int64_t pick = draw_between(d, 0, 5), odd = draw_between(d, 1, 3);
    const struct operand *other = o;
    while (pick > 1 &&
           !(other = &t->before.operands[draw_between(d, 0, MOST_TENSORS - 1)])->row)
        ;
    if (other != o) {
        join(t, d, o, other);
        return;
    }
    *place = (struct place){ .row = (int)(o - t->before.operands),
                             .is_null = pick != 1,
                             .odd = pick == 1 ? (int)odd : 0 };
    if (pick == 1)
        note(t, "move %s by %d bytes", o->row->name, (int)odd);
    else
        note(t, "set %s to NULL", o->row->name);
    if (pick != 1 && o->row->role == ROLE_X && draw_one_in(d, 2))
        set_member(t, o, &rank, 0, 0);
}

/* Draws a new value for an element. Values at the ends of an index are likely. */
static void change_element(struct call_test *t, struct random_state *d, const struct operand *o)
{
    const int64_t end = facts_index_end(&t->before);
    const int64_t wholes[] = { -1, 0, end, end - 1, INT32_MAX, INT32_MIN, draw_whole(d, end) };
    struct changed_element *e = &t->elements[t->n_elements++];
    *e = (struct changed_element){ .row = (int)(o - t->before.operands),
                                   .index = draw_between(d, 0, draw_one_in(d, 2) ? 3 : 1 << 16),
                                   .whole = wholes[draw_between(d, 0, 6)],
                                   .real = draw_real(d, (double)end) };
    note(t, "set element %lld of %s to %lld or %.9g", (long long)e->index, o->row->name,
         (long long)e->whole, e->real);
}

/* ---- Rows ---- */

/* Adds a first dimension of size 1, or drops the first one. */
static void change_rank(struct call_test *t, const struct operand *o, bool add)
{
    struct posenc_tensor *x = arguments_get(&t->after.args, o->row);
    const size_t bytes = sizeof x->shape - sizeof *x->shape;
    const int new_rank = x->rank + (add ? 1 : -1), from = add ? 0 : 1, to = add ? 1 : 0;
    note(t, "%s dimension of %s", add ? "add a first" : "drop the first", o->row->name);
    if (new_rank < 0 || new_rank > 4 || x->rank < 0 || x->rank > 4)
        return;
    memmove(x->shape + to, x->shape + from, bytes);
    memmove(x->stride + to, x->stride + from, bytes);
    x->shape[0] = add ? 1 : x->shape[0];
    x->rank = new_rank;
}

/* Sets every dimension that counts the same thing as dimension `at` of this row to a new size. */
static void change_extent(struct call_test *t, struct random_state *d, const struct operand *o,
                          int at)
{
    const int n = tensor_dims(o->row), missing = n > o->rank ? n - o->rank : 0;
    const enum dim dim = o->row->dims[at + missing];
    const int64_t size =
        draw_one_in(d, 2) ? draw_between(d, 0, 5) : draw_whole(d, o->shape[at]);
    for (EACH_TENSOR(row, t->after.signature)) {
        struct posenc_tensor *x = arguments_get(&t->after.args, row);
        for (int i = 0; i < tensor_dims(row) && row->form == FORM_TENSOR; i++) {
            const int k = i - (tensor_dims(row) - x->rank);
            if (row->dims[i] == dim && k >= 0 && k < 4)
                x->shape[k] = size;
        }
    }
    note(t, "set every size that counts the same as %s.shape[%d] to %lld", o->row->name, at,
         (long long)size);
}

/* Sets a stride to the dense one, to a very large one, or close to its present value. */
static void change_stride(struct call_test *t, struct random_state *d, const struct operand *o,
                          int dim)
{
    int64_t value = draw_whole(d, o->stride[dim]);
    if (draw_one_in(d, 3))
        value = dim + 1 < o->rank ? o->stride[dim + 1] * o->shape[dim + 1] : 1;
    else if (draw_one_in(d, 3))
        value =
            (int64_t)(draw_bits(d) >> draw_between(d, 1, 33)) * (draw_one_in(d, 2) ? -1 : 1);
    set_member(t, o, &stride, dim, value);
}

static void change_tensor(struct call_test *t, struct random_state *d, const struct operand *o)
{
    const int64_t pick = o->well_formed ? draw_between(d, 0, 15) : 0;
    const int dim = o->well_formed ? (int)draw_between(d, 0, o->rank - 1) : 0;
    if (pick < 1)
        change_member(t, d, o, &rank, 0);
    else if (pick < 2)
        change_member(t, d, o, &dtype, 0);
    else if (pick < 5)
        change_member(t, d, o, &shape, dim);
    else if (pick < 8)
        change_stride(t, d, o, dim);
    else if (pick < 10)
        change_rank(t, o, pick == 8);
    else if (pick < 12)
        change_extent(t, d, o, dim);
    else if (pick < 13)
        change_element(t, d, o);
    else
        change_place(t, d, o);
}

static void change_positions(struct call_test *t, struct random_state *d,
                             const struct operand *o)
{
    static const struct member members[] = {
        { "kind", offsetof(struct posenc_positions, kind), FIELD_ENUM },
        { "stride_batch", offsetof(struct posenc_positions, stride_batch), FIELD_I64 },
        { "stride_token", offsetof(struct posenc_positions, stride_token), FIELD_I64 },
        { "stride_axis", offsetof(struct posenc_positions, stride_axis), FIELD_I64 },
        { "offset", offsetof(struct posenc_positions, offset), FIELD_I64 },
    };
    enum { OFFSET = 4, LAST_ROW, PLACE, ELEMENT };
    const int64_t pick = draw_between(d, 0, ELEMENT);
    if (pick <= OFFSET)
        change_member(t, d, o, &members[pick], 0);
    else if (pick == LAST_ROW) /* an offset near the end of the table */
        set_member(t, o, &members[OFFSET], 0, draw_whole(d, t->before.extent[DIM_ROW]));
    else if (pick == PLACE)
        change_place(t, d, o);
    else
        change_element(t, d, o);
}

static void change_pointer(struct call_test *t, struct random_state *d, const struct operand *o)
{
    if (o->row->stride_batch && draw_one_in(d, 3))
        change_number(t, d, FIELD_I64, o->row->stride_batch);
    else if (draw_one_in(d, 2))
        change_place(t, d, o);
    else
        change_element(t, d, o);
}

/* ---- Other arguments ---- */

/* Claims a size of an older or newer struct, or one that no struct has. */
static void change_size(struct call_test *t, struct random_state *d)
{
    const int64_t size = (int64_t)t->before.signature->size, word = sizeof(void *);
    int64_t claimed = draw_whole(d, size);
    if (draw_one_in(d, 3))
        claimed = size + word * draw_between(d, 1, 3 * size / word);
    else if (draw_one_in(d, 2))
        claimed = word * draw_between(d, 0, size / word - 1);
    else if (draw_one_in(d, 2))
        claimed = draw_between(d, 0, size - 1);
    t->size = (size_t)claimed;
    t->filled = draw_one_in(d, 2);
    note(t, "claim a size of %lld bytes, %s", (long long)claimed,
         t->filled ? "filled" : "with zeros");
}

/* Replaces the frequencies by others for about as many channels, or by NULL. */
static void change_freqs(struct call_test *t, struct random_state *d)
{
    enum {
        NO_FREQS = -1,
        FEWER_CHANNELS,
        TWO_AXES,
        RESTARTED_AXES,
        XPOS,
        GGML,
        HF,
        MORE_CHANNELS
    };
    const int64_t dim = t->base->problem.freqs.dim,
                  kind = draw_between(d, NO_FREQS, MORE_CHANNELS);
    struct posenc_freqs_spec spec = posenc_freqs_spec_init();
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
    if (kind == GGML || kind == HF)
        spec.numerics = kind == GGML ? POSENC_NUMERICS_GGML_F32 : POSENC_NUMERICS_HF_F32;
    t->freqs_spec = spec;
    t->implementation->freqs_destroy(t->freqs);
    t->freqs = NULL;
    if (kind != NO_FREQS && t->implementation->freqs_create(&spec, &t->freqs, NULL))
        t->freqs = NULL;
    t->after.freqs_spec = t->freqs ? &t->freqs_spec : NULL;
    memcpy((char *)&t->after.args + t->after.signature->freqs, &t->freqs, sizeof t->freqs);
    note(t, "take frequencies of kind %d", (int)kind);
}

/* ---- Changes of a call ---- */

/* Changes a row or a parameter, sometimes the size, the frequencies, or a computed argument. Rows are twice as likely as
 * parameters. */
static void change_argument(struct call_test *t, struct random_state *d)
{
    const struct signature *s = t->before.signature;
    int rows = 0, parameters = 0;
    for (EACH_TENSOR(row, s))
        rows++;
    for (EACH_PARAMETER(p, s))
        parameters++;
    const int site = (int)draw_between(d, 0, 2 * rows + parameters);
    const struct operand *o = &t->before.operands[site % rows];
    const struct parameter *p = &s->parameters[parameters ? site % parameters : 0];
    if (draw_one_in(d, 12))
        change_size(t, d);
    else if (s->freqs && draw_one_in(d, 8))
        change_freqs(t, d);
    else if (s->computed && draw_one_in(d, 8))
        change_number(t, d, FIELD_I64, s->computed);
    else if (site >= 2 * rows && parameters)
        change_number(t, d, p->kind, p->to);
    else if (o->row->form == FORM_TENSOR)
        change_tensor(t, d, o);
    else if (o->row->form == FORM_POSITIONS)
        change_positions(t, d, o);
    else
        change_pointer(t, d, o);
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

/* Makes one or two changes in most cases, else three or none. */
void changes_make(struct call_test *t)
{
    struct random_state d = { .seed = t->seed };
    const int n = (int)draw_between(&d, 5, 24) / 8;
    t->after = t->before;
    t->size = t->after.signature->size;
    for (int i = 0; i < n; i++) {
        struct random_state own = { .seed = rng_u64(t->seed, (uint64_t)i) };
        if (t->enabled >> i & 1u)
            change_argument(t, &own);
    }
    if (!*t->changes_text)
        snprintf(t->changes_text, CHANGES_TEXT, "with nothing changed");
    apply_claimed_size(t);
}
