/*
 * Checks the tensors and positions of a call before anything is written.
 *
 * Elements of a strided tensor are distinct if, with the dimensions sorted by |stride|, each stride
 * is at least the extent of all dimensions below it: 1 + sum of |stride| (size - 1). The condition
 * is sufficient, not necessary.
 */
#include "validate.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 4 };
static const int64_t most_size = INT32_MAX; /* of one dimension: below 2^31 */

enum posenc_status posenc_refuse(struct posenc_error *error, enum posenc_status status,
                                 const char *what, double value, double least, double most)
{
    if (error)
        *error = (struct posenc_error){ status, what, value, least, most };
    return status;
}

/* Finds the bytes of `n` dimensions from `data` on; returns false if they exceed the address space. */
static bool find_span(const void *data, int64_t item, int n, const int64_t *shape,
                      const int64_t *stride, struct span *span)
{
    int64_t below = 0, above = 1;
    bool overflow = false;
    for (int i = 0; i < n; i++) {
        int64_t reach;
        overflow |= __builtin_mul_overflow(stride[i], shape[i] - 1, &reach);
        overflow |= __builtin_add_overflow(below, reach < 0 ? reach : 0, &below);
        overflow |= __builtin_add_overflow(above, reach > 0 ? reach : 0, &above);
    }
    overflow |= __builtin_mul_overflow(below, item, &below);
    overflow |= __builtin_mul_overflow(above, item, &above);
    uintptr_t address = (uintptr_t)data;
    if (overflow || below < -INT64_MAX || (uint64_t)-below > address ||
        (uint64_t)above > UINTPTR_MAX - address)
        return false;
    *span = (struct span){ address - (uintptr_t)-below, address + (uintptr_t)above };
    return true;
}

/* Checks the condition above for n <= MAX_RANK + 1 dimensions. Their span must have been
 * found. */
static bool is_injective(int n, const int64_t *shape, const int64_t *stride)
{
    int64_t sorted[MAX_RANK + 1], sizes[MAX_RANK + 1];
    int count = 0;
    /* Insertion sort; from the last dimension on, the usual order needs no moves. */
    for (int i = n - 1; i >= 0; i--) {
        if (shape[i] == 1)
            continue;
        int64_t step = llabs(stride[i]);
        int at = count++;
        for (; at > 0 && sorted[at - 1] > step; at--) {
            sorted[at] = sorted[at - 1];
            sizes[at] = sizes[at - 1];
        }
        sorted[at] = step;
        sizes[at] = shape[i];
    }
    int64_t extent = 1;
    for (int i = 0; i < count; i++) {
        if (sorted[i] < extent)
            return false;
        extent += sorted[i] * (sizes[i] - 1);
    }
    return true;
}

/* Checks rank, dtype and sizes; *empty is true if there are no elements. */
static enum posenc_status check_form(const struct posenc_const_tensor *t,
                                     const struct tensor_rule *rule, bool *empty,
                                     struct posenc_error *error)
{
    const struct tensor_names *names = rule->names;
    if (t->rank < rule->least_rank || t->rank > rule->most_rank)
        return posenc_refuse(error, POSENC_ERR_SHAPE, names->rank, t->rank, rule->least_rank,
                             rule->most_rank);
    enum posenc_dtype last_dtype = rule->any_dtype ? POSENC_BF16 : POSENC_F32;
    if ((unsigned)t->dtype > (unsigned)last_dtype)
        return posenc_refuse(error, POSENC_ERR_DTYPE, names->dtype, (double)t->dtype,
                             POSENC_F32, (double)last_dtype);
    *empty = false;
    for (int i = 0; i < t->rank; i++) {
        bool last = i == t->rank - 1;
        int64_t least = last ? rule->least_last : 0;
        if (t->shape[i] < least || t->shape[i] > most_size)
            return posenc_refuse(error, POSENC_ERR_SHAPE, last ? names->last : names->size,
                                 (double)t->shape[i], (double)least, (double)most_size);
        *empty |= t->shape[i] == 0;
    }
    return POSENC_OK;
}

/* Accepts a usual tensor in one pass, as checks are a large part of a decoding step: aligned data, no
 * dimension of size 0, no stride that is negative or beyond 2^30, and, for an `output`, outer
 * dimensions that enclose the inner ones, so that its elements are distinct. Any other tensor is
 * checked again, condition by condition. */
static inline bool is_usual(const void *data, enum posenc_dtype dtype, int rank,
                            const int64_t *shape, int64_t *stride,
                            const struct tensor_rule *rule, bool output,
                            struct checked *checked)
{
    const uint64_t most_stride = UINT64_C(1) << 30, most_extent = UINT64_C(1) << 40;
    uintptr_t first = (uintptr_t)data;
    int last = rank - 1;
    if (rank < rule->least_rank || rank > rule->most_rank ||
        (unsigned)dtype > (unsigned)(rule->any_dtype ? POSENC_BF16 : POSENC_F32))
        return false;
    /* Absurd sizes and strides wrap as unsigned numbers, and are not usual. */
    uint64_t extent = (uint64_t)shape[last];
    bool fine = (shape[last] >= 1) & (shape[last] >= rule->least_last) &
                (shape[last] <= most_size) & ((shape[last] == 1) | (stride[last] == 1));
    stride[last] = fine ? 1 : stride[last];
    for (int i = last - 1; i >= 0; i--) {
        uint64_t n = (uint64_t)shape[i], step = n == 1 ? 0 : (uint64_t)stride[i];
        fine &= (n - 1 < (uint64_t)most_size) & (step <= most_stride) &
                (!output | (n == 1) | (step >= extent));
        extent += step * (n - 1);
        stride[i] = (int64_t)step; /* the full check sets it again if it fails here */
    }
    size_t item = posenc_dtype_size(dtype), bytes = (size_t)extent * item;
    *checked = (struct checked){ { first, first + bytes }, false };
    return fine & (extent <= most_extent) & (first != 0) & ((first & (item - 1)) == 0) &
           (bytes <= UINTPTR_MAX - first);
}

static enum posenc_status check_input(struct posenc_const_tensor *tensor,
                                      const struct tensor_rule *rule, struct checked *checked,
                                      struct posenc_error *error)
{
    const struct tensor_names *names = rule->names;
    *checked = (struct checked){ { 0, 0 }, false };
    enum posenc_status status = check_form(tensor, rule, &checked->empty, error);
    if (status || checked->empty)
        return status;
    if (!tensor->data)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, names->data, 0.0, 1.0, 0.0);
    size_t item = posenc_dtype_size(tensor->dtype);
    if ((uintptr_t)tensor->data % item != 0)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, names->alignment,
                             (double)((uintptr_t)tensor->data % item), 0.0, 0.0);
    int last = tensor->rank - 1;
    if (tensor->shape[last] > 1 && tensor->stride[last] != 1)
        return posenc_refuse(error, POSENC_ERR_STRIDE, names->stride,
                             (double)tensor->stride[last], 1.0, 1.0);
    for (int i = 0; i < last; i++)
        if (tensor->shape[i] == 1)
            tensor->stride[i] = 0;
    tensor->stride[last] = 1;
    if (!find_span(tensor->data, (int64_t)item, tensor->rank, tensor->shape, tensor->stride,
                   &checked->span))
        return posenc_refuse(error, POSENC_ERR_OVERFLOW, names->bytes, (double)UINTPTR_MAX, 0.0,
                             (double)PTRDIFF_MAX);
    return POSENC_OK;
}

enum posenc_status posenc_check_input(struct posenc_const_tensor *tensor,
                                      const struct tensor_rule *rule, struct checked *checked,
                                      struct posenc_error *error)
{
    if (is_usual(tensor->data, tensor->dtype, tensor->rank, tensor->shape, tensor->stride, rule,
                 false, checked))
        return POSENC_OK;
    return check_input(tensor, rule, checked, error);
}

enum posenc_status posenc_check_output(struct posenc_tensor *tensor,
                                       const struct tensor_rule *rule, struct checked *checked,
                                       struct posenc_error *error)
{
    if (is_usual(tensor->data, tensor->dtype, tensor->rank, tensor->shape, tensor->stride, rule,
                 true, checked))
        return POSENC_OK;
    struct posenc_const_tensor view = posenc_view(*tensor);
    enum posenc_status status = check_input(&view, rule, checked, error);
    if (status || checked->empty)
        return status;
    memcpy(tensor->stride, view.stride, sizeof tensor->stride);
    if (!is_injective(tensor->rank, tensor->shape, tensor->stride))
        return posenc_refuse(error, POSENC_ERR_STRIDE, rule->names->strides, 0.0, 1.0, 0.0);
    return POSENC_OK;
}

static bool same_strides(const struct posenc_const_tensor *a, const struct posenc_tensor *b)
{
    bool same = true;
    for (int i = 0; i < a->rank; i++)
        same &= a->stride[i] == b->stride[i];
    return same;
}

/* Two tensors of one type woven into each other, as the cosines and sines of one [tokens, 2,
 * half] array: both together are a tensor with one dimension more, and its elements are
 * distinct. */
static bool are_woven(const struct posenc_const_tensor *a, const struct posenc_tensor *b)
{
    int64_t shape[MAX_RANK + 1] = { 2 };
    int64_t bytes = (int64_t)((uintptr_t)b->data - (uintptr_t)a->data);
    int64_t stride[MAX_RANK + 1] = { bytes / (int64_t)posenc_dtype_size(a->dtype) };
    for (int i = 0; i < a->rank; i++) {
        shape[i + 1] = a->shape[i];
        stride[i + 1] = a->stride[i];
    }
    return same_strides(a, b) && is_injective(a->rank + 1, shape, stride);
}

static bool meet(struct span a, struct span b) { return a.first < b.end && b.first < a.end; }

enum posenc_status posenc_check_overlap(const struct posenc_const_tensor *a, struct span a_span,
                                        const struct posenc_tensor *b, struct span b_span,
                                        bool may_be_same, const char *what,
                                        struct posenc_error *error)
{
    if (!meet(a_span, b_span) || (may_be_same && a->data == b->data && same_strides(a, b)) ||
        are_woven(a, b))
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_OVERLAP, what, 0.0, 1.0, 0.0);
}

enum posenc_status posenc_check_apart(struct span a, struct span b, const char *what,
                                      struct posenc_error *error)
{
    return meet(a, b) ? posenc_refuse(error, POSENC_ERR_OVERLAP, what, 0.0, 1.0, 0.0)
                      : POSENC_OK;
}

enum posenc_status posenc_check_arrays(const void *data, int64_t rows, int64_t stride,
                                       int64_t n, size_t item, const char *what,
                                       struct span *span, struct posenc_error *error)
{
    const int64_t shape[2] = { rows, n }, strides[2] = { stride, 1 };
    if (!data)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, what, 0.0, 1.0, 0.0);
    if ((uintptr_t)data % item != 0)
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, what, (double)((uintptr_t)data % item),
                             0.0, 0.0);
    if (!find_span(data, (int64_t)item, 2, shape, strides, span))
        return posenc_refuse(error, POSENC_ERR_OVERFLOW,
                             "extent of slopes, an index or thresholds in bytes",
                             (double)UINTPTR_MAX, 0.0, (double)PTRDIFF_MAX);
    return POSENC_OK;
}

enum posenc_status posenc_check_array(const void *data, int64_t n, size_t item,
                                      const char *what, struct span *span,
                                      struct posenc_error *error)
{
    return posenc_check_arrays(data, 1, 0, n, item, what, span, error);
}

enum posenc_status posenc_check_index(const int32_t *index, int64_t n, int64_t end,
                                      struct span out_span, struct posenc_error *error)
{
    struct span span;
    enum posenc_status status = posenc_check_array(index, n, sizeof *index,
                                                   "index (NULL or not aligned)", &span, error);
    if (!status)
        status = posenc_check_apart(span, out_span, "index (overlaps out)", error);
    if (status)
        return status;
    /* Bit 31 of i is set if i < 0, that of last - i if i > last. Without a branch the loop is vectorised. */
    const uint32_t last = end - 1 < INT32_MAX ? (uint32_t)(end - 1) : (uint32_t)INT32_MAX;
    uint32_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint32_t)index[i] | (last - (uint32_t)index[i]);
    for (int64_t i = 0; outside >> 31 && i < n; i++)
        if (index[i] < 0 || index[i] >= end)
            return posenc_refuse(error, POSENC_ERR_POSITION,
                                 "an index (rows or columns - 1 at most)", index[i], 0.0,
                                 (double)(end - 1));
    return POSENC_OK;
}

static inline int64_t position_at(const struct posenc_positions *p,
                                  enum posenc_position_kind kind, int64_t b, int64_t t)
{
    int64_t index = b * p->stride_batch + t * p->stride_token;
    return kind == POSENC_POSITIONS_I32 ? ((const int32_t *)p->data)[index]
                                        : ((const int64_t *)p->data)[index];
}

/* Returns true if all times are finite and in range; otherwise *culprit is the first wrong one. */
static bool scan_times(const struct posenc_positions *p, int64_t batch, int64_t tokens,
                       int64_t least, int64_t most, double *culprit)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < tokens; t++) {
            *culprit =
                (double)((const float *)p->data)[b * p->stride_batch + t * p->stride_token];
            if (!(*culprit >= (double)least && *culprit <= (double)most))
                return false;
        }
    return true;
}

/* Returns true if all integers are in range; otherwise *culprit is the first wrong one. The caller
 * passes a constant as `kind`. */
static inline bool scan_integers(const struct posenc_positions *p,
                                 enum posenc_position_kind kind, int64_t batch, int64_t tokens,
                                 int64_t least, int64_t most, int64_t *culprit)
{
    for (int64_t b = 0; b < batch; b++) {
        int outside = 0;
        for (int64_t t = 0; t < tokens; t++) {
            int64_t position = position_at(p, kind, b, t);
            outside |= (position < least) | (position > most);
        }
        for (int64_t t = 0; outside && t < tokens; t++) {
            *culprit = position_at(p, kind, b, t);
            if (*culprit < least || *culprit > most)
                return false;
        }
    }
    return true;
}

static enum posenc_status check_offset(int64_t offset, int64_t tokens, int64_t least,
                                       int64_t most, const char *what,
                                       struct posenc_error *error)
{
    if (offset < least || offset > most)
        return posenc_refuse(error, POSENC_ERR_POSITION, what, (double)offset, (double)least,
                             (double)most);
    if (tokens - 1 > most - offset)
        return posenc_refuse(error, POSENC_ERR_POSITION, what, (double)(offset + tokens - 1),
                             (double)least, (double)most);
    return POSENC_OK;
}

static enum posenc_status refuse_extent(struct posenc_error *error)
{
    return posenc_refuse(error, POSENC_ERR_OVERFLOW, "extent of the positions in bytes",
                         (double)UINTPTR_MAX, 0.0, (double)PTRDIFF_MAX);
}

enum posenc_status posenc_check_axes(const struct posenc_positions *positions, int32_t axes,
                                     int64_t batch, int64_t tokens, struct posenc_error *error)
{
    struct span span;
    const int64_t shape[3] = { axes, batch, tokens };
    const int64_t stride[3] = { positions->stride_axis, positions->stride_batch,
                                positions->stride_token };
    const int64_t item = (int64_t)posenc_position_size(positions->kind);
    return find_span(positions->data, item, 3, shape, stride, &span) ? POSENC_OK
                                                                     : refuse_extent(error);
}

enum posenc_status posenc_check_positions(const struct posenc_positions *positions,
                                          int64_t batch, int64_t tokens, int64_t least,
                                          int64_t most, const char *what, struct span *span,
                                          struct posenc_error *error)
{
    enum posenc_position_kind kind = positions->kind;
    *span = (struct span){ 0, 0 };
    if (kind == POSENC_OFFSET)
        return check_offset(positions->offset, tokens, least, most, what, error);
    enum posenc_position_kind last = least < 0 ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64;
    if ((unsigned)kind > (unsigned)last) /* rows of a table have no fractions */
        return posenc_refuse(error, POSENC_ERR_ARGUMENT, "kind of the positions", (double)kind,
                             POSENC_OFFSET, last);
    size_t item = posenc_position_size(kind);
    enum posenc_status status = posenc_check_array(
        positions->data, 1, item, "data of the positions (NULL or not aligned)", span, error);
    if (status)
        return status;
    const int64_t shape[2] = { batch, tokens };
    const int64_t stride[2] = { positions->stride_batch, positions->stride_token };
    if (!find_span(positions->data, (int64_t)item, 2, shape, stride, span))
        return refuse_extent(error);
    int64_t rows = positions->stride_batch == 0 ? 1 : batch, culprit = 0;
    double time = 0.0;
    bool fine =
        kind == POSENC_POSITIONS_F32   ? scan_times(positions, rows, tokens, least, most, &time)
        : kind == POSENC_POSITIONS_I32 ? scan_integers(positions, POSENC_POSITIONS_I32, rows,
                                                       tokens, least, most, &culprit)
                                       : scan_integers(positions, POSENC_POSITIONS_I64, rows,
                                                       tokens, least, most, &culprit);
    if (fine)
        return POSENC_OK;
    return posenc_refuse(error, POSENC_ERR_POSITION, what,
                         kind == POSENC_POSITIONS_F32 ? time : (double)culprit, (double)least,
                         (double)most);
}
