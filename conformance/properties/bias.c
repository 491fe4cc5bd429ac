/*
 * Properties of the biases, all to the bit: a bias is one product (ALiBi), one row of a table (T5, by
 * index in a window) or one value (by distance), so there is nothing to round twice.
 *
 *   distance         bias(i, j) depends on i + query_offset - j alone
 *   by-hand          T5: the row of a bucket, found from thresholds that are written here
 *   by-batch         4 batches of 3 slopes give the bits of 12 heads
 *   slopes           slopes of 8 and 12 heads are those that Press et al. 2108.12409 print
 *   window-by-hand   the row of a window's table for each query and key, with the class token
 *
 * Liu et al. 2103.14030; Bao et al. 2106.08254 with Hugging Face modeling_beit.py.
 */
#include "properties.h"

#include <math.h>
#include <stdlib.h>

/* ---- By hand ---- */

/* Returns the distance from the query of row r to key j. */
static int64_t distance_to_key(const struct problem *p, int64_t r, int64_t j)
{
    return j - (r % p->queries + p->query_offset);
}

/* First distance of each of 32 buckets up to 128: exact up to 8 (16 if unidirectional), then by powers
 * of 16^(1/8) (8^(1/16)). */
static const int64_t thresholds_bi[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91
};
static const int64_t thresholds_uni[32] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                            11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                            35, 40, 46, 52, 59, 67, 77, 87, 99, 113 };

static float t5_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t ahead = distance_to_key(p, r, j);
    const int64_t *thresholds = p->bidirectional ? thresholds_bi : thresholds_uni;
    const int64_t n = p->bidirectional ? 16 : 32, behind = ahead < 0 ? -ahead : 0;
    const int64_t distance = p->bidirectional ? llabs(ahead) : behind;
    int64_t bucket = n - 1;
    while (thresholds[bucket] > distance)
        bucket--;
    if (p->bidirectional && ahead > 0)
        bucket += n;
    return inputs->table[bucket * p->heads + r / p->queries];
}

/* ---- Slopes ---- */

/* log2 of the slopes of 8 heads. 12 heads have the same, then every other one of 16 heads. */
static const double slope_log2[12] = { -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5 };

/* One key behind the query, the bias is -slope, within 1 ulp of the power of two. */
static void holds_slopes(struct tally *t, const struct call *out)
{
    for (int64_t h = 0; h < out->problem.heads; h++) {
        const double want = -exp2(slope_log2[h]);
        const float *row = call_row(out, 0, h * out->problem.queries);
        require_within(t, (double)row[out->problem.query_offset - 1], want, -want * 0x1p-23,
                       "bias one key behind, minus the slope");
    }
}

/* ---- Windows ---- */

static int64_t window_row(const struct problem *p, int64_t query, int64_t key)
{
    const int64_t w = p->window_width, across = 2 * w - 1;
    const int64_t displacements = (2 * p->window_height - 1) * across;
    if (p->window_class && query == 0)
        return displacements + (key == 0 ? 2 : 0);
    if (p->window_class && key == 0)
        return displacements + 1;
    const int64_t q = query - p->window_class, k = key - p->window_class;
    const int64_t down = q / w - k / w, right = q % w - k % w;
    const int64_t middle = (p->window_height - 1) * across + w - 1; /* of no displacement */
    return middle + down * across + right;
}

static float window_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t row = window_row(p, r % p->queries, j);
    return inputs->table[row * p->heads + r / p->queries % p->heads];
}

/* An add has an x of 1 everywhere, so that the sum is a function of the bias. */
const struct property properties_bias[] = {
    { "distance", .holds = holds_by_distance, .problems = "biases", .edit = edit_x,
      .user = &plus_one },
    { "by-hand", .by_hand = t5_by_hand, .problems = "biases", .field = "bidirectional" },
    { "by-batch", .twin = "batch=1 heads=12 slopes_by_batch=false", .problems = "biases",
      .field = "slopes_by_batch", .with = "batch=4 heads=3 slopes_by_batch=true",
      .edit = edit_x, .user = &plus_one },
    { "slopes", .holds = holds_slopes },
    { "window-by-hand", .by_hand = window_by_hand, .problems = "windows" },
    { 0 },
};
