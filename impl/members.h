/*
 * Describes the arguments of each signature as data, for code that handles any kernel (posenc_split(),
 * posenc_footprint()): which members are tensors, positions, arrays or offsets, and the axes of each.
 *
 * Axes are letters: b batch, t token, h head, i query, j key, c channel or column, r row, and . for an axis that is
 * never split. Letters are matched from the last dimension backwards, as a tensor may have no batch dimension.
 * Rotations of [batch, tokens, heads, channels] are split along tokens, batches or heads:
 *
 *     MEMBERS(rope, "tbh", "t", OUT(rope, out, "bthc"), TENSOR(rope, x, "bthc"), POSITIONS(rope))
 */
#ifndef POSENC_MEMBERS_H
#define POSENC_MEMBERS_H

#include "versioned.h"

enum member_kind {
    MEMBER_NONE,
    MEMBER_OUT,
    MEMBER_TENSOR,
    MEMBER_POSITIONS,
    MEMBER_ARRAY, /* a pointer to f32 or int32 */
    MEMBER_OFFSET /* query_offset */
};

struct args_member {
    enum member_kind kind;
    size_t offset; /* in the struct of arguments */
    const char *axes;
    size_t batch_stride_offset; /* that of the batch stride of an array with axis b */
};

enum { MAX_MEMBERS = 6 };

/* The members of one signature, outputs first. */
struct args_members {
    const struct versioned *versioned;
    const char *split_axes;  /* axes that posenc_split() may cut, in the order of preference */
    const char *zeroed_axes; /* axes whose size is 0 in an empty part */
    struct args_member list[MAX_MEMBERS];
};

/* Defined by MEMBERS() beside the checks of each signature, in checks_tokens.c and checks_scores.c. */
#define POSENC_SIGNATURE(name) extern const struct args_members posenc_members_##name;
#include <posenc_signatures.def>

/* clang-format off */
#define OFFSET_OF(signature, name) offsetof(struct posenc_##signature##_args, name)
#define OUT(signature, name, axes) { MEMBER_OUT, OFFSET_OF(signature, name), axes, 0 }
#define TENSOR(signature, name, axes) { MEMBER_TENSOR, OFFSET_OF(signature, name), axes, 0 }
#define ARRAY(signature, name, axes) { MEMBER_ARRAY, OFFSET_OF(signature, name), axes, 0 }
#define POSITIONS(signature) { MEMBER_POSITIONS, OFFSET_OF(signature, positions), "bt", 0 }
#define QUERY_OFFSET(signature) { MEMBER_OFFSET, OFFSET_OF(signature, query_offset), "i", 0 }
#define SLOPES { MEMBER_ARRAY, OFFSET_OF(alibi, slopes), "bh", OFFSET_OF(alibi, slopes_stride_batch) }
#define MEMBERS(signature, split_axes, zeroed_axes, ...) \
    const struct args_members posenc_members_##signature = \
        { &posenc_versioned_##signature##_args, split_axes, zeroed_axes, { __VA_ARGS__ } };
/* clang-format on */

/* Returns the members of a kernel's arguments, or NULL if there is no such kernel. */
const struct args_members *posenc_args_members(enum posenc_kernel kernel);

/* Arguments of any signature, aligned. */
union any_args {
    size_t size;
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

/* Loops over all members: for (EACH_MEMBER(m, members)) */
#define EACH_MEMBER(m, members)                                                                \
    const struct args_member *m = (members)->list;                                             \
    m < (members)->list + MAX_MEMBERS && m->kind;                                              \
    m++

static inline bool posenc_member_is_tensor(const struct args_member *m)
{
    return m->kind == MEMBER_OUT || m->kind == MEMBER_TENSOR;
}

static inline const struct posenc_tensor *posenc_member_tensor(const struct args_member *m,
                                                               const void *args)
{
    return (const struct posenc_tensor *)(const void *)((const char *)args + m->offset);
}

/* Returns the dimension that the axis has in a tensor of `rank`, or -1. */
int posenc_axis_dimension(const char *axes, int rank, char axis);

/* Returns the dtype of the first output. `args` must have this library's size (see versioned.h). */
enum posenc_dtype posenc_args_dtype(enum posenc_kernel kernel, const void *args);

/* Returns what posenc_footprint() does, for arguments of this library's size. */
uint64_t posenc_args_bytes(enum posenc_kernel kernel, const void *args);

#endif
