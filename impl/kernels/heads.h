/*
 * Elements of a table [rows, heads] by row, of four heads at a time: one load has those of four
 * heads, where one head alone would take a load an element.
 */
#ifndef POSENC_KERNELS_HEADS_H
#define POSENC_KERNELS_HEADS_H

#include "kernel.h"

/* Heads taken together; the rows of the longest table whose columns are copied to be near. */
enum { HEADS_AT_ONCE = 4, HEADS_ROWS = 2304 };

/* The columns of a table from one head on, those past the last head +0: a row of four after the other.
 * One that is alone is a line. Where a table has `few` rows, so that two vectors hold a column, each head
 * is one, and what lies past its rows is nobody's. */
struct heads {
    const float *table; /* row 0 of the first head */
    int64_t stride, n;  /* from row to row; how many heads */
    bool copied, few;
    int32_t order[2 * POSENC_PLAN_PAD]; /* of few: where rows are, in steps of four */
    _Alignas(64) float rows[HEADS_ROWS * HEADS_AT_ONCE];
};

/* Columns of a table of few rows. Four of them a vector at a time, where the rows are whole steps of
 * four apart: an element at a time takes 75 ns of 16 heads (Zen 5). */
static void take_columns(struct heads *heads, int64_t rows)
{
    const int64_t w = vf_lanes(), column = 2 * w;
    const bool steps = heads->stride > 0 && heads->stride % HEADS_AT_ONCE == 0;

    if (heads->n < HEADS_AT_ONCE || !steps || heads->stride > (1 << 30) / rows) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t h = 0; h < heads->n; h++)
                heads->rows[h * column + r] = heads->table[r * heads->stride + h];
        return;
    }
    for (int64_t r = 0; r < column; r += w) {
        vf a, b, c, d;

        vf_gather4(heads->table, heads->order + r, &a, &b, &c, &d);
        vf_store(heads->rows + r, a);
        vf_store(heads->rows + column + r, b);
        vf_store(heads->rows + 2 * column + r, c);
        vf_store(heads->rows + 3 * column + r, d);
    }
}

/* Heads are taken from the first on. */
static void take_heads(const struct posenc_const_tensor *table, int64_t head,
                       struct heads *heads)
{
    const int64_t rows = table->shape[0], stride = table->stride[0];
    const float *from = (const float *)table->data + head;

    heads->table = from;
    heads->stride = stride;
    heads->copied = rows <= HEADS_ROWS;
    heads->few = rows <= 2 * vf_lanes();
    heads->n = least(table->shape[1] - head, HEADS_AT_ONCE);
    for (int64_t r = 0; r < 2 * vf_lanes() && heads->few && head == 0;
         r++) /* none past the last row */
        heads->order[r] = (int32_t)(least(r, rows - 1) * (stride / HEADS_AT_ONCE));
    if (heads->few)
        take_columns(heads, rows);
    if (heads->few || !heads->copied)
        return;
    for (int64_t r = 0; heads->n == 1 && r < rows; r++)
        heads->rows[r] = from[r * stride];
    for (int64_t r = 0; heads->n == HEADS_AT_ONCE && r < rows; r++)
        memcpy(heads->rows + r * HEADS_AT_ONCE, from + r * stride,
               HEADS_AT_ONCE * sizeof *from);
    for (int64_t r = 0; heads->n > 1 && heads->n < HEADS_AT_ONCE && r < rows; r++)
        for (int64_t h = 0; h < HEADS_AT_ONCE; h++)
            heads->rows[r * HEADS_AT_ONCE + h] = h < heads->n ? from[r * stride + h] : 0.0f;
}

/* Fetches the values of one head in whole vectors; returns the first remaining element. */
static int64_t fetch_few(const float *column, const int32_t *index, int64_t n, float *out)
{
    const int64_t w = vf_lanes();
    const vf first = vf_load(column), second = vf_load(column + w);
    int64_t k = 0;

    for (; k + w <= n; k += w)
        vf_store(out + k, vf_lookup2(first, second, index + k));
    return k;
}

/* out[h * pitch + k] = head h's element of row index[k]. */
static void fetch_heads(const struct heads *heads, const int32_t *index, int64_t n, float *out,
                        int64_t pitch)
{
    int64_t w = vf_lanes(), k = 0, end = heads->copied && !heads->few ? n : 0;

    for (int64_t h = 0; heads->few && h < heads->n; h++)
        k = fetch_few(heads->rows + 2 * h * w, index, n, out + h * pitch);
    for (; heads->n == 1 && k + w <= end; k += w)
        vf_store(out + k, vf_gather_n(heads->rows, index + k, w));
    for (; heads->n > 1 && k + w <= end; k += w) {
        vf a, b, c, d;

        vf_gather4(heads->rows, index + k, &a, &b, &c, &d);
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
