/*
 * Checks of tensors and positions that do not depend on the kernel.
 * Every function fills *error, unless NULL, and returns its status.
 */
#ifndef POSENC_VALIDATE_H
#define POSENC_VALIDATE_H

#include "internal.h"

/* Fills *error and returns `status`. If least > most, there is no range. */
enum posenc_status posenc_refuse(struct posenc_error *error, enum posenc_status status,
                                 const char *what, double value, double least, double most);

/* Names of the parts of a tensor in messages. */
struct tensor_names {
    const char *data, *alignment, *dtype, *rank, *size, *last, *stride, *strides, *bytes,
        *shape;
};
#define TENSOR_NAMES(name)                                                                     \
    {                                                                                          \
        "data of " name " (NULL)", "alignment of the data of " name " in bytes",               \
            "dtype of " name, "rank of " name, "dimension of " name,                           \
            "last dimension of " name, "stride of the last dimension of " name,                \
            "strides of " name " (elements overlap)", "size of " name " in bytes",             \
            "dimension of " name " (that of out)"                                              \
    }

/* Bytes in memory between the lowest and the highest element; empty: first == end. */
struct span {
    uintptr_t first, end;
};

/* Bytes of a checked tensor; `empty` if it has no elements. */
struct checked {
    struct span span;
    bool empty;
};

struct tensor_rule {
    const struct tensor_names *names;
    int least_rank, most_rank;
    int64_t least_last; /* last dimension */
    bool any_dtype;     /* else f32 */
};

/* Checks a tensor and brings its strides to one form: those of dimensions of size 1 become 0,
 * that of the last dimension is 1. Elements of an output must not overlap. */
enum posenc_status posenc_check_input(struct posenc_const_tensor *tensor,
                                      const struct tensor_rule *rule, struct checked *checked,
                                      struct posenc_error *error);
enum posenc_status posenc_check_output(struct posenc_tensor *tensor,
                                       const struct tensor_rule *rule, struct checked *checked,
                                       struct posenc_error *error);

/* Returns OVERLAP, unless a and b (of one shape) share no element, or are the same tensor and may
 * be. */
enum posenc_status posenc_check_overlap(const struct posenc_const_tensor *a, struct span a_span,
                                        const struct posenc_tensor *b, struct span b_span,
                                        bool may_be_same, const char *what,
                                        struct posenc_error *error);

/* Returns OVERLAP if two ranges of bytes meet. */
enum posenc_status posenc_check_apart(struct span a, struct span b, const char *what,
                                      struct posenc_error *error);

/* Checks `rows` input arrays of n items each, `stride` items apart: not NULL, aligned to
 * `item` bytes. */
enum posenc_status posenc_check_arrays(const void *data, int64_t rows, int64_t stride,
                                       int64_t n, size_t item, const char *what,
                                       struct span *span, struct posenc_error *error);
/* Does the same for one array. */
enum posenc_status posenc_check_array(const void *data, int64_t n, size_t item,
                                      const char *what, struct span *span,
                                      struct posenc_error *error);

/* Checks an array of n indices: each in [0, end), and apart from out. */
enum posenc_status posenc_check_index(const int32_t *index, int64_t n, int64_t end,
                                      struct span out_span, struct posenc_error *error);

/* Returns OVERFLOW unless the positions of all axes, [axes, batch, tokens] in an array, are in the
 * address space. */
enum posenc_status posenc_check_axes(const struct posenc_positions *positions, int32_t axes,
                                     int64_t batch, int64_t tokens, struct posenc_error *error);

/* Checks that all positions of [batch, tokens] are in [least, most]; `what` names one. */
enum posenc_status posenc_check_positions(const struct posenc_positions *positions,
                                          int64_t batch, int64_t tokens, int64_t least,
                                          int64_t most, const char *what, struct span *span,
                                          struct posenc_error *error);

#endif
