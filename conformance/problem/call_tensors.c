/*
 * Tensors and positions of a call, by the rows of its signature and from the numbers of its
 * problem.
 */
#include "call_parts.h"

#include <string.h>

/* ---- Tensors ---- */

/* A tensor of rank 4 without data: `pad` unused elements after each row but the last, strides
 * of the first two dimensions exchanged for token_major. */
static enum posenc_status make_shape(struct call *call, struct posenc_tensor *tensor,
                                     enum posenc_dtype dtype, const int64_t shape[4],
                                     int64_t pad, bool token_major)
{
    const int64_t most = INT64_C(1) << 40;
    int64_t row, inner, all, tokens, bytes;
    for (int i = 0; i < 4; i++)
        if (shape[i] < 0 || shape[i] > most)
            return call_refuse(call, POSENC_ERR_SHAPE, "a dimension", shape[i], 0, most);
    if (__builtin_add_overflow(shape[3], pad, &row) || row < shape[3])
        return call_refuse(call, POSENC_ERR_STRIDE, "pad", pad, 0, INT64_MAX);
    if (__builtin_mul_overflow(shape[2], row, &inner) ||
        __builtin_mul_overflow(inner, shape[1], &all) ||
        __builtin_mul_overflow(all, shape[0], &all) ||
        __builtin_mul_overflow(inner, shape[0], &tokens) ||
        __builtin_mul_overflow(all, 4, &bytes))
        return call_refuse(call, POSENC_ERR_OVERFLOW, "elements of a tensor", shape[0], 0, 0);
    *tensor = (struct posenc_tensor){ .dtype = dtype, .rank = 4 };
    memcpy(tensor->shape, shape, sizeof tensor->shape);
    tensor->stride[3] = 1;
    tensor->stride[2] = row;
    tensor->stride[1] = token_major ? tokens : inner;
    tensor->stride[0] = token_major ? inner : shape[1] * inner;
    return POSENC_OK;
}

/* The elements below and above the first one: of `n` dimensions, some perhaps negative strides. */
struct extent {
    int64_t below, above; /* above: the first one included */
};

static bool find_extent(int n, const int64_t *shape, const int64_t *stride,
                        struct extent *extent)
{
    const int64_t most = INT64_C(1) << 40;
    *extent = (struct extent){ 0, 1 };
    for (int i = 0; i < n; i++) {
        int64_t reach;
        if (shape[i] == 0) {
            *extent = (struct extent){ 0, 0 };
            return true;
        }
        if (__builtin_mul_overflow(shape[i] - 1, stride[i], &reach) || reach > most ||
            reach < -most)
            return false;
        extent->below += reach < 0 ? -reach : 0;
        extent->above += reach > 0 ? reach : 0;
    }
    return true;
}

/* Of a row that has its own: else those of the problem. */
static int64_t offset_of(const struct problem *p, const struct tensor_row *row)
{
    const int64_t own = tensor_layout(p, row)->offset_bytes;
    return own ? own : p->offset_bytes;
}

void tensor_scatter(const struct posenc_tensor *tensor, const float *dense)
{
    const int64_t width = tensor->shape[tensor->rank - 1];
    for (int64_t r = 0, n = width ? storage_rows(tensor) : 0; r < n; r++, dense += width) {
        void *row = storage_row(tensor, r);
        if (tensor->dtype == POSENC_F32)
            memcpy(row, dense, (size_t)width * sizeof *dense);
        else
            for (int64_t c = 0; c < width; c++)
                storage_put(tensor->dtype, row, c, dense[c]);
    }
}

/* What a tensor holds, after elements that share memory have overwritten each other. */
static void tensor_gather(const struct posenc_tensor *tensor, float *dense)
{
    const int64_t width = tensor->shape[tensor->rank - 1];
    for (int64_t r = 0, n = width ? storage_rows(tensor) : 0; r < n; r++)
        for (int64_t c = 0; c < width; c++)
            *dense++ = storage_get(tensor->dtype, storage_row(tensor, r), c);
}

static enum posenc_status make_memory(struct call *call, const struct tensor_row *row,
                                      struct posenc_tensor *tensor, char role)
{
    const size_t item = storage_size(tensor->dtype);
    struct extent extent;
    if (!find_extent(tensor->rank, tensor->shape, tensor->stride, &extent))
        return call_refuse(call, POSENC_ERR_OVERFLOW, "elements between the ends of a tensor",
                           tensor->stride[0], 0, INT64_C(1) << 40);
    char *data = call_memory(call, extent.below + extent.above, item,
                             offset_of(&call->problem, row), role);
    if (!data)
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for a tensor", 0, 1, 0);
    tensor->data = data + extent.below * (int64_t)item;
    return POSENC_OK;
}

/* The same tensor without one of its dimensions, which is 1. */
static struct posenc_tensor tensor_squeezed(const struct posenc_tensor *t, int axis)
{
    struct posenc_tensor s = { .data = t->data, .dtype = t->dtype, .rank = t->rank - 1 };
    for (int i = 0, to = 0; i < t->rank; i++) {
        if (i == axis)
            continue;
        s.shape[to] = t->shape[i];
        s.stride[to++] = t->stride[i];
    }
    return s;
}

/* Whether tensors by queries and keys have no batch: where nothing says otherwise. */
static bool without_batch(const struct problem *p)
{
    return kernel_on_scores(p->kernel) && !kernel_takes_x(p->kernel) && p->batch == 1 &&
           !p->slopes_by_batch;
}

/* Of rank 4: a tensor of three dimensions has rows of one, one of two is a table. */
static enum posenc_status shape_of(struct call *call, const struct tensor_row *row,
                                   struct posenc_tensor *tensor)
{
    static const int places[MOST_DIMS + 1][MOST_DIMS] = {
        [2] = { 2, 3 }, [3] = { 0, 1, 3 }, [4] = { 0, 1, 2, 3 }
    };
    const struct problem *p = &call->problem;
    const int n = tensor_dims(row);
    int64_t shape[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < n; i++)
        shape[places[n][i]] = problem_extent(p, row->dims[i]);
    const struct tensor_layout *layout = tensor_layout(p, row);
    enum posenc_status status = make_shape(call, tensor, tensor_dtype(p, row), shape,
                                           p->pad + layout->pad, n > 2 && p->token_major);
    if (status == POSENC_OK && layout->n_strides && layout->n_strides != n - 1)
        return call_refuse(call, POSENC_ERR_STRIDE, "strides of a tensor", layout->n_strides,
                           n - 1, n - 1);
    for (int i = 0; i < layout->n_strides; i++)
        tensor->stride[places[n][i]] = layout->stride[i];
    return status;
}

/* As the kernel is given it. */
static struct posenc_tensor squeezed(const struct problem *p, const struct tensor_row *row,
                                     struct posenc_tensor t)
{
    if (tensor_dims(row) == 3)
        return tensor_squeezed(&t, 2);
    if (tensor_dims(row) == 4 && !(row->dims[0] == DIM_BATCH && without_batch(p)))
        return t;
    t = tensor_squeezed(&t, 0);
    return tensor_dims(row) == 2 ? tensor_squeezed(&t, 0) : t;
}

/* The next of call->outputs. */
static enum posenc_status make_output(struct call *call, const struct tensor_row *row,
                                      struct posenc_tensor *tensor, char role)
{
    enum posenc_status status = make_memory(call, row, tensor, role);
    if (status != POSENC_OK)
        return status;
    const int64_t rows = storage_rows(tensor), width = tensor->shape[3];
    const int o = call->n_outputs++;
    call->outputs[o] = (struct output){ row->name, *tensor, rows, width };
    if (tensor->dtype != POSENC_F32 && !(call->wide[o] = call_keep_floats(call, rows * width)))
        return call_refuse(call, POSENC_ERR_MEMORY, "memory to widen", rows * width, 1, 0);
    return POSENC_OK;
}

/* n elements by the row's stream or its own rule; *dense is the copy that is kept. */
static enum posenc_status fill_dense(struct call *call, const struct tensor_row *row, int64_t n,
                                     float **dense)
{
    enum posenc_status status = POSENC_OK;
    if (!(*dense = call_keep_floats(call, n)))
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for inputs", n, 1, 0);
    if (row->fill)
        status = row->fill(call, *dense, n);
    else
        fill_inputs(*dense, n, &call->problem, row->stream);
    memcpy((char *)call + row->pristine, dense, sizeof *dense);
    return status;
}

enum posenc_status make_tensor(struct call *call, const struct tensor_row *row)
{
    const struct problem *p = &call->problem;
    const bool output = row->role == ROLE_OUTPUT, onto = problem_accumulates(p),
               same = p->in_place && kernel_in_place(p->kernel);
    struct posenc_tensor t;
    enum posenc_status status = shape_of(call, row, &t);
    float *dense;
    if (status == POSENC_OK && row->role == ROLE_X && same)
        t.data = call->outputs[0].tensor.data;
    else if (status == POSENC_OK && output)
        status = make_output(call, row, &t, same || onto ? 'b' : 'o');
    else if (status == POSENC_OK)
        status = make_memory(call, row, &t, 'i');
    if (status == POSENC_OK && (!output || onto)) {
        status = fill_dense(call, row, storage_rows(&t) * t.shape[3], &dense);
        if (status == POSENC_OK)
            tensor_scatter(&t, dense);
        if (status == POSENC_OK && tensor_layout(p, row)->n_strides)
            tensor_gather(&t, dense);
    }
    *(struct posenc_tensor *)call_argument(call, row) = squeezed(p, row, t);
    return status;
}

/* The batches of floats are side by side, or one. */
enum posenc_status make_pointer(struct call *call, const struct tensor_row *row)
{
    const struct problem *p = &call->problem;
    const int64_t n = tensor_elements(p, row);
    enum posenc_status status;
    void *data = call_memory(call, n, sizeof(float), offset_of(p, row), 'i');
    float *dense;
    if (!data)
        return call_refuse(call, POSENC_ERR_MEMORY, row->name, n, 1, 0);
    if (row->form == FORM_INTEGERS)
        status = row->fill(call, data, n);
    else if ((status = fill_dense(call, row, n, &dense)) == POSENC_OK)
        memcpy(data, dense, (size_t)n * sizeof *dense);
    memcpy(call_argument(call, row), &data, sizeof data);
    if (row->stride_batch) {
        const int64_t stride = row->shared(p) ? 0 : problem_extent(p, row->dims[1]);
        memcpy((char *)&call->args + row->stride_batch, &stride, sizeof stride);
    }
    return status;
}

/* ---- Positions ---- */

/* Element i of positions, [axes, batch, tokens], as its kind has it; false where that cannot. */
static bool position_of(const struct problem *p, int64_t b, int64_t t, int axis, void *to)
{
    const int64_t position = problem_axis_position(p, b, t, axis);
    const float time = (float)problem_time(p, b, t, axis);
    const int32_t narrow = (int32_t)position;
    if (p->position_kind == POSENC_POSITIONS_F32)
        memcpy(to, &time, sizeof time);
    else if (p->position_kind == POSENC_POSITIONS_I64)
        memcpy(to, &position, sizeof position);
    else
        memcpy(to, &narrow, sizeof narrow);
    return p->position_kind != POSENC_POSITIONS_I32 || narrow == position;
}

/* Each batch has its own positions or all have the same; each axis its own. */
static void default_strides(const struct problem *p, struct posenc_positions *positions)
{
    const bool own = p->batch_shift || problem_draws_positions(p);
    positions->stride_batch = own ? p->tokens : 0;
    positions->stride_token = 1;
    positions->stride_axis = problem_axes(p) > 1 ? (own ? p->batch : 1) * p->tokens : 0;
}

/* Fills them; those that share memory have to be equal. */
static enum posenc_status fill_positions(struct call *call, struct posenc_positions *positions,
                                         int64_t item)
{
    const struct problem *p = &call->problem;
    char *data = (char *)(uintptr_t)positions->data, value[8];
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < problem_axes(p) * p->batch * p->tokens; i++) {
            const int64_t t = i % p->tokens, b = i / p->tokens % p->batch;
            const int axis = (int)(i / p->tokens / p->batch);
            char *at =
                data + item * (b * positions->stride_batch + t * positions->stride_token +
                               axis * positions->stride_axis);
            if (!position_of(p, b, t, axis, value))
                return call_refuse(call, POSENC_ERR_POSITION, "position",
                                   problem_axis_position(p, b, t, axis), INT32_MIN, INT32_MAX);
            if (pass == 0)
                memcpy(at, value, (size_t)item);
            else if (memcmp(at, value, (size_t)item) != 0)
                return call_refuse(call, POSENC_ERR_STRIDE,
                                   "positions that share memory differ",
                                   problem_axis_position(p, b, t, axis), 0, -1);
        }
    return POSENC_OK;
}

enum posenc_status make_positions(struct call *call, const struct tensor_row *row)
{
    const struct problem *p = &call->problem;
    const struct tensor_layout *layout = tensor_layout(p, row);
    const int64_t item = p->position_kind == POSENC_POSITIONS_I64 ? 8 : 4;
    struct posenc_positions *positions = call_argument(call, row);
    struct extent extent;
    *positions = (struct posenc_positions){ .kind = p->position_kind, .offset = p->first };
    if (p->position_kind == POSENC_OFFSET)
        return POSENC_OK;
    default_strides(p, positions);
    int64_t *const strides[] = { &positions->stride_batch, &positions->stride_token,
                                 &positions->stride_axis };
    for (int i = 0; i < layout->n_strides; i++)
        *strides[i] = layout->stride[i];
    if (!find_extent(3, (int64_t[]){ p->batch, p->tokens, problem_axes(p) },
                     (int64_t[]){ *strides[0], *strides[1], *strides[2] }, &extent))
        return call_refuse(call, POSENC_ERR_OVERFLOW, "strides of positions", *strides[0], 0,
                           INT64_C(1) << 40);
    char *data =
        call_memory(call, extent.below + extent.above, (size_t)item, offset_of(p, row), 'i');
    if (!data)
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for positions",
                           extent.below + extent.above, 1, 0);
    positions->data = data + extent.below * item;
    return fill_positions(call, positions, item);
}
