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

/* The biases of a head that are fetched at a time. WINDOW_PITCH from those of one head to those
 * of the next: no power of two, which would map them to the same lines of the nearest cache. */
enum { WINDOW_PIECE = 2432, WINDOW_PITCH = WINDOW_PIECE + 16 };

/* Scores in f32 that do not stay in an L2 are taken so many at a time, and before each the same ones of the
 * next batch are asked for: 0.8 of the time (L3, Zen 5); in 16 bits, where conversions bind, up to 1.2. */
enum { ASK_FROM = 1 << 20, ASK_PIECE = WINDOW_PIECE / 4 };

/* Range of some biases: heads from h on, n keys from j on, `rows` queries from i on. `step` queries go
 * together: all if they follow each other in memory, otherwise one. */
struct window {
    int64_t h, heads, i, rows, j, n, step;
};

/* A head's biases to its scores in batch b. */
SIMD_INLINE void window_scores(enum posenc_dtype type, enum how how, const float *bias,
                               const struct posenc_window_args *args, const struct window *to,
                               int64_t b, int64_t head, bool asks)
{
    const int64_t row = to->step * to->n, most = asks ? ASK_PIECE : row;
    const int64_t size = (int64_t)posenc_dtype_size(type);

    for (int64_t r = 0; r < to->rows; r += to->step)
        for (int64_t k = 0; k < row; k += most) {
            const int64_t n = least(row - k, most);

            for (int64_t line = 0; asks && line < n * size; line += 64)
                ask_for((const char *)input_at(&args->x, b + 1, head, to->i + r),
                        (to->j + k) * size + line);
            put_biases(type, how, ALONG, bias + r * to->n + k, args->x_scale,
                       adds(how) ? input_at(&args->x, b, head, to->i + r) : NULL,
                       row_at(&args->out, b, head, to->i + r), to->j + k, n);
        }
}

/* Biases of some heads to all batches: of one head after the other, since four heads' do not stay in the
 * nearest cache beside the scores (0.85 to 0.95 of the time in L2, Zen 5); but in the order of memory where
 * that is far away. */
SIMD_INLINE void window_put(enum posenc_dtype type, enum how how, const float *bias,
                            const struct posenc_window_args *args, const struct window *to)
{
    const bool near = how != ADDED_FAR && !streams(how);
    const bool asks =
        near && adds(how) && type == POSENC_F32 && bytes_of(&args->out) > ASK_FROM;
    const int64_t batches = args->out.shape[0];

    for (int64_t plane = 0; plane < batches * to->heads; plane++) {
        const int64_t b = near ? plane % batches : plane / to->heads;
        const int64_t k = near ? plane / batches : plane % to->heads;

        window_scores(type, how, bias + k * WINDOW_PITCH, args, to, b, to->h + k,
                      asks && b + 1 < batches);
    }
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
                const bool dense =
                    n == args->out.stride[2] && (!adds(how) || n == args->x.stride[2]);
                const struct window to = { h, heads.n, i, rows, j, n, dense ? rows : 1 };
                const int32_t *index = args->index + i * keys + j;

                if (type == POSENC_F32 && how == STORED && heads.n == HEADS_AT_ONCE &&
                    n == args->out.stride[2]) { /* as they are fetched */
                    fetch_heads(&heads, index, rows * n, row_at(&args->out, 0, h, i),
                                args->out.stride[1]);
                    continue;
                }
                fetch_heads(&heads, index, rows * n, bias, WINDOW_PITCH);
                window_put(type, how, bias, args, &to);
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
