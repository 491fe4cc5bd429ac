/*
 * T5's buckets as integer thresholds. With e exact buckets and N logarithmic ones, a distance n >= e has bucket e +
 * floor(N ln(n/e) / ln(max/e)). Bucket e + k therefore begins at the smallest n that is not below point k of the
 * logarithmic grid from e to max in N steps (log_grid.c).
 *
 * Reference: Raffel et al. 1910.10683; tensorflow/mesh transformer_layers.py, _relative_position_bucket.
 */
#include "freqs.h"

enum { MAX_BUCKETS = 4096, MAX_DISTANCE = 1 << 24 };

enum posenc_status posenc_t5_buckets_compute(int64_t num_buckets, int64_t max_distance,
                                             bool bidirectional, int32_t *thresholds,
                                             struct posenc_t5_buckets *buckets,
                                             struct posenc_error *error)
{
    if (!thresholds || !buckets)
        return reject(error, POSENC_ERR_ARGUMENT, "thresholds or buckets (NULL)");
    enum posenc_status status = require_range(error, POSENC_ERR_SHAPE, "num_buckets",
                                              num_buckets, bidirectional ? 4 : 2, MAX_BUCKETS);
    if (status)
        return status;
    if (bidirectional && num_buckets % 2 != 0)
        return reject_value(error, POSENC_ERR_SHAPE, "num_buckets (even if bidirectional)",
                            (double)num_buckets);
    int64_t one_way = bidirectional ? num_buckets / 2 : num_buckets;
    int64_t exact = one_way / 2, logarithmic = one_way - exact;
    status = require_range(error, POSENC_ERR_PARAMETER, "max_distance", max_distance, exact + 1,
                           MAX_DISTANCE - 1);
    if (status)
        return status;
    for (int64_t i = 0; i < exact; i++)
        thresholds[i] = (int32_t)i;
    struct log_grid grid = posenc_log_grid_of(exact, max_distance, logarithmic);
    for (int64_t k = 0; k < logarithmic; k++)
        thresholds[exact + k] = (int32_t)posenc_log_grid_ceil(&grid, k);
    *buckets = (struct posenc_t5_buckets){ .num_buckets = num_buckets,
                                           .bidirectional = bidirectional,
                                           .thresholds = thresholds };
    return POSENC_OK;
}
