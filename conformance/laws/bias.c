/*
 * Laws of the biases, all to the bit: a bias is one product (ALiBi), one row of a table (T5) or
 * one value (by distance), so there is nothing to round twice.
 *
 *   distance   bias(i, j) depends on i + query_offset - j alone
 *   by-hand    the whole tensor: -slope * distance, -infinity after the query where causal; for
 *              T5 the row of a bucket found from thresholds written out here; the value of a
 *              distance
 *   by-batch   slopes by batch are those of as many heads
 *   slopes     the slopes of 8 and 12 heads as Press et al. 2108.12409 print them; each head
 *              its own
 */
#include "laws.h"

#include <math.h>
#include <stdlib.h>

/* ---- By hand ---- */

/* How far key j is after the query of row r. */
static int64_t ahead_of(const struct problem *p, int64_t r, int64_t j)
{
    return j - (r % p->queries + p->query_offset);
}

static float alibi_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t ahead = ahead_of(p, r, j);
    if (p->causal && ahead > 0)
        return -INFINITY;
    return 0.0f - inputs->slopes[r / p->queries] * (float)llabs(ahead);
}

/* First distance of each bucket of (32, 128): exact up to 8 (16), then by powers of 16^(1/8)
 * (8^(1/16)). */
static const int64_t thresholds_bi[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91
};
static const int64_t thresholds_uni[32] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                            11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                            35, 40, 46, 52, 59, 67, 77, 87, 99, 113 };

static float t5_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t ahead = ahead_of(p, r, j);
    const int64_t *thresholds = p->bidirectional ? thresholds_bi : thresholds_uni;
    int64_t n = p->bidirectional ? 16 : 32, distance = p->bidirectional ? llabs(ahead)
                                                       : ahead < 0      ? -ahead
                                                                        : 0;
    int64_t bucket = n - 1;
    while (thresholds[bucket] > distance)
        bucket--;
    if (p->bidirectional && ahead > 0)
        bucket += n;
    return inputs->table[bucket * p->heads + r / p->queries];
}

static float value_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t column = -ahead_of(p, r, j) - inputs->args.distance.first;
    return inputs->table[r / p->queries * inputs->columns + column];
}

/* ---- Slopes and masks ---- */

/* log2 of the slopes of 8 heads; of 12 heads the same, then every other one of 16. */
static const double slope_log2[12] = { -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5 };

/* One key behind the query the bias is -slope: to 1 ulp of the power of two. */
static void holds_slopes(struct tally *t, const struct call *out)
{
    for (int64_t h = 0; h < out->problem.heads; h++) {
        const double want = -exp2(slope_log2[h]);
        const float *row = call_row(out, 0, h * out->problem.queries);
        require_within(t, (double)row[out->problem.query_offset - 1], want, -want * 0x1p-23,
                       "bias one key behind, minus the slope");
    }
}

/* Causal: -infinity exactly after the query, finite up to it. */
static void holds_causal(struct tally *t, const struct call *out)
{
    const struct problem *p = &out->problem;
    for (EACH_ELEMENT(at, out))
        require(t,
                ahead_of(p, at.row, at.column) > 0 ? at.value == -INFINITY : isfinite(at.value),
                "query %lld key %lld is %.9g", (long long)(at.row % p->queries),
                (long long)at.column, (double)at.value);
}

/* An add's x is 1 everywhere: the sum is a function of the bias. */
const struct law laws_bias[] = {
    { "distance", .holds = holds_by_distance, .problems = "biases", .edit = edit_x,
      .user = &one },
    { "by-hand", .by_hand = alibi_by_hand, .problems = "biases", .field = "causal" },
    { "by-hand", .by_hand = t5_by_hand, .problems = "biases", .field = "bidirectional" },
    { "by-hand", .by_hand = value_by_hand, .problems = "biases", .field = "distances" },
    { "by-batch", .twin = "batch=1 heads=12 slopes_by_batch=false", .problems = "biases",
      .field = "slopes_by_batch", .with = "batch=4 heads=3 slopes_by_batch=true",
      .edit = edit_x, .user = &one },
    { "slopes", .holds = holds_slopes },
    { "causal-mask", .holds = holds_causal, .problems = "biases", .field = "causal",
      .with = "causal=true" },
    { 0 },
};
