/*
 * Tensors, positions and plans of a call, filled from the numbers of its problem.
 */
#include "call_parts.h"

#include <string.h>

/* ---- Tensors ---- */

enum posenc_status make_shape(struct call *call, struct posenc_tensor *tensor,
                              enum posenc_dtype dtype, const int64_t shape[4], bool token_major)
{
    const int64_t most = INT64_C(1) << 40;
    int64_t row = shape[3] + call->problem.pad, inner, all, tokens, bytes;
    for (int i = 0; i < 4; i++)
        if (shape[i] < 0 || shape[i] > most)
            return call_refuse(call, POSENC_ERR_SHAPE, "a dimension", shape[i], 0, most);
    if (row < shape[3])
        return call_refuse(call, POSENC_ERR_STRIDE, "pad", call->problem.pad, 0, INT64_MAX);
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

/* Elements from the first to the last, both included. */
static int64_t tensor_extent(const struct posenc_tensor *tensor)
{
    int64_t last = 0;
    for (int i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] == 0)
            return 0;
        last += (tensor->shape[i] - 1) * tensor->stride[i];
    }
    return last + 1;
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

static enum posenc_status make_memory(struct call *call, struct posenc_tensor *tensor,
                                      char role)
{
    tensor->data = call_memory(call, tensor_extent(tensor), storage_size(tensor->dtype), role);
    return tensor->data ? POSENC_OK
                        : call_refuse(call, POSENC_ERR_MEMORY, "memory for a tensor", 0, 1, 0);
}

struct posenc_tensor tensor_squeezed(const struct posenc_tensor *t, int axis)
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

enum posenc_status make_output(struct call *call, const char *name,
                               struct posenc_tensor *tensor, char role)
{
    enum posenc_status status = make_memory(call, tensor, role);
    if (status != POSENC_OK)
        return status;
    const int64_t rows = storage_rows(tensor), width = tensor->shape[3];
    const int o = call->n_outputs++;
    call->outputs[o] = (struct output){ name, *tensor, rows, width };
    if (tensor->dtype != POSENC_F32 && !(call->wide[o] = call_keep_floats(call, rows * width)))
        return call_refuse(call, POSENC_ERR_MEMORY, "memory to widen", rows * width, 1, 0);
    return POSENC_OK;
}

enum posenc_status make_input(struct call *call, struct posenc_tensor *tensor, uint64_t stream,
                              const float **pristine)
{
    enum posenc_status status = POSENC_OK;
    if (!tensor->data && (status = make_memory(call, tensor, 'i')) != POSENC_OK)
        return status;
    const int64_t n = storage_rows(tensor) * tensor->shape[3];
    float *dense = call_keep_floats(call, n);
    if (!dense)
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for inputs", n, 1, 0);
    fill_inputs(dense, n, &call->problem, stream);
    tensor_scatter(tensor, dense);
    *pristine = dense;
    return POSENC_OK;
}

enum posenc_status make_table(struct call *call, struct posenc_tensor *table,
                              enum posenc_dtype dtype, int64_t rows, int64_t width,
                              const float *dense)
{
    struct posenc_tensor t;
    enum posenc_status status =
        make_shape(call, &t, dtype, (int64_t[]){ 1, 1, rows, width }, false);
    if (status == POSENC_OK)
        status = make_memory(call, &t, 'i');
    if (status != POSENC_OK)
        return status;
    tensor_scatter(&t, dense);
    t = tensor_squeezed(&t, 0);
    *table = tensor_squeezed(&t, 0);
    return POSENC_OK;
}

enum posenc_status make_random_table(struct call *call, struct posenc_tensor *table,
                                     int64_t rows, int64_t width)
{
    struct posenc_tensor t;
    enum posenc_status status =
        make_shape(call, &t, POSENC_F32, (int64_t[]){ 1, 1, rows, width }, false);
    if (status == POSENC_OK)
        status = make_input(call, &t, STREAM_TABLE, &call->table);
    if (status != POSENC_OK)
        return status;
    t = tensor_squeezed(&t, 0);
    *table = tensor_squeezed(&t, 0);
    return POSENC_OK;
}

/* ---- Positions ---- */

enum posenc_status make_positions(struct call *call, struct posenc_positions *positions)
{
    const struct problem *p = &call->problem;
    *positions = (struct posenc_positions){ .kind = p->position_kind, .offset = p->first };
    if (p->position_kind == POSENC_OFFSET)
        return POSENC_OK;
    bool own = p->batch_shift || problem_draws_positions(p); /* each batch its own */
    int axes = problem_axes(p);
    int64_t size = p->position_kind == POSENC_POSITIONS_I64 ? 8 : 4;
    int64_t all = (own ? p->batch : 1) * p->tokens, n = axes * all;
    void *data = call_memory(call, n, (size_t)size, 'i');
    if (!data)
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for positions", n, 1, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t b = i % all / p->tokens, t = i % p->tokens;
        int64_t position = problem_axis_position(p, b, t, (int)(i / all));
        if (p->position_kind == POSENC_POSITIONS_F32)
            ((float *)data)[i] = (float)problem_time(p, b, t, (int)(i / all));
        else if (p->position_kind == POSENC_POSITIONS_I64)
            ((int64_t *)data)[i] = position;
        else if (position < INT32_MIN || position > INT32_MAX)
            return call_refuse(call, POSENC_ERR_POSITION, "position", position, INT32_MIN,
                               INT32_MAX);
        else
            ((int32_t *)data)[i] = (int32_t)position;
    }
    positions->data = data;
    positions->stride_batch = own ? p->tokens : 0;
    positions->stride_token = 1;
    positions->stride_axis = axes > 1 ? all : 0;
    return POSENC_OK;
}

/* The factors of longrope that a problem gives by their last: evenly from 1 on. */
static enum posenc_status make_factors(struct call *call)
{
    struct posenc_freqs_spec *spec = &call->problem.freqs;
    if (spec->scaling != POSENC_SCALING_LONGROPE || spec->short_factor || spec->long_factor ||
        spec->dim < 1 || spec->dim > 1 << 16)
        return POSENC_OK;
    int64_t n = (spec->dim + 1) / 2;
    double *factors = call_keep(call, 2 * (size_t)n * sizeof *factors);
    if (!factors)
        return call_refuse(call, POSENC_ERR_MEMORY, "memory for factors", n, 1, 0);
    for (int64_t i = 0; i < n; i++) {
        double way = n > 1 ? (double)i / (double)(n - 1) : 0.0;
        factors[i] = 1.0 + (call->problem.short_factor_last - 1.0) * way;
        factors[n + i] = 1.0 + (call->problem.long_factor_last - 1.0) * way;
    }
    spec->short_factor = factors;
    spec->long_factor = factors + n;
    return POSENC_OK;
}

enum posenc_status make_plan(struct call *call)
{
    enum posenc_status status = make_factors(call);
    if (status != POSENC_OK)
        return status;
    struct posenc_freqs_spec spec = call->problem.freqs;
    if (!spec.size)
        spec.size = sizeof spec;
    return call_subject(call)->freqs_create(&spec, &call->freqs, &call->error);
}
