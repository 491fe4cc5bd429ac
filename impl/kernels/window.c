/*
 * Kernels window_bias and window_bias_add: biases by an index of query and key, as in windowed attention of images.
 * Shapes: index [queries, keys], int32; table [rows, heads], f32; x and out [batch, heads, queries, keys], batch 1
 * without x.
 *
 *   window_bias      out[h, i, j] = table[index[i, j], h]
 *   window_bias_add  out[b, h, i, j] = fma(x[b, h, i, j], x_scale, table[index[i, j], h])
 *
 * Sources: Liu et al. 2103.14030 (Swin); Bao et al. 2106.08254 (BEiT).
 *
 * Fetching by index is the expensive part. A piece of some thousand biases is fetched once, for four heads together
 * (head_columns.h), to a buffer in the L1 cache, and then written to all batches.
 */
#include "head_columns.h"
#include "biases.h"

/* Biases of a head per piece. The distance of two heads' biases in the buffer, in floats, is no power of two: that
 * would map all four heads to the same sets of the L1 cache. */
enum { WINDOW_PIECE = 2432, WINDOW_PITCH = WINDOW_PIECE + 16 };

/* f32 scores of more bytes than this exceed the L2 cache. They are taken in smaller pieces, and each piece
 * prefetches the same scores of the next batch. 16-bit scores gain nothing, as conversions limit them. */
enum { PREFETCH_MIN_BYTES = 1 << 20, PREFETCH_PIECE = WINDOW_PIECE / 4 };

/* Ranges of one piece: heads [h, h + heads), queries [i, i + rows), keys [j, j + n). `step` queries form one row
 * for put_biases(): all of them if they are contiguous in memory, otherwise one. */
struct window {
    int64_t h, heads, i, rows, j, n, step;
};

/* Puts the biases of one head to its scores in batch b. `prefetches` fetches the scores of batch b + 1. */
SIMD_INLINE void window_scores(enum posenc_dtype type, enum store_mode mode, const float *bias,
                               const struct posenc_window_args *args, const struct window *to,
                               int64_t b, int64_t head, bool prefetches)
{
    const int64_t row = to->step * to->n, most = prefetches ? PREFETCH_PIECE : row;
    const int64_t size = (int64_t)posenc_dtype_size(type);

    for (int64_t r = 0; r < to->rows; r += to->step)
        for (int64_t k = 0; k < row; k += most) {
            const int64_t n = min_i64(row - k, most);

            for (int64_t line = 0; prefetches && line < n * size; line += 64)
                prefetch_at((const char *)input_row(&args->x, b + 1, head, to->i + r),
                            (to->j + k) * size + line);
            put_biases(type, mode, FORWARD, bias + r * to->n + k, args->x_scale,
                       mode_adds(mode) ? input_row(&args->x, b, head, to->i + r) : NULL,
                       output_row(&args->out, b, head, to->i + r), to->j + k, n);
        }
}

/* Puts a piece to all batches. Scores in a cache go head by head, since four heads' biases and the scores together
 * exceed the L1 cache. Scores in DRAM go in the order of memory. */
SIMD_INLINE void window_put_heads(enum posenc_dtype type, enum store_mode mode,
                                  const float *bias, const struct posenc_window_args *args,
                                  const struct window *to)
{
    const bool is_cached = mode != ADD_PREFETCH && !mode_streams(mode);
    const bool prefetches = is_cached && mode_adds(mode) && type == POSENC_DTYPE_F32 &&
                            tensor_bytes(&args->out) > PREFETCH_MIN_BYTES;
    const int64_t batches = args->out.shape[0];

    for (int64_t plane = 0; plane < batches * to->heads; plane++) {
        const int64_t b = is_cached ? plane % batches : plane / to->heads;
        const int64_t k = is_cached ? plane / batches : plane % to->heads;

        window_scores(type, mode, bias + k * WINDOW_PITCH, args, to, b, to->h + k,
                      prefetches && b + 1 < batches);
    }
}

/* Puts all scores: piece by piece, four heads at a time. */
SIMD_INLINE void window_heads(enum posenc_dtype type, enum store_mode mode,
                              const struct posenc_window_args *given)
{
    const struct posenc_window_args copy = *given, *args = &copy;
    _Alignas(64) float bias[HEAD_GROUP * WINDOW_PITCH];
    struct head_group heads;
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];
    int64_t width = min_i64(keys, WINDOW_PIECE), most = WINDOW_PIECE / width;

    for (int64_t h = 0; h < args->out.shape[1]; h += HEAD_GROUP) {
        load_head_group(&args->table, h, &heads);
        for (int64_t i = 0; i < queries; i += most)
            for (int64_t j = 0; j < keys; j += width) {
                int64_t rows = min_i64(queries - i, most), n = min_i64(keys - j, width);
                const bool dense =
                    n == args->out.stride[2] && (!mode_adds(mode) || n == args->x.stride[2]);
                const struct window to = { h, heads.n, i, rows, j, n, dense ? rows : 1 };
                const int32_t *index = args->index + i * keys + j;

                if (type == POSENC_DTYPE_F32 && mode == STORE && heads.n == HEAD_GROUP &&
                    n == args->out.stride[2]) { /* contiguous rows, one batch: fetch to out */
                    fetch_biases(&heads, index, rows * n, output_row(&args->out, 0, h, i),
                                 args->out.stride[1]);
                    continue;
                }
                fetch_biases(&heads, index, rows * n, bias, WINDOW_PITCH);
                window_put_heads(type, mode, bias, args, &to);
            }
    }
}

INSTANCES_WRITING(window_heads, posenc_window_args)
INSTANCES_ADDING(window_heads, posenc_window_args)

enum posenc_status KERNEL(window_bias)(const struct posenc_window_args *args)
{
    RUN_WRITING(window_heads, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(window_bias_add)(const struct posenc_window_args *args)
{
    RUN_ADDING(window_heads, args);
    return POSENC_OK;
}
