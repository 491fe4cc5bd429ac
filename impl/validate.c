/*
 * Checks of tensors, arrays and positions, before anything is written (see validate.h).
 *
 * Elements of a strided tensor are distinct if, with the dimensions sorted by |stride|, each stride is at least the
 * extent of all dimensions below it: 1 + sum of |stride| (size - 1). The condition is sufficient, not necessary.
 */
#include "validate.h"

#include <stdlib.h>
#include <string.h>

const char posenc_positions_extent[] = "extent of the positions in bytes";

enum { MAX_RANK = 4 };
static const int64_t max_size = INT32_MAX; /* of one dimension */

enum posenc_status posenc_reject_extent(struct posenc_error *error, const char *what)
{
    return reject_range(error, POSENC_ERR_OVERFLOW, what, (double)UINTPTR_MAX, 0.0,
                        (double)PTRDIFF_MAX);
}

/* Computes the span of an array of n dimensions whose first element is at `data`. Returns false if it exceeds the
 * address space. */
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

/* Returns true if the condition above holds for n <= MAX_RANK + 1 dimensions. find_span() must have succeeded, so that
 * nothing overflows. */
static bool has_distinct_elements(int n, const int64_t *shape, const int64_t *stride)
{
    int64_t sorted[MAX_RANK + 1], sizes[MAX_RANK + 1];
    int count = 0;
    /* Insertion sort from the last dimension on: a row-major tensor needs no moves. */
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

/* Checks rank, dtype and sizes. *empty becomes true if there are no elements. */
static enum posenc_status check_form(const struct posenc_const_tensor *t,
                                     const struct tensor_rule *rule, bool *empty,
                                     struct posenc_error *error)
{
    const struct tensor_names *names = rule->names;
    if ((t->reserved[0] | t->reserved[1]) != 0)
        return reject(error, POSENC_ERR_ARGUMENT, names->reserved);
    if (t->rank < rule->min_rank || t->rank > rule->max_rank)
        return reject_range(error, POSENC_ERR_SHAPE, names->rank, t->rank, rule->min_rank,
                            rule->max_rank);
    enum posenc_dtype last_dtype = rule->any_dtype ? POSENC_DTYPE_BF16 : POSENC_DTYPE_F32;
    if ((unsigned)t->dtype > (unsigned)last_dtype)
        return reject_range(error, POSENC_ERR_DTYPE, names->dtype, (double)t->dtype,
                            POSENC_DTYPE_F32, (double)last_dtype);
    *empty = false;
    for (int i = 0; i < t->rank; i++) {
        bool last = i == t->rank - 1;
        int64_t least = last ? rule->min_last : 0;
        if (t->shape[i] < least || t->shape[i] > max_size)
            return reject_range(error, POSENC_ERR_SHAPE, last ? names->last : names->size,
                                (double)t->shape[i], (double)least, (double)max_size);
        *empty |= t->shape[i] == 0;
    }
    return POSENC_OK;
}

/* Accepts a row-major tensor in one pass, as checks are a large part of a decoding step. Data must be aligned, no size
 * 0, no stride negative or above 2^30. In an output, each dimension must enclose the inner ones, so that elements are
 * distinct. Any other tensor needs the full checks. */
static inline bool passes_fast_check(const void *data, enum posenc_dtype dtype, int rank,
                                     const int64_t *shape, int64_t *stride,
                                     const int64_t *reserved, const struct tensor_rule *rule,
                                     bool is_output, struct checked_tensor *checked)
{
    const uint64_t max_stride = UINT64_C(1) << 30, max_extent = UINT64_C(1) << 40;
    uintptr_t first = (uintptr_t)data;
    int last = rank - 1;
    if (rank < rule->min_rank || rank > rule->max_rank ||
        (unsigned)dtype > (unsigned)(rule->any_dtype ? POSENC_DTYPE_BF16 : POSENC_DTYPE_F32))
        return false;
    /* Unsigned, as sizes and strides that are too large wrap. They fail one of the conditions. */
    uint64_t extent = (uint64_t)shape[last];
    bool passes = (shape[last] >= 1) & (shape[last] >= rule->min_last) &
                  (shape[last] <= max_size) & ((shape[last] == 1) | (stride[last] == 1)) &
                  ((reserved[0] | reserved[1]) == 0);
    stride[last] = passes ? 1 : stride[last];
    for (int i = last - 1; i >= 0; i--) {
        uint64_t n = (uint64_t)shape[i], step = n == 1 ? 0 : (uint64_t)stride[i];
        passes &= (n - 1 < (uint64_t)max_size) & (step <= max_stride) &
                  (!is_output | (n == 1) | (step >= extent));
        extent += step * (n - 1);
        stride[i] = (int64_t)step; /* the full checks do the same */
    }
    size_t item = posenc_dtype_size(dtype), bytes = (size_t)extent * item;
    *checked = (struct checked_tensor){ { first, first + bytes }, false };
    return passes & (extent <= max_extent) & (first != 0) & ((first & (item - 1)) == 0) &
           (bytes <= UINTPTR_MAX - first);
}

static enum posenc_status check_input_fully(struct posenc_const_tensor *tensor,
                                            const struct tensor_rule *rule,
                                            struct checked_tensor *checked,
                                            struct posenc_error *error)
{
    const struct tensor_names *names = rule->names;
    *checked = (struct checked_tensor){ { 0, 0 }, false };
    enum posenc_status status = check_form(tensor, rule, &checked->empty, error);
    if (status || checked->empty)
        return status;
    if (!tensor->data)
        return reject(error, POSENC_ERR_ARGUMENT, names->data);
    size_t item = posenc_dtype_size(tensor->dtype);
    if ((uintptr_t)tensor->data % item != 0)
        return reject_range(error, POSENC_ERR_ARGUMENT, names->alignment,
                            (double)((uintptr_t)tensor->data % item), 0.0, 0.0);
    int last = tensor->rank - 1;
    if (tensor->shape[last] > 1 && tensor->stride[last] != 1)
        return reject_range(error, POSENC_ERR_STRIDE, names->stride,
                            (double)tensor->stride[last], 1.0, 1.0);
    for (int i = 0; i < last; i++)
        if (tensor->shape[i] == 1)
            tensor->stride[i] = 0;
    tensor->stride[last] = 1;
    if (!find_span(tensor->data, (int64_t)item, tensor->rank, tensor->shape, tensor->stride,
                   &checked->span))
        return posenc_reject_extent(error, names->bytes);
    return POSENC_OK;
}

enum posenc_status posenc_check_input(struct posenc_const_tensor *tensor,
                                      const struct tensor_rule *rule,
                                      struct checked_tensor *checked,
                                      struct posenc_error *error)
{
    if (passes_fast_check(tensor->data, tensor->dtype, tensor->rank, tensor->shape,
                          tensor->stride, tensor->reserved, rule, false, checked))
        return POSENC_OK;
    return check_input_fully(tensor, rule, checked, error);
}

enum posenc_status posenc_check_output(struct posenc_tensor *tensor,
                                       const struct tensor_rule *rule,
                                       struct checked_tensor *checked,
                                       struct posenc_error *error)
{
    if (passes_fast_check(tensor->data, tensor->dtype, tensor->rank, tensor->shape,
                          tensor->stride, tensor->reserved, rule, true, checked))
        return POSENC_OK;
    struct posenc_const_tensor view = posenc_const_view(*tensor);
    enum posenc_status status = check_input_fully(&view, rule, checked, error);
    if (status || checked->empty)
        return status;
    memcpy(tensor->stride, view.stride, sizeof tensor->stride);
    if (!has_distinct_elements(tensor->rank, tensor->shape, tensor->stride))
        return reject(error, POSENC_ERR_STRIDE, rule->names->strides);
    return POSENC_OK;
}

static bool have_same_strides(const struct posenc_const_tensor *a,
                              const struct posenc_tensor *b)
{
    bool same = true;
    for (int i = 0; i < a->rank; i++)
        same &= a->stride[i] == b->stride[i];
    return same;
}

/* Returns true if two tensors of one dtype interleave without sharing an element, as cosines and
 * sines in one [tokens, 2, half] array do: they form one tensor with a further dimension, and its
 * elements are distinct. */
static bool are_interleaved(const struct posenc_const_tensor *a, const struct posenc_tensor *b)
{
    int64_t shape[MAX_RANK + 1] = { 2 };
    int64_t bytes = (int64_t)((uintptr_t)b->data - (uintptr_t)a->data);
    int64_t stride[MAX_RANK + 1] = { bytes / (int64_t)posenc_dtype_size(a->dtype) };
    for (int i = 0; i < a->rank; i++) {
        shape[i + 1] = a->shape[i];
        stride[i + 1] = a->stride[i];
    }
    return have_same_strides(a, b) && has_distinct_elements(a->rank + 1, shape, stride);
}

enum posenc_status posenc_check_overlap(const struct posenc_const_tensor *a, struct span a_span,
                                        const struct posenc_tensor *b, struct span b_span,
                                        bool may_be_same, const char *what,
                                        struct posenc_error *error)
{
    if (!posenc_spans_overlap(a_span, b_span) ||
        (may_be_same && a->data == b->data && have_same_strides(a, b)) || are_interleaved(a, b))
        return POSENC_OK;
    return reject(error, POSENC_ERR_OVERLAP, what);
}

bool posenc_are_apart(const struct posenc_tensor *a, const struct posenc_tensor *b)
{
    const struct posenc_tensor *tensors[2] = { a, b };
    for (unsigned outer = 0; outer < 4; outer++) { /* bit d: dimension d is outside the spans */
        int64_t sizes[3], steps[3] = { 0, 0, 1 };
        struct span spans[2];
        bool fits = true;
        for (int i = 0; i < 2; i++) {
            const struct posenc_tensor *t = tensors[i];
            const int64_t item = (int64_t)posenc_dtype_size(t->dtype);
            int64_t shape[MAX_RANK];
            memcpy(shape, t->shape, sizeof shape);
            for (int d = 0; d < 2; d++) {
                sizes[d] = outer >> d & 1 ? t->shape[d] : 1;
                shape[d] = outer >> d & 1 ? 1 : t->shape[d];
                fits &= i == 0 || sizes[d] == 1 || steps[d] == t->stride[d] * item;
                steps[d] = t->stride[d] * item;
            }
            fits &= find_span(t->data, item, MAX_RANK, shape, t->stride, &spans[i]);
        }
        const uintptr_t first =
                            spans[0].first < spans[1].first ? spans[0].first : spans[1].first,
                        end = spans[0].end > spans[1].end ? spans[0].end : spans[1].end;
        sizes[2] = (int64_t)(end - first);
        if (fits && !posenc_spans_overlap(spans[0], spans[1]) &&
            (!outer || has_distinct_elements(3, sizes, steps)))
            return true;
    }
    return false;
}

enum posenc_status posenc_check_disjoint(struct span a, struct span b, const char *what,
                                         struct posenc_error *error)
{
    return posenc_spans_overlap(a, b) ? reject(error, POSENC_ERR_OVERLAP, what) : POSENC_OK;
}

enum posenc_status posenc_check_arrays(const void *data, int64_t rows, int64_t stride,
                                       int64_t n, size_t item, const char *what,
                                       struct span *span, struct posenc_error *error)
{
    const int64_t shape[2] = { rows, n }, strides[2] = { stride, 1 };
    if (!data)
        return reject(error, POSENC_ERR_ARGUMENT, what);
    if ((uintptr_t)data % item != 0)
        return reject_range(error, POSENC_ERR_ARGUMENT, what, (double)((uintptr_t)data % item),
                            0.0, 0.0);
    if (!find_span(data, (int64_t)item, 2, shape, strides, span))
        return posenc_reject_extent(error, "extent of an array in bytes");
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
        status = posenc_check_disjoint(span, out_span, "index (overlaps out)", error);
    if (status)
        return status;
    /* Bit 31 of i is set if i < 0, and bit 31 of last - i if i > last. The loop has no branch, so that compilers
     * vectorise it. */
    const uint32_t last = end - 1 < INT32_MAX ? (uint32_t)(end - 1) : (uint32_t)INT32_MAX;
    uint32_t outside = 0;
    for (int64_t i = 0; i < n; i++)
        outside |= (uint32_t)index[i] | (last - (uint32_t)index[i]);
    for (int64_t i = 0; outside >> 31 && i < n; i++)
        if (index[i] < 0 || index[i] >= end)
            return reject_range(error, POSENC_ERR_POSITION,
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

/* Returns true if all times are finite and in range. Otherwise *rejected is the first that is not. */
static bool scan_times(const struct posenc_positions *p, int64_t batch, int64_t tokens,
                       const struct position_range *range, double *rejected)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < tokens; t++) {
            *rejected =
                (double)((const float *)p->data)[b * p->stride_batch + t * p->stride_token];
            if (!(*rejected >= (double)range->least && *rejected <= (double)range->most))
                return false;
        }
    return true;
}

/* Returns true if all integers are in range. Otherwise *rejected is the first that is not. Callers pass a constant as
 * `kind`, so that the loop is specialised. */
static inline bool scan_integers(const struct posenc_positions *p,
                                 enum posenc_position_kind kind, int64_t batch, int64_t tokens,
                                 const struct position_range *range, int64_t *rejected)
{
    const int64_t least = range->least, most = range->most;
    for (int64_t b = 0; b < batch; b++) {
        int outside = 0;
        for (int64_t t = 0; t < tokens; t++) {
            int64_t position = position_at(p, kind, b, t);
            outside |= (position < least) | (position > most);
        }
        for (int64_t t = 0; outside && t < tokens; t++) {
            *rejected = position_at(p, kind, b, t);
            if (*rejected < least || *rejected > most)
                return false;
        }
    }
    return true;
}

static enum posenc_status reject_position(struct posenc_error *error, double position,
                                          const struct position_range *range)
{
    return reject_range(error, POSENC_ERR_POSITION, range->what, position, (double)range->least,
                        (double)range->most);
}

static enum posenc_status check_offset(int64_t offset, int64_t tokens,
                                       const struct position_range *range,
                                       struct posenc_error *error)
{
    if (offset < range->least || offset > range->most)
        return reject_position(error, (double)offset, range);
    if (tokens - 1 > range->most - offset)
        return reject_position(error, (double)(offset + tokens - 1), range);
    return POSENC_OK;
}

enum posenc_status posenc_check_axes(const struct posenc_positions *positions, int32_t axes,
                                     int64_t batch, int64_t tokens, struct posenc_error *error)
{
    struct span span;
    const int64_t shape[3] = { axes, batch, tokens };
    const int64_t stride[3] = { positions->stride_axis, positions->stride_batch,
                                positions->stride_token };
    const int64_t item = (int64_t)posenc_position_size(positions->kind);
    return find_span(positions->data, item, 3, shape, stride, &span)
               ? POSENC_OK
               : posenc_reject_extent(error, posenc_positions_extent);
}

enum posenc_status posenc_check_positions(const struct posenc_positions *positions,
                                          int64_t batch, int64_t tokens,
                                          const struct position_range *range, struct span *span,
                                          struct posenc_error *error)
{
    enum posenc_position_kind kind = positions->kind;
    *span = (struct span){ 0, 0 };
    if ((positions->reserved[0] | positions->reserved[1]) != 0)
        return reject(error, POSENC_ERR_ARGUMENT, "reserved members of the positions (not 0)");
    if (kind == POSENC_POSITIONS_OFFSET)
        return check_offset(positions->offset, tokens, range, error);
    enum posenc_position_kind last =
        range->has_fractions ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64;
    if ((unsigned)kind > (unsigned)last)
        return reject_range(error, POSENC_ERR_ARGUMENT, "kind of the positions", (double)kind,
                            POSENC_POSITIONS_OFFSET, last);
    size_t item = posenc_position_size(kind);
    enum posenc_status status = posenc_check_array(
        positions->data, 1, item, "data of the positions (NULL or not aligned)", span, error);
    if (status)
        return status;
    const int64_t shape[2] = { batch, tokens };
    const int64_t stride[2] = { positions->stride_batch, positions->stride_token };
    if (!find_span(positions->data, (int64_t)item, 2, shape, stride, span))
        return posenc_reject_extent(error, posenc_positions_extent);
    int64_t rows = positions->stride_batch == 0 ? 1 : batch, rejected = 0;
    double time = 0.0;
    bool passes =
        kind == POSENC_POSITIONS_F32 ? scan_times(positions, rows, tokens, range, &time)
        : kind == POSENC_POSITIONS_I32
            ? scan_integers(positions, POSENC_POSITIONS_I32, rows, tokens, range, &rejected)
            : scan_integers(positions, POSENC_POSITIONS_I64, rows, tokens, range, &rejected);
    if (passes)
        return POSENC_OK;
    return reject_position(error, kind == POSENC_POSITIONS_F32 ? time : (double)rejected,
                           range);
}
