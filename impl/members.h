/*
 * What the calls of a signature have, as data: which members are tensors, positions, arrays and
 * offsets, and which axes these have. For whatever does something with any call.
 *
 * Axes are letters: b batch, t token, h head, i query, j key, c channel or column, r row, and . for
 * what no part of a call divides. A tensor's axes are those of its last dimension and the ones
 * before it, so that one without batch has the rest.
 */
#ifndef POSENC_MEMBERS_H
#define POSENC_MEMBERS_H

#include "grow.h"

enum form { FORM_NONE, FORM_OUT, FORM_TENSOR, FORM_POSITIONS, FORM_ARRAY, FORM_OFFSET };

struct member {
    enum form form;
    size_t at;
    const char *axes;
    size_t stride_batch; /* of an array: where the call has that of its batches */
};

enum { MOST_MEMBERS = 6 };

/* `cuts`: axes that may be cut, of equals the first; `none`: those that are 0 in a part that has
 * nothing to do. Outputs come first in the list. */
struct members {
    const struct grown *grown;
    const char *cuts, *none;
    struct member list[MOST_MEMBERS];
};

/* NULL: no such kernel. */
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

/* Return the dtype of the first output, and posenc_footprint(), of whole arguments of this
 * library. */
enum posenc_dtype posenc_dtype_of(enum posenc_kernel kernel, const void *args);
uint64_t posenc_bytes_of(enum posenc_kernel kernel, const void *args);

#endif
