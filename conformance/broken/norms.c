/*
 * A plain loop in place of rope_qk_norm, with the slips that somebody may make in it: a head is
 * divided by the root of the mean of its squares, weighted and turned.
 */
#include "mistake.h"

#include "conformance/problem/storage.h"

#include <math.h>
#include <string.h>

/* The head that is being normalised and turned, and its token, whose heads it may depend on. */
struct normed {
    const struct posenc_rope_qk_norm_args *args;
    enum posenc_dtype stored;
    int64_t heads, head, dim; /* head: which of them */
    int64_t from, half;       /* the first channel that turns; how many pairs do */
    float *token;             /* [heads, dim], a copy of x */
    const float *cosines, *sines;
};

/* In the order that posenc.h promises: channel i to partial sum i % 64, then half onto half. */
static float sum_of_squares(const struct normed *n, const float *x, int64_t channels)
{
    const int64_t parts = SLIP(one_partial_sum) ? 1 : 64;
    const bool narrow = SLIP(squares_in_type_of_x) && n->stored != POSENC_F32;
    float sums[64] = { 0.0f };
    for (int64_t i = 0; i < channels; i++) {
        float *sum = &sums[narrow ? 0 : i % parts];
        *sum = narrow ? storage_round(n->stored, *sum + storage_round(n->stored, x[i] * x[i]))
                      : fmaf(x[i], x[i], *sum);
    }
    for (int64_t half = parts / 2; half > 0; half /= 2)
        for (int64_t i = 0; i < half; i++)
            sums[i] += sums[half + i];
    return sums[0];
}

/* What the head is multiplied by: 1 / root of its mean square, or of that of all heads. */
static float scale_of(const struct normed *n)
{
    const bool across = n->args->across_heads, turning = SLIP(mean_of_turning) && !across;
    const int64_t first = across ? 0 : n->head, heads = across ? n->heads : 1;
    const int64_t channels = turning ? 2 * n->half : n->dim;
    const float leak = n->token[(n->head + 1) % n->heads * n->dim];
    float sum = 0.0f;
    for (int64_t h = first; h < first + heads; h++)
        sum += sum_of_squares(n, n->token + h * n->dim + (turning ? n->from : 0), channels);
    const float mean = sum / (float)(heads * channels), epsilon = n->args->epsilon;
    const float scale =
        SLIP(epsilon_outside) ? 1.0f / (sqrtf(mean) + epsilon) : 1.0f / sqrtf(mean + epsilon);
    return SLIP(estimated_root)     ? other_last_bit(scale)
           : SLIP(other_head_leaks) ? scale + 0.0f * leak
                                    : scale;
}

static void turn(const struct normed *n, float *out)
{
    for (int64_t i = 0, a = n->from, b = n->from + n->half; i < n->half; i++, a++, b++) {
        const float x0 = out[a], x1 = out[b];
        out[a] = fmaf(x0, n->cosines[i], -(x1 * n->sines[i]));
        out[b] = fmaf(x1, n->cosines[i], x0 * n->sines[i]);
    }
}

static void normalise(const struct normed *n, float *out)
{
    const struct posenc_const_tensor *w = &n->args->weight;
    const float *weight = (const float *)w->data + n->head * w->stride[0];
    const float *x = n->token + n->head * n->dim, scale = scale_of(n);
    for (int64_t k = 0; k < n->dim; k++) {
        out[k] = x[k] * scale;
        if (SLIP(rounded_before_weight))
            out[k] = storage_round(n->stored, out[k]);
        if (!SLIP(turned_first))
            out[k] *= weight[k] + n->args->weight_offset;
    }
    turn(n, out);
    for (int64_t k = 0; k < n->dim; k++) {
        if (SLIP(turned_first))
            out[k] *= weight[k] + n->args->weight_offset;
        if (SLIP(others_copied) && (k < n->from || k >= n->from + 2 * n->half))
            out[k] = x[k];
    }
}

/* Subtracts the mean, as a layer norm does. */
static void centre(float *x, int64_t n)
{
    float mean = 0.0f;
    for (int64_t k = 0; k < n; k++)
        mean += x[k] / (float)n;
    for (int64_t k = 0; k < n; k++)
        x[k] -= mean;
}

/* A token is copied before any of it is written: out may be x, and a head may need others. */
void enter_norm(struct entered *e)
{
    in_f32_open(e);
    const struct posenc_rope_qk_norm_args *a = &e->args.rope_qk_norm;
    const int64_t *shape = a->out.shape, heads = shape[2], dim = shape[3];
    struct normed n = { .args = a, .stored = e->stored, .heads = heads, .dim = dim };
    n.from = a->rotary_offset;
    n.half = a->cos.shape[1];
    n.token = enter_keep(e, heads * dim, sizeof *n.token);
    for (int64_t k = 0; k < shape[0] * shape[1]; k++) {
        const int64_t b = k / shape[1], t = k % shape[1];
        const int64_t row = (int64_t)position_on(&a->positions, b, t, 0);
        n.cosines = storage_row(input_as_writable(&a->cos), row);
        n.sines = storage_row(input_as_writable(&a->sin), row);
        for (int64_t h = 0; h < heads; h++) {
            memcpy(n.token + h * dim, row_at(input_as_writable(&a->x), b, t, h),
                   (size_t)dim * sizeof(float));
            if (SLIP(centred))
                centre(n.token + h * dim, dim);
        }
        for (n.head = 0; n.head < heads; n.head++)
            normalise(&n, row_at(&a->out, b, t, n.head));
    }
}
