/*
 * Kernels window_bias and window_bias_add: biases by an index of query and key, written out or
 * added to scores as they pass.
 *
 *     table[index[query, key], head]                   (2103.14030, 2106.08254)
 *
 * They are fetched a piece at a time, for four heads together and once for all batches.
 */
#include "heads.h"
#include "scores.h"

/* The biases of a head that are fetched at a time.  WINDOW_PITCH from those of one head to those
 * of the next: no power of two, which would map them to the same lines of the nearest cache. */
enum { WINDOW_PIECE = 2432, WINDOW_PITCH = WINDOW_PIECE + 16 };

/* Biases of `rows` queries from i on and of n keys from j on, of some heads from h on, to all
 * batches.  Rows that follow each other in memory are one. */
SIMD_INLINE void window_put(enum posenc_dtype type, enum how how, const float *bias,
                            const struct posenc_window_args *args, int64_t h, int64_t heads,
                            int64_t i, int64_t rows, int64_t j, int64_t n)
{
    const struct posenc_tensor *out = &args->out;
    bool dense = n == out->stride[2] && (!adds(how) || n == args->x.stride[2]);
    int64_t step = dense ? rows : 1;

    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t k = 0; k < heads; k++)
            for (int64_t r = 0; r < rows; r += step)
                put_biases(type, how, ALONG, bias + k * WINDOW_PITCH + r * n, args->x_scale,
                           adds(how) ? input_at(&args->x, b, h + k, i + r) : NULL,
                           row_at(out, b, h + k, i + r), j, step * n);
}

SIMD_INLINE void window_heads(enum posenc_dtype type, enum how how,
                              const struct posenc_window_args *given)
{
    const struct posenc_window_args copy = *given, *args = &copy;
    _Alignas(64) float bias[HEADS_AT_ONCE * WINDOW_PITCH];
    struct heads heads;
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];
    int64_t width = least(keys, WINDOW_PIECE), most = WINDOW_PIECE / width;

    for (int64_t h = 0; h < args->out.shape[1]; h += HEADS_AT_ONCE) {
        take_heads(&args->table, h, &heads);
        for (int64_t i = 0; i < queries; i += most)
            for (int64_t j = 0; j < keys; j += width) {
                int64_t rows = least(queries - i, most), n = least(keys - j, width);
                const int32_t *index = args->index + i * keys + j;

                if (type == POSENC_F32 && how == STORED && heads.n == HEADS_AT_ONCE &&
                    n == args->out.stride[2]) { /* as they are fetched */
                    fetch_heads(&heads, index, rows * n, row_at(&args->out, 0, h, i),
                                args->out.stride[1]);
                    continue;
                }
                fetch_heads(&heads, index, rows * n, bias, WINDOW_PITCH);
                window_put(type, how, bias, args, h, heads.n, i, rows, j, n);
            }
    }
}

FORMS_WRITTEN(window_heads, posenc_window_args)
FORMS_ADDED(window_heads, posenc_window_args)

enum posenc_status KERNEL(window_bias)(const struct posenc_window_args *args)
{
    RUN_WRITTEN(window_heads, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(window_bias_add)(const struct posenc_window_args *args)
{
    RUN_ADDED(window_heads, args);
    return POSENC_OK;
}
