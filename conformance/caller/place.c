/*
 * Where the tensors of a set lie: each in a buffer that has its elements and no byte more, some together in one, some
 * where no memory is.
 */
#define _GNU_SOURCE
#include "caller.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A buffer at most; the elements that are looked at in a row. */
enum { MOST_BYTES = 1 << 20, MOST_POSITIONS = 1 << 20 };

/* ---- Grounds ---- */

bool grounds_make(struct grounds *g)
{
    g->guard = guard_create();
    g->nowhere = MAP_FAILED;
    for (int bits = sizeof(void *) > 4 ? 44 : 28; bits >= 24 && g->nowhere == MAP_FAILED;
         bits--) {
        g->nowhere_bytes = (size_t)1 << bits;
        g->nowhere = mmap(NULL, g->nowhere_bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    return g->guard && g->nowhere != MAP_FAILED;
}

/* Bytes on either side of a row that is nowhere, whole pages. */
static size_t share_of(const struct grounds *g)
{
    return g->nowhere_bytes / MOST_TENSORS / 2 & ~(size_t)4095;
}

int grounds_row(const struct grounds *g, const void *address)
{
    const char *at = address;
    if (at < g->nowhere || at >= g->nowhere + g->nowhere_bytes)
        return -1;
    const size_t row = (size_t)(at - g->nowhere) / (2 * share_of(g));
    return row < MOST_TENSORS ? (int)row : -1;
}

/* ---- Together ---- */

static const struct change *place_of(const struct set *set, int row)
{
    const struct change *found = NULL;
    for (int i = 0; i < set->n_changes; i++)
        if ((set->kept >> i & 1u) && set->changes[i].member == CHANGE_PLACE &&
            set->changes[i].row == row)
            found = &set->changes[i];
    return found;
}

/* In whose buffer each row lies, and how far from its first element: x in that of out where the problem is in place,
 * and as changes say.  Rows that have moved are nobody's root. */
static void find_roots(struct set *set)
{
    const struct facts *f = &set->after;
    for (int r = 0; r < MOST_TENSORS; r++) {
        set->root[r] = r;
        set->offset[r] = 0;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < MOST_TENSORS && f->of[r].row; r++) {
            const struct change *c = place_of(set, r);
            const int out = (int)(signature_output(f->signature, 0) - f->signature->tensors);
            const bool in_place = set->base->problem.in_place && f->of[r].row->role == ROLE_X;
            const int to = c && c->place == PLACE_JOINED ? c->dim : in_place && !c ? out : r;
            if (to == r || set->root[to] != to || (pass == 0 && place_of(set, to)))
                continue;
            bool is_root = false;
            for (int other = 0; other < MOST_TENSORS; other++)
                is_root = is_root || (other != r && set->root[other] == r);
            if (is_root)
                continue;
            set->root[r] = to;
            set->offset[r] = c ? (wide)c->whole : 0;
        }
}

static bool can_be_backed(const struct described *d)
{
    const bool looks =
        d->row->form != FORM_POSITIONS || (wide)d->shape[0] * d->shape[1] <= MOST_POSITIONS;
    return d->there && d->sound && !d->empty && looks && d->below + d->above <= MOST_BYTES;
}

/* ---- Content ---- */

/* What the row holds in the problem, over and over. */
static void copy_content(const struct described *from, const struct described *to)
{
    const size_t n = (size_t)(from->below + from->above), m = (size_t)(to->below + to->above);
    const char *first = from->data - (ptrdiff_t)from->below;
    char *at = to->data - (ptrdiff_t)to->below;
    if (!from->there || !from->sound || from->empty || !from->data || !n)
        return;
    for (size_t i = 0; i < m; i += n)
        memcpy(at + i, first, m - i < n ? m - i : n);
}

static void write_content(const struct set *set, const struct change *c)
{
    const struct described *d = &set->after.of[c->row];
    const int64_t n = d->backed ? elements(d) : 0;
    if (n <= 0)
        return;
    char *at = element(d, c->dim % n);
    const enum form form = d->row->form;
    const struct posenc_positions *p =
        (const struct posenc_positions *)(const void *)((const char *)&set->after.args +
                                                        d->row->offset);
    const float real = (float)c->real;
    const int32_t narrow = (int32_t)c->whole;
    if (d->item == 2)
        memcpy(at, &narrow, 2);
    else if (d->item == 8)
        memcpy(at, &c->whole, 8);
    else if (form == FORM_INTEGERS ||
             (form == FORM_POSITIONS && p->kind == POSENC_POSITIONS_I32))
        memcpy(at, &narrow, 4);
    else
        memcpy(at, &real, 4);
}

/* Outputs first: what lies in them is what x holds. */
static void fill(struct set *set)
{
    static const enum role order[] = { ROLE_OUTPUT, ROLE_INPUT, ROLE_X };
    for (int i = 0; i < 3; i++)
        for (int r = 0; r < MOST_TENSORS && set->after.of[r].row; r++)
            if (set->after.of[r].row->role == order[i] && set->after.of[r].backed)
                copy_content(&set->before.of[r], &set->after.of[r]);
    for (int i = 0; i < set->n_changes; i++)
        if ((set->kept >> i & 1u) && set->changes[i].member == CHANGE_CONTENT)
            write_content(set, &set->changes[i]);
}

/* ---- Placing ---- */

/* Tells the arguments where a row lies; false where their size ends before that. */
static bool point(struct set *set, int r, char *data)
{
    const struct tensor_row *row = set->after.of[r].row;
    const size_t at =
        row->offset +
        (row->form == FORM_POSITIONS ? offsetof(struct posenc_positions, data) : 0);
    if (at + sizeof data > set->size)
        return false;
    memcpy((char *)&set->after.args + at, &data, sizeof data);
    set->after.of[r].data = data;
    return true;
}

/* Room for all that lies with r; false where that is too much, or not all of it is there. */
static bool back(struct set *set, struct grounds *g, int r, int odd)
{
    struct described *of = set->after.of;
    wide first = 0, end = 0;
    char role = 'i';
    bool any = false;
    for (int i = 0; i < MOST_TENSORS; i++) {
        if (set->root[i] != r || !of[i].row || !of[i].there)
            continue;
        if (!can_be_backed(&of[i]))
            return false;
        const wide from = set->offset[i] - of[i].below, to = set->offset[i] + of[i].above;
        first = !any || from < first ? from : first;
        end = !any || to > end ? to : end;
        any = true;
        role = of[i].row->role == ROLE_OUTPUT ? 'b' : role;
    }
    if (!any || end - first > MOST_BYTES)
        return false;
    set->bytes[r] = (size_t)(end - first) + (size_t)odd;
    set->buffer[r] = g->memory.get(g->memory.user, set->bytes[r], 0, role);
    for (int i = 0; i < MOST_TENSORS && set->buffer[r]; i++)
        if (set->root[i] == r && of[i].row && of[i].there) {
            /* At the end of pages, what the buffer is too large by makes it begin askew. */
            char *data =
                set->buffer[r] + (g->at_end ? 0 : odd) + (ptrdiff_t)(set->offset[i] - first);
            of[i].backed = point(set, i, data);
        }
    return set->buffer[r];
}

/* Where no memory is, far from the other rows; a call that could reach farther is not made. */
static void lead_nowhere(struct set *set, struct grounds *g, int r, int odd)
{
    const struct described *d = &set->after.of[r];
    const wide share = (wide)share_of(g);
    point(set, r, g->nowhere + (ptrdiff_t)((2 * r + 1) * share) + odd);
    set->beyond = set->beyond ||
                  (d->there && d->sound && !d->empty && (d->below > share || d->above > share));
}

static void save(struct set *set)
{
    for (int r = 0; r < MOST_TENSORS; r++)
        if (set->buffer[r] && (set->saved[r] = malloc(set->bytes[r])))
            memcpy(set->saved[r], set->buffer[r], set->bytes[r]);
}

void set_restore(struct set *set)
{
    for (int r = 0; r < MOST_TENSORS; r++)
        for (int i = 0; set->saved[r] && i < MOST_TENSORS && set->after.of[i].row; i++)
            if (set->root[i] == r && set->after.of[i].row->role == ROLE_OUTPUT)
                memcpy(set->buffer[r], set->saved[r], set->bytes[r]);
}

void set_place(struct set *set, struct grounds *g, struct draws *d)
{
    g->at_end = draw_one_in(d, 2);
    g->memory = guard_memory(g->guard, g->at_end ? GUARD_END : GUARD_START);
    describe(&set->after);
    find_roots(set);
    for (int r = 0; r < MOST_TENSORS && set->after.of[r].row; r++) {
        const struct change *c = place_of(set, r);
        const bool none = !set->after.of[r].data && !(c && c->place == PLACE_JOINED);
        const int odd = c && c->place == PLACE_ODD ? (int)c->whole : 0;
        if (set->root[r] != r || none)
            continue; /* absent, or with another one */
        if (c && c->place == PLACE_NULL)
            point(set, r, NULL);
        else if (!back(set, g, r, odd))
            lead_nowhere(set, g, r, odd);
    }
    describe(&set->after);
    for (int r = 0; r < MOST_TENSORS && set->after.of[r].row; r++)
        if (set->root[r] != r && !set->after.of[r].backed)
            lead_nowhere(set, g, r, 0);
    describe(&set->after);
    fill(set);
    save(set);
    g->memory.seal(g->memory.user);
}

void set_free(struct set *set, struct grounds *g)
{
    for (int r = 0; r < MOST_TENSORS; r++) {
        if (set->buffer[r])
            g->memory.free(g->memory.user, set->buffer[r]);
        free(set->saved[r]);
    }
}
