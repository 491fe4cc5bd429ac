/*
 * Kernel relative_sum: attention weights x summed by relative position, in f32 from +0 on, keys in ascending order:
 *
 *   out[b, h, i, c] = sum of x[b, h, i, j] over the keys j with index[i - j + keys - 1] = c
 *
 * Shapes: x [batch, heads, queries, keys]; out [batch, heads, queries, columns]; index [queries + keys - 1], int32.
 * Source: Shaw et al. 1803.02155 section 3.2: out multiplies a^V.
 *
 * The order within a column is fixed, so additions to one column depend on each other, and a single row waits for the
 * latency of each. Query i + 1 has the column of query i one key later. Eight queries therefore advance together: at
 * step t, query i0 + r is at key r + t, and all of them are at the same column. These additions are independent, and
 * form a vector. If there are fewer queries, the rows come from several heads instead.
 *
 * Sums grow in an f32 buffer that holds a range of columns, and are stored, rounded, when they are complete. With more
 * columns the rows are read once per range; for an index that only rises or only falls, each range takes only the steps
 * that it needs.
 */
#include "store_modes.h"

/* Sizes. SUM_PITCH is no power of two, which would map all rows to the same sets of the L1 cache. Sixteen rows
 * prefetch half as far, and only from DRAM: their prefetched lines would not fit into the L1 cache. */
enum {
    SUM_ROWS = 16,                /* most rows that advance together */
    SUM_QUERIES = 8,              /* most queries among them */
    SUM_COLUMNS = 512,            /* columns of the buffer */
    SUM_STEPS = 256,              /* steps for which 16-bit elements are converted at a time */
    SUM_PITCH = SUM_COLUMNS + 16, /* floats between the sums of two rows */
    SUM_PREFETCH_BYTES = 1024     /* prefetch distance of eight rows */
};

/* Rows that are summed together, and the sums of a range of columns. */
struct sums {
    const void *x[SUM_ROWS];
    void *out[SUM_ROWS];
    int64_t lead[SUM_ROWS]; /* row r is at key lead[r] + t at step t */
    int64_t max_lead;
    bool exceeds_cache;     /* x exceeds the caches */
    const int32_t *column;  /* column[-t] is that of step t */
    int64_t keys, first, n; /* columns in the buffer: [first, first + n) */
    float buffer[SUM_ROWS * SUM_PITCH];
};

/* Returns sums + a + b + c + d, added in this order. */
SIMD_INLINE vf add_four(vf sums, vf a, vf b, vf c, vf d)
{
    return vf_add(vf_add(vf_add(vf_add(sums, a), b), c), d);
}

/* Adds steps t to t + n - 1, all at one column, for rows that fill vectors. Four steps at a time are copied to a
 * small buffer and transposed, so that a vector holds one step of all rows. With `halves`, there are half as many
 * rows as lanes, and each half of a vector takes four steps. Returns the number of steps that are left. */
SIMD_INLINE int64_t add_transposed(bool halves, bool exceeds_cache, int64_t rows,
                                   const float *const *x, int64_t t, int64_t n, float *sum)
{
    enum { FOUR = 4, LINE = 16 };
    const int32_t order[SUM_ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int32_t upper[SUM_ROWS] = { 8, 9, 10, 11, 12, 13, 14, 15 };
    const int64_t w = vf_lanes(), together = halves ? w / 2 : w,
                  steps = halves ? 2 * FOUR : FOUR;
    const bool few_rows = together <= SUM_QUERIES;
    const int64_t prefetch = few_rows ? SUM_PREFETCH_BYTES : SUM_PREFETCH_BYTES / 2;
    _Alignas(64) float near[SUM_ROWS * FOUR];

    for (int64_t first = 0; first < rows; first += together) {
        vf sums = vf_load_n(sum + first, together), a, b, c, d;

        for (int64_t k = t; k + steps <= t + n; k += steps) {
            for (int64_t r = 0;
                 (few_rows || exceeds_cache) && (k - t) % LINE == 0 && r < together; r++)
                prefetch_at(x[first + r], k * (int64_t)sizeof(float) + prefetch);
            for (int64_t r = 0; r < w; r++)
                memcpy(near + r * FOUR, x[first + r % together] + k + r / together * FOUR,
                       FOUR * sizeof *near);
            vf_gather4(near, order, &a, &b, &c, &d);
            sums = add_four(sums, a, b, c, d);
            if (halves)
                sums = add_four(sums, vf_lookup(a, upper, 0), vf_lookup(b, upper, 0),
                                vf_lookup(c, upper, 0), vf_lookup(d, upper, 0));
        }
        vf_store_n(sum + first, sums, together);
    }
    return n % steps;
}

/* Adds n steps at one column: sums[r * SUM_PITCH] += x[r][t] + ... + x[r][t + n - 1], in this order. */
SIMD_INLINE void add_same_column(bool exceeds_cache, int64_t rows, const float *const *x,
                                 int64_t t, int64_t n, float *sums)
{
    enum { LONG = 16 };
    const int64_t w = vf_lanes(), end = t + n;
    float sum[SUM_ROWS];

    for (int64_t r = 0; r < rows; r++)
        sum[r] = sums[r * SUM_PITCH];
    if (w > 1 && w <= SUM_ROWS && rows % w == 0 && n >= LONG)
        n = exceeds_cache ? add_transposed(false, true, rows, x, t, n, sum)
                          : add_transposed(false, false, rows, x, t, n, sum);
    else if (w == SUM_ROWS && 2 * rows == w && n >= LONG)
        n = add_transposed(true, false, rows, x, t, n, sum);
    for (int64_t k = end - n; k < end; k++)
        for (int64_t r = 0; r < rows; r++)
            sum[r] += x[r][k];
    for (int64_t r = 0; r < rows; r++)
        sums[r * SUM_PITCH] = sum[r];
}

/* Adds n steps whose columns rise by one each: contiguous elements to contiguous sums. */
SIMD_INLINE void add_rising_columns(int64_t rows, const float *const *x, int64_t t, int64_t n,
                                    float *sums)
{
    int64_t w = vf_lanes();

    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < n; k += w) {
            int64_t m = n - k < w ? n - k : w;
            float *to = sums + r * SUM_PITCH + k;
            store_f32(to,
                      vf_add(load_as(POSENC_DTYPE_F32, to, 0, m),
                             load_as(POSENC_DTYPE_F32, x[r] + t, k, m)),
                      m);
        }
}

/* Returns the number of steps, at most n, that have the same column as the first. Compares 64 at a time. */
static int64_t same_steps(const int32_t *column, int64_t n)
{
    enum { STEP = 64 };
    int64_t k = 1;

    for (; k + STEP <= n; k += STEP) {
        int32_t other = 0;

        for (int64_t m = 0; m < STEP; m++)
            other |= column[-k - m] ^ *column;
        if (other)
            break;
    }
    while (k < n && column[-k] == *column)
        k++;
    return k;
}

/* Adds steps [t, end), at which every row has a key. x[r][k] is row r's element of step t + k. */
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
        if (step == 0)
            n = same_steps(column - t, end - t);
        while (step == 1 && t + n < end && c + n < sums->n &&
               column[-t - n] == column[-t] + (int32_t)n)
            n++;
        if (step == 1)
            add_rising_columns(rows, x, k, n, sums->buffer + c);
        else
            add_same_column(sums->exceeds_cache, rows, x, k, n, sums->buffer + c);
    }
}

/* Adds steps [t, end), at which some rows have not begun or have run out of keys. */
SIMD_INLINE void add_ragged(enum posenc_dtype type, int64_t rows, struct sums *sums, int64_t t,
                            int64_t end)
{
    for (; t < end; t++) {
        int64_t c = sums->column[-t] - sums->first;

        for (int64_t r = 0; c >= 0 && c < sums->n && r < rows; r++)
            if (sums->lead[r] + t >= 0 && sums->lead[r] + t < sums->keys)
                sums->buffer[r * SUM_PITCH + c] +=
                    posenc_get(type, sums->x[r], sums->lead[r] + t);
    }
}

/* Adds steps [t, end) of all rows: ragged steps, full steps, ragged steps. */
SIMD_INLINE void add_all(enum posenc_dtype type, int64_t rows, struct sums *sums, int64_t t,
                         int64_t end)
{
    float wide[SUM_ROWS][SUM_STEPS];
    const float *x[SUM_ROWS];
    int64_t w = vf_lanes(), full = min_i64(end, sums->keys - sums->max_lead);

    add_ragged(type, rows, sums, t, min_i64(end, 0));
    for (t = t < 0 ? 0 : t; t < full;) {
        int64_t n = type == POSENC_DTYPE_F32 ? full - t : min_i64(full - t, SUM_STEPS);

        for (int64_t r = 0; r < rows; r++) {
            int64_t key = sums->lead[r] + t;

            x[r] = type == POSENC_DTYPE_F32 ? (const float *)sums->x[r] + key : wide[r];
            for (int64_t k = 0; type != POSENC_DTYPE_F32 && k < n; k += w)
                store_f32(wide[r] + k, load_as(type, sums->x[r], key + k, min_i64(n - k, w)),
                          min_i64(n - k, w));
        }
        add_steps(rows, sums, x, t, t + n);
        t += n;
    }
    add_ragged(type, rows, sums, t, end);
}

/* Returns the first step of [t, end) whose column is at least `bound` (rise) or below it, by bisection. */
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

/* Order of the columns as the index rises. */
enum sum_order { SUM_RISING, SUM_FALLING, SUM_UNORDERED };
static enum sum_order sum_order(const int32_t *index, int64_t n)
{
    int32_t more = 0, less = 0;

    for (int64_t k = 1; k < n; k++) {
        more |= index[k] > index[k - 1];
        less |= index[k] < index[k - 1];
    }
    return !more ? SUM_RISING : !less ? SUM_FALLING : SUM_UNORDERED;
}

/* Sums all columns of some rows. sums->x, out and lead are set; row 0 is query i. */
SIMD_INLINE void sum_rows(enum posenc_dtype type, int64_t rows,
                          const struct posenc_relative_sum_args *args, enum sum_order order,
                          int64_t i, struct sums *sums)
{
    int64_t w = vf_lanes(), columns = args->out.shape[3];

    sums->keys = args->x.shape[3];
    sums->column = args->index + i + sums->keys - 1;
    for (int64_t c = 0; c < columns; c += SUM_COLUMNS) {
        int64_t t = -sums->max_lead, end = sums->keys;
        bool rise = order == SUM_RISING;

        sums->first = c;
        sums->n = min_i64(columns - c, SUM_COLUMNS);
        if (columns > SUM_COLUMNS && order != SUM_UNORDERED) {
            t = first_beyond(sums->column, rise, rise ? c : c + sums->n, t, end);
            end = first_beyond(sums->column, rise, rise ? c + sums->n : c, t, end);
        }
        for (int64_t r = 0; r < rows; r++)
            memset(sums->buffer + r * SUM_PITCH, 0, (size_t)sums->n * sizeof *sums->buffer);
        add_all(type, rows, sums, t, end);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < sums->n; k += w) {
                int64_t m = min_i64(sums->n - k, w);
                store_as(type, sums->out[r], c + k,
                         load_as(POSENC_DTYPE_F32, sums->buffer + r * SUM_PITCH, k, m), m);
            }
    }
}

/* Sums queries [i, i + queries) of the heads [head, head + heads), counted over all batches. */
SIMD_INLINE void sum_together(enum posenc_dtype type,
                              const struct posenc_relative_sum_args *args, enum sum_order order,
                              int64_t head, int64_t heads, int64_t i, int64_t queries)
{
    const int64_t rows = heads * queries;
    struct sums sums;

    for (int64_t r = 0; r < rows; r++) {
        int64_t b = (head + r / queries) / args->out.shape[1];
        int64_t h = (head + r / queries) % args->out.shape[1];

        sums.lead[r] = r % queries;
        sums.x[r] = input_row(&args->x, b, h, i + r % queries);
        sums.out[r] = output_row(&args->out, b, h, i + r % queries);
    }
    sums.max_lead = queries - 1;
    sums.exceeds_cache = args->out.shape[0] * args->out.shape[1] * args->out.shape[2] *
                             args->x.shape[3] * (int64_t)posenc_dtype_size(type) >
                         STREAM_MIN_BYTES;
    sum_rows(type, rows, args, order, i, &sums);
}

/* Sums queries [i, i + queries) of all heads: in groups of `together` heads, then in smaller groups. */
SIMD_INLINE void sum_block(enum posenc_dtype type, const struct posenc_relative_sum_args *args,
                           enum sum_order order, int64_t i, int64_t queries, int64_t together)
{
    const int64_t heads = args->out.shape[0] * args->out.shape[1];
    int64_t head = 0;

    for (; head + together <= heads; head += together)
        sum_together(type, args, order, head, together, i, queries);
    for (; queries < SUM_QUERIES && head + SUM_QUERIES <= heads; head += SUM_QUERIES)
        sum_together(type, args, order, head, SUM_QUERIES, i, queries);
    for (; head < heads; head++)
        sum_together(type, args, order, head, 1, i, queries);
}

/* Returns the number of rows to sum together whose distance is `stride` elements: a full vector, but eight for f32
 * rows that are a multiple of 4 KiB apart. Such rows share a set of the L1 cache, which holds eight or twelve lines. */
static int64_t rows_together(enum posenc_dtype type, int64_t stride)
{
    const bool share = type == POSENC_DTYPE_F32 && stride * (int64_t)sizeof(float) % 4096 == 0;

    return vf_lanes() == SUM_ROWS && !share ? SUM_ROWS : SUM_QUERIES;
}

/* Sums all queries, eight at a time, then the remaining ones. */
SIMD_INLINE void sum_all(enum posenc_dtype type, const struct posenc_relative_sum_args *args)
{
    int64_t queries = args->out.shape[2], together = queries - queries % SUM_QUERIES;
    enum sum_order order = sum_order(args->index, queries + args->x.shape[3] - 1);

    for (int64_t i = 0; i < together; i += SUM_QUERIES)
        sum_block(type, args, order, i, SUM_QUERIES,
                  rows_together(type, args->x.stride[2]) / SUM_QUERIES);
    for (int64_t i = together; i < queries; i++)
        sum_block(type, args, order, i, 1, rows_together(type, args->x.stride[1]));
}

enum posenc_status KERNEL(relative_sum)(const struct posenc_relative_sum_args *args)
{
    FOR_TYPE(args->out.dtype, sum_all, args);
    return POSENC_OK;
}
