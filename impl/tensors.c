/* Construction of tensors and positions. */
#include "internal.h"

struct posenc_tensor posenc_tensor_strided(enum posenc_dtype dtype, void *data, int32_t rank,
                                           const int64_t *shape, const int64_t *stride)
{
    struct posenc_tensor tensor = { .data = data, .dtype = dtype, .rank = rank };
    /* Unsigned, as the product of sizes that are too large wraps. Checks of a call reject them. */
    uint64_t dense = 1;
    for (int n = rank < 4 ? rank : 4; n > 0; n--) {
        tensor.shape[n - 1] = shape[n - 1];
        tensor.stride[n - 1] = stride ? stride[n - 1] : (int64_t)dense;
        dense *= (uint64_t)shape[n - 1];
    }
    return tensor;
}

struct posenc_tensor posenc_tensor_2d(enum posenc_dtype dtype, void *data, int64_t d0,
                                      int64_t d1)
{
    return posenc_tensor_strided(dtype, data, 2, (const int64_t[]){ d0, d1 }, NULL);
}

struct posenc_tensor posenc_tensor_3d(enum posenc_dtype dtype, void *data, int64_t d0,
                                      int64_t d1, int64_t d2)
{
    return posenc_tensor_strided(dtype, data, 3, (const int64_t[]){ d0, d1, d2 }, NULL);
}

struct posenc_tensor posenc_tensor_4d(enum posenc_dtype dtype, void *data, int64_t d0,
                                      int64_t d1, int64_t d2, int64_t d3)
{
    return posenc_tensor_strided(dtype, data, 4, (const int64_t[]){ d0, d1, d2, d3 }, NULL);
}

struct posenc_const_tensor posenc_const_view(struct posenc_tensor tensor)
{
    struct posenc_const_tensor view = { .data = tensor.data,
                                        .dtype = tensor.dtype,
                                        .rank = tensor.rank };
    for (int i = 0; i < 4; i++) {
        view.shape[i] = tensor.shape[i];
        view.stride[i] = tensor.stride[i];
    }
    for (int i = 0; i < 2; i++)
        view.reserved[i] = tensor.reserved[i];
    return view;
}

struct posenc_const_tensor posenc_const_tensor_strided(enum posenc_dtype dtype,
                                                       const void *data, int32_t rank,
                                                       const int64_t *shape,
                                                       const int64_t *stride)
{
    struct posenc_const_tensor tensor =
        posenc_const_view(posenc_tensor_strided(dtype, NULL, rank, shape, stride));
    tensor.data = data;
    return tensor;
}

struct posenc_const_tensor posenc_const_tensor_2d(enum posenc_dtype dtype, const void *data,
                                                  int64_t d0, int64_t d1)
{
    return posenc_const_tensor_strided(dtype, data, 2, (const int64_t[]){ d0, d1 }, NULL);
}

struct posenc_const_tensor posenc_const_tensor_3d(enum posenc_dtype dtype, const void *data,
                                                  int64_t d0, int64_t d1, int64_t d2)
{
    return posenc_const_tensor_strided(dtype, data, 3, (const int64_t[]){ d0, d1, d2 }, NULL);
}

struct posenc_const_tensor posenc_const_tensor_4d(enum posenc_dtype dtype, const void *data,
                                                  int64_t d0, int64_t d1, int64_t d2,
                                                  int64_t d3)
{
    return posenc_const_tensor_strided(dtype, data, 4, (const int64_t[]){ d0, d1, d2, d3 },
                                       NULL);
}

struct posenc_positions posenc_positions_from(int64_t offset)
{
    return (struct posenc_positions){ .offset = offset };
}

struct posenc_positions posenc_positions_array(enum posenc_position_kind kind, const void *data,
                                               int64_t stride_batch)
{
    return (
        struct posenc_positions){ .kind = kind, .data = data, .stride_batch = stride_batch };
}
