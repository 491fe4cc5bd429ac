/*
 * Laws of the biases, all to the bit: a bias is one product (ALiBi), one row of a table (T5, by
 * index in a window) or one value (by distance), so there is nothing to round twice.
 *
 *   distance   bias(i, j) depends on i + query_offset - j alone
 *   by-hand    the whole tensor: -slope * distance, -infinity after the query where causal; for
 *              T5 the row of a bucket found from thresholds written out here; the value of a
 *              distance
 *   by-batch   slopes by batch are those of as many heads
 *   slopes     the slopes of 8 and 12 heads as Press et al. 2108.12409 print them; each head
 *              its own
 *   own-thresholds   T5's of a caller's own, whose nearer buckets need not hold one distance each
 *
 * Of windows, by the row of the table for each query and key:
 *
 *   displacement   without a class token two pairs with the same displacement have the same bias;
 *                  of a pair turned round the index is mirrored
 *   class-token    queries that are not the class token give it all the same bias
 *   any-index      queries and keys that are no window, an index in no order
 *   published      Swin's index of a window of 2 by 2
 *
 * Liu et al. 2103.14030; Bao et al. 2106.08254 with Hugging Face modeling_beit.py.
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

/* ---- Windows ---- */

static int64_t row_of(const struct problem *p, int64_t query, int64_t key)
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

static float in_row(const struct call *inputs, int64_t r, int64_t row)
{
    const struct problem *p = &inputs->problem;
    return inputs->table[row * p->heads + r / p->queries % p->heads];
}

static float window_by_hand(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    return in_row(inputs, r, row_of(p, r % p->queries, j));
}

static float two_by_two(const struct call *inputs, int64_t r, int64_t j)
{
    static const int64_t printed[4][4] = {
        { 4, 3, 1, 0 }, { 5, 4, 2, 1 }, { 7, 6, 4, 3 }, { 8, 7, 5, 4 }
    };
    return in_row(inputs, r, printed[r % 4][j]);
}

/* Of each pair of tokens, and of the two one to the right, or one down; indices, and of the pair
 * turned round. */
static void holds_displacement(struct tally *t, const struct call *out)
{
    const struct problem *p = &out->problem;
    const int32_t *index = out->args.window.index;
    const int64_t w = p->window_width, n = p->keys;
    for (EACH_ELEMENT(at, out)) {
        const int64_t i = at.row % n, j = at.column;
        if (i % w + 1 < w && j % w + 1 < w)
            require_element(t, &at, call_row(out, 0, at.row + 1)[j + 1], "one to the right");
        if (i + w < n && j + w < n)
            require_element(t, &at, call_row(out, 0, at.row + w)[j + w], "one row down");
        require(t, index[i * n + j] + index[j * n + i] == problem_extent(p, DIM_ROW) - 1,
                "indices of %lld, %lld and of the pair turned round", (long long)i,
                (long long)j);
    }
}

static void holds_class_token(struct tally *t, const struct call *out)
{
    const int64_t n = out->problem.queries;
    for (EACH_ELEMENT(at, out)) {
        const int64_t i = at.row % n, head = at.row - i;
        const float *row = call_row(out, 0, head),
                    *next = n > 1 ? call_row(out, 0, head + 1) : row;
        if (i == 0 && at.column > 0)
            require_element(t, &at, row[1], "another key of the class token");
        if (i > 0 && at.column == 0)
            require_element(t, &at, next[0], "another query that meets the class token");
        require(t, n < 2 || (row[0] != row[1] && row[1] != next[0]),
                "the three rows of the class token are not apart");
    }
}

/* ---- Any index ---- */

/* At most so many places of an index. */
enum { ANY_PLACES = 33000, ANY_ROWS = 100, ANY_HEADS = 3 };

static void check_any_index(struct tally *t, const struct problem *p, int64_t queries,
                            int64_t keys)
{
    static int32_t index[ANY_PLACES];
    static float table[ANY_ROWS * ANY_HEADS], x[ANY_HEADS * ANY_PLACES],
        out[ANY_HEADS * ANY_PLACES];
    const bool add = kernel_takes_x(p->kernel);
    const int64_t places = queries * keys;
    struct call call = { .problem = *p, .implementation = t->run->implementation };
    struct posenc_window_args *args = &call.args.window;
    for (int i = 0; i < places; i++)
        index[i] = (int32_t)(mix64(3, (uint64_t)i) % ANY_ROWS);
    for (int i = 0; i < ANY_ROWS * ANY_HEADS; i++)
        table[i] = (float)i + 0.25f;
    for (int i = 0; i < ANY_HEADS * places; i++)
        x[i] = add ? (float)(i % 1000) : 0.0f;
    *args = posenc_window_args_init();
    args->index = index;
    args->table = posenc_const_dense(table, 2, ANY_ROWS, ANY_HEADS, 0, 0);
    args->out = posenc_dense(out, 3, ANY_HEADS, queries, keys, 0);
    if (add)
        args->x = posenc_const_dense(x, 3, ANY_HEADS, queries, keys, 0);
    struct guarded g = guarded_run(&call, t->run->backend, NULL);
    const bool clean = require_clean(t, &g);
    for (int i = 0; clean && i < ANY_HEADS * places; i++) {
        const float want = table[index[i % places] * ANY_HEADS + i / places] + x[i];
        require_same_bits(t, &out[i], &want, 1, "bias by any index");
    }
}

/* Two queries and more keys than kernels take at once; more queries than 16 bits count. */
static void law_any_index(struct tally *t, const struct problem *p)
{
    check_any_index(t, p, 2, 4200);
    check_any_index(t, p, ANY_PLACES, 1);
}

/* ---- Own thresholds ---- */

enum { OWN_BUCKETS = 8, OWN_HEADS = 5, OWN_QUERIES = 3, OWN_KEYS = 61, OWN_OFFSET = 40 };

static int64_t own_bucket(const int32_t *thresholds, bool bidirectional, int64_t ahead)
{
    const int64_t n = bidirectional ? OWN_BUCKETS / 2 : OWN_BUCKETS;
    const int64_t distance = bidirectional ? llabs(ahead) : ahead < 0 ? -ahead : 0;
    int64_t bucket = n - 1;
    while (thresholds[bucket] > distance)
        bucket--;
    return bidirectional && ahead > 0 ? bucket + n : bucket;
}

static void check_own_thresholds(struct tally *t, const struct problem *p,
                                 const int32_t *thresholds, int64_t queries)
{
    static float table[OWN_BUCKETS * OWN_HEADS], x[OWN_HEADS * OWN_QUERIES * OWN_KEYS],
        out[OWN_HEADS * OWN_QUERIES * OWN_KEYS];
    const bool add = kernel_takes_x(p->kernel);
    struct call call = { .problem = *p, .implementation = t->run->implementation };
    struct posenc_t5_args *args = &call.args.t5;
    for (int i = 0; i < OWN_BUCKETS * OWN_HEADS; i++)
        table[i] = (float)i + 0.25f;
    for (int i = 0; i < OWN_HEADS * OWN_QUERIES * OWN_KEYS; i++)
        x[i] = add ? (float)(i % 1000) : 0.0f;
    *args = posenc_t5_args_init();
    args->num_buckets = OWN_BUCKETS;
    args->bidirectional = p->bidirectional;
    args->thresholds = thresholds;
    args->query_offset = OWN_OFFSET;
    args->table = posenc_const_dense(table, 2, OWN_BUCKETS, OWN_HEADS, 0, 0);
    args->out = posenc_dense(out, 3, OWN_HEADS, queries, OWN_KEYS, 0);
    if (add)
        args->x = posenc_const_dense(x, 3, OWN_HEADS, queries, OWN_KEYS, 0);
    struct guarded g = guarded_run(&call, t->run->backend, NULL);
    const bool clean = require_clean(t, &g);
    for (int64_t i = 0; clean && i < OWN_HEADS * queries * OWN_KEYS; i++) {
        const int64_t row = i / OWN_KEYS, ahead = i % OWN_KEYS - OWN_OFFSET - row % queries;
        const int64_t bucket = own_bucket(thresholds, p->bidirectional, ahead);
        const float want = table[bucket * OWN_HEADS + row / queries] + x[i];
        require_same_bits(t, &out[i], &want, 1, "bias by own thresholds");
    }
}

static void law_own_thresholds(struct tally *t, const struct problem *p)
{
    static const int32_t own[][OWN_BUCKETS] = { { 0, 3, 4, 5, 6, 20, 21, 40 },
                                                { 0, 1, 2, 3, 9, 9, 20, 33 },
                                                { 0, 1, 3, 3, 4, 30, 30, 30 },
                                                { 0, 1, 2, 3, 4, 5, 6, 7 },
                                                { 0, 2, 2, 7, 50, 60, 70, 80 } };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        check_own_thresholds(t, p, own[i], 1);
        check_own_thresholds(t, p, own[i], OWN_QUERIES);
    }
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
    { "window-by-hand", .by_hand = window_by_hand, .problems = "windows" },
    { "displacement", .holds = holds_displacement },
    { "class-token", .holds = holds_class_token },
    { "any-index", .check = law_any_index, .problems = "any-index-in-window" },
    { "published", .by_hand = two_by_two },
    { "own-thresholds", .check = law_own_thresholds },
    { 0 },
};
