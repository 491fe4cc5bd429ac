/*
 * rope_qk_norm: divides each head of queries or keys by its root mean square, multiplies it by a weight, and rotates it
 * as rope_half does (Qwen3 2505.09388, Gemma 3 2503.19786, OLMo 2 2501.00656). A channel before the rotation is
 *
 *   x / sqrt(mean of x^2 + epsilon) (weight + weight_offset)
 *
 * First the signature of the calls (signature.h) with its error limit, then their expected rows (oracle/rows.h).
 */
#include "conformance/oracle/rows.h"

#include <float.h>
#include <math.h>

enum { EPSILON, WEIGHT_OFFSET, ACROSS_HEADS }; /* indices of problem.parameters */

/* Fills weights of both signs. If inputs are special, weights of at least 4 become zeros. */
static bool fill_weight(struct call *call, void *to, int64_t n)
{
    struct problem finite = call->problem;
    float *weight = to;
    finite.special = false;
    if (!inputs_fill(weight, 0, n, &finite, STREAM_TABLE))
        return false;
    for (int64_t i = 0; call->problem.special && i < n; i++)
        weight[i] = fabsf(weight[i]) < 4.0f ? weight[i] : copysignf(0.0f, weight[i]);
    return true;
}

/* ---- Error limit ---- */

/* Returns the limit in ulp of the larger of a channel's two products. A normalised channel has a relative error theta
 * = k 2^-24, plus terms in theta^2 (impl/kernels/rope_qk_norm.c derives it). Without fma, rounded squares add half a
 * rounding to their sum. The terms of the limit are theta for each product, which is at most 2^24 ulp; one ulp for
 * each product that is rounded; two for the sum, which may be twice as large; and one for products that underflow, as
 * larger_magnitude() is at least 2^-123 times the weights. */
static double error_limit(const struct problem *p, bool fused)
{
    const double roundings = ceil((double)p->dim / 64.0) + 8.0; /* in a head's sum of squares */
    const double heads = p->parameters[ACROSS_HEADS].flag ? (double)p->heads - 1.0 : 0.0;
    const double k = (roundings + heads + (fused ? 0.0 : 1.0)) / 2.0 + 5.0;
    const double rounded_products = fused ? 1.0 : 2.0;
    return 2.0 * k / (1.0 - k * 0x1p-24) + rounded_products + 2.0 + 1.0;
}

/* ---- Mean square ---- */

/* Channels of which the mean square is that of a row: the row itself, or all heads of its token. */
struct normed_channels {
    const float *x;
    int64_t n;
};

static struct normed_channels normed_channels_of(const struct call *call, int64_t r)
{
    const struct problem *p = &call->problem;
    const int64_t heads = p->parameters[ACROSS_HEADS].flag ? p->heads : 1;
    return (struct normed_channels){ call->x + (r - r % heads) * p->dim, heads * p->dim };
}

/* Returns the sum of squares; f64 holds that of any finite row. */
static double sum_of_squares(const struct call *call, int64_t r)
{
    const struct normed_channels all = normed_channels_of(call, r);
    double sum = 0.0;
    for (int64_t i = 0; i < all.n; i++)
        sum += (double)all.x[i] * (double)all.x[i];
    return sum;
}

/* Returns true for a finite sum of squares that is infinite in f32, or nearly so. */
static bool square_overflows(const struct call *call, int64_t r)
{
    const double sum = sum_of_squares(call, r);
    return isfinite(sum) && sum >= 0x1.fffp127;
}

#define ACTIVATIONS .dims = { DIM_BATCH, DIM_TOKEN, DIM_HEAD, DIM_CHANNEL }

const struct signature signature_rope_qk_norm = {
    BLANK(rope_qk_norm),
    .tensors = { ANGLES(rope_qk_norm, cos, STREAM_COS),
                 ANGLES(rope_qk_norm, sin, STREAM_SIN),
                 { TENSOR(rope_qk_norm, weight), .type = TYPE_F32,
                   .dims = { DIM_HEAD, DIM_CHANNEL }, .fill = fill_weight,
                   .dense_copy = DENSE_COPY(table), .is_broadcastable = true, .cached = true },
                 { OUT(rope_qk_norm, out), ACTIVATIONS },
                 { X(rope_qk_norm), ACTIVATIONS },
                 POSITIONS(rope_qk_norm) },
    .parameters = { PARAMETER(rope_qk_norm, rotary_offset),
                    OWN_PARAMETER(rope_qk_norm, EPSILON, epsilon, .value = 1e-6,
                                  .least = 0x1p-64, .most = (double)FLT_MAX),
                    OWN_PARAMETER(rope_qk_norm, WEIGHT_OFFSET, weight_offset,
                                  .least = -(double)FLT_MAX, .most = (double)FLT_MAX),
                    OWN_PARAMETER(rope_qk_norm, ACROSS_HEADS, across_heads, .value = 0.0) },
    .channels = MEMBER(dim),
    .rotary = MEMBER(rotary_dim),
    .error_limit = error_limit,
    .overflows = square_overflows,
    .uses_head = true,
    .fields =
        FIELDS_TOKENS "values_dtype table_dtype heads head_dim rotary_dim rotary_offset rows "
                      "recipe",
    .cuts = { DIM_HEAD, DIM_TOKEN, DIM_BATCH },
    .shares = { DIM_TOKEN },
    .work = WORK_NORM,
    .check = signature_check_rotation,
};

/* ---- Expected rows ---- */

/* Factor of a row, 1 / sqrt(mean square + epsilon): `root` if that is a number above 0. Otherwise `scale` is 0 (a
 * square overflows) or NaN. */
struct norm {
    bool finite;
    double scale;
    struct big root;
};

static struct norm norm_of(const struct call *call, int64_t r)
{
    const struct normed_channels all = normed_channels_of(call, r);
    struct big sum = big_integer(0);
    bool finite = true, has_nan = false;
    for (int64_t i = 0; i < all.n; i++) {
        const double x = (double)all.x[i];
        finite = finite && isfinite(x);
        has_nan = has_nan || isnan(x);
        sum = finite ? big_add(sum, big_double(x * x)) : sum;
    }
    if (!finite || big_compare(sum, big_double(0x1p128)) >= 0) /* the f32 sum is infinite */
        return (struct norm){ .scale = has_nan ? (double)NAN : 0.0 };
    const struct big epsilon = big_double((double)call->problem.parameters[EPSILON].f32);
    const struct big square = big_add(big_divide(sum, big_integer(all.n)), epsilon);
    return (struct norm){ true, 1.0, big_inverse_sqrt(square) };
}

/* A channel before rotation: in 256 bits, not yet multiplied by the root; and in f64, multiplied by the scale, for
 * NaN and the sign of zeros. */
struct channel {
    struct big exact;
    double value;
};

static struct channel channel_of(const struct call *call, const struct norm *norm, int64_t r,
                                 int64_t k)
{
    const struct problem *p = &call->problem;
    const double x = (double)call->x[r * p->dim + k],
                 offset = (double)p->parameters[WEIGHT_OFFSET].f32;
    const double weight = (double)call->table[r % p->heads * p->dim + k];
    struct channel channel = { .value = x * norm->scale * (weight + offset) };
    if (norm->finite)
        channel.exact =
            big_multiply(big_double(x), big_add(big_double(weight), big_double(offset)));
    return channel;
}

/* Returns a c + b s, rounded to odd. An exact zero has the sign of the f64 result. */
static double rotate_channel(const struct norm *norm, struct channel a, double c,
                             struct channel b, double s)
{
    const double value = a.value * c + b.value * s;
    if (!norm->finite || !isfinite(value))
        return value;
    const struct big sum =
        big_add(big_multiply(a.exact, big_double(c)), big_multiply(b.exact, big_double(s)));
    struct big all = big_multiply(sum, norm->root);
    all.inexact = true;
    return all.m[0] ? big_times(all, 1.0) : value;
}

static void row_norm(const struct oracle *oracle, int o, int64_t r, double *want)
{
    const struct call *call = oracle->call;
    const struct problem *p = &call->problem;
    const int64_t half = p->rotary_dim / 2, from = p->rotary_offset;
    const int64_t row = oracle_row_position(p, r, p->heads) * half;
    const struct norm norm = norm_of(call, r);
    (void)o;
    for (int64_t k = 0; k < p->dim; k++)
        if (k < from || k >= from + 2 * half)
            want[k] = rotate_channel(&norm, channel_of(call, &norm, r, k), 1.0,
                                     (struct channel){ .value = -0.0 }, 1.0);
    for (int64_t i = 0; i < half; i++) {
        const double c = (double)call->cos[row + i], s = (double)call->sin[row + i];
        const struct channel a = channel_of(call, &norm, r, from + i),
                             b = channel_of(call, &norm, r, from + half + i);
        want[from + i] = rotate_channel(&norm, a, c, b, -s);
        want[from + half + i] = rotate_channel(&norm, b, c, a, s);
    }
}

/* ---- Magnitudes, whose ulp is the unit of errors ---- */

/* Returns the magnitude of a channel before rotation, and that of its weight. f64 suffices for a unit. */
static double channel_magnitude(const struct call *call, double root, int64_t r, int64_t k,
                                double *weight)
{
    const struct problem *p = &call->problem;
    *weight = fabs((double)call->table[r % p->heads * p->dim + k] +
                   (double)p->parameters[WEIGHT_OFFSET].f32);
    return fabs((double)call->x[r * p->dim + k]) * root * *weight;
}

/* Returns the larger of two products, but at least 2^-123 times the larger weight, as intermediate values below
 * 2^-126 lose bits. Returns 0 if both products are 0. */
static double larger_magnitude(double a, double b, double weight_a, double weight_b)
{
    const double larger = fmax(a, b), least = fmax(1.0, fmax(weight_a, weight_b)) * 0x1p-123;
    return larger > 0.0 && larger < least ? least : larger;
}

static void magnitudes_norm(const struct oracle *oracle, int64_t r, double *magnitudes)
{
    const struct call *call = oracle->call;
    const struct problem *p = &call->problem;
    const int64_t half = p->rotary_dim / 2, from = p->rotary_offset;
    const int64_t row = oracle_row_position(p, r, p->heads) * half;
    const double n = (double)normed_channels_of(call, r).n;
    const double root =
        1.0 / sqrt(sum_of_squares(call, r) / n + (double)p->parameters[EPSILON].f32);
    double weight[2];
    for (int64_t k = 0; k < p->dim; k++) {
        const double own = channel_magnitude(call, root, r, k, weight);
        magnitudes[k] = larger_magnitude(own, own, *weight, *weight);
    }
    for (int64_t i = 0; i < half; i++) {
        const double c = fabs((double)call->cos[row + i]), s = fabs((double)call->sin[row + i]);
        const double a = channel_magnitude(call, root, r, from + i, weight),
                     b = channel_magnitude(call, root, r, from + half + i, weight + 1);
        magnitudes[from + i] = larger_magnitude(a * c, b * s, weight[0], weight[1]);
        magnitudes[from + half + i] = larger_magnitude(b * c, a * s, weight[0], weight[1]);
    }
}

const struct oracle_functions oracle_rope_qk_norm = { row_norm, NULL, magnitudes_norm };
