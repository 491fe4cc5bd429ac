/*
 * Checks of tensors, arrays and positions that do not depend on the kernel. Each check fills *error, unless it is NULL,
 * and returns its status.
 */
#ifndef POSENC_VALIDATE_H
#define POSENC_VALIDATE_H

#include "internal.h"

/* The texts of messages about one tensor. */
struct tensor_names {
    const char *reserved, *data, *alignment, *dtype, *rank, *size, *last, *stride, *strides,
        *bytes, *shape;
};
#define TENSOR_NAMES(name)                                                                     \
    {                                                                                          \
        "reserved members of " name " (not 0)", "data of " name " (NULL)",                     \
            "alignment of the data of " name " in bytes", "dtype of " name, "rank of " name,   \
            "dimension of " name, "last dimension of " name,                                   \
            "stride of the last dimension of " name, "strides of " name " (elements overlap)", \
            "size of " name " in bytes", "dimension of " name " (that of out)"                 \
    }

/* Addresses from the lowest byte to one past the highest; first == end if there are none. */
struct span {
    uintptr_t first, end;
};

/* Rejects data that do not lie in the address space, as OVERFLOW. */
enum posenc_status posenc_reject_extent(struct posenc_error *error, const char *what);
extern const char posenc_positions_extent[]; /* the `what` of positions */

/* Facts about a tensor that passed its checks. */
struct checked_tensor {
    struct span span;
    bool empty; /* it has no elements */
};

/* Requirements of a tensor. */
struct tensor_rule {
    const struct tensor_names *names;
    int min_rank, max_rank;
    int64_t min_last; /* of the last dimension */
    bool any_dtype;   /* otherwise f32 */
};

/* Check a tensor and bring its strides to one form: 0 for a dimension of size 1, and 1 for the last dimension. Elements
 * of an output must not overlap. */
enum posenc_status posenc_check_input(struct posenc_const_tensor *tensor,
                                      const struct tensor_rule *rule,
                                      struct checked_tensor *checked,
                                      struct posenc_error *error);
enum posenc_status posenc_check_output(struct posenc_tensor *tensor,
                                       const struct tensor_rule *rule,
                                       struct checked_tensor *checked,
                                       struct posenc_error *error);

/* Returns OVERLAP if a and b, which have one shape, share an element. With `may_be_same` they may also be the same
 * tensor. */
enum posenc_status posenc_check_overlap(const struct posenc_const_tensor *a, struct span a_span,
                                        const struct posenc_tensor *b, struct span b_span,
                                        bool may_be_same, const char *what,
                                        struct posenc_error *error);

/* Returns true if two canonical outputs with the same batches and tokens share no element. Their spans are disjoint, or
 * they interleave: the parts of each token, or of each batch, are disjoint, and both step from one to the next alike. */
bool posenc_are_apart(const struct posenc_tensor *a, const struct posenc_tensor *b);

static inline bool posenc_spans_overlap(struct span a, struct span b)
{
    return a.first < b.end && b.first < a.end;
}

enum posenc_status posenc_check_disjoint(struct span a, struct span b, const char *what,
                                         struct posenc_error *error);

/* Checks `rows` input arrays of n items each, which begin `stride` items apart: they must not be NULL, and must be
 * aligned to `item` bytes, the size of an item. */
enum posenc_status posenc_check_arrays(const void *data, int64_t rows, int64_t stride,
                                       int64_t n, size_t item, const char *what,
                                       struct span *span, struct posenc_error *error);
/* Checks a single array in the same way. */
enum posenc_status posenc_check_array(const void *data, int64_t n, size_t item,
                                      const char *what, struct span *span,
                                      struct posenc_error *error);

/* Checks an array of n indices: each must be in [0, end), and the array disjoint from out. */
enum posenc_status posenc_check_index(const int32_t *index, int64_t n, int64_t end,
                                      struct span out_span, struct posenc_error *error);

/* Returns OVERFLOW unless the positions of all axes lie in the address space. Their array has the
 * shape [axes, batch, tokens]. */
enum posenc_status posenc_check_axes(const struct posenc_positions *positions, int32_t axes,
                                     int64_t batch, int64_t tokens, struct posenc_error *error);

/* The positions that a kernel accepts. */
struct position_range {
    int64_t least, most;
    const char *what;   /* names a position in messages */
    bool has_fractions; /* false for rows of a table */
};

/* Checks that all positions of [batch, tokens] are in range. *span is empty for an offset. */
enum posenc_status posenc_check_positions(const struct posenc_positions *positions,
                                          int64_t batch, int64_t tokens,
                                          const struct position_range *range, struct span *span,
                                          struct posenc_error *error);

#endif
