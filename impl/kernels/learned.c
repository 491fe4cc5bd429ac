/*
 * Kernels learned_add and learned_grad: rows of a learned position table added to activations, and the gradient of that
 * table. Shapes: x and out of learned_add [batch, tokens, 1, dim]; table and out of learned_grad [rows, dim], f32; id =
 * position of the token.
 *
 *   learned_add    out[b, t] = fma(x[b, t], x_scale, table[id])
 *   learned_grad   out[id] += x[b, t], over batches and then tokens in ascending order
 *
 * Source: Gehring et al. 1705.03122; Devlin et al. 1810.04805 (BERT).
 *
 * Both are bound by memory. With an offset instead of an array of positions, ids are consecutive: learned_add
 * prefetches table rows, and learned_grad keeps a row's sum over the batches in registers instead of adding batch after
 * batch in memory.
 */
#include "biases.h"

/* Adds the table row of token t to x. */
SIMD_INLINE void add_row(enum posenc_dtype type, enum store_mode mode, enum bias_layout layout,
                         const struct posenc_learned_args *args, int64_t b, int64_t t)
{
    const int64_t id = posenc_position(&args->positions, b, t);

    put_biases(type, mode, layout, (const float *)args->table.data + id * args->table.stride[0],
               args->x_scale, input_row(&args->x, b, t, 0), output_row(&args->out, b, t, 0), 0,
               args->out.shape[3]);
}

/* Rows of consecutive tokens are consecutive rows of the table if positions are an offset. They come from DRAM as x
 * does, and are prefetched with it. */
SIMD_INLINE void add_rows(enum posenc_dtype type, enum store_mode mode,
                          const struct posenc_learned_args *given)
{
    const struct posenc_learned_args copy = *given, *args = &copy;
    const bool prefetches_table =
        mode != ADD && mode != ADD_UNSCALED && args->positions.kind == POSENC_POSITIONS_OFFSET;

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t t = 0; t < args->out.shape[1]; t++)
            if (prefetches_table)
                add_row(type, mode, FORWARD_PREFETCH, args, b, t);
            else
                add_row(type, mode, FORWARD, args, b, t);
}

INSTANCES_ADDING(add_rows, posenc_learned_args)

enum posenc_status KERNEL(learned_add)(const struct posenc_learned_args *args)
{
    RUN_ADDING(add_rows, args);
    return POSENC_OK;
}

/* Adds a row of x to a row of the gradient. */
SIMD_INLINE void accumulate_row(enum posenc_dtype type, const void *x, float *out, int64_t dim)
{
    int64_t i = 0, n = vf_lanes();

    for (; i + n <= dim; i += n)
        vf_store(out + i, vf_add(vf_load(out + i), load_as(type, x, i, n)));
    if (i < dim)
        vf_store_n(out + i, vf_add(vf_load_n(out + i, dim - i), load_as(type, x, i, dim - i)),
                   dim - i);
}

/* Returns the sum over batches of elements i to i + n - 1 of a row, at most a vector. It starts from +0, or from
 * out in the ADD modes. `step` is the number of bytes from batch to batch. */
SIMD_INLINE vf sum_vector(enum posenc_dtype type, enum store_mode mode, const char *x,
                          int64_t batches, int64_t step, const float *out, int64_t i, int64_t n)
{
    vf sum = vf_set1(0.0f);

    if (mode_adds(mode))
        sum = load_as(POSENC_DTYPE_F32, out, i, n);
    for (int64_t k = 0; k < batches; k++)
        sum = vf_add(sum, load_as(type, x + k * step, i, n));
    return sum;
}

/* Sums the elements i to n - 1 of a row vector by vector, the last vector in part. */
SIMD_INLINE void sum_single_vectors(enum posenc_dtype type, enum store_mode mode, const char *x,
                                    int64_t batches, int64_t step, float *out, int64_t i,
                                    int64_t n)
{
    for (int64_t w = vf_lanes(); i < n; i += w)
        store_f32(out + i, sum_vector(type, mode, x, batches, step, out, i, min_i64(n - i, w)),
                  min_i64(n - i, w));
}

/* Adds a vector of x to a sum. Streamed sums prefetch x, which then comes from DRAM. */
SIMD_INLINE vf sum_onto(enum posenc_dtype type, enum store_mode mode, const char *x, int64_t i,
                        vf sum)
{
    if (mode_streams(mode))
        prefetch_in_order(x + i * (int64_t)posenc_dtype_size(type), 8192);
    return vf_add(sum, load_as(type, x, i, vf_lanes()));
}

/* Sums a row of n elements over all batches, four vectors at a time. */
SIMD_INLINE void sum_batches(enum posenc_dtype type, enum store_mode mode, const char *x,
                             int64_t batches, int64_t step, float *out, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = mode_streams(mode) ? to_line_boundary(POSENC_DTYPE_F32, out, 0, n) : 0;

    sum_single_vectors(type, mode, x, batches, step, out, 0, i);
    for (; i + 4 * w <= n; i += 4 * w) {
        vf a = vf_set1(0.0f), b = a, c = a, d = a;

        if (mode_adds(mode)) {
            a = vf_load(out + i);
            b = vf_load(out + i + w);
            c = vf_load(out + i + 2 * w);
            d = vf_load(out + i + 3 * w);
        }
        for (int64_t k = 0; k < batches; k++) {
            const char *from = x + k * step;

            a = sum_onto(type, mode, from, i, a);
            b = sum_onto(type, mode, from, i + w, b);
            c = sum_onto(type, mode, from, i + 2 * w, c);
            d = sum_onto(type, mode, from, i + 3 * w, d);
        }
        store_four(POSENC_DTYPE_F32, mode, out, i, a, b, c, d);
    }
    sum_single_vectors(type, mode, x, batches, step, out, i, n);
}

static void clear_rows(const struct posenc_learned_grad_args *args, int64_t row, int64_t end)
{
    for (; row < end; row++)
        memset((float *)args->out.data + row * args->out.stride[0], 0,
               (size_t)args->out.shape[1] * sizeof(float)); /* all bits zero is +0 */
}

/* Sums every row of the gradient, if positions are an offset. The copy of the arguments: see biases.h. */
SIMD_INLINE void sum_tokens(enum posenc_dtype type, enum store_mode mode,
                            const struct posenc_learned_grad_args *given)
{
    const struct posenc_learned_grad_args copy = *given, *args = &copy;
    /* without tokens, any offset is valid */
    int64_t tokens = args->x.shape[1], first = tokens > 0 ? args->positions.offset : 0;
    int64_t step = args->x.stride[0] * (int64_t)posenc_dtype_size(type);

    if (!args->accumulate) {
        clear_rows(args, 0, first);
        clear_rows(args, first + tokens, args->out.shape[0]);
    }
    for (int64_t t = 0; t < tokens; t++) {
        float *out = (float *)args->out.data + (first + t) * args->out.stride[0];
        const char *x = input_row(&args->x, 0, t, 0);

        sum_batches(type, mode, x, args->x.shape[0], step, out, args->x.shape[3]);
    }
}

INSTANCES_WRITING(sum_tokens, posenc_learned_grad_args)
INSTANCES(sum_tokens, posenc_learned_grad_args, ADD_UNSCALED)

/* Chooses the instance of sum_tokens(). A gradient that exceeds the caches is streamed, unless it is accumulated. */
static void sum_positions(const struct posenc_learned_grad_args *args)
{
    const bool exceeds_cache = tensor_bytes(&args->out) >= STREAM_MIN_BYTES && vf_has_streams();

    if (args->accumulate) {
        RUN_INSTANCE(sum_tokens, args->x.dtype, ADD_UNSCALED, args);
    } else if (!exceeds_cache) {
        RUN_INSTANCE(sum_tokens, args->x.dtype, STORE, args);
    } else {
        RUN_INSTANCE(sum_tokens, args->x.dtype, STREAM, args);
        vf_stream_end();
    }
}

/* Adds rows at arbitrary positions, batch by batch. */
SIMD_INLINE void accumulate_rows(enum posenc_dtype type,
                                 const struct posenc_learned_grad_args *args)
{
    for (int64_t b = 0; b < args->x.shape[0]; b++)
        for (int64_t t = 0; t < args->x.shape[1]; t++) {
            float *out = (float *)args->out.data +
                         posenc_position(&args->positions, b, t) * args->out.stride[0];
            accumulate_row(type, input_row(&args->x, b, t, 0), out, args->x.shape[3]);
        }
}

enum posenc_status KERNEL(learned_grad)(const struct posenc_learned_grad_args *args)
{
    if (args->positions.kind == POSENC_POSITIONS_OFFSET) {
        sum_positions(args);
        return POSENC_OK;
    }
    if (!args->accumulate)
        clear_rows(args, 0, args->out.shape[0]);
    FOR_TYPE(args->x.dtype, accumulate_rows, args);
    return POSENC_OK;
}
