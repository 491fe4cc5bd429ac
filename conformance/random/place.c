/* Places the tensors of a changed call: each alone in a buffer, some joined, some where nothing is. */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a buffer; elements of an array that the front-end reads. */
enum { MOST_BYTES = 1 << 17, MOST_READ = 1 << 20 };

/* ---- Roots ---- */

/* The last change of where the row lies, or NULL. */
static const struct change *place_of(const struct changed_call *c, int row)
{
    const struct change *found = NULL;
    for (int i = 0; i < c->n_changes; i++) {
        const enum change_kind kind = c->changes[i].kind;
        if ((c->kept >> i & 1u) && c->changes[i].row == row &&
            (kind == CHANGE_NULL || kind == CHANGE_ODD || kind == CHANGE_JOINED))
            found = &c->changes[i];
    }
    return found;
}

static bool is_root(const struct changed_call *c, int row)
{
    for (int r = 0; r < MOST_TENSORS; r++)
        if (r != row && c->root[r] == row)
            return true;
    return false;
}

/* Finds the row in whose buffer each row lies, and how far from its first element: x in that of out if
 * the problem is in place, others as changes say.  Nothing lies in a row that has moved itself. */
static void find_roots(struct changed_call *c)
{
    const struct facts *f = &c->after;
    const int out = (int)(signature_output(f->signature, 0) - f->signature->tensors);
    for (int r = 0; r < MOST_TENSORS; r++) {
        c->root[r] = r;
        c->offset[r] = 0;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < MOST_TENSORS && f->of[r].row; r++) {
            const struct change *change = place_of(c, r);
            const bool joined = change && change->kind == CHANGE_JOINED,
                       in_place =
                           !change && c->base->problem.in_place && f->of[r].row->role == ROLE_X;
            const int to = joined ? change->dim : in_place ? out : r;
            if (to == r || c->root[to] != to || is_root(c, r) || (pass == 0 && place_of(c, to)))
                continue;
            c->root[r] = to;
            c->offset[r] = joined ? (wide)change->whole : 0;
        }
}

/* ---- Content ---- */

/* Repeats what the row holds in the problem. */
static void copy_content(const struct operand *from, const struct operand *to)
{
    const size_t n = (size_t)(from->below + from->above), m = (size_t)(to->below + to->above);
    if (!from->used || !from->sound || from->empty || !from->data || !n)
        return;
    for (size_t i = 0; i < m; i += n)
        memcpy(to->data - (ptrdiff_t)to->below + i, from->data - (ptrdiff_t)from->below,
               m - i < n ? m - i : n);
}

static void set_element(const struct facts *f, const struct change *c)
{
    const struct operand *o = &f->of[c->row];
    const int64_t n = o->backed ? operand_count(o) : 0;
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)facts_view(f, o->row);
    const bool whole = o->row->form == FORM_INTEGERS ||
                       (o->row->form == FORM_POSITIONS && p->kind != POSENC_POSITIONS_F32);
    const float real = (float)c->real;
    const int32_t narrow = (int32_t)c->whole;
    if (n <= 0)
        return;
    memcpy(operand_element(o, c->dim % n),
           o->item == 8            ? (const void *)&c->whole
           : whole || o->item == 2 ? (const void *)&narrow
                                   : (const void *)&real,
           (size_t)o->item);
}

/* Outputs come before x, which may lie in them. */
static void fill(const struct changed_call *c)
{
    static const enum role order[] = { ROLE_OUTPUT, ROLE_INPUT, ROLE_X };
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < MOST_TENSORS && c->after.of[r].row; r++)
            if (c->after.of[r].row->role == order[i] && c->after.of[r].backed)
                copy_content(&c->before.of[r], &c->after.of[r]);
    for (int i = 0; i < c->n_changes; i++)
        if ((c->kept >> i & 1u) && c->changes[i].kind == CHANGE_ELEMENT)
            set_element(&c->after, &c->changes[i]);
}

/* ---- Buffers ---- */

/* Writes the address of a row into the arguments; returns false if they end before that. */
static bool point(struct changed_call *c, int r, const char *data)
{
    const struct tensor_row *row = c->after.of[r].row;
    const size_t at =
        row->offset +
        (row->form == FORM_POSITIONS ? offsetof(struct posenc_positions, data) : 0);
    if (at + sizeof data > c->size)
        return false;
    memcpy((char *)&c->after.args + at, &data, sizeof data);
    c->after.of[r].data = (char *)(uintptr_t)data;
    return true;
}

/* An address that no memory has, far from those of other rows: it is compared and never read. */
static void point_nowhere(struct changed_call *c, int r, int odd)
{
    const int shift = sizeof(void *) > 4 ? 41 : 28;
    point(c, r, (const char *)(((uintptr_t)2 * (uintptr_t)r + 1) << shift) + odd);
}

static bool can_be_backed(const struct operand *o)
{
    const bool short_list =
        o->row->form != FORM_POSITIONS || (wide)o->shape[0] * o->shape[1] <= MOST_READ;
    return o->sound && !o->empty && short_list && o->below + o->above <= MOST_BYTES;
}

/* Gets a buffer for everything that lies with r; returns false if some of it cannot be there. */
static bool back(struct changed_call *c, const struct memory *memory, bool at_end, int r,
                 int odd)
{
    struct operand *of = c->after.of;
    wide first = 0, end = 0;
    char role = 'i';
    bool any = false;
    for (int i = 0; i < MOST_TENSORS; i++) {
        if (c->root[i] != r || !of[i].row || !of[i].used)
            continue;
        if (!can_be_backed(&of[i]))
            return false;
        const wide from = c->offset[i] - of[i].below, to = c->offset[i] + of[i].above;
        first = !any || from < first ? from : first;
        end = !any || to > end ? to : end;
        any = true;
        role = of[i].row->role == ROLE_OUTPUT ? 'b' : role;
    }
    if (!any || end - first > MOST_BYTES)
        return false;
    c->bytes[r] = (size_t)(end - first) + (size_t)odd;
    c->buffer[r] = memory->get(memory->user, c->bytes[r], 0, role);
    /* At the end of its pages a buffer that is too large by `odd` begins at an odd byte. */
    for (int i = 0; i < MOST_TENSORS && c->buffer[r]; i++)
        if (c->root[i] == r && of[i].row && of[i].used)
            of[i].backed = point(
                c, i, c->buffer[r] + (at_end ? 0 : odd) + (ptrdiff_t)(c->offset[i] - first));
    return c->buffer[r];
}

void call_place(struct changed_call *c, struct guard *guard, struct draws *d)
{
    struct facts *f = &c->after;
    const bool at_end = draw_one_in(d, 2);
    const struct memory memory = guard_memory(guard, at_end ? GUARD_END : GUARD_START);
    facts_derive(f);
    find_roots(c);
    for (int r = 0; r < MOST_TENSORS && f->of[r].row; r++) {
        const struct change *change = place_of(c, r);
        const enum change_kind kind = change ? change->kind : CHANGE_VALUE;
        const int odd = kind == CHANGE_ODD ? (int)change->whole : 0;
        if (c->root[r] != r || (!f->of[r].data && kind != CHANGE_JOINED))
            continue; /* it lies with another row, or is absent */
        if (kind == CHANGE_NULL)
            point(c, r, NULL);
        else if (!back(c, &memory, at_end, r, odd))
            point_nowhere(c, r, odd);
    }
    facts_derive(f);
    for (int r = 0; r < MOST_TENSORS && f->of[r].row; r++)
        if (c->root[r] != r && !f->of[r].backed)
            point_nowhere(c, r, 0);
    facts_derive(f);
    fill(c);
    for (int r = 0; r < MOST_TENSORS; r++)
        if (c->buffer[r] && (c->saved[r] = malloc(c->bytes[r])))
            memcpy(c->saved[r], c->buffer[r], c->bytes[r]);
    memory.seal(memory.user);
}

void call_restore(const struct changed_call *c)
{
    for (int i = 0; i < MOST_TENSORS && c->after.of[i].row; i++)
        if (c->after.of[i].row->role == ROLE_OUTPUT && c->saved[c->root[i]])
            memcpy(c->buffer[c->root[i]], c->saved[c->root[i]], c->bytes[c->root[i]]);
}

bool call_is_unchanged(const struct changed_call *c)
{
    for (int r = 0; r < MOST_TENSORS; r++)
        if (c->saved[r] && memcmp(c->saved[r], c->buffer[r], c->bytes[r]) != 0)
            return false;
    return true;
}

void call_release(struct changed_call *c, struct guard *guard)
{
    const struct memory memory = guard_memory(guard, GUARD_END);
    for (int r = 0; r < MOST_TENSORS; r++) {
        if (c->buffer[r])
            memory.free(memory.user, c->buffer[r]);
        free(c->saved[r]);
    }
    posenc_freqs_destroy(c->freqs);
}

bool call_is_backed(const struct changed_call *c)
{
    for (EACH_OPERAND(o, &c->after))
        if (o->used && o->sound && !o->empty && !o->backed)
            return false;
    return true;
}

bool call_is_readable(const struct changed_call *c)
{
    bool readable = true, empty = false;
    for (EACH_OPERAND(o, &c->after)) {
        const bool aligned = o->data && (uintptr_t)o->data % (uintptr_t)o->item == 0;
        empty = empty || (o->row->role == ROLE_X && o->used && o->sound && o->empty);
        if (o->row->form != FORM_TENSOR && o->used && o->sound && !o->empty && !o->backed)
            readable = readable && !aligned;
    }
    return readable && (!empty || call_is_backed(c)); /* sums of nothing are written as zeros */
}
