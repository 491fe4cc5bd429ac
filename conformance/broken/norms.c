/*
 * Mistakes in norms of heads, rope_qk_norm.
 */
#define _POSIX_C_SOURCE 200809L
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>

/* ---- Arguments ---- */

void each_head_alone(struct entered *e) { e->args.rope_qk_norm.across_heads = false; }
void weight_offset_ignored(struct entered *e) { e->args.rope_qk_norm.weight_offset = 0.0f; }
void weight_of_first_head(struct entered *e) { e->args.rope_qk_norm.weight.stride[0] = 0; }
void usual_epsilon(struct entered *e)
{
    float *epsilon = &e->args.rope_qk_norm.epsilon;
    *epsilon = *epsilon < 1e-6f ? 1e-6f : *epsilon;
}

/* ---- Heads ---- */

/* Sums of squares, by channel i in partial sum i % parts. */
static float sum_of(const float *x, int64_t n, int64_t parts)
{
    float sums[64] = { 0.0f };
    for (int64_t i = 0; i < n; i++)
        sums[i % parts] = fmaf(x[i], x[i], sums[i % parts]);
    for (int64_t half = parts / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; i++)
            sums[i] += sums[half + i];
    return sums[0];
}

static int64_t dim_of(const struct normed *n) { return n->args->out.shape[3]; }
static const float *row_of(const struct normed *n) { return n->token + n->head * dim_of(n); }

/* What the channels of a norm are the mean of, over a head or all. */
static float mean_of(const struct normed *n, int64_t parts)
{
    const int64_t heads = n->args->out.shape[2], dim = dim_of(n);
    float sum = 0.0f;
    if (!n->args->across_heads)
        return sum_of(row_of(n), dim, parts) / (float)dim;
    for (int64_t h = 0; h < heads; h++)
        sum += sum_of(n->token + h * dim, dim, parts);
    return sum / (float)(heads * dim);
}

static float root_of(const struct normed *n, float mean)
{
    return 1.0f / sqrtf(mean + n->args->epsilon);
}

static float weight_of(const struct normed *n, int64_t k)
{
    return n->weight[k] + n->args->weight_offset;
}

/* Channels a and b of `v` turned into those of `to`. */
static void turn(const struct normed *n, const float *v, float *to)
{
    const int64_t half = n->args->cos.shape[1], from = n->args->rotary_offset;
    for (int64_t i = 0; i < half; i++) {
        const float v0 = v[from + i], v1 = v[from + half + i];
        to[from + i] = fmaf(v0, n->cosines[i], -(v1 * n->sines[i]));
        to[from + half + i] = fmaf(v1, n->cosines[i], v0 * n->sines[i]);
    }
}

static void finish(const struct normed *n, const float *x, float scale)
{
    for (int64_t k = 0; k < dim_of(n); k++)
        n->out[k] = x[k] * scale * weight_of(n, k);
    turn(n, n->out, n->out);
}

/* ---- What is divided by ---- */

void epsilon_outside(const struct normed *n)
{
    finish(n, row_of(n), 1.0f / (sqrtf(mean_of(n, 64)) + n->args->epsilon));
}

void mean_of_turning(const struct normed *n)
{
    const int64_t turning = 2 * n->args->cos.shape[1];
    const float sum = sum_of(row_of(n) + n->args->rotary_offset, turning, 64);
    const bool all = n->args->across_heads || turning == dim_of(n);
    finish(n, row_of(n), root_of(n, all ? mean_of(n, 64) : sum / (float)turning));
}

void centred(const struct normed *n)
{
    const float *x = row_of(n);
    float mean = 0.0f, square = 0.0f;
    for (int64_t k = 0; k < dim_of(n); k++)
        mean += x[k] / (float)dim_of(n);
    for (int64_t k = 0; k < dim_of(n); k++) {
        n->out[k] = x[k] - mean;
        square = fmaf(n->out[k], n->out[k], square);
    }
    finish(n, n->out, root_of(n, square / (float)dim_of(n)));
}

void squares_in_type_of_x(const struct normed *n)
{
    float sum = 0.0f;
    for (int64_t k = 0; k < dim_of(n); k++)
        sum = round_to(n->stored, sum + round_to(n->stored, row_of(n)[k] * row_of(n)[k]));
    const bool wide = n->stored == POSENC_F32 || n->args->across_heads;
    finish(n, row_of(n), root_of(n, wide ? mean_of(n, 64) : sum / (float)dim_of(n)));
}

void one_partial_sum(const struct normed *n)
{
    finish(n, row_of(n), root_of(n, mean_of(n, 1)));
}

void estimated_root(const struct normed *n)
{
    finish(n, row_of(n), other_last_bit(root_of(n, mean_of(n, 64))));
}

void other_head_leaks(const struct normed *n)
{
    const int64_t heads = n->args->out.shape[2];
    const float leak = 0.0f * n->token[(n->head + 1) % heads * dim_of(n)];
    finish(n, row_of(n), root_of(n, mean_of(n, 64)) + leak);
}

/* ---- What becomes of the channels ---- */

void turned_first(const struct normed *n)
{
    const float scale = root_of(n, mean_of(n, 64)), *x = row_of(n);
    for (int64_t k = 0; k < dim_of(n); k++)
        n->out[k] = x[k] * scale;
    turn(n, n->out, n->out);
    for (int64_t k = 0; k < dim_of(n); k++)
        n->out[k] *= weight_of(n, k);
}

void others_copied(const struct normed *n)
{
    const int64_t from = n->args->rotary_offset, end = from + 2 * n->args->cos.shape[1];
    finish(n, row_of(n), root_of(n, mean_of(n, 64)));
    for (int64_t k = 0; k < dim_of(n); k++)
        if (k < from || k >= end)
            n->out[k] = row_of(n)[k];
}

void rounded_before_weight(const struct normed *n)
{
    const float scale = root_of(n, mean_of(n, 64)), *x = row_of(n);
    for (int64_t k = 0; k < dim_of(n); k++)
        n->out[k] = round_to(n->stored, x[k] * scale) * weight_of(n, k);
    turn(n, n->out, n->out);
}
