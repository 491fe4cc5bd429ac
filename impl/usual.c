/*
 * The usual rotation, at a glance: what a step of decoding asks for, where all else is overhead.
 *
 * posenc_usual_rope() looks at everything that posenc_check_rope() does and says yes only where
 * that would accept; it computes nothing else, for calls whose tensors are laid out in the
 * usual way: outer dimensions enclose the inner ones, no stride is negative, x is out or a
 * tensor apart, cos and sin are alike. Of any other call it says no, and the checks look again,
 * one thing after the other, and name what is wrong.
 *
 * It reads the caller's arguments and never what it wrote itself: a load of what has just been
 * stored in other portions waits until the stores have left the core.
 */
#include "checks.h"

#include <stddef.h>
#include <string.h>

#define RARELY(condition) __builtin_expect(!!(condition), 0)
#define INLINE            static inline __attribute__((always_inline))

/* A tensor so far. `elements` from the first to the last; `large` has the bits of each
 * size - 1 and stride: where those are below 2^30 no product wrapped, which is asked once. */
struct extent {
    uint64_t elements, large;
};

/* The last dimension, of stride 1. */
INLINE bool begin(struct extent *extent, int64_t size, int64_t stride)
{
    *extent = (struct extent){ (uint64_t)size, (uint64_t)size - 1 };
    return stride == 1;
}

/* A dimension around those so far: false where it does not enclose them. `*step`: its stride
 * as kernels are told, 0 for one of size 1. */
INLINE bool enclose(struct extent *extent, int64_t size, int64_t stride, int64_t *step)
{
    if (size == 1) {
        *step = 0;
        return true;
    }
    uint64_t steps = (uint64_t)size - 1, by = (uint64_t)stride;
    bool fine = by >= extent->elements;
    extent->large |= steps | by;
    extent->elements += steps * by;
    *step = stride;
    return fine;
}

/* Bytes and addresses below half of the address space: then the sum of two does not wrap. */
enum { HALF_BITS = 8 * sizeof(uintptr_t) - 1 };

/* Returns true if a size wrapped, or may wrap when bytes are counted. */
INLINE bool are_large(struct extent a, struct extent b)
{
    return (((a.large | b.large) >> 30) | ((a.elements | b.elements) >> (HALF_BITS - 2))) != 0;
}

INLINE uintptr_t bytes_of(struct extent extent, enum posenc_dtype dtype)
{
    return (uintptr_t)(extent.elements * posenc_dtype_size(dtype));
}

INLINE bool are_apart(uintptr_t a, uintptr_t a_bytes, uintptr_t b, uintptr_t b_bytes)
{
    return (a + a_bytes <= b) || (b + b_bytes <= a);
}

/* Strides of activations as kernels are told, of rank 4. */
struct steps {
    int64_t batch, token, head;
};

/* Activations of rank 3 or 4: `at`, a constant of the caller's, is the dimension of the tokens. */
INLINE bool take(const int64_t *shape, const int64_t *stride, int at, struct extent *extent,
                 struct steps *steps)
{
    steps->batch = 0;
    return begin(extent, shape[at + 2], stride[at + 2]) &&
           enclose(extent, shape[at + 1], stride[at + 1], &steps->head) &&
           enclose(extent, shape[at], stride[at], &steps->token) &&
           (at == 0 || enclose(extent, shape[0], stride[0], &steps->batch));
}

/* Two members with one store: those of a kernel before it may still queue. */
INLINE void put_two(int64_t *to, int64_t first, int64_t second)
{
    typedef int64_t two __attribute__((vector_size(16), aligned(8), may_alias));
    *(two *)to = (two){ first, second };
}

INLINE void put(const int64_t *shape, int at, struct steps steps, int64_t *to_shape,
                int64_t *to_stride)
{
    to_shape[0] = at == 0 ? 1 : shape[0];
    memcpy(to_shape + 1, shape + at, 2 * sizeof *shape);
    to_shape[3] = shape[at + 2];
    put_two(to_stride, steps.batch, steps.token);
    put_two(to_stride + 2, steps.head, 1);
}

INLINE bool same(const int64_t *a, const int64_t *b, int at)
{
    return (a[at] == b[at]) && (a[at + 1] == b[at + 1]) && (a[at + 2] == b[at + 2]) &&
           (at == 0 || a[0] == b[0]);
}

/* cos or sin. Sizes 1 and 2 are stored at once, as by put(), for kernels load them so, and a load
 * that several stores have to answer waits for the last of them. */
INLINE void put_angles(const struct posenc_const_tensor *angles, int64_t step,
                       struct posenc_const_tensor *to)
{
    memcpy(to, angles, offsetof(struct posenc_const_tensor, shape));
    to->shape[0] = angles->shape[0];
    memcpy(to->shape + 1, angles->shape + 1, 2 * sizeof *to->shape);
    put_two(to->stride, step, 1);
}

/* x where it is not out: apart from it. */
static __attribute__((noinline)) bool take_apart(const struct posenc_rope_args *args, int at,
                                                 uintptr_t out_bytes,
                                                 struct posenc_rope_args *call)
{
    const struct posenc_const_tensor *x = &args->x;
    struct extent extent;
    struct steps steps;
    if (!take(x->shape, x->stride, at, &extent, &steps) || are_large(extent, extent) ||
        !are_apart((uintptr_t)x->data, bytes_of(extent, x->dtype), (uintptr_t)args->out.data,
                   out_bytes))
        return false;
    put(x->shape, at, steps, call->x.shape, call->x.stride);
    return true;
}

/* cos and sin: of one type, shape and stride. */
INLINE bool take_angles(const struct posenc_const_tensor *cos,
                        const struct posenc_const_tensor *sin, struct extent *extent,
                        int64_t *step)
{
    return (cos->rank == 2) && (sin->rank == 2) && (cos->dtype == sin->dtype) &&
           ((unsigned)cos->dtype <= POSENC_BF16) && (cos->shape[0] == sin->shape[0]) &&
           (cos->shape[1] == sin->shape[1]) && (cos->stride[0] == sin->stride[0]) &&
           (cos->stride[1] == sin->stride[1]) && begin(extent, cos->shape[1], cos->stride[1]) &&
           enclose(extent, cos->shape[0], cos->stride[0], step);
}

/* Data that is there, where no end wraps, aligned (for f32, whatever it is), cos and sin apart from out. */
INLINE bool are_placed(const struct posenc_rope_args *args, uintptr_t bytes,
                       uintptr_t angle_bytes)
{
    uintptr_t out = (uintptr_t)args->out.data, x = (uintptr_t)args->x.data;
    uintptr_t cos = (uintptr_t)args->cos.data, sin = (uintptr_t)args->sin.data;
    return (((out - 1) | (x - 1) | (cos - 1) | (sin - 1)) >> HALF_BITS) == 0 &&
           ((out | x | cos | sin) & (sizeof(float) - 1)) == 0 &&
           are_apart(cos, angle_bytes, out, bytes) && are_apart(sin, angle_bytes, out, bytes);
}

/* The channels that turn, and the rows of the positions. */
INLINE bool are_in_range(const struct posenc_rope_args *args, int at)
{
    int64_t channels = args->out.shape[at + 2] - 2 * args->cos.shape[1];
    int64_t rows = args->cos.shape[0] - args->out.shape[at];
    return (args->rotary_offset >= 0) && (args->rotary_offset <= channels) &&
           (args->positions.offset >= 0) && (args->positions.offset <= rows);
}

INLINE bool glance(const struct posenc_rope_args *args, int at, struct posenc_rope_args *call,
                   struct accepted *accepted)
{
    const struct posenc_tensor *out = &args->out;
    const struct posenc_const_tensor *x = &args->x;
    struct extent extent, angles;
    struct steps steps;
    int64_t step;
    if (RARELY((args->positions.kind != POSENC_OFFSET) ||
               ((unsigned)out->dtype > POSENC_BF16) || (x->rank != out->rank) ||
               (x->dtype != out->dtype) || !same(x->shape, out->shape, at) ||
               !take(out->shape, out->stride, at, &extent, &steps)))
        return false;
    put(out->shape, at, steps, call->x.shape, call->x.stride);
    put(out->shape, at, steps, call->out.shape, call->out.stride);
    if (RARELY(!take_angles(&args->cos, &args->sin, &angles, &step) ||
               are_large(extent, angles)))
        return false;
    uintptr_t bytes = bytes_of(extent, out->dtype);
    if (RARELY(!are_placed(args, bytes, bytes_of(angles, args->cos.dtype)) ||
               !are_in_range(args, at)))
        return false;
    memcpy(call, args, offsetof(struct posenc_rope_args, cos));
    put_angles(&args->cos, step, &call->cos);
    put_angles(&args->sin, step, &call->sin);
    memcpy(&call->x, x, offsetof(struct posenc_const_tensor, shape));
    memcpy(&call->out, out, offsetof(struct posenc_tensor, shape));
    call->x.rank = call->out.rank = 4;
    accepted->dtypes = (unsigned)out->dtype | (unsigned)args->cos.dtype;
    if (x->data != out->data)
        return take_apart(args, at, bytes, call);
    return same(x->stride, out->stride, at);
}

bool posenc_usual_rope(const void *given, void *to, struct accepted *accepted)
{
    const struct posenc_rope_args *args = given;
    if (args->size != sizeof *args) /* then `out` may lie beyond them */
        return false;
    if (args->out.rank == 3)
        return glance(args, 0, to, accepted);
    return args->out.rank == 4 && glance(args, 1, to, accepted);
}
