/*
 * Describes the arguments of each signature as data, for code that handles any kernel (posenc_split,
 * posenc_footprint): which members are tensors, positions, arrays or offsets, and the axes of each.
 *
 * Axes are letters: b batch, t token, h head, i query, j key, c channel or column, r row, and . for
 * an axis that is never split. Letters are matched from the last dimension backwards, so that a
 * tensor without a batch dimension has those after b.
 */
#ifndef POSENC_MEMBERS_H
#define POSENC_MEMBERS_H

#include "grow.h"

enum form { FORM_NONE, FORM_OUT, FORM_TENSOR, FORM_POSITIONS, FORM_ARRAY, FORM_OFFSET };

struct member {
    enum form form;
    size_t at; /* offset in the struct of arguments */
    const char *axes;
    size_t stride_batch; /* offset of the batch stride of an array with axis b */
};

enum { MOST_MEMBERS = 6 };

/* Members of one signature. posenc_split() cuts along the best axis in `cuts`; of equally good ones
 * the first. In an empty part the axes in `none` are 0. Outputs come first in the list. */
struct members {
    const struct grown *grown;
    const char *cuts, *none;
    struct member list[MOST_MEMBERS];
};

/* Returns the members of a kernel's signature, or NULL if there is no such kernel. */
const struct members *posenc_members(enum posenc_kernel kernel);

/* Arguments of any signature, aligned. */
union any_args {
    size_t size;
#define POSENC_SIGNATURE(name) struct posenc_##name##_args name;
#include <posenc_signatures.def>
};

/* for (EACH_MEMBER(m, members)) */
#define EACH_MEMBER(m, members)                                                                \
    const struct member *m = (members)->list;                                                  \
    m < (members)->list + MOST_MEMBERS && m->form;                                             \
    m++

static inline bool posenc_is_tensor(const struct member *m)
{
    return m->form == FORM_OUT || m->form == FORM_TENSOR;
}

/* Returns the dimension of a tensor of `rank` that has the axis, or -1. */
int posenc_axis_at(const char *axes, int rank, char axis);

/* Returns the dtype of the first output. `args` has this library's size (see grow.h). */
enum posenc_dtype posenc_dtype_of(enum posenc_kernel kernel, const void *args);
/* Returns posenc_footprint() of such arguments. */
uint64_t posenc_bytes_of(enum posenc_kernel kernel, const void *args);

#endif
