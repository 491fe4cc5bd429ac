/* Makes the tensors and positions of a call, as its signature describes them, from its problem. */
#include "signature.h"
#include "arena.h"

#include <stdlib.h>
#include <string.h>

/* Limit of elements of a tensor: more than a test needs, and so small that sums cannot overflow. */
#define MOST_ELEMENTS (INT64_C(1) << 40)

/* ---- Shapes ---- */

/* Returns true if tensors by queries and keys lack the batch dimension, which is then optional. */
static bool lacks_batch(const struct problem *p)
{
    return kernel_on_scores(p->kernel) && !kernel_takes_x(p->kernel) && p->batch == 1 &&
           !p->slopes_by_batch;
}

/* Sets the strides of dense rows with `pad` unused elements between them. token_major swaps the first two of three or
 * more dimensions in memory. */
static bool stride_dense(struct call *call, struct posenc_tensor *t, int64_t pad)
{
    const int last = t->rank - 1;
    int64_t stride = t->shape[last] + pad;
    if (!call_check_range(call, POSENC_ERR_STRIDE, "pad", pad, 0, MOST_ELEMENTS))
        return false;
    t->stride[last] = 1;
    for (int i = last - 1; i >= 0; i--) {
        const int64_t n = t->shape[i] ? t->shape[i] : 1;
        t->stride[i] = stride;
        if (!call_check_range(call, POSENC_ERR_OVERFLOW, "a dimension, given those after it", n,
                              0, MOST_ELEMENTS / (stride ? stride : 1)))
            return false;
        stride *= n;
    }
    if (call->problem.token_major && last > 1) {
        t->stride[0] = t->stride[1];
        t->stride[1] *= t->shape[0];
    }
    return true;
}

/* Sets everything but the data pointer. */
static bool shape_tensor(struct call *call, const struct tensor_spec *spec,
                         struct posenc_tensor *t)
{
    const struct problem *p = &call->problem;
    const struct tensor_layout *layout = tensor_layout(p, spec);
    const int n = tensor_dims(spec), strides = (int)layout->n_strides;
    const int left_out = n == MOST_DIMS && spec->dims[0] == DIM_BATCH && lacks_batch(p) ? 1 : 0;
    *t = (struct posenc_tensor){ .dtype = tensor_dtype(p, spec), .rank = n - left_out };
    for (int i = 0; i < t->rank; i++) {
        t->shape[i] = problem_extent(p, spec->dims[left_out + i]);
        if (!call_check_range(call, POSENC_ERR_SHAPE, "a dimension", t->shape[i], 0,
                              MOST_ELEMENTS))
            return false;
    }
    if (!stride_dense(call, t, p->pad + layout->pad) ||
        (strides && !call_check_range(call, POSENC_ERR_STRIDE, "strides of a tensor", strides,
                                      n - 1, n - 1)))
        return false;
    for (int i = left_out; i < strides; i++)
        t->stride[i - left_out] = layout->stride[i];
    return true;
}

/* ---- Tensors that share a block ---- */

/* Returns the distance of the second woven tensor from the first, in elements: the extent of the tensor for
 * WOVEN_TENSORS, otherwise the smallest stride (WOVEN_BLOCKS: the second smallest). */
static int64_t woven_distance(const struct problem *p, const struct posenc_tensor *t)
{
    int64_t stride = 0, extent = 1;
    for (int i = 0; i < t->rank; i++)
        extent += t->shape[i] ? (t->shape[i] - 1) * llabs(t->stride[i]) : 0;
    for (int n = 0; n < (p->woven == WOVEN_BLOCKS ? 2 : 1); n++) {
        int64_t larger = extent;
        for (int i = 0; i < t->rank - 1; i++)
            if (t->shape[i] > 1 && llabs(t->stride[i]) > stride && llabs(t->stride[i]) < larger)
                larger = llabs(t->stride[i]);
        stride = larger;
    }
    return p->woven == WOVEN_TENSORS ? extent : stride;
}

/* Doubles the strides that reach past the second tensor's begin; returns its distance from the first. */
static int64_t weave_tensors(const struct problem *p, struct posenc_tensor *t)
{
    const int64_t distance = woven_distance(p, t);
    for (int i = 0; i < t->rank - 1; i++)
        t->stride[i] *= llabs(t->stride[i]) >= distance ? 2 : 1;
    return p->woven == WOVEN_ROWS_SWAPPED ? -distance : distance;
}

/* ---- Rows in use ---- */

/* Rows of a tensor that its call uses. These are all rows or, in a large table, those at the call's positions, which
 * may repeat. */
struct used_rows {
    const struct problem *problem; /* with the positions; NULL: all rows */
    int64_t n, all;
};

enum { LARGE_TABLE = 1 << 24 }; /* elements */

static struct used_rows call_rows(const struct call *call, const struct tensor_spec *spec,
                                  const struct posenc_tensor *t)
{
    const struct problem *p = &call->problem;
    const int64_t all = storage_rows(t), width = t->shape[t->rank - 1];
    const bool table = spec->role == ROLE_INPUT && spec->dims[0] == DIM_ROW && !spec->fill;
    if (!table || kernel_on_scores(p->kernel) || p->recipe != RECIPE_MIX || width == 0 ||
        all < LARGE_TABLE / width)
        return (struct used_rows){ NULL, all, all };
    return (struct used_rows){ p, p->batch * p->tokens, all };
}

/* Returns the row of index i. A position past the table counts as 0 here; the library rejects it later. */
static int64_t row_at(const struct used_rows *rows, int64_t i)
{
    const struct problem *p = rows->problem;
    const int64_t r = p ? problem_position(p, i / p->tokens, i % p->tokens) : i;
    return r < 0 || r >= rows->all ? 0 : r;
}

/* ---- Memory ---- */

/* Memory to allocate. The last dimension counts the elements of a row. */
struct memory_block {
    int n; /* dimensions */
    const int64_t *shape, *stride;
    size_t item; /* bytes of an element */
    char role;
    bool woven; /* the first dimension counts two tensors */
    struct used_rows rows;
};

/* Extent of a block, in elements. With negative strides, some elements lie below the first one. */
struct block_extent {
    int64_t below, all;
    bool empty;
};

static bool measure_extent(struct call *call, const struct memory_block *block,
                           struct block_extent *extent)
{
    const int64_t most = MOST_ELEMENTS;
    *extent = (struct block_extent){ .all = 1 };
    for (int i = 0; i < block->n; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(block->shape[i] - 1, block->stride[i], &reach))
            reach = INT64_MAX;
        if (!call_check_range(call, POSENC_ERR_OVERFLOW,
                              "elements between the ends of a tensor", reach, -most, most))
            return false;
        extent->below += reach < 0 ? -reach : 0;
        extent->all += reach < 0 ? -reach : reach;
        extent->empty = extent->empty || block->shape[i] == 0;
    }
    return true;
}

/* Returns the distance of row r from the first element, in elements. */
static int64_t row_offset(const struct memory_block *block, int64_t r)
{
    int64_t at = 0;
    for (int d = block->n - 2; d >= 0; d--) {
        at += r % block->shape[d] * block->stride[d];
        r /= block->shape[d];
    }
    return at;
}

/* Returns true for a large block of which less than 1/16 of the bytes are in use. */
static bool is_mostly_gaps(const struct memory_block *block, size_t bytes)
{
    const size_t used =
        (size_t)block->rows.n * (size_t)block->shape[block->n - 1] * block->item;
    return bytes >= RESERVE_FROM && bytes / 16 > used;
}

static char *get_block(struct call *call, const struct memory_block *block,
                       const struct block_extent *extent, int64_t offset)
{
    const struct tensor_allocator *m = &call->memory;
    const size_t bytes = extent->empty ? 0 : (size_t)extent->all * block->item;
    if ((size_t)extent->all > SIZE_MAX / 2 / block->item)
        return NULL;
    if (!m->reserve || block->woven || !is_mostly_gaps(block, bytes))
        return m->get(m->user, bytes, offset, block->role);
    char *data = m->reserve(m->user, bytes, offset, block->role);
    const size_t row = (size_t)block->shape[block->n - 1] * block->item;
    for (int64_t i = 0; data && i < block->rows.n; i++) {
        const int64_t at = extent->below + row_offset(block, row_at(&block->rows, i));
        if (!m->use(m->user, data + at * (int64_t)block->item, row)) {
            m->free(m->user, data);
            return NULL;
        }
    }
    return data;
}

/* Allocates a block; returns the address of its first element, or NULL. The offset from a 64-byte boundary is rounded
 * down to a multiple of the element size. */
static void *make_memory(struct call *call, const struct tensor_spec *spec,
                         const struct memory_block *block)
{
    const struct problem *p = &call->problem;
    const int64_t own = tensor_layout(p, spec)->offset_bytes, size = (int64_t)block->item;
    const int64_t offset = own ? own : p->offset_bytes;
    struct block_extent extent;
    if (!measure_extent(call, block, &extent))
        return NULL;
    char *data = get_block(call, block, &extent, offset / size * size);
    if (!data) {
        call_reject(call, POSENC_ERR_MEMORY, spec->name, extent.all);
        return NULL;
    }
    call->owned[call->n_owned++] = data;
    return extent.empty ? data : data + extent.below * size;
}

/* ---- Tensors ---- */

static void put_row(const struct posenc_tensor *tensor, int64_t r, const float *values)
{
    const int64_t width = tensor->shape[tensor->rank - 1];
    storage_put_row(tensor->dtype, storage_row(tensor, r), width, values);
}

void tensor_scatter(const struct posenc_tensor *tensor, const float *dense)
{
    const int64_t width = tensor->shape[tensor->rank - 1];
    for (int64_t r = 0, n = width ? storage_rows(tensor) : 0; r < n; r++)
        put_row(tensor, r, dense + r * width);
}

/* Reads a tensor back to its dense copy, because elements that share memory have overwritten each other. */
static void tensor_gather(const struct posenc_tensor *tensor, const struct used_rows *rows,
                          float *dense)
{
    const int64_t width = tensor->shape[tensor->rank - 1];
    for (int64_t i = 0, n = width ? rows->n : 0; i < n; i++) {
        const int64_t r = row_at(rows, i);
        const void *row = storage_row(tensor, r);
        for (int64_t c = 0; c < width; c++)
            dense[r * width + c] = storage_get(tensor->dtype, row, c);
    }
}

/* Allocates the dense copy of an input in the call. */
static float *keep_dense(struct call *call, const struct tensor_spec *spec, int64_t n)
{
    float *dense = call_allocate(call, n, sizeof *dense);
    if (dense)
        memcpy((char *)call + spec->dense_copy, &dense, sizeof dense);
    return dense;
}

/* Fills n elements of a dense copy from `first` on. A tensor with a fill() of its own is filled as a whole, as
 * call_rows() selects none of its rows. */
static bool fill_dense(struct call *call, const struct tensor_spec *spec, float *dense,
                       int64_t first, int64_t n)
{
    if (spec->fill)
        return spec->fill(call, dense, n);
    const bool filled = inputs_fill(dense + first, first, n, &call->problem, spec->stream);
    return filled || call_reject(call, POSENC_ERR_MEMORY, spec->name, n);
}

static bool fill_tensor(struct call *call, const struct tensor_spec *spec,
                        const struct posenc_tensor *t, const struct used_rows *rows)
{
    const int64_t width = t->shape[t->rank - 1];
    float *dense = keep_dense(call, spec, rows->all * width);
    if (!dense || (!rows->problem && !fill_dense(call, spec, dense, 0, rows->all * width)))
        return false;
    for (int64_t i = 0; i < rows->n && width; i++) {
        const int64_t r = row_at(rows, i);
        if (rows->problem && !fill_dense(call, spec, dense, r * width, width))
            return false;
        put_row(t, r, dense + r * width);
    }
    if (tensor_layout(&call->problem, spec)->n_strides)
        tensor_gather(t, rows, dense);
    return true;
}

/* Adds the next member of call->outputs. */
static bool add_output(struct call *call, const struct tensor_spec *spec,
                       const struct posenc_tensor *t)
{
    const int64_t rows = storage_rows(t), width = t->shape[t->rank - 1];
    const int o = call->n_outputs++;
    call->outputs[o] = (struct output){ spec->name, *t, rows, width };
    return t->dtype == POSENC_DTYPE_F32 ||
           (call->wide[o] = call_allocate(call, rows * width, sizeof(float)));
}

/* Allocates a tensor, and a second one that is woven into it at a distance of `apart` elements unless 0. The first
 * dimension of the block counts the two tensors. It is omitted if nothing is woven. */
static void *make_block(struct call *call, const struct tensor_spec *spec,
                        const struct posenc_tensor *t, int64_t apart)
{
    const struct problem *p = &call->problem;
    const struct tensor_spec *other = kernel_woven_row(p->kernel);
    int64_t shape[MOST_DIMS + 1] = { 2 }, stride[MOST_DIMS + 1] = { apart };
    const bool both = p->in_place || problem_accumulates(p) || (apart && other->role == ROLE_X);
    const char output_role = both ? 'b' : 'o';
    memcpy(shape + 1, t->shape, sizeof t->shape);
    memcpy(stride + 1, t->stride, sizeof t->stride);
    const struct memory_block block = {
        .n = t->rank + (apart ? 1 : 0),
        .shape = apart ? shape : shape + 1,
        .stride = apart ? stride : stride + 1,
        .item = storage_size(t->dtype),
        .role = spec->role == ROLE_OUTPUT ? output_role : 'i',
        .woven = apart,
        .rows = call_rows(call, spec, t),
    };
    return make_memory(call, spec, &block);
}

static bool make_strided(struct call *call, const struct tensor_spec *spec)
{
    const struct problem *p = &call->problem;
    const bool output = spec->role == ROLE_OUTPUT, follows = tensor_shares_output(p, spec),
               first = spec == signature_output(signature_of(p->kernel), 0);
    struct posenc_tensor *t = call_argument(call, spec);
    if (!shape_tensor(call, spec, t))
        return false;
    const int64_t apart = p->woven && (first || follows) ? weave_tensors(p, t) : 0;
    t->data =
        follows ? (char *)call->outputs[0].tensor.data + apart * (int64_t)storage_size(t->dtype)
                : make_block(call, spec, t, apart);
    if (!t->data || (output && !add_output(call, spec, t)))
        return false;
    const struct used_rows rows = call_rows(call, spec, t);
    return (output && !problem_accumulates(p)) || fill_tensor(call, spec, t, &rows);
}

/* Makes an array of f32 or int32. Batches have rows of their own or share one. */
static bool make_pointer(struct call *call, const struct tensor_spec *spec)
{
    const struct problem *p = &call->problem;
    const int64_t n = tensor_elements(p, spec), stride = 1;
    const struct memory_block block = { .n = 1,
                                        .shape = &n,
                                        .stride = &stride,
                                        .item = sizeof(float),
                                        .role = 'i',
                                        .rows = { .n = 1, .all = 1 } };
    float *data = make_memory(call, spec, &block), *dense = NULL;
    if (!data)
        return false;
    if (spec->form == FORM_INTEGERS) {
        if (!spec->fill(call, data, n))
            return false;
    } else {
        dense = keep_dense(call, spec, n);
        if (!dense || !fill_dense(call, spec, dense, 0, n))
            return false;
        memcpy(data, dense, (size_t)n * sizeof *dense);
    }
    memcpy(call_argument(call, spec), &data, sizeof data);
    if (spec->stride_batch) {
        const int64_t own = spec->shared(p) ? 0 : problem_extent(p, spec->dims[1]);
        memcpy((char *)&call->args + spec->stride_batch, &own, sizeof own);
    }
    return true;
}

/* ---- Positions ---- */

/* Stores a position as its kind; returns false if the kind cannot hold it. */
static bool store_position(enum posenc_position_kind kind, int64_t position, double time,
                           void *to)
{
    const float real = (float)time;
    const int32_t narrow = (int32_t)position;
    if (kind == POSENC_POSITIONS_F32)
        memcpy(to, &real, sizeof real);
    else if (kind == POSENC_POSITIONS_I64)
        memcpy(to, &position, sizeof position);
    else
        memcpy(to, &narrow, sizeof narrow);
    return kind != POSENC_POSITIONS_I32 || narrow == position;
}

/* Fills positions [batch, tokens, axes]; then reads them again, as those that share memory must be equal. The first n
 * rounds of the loop write, the others compare. */
static bool fill_positions(struct call *call, char *data, const int64_t shape[3],
                           const int64_t stride[3], int64_t item)
{
    const struct problem *p = &call->problem;
    const int64_t n = shape[0] * shape[1] * shape[2];
    char value[8];
    for (int64_t i = 0; i < 2 * n; i++) {
        const int64_t t = i % n / shape[2] % shape[1], b = i % n / shape[2] / shape[1];
        const int axis = (int)(i % shape[2]);
        char *at = data + item * (b * stride[0] + t * stride[1] + axis * stride[2]);
        const int64_t position = problem_axis_position(p, b, t, axis);
        if (!store_position(p->position_kind, position, problem_time(p, b, t, axis), value))
            return call_check(call, POSENC_ERR_POSITION, "position", position, INT32_MIN,
                              INT32_MAX);
        if (i < n)
            memcpy(at, value, (size_t)item);
        else if (memcmp(at, value, (size_t)item) != 0)
            return call_reject(call, POSENC_ERR_STRIDE, "positions that share memory differ",
                               position);
    }
    return true;
}

/* Makes the array of positions. Batches have rows of their own if their positions differ. */
static bool make_positions(struct call *call, const struct tensor_spec *spec)
{
    const struct problem *p = &call->problem;
    const struct tensor_layout *layout = tensor_layout(p, spec);
    const size_t item = p->position_kind == POSENC_POSITIONS_I64 ? 8 : 4;
    const bool own = p->batch_shift || problem_draws_positions(p);
    const int64_t shape[3] = { p->batch, p->tokens, problem_axes(p) };
    int64_t stride[3] = { own ? p->tokens : 0, 1,
                          shape[2] > 1 ? (own ? p->batch : 1) * p->tokens : 0 };
    struct posenc_positions *positions = call_argument(call, spec);
    *positions = (struct posenc_positions){ .kind = p->position_kind, .offset = p->first };
    if (p->position_kind == POSENC_POSITIONS_OFFSET)
        return true;
    memcpy(stride, layout->stride, (size_t)layout->n_strides * sizeof *stride);
    positions->stride_batch = stride[0];
    positions->stride_token = stride[1];
    positions->stride_axis = stride[2];
    stride[1] = stride[1] ? stride[1] : 1; /* the library reads 0 as 1 */
    const int64_t n = shape[0] * shape[1] * shape[2];
    /* The last dimension of a block is a row: here one position. */
    const int64_t each[4] = { shape[0], shape[1], shape[2], 1 },
                  step[4] = { stride[0], stride[1], stride[2], 1 };
    const struct memory_block block = { .n = 4,
                                        .shape = each,
                                        .stride = step,
                                        .item = item,
                                        .role = 'i',
                                        .rows = { .n = n, .all = n } };
    char *data = make_memory(call, spec, &block);
    positions->data = data;
    return data && fill_positions(call, data, shape, stride, (int64_t)item);
}

bool call_make_tensor(struct call *call, const struct tensor_spec *spec)
{
    if (spec->form == FORM_TENSOR)
        return make_strided(call, spec);
    return spec->form == FORM_POSITIONS ? make_positions(call, spec) : make_pointer(call, spec);
}
