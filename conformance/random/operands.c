/*
 * Operands of a changed call; see calls.h. The first half derives their sizes and extents in bytes from the arguments,
 * by the rows of the signature: f32 of shape [3, 8] and strides [-10, 1] reach from 80 bytes below the first element to
 * 32 above. The second half allocates memory for them.
 */
#include "calls.h"

#include <stdlib.h>
#include <string.h>

const void *facts_argument(const struct call_facts *f, const struct tensor_spec *row)
{
    return (const char *)&f->args + row->offset;
}

const struct operand *facts_output(const struct call_facts *f)
{
    return &f->operands[signature_output(f->signature, 0) - f->signature->tensors];
}

/* ---- Sizes of dimensions ---- */

static bool is_size(int64_t n) { return n >= 0 && n <= INT32_MAX; }

/* Copies sizes of a tensor's dimensions that no earlier tensor has set. A tensor may lack its first dimension. */
static void copy_extents(struct call_facts *f, const struct tensor_spec *row)
{
    const struct posenc_tensor *t = facts_argument(f, row);
    const int64_t n = tensor_dims(row), missing = n - t->rank;
    if (row->form != FORM_TENSOR || t->rank < 1 || t->rank > 4 || missing < 0 || missing > 1 ||
        (row->role == ROLE_INPUT && row->present && !t->data))
        return;
    for (int i = 0; i < n; i++) {
        int64_t *extent = &f->extent[row->dims[i]], size = -1;
        if (i >= missing)
            size = t->shape[i - missing];
        else if (row->dims[i] == DIM_BATCH)
            size = 1;
        if (*extent < 0 && is_size(size))
            *extent = size;
    }
}

/* Finds the size of each dimension: in outputs first, then in x, then in other inputs. Copies the sizes into the
 * problem, which functions of rows read. */
static void find_extents(struct call_facts *f)
{
    static const enum tensor_role order[] = { ROLE_OUTPUT, ROLE_X, ROLE_INPUT };
    for (int i = 0; i <= DIM_DISTANCE; i++)
        f->extent[i] = -1;
    for (int i = 0; i < 3; i++)
        for (EACH_TENSOR(row, f->signature))
            if (row->role == order[i] && (order[i] != ROLE_X || kernel_takes_x(f->kernel)))
                copy_extents(f, row);
    struct problem *p = &f->problem;
    const struct {
        enum dim dim;
        int64_t *member;
    } sizes[] = { { DIM_BATCH, &p->batch }, { DIM_TOKEN, &p->tokens },
                  { DIM_HEAD, &p->heads },  { DIM_QUERY, &p->queries },
                  { DIM_KEY, &p->keys },    { DIM_CHANNEL, &p->dim } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        *sizes[i].member = f->extent[sizes[i].dim] < 0 ? 1 : f->extent[sizes[i].dim];
}

/* ---- Operands ---- */

static void describe_tensor(const struct call_facts *f, struct operand *o)
{
    const struct posenc_tensor *t = facts_argument(f, o->row);
    const bool narrow = t->dtype == POSENC_DTYPE_F16 || t->dtype == POSENC_DTYPE_BF16;
    bool is_optional = o->row->present != NULL;
    if (o->row->role == ROLE_X) /* left zero: the call is in place */
        is_optional =
            !kernel_takes_x(f->kernel) || (kernel_in_place(f->kernel) && t->rank == 0);
    o->used = !is_optional || t->data;
    o->data = t->data;
    o->item_bytes = narrow ? 2 : 4;
    o->well_formed = t->rank >= 1 && t->rank <= 4;
    o->rank = o->well_formed ? t->rank : 0;
    memcpy(o->shape, t->shape, sizeof o->shape);
    memcpy(o->stride, t->stride, sizeof o->stride);
}

static void describe_positions(const struct call_facts *f, struct operand *o)
{
    const struct posenc_positions *p = facts_argument(f, o->row);
    const int64_t *section = f->freqs_spec ? f->freqs_spec->mrope_section : NULL;
    o->used = p->kind != POSENC_POSITIONS_OFFSET;
    o->data = (char *)(uintptr_t)p->data;
    o->item_bytes = p->kind == POSENC_POSITIONS_I64 ? 8 : 4;
    o->well_formed = (unsigned)p->kind <= POSENC_POSITIONS_F32;
    o->rank = 3;
    o->shape[0] = f->extent[DIM_BATCH];
    o->shape[1] = f->extent[DIM_TOKEN];
    o->shape[2] = 1;
    if (section && section[1] != 0 && p->stride_axis != 0)
        o->shape[2] = section[2] != 0 ? 3 : 2;
    o->stride[0] = p->stride_batch;
    o->stride[1] = p->stride_token ? p->stride_token : 1;
    o->stride[2] = p->stride_axis;
}

/* Returns the number of elements behind a pointer, or -1 if it is unknown: the size() of the row, or the product of
 * its dimensions. */
static int64_t count_pointer(const struct call_facts *f, const struct tensor_spec *row)
{
    int64_t n = row->size ? row->size(&f->problem) : 1;
    for (int i = 0; i < tensor_dims(row); i++) {
        const bool distances = row->dims[i] == DIM_DISTANCE;
        const enum dim dim = distances ? DIM_QUERY : row->dims[i];
        if (f->extent[dim] < 0 || (distances && f->extent[DIM_KEY] < 0))
            n = -1;
        else if (!row->size)
            n *= f->extent[dim];
    }
    return n;
}

/* Describes an array behind a pointer: values of heads, with or without batches, an index, or thresholds. */
static void describe_pointer(const struct call_facts *f, struct operand *o)
{
    const struct tensor_spec *row = o->row;
    memcpy(&o->data, (const char *)&f->args + row->offset, sizeof o->data);
    o->used = true;
    o->item_bytes = 4;
    o->rank = 2;
    o->stride[1] = 1;
    o->shape[0] = 1;
    if (row->stride_batch) {
        memcpy(&o->stride[0], (const char *)&f->args + row->stride_batch, sizeof o->stride[0]);
        o->shape[0] = o->stride[0] == 0 ? 1 : f->extent[row->dims[0]];
        o->shape[1] = f->extent[row->dims[1]];
    } else {
        o->shape[1] = count_pointer(f, row);
    }
}

static void find_bytes(struct operand *o)
{
    o->bytes_above = o->item_bytes;
    for (int i = 0; i < o->rank; i++) {
        /* An index of a window has more elements than a dimension may have. */
        const bool long_index = o->row->form == FORM_INTEGERS && o->shape[i] >= 0;
        o->well_formed = o->well_formed && (is_size(o->shape[i]) || long_index);
        o->empty = o->empty || o->shape[i] == 0;
    }
    for (int i = 0; i < o->rank && o->well_formed && !o->empty; i++) {
        const int128 reach = (int128)(o->shape[i] - 1) * o->stride[i] * o->item_bytes;
        if (reach < 0)
            o->bytes_below -= reach;
        else
            o->bytes_above += reach;
    }
}

/* Marks positions and an index as unused if x has no elements. */
static void mark_unread_operands(struct call_facts *f)
{
    f->empty_x = false;
    for (EACH_OPERAND(o, f))
        f->empty_x =
            f->empty_x || (o->row->role == ROLE_X && o->used && o->well_formed && o->empty);
    for (int r = 0; r < MOST_TENSORS && f->operands[r].row && f->empty_x; r++)
        if (f->operands[r].row->form != FORM_TENSOR)
            f->operands[r].used = f->operands[r].well_formed = false;
}

void facts_derive(struct call_facts *f)
{
    find_extents(f);
    for (EACH_PARAMETER(p, f->signature)) /* for the same functions */
        parameter_load(p, &f->args, &f->problem);
    for (EACH_TENSOR(row, f->signature)) {
        struct operand *o = &f->operands[row - f->signature->tensors];
        *o = (struct operand){ .row = row, .well_formed = true, .backed = o->backed };
        if (row->form == FORM_TENSOR)
            describe_tensor(f, o);
        else if (row->form == FORM_POSITIONS)
            describe_positions(f, o);
        else
            describe_pointer(f, o);
        find_bytes(o);
    }
    mark_unread_operands(f);
}

/* ---- Elements ---- */

bool operand_has_elements(const struct operand *o)
{
    return o->used && o->well_formed && !o->empty;
}

int64_t operand_count(const struct operand *o)
{
    int64_t n = o->used && o->well_formed ? 1 : 0;
    for (int i = 0; i < o->rank && n; i++)
        n *= o->shape[i];
    return n;
}

char *operand_element(const struct operand *o, int64_t i)
{
    char *at = o->data;
    for (int dim = o->rank - 1; dim >= 0; dim--) {
        at += i % o->shape[dim] * o->stride[dim] * o->item_bytes;
        i /= o->shape[dim];
    }
    return at;
}

int64_t facts_index_end(const struct call_facts *f)
{
    return f->extent[f->extent[DIM_COLUMN] >= 0 ? DIM_COLUMN : DIM_ROW];
}

/* ---- Buffers ---- */

/* Bytes of a buffer; elements of positions, each of which the front-end reads. */
enum { MOST_BYTES = 1 << 17, MOST_POSITIONS = 1 << 20 };

/* Writes the address of a row into the arguments; returns false if they end before it. */
static bool set_address(struct call_test *t, struct operand *o, char *data)
{
    size_t at = o->row->offset;
    if (o->row->form == FORM_POSITIONS)
        at += offsetof(struct posenc_positions, data);
    if (at + sizeof data > t->size)
        return false;
    memcpy((char *)&t->after.args + at, &data, sizeof data);
    o->data = data;
    return true;
}

/* Sets an address without memory, far from those of other rows. The library may compare it, but must not read it. */
static void set_address_nowhere(struct call_test *t, int r)
{
    const int shift = sizeof(void *) > 4 ? 41 : 28;
    set_address(t, &t->after.operands[r],
                (char *)(((uintptr_t)2 * (uintptr_t)r + 1) << shift) +
                    t->places[r].misalignment);
}

static bool can_be_backed(const struct operand *o)
{
    const bool short_list =
        o->row->form != FORM_POSITIONS || (int128)o->shape[0] * o->shape[1] <= MOST_POSITIONS;
    return o->well_formed && !o->empty && short_list &&
           o->bytes_below + o->bytes_above <= MOST_BYTES;
}

/* Bytes of a host and of the operands in it, counted from the host's first element. */
struct host_extent {
    int128 first, end;
    bool has_operands, has_output;
};

/* Returns false if one of the operands cannot be in memory, or if there is none. */
static bool find_host_extent(const struct call_test *t, int host, struct host_extent *extent)
{
    *extent = (struct host_extent){ .first = 0 };
    for (EACH_OPERAND(o, &t->after)) {
        const struct place place = t->places[o - t->after.operands];
        if (place.row != host || !o->used)
            continue;
        if (!can_be_backed(o))
            return false;
        const int128 first = place.bytes - o->bytes_below, end = place.bytes + o->bytes_above;
        if (!extent->has_operands || first < extent->first)
            extent->first = first;
        if (!extent->has_operands || end > extent->end)
            extent->end = end;
        extent->has_operands = true;
        extent->has_output = extent->has_output || o->row->role == ROLE_OUTPUT;
    }
    return extent->has_operands && extent->end - extent->first <= MOST_BYTES;
}

/* Allocates memory for a host and the operands in it, larger by the misalignment, and sets their addresses. Returns
 * false if one of them cannot be in memory. */
static bool allocate_buffer(struct call_test *t, enum guard_mode mode, int host)
{
    const struct tensor_allocator memory = guard_memory(t->guard, mode);
    const int misalignment = t->places[host].misalignment;
    struct host_extent extent;
    if (!find_host_extent(t, host, &extent))
        return false;
    const size_t bytes = (size_t)(extent.end - extent.first) + (size_t)misalignment;
    char *data = memory.get(memory.user, bytes, 0, extent.has_output ? 'b' : 'i'),
         *saved = malloc(bytes);
    if (!data || !saved)
        abort(); /* rather than miss a change */
    t->buffers[host].data = data;
    t->buffers[host].saved = saved;
    t->buffers[host].bytes = bytes;
    /* A buffer that ends with its pages is not aligned if it is too large by the misalignment. */
    data += (mode == GUARD_END ? 0 : misalignment) - (ptrdiff_t)extent.first;
    for (int r = 0; r < MOST_TENSORS && t->after.operands[r].row; r++) {
        struct operand *o = &t->after.operands[r];
        if (t->places[r].row == host && o->used)
            o->backed = set_address(t, o, data + (ptrdiff_t)t->places[r].bytes);
    }
    return true;
}

/* ---- Content ---- */

/* Fills an operand with the bytes of the unchanged one, repeated as often as they fit. */
static void copy_content(const struct operand *from, const struct operand *to)
{
    const size_t n = (size_t)(from->bytes_below + from->bytes_above),
                 m = (size_t)(to->bytes_below + to->bytes_above);
    if (!operand_has_elements(from) || !from->data || !n)
        return;
    for (size_t i = 0; i < m; i += n)
        memcpy(to->data - (ptrdiff_t)to->bytes_below + i,
               from->data - (ptrdiff_t)from->bytes_below, m - i < n ? m - i : n);
}

static void set_element(const struct call_facts *f, const struct changed_element *c)
{
    const struct operand *o = &f->operands[c->row];
    const int64_t n = o->backed ? operand_count(o) : 0;
    const struct posenc_positions *p = facts_argument(f, o->row);
    const bool holds_integers =
        o->row->form == FORM_INTEGERS ||
        (o->row->form == FORM_POSITIONS && p->kind != POSENC_POSITIONS_F32);
    const float real = (float)c->real;
    const int32_t narrow = (int32_t)c->whole;
    const void *from = &real;
    if (o->item_bytes == 8)
        from = &c->whole;
    else if (holds_integers || o->item_bytes == 2)
        from = &narrow;
    if (n > 0)
        memcpy(operand_element(o, c->index % n), from, (size_t)o->item_bytes);
}

/* Fills all operands, x after the outputs, because x may lie in one of them. */
static void fill_operands(struct call_test *t)
{
    static const enum tensor_role order[] = { ROLE_OUTPUT, ROLE_INPUT, ROLE_X };
    for (int i = 0; i < 3; i++)
        for (EACH_OPERAND(o, &t->after))
            if (o->row->role == order[i] && o->backed)
                copy_content(&t->before.operands[o - t->after.operands], o);
    for (int i = 0; i < t->n_elements; i++)
        set_element(&t->after, &t->elements[i]);
    for (int r = 0; r < MOST_TENSORS; r++)
        if (t->buffers[r].data)
            memcpy(t->buffers[r].saved, t->buffers[r].data, t->buffers[r].bytes);
}

void call_test_place(struct call_test *t, enum guard_mode mode)
{
    struct operand *all = t->after.operands;
    const struct tensor_allocator memory = guard_memory(t->guard, mode);
    facts_derive(&t->after);
    for (int r = 0; r < MOST_TENSORS && all[r].row; r++) {
        if (t->places[r].row != r || !all[r].data)
            continue;
        if (t->places[r].is_null)
            set_address(t, &all[r], NULL);
        else if (!allocate_buffer(t, mode, r))
            set_address_nowhere(t, r);
    }
    for (int r = 0; r < MOST_TENSORS && all[r].row; r++)
        if (t->places[r].row != r && !all[r].backed)
            set_address_nowhere(t, r);
    facts_derive(&t->after);
    fill_operands(t);
    memory.seal(memory.user);
}

void call_test_restore(const struct call_test *t)
{
    for (EACH_OPERAND(o, &t->after)) {
        const int host = t->places[o - t->after.operands].row;
        if (o->row->role == ROLE_OUTPUT && t->buffers[host].data)
            memcpy(t->buffers[host].data, t->buffers[host].saved, t->buffers[host].bytes);
    }
}

void call_test_release(struct call_test *t)
{
    const struct tensor_allocator memory = guard_memory(t->guard, GUARD_END);
    for (int r = 0; r < MOST_TENSORS; r++) {
        if (t->buffers[r].data)
            memory.free(memory.user, t->buffers[r].data);
        free(t->buffers[r].saved);
    }
    t->implementation->freqs_destroy(t->freqs);
    arena_free(&t->values);
}

bool call_test_is_backed(const struct call_test *t)
{
    for (EACH_OPERAND(o, &t->after))
        if (operand_has_elements(o) && !o->backed)
            return false;
    return true;
}

bool call_test_is_readable(const struct call_test *t)
{
    for (EACH_OPERAND(o, &t->after)) {
        const bool is_read = o->row->form != FORM_TENSOR && operand_has_elements(o),
                   is_aligned = o->data && (uintptr_t)o->data % (uintptr_t)o->item_bytes == 0;
        if (is_read && is_aligned && !o->backed)
            return false;
    }
    return !t->after.empty_x || call_test_is_backed(t);
}
