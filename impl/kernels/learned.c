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

/* n elements of a row and of each batch at most a vector, added up from +0 or from what the row holds. */
SIMD_INLINE vf sum_vector(enum posenc_dtype type, enum how how, const char *x, int64_t batches,
                          int64_t step, const float *out, int64_t i, int64_t n)
{
    vf sum = vf_set1(0.0f);

    if (adds(how))
        sum = load_as(POSENC_F32, out, i, n);
    for (int64_t k = 0; k < batches; k++)
        sum = vf_add(sum, load_as(type, x + k * step, i, n));
    return sum;
}

/* Vectors of element i up to n, the last in part. */
SIMD_INLINE void sum_some(enum posenc_dtype type, enum how how, const char *x, int64_t batches,
                          int64_t step, float *out, int64_t i, int64_t n)
{
    for (int64_t w = vf_lanes(); i < n; i += w)
        store_f32(out + i, sum_vector(type, how, x, batches, step, out, i, least(n - i, w)),
                  least(n - i, w));
}

/* A whole vector of x onto a sum. Where sums go past the caches each asks for what is 8 KiB further on:
 * rows of 210 take 0.8 of the time, of 768 1.0 (Zen 5). */
SIMD_INLINE vf sum_onto(enum posenc_dtype type, enum how how, const char *x, int64_t i, vf sum)
{
    if (streams(how))
        ask_ahead(x + i * (int64_t)posenc_dtype_size(type), 8192);
    return vf_add(sum, load_as(type, x, i, vf_lanes()));
}

/* With an offset a row has one token of each batch: their sum stays in registers, four vectors of
 * it at a time. */
SIMD_INLINE void sum_batches(enum posenc_dtype type, enum how how, const char *x,
                             int64_t batches, int64_t step, float *out, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t i = streams(how) ? to_line(POSENC_F32, out, 0, n) : 0;

    sum_some(type, how, x, batches, step, out, 0, i);
    for (; i + 4 * w <= n; i += 4 * w) {
        vf a = vf_set1(0.0f), b = a, c = a, d = a;

        if (adds(how)) {
            a = vf_load(out + i);
            b = vf_load(out + i + w);
            c = vf_load(out + i + 2 * w);
            d = vf_load(out + i + 3 * w);
        }
        for (int64_t k = 0; k < batches; k++) {
            const char *from = x + k * step;

            a = sum_onto(type, how, from, i, a);
            b = sum_onto(type, how, from, i + w, b);
            c = sum_onto(type, how, from, i + 2 * w, c);
            d = sum_onto(type, how, from, i + 3 * w, d);
        }
        put_vectors(POSENC_F32, how, out, i, a, b, c, d);
    }
    sum_some(type, how, x, batches, step, out, i, n);
}

static void clear_rows(const struct posenc_learned_grad_args *args, int64_t row, int64_t end)
{
    for (; row < end; row++)
        memset((float *)args->out.data + row * args->out.stride[0], 0,
               (size_t)args->out.shape[1] * sizeof(float)); /* all bits zero is +0 */
}

/* With a copy of the arguments, for the reason in scores.h. */
SIMD_INLINE void sum_tokens(enum posenc_dtype type, enum how how,
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

        sum_batches(type, how, x, args->x.shape[0], step, out, args->x.shape[3]);
    }
}

FORMS_WRITTEN(sum_tokens, posenc_learned_grad_args)
FORMS(sum_tokens, posenc_learned_grad_args, SUMMED)

/* A gradient that no cache holds is written past them, but for what is added onto. */
static void sum_positions(const struct posenc_learned_grad_args *args)
{
    const bool far = bytes_of(&args->out) >= STREAM_FROM && vf_streams();

    if (args->accumulate) {
        RUN_FORM(sum_tokens, args->x.dtype, SUMMED, args);
    } else if (!far) {
        RUN_FORM(sum_tokens, args->x.dtype, STORED, args);
    } else {
        RUN_FORM(sum_tokens, args->x.dtype, STREAMED, args);
        stream_end();
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
        sum_positions(args);
        return POSENC_OK;
    }
    if (!args->accumulate)
        clear_rows(args, 0, args->out.shape[0]);
    FOR_TYPE(args->x.dtype, gather_rows, args);
    return POSENC_OK;
}
