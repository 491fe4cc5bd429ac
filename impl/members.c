/* Functions on the members of any signature's arguments: see members.h. */
#include "members.h"

#include <string.h>

const struct args_members *posenc_args_members(enum posenc_kernel kernel)
{
    static const struct args_members *const by_kernel[] = {
#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    [POSENC_KERNEL_##ID] = &posenc_members_##signature,
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

void posenc_args_defaults(enum posenc_kernel kernel, void *args, size_t size)
{
    const struct args_members *members = posenc_args_members(kernel);
    posenc_versioned_defaults(members ? members->versioned : NULL, args, size);
}
