/*
 * Kernels t5_bias and t5_bias_add: table[bucket(key - query), head]  (1910.10683), written out or added to
 * scores as they pass.
 *
 * A row is the row before it moved by one key: one short line with the same value on and on before and
 * after it. The line is made once for all queries and read at a moving start.
 */
#include "heads.h"
#include "scores.h"

/* Most distances in a line; queries of a tile if the varying distances do not fit into one line;
 * distance in floats between the lines of two heads, which keeps four of them off one cache set. */
enum { T5_LINE = 1024, T5_QUERIES = 32, T5_PITCH = T5_LINE + 16 };

/* Key - query distances. A head's bias is constant below `from`, and constant from `to` on. The line
 * holds the n distances from `first` on. */
struct t5_span {
    int64_t from, to, first, n;
};

/* Table row of each distance of a line (0 past the last one), and the biases of four heads. */
struct t5_line {
    struct t5_span span;
    _Alignas(64) int32_t rows[T5_LINE + POSENC_PLAN_PAD];
    _Alignas(64) float bias[HEADS_AT_ONCE * T5_PITCH];
};

/* Sets rows[from] to before rows[to] to one row. Rounds the count up to 16: the next call overwrites
 * the excess. */
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

/* Returns the least distance in a bucket; past the last bucket one that no call reaches. */
static int64_t t5_least_distance(const struct posenc_t5_args *args, int64_t bucket,
                                 int64_t buckets)
{
    return bucket < buckets ? args->thresholds[bucket] : INT64_C(1) << 40;
}

/* Sets consecutive rows: row, row + step, row + 2 step, ... Rounds the count up as fill() does. */
static void fill_ramp(int32_t *rows, int64_t from, int64_t to, int64_t row, int64_t step)
{
    enum { STEP = 16 };

    for (int64_t k = from; k < to; k += STEP)
        for (int64_t m = 0; m < STEP; m++)
            rows[k + m] = (int32_t)(row + (k - from + m) * step);
}

/* Returns how many buckets from 0 on hold a single distance, as the nearer half of T5's do; 0 if the
 * thresholds have another form. */
static int64_t t5_single(const int32_t *thresholds, int64_t buckets)
{
    const int64_t half = buckets / 2;
    int32_t other = 0;

    for (int64_t bucket = 0; bucket <= half; bucket++)
        other |= thresholds[bucket] ^ (int32_t)bucket;
    return other ? 0 : half;
}

/* Sets the table row of each distance of the line, bucket by bucket. Buckets of a single distance are
 * written as one ramp. Without bidirectional, later keys use bucket 0. */
static void t5_rows(const struct posenc_t5_args *args, struct t5_line *line)
{
    const int64_t buckets = args->bidirectional ? args->num_buckets / 2 : args->num_buckets;
    const int64_t single = t5_single(args->thresholds, buckets);
    const int64_t first = line->span.first, n = line->span.n;
    int64_t from = 0, to;

    for (int64_t bucket = buckets; bucket-- > single; from = to) {
        to = clamp(1 - t5_least_distance(args, bucket, buckets) - first, from, n);
        fill(line->rows, from, to, bucket);
    }
    to = clamp(1 - first, from, n);
    fill_ramp(line->rows, from, to, -first - from, -1);
    from = to;
    if (args->bidirectional) { /* distance 0 is not a later key */
        to = clamp(single - first, from, n);
        fill_ramp(line->rows, from, to, from + first + buckets, 1);
        from = to;
    }
    for (int64_t bucket = single; bucket < buckets && args->bidirectional;
         bucket++, from = to) {
        to = clamp(t5_least_distance(args, bucket + 1, buckets) - first, from, n);
        fill(line->rows, from, to, bucket + buckets);
    }
    fill(line->rows, from, n, 0);
    fill(line->rows, n, n + POSENC_PLAN_PAD, 0);
}

/* Fills a line with the distances of a tile that differ. At either end follow as many equal ones
 * as let a vector begin or end there. */
static void t5_line(const struct posenc_t5_args *args, int64_t nearest, int64_t farthest,
                    struct t5_line *line)
{
    struct t5_span *span = &line->span;

    span->first = clamp(span->from - POSENC_PLAN_PAD, nearest, farthest);
    span->n = clamp(span->to + POSENC_PLAN_PAD, span->first + 1, farthest + 1) - span->first;
    t5_rows(args, line);
}

/* A head's biases: in its column, of a table that two vectors hold, or in its line. */
SIMD_INLINE float t5_bias_at(bool in_column, const struct t5_line *line, const float *bias,
                             int64_t k)
{
    return bias[in_column ? line->rows[k] : k];
}

/* Cut of a row of n keys: those before `from` have one bias, and so have those from `to` on. Both are whole
 * vectors from key 0, or n. */
struct t5_cut {
    int64_t from, to;
};

/* ahead: the key from which on biases differ, if there is one; width: how many do. */
static inline struct t5_cut t5_cut(int64_t ahead, int64_t width, int64_t n)
{
    const int64_t w = vf_lanes(), from = clamp(ahead, 0, n), to = clamp(ahead + width, 0, n);

    return (struct t5_cut){ from < n ? from - from % w : n, least((to + w - 1) / w * w, n) };
}

/* A row of n keys. What differs is in the line from `bias` or `index` on; low, high: a column in two
 * vectors. */
SIMD_INLINE void t5_row(enum posenc_dtype type, enum how how, bool in_column, int64_t ahead,
                        int64_t width, const int32_t *index, const float *bias, vf before,
                        vf after, vf low, vf high, int64_t n, float x_scale, const void *x,
                        void *out)
{
    const struct t5_cut cut = t5_cut(ahead, width, n);
    const int64_t from = cut.from, to = cut.to;

    if (from > 0)
        put_in_vectors(type, how, SAME, NULL, NULL, before, before, x_scale, x, out, 0, from);
    if (from < to && in_column)
        put_in_vectors(type, how, LOOKED_UP, NULL, index + (from - ahead), low, high, x_scale,
                       x, out, from, to - from);
    else if (from < to)
        put_in_vectors(type, how, ALONG, bias + (from - ahead), NULL, before, before, x_scale,
                       x, out, from, to - from);
    if (to < n)
        put_in_vectors(type, how, SAME, NULL, NULL, after, after, x_scale, x, out, to, n - to);
}

/* Queries i0 to before i1 and keys j0 to before j1 of head h. What its rows share is in registers: what
 * is in memory waits for the stores of the row before. */
SIMD_INLINE void t5_head(enum posenc_dtype type, enum how how, bool in_column,
                         const struct posenc_t5_args *args, const struct t5_line *line,
                         const float *bias, int64_t h, int64_t i0, int64_t i1, int64_t j0,
                         int64_t j1)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t x_next = args->x.stride[2] * size, out_next = args->out.stride[2] * size;
    const struct t5_span span = line->span;
    const int64_t width = span.to - span.from, lead = span.from - span.first;
    const float *along = in_column ? bias : bias + lead;
    const int64_t first_ahead = span.from + i0 + args->query_offset - j0;
    const vf before = vf_keep(vf_set1(t5_bias_at(in_column, line, bias, 0)));
    const vf after = vf_keep(vf_set1(t5_bias_at(in_column, line, bias, span.n - 1)));
    const vf low = in_column ? vf_load(bias) : before;
    const vf high = in_column ? vf_load(bias + vf_lanes()) : before;

    for (int64_t b = 0; b < args->out.shape[0]; b++) {
        const char *x =
            adds(how) ? (const char *)input_at(&args->x, b, h, i0) + j0 * size : NULL;
        char *out = (char *)row_at(&args->out, b, h, i0) + j0 * size;

        for (int64_t ahead = first_ahead; ahead < first_ahead + (i1 - i0);
             ahead++, out += out_next) {
            t5_row(type, how, in_column, ahead, width, line->rows + lead, along, before, after,
                   low, high, j1 - j0, args->x_scale, x, out);
            if (adds(how))
                x += x_next;
        }
    }
}

/* Largest row in bytes for which four heads are computed together; longer rows are faster one at a
 * time. */
enum { MOST_BYTES_BESIDE = 4096 };
struct four_rows {
    const char *x[HEADS_AT_ONCE];
    char *out[HEADS_AT_ONCE];
};

SIMD_INLINE bool may_be_beside(enum posenc_dtype type, enum how how, int64_t keys)
{
    return (how == STORED || how == ADDED || how == SUMMED) &&
           keys * (int64_t)posenc_dtype_size(type) <= MOST_BYTES_BESIDE;
}

/* Returns the rows of query i from head h on. */
SIMD_INLINE struct four_rows four_rows(enum how how, const struct posenc_const_tensor *x,
                                       const struct posenc_tensor *out, int64_t b, int64_t h,
                                       int64_t i)
{
    struct four_rows rows = { 0 };

    for (int64_t k = 0; k < HEADS_AT_ONCE; k++) {
        rows.out[k] = row_at(out, b, h + k, i);
        if (adds(how))
            rows.x[k] = input_at(x, b, h + k, i);
    }
    return rows;
}

/* n biases to keys j ... of each. */
SIMD_INLINE void put_beside(enum posenc_dtype type, enum how how, const struct four_rows *rows,
                            vf scale, int64_t j, vf a, vf b, vf c, vf d, int64_t n)
{
    a = vf_keep(add_bias(type, how, rows->x[0], scale, j, a, n));
    b = vf_keep(add_bias(type, how, rows->x[1], scale, j, b, n));
    c = vf_keep(add_bias(type, how, rows->x[2], scale, j, c, n));
    d = vf_keep(add_bias(type, how, rows->x[3], scale, j, d, n));
    store_as(type, rows->out[0], j, a, n);
    store_as(type, rows->out[1], j, b, n);
    store_as(type, rows->out[2], j, c, n);
    store_as(type, rows->out[3], j, d, n);
}

/* n biases of four rows from key j on: one for all keys of each, or what is looked up in a and e, b and
 * f ... */
SIMD_INLINE void t5_beside(enum posenc_dtype type, enum how how, enum biases biases,
                           const int32_t *index, vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h,
                           vf scale, const struct four_rows *rows, int64_t j, int64_t n)
{
    const int64_t w = vf_lanes();
    int64_t k = 0;

    for (; k + w <= n; k += w)
        put_beside(type, how, rows, scale, j + k, load_biases(biases, NULL, index, a, e, k, w),
                   load_biases(biases, NULL, index, b, f, k, w),
                   load_biases(biases, NULL, index, c, g, k, w),
                   load_biases(biases, NULL, index, d, h, k, w), w);
    if (k < n)
        put_beside(type, how, rows, scale, j + k, load_biases(biases, NULL, index, a, e, k, w),
                   load_biases(biases, NULL, index, b, f, k, w),
                   load_biases(biases, NULL, index, c, g, k, w),
                   load_biases(biases, NULL, index, d, h, k, w), n - k);
}

/* n biases of four rows from key j on, each fetched from its row of four in a table. */
SIMD_INLINE void t5_fetched(enum posenc_dtype type, enum how how, const float *table,
                            const int32_t *index, vf scale, const struct four_rows *rows,
                            int64_t j, int64_t n)
{
    const int64_t w = vf_lanes();
    vf a, b, c, d;
    int64_t k = 0;

    for (; k + w <= n; k += w) {
        vf_gather4(table, index + k, &a, &b, &c, &d);
        put_beside(type, how, rows, scale, j + k, a, b, c, d, w);
    }
    if (k < n) {
        vf_gather4(table, index + k, &a, &b, &c, &d);
        put_beside(type, how, rows, scale, j + k, a, b, c, d, n - k);
    }
}

/* Computes keys j0 to before j1 of query i for four heads from h on. Four rows at once hide the fixed
 * cost of each. */
SIMD_INLINE void t5_four(enum posenc_dtype type, enum how how,
                         const struct posenc_t5_args *args, const struct t5_line *line,
                         const struct heads *heads, int64_t b, int64_t h, int64_t i, int64_t j0,
                         int64_t j1)
{
    const int64_t w = vf_lanes(), from_head = heads->few ? 2 * w : 1;
    const int64_t from_row = heads->few ? 1 : HEADS_AT_ONCE;
    const struct t5_span span = line->span;
    const int64_t ahead = span.from + i + args->query_offset - j0;
    const struct t5_cut cut = t5_cut(ahead, span.to - span.from, j1 - j0);
    const int32_t *index = line->rows + (span.from - span.first + cut.from - ahead);
    const float *p = heads->rows, *q = p + from_head, *r = q + from_head, *s = r + from_head;
    const int64_t first = line->rows[0] * from_row, last = line->rows[span.n - 1] * from_row;
    const vf scale = vf_set1(args->x_scale), none = scale;
    const struct four_rows rows =
        four_rows(how, adds(how) ? &args->x : NULL, &args->out, b, h, i);

    t5_beside(type, how, SAME, NULL, vf_set1(p[first]), vf_set1(q[first]), vf_set1(r[first]),
              vf_set1(s[first]), none, none, none, none, scale, &rows, j0, cut.from);
    if (heads->few)
        t5_beside(type, how, LOOKED_UP, index, vf_load(p), vf_load(q), vf_load(r), vf_load(s),
                  vf_load(p + w), vf_load(q + w), vf_load(r + w), vf_load(s + w), scale, &rows,
                  j0 + cut.from, cut.to - cut.from);
    else
        t5_fetched(type, how, p, index, scale, &rows, j0 + cut.from, cut.to - cut.from);
    t5_beside(type, how, SAME, NULL, vf_set1(p[last]), vf_set1(q[last]), vf_set1(r[last]),
              vf_set1(s[last]), none, none, none, none, scale, &rows, j0 + cut.to,
              j1 - j0 - cut.to);
}

/* Computes queries i0 to before i1 and keys j0 to before j1 of all heads. Copies the arguments, which
 * stores to `out` might alias. */
SIMD_INLINE void t5_tile(enum posenc_dtype type, enum how how,
                         const struct posenc_t5_args *given, struct t5_line *line, int64_t i0,
                         int64_t i1, int64_t j0, int64_t j1)
{
    const struct posenc_t5_args copy = *given, *args = &copy;
    const bool beside = i1 - i0 == 1 && may_be_beside(type, how, j1 - j0);
    struct heads heads;

    t5_line(args, j0 - (i1 - 1) - args->query_offset, j1 - 1 - i0 - args->query_offset, line);
    for (int64_t h = 0; h < args->out.shape[1]; h += heads.n) {
        take_heads(&args->table, h, &heads);
        if (beside && heads.n == HEADS_AT_ONCE && (heads.few || heads.copied)) {
            for (int64_t b = 0; b < args->out.shape[0]; b++)
                t5_four(type, how, args, line, &heads, b, h, i0, j0, j1);
            continue;
        }
        if (!heads.few)
            fetch_heads(&heads, line->rows, line->span.n, line->bias, T5_PITCH);
        for (int64_t k = 0; k < heads.n; k++)
            if (heads.few)
                t5_head(type, how, true, args, line, heads.rows + 2 * k * vf_lanes(), h + k, i0,
                        i1, j0, j1);
            else
                t5_head(type, how, false, args, line, line->bias + k * T5_PITCH, h + k, i0, i1,
                        j0, j1);
    }
}

SIMD_INLINE void t5_tiles(enum posenc_dtype type, enum how how,
                          const struct posenc_t5_args *args)
{
    int64_t last = (args->bidirectional ? args->num_buckets / 2 : args->num_buckets) - 1;
    int64_t far = args->thresholds[last], queries = args->out.shape[2];
    int64_t keys = args->out.shape[3], most_queries = T5_QUERIES;
    int64_t most_keys = T5_LINE - T5_QUERIES;
    struct t5_line line;

    line.span.from = 1 - far;
    line.span.to = args->bidirectional && far > 1 ? far : 1;
    if (line.span.to - line.span.from + 2 * (int64_t)POSENC_PLAN_PAD <= T5_LINE) {
        most_queries = queries;
        most_keys = keys;
    }
    for (int64_t i = 0; i < queries; i += most_queries)
        for (int64_t j = 0; j < keys; j += most_keys)
            t5_tile(type, how, args, &line, i, least(i + most_queries, queries), j,
                    least(j + most_keys, keys));
}

FORMS_WRITTEN(t5_tiles, posenc_t5_args)
FORMS_ADDED(t5_tiles, posenc_t5_args)

enum posenc_status KERNEL(t5_bias)(const struct posenc_t5_args *args)
{
    RUN_WRITTEN(t5_tiles, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(t5_bias_add)(const struct posenc_t5_args *args)
{
    RUN_ADDED(t5_tiles, args);
    return POSENC_OK;
}
