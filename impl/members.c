/* Lists the members of calls; see members.h. */
#include "members.h"

#include <string.h>

#define AT(signature, name) offsetof(struct posenc_##signature##_args, name)
#define OUT(signature, name, axes)                                                             \
    {                                                                                          \
        FORM_OUT, AT(signature, name), axes, 0                                                 \
    }
#define TENSOR(signature, name, axes)                                                          \
    {                                                                                          \
        FORM_TENSOR, AT(signature, name), axes, 0                                              \
    }
#define ARRAY(signature, name, axes)                                                           \
    {                                                                                          \
        FORM_ARRAY, AT(signature, name), axes, 0                                               \
    }
#define POSITIONS(signature)                                                                   \
    {                                                                                          \
        FORM_POSITIONS, AT(signature, positions), "bt", 0                                      \
    }
#define OFFSET(signature)                                                                      \
    {                                                                                          \
        FORM_OFFSET, AT(signature, query_offset), "i", 0                                       \
    }
#define SLOPES                                                                                 \
    {                                                                                          \
        FORM_ARRAY, AT(alibi, slopes), "bh", AT(alibi, slopes_stride_batch)                    \
    }
#define MEMBERS(signature, cuts, none, ...)                                                    \
    static const struct members members_##signature = {                                        \
        &posenc_grown_##signature##_args, cuts, none, { __VA_ARGS__ }                          \
    };

/* clang-format off */
MEMBERS(sinusoidal, "tb", "t", OUT(sinusoidal, out, "btc"), TENSOR(sinusoidal, x, "btc"), POSITIONS(sinusoidal))
MEMBERS(learned, "tb", "t", OUT(learned, out, "btc"), TENSOR(learned, x, "btc"), POSITIONS(learned))
MEMBERS(learned_grad, "c", "rt", OUT(learned_grad, out, "rc"), TENSOR(learned_grad, x, "btc"))
MEMBERS(rope_table, "tb", "t", OUT(rope_table, cos, "btc"), OUT(rope_table, sin, "btc"), POSITIONS(rope_table))
MEMBERS(rope, "tbh", "t", OUT(rope, out, "bthc"), TENSOR(rope, x, "bthc"), POSITIONS(rope))
MEMBERS(rope_qk_norm, "tb", "t", OUT(rope_qk_norm, out, "bthc"), TENSOR(rope_qk_norm, x, "bthc"), POSITIONS(rope_qk_norm))
MEMBERS(alibi, "hbi", "i", OUT(alibi, out, "bhij"), TENSOR(alibi, x, "bhij"), SLOPES, OFFSET(alibi))
MEMBERS(t5, "hbi", "i", OUT(t5, out, "bhij"), TENSOR(t5, x, "bhij"), TENSOR(t5, table, ".h"), OFFSET(t5))
MEMBERS(distance, "hbi", "i", OUT(distance, out, "bhij"), TENSOR(distance, x, "bhij"), TENSOR(distance, values, "h."), OFFSET(distance))
MEMBERS(window, "hbi", "i", OUT(window, out, "bhij"), TENSOR(window, x, "bhij"), TENSOR(window, table, ".h"), ARRAY(window, index, "ij"))
MEMBERS(relative, "hbi", "i", OUT(relative, out, "bhij"), TENSOR(relative, x, "bhij"), TENSOR(relative, c2p, "bhi."), TENSOR(relative, p2c, "bhj."), ARRAY(relative, index, "i"))
MEMBERS(relative_sum, "hbi", "i", OUT(relative_sum, out, "bhic"), TENSOR(relative_sum, x, "bhij"), ARRAY(relative_sum, index, "i"))
/* clang-format on */

const struct members *posenc_members(enum posenc_kernel kernel)
{
    static const struct members *const of[] = {
#define POSENC_KERNEL(name, signature, ...) [POSENC_KERNEL_##name] = &members_##signature,
#include <posenc_kernels.def>
    };
    return (unsigned)kernel < POSENC_KERNEL_COUNT ? of[kernel] : NULL;
}

int posenc_axis_at(const char *axes, int rank, char axis)
{
    const char *found = strchr(axes, axis);
    int from_last = found ? (int)strlen(axes) - 1 - (int)(found - axes) : rank;
    return from_last < rank ? rank - 1 - from_last : -1;
}

/* ---- How much a call moves ---- */

static const struct posenc_tensor *tensor_at(const void *args, const struct member *m)
{
    return (const struct posenc_tensor *)(const void *)((const char *)args + m->at);
}

/* In f64: what has absurd sizes is more than anything. */
static double bytes_of(const struct posenc_tensor *t)
{
    double bytes = t->data ? (double)posenc_dtype_size(t->dtype) : 0.0;
    for (int d = 0; d < t->rank && d < 4; d++)
        bytes *= t->shape[d] > 0 ? (double)t->shape[d] : 0.0;
    return bytes;
}

enum posenc_dtype posenc_dtype_of(enum posenc_kernel kernel, const void *args)
{
    return tensor_at(args, posenc_members(kernel)->list)->dtype;
}

uint64_t posenc_bytes_of(enum posenc_kernel kernel, const void *args)
{
    const struct members *members = posenc_members(kernel);
    const void *out = tensor_at(args, members->list)->data;
    double bytes = 0.0;
    for (EACH_MEMBER(m, members)) {
        const struct posenc_tensor *t = tensor_at(args, m);
        if (posenc_is_tensor(m) && (m == members->list || t->data != out))
            bytes += bytes_of(t);
    }
    return bytes < 0x1p63 ? (uint64_t)bytes : (uint64_t)1 << 63;
}

uint64_t posenc_footprint(enum posenc_kernel kernel, const void *args)
{
    const struct members *members = posenc_members(kernel);
    union any_args whole;
    if (!members || !args || posenc_grow(members->grown, &whole, args))
        return 0;
    return posenc_bytes_of(kernel, &whole);
}
