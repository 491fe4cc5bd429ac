/*
 * Kernels t5_bias and t5_bias_add: biases by the bucket of the distance. Shapes: table [num_buckets, heads], f32; x and
 * out [batch, heads, queries, keys], batch 1 without x. The query at row i has position i + query_offset, key j has
 * position j.
 *
 *   t5_bias      out[h, i, j] = table[bucket(key - query), h]
 *   t5_bias_add  out[b, h, i, j] = fma(x[b, h, i, j], x_scale, table[bucket(key - query), h])
 *
 * Bucket k holds the distances [thresholds[k], thresholds[k + 1]) of earlier keys, the last bucket all beyond. With
 * `bidirectional`, the second half of the buckets holds later keys; without, later keys use bucket 0. Source: Raffel et
 * al. 1910.10683.
 *
 * The bias depends only on key - query, so all rows of a head are windows of one line, each starting one element before
 * that of the previous query. The line is computed once for all queries and batches. It is short: beyond the last
 * threshold the bias is constant, and such keys need stores only. Four heads share the computation of buckets
 * (head_columns.h).
 */
#include "head_columns.h"
#include "biases.h"

/* Most distances of a line; queries per tile if the varying distances exceed one line; floats from one head's line
 * to the next, no power of two, so that four lines do not share the sets of the L1 cache. */
enum { T5_LINE = 1024, T5_QUERIES = 32, T5_PITCH = T5_LINE + 16 };

/* Distances key - query of a line. A head's bias varies within [from, to) and is constant on either side. The line
 * holds n distances, the first of which is `first`. */
struct t5_span {
    int64_t from, to, first, n;
};

/* The table row of each distance of the line, and the biases of four heads. */
struct t5_line {
    struct t5_span span;
    _Alignas(64) int32_t rows[T5_LINE + POSENC_FREQS_PAD];
    _Alignas(64) float bias[HEAD_GROUP * T5_PITCH];
};

/* Sets rows[from] to rows[to - 1] to one table row. Rounds the count up to 16; the next call overwrites the excess. */
static void fill(int32_t *rows, int64_t from, int64_t to, int64_t row)
{
    enum { STEP = 16 };

    for (int64_t k = from; k < to; k += STEP)
        for (int64_t m = 0; m < STEP; m++)
            rows[k + m] = (int32_t)row;
}

static int64_t clamp(int64_t k, int64_t low, int64_t high)
{
    return k < low ? low : k > high ? high : k;
}

/* Returns the least distance of a bucket; past the last bucket, a distance that no call reaches. */
static int64_t t5_least_distance(const struct posenc_t5_args *args, int64_t bucket,
                                 int64_t buckets)
{
    return bucket < buckets ? args->buckets.thresholds[bucket] : INT64_C(1) << 40;
}

/* Sets rows[from] to rows[to - 1] to row, row + step, row + 2 step, .... Rounds the count up as fill() does. */
static void fill_ramp(int32_t *rows, int64_t from, int64_t to, int64_t row, int64_t step)
{
    enum { STEP = 16 };

    for (int64_t k = from; k < to; k += STEP)
        for (int64_t m = 0; m < STEP; m++)
            rows[k + m] = (int32_t)(row + (k - from + m) * step);
}

/* Returns how many buckets, from 0 on, hold a single distance: the first half in T5, 0 for other thresholds. */
static int64_t t5_single(const int32_t *thresholds, int64_t buckets)
{
    const int64_t half = buckets / 2;
    int32_t other = 0;

    for (int64_t bucket = 0; bucket <= half; bucket++)
        other |= thresholds[bucket] ^ (int32_t)bucket;
    return other ? 0 : half;
}

/* Sets the table row of each distance of the line, bucket by bucket from the most distant earlier key to the most
 * distant later key. Buckets of a single distance are written as one ramp. Without `bidirectional`, later keys use
 * bucket 0. */
static void t5_rows(const struct posenc_t5_args *args, struct t5_line *line)
{
    const int64_t buckets =
        args->buckets.bidirectional ? args->buckets.num_buckets / 2 : args->buckets.num_buckets;
    const int64_t single = t5_single(args->buckets.thresholds, buckets);
    const int64_t first = line->span.first, n = line->span.n;
    int64_t from = 0, to;

    for (int64_t bucket = buckets; bucket-- > single; from = to) {
        to = clamp(1 - t5_least_distance(args, bucket, buckets) - first, from, n);
        fill(line->rows, from, to, bucket);
    }
    to = clamp(1 - first, from, n);
    fill_ramp(line->rows, from, to, -first - from, -1);
    from = to;
    if (args->buckets.bidirectional) { /* distance 0 is not a later key */
        to = clamp(single - first, from, n);
        fill_ramp(line->rows, from, to, from + first + buckets, 1);
        from = to;
    }
    for (int64_t bucket = single; bucket < buckets && args->buckets.bidirectional;
         bucket++, from = to) {
        to = clamp(t5_least_distance(args, bucket + 1, buckets) - first, from, n);
        fill(line->rows, from, to, bucket + buckets);
    }
    fill(line->rows, from, n, 0);
    fill(line->rows, n, n + POSENC_FREQS_PAD, 0);
}

/* Fills a line for a tile whose distances are [nearest, farthest]. At each end it holds enough distances of
 * constant bias for a whole vector to begin or end there. */
static void t5_line(const struct posenc_t5_args *args, int64_t nearest, int64_t farthest,
                    struct t5_line *line)
{
    struct t5_span *span = &line->span;

    span->first = clamp(span->from - POSENC_FREQS_PAD, nearest, farthest);
    span->n = clamp(span->to + POSENC_FREQS_PAD, span->first + 1, farthest + 1) - span->first;
    t5_rows(args, line);
}

/* Returns the bias of the line's k-th distance. `bias` is a head's column (is_indexed) or its line. */
SIMD_INLINE float t5_bias_at(bool is_indexed, const struct t5_line *line, const float *bias,
                             int64_t k)
{
    return bias[is_indexed ? line->rows[k] : k];
}

/* Cuts of a row of n keys: [0, from) and [to, n) have one bias each. Both cuts are multiples of a vector, or n. */
struct t5_cut {
    int64_t from, to;
};

/* line_start: the first key of varying bias, which may lie outside of the row; width: the number of such keys. */
static inline struct t5_cut t5_cut(int64_t line_start, int64_t width, int64_t n)
{
    const int64_t w = vf_lanes(), from = clamp(line_start, 0, n),
                  to = clamp(line_start + width, 0, n);

    return (struct t5_cut){ from < n ? from - from % w : n, min_i64((to + w - 1) / w * w, n) };
}

/* Puts a row of n keys. The varying keys are looked up in the column `low`, `high` by `index` (is_indexed), or read
 * from `bias`; both point to the first varying distance. */
SIMD_INLINE void t5_row(enum posenc_dtype type, enum store_mode mode, bool is_indexed,
                        int64_t line_start, int64_t width, const int32_t *index,
                        const float *bias, vf before, vf after, vf low, vf high, int64_t n,
                        float x_scale, const void *x, void *out)
{
    const struct t5_cut cut = t5_cut(line_start, width, n);
    const int64_t from = cut.from, to = cut.to;

    if (from > 0)
        put_bias_row(type, mode, ONE_VALUE, NULL, NULL, before, before, x_scale, x, out, 0,
                     from);
    if (from < to && is_indexed)
        put_bias_row(type, mode, INDEXED, NULL, index + (from - line_start), low, high, x_scale,
                     x, out, from, to - from);
    else if (from < to)
        put_bias_row(type, mode, FORWARD, bias + (from - line_start), NULL, before, before,
                     x_scale, x, out, from, to - from);
    if (to < n)
        put_bias_row(type, mode, ONE_VALUE, NULL, NULL, after, after, x_scale, x, out, to,
                     n - to);
}

/* Puts queries [i0, i1) and keys [j0, j1) of head h. Values that all rows need are in registers: a load of them
 * from memory would wait for the stores of the row before. */
SIMD_INLINE void t5_head(enum posenc_dtype type, enum store_mode mode, bool is_indexed,
                         const struct posenc_t5_args *args, const struct t5_line *line,
                         const float *bias, int64_t h, int64_t i0, int64_t i1, int64_t j0,
                         int64_t j1)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t x_next = args->x.stride[2] * size, out_next = args->out.stride[2] * size;
    const struct t5_span span = line->span;
    const int64_t width = span.to - span.from, lead = span.from - span.first;
    const float *bias_line = is_indexed ? bias : bias + lead;
    const int64_t first_line_start = span.from + i0 + args->query_offset - j0;
    const vf before = vf_pin(vf_set1(t5_bias_at(is_indexed, line, bias, 0)));
    const vf after = vf_pin(vf_set1(t5_bias_at(is_indexed, line, bias, span.n - 1)));
    const vf low = is_indexed ? vf_load(bias) : before;
    const vf high = is_indexed ? vf_load(bias + vf_lanes()) : before;

    for (int64_t b = 0; b < args->out.shape[0]; b++) {
        const char *x =
            mode_adds(mode) ? (const char *)input_row(&args->x, b, h, i0) + j0 * size : NULL;
        char *out = (char *)output_row(&args->out, b, h, i0) + j0 * size;

        for (int64_t line_start = first_line_start; line_start < first_line_start + (i1 - i0);
             line_start++, out += out_next) {
            t5_row(type, mode, is_indexed, line_start, width, line->rows + lead, bias_line,
                   before, after, low, high, j1 - j0, args->x_scale, x, out);
            if (mode_adds(mode))
                x += x_next;
        }
    }
}

/* Largest row in bytes for which four heads are put together. Longer rows are faster head by head. */
enum { GROUPED_ROW_MAX_BYTES = 4096 };
struct four_rows {
    const char *x[HEAD_GROUP];
    char *out[HEAD_GROUP];
};

SIMD_INLINE bool can_group_heads(enum posenc_dtype type, enum store_mode mode, int64_t keys)
{
    return (mode == STORE || mode == ADD || mode == ADD_UNSCALED) &&
           keys * (int64_t)posenc_dtype_size(type) <= GROUPED_ROW_MAX_BYTES;
}

/* Returns the rows of query i for heads h to h + 3. */
SIMD_INLINE struct four_rows four_rows(enum store_mode mode,
                                       const struct posenc_const_tensor *x,
                                       const struct posenc_tensor *out, int64_t b, int64_t h,
                                       int64_t i)
{
    struct four_rows rows = { 0 };

    for (int64_t k = 0; k < HEAD_GROUP; k++) {
        rows.out[k] = output_row(out, b, h + k, i);
        if (mode_adds(mode))
            rows.x[k] = input_row(x, b, h + k, i);
    }
    return rows;
}

/* Puts n biases, at most a vector, to keys j ... of the four rows. */
SIMD_INLINE void put_four_rows(enum posenc_dtype type, enum store_mode mode,
                               const struct four_rows *rows, vf scale, int64_t j, vf a, vf b,
                               vf c, vf d, int64_t n)
{
    a = vf_pin(add_bias(type, mode, rows->x[0], scale, j, a, n));
    b = vf_pin(add_bias(type, mode, rows->x[1], scale, j, b, n));
    c = vf_pin(add_bias(type, mode, rows->x[2], scale, j, c, n));
    d = vf_pin(add_bias(type, mode, rows->x[3], scale, j, d, n));
    store_as(type, rows->out[0], j, a, n);
    store_as(type, rows->out[1], j, b, n);
    store_as(type, rows->out[2], j, c, n);
    store_as(type, rows->out[3], j, d, n);
}

/* Puts n biases to keys j ... of four rows: vectors a, b, c, d for all keys (ONE_VALUE), or looked up by `index` in
 * the columns (a, e), (b, f), (c, g), (d, h) (INDEXED). */
SIMD_INLINE void t5_four_heads(enum posenc_dtype type, enum store_mode mode,
                               enum bias_layout layout, const int32_t *index, vf a, vf b, vf c,
                               vf d, vf e, vf f, vf g, vf h, vf scale,
                               const struct four_rows *rows, int64_t j, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t k = 0;

    for (; k + w <= n; k += w)
        put_four_rows(type, mode, rows, scale, j + k,
                      load_biases(layout, NULL, index, a, e, k, w),
                      load_biases(layout, NULL, index, b, f, k, w),
                      load_biases(layout, NULL, index, c, g, k, w),
                      load_biases(layout, NULL, index, d, h, k, w), w);
    if (k < n)
        put_four_rows(type, mode, rows, scale, j + k,
                      load_biases(layout, NULL, index, a, e, k, w),
                      load_biases(layout, NULL, index, b, f, k, w),
                      load_biases(layout, NULL, index, c, g, k, w),
                      load_biases(layout, NULL, index, d, h, k, w), n - k);
}

/* Puts n biases to keys j ... of four rows, fetched from rows of four table elements by `index`. */
SIMD_INLINE void t5_fetched(enum posenc_dtype type, enum store_mode mode, const float *table,
                            const int32_t *index, vf scale, const struct four_rows *rows,
                            int64_t j, int64_t n)
{
    const int64_t w = vf_lanes();
    vf a, b, c, d;
    int64_t k = 0;

    for (; k + w <= n; k += w) {
        vf_gather4(table, index + k, &a, &b, &c, &d);
        put_four_rows(type, mode, rows, scale, j + k, a, b, c, d, w);
    }
    if (k < n) {
        vf_gather4(table, index + k, &a, &b, &c, &d);
        put_four_rows(type, mode, rows, scale, j + k, a, b, c, d, n - k);
    }
}

/* Puts keys [j0, j1) of query i for heads h to h + 3. Four rows at once hide the fixed cost of each. */
SIMD_INLINE void t5_four(enum posenc_dtype type, enum store_mode mode,
                         const struct posenc_t5_args *args, const struct t5_line *line,
                         const struct head_group *heads, int64_t b, int64_t h, int64_t i,
                         int64_t j0, int64_t j1)
{
    const int64_t w = vf_lanes(), from_head = heads->in_two_vectors ? 2 * w : 1;
    const int64_t from_row = heads->in_two_vectors ? 1 : HEAD_GROUP;
    const struct t5_span span = line->span;
    const int64_t line_start = span.from + i + args->query_offset - j0;
    const struct t5_cut cut = t5_cut(line_start, span.to - span.from, j1 - j0);
    const int32_t *index = line->rows + (span.from - span.first + cut.from - line_start);
    const float *p = heads->cached, *q = p + from_head, *r = q + from_head, *s = r + from_head;
    const int64_t first = line->rows[0] * from_row, last = line->rows[span.n - 1] * from_row;
    const vf scale = vf_set1(args->x_scale), none = scale;
    const struct four_rows rows =
        four_rows(mode, mode_adds(mode) ? &args->x : NULL, &args->out, b, h, i);

    t5_four_heads(type, mode, ONE_VALUE, NULL, vf_set1(p[first]), vf_set1(q[first]),
                  vf_set1(r[first]), vf_set1(s[first]), none, none, none, none, scale, &rows,
                  j0, cut.from);
    if (heads->in_two_vectors)
        t5_four_heads(type, mode, INDEXED, index, vf_load(p), vf_load(q), vf_load(r),
                      vf_load(s), vf_load(p + w), vf_load(q + w), vf_load(r + w),
                      vf_load(s + w), scale, &rows, j0 + cut.from, cut.to - cut.from);
    else
        t5_fetched(type, mode, p, index, scale, &rows, j0 + cut.from, cut.to - cut.from);
    t5_four_heads(type, mode, ONE_VALUE, NULL, vf_set1(p[last]), vf_set1(q[last]),
                  vf_set1(r[last]), vf_set1(s[last]), none, none, none, none, scale, &rows,
                  j0 + cut.to, j1 - j0 - cut.to);
}

/* Puts queries [i0, i1) and keys [j0, j1) of all heads. Copies the arguments for the reason in biases.h. */
SIMD_INLINE void t5_tile(enum posenc_dtype type, enum store_mode mode,
                         const struct posenc_t5_args *given, struct t5_line *line, int64_t i0,
                         int64_t i1, int64_t j0, int64_t j1)
{
    const struct posenc_t5_args copy = *given, *args = &copy;
    const bool grouped = i1 - i0 == 1 && can_group_heads(type, mode, j1 - j0);
    struct head_group heads;

    t5_line(args, j0 - (i1 - 1) - args->query_offset, j1 - 1 - i0 - args->query_offset, line);
    for (int64_t h = 0; h < args->out.shape[1]; h += heads.n) {
        load_head_group(&args->table, h, &heads);
        if (grouped && heads.n == HEAD_GROUP && (heads.in_two_vectors || heads.is_copied)) {
            for (int64_t b = 0; b < args->out.shape[0]; b++)
                t5_four(type, mode, args, line, &heads, b, h, i0, j0, j1);
            continue;
        }
        if (!heads.in_two_vectors)
            fetch_biases(&heads, line->rows, line->span.n, line->bias, T5_PITCH);
        for (int64_t k = 0; k < heads.n; k++)
            if (heads.in_two_vectors)
                t5_head(type, mode, true, args, line, heads.cached + 2 * k * vf_lanes(), h + k,
                        i0, i1, j0, j1);
            else
                t5_head(type, mode, false, args, line, line->bias + k * T5_PITCH, h + k, i0, i1,
                        j0, j1);
    }
}

/* Puts all scores: as one tile, if the varying distances fit into the line. */
SIMD_INLINE void t5_tiles(enum posenc_dtype type, enum store_mode mode,
                          const struct posenc_t5_args *args)
{
    int64_t last = (args->buckets.bidirectional ? args->buckets.num_buckets / 2
                                                : args->buckets.num_buckets) -
                   1;
    int64_t far = args->buckets.thresholds[last], queries = args->out.shape[2];
    int64_t keys = args->out.shape[3], most_queries = T5_QUERIES;
    int64_t most_keys = T5_LINE - T5_QUERIES;
    struct t5_line line;

    line.span.from = 1 - far;
    line.span.to = args->buckets.bidirectional && far > 1 ? far : 1;
    if (line.span.to - line.span.from + 2 * (int64_t)POSENC_FREQS_PAD <= T5_LINE) {
        most_queries = queries;
        most_keys = keys;
    }
    for (int64_t i = 0; i < queries; i += most_queries)
        for (int64_t j = 0; j < keys; j += most_keys)
            t5_tile(type, mode, args, &line, i, min_i64(i + most_queries, queries), j,
                    min_i64(j + most_keys, keys));
}

INSTANCES_WRITING(t5_tiles, posenc_t5_args)
INSTANCES_ADDING(t5_tiles, posenc_t5_args)

enum posenc_status KERNEL(t5_bias)(const struct posenc_t5_args *args)
{
    RUN_WRITING(t5_tiles, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(t5_bias_add)(const struct posenc_t5_args *args)
{
    RUN_ADDING(t5_tiles, args);
    return POSENC_OK;
}
