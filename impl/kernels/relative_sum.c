/*
 * Kernel relative_sum: attention weights summed by relative position,
 *
 *     out[b,h,i,c] = sum of x[b,h,i,j] over ascending j with index[i - j + keys - 1] = c
 *
 * in f32 from +0 on (Shaw et al. 1803.02155 section 3.2: what multiplies a^V).
 *
 * Query i + 1 meets the columns of query i one key later. So a few queries walk together, each
 * a key ahead of the one before: at step t, query i0 + r is at key r + t and all are at one
 * column. Of queries too few for that the same one walks in a few heads, side by side. Their
 * additions wait for none but their own. The order within a column is that of the keys whatever
 * the ISA, hence the bits.
 *
 * Sums grow in a short f32 buffer and are stored, rounded, when they are complete. It holds a
 * range of columns. Where there are more, the walk is repeated for each range; over lines of
 * columns that only rise or only fall with the keys, as those of all builders do, it takes only
 * the steps that the range needs.
 */
#include "stores.h"

/* Rows that walk together at most, and queries among them; columns of the buffer; steps for which rows of
 * 16-bit elements are widened at a time. SUM_PITCH from a query's sums to the next: no power of two, which
 * would map them to the same lines of the nearest cache. SUM_AHEAD: bytes from what eight rows add up to
 * what they ask for, 0.75 of the time in DRAM (avx2, Zen 5). Sixteen rows that lie a power of two apart
 * have no room for it in a cache (1.1 to 1.4 times the time in L2), and for half of it from DRAM (0.9). */
enum {
    SUM_ROWS = 16,
    SUM_QUERIES = 8,
    SUM_COLUMNS = 512,
    SUM_STEPS = 256,
    SUM_PITCH = SUM_COLUMNS + 16,
    SUM_AHEAD = 1024
};

struct sums {
    const void *x[SUM_ROWS]; /* rows */
    void *out[SUM_ROWS];
    int64_t ahead[SUM_ROWS]; /* row r is at key ahead[r] + t */
    int64_t most_ahead;
    bool far;               /* from DRAM */
    const int32_t *column;  /* at step t: column[-t] */
    int64_t keys, first, n; /* the columns of the buffer: n from `first` on */
    float at[SUM_ROWS * SUM_PITCH];
};

SIMD_INLINE vf add_four(vf sums, vf a, vf b, vf c, vf d)
{
    return vf_add(vf_add(vf_add(vf_add(sums, a), b), c), d);
}

/* Steps t to t + n - 1 of rows at one column, four at a time: their elements come together in the nearest
 * cache, and from there as vectors of rows. Half as many rows as lanes have four steps in either half.
 * Returns how many steps are left. One by one, elements take half a cycle each, and twice as long (Zen 5). */
SIMD_INLINE int64_t add_turned(bool halves, bool far, int64_t rows, const float *const *x,
                               int64_t t, int64_t n, float *sum)
{
    enum { FOUR = 4, LINE = 16 };
    const int32_t order[SUM_ROWS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    const int32_t upper[SUM_ROWS] = { 8, 9, 10, 11, 12, 13, 14, 15 };
    const int64_t w = vf_lanes(), together = halves ? w / 2 : w,
                  steps = halves ? 2 * FOUR : FOUR;
    const bool few = together <= SUM_QUERIES;
    const int64_t ahead = few ? SUM_AHEAD : SUM_AHEAD / 2;
    _Alignas(64) float near[SUM_ROWS * FOUR];

    for (int64_t first = 0; first < rows; first += together) {
        vf sums = vf_load_n(sum + first, together), a, b, c, d;

        for (int64_t k = t; k + steps <= t + n; k += steps) {
            for (int64_t r = 0; (few || far) && (k - t) % LINE == 0 && r < together; r++)
                ask_for(x[first + r], k * (int64_t)sizeof(float) + ahead);
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

/* n steps at one column: sums + sum of x[r][t ... t + n - 1]. */
SIMD_INLINE void add_chain(bool far, int64_t rows, const float *const *x, int64_t t, int64_t n,
                           float *sums)
{
    enum { LONG = 16 };
    const int64_t w = vf_lanes(), end = t + n;
    float sum[SUM_ROWS];

    for (int64_t r = 0; r < rows; r++)
        sum[r] = sums[r * SUM_PITCH];
    if (w > 1 && w <= SUM_ROWS && rows % w == 0 && n >= LONG)
        n = far ? add_turned(false, true, rows, x, t, n, sum)
                : add_turned(false, false, rows, x, t, n, sum);
    else if (w == SUM_ROWS && 2 * rows == w && n >= LONG)
        n = add_turned(true, false, rows, x, t, n, sum);
    for (int64_t k = end - n; k < end; k++)
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

/* Returns the number of the next n steps that have the same column. It compares 64 at a time, as that
 * takes half to three quarters of the time of single steps. */
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
        if (step == 0)
            n = same_steps(column - t, end - t);
        while (step == 1 && t + n < end && c + n < sums->n &&
               column[-t - n] == column[-t] + (int32_t)n)
            n++;
        if (step == 1)
            add_side_by_side(rows, x, k, n, sums->at + c);
        else
            add_chain(sums->far, rows, x, k, n, sums->at + c);
    }
}

/* Steps t to before `end` at which some rows have run out of keys or have not begun. */
SIMD_INLINE void add_ragged(enum posenc_dtype type, int64_t rows, struct sums *sums, int64_t t,
                            int64_t end)
{
    for (; t < end; t++) {
        int64_t c = sums->column[-t] - sums->first;

        for (int64_t r = 0; c >= 0 && c < sums->n && r < rows; r++)
            if (sums->ahead[r] + t >= 0 && sums->ahead[r] + t < sums->keys)
                sums->at[r * SUM_PITCH + c] += posenc_get(type, sums->x[r], sums->ahead[r] + t);
    }
}

/* Steps t to before `end`. */
SIMD_INLINE void add_all(enum posenc_dtype type, int64_t rows, struct sums *sums, int64_t t,
                         int64_t end)
{
    float wide[SUM_ROWS][SUM_STEPS];
    const float *x[SUM_ROWS];
    int64_t w = vf_lanes(), full = least(end, sums->keys - sums->most_ahead);

    add_ragged(type, rows, sums, t, least(end, 0));
    for (t = t < 0 ? 0 : t; t < full;) {
        int64_t n = type == POSENC_F32 ? full - t : least(full - t, SUM_STEPS);

        for (int64_t r = 0; r < rows; r++) {
            int64_t key = sums->ahead[r] + t;

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

/* Order of columns as keys rise: only rising, only falling, or neither. */
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

/* All columns of some rows, of the query or from the query i on. */
SIMD_INLINE void sum_rows(enum posenc_dtype type, int64_t rows,
                          const struct posenc_relative_sum_args *args, enum sum_order order,
                          int64_t i, struct sums *sums)
{
    int64_t w = vf_lanes(), columns = args->out.shape[3];

    sums->keys = args->x.shape[3];
    sums->column = args->index + i + sums->keys - 1;
    for (int64_t c = 0; c < columns; c += SUM_COLUMNS) {
        int64_t t = -sums->most_ahead, end = sums->keys;
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

/* `queries` from i on of `heads` heads, which are counted on from batch to batch: a row each. */
SIMD_INLINE void sum_together(enum posenc_dtype type,
                              const struct posenc_relative_sum_args *args, enum sum_order order,
                              int64_t head, int64_t heads, int64_t i, int64_t queries)
{
    const int64_t rows = heads * queries;
    struct sums sums;

    for (int64_t r = 0; r < rows; r++) {
        int64_t b = (head + r / queries) / args->out.shape[1];
        int64_t h = (head + r / queries) % args->out.shape[1];

        sums.ahead[r] = r % queries;
        sums.x[r] = input_at(&args->x, b, h, i + r % queries);
        sums.out[r] = row_at(&args->out, b, h, i + r % queries);
    }
    sums.most_ahead = queries - 1;
    sums.far = args->out.shape[0] * args->out.shape[1] * args->out.shape[2] * args->x.shape[3] *
                   (int64_t)posenc_dtype_size(type) >
               STREAM_FROM;
    sum_rows(type, rows, args, order, i, &sums);
}

/* Queries of all heads, the same of as many heads as fill a vector together, or else of fewer. */
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

/* Returns the number of rows to sum together, with a distance of `stride` elements: one for each lane, but
 * eight of f32 rows that lie a multiple of 4 KiB apart. Those share a set of the nearest cache, which holds
 * eight or twelve lines. */
static int64_t rows_together(enum posenc_dtype type, int64_t stride)
{
    const bool share = type == POSENC_F32 && stride * (int64_t)sizeof(float) % 4096 == 0;

    return vf_lanes() == SUM_ROWS && !share ? SUM_ROWS : SUM_QUERIES;
}

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
