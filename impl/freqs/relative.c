/*
 * Columns of terms by relative position: for each d = query - key, the column of what is
 * learned or computed for it.
 *
 *   Shaw            clip(-d, -max, max) + max, as there distances are key - query
 *   Transformer-XL  keys - 1 - d, since its terms begin with the farthest; above the diagonal,
 *                   where its shift leaves what nobody reads, the column of distance 0
 *   DeBERTa         clip(bucket(d) + span, 0, 2 span - 1); with m = position_buckets / 2,
 *                   bucket(d) = d for |d| <= m, else
 *                   sign(d) (m + ceil((m - 1) ln(|d|/m) / ln((max - 1)/m)))
 *
 * In DeBERTa's ladder of m - 1 steps from m to max - 1 (ladder.c), |d| has bucket m + k where
 * it is beyond rung k - 1 and not beyond rung k. What lies beyond the last rung, bucket 2m or
 * more, is column 0 on the negative side and clipped on the positive one. Keys that look at
 * queries take the same column: there -d is negated again.
 *
 * Reference: Shaw et al. 1803.02155, tensorflow/tensor2tensor layers/common_attention.py,
 * _generate_relative_positions_matrix; Dai et al. 1901.02860, kimiyoung/transformer-xl
 * pytorch/mem_transformer.py, _rel_shift; He et al. 2006.03654, Hugging Face
 * modeling_deberta_v2.py, make_log_bucket_position and disentangled_attention_bias.
 */
#include "plan.h"

enum { MOST_SIZE = 1 << 24, MOST_DISTANCE = 1 << 20, LEAST_BUCKETS = 4, MOST_BUCKETS = 4096 };

/* Sizes, and distances first ... first + queries + keys - 2. */
static enum posenc_status check(int64_t queries, int64_t keys, int64_t first,
                                const int32_t *index)
{
    if (!index)
        return POSENC_ERR_ARGUMENT;
    if (queries < 1 || queries >= MOST_SIZE || keys < 1 || keys >= MOST_SIZE)
        return POSENC_ERR_SHAPE;
    if (first <= -MOST_SIZE || first + queries + keys - 2 >= MOST_SIZE)
        return POSENC_ERR_SHAPE;
    return POSENC_OK;
}

/* Returns the distance of element 0; it is out of range if it would overflow. */
static int64_t first_distance(int64_t keys, int64_t query_offset)
{
    bool far = query_offset <= -MOST_SIZE || query_offset >= MOST_SIZE;
    return far || keys < 1 || keys >= MOST_SIZE ? -MOST_SIZE : query_offset - (keys - 1);
}

static int64_t clip(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

enum posenc_status posenc_shaw_index(int64_t queries, int64_t keys, int64_t query_offset,
                                     int64_t max_distance, int32_t *index)
{
    int64_t first = first_distance(keys, query_offset);
    enum posenc_status status = check(queries, keys, first, index);
    if (status)
        return status;
    if (max_distance < 1 || max_distance > MOST_DISTANCE)
        return POSENC_ERR_SHAPE;
    for (int64_t e = 0; e < queries + keys - 1; e++)
        index[e] = (int32_t)(clip(-(first + e), -max_distance, max_distance) + max_distance);
    return POSENC_OK;
}

enum posenc_status posenc_transformer_xl_index(int64_t queries, int64_t keys, int32_t *index)
{
    int64_t first = queries < 1 ? -MOST_SIZE : 1 - queries;
    enum posenc_status status = check(queries, keys, first, index);
    if (status)
        return status;
    for (int64_t e = 0; e < queries + keys - 1; e++)
        index[e] = (int32_t)clip(queries + keys - 2 - e, 0, keys - 1);
    return POSENC_OK;
}

/* Buckets above m, for |d| in ascending order: column m + k is reached by way of all before. */
struct walk {
    struct ladder ladder;
    int64_t m, k, last; /* last: the greatest |d| of bucket m + k */
};

/* The bucket of |d|, not less than at the call before; 2m is for all beyond the last rung. */
static int64_t bucket(struct walk *walk, int64_t distance)
{
    if (distance <= walk->m)
        return distance;
    while (distance > walk->last && walk->k < walk->m) {
        walk->k++;
        walk->last = walk->k < walk->m ? posenc_rung_down(&walk->ladder, walk->k) : 0;
    }
    return walk->m + walk->k;
}

/* Columns of distances from, from + step, ... to `to`, away from 0. */
static void fill_deberta(int64_t from, int64_t to, int step, int64_t position_buckets,
                         int64_t max_distance, int32_t *index)
{
    int64_t span = position_buckets ? position_buckets : max_distance;
    struct walk walk = { .m = span };
    if (position_buckets) {
        walk.m = walk.last = position_buckets / 2;
        walk.ladder = posenc_ladder(walk.m, max_distance - 1, walk.m - 1);
    }
    for (int64_t d = from; d * step <= to * step; d += step, index += step) {
        int64_t size = d * step;
        int64_t b = position_buckets ? bucket(&walk, size) : size;
        *index = (int32_t)clip(step * b + span, 0, 2 * span - 1);
    }
}

enum posenc_status posenc_deberta_index(int64_t queries, int64_t keys, int64_t query_offset,
                                        int64_t position_buckets, int64_t max_distance,
                                        int32_t *index)
{
    int64_t first = first_distance(keys, query_offset);
    enum posenc_status status = check(queries, keys, first, index);
    if (status)
        return status;
    if (max_distance < 1 || max_distance > MOST_DISTANCE)
        return POSENC_ERR_SHAPE;
    if (position_buckets != 0 &&
        (position_buckets < LEAST_BUCKETS || position_buckets > MOST_BUCKETS ||
         position_buckets % 2 != 0 || position_buckets >= max_distance))
        return POSENC_ERR_SHAPE;
    int64_t last = first + queries + keys - 2;
    int64_t up = first > 0 ? first : 0, down = last < -1 ? last : -1;
    if (up <= last)
        fill_deberta(up, last, 1, position_buckets, max_distance, index + (up - first));
    if (down >= first)
        fill_deberta(down, first, -1, position_buckets, max_distance, index + (down - first));
    return POSENC_OK;
}
