/*
 * Kernels alibi, t5_bias, distance_bias, window_bias and their _add: biases that depend on
 * where query and key stand, written out or added to scores as they pass.
 *
 *     alibi     -slope |query - key|, -infinity for later keys where causal    (2108.12409)
 *     t5        table[bucket(key - query), head]                               (1910.10683)
 *     distance  values[head, query - key - first]                  (2205.09921, 2212.10356)
 *     window    table[index[query, key], head]                     (2103.14030, 2106.08254)
 *
 * A row of T5's biases or of those by distance is the row before it moved by one key, so a tile
 * of queries reads one short line of biases, filled once, at a moving start.  A window's biases
 * are fetched once for all batches.
 */
#include "scores.h"

/* Biases of keys whose positions less the query's are `ahead`.  Distances are below 2^24, exact
 * in f32.  0 - slope |d| with one fma is the product rounded once, and +0 at distance 0. */
SIMD_INLINE vf alibi_bias(bool causal, vf minus_slope, vf ahead)
{
    vf zero = vf_set1(0.0f), bias = vf_fma(minus_slope, vf_abs(ahead), zero);

    return causal ? vf_select_lt(zero, ahead, vf_set1(-INFINITY), bias) : bias;
}

/* One row of keys for the query at position `query` (that of key 0 being 0), four vectors at a
 * time so that no addition waits for the one before it. */
SIMD_INLINE void alibi_row(enum posenc_dtype type, bool add, bool causal, float slope,
                           int64_t query, int64_t keys, float x_scale, const void *x, void *out)
{
    int64_t w = vf_lanes(), j = 0;
    int64_t mixed =
        causal && query + 1 < keys ? (query < 0 ? 0 : query + 1) : keys; /* then all -inf */
    vf scale = vf_set1(x_scale), minus_slope = vf_set1(-slope), width = vf_set1((float)w);
    vf ahead = vf_sub(vf_iota(), vf_set1((float)query));

    for (; j + 4 * w <= keys && j < mixed; j += 4 * w) {
        vf second = vf_add(ahead, width), third = vf_add(ahead, vf_add(width, width));
        vf fourth = vf_add(second, vf_add(width, width));
        put_bias(type, add, x, scale, out, j, alibi_bias(causal, minus_slope, ahead), w);
        put_bias(type, add, x, scale, out, j + w, alibi_bias(causal, minus_slope, second), w);
        put_bias(type, add, x, scale, out, j + 2 * w, alibi_bias(causal, minus_slope, third),
                 w);
        put_bias(type, add, x, scale, out, j + 3 * w, alibi_bias(causal, minus_slope, fourth),
                 w);
        ahead = vf_add(ahead, vf_mul(width, vf_set1(4.0f)));
    }
    for (; j < keys && j < mixed; j += w, ahead = vf_add(ahead, width)) {
        int64_t n = keys - j < w ? keys - j : w;
        put_bias(type, add, x, scale, out, j, alibi_bias(causal, minus_slope, ahead), n);
    }
    for (; j < keys; j += w)
        put_bias(type, add, x, scale, out, j, vf_set1(-INFINITY), keys - j < w ? keys - j : w);
}

SIMD_INLINE void alibi_rows(enum posenc_dtype type, bool add, bool causal,
                            const struct posenc_alibi_args *args)
{
    for (int64_t b = 0; b < args->out.shape[0]; b++)
        for (int64_t h = 0; h < args->out.shape[1]; h++)
            for (int64_t i = 0; i < args->out.shape[2]; i++)
                alibi_row(type, add, causal, args->slopes[b * args->slopes_stride_batch + h],
                          i + args->query_offset, args->out.shape[3], args->x_scale,
                          add ? input_at(&args->x, b, h, i) : NULL,
                          row_at(&args->out, b, h, i));
}

enum posenc_status KERNEL(alibi)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        FOR_TYPE(args->out.dtype, alibi_rows, false, true, args);
    else
        FOR_TYPE(args->out.dtype, alibi_rows, false, false, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(alibi_add)(const struct posenc_alibi_args *args)
{
    if (args->causal)
        FOR_TYPE(args->out.dtype, alibi_rows, true, true, args);
    else
        FOR_TYPE(args->out.dtype, alibi_rows, true, false, args);
    return POSENC_OK;
}

/* n biases of a line to keys j ... of one row, onto scores where there are some. */
SIMD_INLINE void put_line(enum posenc_dtype type, bool add, const float *bias, float x_scale,
                          const void *x, void *out, int64_t j, int64_t n)
{
    int64_t w = vf_lanes(), k = 0;
    vf scale = vf_set1(x_scale);

    for (; k + 4 * w <= n; k += 4 * w) {
        put_bias(type, add, x, scale, out, j + k, vf_load(bias + k), w);
        put_bias(type, add, x, scale, out, j + k + w, vf_load(bias + k + w), w);
        put_bias(type, add, x, scale, out, j + k + 2 * w, vf_load(bias + k + 2 * w), w);
        put_bias(type, add, x, scale, out, j + k + 3 * w, vf_load(bias + k + 3 * w), w);
    }
    for (; k + w <= n; k += w)
        put_bias(type, add, x, scale, out, j + k, vf_load(bias + k), w);
    if (k < n)
        put_bias(type, add, x, scale, out, j + k, vf_load_n(bias + k, n - k), n - k);
}

/* ---- By distance ---- */

/* A tile: at most so many queries and keys; its line of biases lives on the stack. */
enum { TILE_QUERIES = 32, TILE_KEYS = 4096 };

/* Fills the line of a head: line[k] is the bias where key - query = first + k. */
typedef void line_filler(const void *args, int64_t head, int64_t first, int64_t n, float *line);

SIMD_INLINE void distance_tile(enum posenc_dtype type, bool add, const float *line,
                               float x_scale, const struct posenc_const_tensor *x,
                               const struct posenc_tensor *out, int64_t h, int64_t i0,
                               int64_t i1, int64_t j0, int64_t j1)
{
    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t i = i0; i < i1; i++)
            put_line(type, add, line + (i1 - 1 - i), x_scale, add ? input_at(x, b, h, i) : NULL,
                     row_at(out, b, h, i), j0, j1 - j0);
}

/* A bias by distance: what the kernels for T5's and for any other differ in is the line. */
struct by_distance {
    line_filler *fill_line;
    const void *args;
    int64_t query_offset;
    float x_scale;
    const struct posenc_const_tensor *x;
    const struct posenc_tensor *out;
};

SIMD_INLINE void distance_tiles(enum posenc_dtype type, bool add, const struct by_distance *by)
{
    float line[TILE_QUERIES + TILE_KEYS];
    int64_t queries = by->out->shape[2], keys = by->out->shape[3];

    for (int64_t h = 0; h < by->out->shape[1]; h++)
        for (int64_t i0 = 0; i0 < queries; i0 += TILE_QUERIES)
            for (int64_t j0 = 0; j0 < keys; j0 += TILE_KEYS) {
                int64_t i1 = least(i0 + TILE_QUERIES, queries);
                int64_t j1 = least(j0 + TILE_KEYS, keys);

                by->fill_line(by->args, h, j0 - (i1 - 1) - by->query_offset,
                              (i1 - i0) + (j1 - j0) - 1, line);
                distance_tile(type, add, line, by->x_scale, by->x, by->out, h, i0, i1, j0, j1);
            }
}

static __attribute__((noinline)) enum posenc_status write_by_distance(struct by_distance by)
{
    FOR_TYPE(by.out->dtype, distance_tiles, false, &by);
    return POSENC_OK;
}

static __attribute__((noinline)) enum posenc_status add_by_distance(struct by_distance by)
{
    FOR_TYPE(by.out->dtype, distance_tiles, true, &by);
    return POSENC_OK;
}

static void fill(float *line, int64_t from, int64_t to, float value)
{
    for (int64_t k = from; k < to; k++)
        line[k] = value;
}

static int64_t clamp(int64_t k, int64_t n) { return k < 0 ? 0 : k > n ? n : k; }

/* Bucket by bucket: bucket b holds the distances from thresholds[b] to below
 * thresholds[b + 1]. */
static void t5_line(const void *t5_args, int64_t head, int64_t first, int64_t n, float *line)
{
    const struct posenc_t5_args *args = t5_args;
    int64_t buckets = args->bidirectional ? args->num_buckets / 2 : args->num_buckets;
    int64_t stride = args->table.stride[0];
    const float *table = (const float *)args->table.data + head;

    for (int64_t bucket = 0; bucket < buckets; bucket++) {
        int64_t nearest = args->thresholds[bucket];
        int64_t beyond = bucket + 1 < buckets ? args->thresholds[bucket + 1] : INT64_C(1) << 40;
        int64_t nearest_later = nearest > 0 ? nearest : 1; /* distance 0 is not a later key */

        fill(line, clamp(1 - beyond - first, n), clamp(1 - nearest - first, n),
             table[bucket * stride]);
        if (args->bidirectional)
            fill(line, clamp(nearest_later - first, n), clamp(beyond - first, n),
                 table[(bucket + buckets) * stride]);
    }
    if (!args->bidirectional)
        fill(line, clamp(1 - first, n), n, table[0]);
}

static struct by_distance t5_by_distance(const struct posenc_t5_args *args)
{
    return (struct by_distance){ t5_line,       args,     args->query_offset,
                                 args->x_scale, &args->x, &args->out };
}

enum posenc_status KERNEL(t5_bias)(const struct posenc_t5_args *args)
{
    return write_by_distance(t5_by_distance(args));
}

enum posenc_status KERNEL(t5_bias_add)(const struct posenc_t5_args *args)
{
    return add_by_distance(t5_by_distance(args));
}

/* As the key rises the distance falls: the values backwards. */
static void values_line(const void *distance_args, int64_t head, int64_t first, int64_t n,
                        float *line)
{
    const struct posenc_distance_args *args = distance_args;
    const float *values = (const float *)args->values.data + head * args->values.stride[0];
    int64_t at = -first - args->first;

    for (int64_t k = 0; k < n; k++)
        line[k] = values[at - k];
}

static struct by_distance values_by_distance(const struct posenc_distance_args *args)
{
    return (struct by_distance){ values_line,   args,     args->query_offset,
                                 args->x_scale, &args->x, &args->out };
}

enum posenc_status KERNEL(distance_bias)(const struct posenc_distance_args *args)
{
    return write_by_distance(values_by_distance(args));
}

enum posenc_status KERNEL(distance_bias_add)(const struct posenc_distance_args *args)
{
    return add_by_distance(values_by_distance(args));
}

/* ---- By index in a window ---- */

/* The biases fetched at a time, and the longest column of a table that is copied to be near. */
enum { WINDOW_PIECE = 4096, WINDOW_ROWS = 4096 };

/* bias[k] = the element of head h's column that index[k] names.  A column that has been copied
 * has stride 1. */
static void window_fetch(const float *column, int64_t stride, const int32_t *index, int64_t n,
                         float *bias)
{
    int64_t w = vf_lanes(), k = 0;

    for (; stride == 1 && k + w <= n; k += w)
        vf_store(bias + k, vf_gather_n(column, index + k, w));
    for (; k < n; k++)
        bias[k] = column[index[k] * stride];
}

/* Biases of `rows` queries from i on and of `width` keys from j on, to all batches.  Rows that
 * follow each other in memory are one. */
SIMD_INLINE void window_put(enum posenc_dtype type, bool add, const float *bias,
                            const struct posenc_window_args *args, int64_t h, int64_t i,
                            int64_t rows, int64_t j, int64_t width)
{
    const struct posenc_tensor *out = &args->out;
    bool dense = width == out->stride[2] && (!add || width == args->x.stride[2]);
    int64_t step = dense ? rows : 1;

    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t r = 0; r < rows; r += step)
            put_line(type, add, bias + r * width, args->x_scale,
                     add ? input_at(&args->x, b, h, i + r) : NULL, row_at(out, b, h, i + r), j,
                     step * width);
}

SIMD_INLINE void window_heads(enum posenc_dtype type, bool add,
                              const struct posenc_window_args *args)
{
    _Alignas(64) float column[WINDOW_ROWS], bias[WINDOW_PIECE];
    int64_t queries = args->out.shape[2], keys = args->out.shape[3];
    int64_t width = least(keys, WINDOW_PIECE), most = WINDOW_PIECE / width;
    bool near = args->table.shape[0] <= WINDOW_ROWS;

    for (int64_t h = 0; h < args->out.shape[1]; h++) {
        const float *table = (const float *)args->table.data + h;
        for (int64_t r = 0; near && r < args->table.shape[0]; r++)
            column[r] = table[r * args->table.stride[0]];

        for (int64_t i = 0; i < queries; i += most)
            for (int64_t j = 0; j < keys; j += width) {
                int64_t rows = least(queries - i, most), n = least(keys - j, width);

                window_fetch(near ? column : table, near ? 1 : args->table.stride[0],
                             args->index + i * keys + j, rows * n, bias);
                window_put(type, add, bias, args, h, i, rows, j, n);
            }
    }
}

enum posenc_status KERNEL(window_bias)(const struct posenc_window_args *args)
{
    FOR_TYPE(args->out.dtype, window_heads, false, args);
    return POSENC_OK;
}

enum posenc_status KERNEL(window_bias_add)(const struct posenc_window_args *args)
{
    FOR_TYPE(args->out.dtype, window_heads, true, args);
    return POSENC_OK;
}
