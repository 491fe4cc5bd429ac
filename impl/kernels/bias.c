/*
 * Kernels alibi, t5_bias, distance_bias and their _add: biases that depend on how far a key is
 * from its query, written out or added to scores as they pass.
 *
 *     alibi     -slope |query - key|, -infinity for later keys where causal    (2108.12409)
 *     t5        table[bucket(key - query), head]                               (1910.10683)
 *     distance  values[head, query - key - first]                  (2205.09921, 2212.10356)
 *
 * A row of T5's biases or of those by distance is the row before it moved by one key.  T5's are
 * one short line with the same value on and on before and after it; the line is made once for
 * all queries and read at a moving start.  Those by distance lie there, the other way round.
 */
#include "heads.h"
#include "scores.h"

/* Biases of keys whose positions less the query's are `ahead`.  Distances are below 2^24, exact
 * in f32.  0 - slope |d| with one fma is the product rounded once, and +0 at distance 0. */
SIMD_INLINE vf alibi_bias(bool causal, vf minus_slope, vf ahead)
{
    vf zero = vf_set1(0.0f), bias = vf_fma(minus_slope, vf_abs(ahead), zero);

    return causal ? vf_select_lt(zero, ahead, vf_set1(-INFINITY), bias) : bias;
}

/* Of n keys from j on, all on one side of the query, those that fill vectors by fours: the slope
 * times how far they are ahead, `ahead` being that of key j.  Returns the first that is left. */
SIMD_INLINE int64_t alibi_side(enum posenc_dtype type, enum how how, float slope, int64_t ahead,
                               int64_t j, int64_t n, float x_scale, const void *x, void *out)
{
    int64_t w = vf_lanes(), end = j + n;
    vf scale = vf_set1(x_scale), slopes = vf_set1(slope), zero = vf_set1(0.0f);
    vf width = vf_set1((float)w), a = vf_add(vf_iota(), vf_set1((float)ahead));

    for (; j + 4 * w <= end; j += 4 * w, a = vf_add(a, vf_set1(4.0f * (float)w))) {
        vf b = vf_add(a, width), c = vf_add(a, vf_add(width, width));
        vf d = vf_add(b, vf_add(width, width));
        put_four(type, how, x, scale, out, j, vf_fma(slopes, a, zero), vf_fma(slopes, b, zero),
                 vf_fma(slopes, c, zero), vf_fma(slopes, d, zero));
    }
    return j;
}

/* Vectors of keys from j on, on either side, until one begins at `end` or later. */
SIMD_INLINE int64_t alibi_around(enum posenc_dtype type, enum how how, bool causal, float slope,
                                 int64_t query, int64_t j, int64_t end, int64_t keys,
                                 float x_scale, const void *x, void *out)
{
    int64_t w = vf_lanes();

    for (; j < end; j += w)
        put_bias(
            type, how, x, vf_set1(x_scale), out, j,
            alibi_bias(causal, vf_set1(-slope), vf_add(vf_iota(), vf_set1((float)(j - query)))),
            least(keys - j, w));
    return j;
}

/* Those up to where a line of the output begins, if it is to be streamed. */
SIMD_INLINE int64_t alibi_to_line(enum posenc_dtype type, enum how how, bool causal,
                                  float slope, int64_t query, int64_t j, int64_t keys,
                                  float x_scale, const void *x, void *out)
{
    const int64_t line = streams(how) ? j + to_line(type, out, j, keys - j) : j;

    alibi_around(type, how, causal, slope, query, j, line, line, x_scale, x, out);
    return line;
}

/* One row of keys for the query at position `query` (that of key 0 being 0). */
SIMD_INLINE void alibi_row(enum posenc_dtype type, enum how how, bool causal, float slope,
                           int64_t query, int64_t keys, float x_scale, const void *x, void *out)
{
    const float later = -INFINITY;
    int64_t known = query < 0 ? 0 : least(query + 1, keys);
    int64_t j = alibi_to_line(type, how, causal, slope, query, 0, keys, x_scale, x, out);

    j = alibi_side(type, how, slope, j - query, j, known - j, x_scale, x, out);
    j = alibi_around(type, how, causal, slope, query, j, known, keys, x_scale, x, out);
    if (causal) {
        if (j < keys)
            put_biases(type, how, SAME, &later, x_scale, x, out, j, keys - j);
        return;
    }
    j = alibi_to_line(type, how, causal, slope, query, j, keys, x_scale, x, out);
    j = alibi_side(type, how, -slope, j - query, j, keys - j, x_scale, x, out);
    alibi_around(type, how, causal, slope, query, j, keys, keys, x_scale, x, out);
}

/* n rows one after the other, of one query's heads or of one head's queries. */
SIMD_INLINE void alibi_some(enum posenc_dtype type, enum how how, bool causal, int64_t n,
                            const float *slope, int64_t next_slope, int64_t query,
                            int64_t next_query, int64_t keys, float x_scale, const char *x,
                            int64_t x_next, char *out, int64_t out_next)
{
    for (int64_t k = 0; k < n; k++, slope += next_slope, query += next_query) {
        alibi_row(type, how, causal, *slope, query, keys, x_scale, x, out);
        out += out_next;
        if (adds(how))
            x += x_next;
    }
}

/* A single query's heads follow one another without a loop over queries in between: of 32 heads of 128
 * keys, 0.75 of the time.  More queries go in the order of memory. */
SIMD_INLINE void alibi_rows(enum posenc_dtype type, enum how how, bool causal,
                            const struct posenc_alibi_args *args)
{
    const int64_t size = (int64_t)posenc_dtype_size(type), keys = args->out.shape[3];
    const int64_t heads = args->out.shape[1], queries = args->out.shape[2];
    const int64_t *x_stride = args->x.stride, *out_stride = args->out.stride;

    for (int64_t b = 0; b < args->out.shape[0]; b++) {
        const float *slopes = args->slopes + b * args->slopes_stride_batch;

        if (queries == 1) {
            alibi_some(type, how, causal, heads, slopes, 1, args->query_offset, 0, keys,
                       args->x_scale, adds(how) ? input_at(&args->x, b, 0, 0) : NULL,
                       x_stride[1] * size, row_at(&args->out, b, 0, 0), out_stride[1] * size);
            continue;
        }
        for (int64_t h = 0; h < heads; h++)
            alibi_some(type, how, causal, queries, slopes + h, 0, args->query_offset, 1, keys,
                       args->x_scale, adds(how) ? input_at(&args->x, b, h, 0) : NULL,
                       x_stride[2] * size, row_at(&args->out, b, h, 0), out_stride[2] * size);
    }
}

enum posenc_status KERNEL(alibi)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        FOR_HOW(false, args, alibi_rows, true, args);
    else
        FOR_HOW(false, args, alibi_rows, false, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(alibi_add)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        FOR_HOW(true, args, alibi_rows, true, args);
    else
        FOR_HOW(true, args, alibi_rows, false, args);
    return POSENC_OK;
}

/* ---- T5 ---- */

/* The longest line, and the queries of a tile where all that differs does not fit into one. */
enum { T5_LINE = 1024, T5_QUERIES = 32, T5_PITCH = T5_LINE + 16 };

/* By key - query: before `from` all biases of a head are alike, and so they are from `to` on.
 * The line has n, of `first` and what follows it. */
struct t5_span {
    int64_t from, to, first, n;
};

/* Rows of the table, 0 past the last one, and four heads' biases. */
struct t5_line {
    struct t5_span span;
    _Alignas(64) int32_t rows[T5_LINE + POSENC_PLAN_PAD];
    _Alignas(64) float bias[HEADS_AT_ONCE * T5_PITCH];
};

static void fill(int32_t *rows, int64_t from, int64_t to, int64_t row)
{
    for (int64_t k = from; k < to; k++)
        rows[k] = (int32_t)row;
}

static int64_t between(int64_t k, int64_t least, int64_t most)
{
    return k < least ? least : k > most ? most : k;
}

/* Bucket by bucket: bucket b holds the distances from thresholds[b] to below
 * thresholds[b + 1]. */
static void t5_rows(const struct posenc_t5_args *args, struct t5_line *line)
{
    int64_t buckets = args->bidirectional ? args->num_buckets / 2 : args->num_buckets;
    int64_t first = line->span.first, n = line->span.n;

    for (int64_t bucket = 0; bucket < buckets; bucket++) {
        int64_t nearest = args->thresholds[bucket];
        int64_t beyond = bucket + 1 < buckets ? args->thresholds[bucket + 1] : INT64_C(1) << 40;
        int64_t nearest_later = nearest > 0 ? nearest : 1; /* distance 0 is not a later key */

        fill(line->rows, between(1 - beyond - first, 0, n), between(1 - nearest - first, 0, n),
             bucket);
        if (args->bidirectional)
            fill(line->rows, between(nearest_later - first, 0, n),
                 between(beyond - first, 0, n), bucket + buckets);
    }
    if (!args->bidirectional)
        fill(line->rows, between(1 - first, 0, n), n, 0);
    fill(line->rows, n, n + POSENC_PLAN_PAD, 0);
}

/* Of the distances of a tile the line has those that differ and, at either end, so many that
 * are like all beyond that a vector may begin or end there. */
static void t5_line(const struct posenc_t5_args *args, int64_t nearest, int64_t farthest,
                    struct t5_line *line)
{
    struct t5_span *span = &line->span;

    span->first = between(span->from - POSENC_PLAN_PAD, nearest, farthest);
    span->n = between(span->to + POSENC_PLAN_PAD, span->first + 1, farthest + 1) - span->first;
    t5_rows(args, line);
}

/* A head's biases: in its column, of a table that two vectors hold, or in its line. */
SIMD_INLINE float t5_bias_at(bool in_column, const struct t5_line *line, const float *bias,
                             int64_t k)
{
    return bias[in_column ? line->rows[k] : k];
}

/* n keys from j on of the query at position `query` (that of key 0 being 0).  low, high: a column in two
 * vectors. */
SIMD_INLINE void t5_row(enum posenc_dtype type, enum how how, bool in_column,
                        struct t5_span span, const int32_t *rows, const float *bias, vf before,
                        vf after, vf low, vf high, int64_t query, int64_t j, int64_t n,
                        float x_scale, const void *x, void *out)
{
    int64_t w = vf_lanes(), from = between(span.from + query - j, 0, n);
    int64_t to = between(span.to + query - j, 0, n);

    if (from < n)
        from -= from % w;
    to = least((to + w - 1) / w * w, n);
    const int64_t at = j + from - query - span.first;
    if (from > 0)
        put_in_vectors(type, how, SAME, NULL, NULL, before, before, x_scale, x, out, j, from);
    if (from < to && in_column)
        put_in_vectors(type, how, LOOKED_UP, NULL, rows + at, low, high, x_scale, x, out,
                       j + from, to - from);
    else if (from < to)
        put_in_vectors(type, how, ALONG, bias + at, NULL, before, before, x_scale, x, out,
                       j + from, to - from);
    if (to < n)
        put_in_vectors(type, how, SAME, NULL, NULL, after, after, x_scale, x, out, j + to,
                       n - to);
}

/* Queries i0 to before i1 and keys j0 to before j1 of head h.  What its rows share is in registers: what
 * is in memory waits for the stores of the row before. */
SIMD_INLINE void t5_head(enum posenc_dtype type, enum how how, bool in_column,
                         const struct posenc_t5_args *args, const struct t5_line *line,
                         const float *bias, int64_t h, int64_t i0, int64_t i1, int64_t j0,
                         int64_t j1)
{
    const int64_t size = (int64_t)posenc_dtype_size(type);
    const int64_t x_next = args->x.stride[2] * size, out_next = args->out.stride[2] * size;
    const struct t5_span span = line->span;
    const vf before = vf_keep(vf_set1(t5_bias_at(in_column, line, bias, 0)));
    const vf after = vf_keep(vf_set1(t5_bias_at(in_column, line, bias, span.n - 1)));
    const vf low = in_column ? vf_load(bias) : before;
    const vf high = in_column ? vf_load(bias + vf_lanes()) : before;

    for (int64_t b = 0; b < args->out.shape[0]; b++) {
        const char *x = adds(how) ? input_at(&args->x, b, h, i0) : NULL;
        char *out = row_at(&args->out, b, h, i0);

        for (int64_t i = i0; i < i1; i++, out += out_next) {
            t5_row(type, how, in_column, span, line->rows, bias, before, after, low, high,
                   i + args->query_offset, j0, j1 - j0, args->x_scale, x, out);
            if (adds(how))
                x += x_next;
        }
    }
}

/* The same of all heads. */
SIMD_INLINE void t5_tile(enum posenc_dtype type, enum how how,
                         const struct posenc_t5_args *given, struct t5_line *line, int64_t i0,
                         int64_t i1, int64_t j0, int64_t j1)
{
    const struct posenc_t5_args copy = *given, *args = &copy;
    struct heads heads;

    t5_line(args, j0 - (i1 - 1) - args->query_offset, j1 - 1 - i0 - args->query_offset, line);
    for (int64_t h = 0; h < args->out.shape[1]; h += heads.n) {
        take_heads(&args->table, h, &heads);
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

enum posenc_status KERNEL(t5_bias)(const struct posenc_t5_args *args)
{
    FOR_HOW(false, args, t5_tiles, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(t5_bias_add)(const struct posenc_t5_args *args)
{
    FOR_HOW(true, args, t5_tiles, args);
    return POSENC_OK;
}

/* ---- By distance ---- */

/* As the key rises the distance falls: the values backwards. */
SIMD_INLINE void distance_rows(enum posenc_dtype type, enum how how,
                               const struct posenc_distance_args *given)
{
    const struct posenc_distance_args copy = *given, *args = &copy;
    const struct posenc_tensor *out = &args->out;

    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t h = 0; h < out->shape[1]; h++) {
            const float *values =
                (const float *)args->values.data +
                (h * args->values.stride[0] + args->query_offset - args->first);

            for (int64_t i = 0; i < out->shape[2]; i++)
                put_biases(type, how, AGAINST, values + i, args->x_scale,
                           adds(how) ? input_at(&args->x, b, h, i) : NULL, row_at(out, b, h, i),
                           0, out->shape[3]);
        }
}

enum posenc_status KERNEL(distance_bias)(const struct posenc_distance_args *args)
{
    FOR_HOW(false, args, distance_rows, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(distance_bias_add)(const struct posenc_distance_args *args)
{
    FOR_HOW(true, args, distance_rows, args);
    return POSENC_OK;
}
