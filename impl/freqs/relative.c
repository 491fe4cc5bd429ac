/*
 * Columns of terms by relative position d = query - key, for relative_bias and relative_sum.
 *
 *   Shaw            clip(-d, -max, max) + max: distances are key - query
 *   Transformer-XL  keys - 1 - d: terms begin with the farthest key; keys after the query, which models
 *                   mask, get the column of distance 0
 *   DeBERTa         clip(bucket(d) + span, 0, 2 span - 1); with m = position_buckets / 2,
 *                   bucket(d) = d for |d| <= m, else
 *                   sign(d) (m + ceil((m - 1) ln(|d|/m) / ln((max - 1)/m)))
 *
 * DeBERTa's logarithmic grid has m - 1 steps from m to max - 1 (log_grid.c). A distance |d| has bucket m + k if it is
 * beyond point k - 1 and not beyond point k. Beyond the last point the bucket is 2m or more, which is column 0 if d is
 * negative and is clipped if d is positive. Terms of keys (p2c) have the same column, as the code of DeBERTa negates d
 * twice.
 *
 * Reference: Shaw et al. 1803.02155, tensorflow/tensor2tensor layers/common_attention.py,
 * _generate_relative_positions_matrix; Dai et al. 1901.02860, kimiyoung/transformer-xl pytorch/mem_transformer.py,
 * _rel_shift; He et al. 2006.03654, Hugging Face modeling_deberta_v2.py, make_log_bucket_position and
 * disentangled_attention_bias.
 */
#include "freqs.h"

enum { MAX_SIZE = 1 << 24, MAX_DISTANCE = 1 << 20, MIN_BUCKETS = 4, MAX_BUCKETS = 4096 };

/* Checks the sizes, and the distances from `first` to first + queries + keys - 2. */
static enum posenc_status check_sizes(int64_t queries, int64_t keys, int64_t first,
                                      const int32_t *index, struct posenc_error *error)
{
    if (!index)
        return reject(error, POSENC_ERR_ARGUMENT, "index (NULL)");
    enum posenc_status status =
        require_range(error, POSENC_ERR_SHAPE, "queries", queries, 1, MAX_SIZE - 1);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "keys", keys, 1, MAX_SIZE - 1);
    if (!status)
        status = require_range(error, POSENC_ERR_SHAPE, "distance of query 0 and the last key",
                               first, 1 - MAX_SIZE, MAX_SIZE + 1 - queries - keys);
    return status;
}

static enum posenc_status check_max_distance(int64_t max_distance, struct posenc_error *error)
{
    return require_range(error, POSENC_ERR_SHAPE, "max_distance", max_distance, 1,
                         MAX_DISTANCE);
}

/* Returns the distance of element 0, or -MAX_SIZE, which check_sizes() rejects, if it may overflow. */
static int64_t first_distance(int64_t keys, int64_t query_offset)
{
    bool far = query_offset <= -MAX_SIZE || query_offset >= MAX_SIZE;
    return far || keys < 1 || keys >= MAX_SIZE ? -MAX_SIZE : query_offset - (keys - 1);
}

static int64_t clip(int64_t value, int64_t min, int64_t max)
{
    return value < min ? min : value > max ? max : value;
}

enum posenc_status posenc_shaw_index(int64_t queries, int64_t keys, int64_t query_offset,
                                     int64_t max_distance, int32_t *index,
                                     struct posenc_error *error)
{
    int64_t first = first_distance(keys, query_offset);
    enum posenc_status status = check_sizes(queries, keys, first, index, error);
    if (!status)
        status = check_max_distance(max_distance, error);
    if (status)
        return status;
    for (int64_t e = 0; e < queries + keys - 1; e++)
        index[e] = (int32_t)(clip(-(first + e), -max_distance, max_distance) + max_distance);
    return POSENC_OK;
}

enum posenc_status posenc_transformer_xl_index(int64_t queries, int64_t keys, int32_t *index,
                                               struct posenc_error *error)
{
    int64_t first = queries < 1 ? -MAX_SIZE : 1 - queries;
    enum posenc_status status = check_sizes(queries, keys, first, index, error);
    if (status)
        return status;
    for (int64_t e = 0; e < queries + keys - 1; e++)
        index[e] = (int32_t)clip(queries + keys - 2 - e, 0, keys - 1);
    return POSENC_OK;
}

/* An iteration over buckets, for |d| in ascending order. `last` is the largest |d| of bucket m + k. */
struct bucket_iterator {
    struct log_grid grid;
    int64_t m, k, last;
};

/* Returns the bucket of |d|, which must not decrease from call to call; 2m beyond the last point. */
static int64_t next_bucket(struct bucket_iterator *it, int64_t distance)
{
    if (distance <= it->m)
        return distance;
    while (distance > it->last && it->k < it->m) {
        it->k++;
        it->last = it->k < it->m ? posenc_log_grid_floor(&it->grid, it->k) : 0;
    }
    return it->m + it->k;
}

/* Fills the columns of the distances from, from + step, ..., to; `step`, 1 or -1, leads away from 0. */
static void fill_deberta(int64_t from, int64_t to, int step, int64_t position_buckets,
                         int64_t max_distance, int32_t *index)
{
    int64_t span = position_buckets ? position_buckets : max_distance;
    struct bucket_iterator it = { .m = span };
    if (position_buckets) {
        it.m = it.last = position_buckets / 2;
        it.grid = posenc_log_grid_of(it.m, max_distance - 1, it.m - 1);
    }
    for (int64_t d = from; d * step <= to * step; d += step, index += step) {
        int64_t size = d * step;
        int64_t b = position_buckets ? next_bucket(&it, size) : size;
        *index = (int32_t)clip(step * b + span, 0, 2 * span - 1);
    }
}

enum posenc_status posenc_deberta_index(int64_t queries, int64_t keys, int64_t query_offset,
                                        int64_t position_buckets, int64_t max_distance,
                                        int32_t *index, struct posenc_error *error)
{
    int64_t first = first_distance(keys, query_offset);
    enum posenc_status status = check_sizes(queries, keys, first, index, error);
    if (!status)
        status = check_max_distance(max_distance, error);
    if (status)
        return status;
    const int64_t most = max_distance - 1 < MAX_BUCKETS ? max_distance - 1 : MAX_BUCKETS;
    if (position_buckets != 0)
        status = require_range(error, POSENC_ERR_SHAPE, "position_buckets", position_buckets,
                               MIN_BUCKETS, most);
    if (!status && position_buckets % 2 != 0)
        status = reject_value(error, POSENC_ERR_SHAPE, "position_buckets (even)",
                              (double)position_buckets);
    if (status)
        return status;
    int64_t last = first + queries + keys - 2;
    int64_t up = first > 0 ? first : 0, down = last < -1 ? last : -1;
    if (up <= last)
        fill_deberta(up, last, 1, position_buckets, max_distance, index + (up - first));
    if (down >= first)
        fill_deberta(down, first, -1, position_buckets, max_distance, index + (down - first));
    return POSENC_OK;
}
