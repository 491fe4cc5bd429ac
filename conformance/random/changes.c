/*
 * Changes the arguments of a call, for example "set x.stride[1] to -4, move cos by 2 bytes"; see calls.h. The rows of
 * the signature determine which changes there are. Each change has random numbers of its own and is drawn from the
 * unchanged arguments, so a test with fewer changes makes the same ones.
 */
#include "calls.h"
#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

/* Appends a change to the description of the test. */
PRINTF_LIKE(2, 3)
static void describe_change(struct call_test *t, const char *format, ...)
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

static const struct operand *pick_operand(const struct call_test *t, struct random_state *d)
{
    int n = 0;
    for (EACH_OPERAND(o, &t->before))
        n++;
    return &t->before.operands[draw_between(d, 0, n - 1)];
}

/* Draws a new value for an integer: a size or stride of the call, one more or less, or any integer. */
static int64_t draw_integer(const struct call_test *t, struct random_state *d, int64_t old)
{
    const struct operand *o = pick_operand(t, d);
    const int i = (int)draw_between(d, 0, 3);
    const int64_t numbers[] = { old,
                                old,
                                o->shape[i],
                                o->stride[i],
                                o->shape[i] * o->stride[i],
                                facts_index_end(&t->before) };
    const int64_t near = numbers[draw_between(d, 0, 5)], step = draw_between(d, -1, 1);
    return draw_one_in(d, 2) ? near + step : draw_whole(d, near);
}

static void set_number(struct call_test *t, const char *name, enum field_kind kind,
                       size_t offset, uint64_t bits)
{
    value_set(kind, (char *)&t->after.args + offset, bits);
    if (kind == FIELD_F64 || kind == FIELD_F32)
        describe_change(t, "set %s to %.9g", name, bits_to_double(bits));
    else
        describe_change(t, "set %s to %lld", name, (long long)bits);
}

/* Sets the number at an offset in the arguments to a drawn value. */
static void change_number(struct call_test *t, struct random_state *d, const char *name,
                          enum field_kind kind, size_t offset)
{
    const uint64_t old = value_get(kind, (const char *)&t->before.args + offset);
    uint64_t bits;
    if (kind == FIELD_BOOL)
        bits = draw_bits(d) & 1;
    else if (kind == FIELD_F64 || kind == FIELD_F32)
        bits = double_to_bits(draw_real(d, bits_to_double(old)));
    else if (kind == FIELD_ENUM && !draw_one_in(d, 3))
        bits = (uint64_t)draw_between(d, -1, 5);
    else
        bits = (uint64_t)draw_integer(t, d, (int64_t)old);
    set_number(t, name, kind, offset, bits);
}

static void change_argument_at(struct call_test *t, struct random_state *d,
                               enum field_kind kind, size_t offset)
{
    char name[FIELD_TEXT];
    snprintf(name, sizeof name, "the argument at byte %zu", offset);
    change_number(t, d, name, kind, offset);
}

/* An integer in a tensor or in positions. */
struct member {
    const char *name;
    enum field_kind kind;
    size_t offset;
};
#define MEMBER_OF(type, name, kind)                                                            \
    {                                                                                          \
#name, kind, offsetof(struct posenc_##type, name)                                      \
    }
/* Two members of any tensor, and two for each dimension. */
static const struct member tensor_members[] = {
    MEMBER_OF(tensor, rank, FIELD_ENUM),    MEMBER_OF(tensor, dtype, FIELD_ENUM),
    MEMBER_OF(tensor, shape[0], FIELD_I64), MEMBER_OF(tensor, stride[0], FIELD_I64),
    MEMBER_OF(tensor, shape[1], FIELD_I64), MEMBER_OF(tensor, stride[1], FIELD_I64),
    MEMBER_OF(tensor, shape[2], FIELD_I64), MEMBER_OF(tensor, stride[2], FIELD_I64),
    MEMBER_OF(tensor, shape[3], FIELD_I64), MEMBER_OF(tensor, stride[3], FIELD_I64),
};
enum { N_POSITIONS_MEMBERS = 5 };
static const struct member positions_members[N_POSITIONS_MEMBERS] = {
    MEMBER_OF(positions, kind, FIELD_ENUM),
    MEMBER_OF(positions, offset, FIELD_I64),
    MEMBER_OF(positions, stride_batch, FIELD_I64),
    MEMBER_OF(positions, stride_token, FIELD_I64),
    MEMBER_OF(positions, stride_axis, FIELD_I64),
};

/* Changes a member of a row's argument, or the batch stride beside a pointer. */
static void change_member(struct call_test *t, struct random_state *d, const struct operand *o)
{
    const bool is_tensor = o->row->form == FORM_TENSOR;
    const int n = is_tensor ? 2 + 2 * o->rank : N_POSITIONS_MEMBERS;
    const struct member *member =
        (is_tensor ? tensor_members : positions_members) + draw_between(d, 0, n - 1);
    char name[FIELD_TEXT];
    snprintf(name, sizeof name, "%s.%s", o->row->name, member->name);
    if (is_tensor || o->row->form == FORM_POSITIONS)
        change_number(t, d, name, member->kind, o->row->offset + member->offset);
    else
        change_argument_at(t, d, FIELD_I64, o->row->stride_batch);
}

/* ---- Places and elements ---- */

/* Places a row in the memory of another one: at the same address, next to it, or at a random distance. */
static void share_memory(struct call_test *t, struct random_state *d, const struct operand *o,
                         const struct operand *other)
{
    const int row = (int)(o - t->before.operands), host = (int)(other - t->before.operands);
    const int128 extent = o->bytes_below + o->bytes_above;
    const int64_t item = o->item_bytes, far = extent < 1 << 16 ? (int64_t)extent : 1 << 16;
    const int64_t distances[] = { 0,   item, -item,
                                  far, -far, draw_between(d, -far, far) / item * item };
    const int64_t distance = distances[draw_between(d, 0, 5)];
    if (t->places[host].row == row)
        t->places[host] = (struct place){ .row = host };
    const struct place to = { .row = t->places[host].row,
                              .bytes = t->places[host].bytes + distance };
    for (int r = 0; r < MOST_TENSORS; r++) /* this row, and those in its memory */
        if (r != row && t->places[r].row == row)
            t->places[r] =
                (struct place){ .row = to.row, .bytes = to.bytes + t->places[r].bytes };
    t->places[row] = to;
    describe_change(t, "place %s at %s plus %lld bytes", o->row->name, other->row->name,
                    (long long)distance);
}

/* Moves a row to NULL, to an address that is not aligned, or to the memory of another row. An x at NULL may become one
 * that is left zero, by which a call is in place. */
static void change_place(struct call_test *t, struct random_state *d, const struct operand *o)
{
    const int row = (int)(o - t->before.operands);
    const int64_t pick = draw_between(d, 0, 5), misalignment = draw_between(d, 1, 3);
    const struct operand *other = pick > 1 ? pick_operand(t, d) : o;
    const bool is_null = pick == 0;
    if (other != o) {
        share_memory(t, d, o, other);
        return;
    }
    t->places[row] = (struct place){ .row = row,
                                     .is_null = is_null,
                                     .misalignment = is_null ? 0 : (int)misalignment };
    if (is_null)
        describe_change(t, "set %s to NULL", o->row->name);
    else
        describe_change(t, "move %s by %d bytes", o->row->name, (int)misalignment);
    if (is_null && o->row->role == ROLE_X && draw_one_in(d, 2))
        set_number(t, "x.rank", FIELD_ENUM,
                   o->row->offset + offsetof(struct posenc_tensor, rank), 0);
}

/* Draws a new value for an element. Values at the end of an index are likely. */
static void change_element(struct call_test *t, struct random_state *d, const struct operand *o)
{
    const int64_t end = facts_index_end(&t->before);
    const int64_t last = draw_one_in(d, 2) ? 3 : 1 << 16, index = draw_between(d, 0, last),
                  whole = draw_integer(t, d, end);
    struct changed_element *e = &t->elements[t->n_elements++];
    *e = (struct changed_element){ .row = (int)(o - t->before.operands),
                                   .index = index,
                                   .whole = whole,
                                   .real = draw_real(d, (double)end) };
    describe_change(t, "set element %lld of %s to %lld or %.9g", (long long)e->index,
                    o->row->name, (long long)e->whole, e->real);
}

/* Adds a first dimension of size 1, or drops the first one. */
static void change_rank(struct call_test *t, const struct operand *o, bool add)
{
    struct posenc_tensor *x = arguments_get(&t->after.args, o->row);
    const size_t bytes = sizeof x->shape - sizeof *x->shape;
    const int64_t new_rank = (int64_t)x->rank + (add ? 1 : -1); /* of any rank */
    const int from = add ? 0 : 1, to = add ? 1 : 0;
    describe_change(t, "%s dimension of %s", add ? "add a first" : "drop the first",
                    o->row->name);
    if (new_rank < 0 || new_rank > 4 || x->rank < 0 || x->rank > 4)
        return;
    memmove(x->shape + to, x->shape + from, bytes);
    memmove(x->stride + to, x->stride + from, bytes);
    x->shape[0] = add ? 1 : x->shape[0];
    x->rank = (int32_t)new_rank;
}

/* Sets every dimension that counts the same thing as dimension `at` of this row to a new size. */
static void change_extent(struct call_test *t, struct random_state *d, const struct operand *o,
                          int at)
{
    const int n = tensor_dims(o->row), missing = n > o->rank ? n - o->rank : 0;
    const enum dim dim = o->row->dims[at + missing];
    const int64_t size =
        draw_one_in(d, 2) ? draw_between(d, 0, 5) : draw_integer(t, d, o->shape[at]);
    for (EACH_TENSOR(row, t->after.signature)) {
        struct posenc_tensor *x = arguments_get(&t->after.args, row);
        for (int i = 0; i < tensor_dims(row) && row->form == FORM_TENSOR; i++) {
            const int64_t k = i - (tensor_dims(row) - (int64_t)x->rank); /* any rank */
            if (row->dims[i] == dim && k >= 0 && k < 4)
                x->shape[k] = size;
        }
    }
    describe_change(t, "set every size that counts the same as %s.shape[%d] to %lld",
                    o->row->name, at, (long long)size);
}

static void change_row(struct call_test *t, struct random_state *d, const struct operand *o)
{
    const bool is_tensor = o->row->form == FORM_TENSOR && o->rank > 0;
    const int64_t pick = draw_between(d, 0, 15);
    const int dim = is_tensor ? (int)draw_between(d, 0, o->rank - 1) : 0;
    int64_t members = o->row->stride_batch ? 5 : 0; /* picks that change a member */
    if (o->row->form == FORM_TENSOR || o->row->form == FORM_POSITIONS)
        members = is_tensor ? 7 : 11;
    if (pick < members)
        change_member(t, d, o);
    else if (is_tensor && pick < 9)
        change_rank(t, o, pick == 8);
    else if (is_tensor && pick < 11)
        change_extent(t, d, o, dim);
    else if (pick % 2 == 0)
        change_element(t, d, o);
    else
        change_place(t, d, o);
}

/* Claims a size of an older or newer struct, or one that no struct has. */
static void change_size(struct call_test *t, struct random_state *d)
{
    const int64_t size = (int64_t)t->before.signature->size, word = sizeof(void *),
                  words = draw_between(d, 0, 4 * size / word), less = draw_between(d, 0, size),
                  any = draw_whole(d, size);
    const int64_t sizes[] = { words * word, words * word, less, any };
    t->size = (size_t)sizes[draw_between(d, 0, 3)];
    t->filled = draw_one_in(d, 2);
    describe_change(t, "claim a size of %zu bytes, %s", t->size,
                    t->filled ? "filled" : "with zeros");
}

/* Replaces the frequencies by others for about as many channels, or by NULL if there are none of the kind. */
static void change_freqs(struct call_test *t, struct random_state *d)
{
    static const int more[] = { 0, 0, 0, -1, 2 };
    struct posenc_freqs_spec *spec = &t->freqs_spec;
    *spec = posenc_freqs_spec_init();
    spec->dim = t->base->problem.freqs.dim + more[draw_between(d, 0, 4)];
    if (draw_one_in(d, 3)) { /* two axes */
        spec->mrope_section[0] = spec->dim / 2 - 1;
        spec->mrope_section[1] = 1;
    }
    if (draw_one_in(d, 2))
        spec->mrope_layout = POSENC_MROPE_LAYOUT_QWEN2_VL_VISION;
    if (draw_one_in(d, 4))
        spec->xpos_scale_base = 512.0;
    if (draw_one_in(d, 4))
        spec->numerics = draw_one_in(d, 2) ? POSENC_NUMERICS_GGML_F32 : POSENC_NUMERICS_HF_F32;
    t->implementation->freqs_destroy(t->freqs);
    if (draw_one_in(d, 8) || t->implementation->freqs_create(spec, &t->freqs, NULL))
        t->freqs = NULL;
    t->after.freqs_spec = t->freqs ? spec : NULL;
    memcpy((char *)&t->after.args + t->after.signature->freqs, &t->freqs, sizeof t->freqs);
    describe_change(
        t, "take %s: dim=%lld mrope_section=%lld,%lld mrope_layout=%s xpos_scale_base=%g %s",
        t->freqs ? "frequencies" : "no frequencies", (long long)spec->dim,
        (long long)spec->mrope_section[0], (long long)spec->mrope_section[1],
        mrope_layout_names[spec->mrope_layout], spec->xpos_scale_base,
        numerics_names[spec->numerics]);
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
    const int64_t site = draw_between(d, 0, 2 * rows + parameters - 1);
    const struct parameter *p = &s->parameters[site < 2 * rows ? 0 : site - 2 * rows];
    if (draw_one_in(d, 12))
        change_size(t, d);
    else if (s->freqs && draw_one_in(d, 8))
        change_freqs(t, d);
    else if (s->computed && draw_one_in(d, 8))
        change_argument_at(t, d, FIELD_I64, s->computed);
    else if (site >= 2 * rows)
        change_argument_at(t, d, p->kind, p->to);
    else
        change_row(t, d, &t->before.operands[site % rows]);
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
    static const int numbers[] = { 0, 1, 1, 1, 1, 1, 2, 2, 2, 3 };
    struct random_state d = { .seed = t->seed };
    const int n = numbers[draw_between(&d, 0, 9)];
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
