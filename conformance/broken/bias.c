/*
 * Broken kernels of the biases: see broken.def.  Scores are [batch, heads, queries, keys].
 */
#include "broken.h"

#include <math.h>
#include <stdlib.h>

/* One element of a bias, which these kernels write or add. */
typedef float alibi_bias(const struct posenc_alibi_args *a, int64_t h, int64_t ahead);
typedef float t5_bias(const struct posenc_t5_args *a, int64_t h, int64_t ahead);

static void for_alibi(const struct posenc_alibi_args *a, alibi_bias *bias)
{
    for (int64_t b = 0; b < a->out.shape[0]; b++)
        for (int64_t h = 0; h < a->out.shape[1]; h++)
            for (int64_t i = 0; i < a->out.shape[2]; i++)
                for (int64_t j = 0; j < a->out.shape[3]; j++) {
                    float value = bias(a, h, j - i - a->query_offset);
                    broken_row(&a->out, b, h, i)[j] =
                        a->x.data ? fmaf(broken_row(&a->x, b, h, i)[j], a->x_scale, value)
                                  : value;
                }
}

static void for_t5(const struct posenc_t5_args *a, t5_bias *bias)
{
    for (int64_t b = 0; b < a->out.shape[0]; b++)
        for (int64_t h = 0; h < a->out.shape[1]; h++)
            for (int64_t i = 0; i < a->out.shape[2]; i++)
                for (int64_t j = 0; j < a->out.shape[3]; j++) {
                    float value = bias(a, h, j - i - a->query_offset);
                    broken_row(&a->out, b, h, i)[j] =
                        a->x.data ? fmaf(broken_row(&a->x, b, h, i)[j], a->x_scale, value)
                                  : value;
                }
}

/* ---- ALiBi ---- */

static float mask_late(const struct posenc_alibi_args *a, int64_t h, int64_t ahead)
{
    return a->causal && ahead > 1 ? -INFINITY : -a->slopes[h] * (float)llabs(ahead);
}
enum posenc_status alibi_mask_late(const struct posenc_alibi_args *args)
{
    for_alibi(args, mask_late);
    return POSENC_OK;
}

static float mask_finite(const struct posenc_alibi_args *a, int64_t h, int64_t ahead)
{
    return a->causal && ahead > 0 ? -1e9f : -a->slopes[h] * (float)llabs(ahead);
}
enum posenc_status alibi_mask_finite(const struct posenc_alibi_args *args)
{
    for_alibi(args, mask_finite);
    return POSENC_OK;
}
enum posenc_status alibi_add_mask_finite(const struct posenc_alibi_args *args)
{
    for_alibi(args, mask_finite);
    return POSENC_OK;
}

static float bf16_distance(const struct posenc_alibi_args *a, int64_t h, int64_t ahead)
{
    return a->causal && ahead > 0 ? -INFINITY
                                  : -a->slopes[h] * broken_bf16((float)llabs(ahead));
}
enum posenc_status alibi_bf16_distance(const struct posenc_alibi_args *args)
{
    for_alibi(args, bf16_distance);
    return POSENC_OK;
}
enum posenc_status alibi_add_bf16_distance(const struct posenc_alibi_args *args)
{
    for_alibi(args, bf16_distance);
    return POSENC_OK;
}

static float first_slope(const struct posenc_alibi_args *a, int64_t h, int64_t ahead)
{
    (void)h;
    return a->causal && ahead > 0 ? -INFINITY : -a->slopes[0] * (float)llabs(ahead);
}
enum posenc_status alibi_first_slope(const struct posenc_alibi_args *args)
{
    for_alibi(args, first_slope);
    return POSENC_OK;
}

static float future_sign(const struct posenc_alibi_args *a, int64_t h, int64_t ahead)
{
    return a->causal && ahead > 0 ? -INFINITY : a->slopes[h] * (float)ahead;
}
enum posenc_status alibi_add_future_sign(const struct posenc_alibi_args *args)
{
    for_alibi(args, future_sign);
    return POSENC_OK;
}

static float slope_order(const struct posenc_alibi_args *a, int64_t h, int64_t ahead)
{
    int64_t heads = a->out.shape[1];
    bool power = (heads & (heads - 1)) == 0;
    float slope = a->slopes[h];
    for (int64_t k = 0; k < heads && !power; k++) {
        int64_t above = 0;
        for (int64_t m = 0; m < heads; m++)
            above += a->slopes[m] > a->slopes[k];
        if (above == h)
            slope = a->slopes[k];
    }
    return a->causal && ahead > 0 ? -INFINITY : -slope * (float)llabs(ahead);
}
enum posenc_status alibi_add_slope_order(const struct posenc_alibi_args *args)
{
    for_alibi(args, slope_order);
    return POSENC_OK;
}

/* ---- T5 ---- */

enum slip { NO_SLIP, LOW_AT_POWERS, ONE_SHORT };

static float t5_value(const struct posenc_t5_args *a, int64_t h, int64_t ahead, enum slip slip)
{
    int64_t n = a->bidirectional ? a->num_buckets / 2 : a->num_buckets;
    int64_t distance = a->bidirectional ? llabs(ahead) : ahead < 0 ? -ahead : 0;
    int64_t bucket = slip == ONE_SHORT ? n - 2 : n - 1;
    while (bucket > 0 && a->thresholds[bucket] > distance)
        bucket--;
    bool at_power = a->thresholds[bucket] == distance && (distance & (distance - 1)) == 0;
    if (slip == LOW_AT_POWERS && bucket > n / 2 && at_power)
        bucket--;
    if (a->bidirectional && ahead > 0)
        bucket += n;
    return ((const float *)a->table.data)[bucket * a->table.stride[0] + h];
}

static float low_at_powers(const struct posenc_t5_args *a, int64_t h, int64_t ahead)
{
    return t5_value(a, h, ahead, LOW_AT_POWERS);
}
enum posenc_status t5_bias_low_at_powers(const struct posenc_t5_args *args)
{
    for_t5(args, low_at_powers);
    return POSENC_OK;
}

static float next_head(const struct posenc_t5_args *a, int64_t h, int64_t ahead)
{
    return t5_value(a, (h + 1) % a->out.shape[1], ahead, NO_SLIP);
}
enum posenc_status t5_bias_next_head(const struct posenc_t5_args *args)
{
    for_t5(args, next_head);
    return POSENC_OK;
}
enum posenc_status t5_bias_add_next_head(const struct posenc_t5_args *args)
{
    for_t5(args, next_head);
    return POSENC_OK;
}

static float one_short(const struct posenc_t5_args *a, int64_t h, int64_t ahead)
{
    return t5_value(a, h, ahead, ONE_SHORT);
}
enum posenc_status t5_bias_one_short(const struct posenc_t5_args *args)
{
    for_t5(args, one_short);
    return POSENC_OK;
}
enum posenc_status t5_bias_add_one_short(const struct posenc_t5_args *args)
{
    for_t5(args, one_short);
    return POSENC_OK;
}

static float halves_swapped(const struct posenc_t5_args *a, int64_t h, int64_t ahead)
{
    return t5_value(a, h, a->bidirectional ? -ahead : ahead, NO_SLIP);
}
enum posenc_status t5_bias_add_halves_swapped(const struct posenc_t5_args *args)
{
    for_t5(args, halves_swapped);
    return POSENC_OK;
}
