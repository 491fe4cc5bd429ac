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
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <stdlib.h>

static const float one = 1.0f; /* all of an add's x: the sum is a function of the bias */

static void law_distance(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, edit_x, &one);
    for (int64_t r = 0; out && r < p->heads * p->queries; r++)
        if (r % p->queries)
            require_same_bits(t, call_row(out, 0, r) + 1, call_row(out, 0, r - 1), p->keys - 1,
                              "one query and one key on");
}

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
static void law_slopes(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, NULL, NULL);
    for (int64_t h = 0; out && h < p->heads; h++) {
        const double want = -exp2(slope_log2[h]);
        const float got = call_row(out, 0, h * p->queries)[p->query_offset - 1];
        require_within(t, (double)got, want, -want * 0x1p-23,
                       "bias one key behind, minus the slope");
    }
}

/* Batches of 3 heads are those of a call with all of them; an add's x is 1 everywhere. */
static void law_by_batch(struct tally *t, const struct problem *of)
{
    struct problem batches = *of, heads = *of;
    batches.batch = 4;
    batches.heads = 3;
    heads.heads = 12;
    batches.slopes_by_batch = true;
    const struct call *want = tally_run(t, &heads, edit_x, &one),
                      *got = tally_run(t, &batches, edit_x, &one);
    for (int64_t r = 0; want && got && r < want->outputs[0].rows; r++)
        require_same_bits(t, call_row(got, 0, r), call_row(want, 0, r), of->keys,
                          "slopes by batch");
}

/* Causal: -infinity exactly after the query, finite up to it. */
static void law_causal(struct tally *t, const struct problem *p)
{
    const struct call *out = p->causal ? tally_run(t, p, NULL, NULL) : NULL;
    for (int64_t r = 0; out && r < out->outputs[0].rows; r++)
        for (int64_t j = 0; j < p->keys; j++) {
            const float got = call_row(out, 0, r)[j];
            require(t, ahead_of(p, r, j) > 0 ? got == -INFINITY : isfinite(got),
                    "query %lld key %lld is %.9g", (long long)(r % p->queries), (long long)j,
                    (double)got);
        }
}

const struct law laws_bias[] = {
    LAW("distance", law_distance, .problems = "biases"),
    BY_HAND("by-hand", alibi_by_hand, .problems = "biases", .field = "causal"),
    BY_HAND("by-hand", t5_by_hand, .problems = "biases", .field = "bidirectional"),
    BY_HAND("by-hand", value_by_hand, .problems = "biases", .field = "distances"),
    LAW("by-batch", law_by_batch, .problems = "biases", .field = "slopes_by_batch"),
    LAW("slopes", law_slopes),
    LAW("causal-mask", law_causal, .problems = "biases", .field = "causal"),
    { 0 },
};
