/* Members of the arguments of each signature: see members.h. */
#include "members.h"

#include <string.h>

/* clang-format off */
#define OFFSET_OF(signature, name) offsetof(struct posenc_##signature##_args, name)
#define OUT(signature, name, axes) { MEMBER_OUT, OFFSET_OF(signature, name), axes, 0 }
#define TENSOR(signature, name, axes) { MEMBER_TENSOR, OFFSET_OF(signature, name), axes, 0 }
#define ARRAY(signature, name, axes) { MEMBER_ARRAY, OFFSET_OF(signature, name), axes, 0 }
#define POSITIONS(signature) { MEMBER_POSITIONS, OFFSET_OF(signature, positions), "bt", 0 }
#define QUERY_OFFSET(signature) { MEMBER_OFFSET, OFFSET_OF(signature, query_offset), "i", 0 }
#define SLOPES { MEMBER_ARRAY, OFFSET_OF(alibi, slopes), "bh", OFFSET_OF(alibi, slopes_stride_batch) }
#define MEMBERS(signature, split_axes, zeroed_axes, ...) \
    static const struct args_members members_##signature = \
        { &posenc_versioned_##signature##_args, split_axes, zeroed_axes, { __VA_ARGS__ } };

MEMBERS(sinusoidal, "tb", "t", OUT(sinusoidal, out, "btc"), TENSOR(sinusoidal, x, "btc"), POSITIONS(sinusoidal))
MEMBERS(learned, "tb", "t", OUT(learned, out, "btc"), TENSOR(learned, x, "btc"), POSITIONS(learned))
MEMBERS(learned_grad, "c", "rt", OUT(learned_grad, out, "rc"), TENSOR(learned_grad, x, "btc"))
MEMBERS(rope_table, "tb", "t", OUT(rope_table, cos, "btc"), OUT(rope_table, sin, "btc"), POSITIONS(rope_table))
MEMBERS(rope, "tbh", "t", OUT(rope, out, "bthc"), TENSOR(rope, x, "bthc"), POSITIONS(rope))
MEMBERS(rope_qk_norm, "tb", "t", OUT(rope_qk_norm, out, "bthc"), TENSOR(rope_qk_norm, x, "bthc"), POSITIONS(rope_qk_norm))
MEMBERS(alibi, "hbi", "i", OUT(alibi, out, "bhij"), TENSOR(alibi, x, "bhij"), SLOPES, QUERY_OFFSET(alibi))
MEMBERS(t5, "hbi", "i", OUT(t5, out, "bhij"), TENSOR(t5, x, "bhij"), TENSOR(t5, table, ".h"), QUERY_OFFSET(t5))
MEMBERS(distance, "hbi", "i", OUT(distance, out, "bhij"), TENSOR(distance, x, "bhij"), TENSOR(distance, values, "h."), QUERY_OFFSET(distance))
MEMBERS(window, "hbi", "i", OUT(window, out, "bhij"), TENSOR(window, x, "bhij"), TENSOR(window, table, ".h"), ARRAY(window, index, "ij"))
MEMBERS(relative, "hbi", "i", OUT(relative, out, "bhij"), TENSOR(relative, x, "bhij"), TENSOR(relative, c2p, "bhi."), TENSOR(relative, p2c, "bhj."), ARRAY(relative, index, "i"))
MEMBERS(relative_sum, "hbi", "i", OUT(relative_sum, out, "bhic"), TENSOR(relative_sum, x, "bhij"), ARRAY(relative_sum, index, "i"))
/* clang-format on */

const struct args_members *posenc_args_members(enum posenc_kernel kernel)
{
    static const struct args_members *const by_kernel[] = {
#define POSENC_KERNEL(name, signature, ...) [POSENC_KERNEL_##name] = &members_##signature,
#include <posenc_kernels.def>
    };
    return (unsigned)kernel < POSENC_KERNEL_COUNT ? by_kernel[kernel] : NULL;
}

int posenc_axis_dimension(const char *axes, int rank, char axis)
{
    const char *found = strchr(axes, axis);
    int from_last = found ? (int)strlen(axes) - 1 - (int)(found - axes) : rank;
    return from_last < rank ? rank - 1 - from_last : -1;
}

/* Returns the bytes of a tensor, as f64 because sizes are not checked yet and may overflow. */
static double tensor_bytes(const struct posenc_tensor *t)
{
    double bytes = t->data ? (double)posenc_dtype_size(t->dtype) : 0.0;
    for (int d = 0; d < t->rank && d < 4; d++)
        bytes *= t->shape[d] > 0 ? (double)t->shape[d] : 0.0;
    return bytes;
}

enum posenc_dtype posenc_args_dtype(enum posenc_kernel kernel, const void *args)
{
    return posenc_member_tensor(posenc_args_members(kernel)->list, args)->dtype;
}

uint64_t posenc_args_bytes(enum posenc_kernel kernel, const void *args)
{
    const struct args_members *members = posenc_args_members(kernel);
    const void *out = posenc_member_tensor(members->list, args)->data;
    double bytes = 0.0;
    for (EACH_MEMBER(m, members)) {
        const struct posenc_tensor *t = posenc_member_tensor(m, args);
        if (posenc_member_is_tensor(m) && (m == members->list || t->data != out))
            bytes += tensor_bytes(t);
    }
    return bytes < 0x1p63 ? (uint64_t)bytes : (uint64_t)1 << 63;
}

uint64_t posenc_footprint(enum posenc_kernel kernel, const void *args)
{
    const struct args_members *members = posenc_args_members(kernel);
    union any_args copy;
    if (!members || !args || posenc_versioned_copy(members->versioned, &copy, args))
        return 0;
    return posenc_args_bytes(kernel, &copy);
}
