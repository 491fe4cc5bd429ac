/*
 * Kernels learned_add and learned_grad: rows of a learned table added to activations, and the
 * gradient of that table, row by row.
 *
 *     out = fma(x, x_scale, table[id])        grad[id] += x
 */
#include "scores.h"

SIMD_INLINE void add_row(enum posenc_dtype type, enum how how, enum biases biases,
                         const struct posenc_learned_args *args, int64_t b, int64_t t)
{
    const int64_t id = posenc_position(&args->positions, b, t);

    put_biases(type, how, biases, (const float *)args->table.data + id * args->table.stride[0],
               args->x_scale, input_at(&args->x, b, t, 0), row_at(&args->out, b, t, 0), 0,
               args->out.shape[3]);
}

/* Rows of consecutive tokens are those of the table one after the other, which may come from DRAM as x does:
 * asked for in time, 0.93 of the time (pages of 4 KiB, Zen 5). */
SIMD_INLINE void add_rows(enum posenc_dtype type, enum how how,
                          const struct posenc_learned_args *given)
{
    const struct posenc_learned_args copy = *given, *args = &copy;
    const bool followed =
        how != ADDED && how != SUMMED && args->positions.kind == POSENC_OFFSET;

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++)
            if (followed)
                add_row(type, how, FOLLOWED, args, b, t);
            else
                add_row(type, how, ALONG, args, b, t);
}

FORMS_ADDED(add_rows, posenc_learned_args)

enum posenc_status KERNEL(learned_add)(const struct posenc_learned_args *args)
{
    RUN_ADDED(add_rows, args);
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

/* With an offset a row has one token of each batch: their sum stays in registers, four vectors of
 * it at a time, from +0 or from what the row holds. */
SIMD_INLINE void sum_batches(enum posenc_dtype type, bool accumulate, const char *x,
                             int64_t batches, int64_t step, float *out, int64_t n)
{
    int64_t w = vf_lanes(), i = 0;
    const vf zero = vf_set1(0.0f);

    for (; i + 4 * w <= n; i += 4 * w) {
        vf a = accumulate ? vf_load(out + i) : zero;
        vf b = accumulate ? vf_load(out + i + w) : zero;
        vf c = accumulate ? vf_load(out + i + 2 * w) : zero;
        vf d = accumulate ? vf_load(out + i + 3 * w) : zero;

        for (int64_t k = 0; k < batches; k++) {
            a = vf_add(a, load_as(type, x + k * step, i, w));
            b = vf_add(b, load_as(type, x + k * step, i + w, w));
            c = vf_add(c, load_as(type, x + k * step, i + 2 * w, w));
            d = vf_add(d, load_as(type, x + k * step, i + 3 * w, w));
        }
        vf_store(out + i, a);
        vf_store(out + i + w, b);
        vf_store(out + i + 2 * w, c);
        vf_store(out + i + 3 * w, d);
    }
    for (; i < n; i += w) {
        int64_t m = least(n - i, w);
        vf sum = accumulate ? load_as(POSENC_F32, out, i, m) : zero;

        for (int64_t k = 0; k < batches; k++)
            sum = vf_add(sum, load_as(type, x + k * step, i, m));
        store_f32(out + i, sum, m);
    }
}

static void clear_rows(const struct posenc_learned_grad_args *args, int64_t row, int64_t end)
{
    for (; row < end; row++)
        memset((float *)args->out.data + row * args->out.stride[0], 0,
               (size_t)args->out.shape[1] * sizeof(float)); /* all bits zero is +0 */
}

/* With a copy of the arguments, for the reason in scores.h. */
SIMD_INLINE void sum_tokens(enum posenc_dtype type,
                            const struct posenc_learned_grad_args *given)
{
    const struct posenc_learned_grad_args copy = *given, *args = &copy;
    /* without tokens the offset may be anywhere */
    int64_t tokens = args->x.shape[1], first = tokens > 0 ? args->positions.offset : 0;
    int64_t step = args->x.stride[0] * (int64_t)posenc_dtype_size(type);

    if (!args->accumulate) {
        clear_rows(args, 0, first);
        clear_rows(args, first + tokens, args->out.shape[0]);
    }
    for (int64_t t = 0; t < tokens; t++) {
        float *out = (float *)args->out.data + (first + t) * args->out.stride[0];
        const char *x = input_at(&args->x, 0, t, 0);

        if (args->accumulate)
            sum_batches(type, true, x, args->x.shape[0], step, out, args->x.shape[3]);
        else
            sum_batches(type, false, x, args->x.shape[0], step, out, args->x.shape[3]);
    }
}

/* Batch by batch. */
SIMD_INLINE void gather_rows(enum posenc_dtype type,
                             const struct posenc_learned_grad_args *args)
{
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            float *out = (float *)args->out.data +
                         posenc_position(&args->positions, b, t) * args->out.stride[0];
            gather_row(type, input_at(&args->x, b, t, 0), out, args->x.shape[3]);
        }
}

enum posenc_status KERNEL(learned_grad)(const struct posenc_learned_grad_args *args)
{
    if (args->positions.kind == POSENC_OFFSET) {
        FOR_TYPE(args->x.dtype, sum_tokens, args);
        return POSENC_OK;
    }
    if (!args->accumulate)
        clear_rows(args, 0, args->out.shape[0]);
    FOR_TYPE(args->x.dtype, gather_rows, args);
    return POSENC_OK;
}
