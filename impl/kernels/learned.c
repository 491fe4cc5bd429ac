/*
 * Kernels learned_add and learned_grad: rows of a learned table added to activations, and the
 * gradient of that table, row by row.
 *
 *     out = fma(x, x_scale, table[id])        grad[id] += x
 */
#include "kernel.h"

SIMD_INLINE void add_rows(enum posenc_dtype type, const struct posenc_learned_args *args)
{
    int64_t dim = args->out.shape[3], n = vf_lanes();
    vf scale = vf_set1(args->x_scale);

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++) {
            int64_t id = posenc_position(&args->positions, b, t), i = 0;
            const float *row = (const float *)args->table.data + id * args->table.stride[0];
            const void *x = input_at(&args->x, b, t, 0);
            void *out = row_at(&args->out, b, t, 0);

            for (; i + n <= dim; i += n)
                store_as(type, out, i, vf_fma(load_as(type, x, i, n), scale, vf_load(row + i)),
                         n);
            if (i < dim) {
                vf sum =
                    vf_fma(load_as(type, x, i, dim - i), scale, vf_load_n(row + i, dim - i));
                store_as(type, out, i, sum, dim - i);
            }
        }
}

enum posenc_status KERNEL(learned_add)(const struct posenc_learned_args *args)
{
    FOR_TYPE(args->out.dtype, add_rows, args);
    return POSENC_OK;
}

/* out += x. */
SIMD_INLINE void gather_row(enum posenc_dtype type, const void *x, float *out, int64_t dim)
{
    int64_t i = 0, n = vf_lanes();

    for (; i + n <= dim; i += n)
        vf_store(out + i, vf_add(vf_load(out + i), load_as(type, x, i, n)));
    if (i < dim)
        vf_store_n(out + i, vf_add(vf_load_n(out + i, dim - i), load_as(type, x, i, dim - i)),
                   dim - i);
}

/* Batch by batch; but with an offset, where a row gets one token of each batch, token by token:
 * its sum then stays in the L1 cache, in the same order. */
SIMD_INLINE void gather_rows(enum posenc_dtype type,
                             const struct posenc_learned_grad_args *args)
{
    bool by_token = args->positions.kind == POSENC_OFFSET;
    int64_t tokens = args->x.shape[1], outer = args->x.shape[0], inner = tokens;

    if (by_token) {
        inner = outer;
        outer = tokens;
    }
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            int64_t b = by_token ? j : i, t = by_token ? i : j;
            float *out = (float *)args->out.data +
                         posenc_position(&args->positions, b, t) * args->out.stride[0];
            gather_row(type, input_at(&args->x, b, t, 0), out, args->x.shape[3]);
        }
}

enum posenc_status KERNEL(learned_grad)(const struct posenc_learned_grad_args *args)
{
    for (int64_t row = 0; row < args->out.shape[0] && !args->accumulate; row++)
        memset((float *)args->out.data + row * args->out.stride[0], 0,
               (size_t)args->out.shape[1] * sizeof(float)); /* all bits zero is +0 */
    FOR_TYPE(args->x.dtype, gather_rows, args);
    return POSENC_OK;
}
