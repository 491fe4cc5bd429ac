/*
 * The usual rotation, at a glance: what a step of decoding asks for, where all else is overhead.
 *
 * posenc_usual_rope() looks at everything that posenc_check_rope() does and says yes only where
 * that would accept; it computes nothing else, for calls whose tensors are laid out in the
 * usual way: outer dimensions enclose the inner ones, no stride is negative, x is out or a
 * tensor apart, cos and sin are alike.  Of any other call it says no, and the checks look again,
 * one thing after the other, and name what is wrong.
 */
#include "checks.h"

enum { DIMS = 4 };

/* Where elements lie, as kernels are told: rank 4. */
struct lie {
    int64_t shape[DIMS], stride[DIMS];
    int64_t extent; /* elements from the first to the last */
};

/* `rank` is a constant of the caller's: 2 (a table), 3 or 4.  Sizes and strides are below 2^30
 * here, which is asked of all of them at once. */
static inline __attribute__((always_inline)) bool
lie_of(const int64_t *shape, const int64_t *stride, int rank, struct lie *lie)
{
    int front = rank == 2 ? 0 : DIMS - rank;
    int64_t last = shape[rank - 1];
    uint64_t extent = (uint64_t)last, large = extent - 1;
    lie->extent = 0; /* for gcc, which does not see that nobody reads it where we say no */
    if (last != 1 && stride[rank - 1] != 1)
        return false;
    for (int i = rank; i < DIMS; i++)
        lie->shape[i] = lie->stride[i] = 0; /* of a table */
    if (front == 1) {
        lie->shape[0] = 1;
        lie->stride[0] = 0;
    }
    lie->shape[front + rank - 1] = last;
    lie->stride[front + rank - 1] = 1;
    for (int i = rank - 2; i >= 0; i--) {
        uint64_t n = (uint64_t)shape[i], step = n == 1 ? 0 : (uint64_t)stride[i];
        if (n != 1 && step < extent)
            return false;
        large |= (n - 1) | step;
        extent += step * (n - 1);
        lie->shape[front + i] = (int64_t)n;
        lie->stride[front + i] = (int64_t)step;
    }
    lie->extent = (int64_t)extent;
    return large >> 30 == 0; /* then extent is below 2^62 */
}

static inline bool is_aligned(const void *data, size_t item)
{
    return (data != NULL) && (((uintptr_t)data & (item - 1)) == 0);
}

/* The bytes of a tensor; false where they do not fit. */
static inline bool span_of(const void *data, int64_t extent, size_t item, struct span *span)
{
    const int64_t most_extent = INT64_C(1) << 40;
    uintptr_t first = (uintptr_t)data, bytes = (uintptr_t)extent * item;
    *span = (struct span){ first, first + bytes };
    return (extent <= most_extent) && (span->end > first);
}

static inline bool are_apart(struct span a, struct span b)
{
    return (a.end <= b.first) || (b.end <= a.first);
}

/* All four, used or not: where unused ones differ the call is not the usual one. */
static inline bool same_four(const int64_t *a, const int64_t *b)
{
    return ((a[0] ^ b[0]) || (a[1] ^ b[1]) || (a[2] ^ b[2]) || (a[3] ^ b[3])) == 0;
}

static inline bool same_two(const int64_t *a, const int64_t *b)
{
    return ((a[0] ^ b[0]) || (a[1] ^ b[1])) == 0;
}

static inline void put_four(int64_t *to, const int64_t *from)
{
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
}

/* Shape, type and rank of x are those of out, and it lies where out does or apart. */
static inline bool take_x(const struct posenc_rope_args *args, const struct lie *out,
                          struct span out_span, struct posenc_const_tensor *x)
{
    const struct posenc_const_tensor *given = &args->x;
    if ((given->rank != args->out.rank) || (given->dtype != args->out.dtype) ||
        !same_four(given->shape, args->out.shape))
        return false;
    put_four(x->shape, out->shape);
    put_four(x->stride, out->stride);
    if (given->data == args->out.data)
        return same_four(given->stride, args->out.stride);
    struct lie lie;
    struct span span;
    if (!(given->rank == 3 ? lie_of(given->shape, given->stride, 3, &lie)
                           : lie_of(given->shape, given->stride, 4, &lie)))
        return false;
    put_four(x->stride, lie.stride);
    size_t item = posenc_dtype_size(given->dtype);
    return span_of(given->data, lie.extent, item, &span) && is_aligned(given->data, item) &&
           are_apart(span, out_span);
}

/* cos and sin: of one type, shape and stride, apart from out. */
static inline bool take_angles(const struct posenc_rope_args *args, struct span out_span,
                               struct posenc_rope_args *call)
{
    const struct posenc_const_tensor *cos = &args->cos, *sin = &args->sin;
    struct lie lie;
    struct span cosines, sines;
    if ((cos->rank != 2) || (sin->rank != 2) || (cos->dtype != sin->dtype) ||
        ((unsigned)cos->dtype > POSENC_BF16))
        return false;
    size_t item = posenc_dtype_size(cos->dtype);
    if (!same_two(cos->shape, sin->shape) || !same_two(cos->stride, sin->stride) ||
        !lie_of(cos->shape, cos->stride, 2, &lie) || !is_aligned(cos->data, item) ||
        !is_aligned(sin->data, item) || !span_of(cos->data, lie.extent, item, &cosines) ||
        !span_of(sin->data, lie.extent, item, &sines) || !are_apart(cosines, out_span) ||
        !are_apart(sines, out_span))
        return false;
    call->cos.data = cos->data;
    call->sin.data = sin->data;
    call->cos.dtype = call->sin.dtype = cos->dtype;
    call->cos.rank = call->sin.rank = 2;
    put_four(call->cos.shape, lie.shape);
    put_four(call->sin.shape, lie.shape);
    put_four(call->cos.stride, lie.stride);
    put_four(call->sin.stride, lie.stride);
    return true;
}

bool posenc_usual_rope(const void *given, void *to, struct accepted *accepted)
{
    const struct posenc_rope_args *args = given;
    struct posenc_rope_args *call = to;
    int rank = args->out.rank;
    struct lie lie;
    struct span span;
    if ((args->size != sizeof *args) || (args->positions.kind != POSENC_OFFSET) ||
        ((rank != 3) && (rank != 4)) || ((unsigned)args->out.dtype > POSENC_BF16))
        return false;
    size_t item = posenc_dtype_size(args->out.dtype);
    if (!(rank == 3 ? lie_of(args->out.shape, args->out.stride, 3, &lie)
                    : lie_of(args->out.shape, args->out.stride, 4, &lie)) ||
        !span_of(args->out.data, lie.extent, item, &span) ||
        !is_aligned(args->out.data, item) || !take_x(args, &lie, span, &call->x) ||
        !take_angles(args, span, call))
        return false;
    int64_t rotary_dim = 2 * call->cos.shape[1], tokens = lie.shape[1];
    int64_t offset = args->positions.offset;
    accepted->dtypes = args->out.dtype | args->cos.dtype;
    call->size = sizeof *call;
    call->error = args->error;
    call->transpose = args->transpose;
    call->rotary_offset = args->rotary_offset;
    call->positions = args->positions;
    call->out.data = args->out.data;
    call->x.data = args->x.data;
    call->out.dtype = call->x.dtype = args->out.dtype;
    call->out.rank = call->x.rank = DIMS;
    put_four(call->out.shape, lie.shape);
    put_four(call->out.stride, lie.stride);
    return (args->rotary_offset >= 0) && (args->rotary_offset <= lie.shape[3] - rotary_dim) &&
           (offset >= 0) && (offset <= call->cos.shape[0] - tokens);
}
