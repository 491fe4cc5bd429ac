/*
 * Kernel relative_sum: attention weights summed by relative position,
 *
 *     out[b,h,i,c] = sum of x[b,h,i,j] over ascending j with index[i - j + keys - 1] = c
 *
 * in f32 from +0 on (Shaw et al. 1803.02155 section 3.2: what multiplies a^V).
 *
 * Query i + 1 meets the columns of query i one key later.  So a few queries walk together, each
 * a key ahead of the one before: at step t, query i0 + r is at key r + t and all are at one
 * column.  Of queries too few for that the same one walks in a few heads, side by side.  Their
 * additions wait for none but their own.  The order within a column is that of the keys whatever
 * the ISA, hence the bits.
 *
 * Sums grow in a short f32 buffer and are stored, rounded, when they are complete.  It holds a
 * range of columns.  Where there are more, the walk is repeated for each range; over lines of
 * columns that only rise or only fall with the keys, as those of all builders do, it takes only
 * the steps that the range needs.
 */
#include "kernel.h"

/* Rows that walk together; columns of the buffer; steps for which rows of 16-bit elements
 * are widened at a time.  SUM_PITCH from a query's sums to the next: no power of two, which
 * would map them to the same lines of the nearest cache. */
enum { SUM_ROWS = 8, SUM_COLUMNS = 512, SUM_STEPS = 256, SUM_PITCH = SUM_COLUMNS + 16 };

struct sums {
    const void *x[SUM_ROWS]; /* rows */
    void *out[SUM_ROWS];
    int64_t ahead;          /* row r is at key ahead r + t */
    const int32_t *column;  /* at step t: column[-t] */
    int64_t keys, first, n; /* the columns of the buffer: n from `first` on */
    float at[SUM_ROWS * SUM_PITCH];
};

/* n steps at one column: sums + sum of x[r][0 ... n - 1]. */
SIMD_INLINE void add_chain(int64_t rows, const float *const *x, int64_t t, int64_t n,
                           float *sums)
{
    float sum[SUM_ROWS];

    for (int64_t r = 0; r < rows; r++)
        sum[r] = sums[r * SUM_PITCH];
    for (int64_t k = t; k < t + n; k++)
        for (int64_t r = 0; r < rows; r++)
            sum[r] += x[r][k];
    for (int64_t r = 0; r < rows; r++)
        sums[r * SUM_PITCH] = sum[r];
}

/* n steps at columns that rise by one each. */
SIMD_INLINE void add_side_by_side(int64_t rows, const float *const *x, int64_t t, int64_t n,
                                  float *sums)
{
    int64_t w = vf_lanes();

    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < n; k += w) {
            int64_t m = n - k < w ? n - k : w;
            float *to = sums + r * SUM_PITCH + k;
            store_f32(
                to, vf_add(load_as(POSENC_F32, to, 0, m), load_as(POSENC_F32, x[r] + t, k, m)),
                m);
        }
}

/* Steps t to before `end` at which all rows have a key; x[r][k] is that of step t + k. */
SIMD_INLINE void add_steps(int64_t rows, struct sums *sums, const float *const *x, int64_t t,
                           int64_t end)
{
    const int32_t *column = sums->column;

    for (int64_t k = 0, n = 1; t < end; t += n, k += n) {
        int64_t c = column[-t] - sums->first;
        int64_t step = t + 1 < end ? column[-t - 1] - column[-t] : -1;

        n = 1;
        if (c < 0 || c >= sums->n)
            continue;
        while (step == 0 && t + n < end && column[-t - n] == column[-t])
            n++;
        while (step == 1 && t + n < end && c + n < sums->n &&
               column[-t - n] == column[-t] + (int32_t)n)
            n++;
        if (step == 1)
            add_side_by_side(rows, x, k, n, sums->at + c);
        else
            add_chain(rows, x, k, n, sums->at + c);
    }
}

/* Steps t to before `end` at which some rows have run out of keys or have not begun. */
SIMD_INLINE void add_ragged(enum posenc_dtype type, int64_t rows, struct sums *sums, int64_t t,
                            int64_t end)
{
    for (; t < end; t++) {
        int64_t c = sums->column[-t] - sums->first;

        for (int64_t r = 0; c >= 0 && c < sums->n && r < rows; r++)
            if (sums->ahead * r + t >= 0 && sums->ahead * r + t < sums->keys)
                sums->at[r * SUM_PITCH + c] +=
                    posenc_get(type, sums->x[r], sums->ahead * r + t);
    }
}

/* Steps t to before `end`. */
SIMD_INLINE void add_all(enum posenc_dtype type, int64_t rows, struct sums *sums, int64_t t,
                         int64_t end)
{
    float wide[SUM_ROWS][SUM_STEPS];
    const float *x[SUM_ROWS];
    int64_t w = vf_lanes(), ahead = sums->ahead;
    int64_t full = least(end, sums->keys - ahead * (rows - 1));

    add_ragged(type, rows, sums, t, least(end, 0));
    for (t = t < 0 ? 0 : t; t < full;) {
        int64_t n = type == POSENC_F32 ? full - t : least(full - t, SUM_STEPS);

        for (int64_t r = 0; r < rows; r++) {
            int64_t key = ahead * r + t;

            x[r] = type == POSENC_F32 ? (const float *)sums->x[r] + key : wide[r];
            for (int64_t k = 0; type != POSENC_F32 && k < n; k += w)
                store_f32(wide[r] + k, load_as(type, sums->x[r], key + k, least(n - k, w)),
                          least(n - k, w));
        }
        add_steps(rows, sums, x, t, t + n);
        t += n;
    }
    add_ragged(type, rows, sums, t, end);
}

/* First step of [t, end) at a column that is not below `bound`; where columns fall, at one that
 * is. */
static int64_t first_beyond(const int32_t *column, bool rise, int64_t bound, int64_t t,
                            int64_t end)
{
    while (t < end) {
        int64_t middle = t + (end - t) / 2;
        if ((column[-middle] < bound) == rise)
            t = middle + 1;
        else
            end = middle;
    }
    return t;
}

/* Whether columns, as keys rise, only rise, only fall, or neither. */
enum sum_order { SUM_RISING, SUM_FALLING, SUM_UNORDERED };
static enum sum_order sum_order(const int32_t *index, int64_t n)
{
    bool rising = true, falling = true;

    for (int64_t k = 1; k < n; k++) {
        rising = rising && index[k] <= index[k - 1];
        falling = falling && index[k] >= index[k - 1];
    }
    return rising ? SUM_RISING : falling ? SUM_FALLING : SUM_UNORDERED;
}

/* All columns of some rows, of the query or from the query i on. */
SIMD_INLINE void sum_rows(enum posenc_dtype type, int64_t rows,
                          const struct posenc_relative_sum_args *args, enum sum_order order,
                          int64_t i, struct sums *sums)
{
    int64_t w = vf_lanes(), columns = args->out.shape[3];

    sums->keys = args->x.shape[3];
    sums->column = args->index + i + sums->keys - 1;
    for (int64_t c = 0; c < columns; c += SUM_COLUMNS) {
        int64_t t = -sums->ahead * (rows - 1), end = sums->keys;
        bool rise = order == SUM_RISING;

        sums->first = c;
        sums->n = least(columns - c, SUM_COLUMNS);
        if (columns > SUM_COLUMNS && order != SUM_UNORDERED) {
            t = first_beyond(sums->column, rise, rise ? c : c + sums->n, t, end);
            end = first_beyond(sums->column, rise, rise ? c + sums->n : c, t, end);
        }
        for (int64_t r = 0; r < rows; r++)
            memset(sums->at + r * SUM_PITCH, 0, (size_t)sums->n * sizeof *sums->at);
        add_all(type, rows, sums, t, end);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < sums->n; k += w) {
                int64_t m = least(sums->n - k, w);
                store_as(type, sums->out[r], c + k,
                         load_as(POSENC_F32, sums->at + r * SUM_PITCH, k, m), m);
            }
    }
}

/* Queries from i on of one head. */
SIMD_INLINE void sum_queries(enum posenc_dtype type,
                             const struct posenc_relative_sum_args *args, enum sum_order order,
                             int64_t b, int64_t h, int64_t i)
{
    struct sums sums;

    sums.ahead = 1;
    for (int64_t r = 0; r < SUM_ROWS; r++) {
        sums.x[r] = input_at(&args->x, b, h, i + r);
        sums.out[r] = row_at(&args->out, b, h, i + r);
    }
    sum_rows(type, SUM_ROWS, args, order, i, &sums);
}

/* Query i of `rows` heads, which are counted on from batch to batch. */
SIMD_INLINE void sum_heads(enum posenc_dtype type, int64_t rows,
                           const struct posenc_relative_sum_args *args, enum sum_order order,
                           int64_t head, int64_t i)
{
    int64_t heads = args->out.shape[1];
    struct sums sums;

    sums.ahead = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t b = (head + r) / heads, h = (head + r) % heads;

        sums.x[r] = input_at(&args->x, b, h, i);
        sums.out[r] = row_at(&args->out, b, h, i);
    }
    sum_rows(type, rows, args, order, i, &sums);
}

SIMD_INLINE void sum_all(enum posenc_dtype type, const struct posenc_relative_sum_args *args)
{
    int64_t queries = args->out.shape[2], together = queries - queries % SUM_ROWS;
    int64_t heads = args->out.shape[0] * args->out.shape[1],
            side_by_side = heads - heads % SUM_ROWS;
    enum sum_order order = sum_order(args->index, queries + args->x.shape[3] - 1);

    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < together; i += SUM_ROWS)
                sum_queries(type, args, order, b, h, i);
    for (int64_t i = together; i < queries; i++) {
        for (int64_t head = 0; head < side_by_side; head += SUM_ROWS)
            sum_heads(type, SUM_ROWS, args, order, head, i);
        for (int64_t head = side_by_side; head < heads; head++)
            sum_heads(type, 1, args, order, head, i);
    }
}

enum posenc_status KERNEL(relative_sum)(const struct posenc_relative_sum_args *args)
{
    FOR_TYPE(args->out.dtype, sum_all, args);
    return POSENC_OK;
}
