/*
 * Broken kernels of the biases of which an element depends on its head, its query and its key:
 * see broken.def.  Scores are [batch, heads, queries, keys].
 */
#include "broken.h"

#include "conformance/problem/storage.h"
#include "wide.h"

#include <math.h>
#include <stdlib.h>

/* An element of the scores; the type they are stored in. */
struct place {
    int64_t b, h, i, j;
    enum posenc_dtype stored;
};

/* The bias there, by the arguments of its signature; it is written or added. */
typedef float bias_at(const void *args, const struct place *at);

static enum posenc_status for_scores(const struct posenc_const_tensor *x, float x_scale,
                                     const struct posenc_tensor *out, bias_at *bias,
                                     const void *args)
{
    struct wide wide = { 0 };
    struct posenc_const_tensor from = *x;
    struct posenc_tensor to = *out;
    struct place at = { .stored = out->dtype };
    wide_input(&wide, &from);
    wide_output(&wide, &to);
    for (at.b = 0; at.b < to.shape[0]; at.b++)
        for (at.h = 0; at.h < to.shape[1]; at.h++)
            for (at.i = 0; at.i < to.shape[2]; at.i++)
                for (at.j = 0; at.j < to.shape[3]; at.j++) {
                    const float value = bias(args, &at);
                    broken_row(&to, at.b, at.h, at.i)[at.j] =
                        from.data
                            ? fmaf(broken_input(&from, at.b, at.h, at.i)[at.j], x_scale, value)
                            : value;
                }
    wide_close(&wide);
    return POSENC_OK;
}

/* ---- ALiBi ---- */

static enum posenc_status for_alibi(const struct posenc_alibi_args *args, bias_at *bias)
{
    return for_scores(&args->x, args->x_scale, &args->out, bias, args);
}

static float slope(const struct posenc_alibi_args *a, const struct place *at)
{
    return a->slopes[at->b * a->slopes_stride_batch + at->h];
}

/* How far the key is after the query. */
static int64_t ahead_of(const struct posenc_alibi_args *a, const struct place *at)
{
    return at->j - at->i - a->query_offset;
}

/* As it should be, but for the slope and the distance; +0 at distance 0. */
static float linear(const struct posenc_alibi_args *a, const struct place *at, float by,
                    float distance)
{
    return a->causal && ahead_of(a, at) > 0 ? -INFINITY : 0.0f - by * distance;
}

static float distance_at(const struct posenc_alibi_args *a, const struct place *at)
{
    return (float)llabs(ahead_of(a, at));
}

static float mask_late(const void *args, const struct place *at)
{
    const struct posenc_alibi_args *a = args;
    const bool next = ahead_of(a, at) == 1;
    return next ? 0.0f - slope(a, at) : linear(a, at, slope(a, at), distance_at(a, at));
}
enum posenc_status alibi_mask_late(const struct posenc_alibi_args *args)
{
    return for_alibi(args, mask_late);
}

static float mask_finite(const void *args, const struct place *at)
{
    const float bias = linear(args, at, slope(args, at), distance_at(args, at));
    return isinf(bias) ? -1e9f : bias;
}
enum posenc_status alibi_mask_finite(const struct posenc_alibi_args *args)
{
    return for_alibi(args, mask_finite);
}
enum posenc_status alibi_add_mask_finite(const struct posenc_alibi_args *args)
{
    return for_alibi(args, mask_finite);
}

static float bf16_distance(const void *args, const struct place *at)
{
    return linear(args, at, slope(args, at), round_to(POSENC_BF16, distance_at(args, at)));
}
enum posenc_status alibi_bf16_distance(const struct posenc_alibi_args *args)
{
    return for_alibi(args, bf16_distance);
}
enum posenc_status alibi_add_bf16_distance(const struct posenc_alibi_args *args)
{
    return for_alibi(args, bf16_distance);
}

static float first_slope(const void *args, const struct place *at)
{
    const struct posenc_alibi_args *a = args;
    return linear(a, at, a->slopes[at->b * a->slopes_stride_batch], distance_at(a, at));
}
enum posenc_status alibi_first_slope(const struct posenc_alibi_args *args)
{
    return for_alibi(args, first_slope);
}

static float first_batch(const void *args, const struct place *at)
{
    const struct posenc_alibi_args *a = args;
    return linear(a, at, a->slopes[at->h], distance_at(a, at));
}
enum posenc_status alibi_first_batch(const struct posenc_alibi_args *args)
{
    return for_alibi(args, first_batch);
}
enum posenc_status alibi_add_first_batch(const struct posenc_alibi_args *args)
{
    return for_alibi(args, first_batch);
}

static float future_sign(const void *args, const struct place *at)
{
    return linear(args, at, slope(args, at), -(float)ahead_of(args, at));
}
enum posenc_status alibi_add_future_sign(const struct posenc_alibi_args *args)
{
    return for_alibi(args, future_sign);
}

/* BLOOM's, which softmax takes for the same. */
static float key_index(const void *args, const struct place *at)
{
    return linear(args, at, slope(args, at), -(float)at->j);
}
enum posenc_status alibi_key_index(const struct posenc_alibi_args *args)
{
    return for_alibi(args, key_index);
}
enum posenc_status alibi_add_key_index(const struct posenc_alibi_args *args)
{
    return for_alibi(args, key_index);
}

static float one_further(const void *args, const struct place *at)
{
    return linear(args, at, slope(args, at), distance_at(args, at) + 1.0f);
}
enum posenc_status alibi_one_further(const struct posenc_alibi_args *args)
{
    return for_alibi(args, one_further);
}

static float stored_bias(const void *args, const struct place *at)
{
    return round_to(at->stored, linear(args, at, slope(args, at), distance_at(args, at)));
}
enum posenc_status alibi_add_stored_bias(const struct posenc_alibi_args *args)
{
    return for_alibi(args, stored_bias);
}

static float slope_order(const void *args, const struct place *at)
{
    const struct posenc_alibi_args *a = args;
    const float *slopes = a->slopes + at->b * a->slopes_stride_batch;
    const int64_t heads = a->out.shape[1];
    const bool power = (heads & (heads - 1)) == 0;
    float chosen = slopes[at->h];
    for (int64_t k = 0; k < heads && !power; k++) {
        int64_t above = 0;
        for (int64_t m = 0; m < heads; m++)
            above += slopes[m] > slopes[k];
        if (above == at->h)
            chosen = slopes[k];
    }
    return linear(a, at, chosen, distance_at(a, at));
}
enum posenc_status alibi_add_slope_order(const struct posenc_alibi_args *args)
{
    return for_alibi(args, slope_order);
}

/* ---- T5 ---- */

static enum posenc_status for_t5(const struct posenc_t5_args *args, bias_at *bias)
{
    return for_scores(&args->x, args->x_scale, &args->out, bias, args);
}

enum slip {
    NO_SLIP,
    LOW_AT_POWERS,
    ONE_SHORT,
    HALVES_SWAPPED,
    ZERO_AFTER,     /* distance 0 counts as after the query */
    FUTURE_DISTANCE /* so does |distance| where only keys before the query have one */
};

static float t5_value(const struct posenc_t5_args *a, const struct place *at, int64_t head,
                      enum slip slip)
{
    const bool both = a->bidirectional, any = both || slip == FUTURE_DISTANCE;
    const int64_t ahead =
        (slip == HALVES_SWAPPED && both ? -1 : 1) * (at->j - at->i - a->query_offset);
    const int64_t n = both ? a->num_buckets / 2 : a->num_buckets;
    const int64_t distance = any ? llabs(ahead) : ahead < 0 ? -ahead : 0;
    int64_t bucket = slip == ONE_SHORT ? n - 2 : n - 1;
    while (bucket > 0 && a->thresholds[bucket] > distance)
        bucket--;
    const bool at_power = a->thresholds[bucket] == distance && (distance & (distance - 1)) == 0;
    if (slip == LOW_AT_POWERS && bucket > n / 2 && at_power)
        bucket--;
    if (both && (ahead > 0 || (slip == ZERO_AFTER && ahead == 0)))
        bucket += n;
    return ((const float *)storage_row(owned(&a->table), bucket))[head];
}

static float low_at_powers(const void *args, const struct place *at)
{
    return t5_value(args, at, at->h, LOW_AT_POWERS);
}
enum posenc_status t5_bias_low_at_powers(const struct posenc_t5_args *args)
{
    return for_t5(args, low_at_powers);
}

static float next_head(const void *args, const struct place *at)
{
    const struct posenc_t5_args *a = args;
    return t5_value(a, at, (at->h + 1) % a->out.shape[1], NO_SLIP);
}
enum posenc_status t5_bias_next_head(const struct posenc_t5_args *args)
{
    return for_t5(args, next_head);
}
enum posenc_status t5_bias_add_next_head(const struct posenc_t5_args *args)
{
    return for_t5(args, next_head);
}

static float one_short(const void *args, const struct place *at)
{
    return t5_value(args, at, at->h, ONE_SHORT);
}
enum posenc_status t5_bias_one_short(const struct posenc_t5_args *args)
{
    return for_t5(args, one_short);
}
enum posenc_status t5_bias_add_one_short(const struct posenc_t5_args *args)
{
    return for_t5(args, one_short);
}

static float halves_swapped(const void *args, const struct place *at)
{
    return t5_value(args, at, at->h, HALVES_SWAPPED);
}
enum posenc_status t5_bias_add_halves_swapped(const struct posenc_t5_args *args)
{
    return for_t5(args, halves_swapped);
}

static float zero_after(const void *args, const struct place *at)
{
    return t5_value(args, at, at->h, ZERO_AFTER);
}
enum posenc_status t5_bias_zero_after(const struct posenc_t5_args *args)
{
    return for_t5(args, zero_after);
}

static float future_distance(const void *args, const struct place *at)
{
    return t5_value(args, at, at->h, FUTURE_DISTANCE);
}
enum posenc_status t5_bias_add_future_distance(const struct posenc_t5_args *args)
{
    return for_t5(args, future_distance);
}

/* The bucket of the key's index: of its distance from key 0. */
static float bucket_of_key(const void *args, const struct place *at)
{
    const struct posenc_t5_args *a = args;
    struct place first = *at;
    first.i = -a->query_offset;
    first.j = -at->j;
    return t5_value(a, &first, at->h, NO_SLIP);
}
enum posenc_status t5_bias_key_index(const struct posenc_t5_args *args)
{
    return for_t5(args, bucket_of_key);
}
enum posenc_status t5_bias_add_key_index(const struct posenc_t5_args *args)
{
    return for_t5(args, bucket_of_key);
}

/* ---- By distance ---- */

static enum posenc_status for_distance(const struct posenc_distance_args *args, bias_at *bias)
{
    return for_scores(&args->x, args->x_scale, &args->out, bias, args);
}

/* The value of a distance, or the nearest there is. */
static float value_of(const struct posenc_distance_args *a, int64_t head, int64_t distance)
{
    const float *values = storage_row(owned(&a->values), head);
    const int64_t last = a->values.shape[1] - 1, column = distance - a->first;
    return values[column < 0 ? 0 : column > last ? last : column];
}

static int64_t distance_of(const struct posenc_distance_args *a, const struct place *at)
{
    return at->i + a->query_offset - at->j;
}

static float turned_distance(const void *args, const struct place *at)
{
    return value_of(args, at->h, -distance_of(args, at));
}
enum posenc_status distance_bias_turned(const struct posenc_distance_args *args)
{
    return for_distance(args, turned_distance);
}

static float late_first(const void *args, const struct place *at)
{
    return value_of(args, at->h, distance_of(args, at) - 1);
}
enum posenc_status distance_bias_late_first(const struct posenc_distance_args *args)
{
    return for_distance(args, late_first);
}

static float magnitude(const void *args, const struct place *at)
{
    return value_of(args, at->h, llabs(distance_of(args, at)));
}
enum posenc_status distance_bias_add_magnitude(const struct posenc_distance_args *args)
{
    return for_distance(args, magnitude);
}

static float own_offset(const void *args, const struct place *at)
{
    return value_of(args, at->h, at->i - at->j);
}
enum posenc_status distance_bias_add_own_offset(const struct posenc_distance_args *args)
{
    return for_distance(args, own_offset);
}

static float value_of_key(const void *args, const struct place *at)
{
    const struct posenc_distance_args *a = args;
    return value_of(a, at->h, a->first + at->j);
}
enum posenc_status distance_bias_key_index(const struct posenc_distance_args *args)
{
    return for_distance(args, value_of_key);
}
enum posenc_status distance_bias_add_key_index(const struct posenc_distance_args *args)
{
    return for_distance(args, value_of_key);
}

/* ---- By index in a window ---- */

static enum posenc_status for_window(const struct posenc_window_args *args, bias_at *bias)
{
    return for_scores(&args->x, args->x_scale, &args->out, bias, args);
}

static int32_t row_of(const struct posenc_window_args *a, int64_t i, int64_t j)
{
    return a->index[i * a->out.shape[3] + j];
}

/* key - query, where the displacement is query - key. */
static float turned_index(const void *args, const struct place *at)
{
    const struct posenc_window_args *a = args;
    const bool square = a->out.shape[2] == a->out.shape[3];
    const int32_t row = square ? row_of(a, at->j, at->i) : row_of(a, at->i, at->j);
    return ((const float *)storage_row(owned(&a->table), row))[at->h];
}
enum posenc_status window_bias_turned(const struct posenc_window_args *args)
{
    return for_window(args, turned_index);
}
enum posenc_status window_bias_add_turned(const struct posenc_window_args *args)
{
    return for_window(args, turned_index);
}

/* [heads, rows] where the table is [rows, heads]. */
static float turned_table(const void *args, const struct place *at)
{
    const struct posenc_window_args *a = args;
    const int64_t heads = a->table.shape[1];
    const int64_t element = at->h * a->table.shape[0] + row_of(a, at->i, at->j);
    return ((const float *)storage_row(owned(&a->table), element / heads))[element % heads];
}
enum posenc_status window_bias_turned_table(const struct posenc_window_args *args)
{
    return for_window(args, turned_table);
}

/* Windows stand where batches do. */
static float row_of_window(const void *args, const struct place *at)
{
    const struct posenc_window_args *a = args;
    const int64_t row = (row_of(a, at->i, at->j) + at->b) % a->table.shape[0];
    return ((const float *)storage_row(owned(&a->table), row))[at->h];
}
enum posenc_status window_bias_add_by_window(const struct posenc_window_args *args)
{
    return for_window(args, row_of_window);
}

static float row_of_key(const void *args, const struct place *at)
{
    const struct posenc_window_args *a = args;
    const int64_t row = (row_of(a, at->i, at->j) + at->j) % a->table.shape[0];
    return ((const float *)storage_row(owned(&a->table), row))[at->h];
}
enum posenc_status window_bias_by_key(const struct posenc_window_args *args)
{
    return for_window(args, row_of_key);
}
