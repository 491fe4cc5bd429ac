/**
 * @file posenc/relative.h
 * @brief Biases on attention scores: ALiBi, T5, biases by distance, window biases, and terms by relative position.
 *
 * Each encoding has two kernels. One writes the bias as a tensor. The other, ..._add, adds it to scores.
 *
 * Query i is at position i + query_offset, and key j at position j. For a step of decoding, query_offset is the
 * number of keys before the query; keys - queries aligns the ends. Distances are below 2^24.
 */
#ifndef POSENC_RELATIVE_H
#define POSENC_RELATIVE_H

#include <posenc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ALiBi ---- */

/**
 * @brief Computes the slopes of ALiBi (Hugging Face: those of build_alibi_tensor(); ggml: max_bias).
 *
 * For a power of two, they are 2^(-alibi_bias_max h / n_heads) with h = 1, 2, ... Otherwise, with P the largest power
 * of two below n_heads, they are the P slopes of P heads, then slopes 1, 3, 5, ... of 2P heads. Each is correctly
 * rounded.
 * @param n_heads         1 to 65536
 * @param alibi_bias_max  above 0, at most 64; 8 in the paper
 * @param slopes          f32 [n_heads]
 * @param error           receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE (n_heads), POSENC_ERR_PARAMETER (alibi_bias_max)
 *
 * Source: Press et al. 2108.12409 and its reference code.
 */
POSENC_CHECKED enum posenc_status posenc_alibi_slopes(int64_t n_heads, double alibi_bias_max,
                                                      float *slopes,
                                                      struct posenc_error *error);

/** Arguments of posenc_alibi() and posenc_alibi_add(). */
struct posenc_alibi_args {
    size_t size;
    const float *slopes;         /**< f32 [heads] or [batch, heads] */
    int64_t slopes_stride_batch; /**< 0: batches share the slopes (default) */
    bool causal;          /**< the bias of keys after the query is -infinity (default: false) */
    int64_t query_offset; /**< position of query 0 minus that of key 0 */
    float x_scale;        /**< factor of x, such as 1/sqrt(d_k) (default: 1) */
    /** alibi_add: as out, or left zero for in place. alibi: zero. */
    struct posenc_const_tensor x;
    struct posenc_tensor out; /**< [batch, heads, queries, keys] or [heads, queries, keys] */
};
static inline struct posenc_alibi_args posenc_alibi_args_init(void)
{
    struct posenc_alibi_args args;
    posenc_args_defaults(POSENC_KERNEL_ALIBI, &args, sizeof args);
    return args;
}

/**
 * @brief Compute the biases of ALiBi, as a tensor or added to scores: BLOOM, MPT, Falcon-RW.
 *
 *     alibi      out[b,h,i,j] = -slopes[h] |i + query_offset - j|
 *     alibi_add  out[b,h,i,j] = fma(x[b,h,i,j], x_scale, -slopes[h] |i + query_offset - j|)
 *
 * The bias at distance 0 is +0.
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. The slopes must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, _SHAPE, _STRIDE, _DTYPE, _PARAMETER, _OVERLAP, _OVERFLOW
 *
 * Source: Press et al. 2108.12409.
 */
POSENC_CHECKED enum posenc_status posenc_alibi(const struct posenc_backend *backend,
                                               const struct posenc_alibi_args *args,
                                               struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_alibi_add(const struct posenc_backend *backend,
                                                   const struct posenc_alibi_args *args,
                                                   struct posenc_error *error);

/* ---- T5 ---- */

/** The buckets of T5. posenc_t5_buckets_compute() fills it; the thresholds are in memory of the caller. */
struct posenc_t5_buckets {
    int64_t num_buckets;
    bool bidirectional;
    /** [num_buckets], or [num_buckets/2] if bidirectional: least distance of each bucket */
    const int32_t *thresholds;
    int64_t reserved[2]; /**< 0 */
};

/**
 * @brief Computes the buckets of T5 (Hugging Face: _relative_position_bucket()).
 *
 * A distance n is in the last bucket b with thresholds[b] <= n. The thresholds are decided in exact arithmetic.
 * @param num_buckets    2 to 4096; if bidirectional, even and at least 4
 * @param max_distance   above the number of exact buckets, below 2^24
 * @param bidirectional  true for an encoder, false for a decoder
 * @param thresholds     [num_buckets], or [num_buckets/2] if bidirectional. It has to live as long as the buckets.
 * @param buckets        receives the buckets
 * @param error          receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE (num_buckets), POSENC_ERR_PARAMETER (max_distance)
 *
 * Source: Raffel et al. 1910.10683.
 */
POSENC_CHECKED enum posenc_status
posenc_t5_buckets_compute(int64_t num_buckets, int64_t max_distance, bool bidirectional,
                          int32_t *thresholds, struct posenc_t5_buckets *buckets,
                          struct posenc_error *error);

/** Arguments of posenc_t5_bias() and posenc_t5_bias_add(). */
struct posenc_t5_args {
    size_t size;
    struct posenc_t5_buckets buckets;
    int64_t query_offset;             /**< position of query 0 minus that of key 0 */
    float x_scale;                    /**< factor of x; 1 in T5 (default: 1) */
    struct posenc_const_tensor table; /**< f32 [num_buckets, heads] */
    /** t5_bias_add: as out, or left zero for in place. t5_bias: zero. */
    struct posenc_const_tensor x;
    /** [heads, queries, keys]; of t5_bias_add also [batch, heads, queries, keys] */
    struct posenc_tensor out;
};
static inline struct posenc_t5_args posenc_t5_args_init(void)
{
    struct posenc_t5_args args;
    posenc_args_defaults(POSENC_KERNEL_T5_BIAS, &args, sizeof args);
    return args;
}

/**
 * @brief Compute the relative biases of T5, as a tensor or added to scores (Hugging Face: compute_bias()).
 *
 *     t5_bias      out[h,i,j]   = table[bucket(j - i - query_offset), h]
 *     t5_bias_add  out[b,h,i,j] = fma(x[b,h,i,j], x_scale, table[bucket(j - i - query_offset), h])
 *
 * bucket(r) is the bucket of the distance |r| if bidirectional, otherwise of max(-r, 0). If bidirectional, keys after
 * the query have the upper half of the buckets.
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. The table and the thresholds must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return as posenc_alibi_add()
 *
 * Source: Raffel et al. 1910.10683.
 */
POSENC_CHECKED enum posenc_status posenc_t5_bias(const struct posenc_backend *backend,
                                                 const struct posenc_t5_args *args,
                                                 struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_t5_bias_add(const struct posenc_backend *backend,
                                                     const struct posenc_t5_args *args,
                                                     struct posenc_error *error);

/* ---- Biases by distance ---- */

/** Arguments of posenc_distance_bias() and posenc_distance_bias_add(). */
struct posenc_distance_args {
    size_t size;
    int64_t query_offset; /**< position of query 0 minus that of key 0 */
    int64_t first;        /**< distance of column 0 of `values` */
    float x_scale;        /**< factor of x (default: 1) */
    /** f32 [heads, n]: biases at the distances first ... first + n - 1 */
    struct posenc_const_tensor values;
    /** distance_bias_add: as out, or left zero for in place. Otherwise zero. */
    struct posenc_const_tensor x;
    /** [heads, queries, keys]; of distance_bias_add also [batch, heads, queries, keys] */
    struct posenc_tensor out;
};
static inline struct posenc_distance_args posenc_distance_args_init(void)
{
    struct posenc_distance_args args;
    posenc_args_defaults(POSENC_KERNEL_DISTANCE_BIAS, &args, sizeof args);
    return args;
}

/**
 * @brief Compute any bias that depends on the distance alone, as a tensor or added to scores.
 *
 *     distance_bias      out[h,i,j]   = values[h, i + query_offset - j - first]
 *     distance_bias_add  out[b,h,i,j] = fma(x[b,h,i,j], x_scale, values[h, i + query_offset - j - first])
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. The values must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return as posenc_alibi_add(); POSENC_ERR_SHAPE if a distance is outside [first, first + n)
 */
POSENC_CHECKED enum posenc_status posenc_distance_bias(const struct posenc_backend *backend,
                                                       const struct posenc_distance_args *args,
                                                       struct posenc_error *error);
POSENC_CHECKED enum posenc_status
posenc_distance_bias_add(const struct posenc_backend *backend,
                         const struct posenc_distance_args *args, struct posenc_error *error);

/**
 * @brief Compute values for posenc_distance_bias(). Each is correctly rounded.
 *
 *     kerple_log    values[h,k] = -p[h] ln(1 + a[h] |first + k|)    p and a above 0 (Chi et al. 2205.09921)
 *     kerple_power  values[h,k] = -a[h] |first + k|^p[h]            p at most 2
 *     sandwich      values[h,k] = scale[h] (sum over i < dim/2 of cos((first + k) 10000^(-2i/dim)) - dim/2), the inner
 *                   product of sinusoidal encodings, 0 at distance 0 (Chi et al. 2212.10356). There scale[h] is
 *                   n_heads / (8 h) with h = 1, 2, ...
 *
 * @param n_heads  1 to 65536
 * @param p, a, scale  f32 [n_heads], finite
 * @param dim      of sandwich: even, 2 to 65536
 * @param first    distance of column 0; all distances are below 2^24 in magnitude
 * @param n        number of columns, at least 1
 * @param values   f32 [n_heads, n], dense
 * @param error    receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE, POSENC_ERR_PARAMETER (p, a, scale)
 */
POSENC_CHECKED enum posenc_status posenc_kerple_log(int64_t n_heads, const float *p,
                                                    const float *a, int64_t first, int64_t n,
                                                    float *values, struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_kerple_power(int64_t n_heads, const float *p,
                                                      const float *a, int64_t first, int64_t n,
                                                      float *values,
                                                      struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_sandwich(int64_t dim, int64_t n_heads,
                                                  const float *scale, int64_t first, int64_t n,
                                                  float *values, struct posenc_error *error);

/* ---- Window biases ---- */

/**
 * @brief Compute the row of a table for each query and key of a window (Hugging Face: relative_position_index).
 *
 *   swin  n = height width tokens, row by row. The row is (dy + height - 1)(2 width - 1) + dx + width - 1, where
 *         (dy, dx) is query less key. The table has (2 height - 1)(2 width - 1) rows (Liu et al. 2103.14030).
 *   beit  n = 1 + height width: a class token comes first. The table has three more rows: the class token as query, as
 *         key, and with itself (Bao et al. 2106.08254, as in Hugging Face).
 *
 * @param height, width  1 to 256
 * @param index          [n, n], dense
 * @param error          receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE
 */
POSENC_CHECKED enum posenc_status posenc_swin_index(int64_t height, int64_t width,
                                                    int32_t *index, struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_beit_index(int64_t height, int64_t width,
                                                    int32_t *index, struct posenc_error *error);

/** Arguments of posenc_window_bias() and posenc_window_bias_add(). */
struct posenc_window_args {
    size_t size;
    const int32_t *index;             /**< [queries, keys], dense, each in [0, rows) */
    float x_scale;                    /**< factor of x (default: 1) */
    struct posenc_const_tensor table; /**< f32 [rows, heads] */
    /** window_bias_add: as out, or left zero for in place. window_bias: zero. */
    struct posenc_const_tensor x;
    /** [heads, queries, keys]; of window_bias_add also [windows, heads, queries, keys] */
    struct posenc_tensor out;
};
static inline struct posenc_window_args posenc_window_args_init(void)
{
    struct posenc_window_args args;
    posenc_args_defaults(POSENC_KERNEL_WINDOW_BIAS, &args, sizeof args);
    return args;
}

/**
 * @brief Compute biases by an index, as a tensor or added to scores: Swin, BEiT.
 *
 *     window_bias      out[h,i,j]   = table[index[i,j], h]
 *     window_bias_add  out[b,h,i,j] = fma(x[b,h,i,j], x_scale, table[index[i,j], h])
 *
 * @param backend  NULL for the selected one
 * @param args     the index is of posenc_swin_index(), posenc_beit_index(), or any other. x and out are the same
 *                 tensor, or do not overlap. Index and table must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return as posenc_alibi_add(). An index outside [0, rows) is POSENC_ERR_POSITION: error->value is the index and
 *         error->most is rows - 1.
 */
POSENC_CHECKED enum posenc_status posenc_window_bias(const struct posenc_backend *backend,
                                                     const struct posenc_window_args *args,
                                                     struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_window_bias_add(const struct posenc_backend *backend,
                                                         const struct posenc_window_args *args,
                                                         struct posenc_error *error);

/* ---- Terms by relative position ---- */

/**
 * @brief Compute the column of each relative position, for posenc_relative_bias() and posenc_relative_sum().
 *
 * Element i - j + keys - 1 is for query i and key j. Their distance is d = i + query_offset - j.
 *
 *   shaw            clip(-d, -max_distance, max_distance) + max_distance: 2 max_distance + 1 columns
 *                   (Shaw et al. 1803.02155)
 *   transformer_xl  min(keys - 1 - d, keys - 1) with d = keys - queries + i - j: keys columns, distance 0 last. Keys
 *                   after the query have that column, too; the caller masks them (Dai et al. 1901.02860).
 *   deberta         clip(bucket(d) + span, 0, 2 span - 1): 2 span columns. With position_buckets 0, span is
 *                   max_distance and bucket(d) = d. Otherwise span is position_buckets. With m = position_buckets/2,
 *                   bucket(d) = d up to |d| = m, and beyond it the sign of d times
 *                   ceil(ln(|d|/m) / ln((max_distance - 1)/m) (m - 1)) + m. Decided in exact arithmetic
 *                   (He et al. 2006.03654, as in Hugging Face: make_log_bucket_position()).
 *
 * @param queries, keys     from 1 on; all distances are below 2^24 in magnitude
 * @param max_distance      1 to 2^20
 * @param position_buckets  0, or even, 4 to 4096 and below max_distance
 * @param index             [queries + keys - 1]
 * @param error             receives the details of an error; may be NULL
 * @return POSENC_OK, or POSENC_ERR_ARGUMENT, POSENC_ERR_SHAPE
 */
POSENC_CHECKED enum posenc_status posenc_shaw_index(int64_t queries, int64_t keys,
                                                    int64_t query_offset, int64_t max_distance,
                                                    int32_t *index, struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_transformer_xl_index(int64_t queries, int64_t keys,
                                                              int32_t *index,
                                                              struct posenc_error *error);
POSENC_CHECKED enum posenc_status posenc_deberta_index(int64_t queries, int64_t keys,
                                                       int64_t query_offset,
                                                       int64_t position_buckets,
                                                       int64_t max_distance, int32_t *index,
                                                       struct posenc_error *error);

/** Arguments of posenc_relative_bias() and posenc_relative_bias_add(). */
struct posenc_relative_args {
    size_t size;
    const int32_t *index; /**< [queries + keys - 1], each in [0, columns) */
    float scale;   /**< factor of both terms, such as 1/sqrt(3 d_k) in DeBERTa (default: 1) */
    float x_scale; /**< factor of x (default: 1) */
    struct posenc_const_tensor c2p; /**< [batch, heads, queries, columns], or left zero */
    struct posenc_const_tensor p2c; /**< [batch, heads, keys, columns], or left zero */
    /** relative_bias_add: as out, or left zero for in place. relative_bias: zero. */
    struct posenc_const_tensor x;
    /** [batch, heads, queries, keys]; all may lack batch. All have one dtype. */
    struct posenc_tensor out;
};
static inline struct posenc_relative_args posenc_relative_args_init(void)
{
    struct posenc_relative_args args;
    posenc_args_defaults(POSENC_KERNEL_RELATIVE_BIAS, &args, sizeof args);
    return args;
}

/**
 * @brief Compute terms by relative position, as a tensor or added to scores. c = index[i - j + keys - 1]:
 *
 *     relative_bias      out[b,h,i,j] = bias = fma(scale, p2c[b,h,j,c], f32(scale c2p[b,h,i,c]))
 *     relative_bias_add  out[b,h,i,j] = fma(x[b,h,i,j], x_scale, bias)
 *
 * c2p holds products of queries with a learned vector for each column: content-to-position in DeBERTa, q a^K in Shaw
 * et al., (q + v) R in Transformer-XL before its shift. p2c holds products of keys. For p2c, the DeBERTa paper uses
 * the column of j - i, and its code that of i - j, with which models were trained; so does this kernel. If one of
 * the two is left zero, the bias is f32(scale times the other).
 *
 * @param backend  NULL for the selected one
 * @param args     x and out are the same tensor, or do not overlap. c2p, p2c and the index must not overlap out.
 * @param error    receives the details of an error; may be NULL
 * @return as posenc_window_bias_add()
 */
POSENC_CHECKED enum posenc_status posenc_relative_bias(const struct posenc_backend *backend,
                                                       const struct posenc_relative_args *args,
                                                       struct posenc_error *error);
POSENC_CHECKED enum posenc_status
posenc_relative_bias_add(const struct posenc_backend *backend,
                         const struct posenc_relative_args *args, struct posenc_error *error);

/** Arguments of posenc_relative_sum(). */
struct posenc_relative_sum_args {
    size_t size;
    const int32_t *index;         /**< as in posenc_relative_args */
    struct posenc_const_tensor x; /**< [batch, heads, queries, keys] */
    /** [batch, heads, queries, columns]; both may lack batch; both have one dtype */
    struct posenc_tensor out;
};
static inline struct posenc_relative_sum_args posenc_relative_sum_args_init(void)
{
    struct posenc_relative_sum_args args;
    posenc_args_defaults(POSENC_KERNEL_RELATIVE_SUM, &args, sizeof args);
    return args;
}

/**
 * @brief Sums x over the keys of each column.
 *
 * out[b,h,i,c] is the sum of x[b,h,i,j] over the keys j, in ascending order, whose index[i - j + keys - 1] is c. The
 * sum is f32 and starts from +0. Applied to attention weights, it gives the factors of a^V in Shaw et al. Applied to
 * a gradient of scores, it gives the gradient of c2p.
 *
 * @param backend  NULL for the selected one
 * @param args     x and out must not overlap
 * @param error    receives the details of an error; may be NULL
 * @return as posenc_relative_bias()
 */
POSENC_CHECKED enum posenc_status
posenc_relative_sum(const struct posenc_backend *backend,
                    const struct posenc_relative_sum_args *args, struct posenc_error *error);

#ifdef __cplusplus
}
#endif
#endif
