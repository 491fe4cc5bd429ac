/*
 * Columns of a bias table [rows, heads], f32: fetches table[index[k], head] for up to four neighbouring heads at once.
 *
 * The four values of a row are adjacent, so one load fetches them for all four heads, and a transposition gives a
 * vector of keys for each head. A table of few rows needs no load per key: a head's column is two vectors, and a
 * permutation looks up each key in them (vf_lookup2).
 */
#ifndef POSENC_KERNELS_HEAD_COLUMNS_H
#define POSENC_KERNELS_HEAD_COLUMNS_H

#include "kernel.h"

/* Heads that are fetched together; rows of the longest table that is copied. */
enum { HEAD_GROUP = 4, CACHED_TABLE_ROWS = 2304 };

/* Up to four columns of the table, copied to `cached`. Layouts of the copy:
 *   in_two_vectors      [n][2 * lanes]: one head after the other; elements past the last row are unspecified
 *   is_copied, n > 1    [rows][HEAD_GROUP]: the table's rows, +0 for missing heads
 *   is_copied, n == 1   [rows]
 *   neither             no copy; elements are read from `table` */
struct head_group {
    const float *table; /* element [0, first head] of the caller's table */
    int64_t stride, n;  /* elements from row to row; heads, 1 to HEAD_GROUP */
    bool is_copied, in_two_vectors;
    int32_t row_order[2 * POSENC_FREQS_PAD]; /* in_two_vectors: row r is at row_order[r] * 4 */
    _Alignas(64) float cached[CACHED_TABLE_ROWS * HEAD_GROUP];
};

/* Copies the columns of a table that fits in two vectors per head. If rows are a multiple of four elements apart,
 * transposes four columns a vector at a time, which is much faster than element by element. */
static void copy_columns(struct head_group *heads, int64_t rows)
{
    const int64_t w = vf_lanes(), column = 2 * w;
    const bool steps = heads->stride > 0 && heads->stride % HEAD_GROUP == 0;

    if (heads->n < HEAD_GROUP || !steps || heads->stride > (1 << 30) / rows) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t h = 0; h < heads->n; h++)
                heads->cached[h * column + r] = heads->table[r * heads->stride + h];
        return;
    }
    for (int64_t r = 0; r < column; r += w) {
        vf a, b, c, d;

        vf_gather4(heads->table, heads->row_order + r, &a, &b, &c, &d);
        vf_store(heads->cached + r, a);
        vf_store(heads->cached + column + r, b);
        vf_store(heads->cached + 2 * column + r, c);
        vf_store(heads->cached + 3 * column + r, d);
    }
}

/* Prepares the group of heads that begins with `head`. Call it for head 0 first, as that computes row_order. */
static void load_head_group(const struct posenc_const_tensor *table, int64_t head,
                            struct head_group *heads)
{
    const int64_t rows = table->shape[0], stride = table->stride[0];
    const float *from = (const float *)table->data + head;

    heads->table = from;
    heads->stride = stride;
    heads->is_copied = rows <= CACHED_TABLE_ROWS;
    heads->in_two_vectors = rows <= 2 * vf_lanes();
    heads->n = min_i64(table->shape[1] - head, HEAD_GROUP);
    for (int64_t r = 0; r < 2 * vf_lanes() && heads->in_two_vectors && head == 0;
         r++) /* lanes past the last row repeat it */
        heads->row_order[r] = (int32_t)(min_i64(r, rows - 1) * (stride / HEAD_GROUP));
    if (heads->in_two_vectors)
        copy_columns(heads, rows);
    if (heads->in_two_vectors || !heads->is_copied)
        return;
    for (int64_t r = 0; heads->n == 1 && r < rows; r++)
        heads->cached[r] = from[r * stride];
    for (int64_t r = 0; heads->n == HEAD_GROUP && r < rows; r++)
        memcpy(heads->cached + r * HEAD_GROUP, from + r * stride, HEAD_GROUP * sizeof *from);
    for (int64_t r = 0; heads->n > 1 && heads->n < HEAD_GROUP && r < rows; r++)
        for (int64_t h = 0; h < HEAD_GROUP; h++)
            heads->cached[r * HEAD_GROUP + h] = h < heads->n ? from[r * stride + h] : 0.0f;
}

/* Looks up whole vectors of one head's values: out[k] = column[index[k]]. Returns the first k that is left. */
static int64_t lookup_column(const float *column, const int32_t *index, int64_t n, float *out)
{
    const int64_t w = vf_lanes();
    const vf first = vf_load(column), second = vf_load(column + w);
    int64_t k = 0;

    for (; k + w <= n; k += w)
        vf_store(out + k, vf_lookup2(first, second, index + k));
    return k;
}

/* Sets out[h * pitch + k] = table[index[k], first head + h] for k < n and each head h of the group. */
static void fetch_biases(const struct head_group *heads, const int32_t *index, int64_t n,
                         float *out, int64_t pitch)
{
    int64_t w = vf_lanes(), k = 0, end = heads->is_copied && !heads->in_two_vectors ? n : 0;

    for (int64_t h = 0; heads->in_two_vectors && h < heads->n; h++)
        k = lookup_column(heads->cached + 2 * h * w, index, n, out + h * pitch);
    for (; heads->n == 1 && k + w <= end; k += w)
        vf_store(out + k, vf_gather_n(heads->cached, index + k, w));
    for (; heads->n > 1 && k + w <= end; k += w) {
        vf a, b, c, d;

        vf_gather4(heads->cached, index + k, &a, &b, &c, &d);
        vf_store(out + k, a);
        vf_store(out + pitch + k, b);
        vf_store(out + 2 * pitch + k, c);
        vf_store(out + 3 * pitch + k, d);
    }
    for (; k < n; k++)
        for (int64_t h = 0; h < heads->n; h++)
            out[h * pitch + k] = heads->table[index[k] * heads->stride + h];
}

#endif
