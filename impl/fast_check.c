/*
 * Fast check of rotations: in a decoding step the full checks would take a large part of the time.
 *
 * posenc_fast_check_rope() tests all conditions of posenc_check_rope(), for calls in the common layout:
 * each dimension encloses the inner ones, no stride is negative, x is out or disjoint from it, and cos and sin have the
 * same layout. It fails for all other calls; the full checks then accept them or report what is wrong.
 *
 * It reads the caller's arguments and never what it has just written: a load that is wider than a recent store fails
 * store-to-load forwarding and stalls.
 */
#include "checks.h"

#include <stddef.h>
#include <string.h>

#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define INLINE              static inline __attribute__((always_inline))

/* The layout of a tensor, from its last dimension outwards. */
struct layout {
    uint64_t elements; /* from the first to the last, gaps included */
    uint64_t factors;  /* each size - 1 and stride, ORed: below 2^30 no product wrapped */
};

/* Starts a layout. Returns false if the last dimension is not contiguous. */
INLINE bool add_last_dimension(struct layout *layout, int64_t size, int64_t stride)
{
    *layout = (struct layout){ (uint64_t)size, (uint64_t)size - 1 };
    return stride == 1;
}

/* Returns false if the dimension does not enclose those added before. *canonical becomes its stride, or 0 if its size
 * is 1. */
INLINE bool add_outer_dimension(struct layout *layout, int64_t size, int64_t stride,
                                int64_t *canonical)
{
    if (size == 1) {
        *canonical = 0;
        return true;
    }
    uint64_t steps = (uint64_t)size - 1, step = (uint64_t)stride;
    bool encloses = step >= layout->elements;
    layout->factors |= steps | step;
    layout->elements += steps * step;
    *canonical = stride;
    return encloses;
}

/* The sum of two numbers with at most this many bits does not wrap. */
enum { HALF_BITS = 8 * sizeof(uintptr_t) - 1 };

/* Returns true if the elements of a layout wrapped, or their bytes may. */
INLINE bool may_wrap(struct layout a, struct layout b)
{
    return (((a.factors | b.factors) >> 30) | ((a.elements | b.elements) >> (HALF_BITS - 2))) !=
           0;
}

INLINE uintptr_t layout_bytes(struct layout layout, enum posenc_dtype dtype)
{
    return (uintptr_t)(layout.elements * posenc_dtype_size(dtype));
}

INLINE bool are_disjoint(uintptr_t a, uintptr_t a_bytes, uintptr_t b, uintptr_t b_bytes)
{
    return (a + a_bytes <= b) || (b + b_bytes <= a);
}

/* Canonical strides of activations. */
struct outer_strides {
    int64_t batch, token, head;
};

/* Checks the layout of activations of rank 3 or 4. The dimension of the tokens, 0 or 1, is a constant at each call of
 * check_call(), so that compilers specialise the code. */
INLINE bool check_layout(const int64_t *shape, const int64_t *stride, int token_dim,
                         struct layout *layout, struct outer_strides *strides)
{
    strides->batch = 0;
    return add_last_dimension(layout, shape[token_dim + 2], stride[token_dim + 2]) &&
           add_outer_dimension(layout, shape[token_dim + 1], stride[token_dim + 1],
                               &strides->head) &&
           add_outer_dimension(layout, shape[token_dim], stride[token_dim], &strides->token) &&
           (token_dim == 0 ||
            add_outer_dimension(layout, shape[0], stride[0], &strides->batch));
}

/* Writes two members by one store, as the stores of the kernel before may still fill the store buffer. */
INLINE void store_two(int64_t *to, int64_t first, int64_t second)
{
    typedef int64_t two __attribute__((vector_size(16), aligned(8), may_alias));
    *(two *)to = (two){ first, second };
}

INLINE void write_layout(const int64_t *shape, int token_dim, struct outer_strides strides,
                         int64_t *to_shape, int64_t *to_stride)
{
    to_shape[0] = token_dim == 0 ? 1 : shape[0];
    memcpy(to_shape + 1, shape + token_dim, 2 * sizeof *shape);
    to_shape[3] = shape[token_dim + 2];
    store_two(to_stride, strides.batch, strides.token);
    store_two(to_stride + 2, strides.head, 1);
}

/* Compares shapes, or strides, of two activations. */
INLINE bool equal_dimensions(const int64_t *a, const int64_t *b, int token_dim)
{
    return (a[token_dim] == b[token_dim]) && (a[token_dim + 1] == b[token_dim + 1]) &&
           (a[token_dim + 2] == b[token_dim + 2]) && (token_dim == 0 || a[0] == b[0]);
}

/* Writes cos or sin. Sizes 1 and 2 are copied together, as in write_layout(), because kernels load them together, and a
 * load that spans two stores stalls. */
INLINE void write_angles(const struct posenc_const_tensor *angles, int64_t row_stride,
                         struct posenc_const_tensor *to)
{
    memcpy(to, angles, offsetof(struct posenc_const_tensor, shape));
    to->shape[0] = angles->shape[0];
    memcpy(to->shape + 1, angles->shape + 1, 2 * sizeof *to->shape);
    store_two(to->stride, row_stride, 1);
    store_two(to->reserved, 0, 0);
}

/* Checks an x that is not out, and writes it. */
static __attribute__((noinline)) bool check_disjoint_x(const struct posenc_rope_args *args,
                                                       int token_dim, uintptr_t out_bytes,
                                                       struct posenc_rope_args *call)
{
    const struct posenc_const_tensor *x = &args->x;
    struct layout layout;
    struct outer_strides strides;
    if (!check_layout(x->shape, x->stride, token_dim, &layout, &strides) ||
        may_wrap(layout, layout) ||
        !are_disjoint((uintptr_t)x->data, layout_bytes(layout, x->dtype),
                      (uintptr_t)args->out.data, out_bytes))
        return false;
    write_layout(x->shape, token_dim, strides, call->x.shape, call->x.stride);
    return true;
}

/* Checks that cos and sin have one dtype, shape and layout. */
INLINE bool check_tables(const struct posenc_const_tensor *cos,
                         const struct posenc_const_tensor *sin, struct layout *layout,
                         int64_t *row_stride)
{
    return (cos->rank == 2) && (sin->rank == 2) && (cos->dtype == sin->dtype) &&
           ((unsigned)cos->dtype <= POSENC_DTYPE_BF16) && (cos->shape[0] == sin->shape[0]) &&
           (cos->shape[1] == sin->shape[1]) && (cos->stride[0] == sin->stride[0]) &&
           (cos->stride[1] == sin->stride[1]) &&
           add_last_dimension(layout, cos->shape[1], cos->stride[1]) &&
           add_outer_dimension(layout, cos->shape[0], cos->stride[0], row_stride);
}

/* Checks that no address is NULL or may wrap, that all are aligned (for f32, whatever the dtype), and that cos and sin
 * are disjoint from out. */
INLINE bool check_addresses(const struct posenc_rope_args *args, uintptr_t x, uintptr_t bytes,
                            uintptr_t angle_bytes)
{
    uintptr_t out = (uintptr_t)args->out.data;
    uintptr_t cos = (uintptr_t)args->cos.data, sin = (uintptr_t)args->sin.data;
    return (((out - 1) | (x - 1) | (cos - 1) | (sin - 1)) >> HALF_BITS) == 0 &&
           ((out | x | cos | sin) & (sizeof(float) - 1)) == 0 &&
           are_disjoint(cos, angle_bytes, out, bytes) &&
           are_disjoint(sin, angle_bytes, out, bytes);
}

/* Returns true if all reserved members are 0. */
INLINE bool check_reserved(const struct posenc_rope_args *args)
{
    return (args->out.reserved[0] | args->out.reserved[1] | args->x.reserved[0] |
            args->x.reserved[1] | args->cos.reserved[0] | args->cos.reserved[1] |
            args->sin.reserved[0] | args->sin.reserved[1] | args->positions.reserved[0] |
            args->positions.reserved[1]) == 0;
}

/* Returns true if x has the dtype and the shape of out. */
INLINE bool have_same_form(const struct posenc_const_tensor *x, const struct posenc_tensor *out,
                           int token_dim)
{
    return (x->rank == out->rank) && (x->dtype == out->dtype) &&
           equal_dimensions(x->shape, out->shape, token_dim);
}

/* Checks the rotated channels and the positions. */
INLINE bool check_ranges(const struct posenc_rope_args *args, int token_dim)
{
    int64_t channels = args->out.shape[token_dim + 2] - 2 * args->cos.shape[1];
    int64_t rows = args->cos.shape[0] - args->out.shape[token_dim];
    return (args->rotary_offset >= 0) && (args->rotary_offset <= channels) &&
           (args->positions.offset >= 0) && (args->positions.offset <= rows);
}

/* Checks a call and writes it in canonical form. A call that fails may have been written in part. */
INLINE bool check_call(const struct posenc_rope_args *args, int token_dim,
                       struct posenc_rope_args *call, struct call_summary *summary)
{
    const struct posenc_tensor *out = &args->out;
    const struct posenc_const_tensor *x = &args->x;
    struct layout layout, angles;
    struct outer_strides strides;
    int64_t row_stride;
    const bool left_zero = x->rank == 0 && !x->data;
    const void *data = left_zero ? out->data : x->data;
    if (UNLIKELY((args->positions.kind != POSENC_POSITIONS_OFFSET) ||
                 ((unsigned)out->dtype > POSENC_DTYPE_BF16) ||
                 (!left_zero && !have_same_form(x, out, token_dim)) ||
                 !check_layout(out->shape, out->stride, token_dim, &layout, &strides)))
        return false;
    write_layout(out->shape, token_dim, strides, call->x.shape, call->x.stride);
    write_layout(out->shape, token_dim, strides, call->out.shape, call->out.stride);
    if (UNLIKELY(!check_tables(&args->cos, &args->sin, &angles, &row_stride) ||
                 may_wrap(layout, angles)))
        return false;
    uintptr_t bytes = layout_bytes(layout, out->dtype);
    if (UNLIKELY(!check_addresses(args, (uintptr_t)data, bytes,
                                  layout_bytes(angles, args->cos.dtype)) ||
                 !check_reserved(args) || !check_ranges(args, token_dim)))
        return false;
    memcpy(call, args, offsetof(struct posenc_rope_args, cos));
    write_angles(&args->cos, row_stride, &call->cos);
    write_angles(&args->sin, row_stride, &call->sin);
    call->x.data = data;
    call->out.data = out->data;
    call->x.dtype = call->out.dtype = out->dtype;
    call->x.rank = call->out.rank = 4;
    store_two(call->x.reserved, 0, 0);
    store_two(call->out.reserved, 0, 0);
    summary->dtypes = (unsigned)out->dtype | (unsigned)args->cos.dtype;
    if (data != out->data)
        return check_disjoint_x(args, token_dim, bytes, call);
    return left_zero || equal_dimensions(x->stride, out->stride, token_dim);
}

bool posenc_fast_check_rope(const void *untyped_args, void *call, struct call_summary *summary)
{
    const struct posenc_rope_args *args = untyped_args;
    if (args->size != sizeof *args) /* an older struct may end before `out` */
        return false;
    if (args->out.rank == 3)
        return check_call(args, 0, call, summary);
    return args->out.rank == 4 && check_call(args, 1, call, summary);
}
