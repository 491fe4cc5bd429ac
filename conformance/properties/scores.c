/*
 * Properties of kernels on attention scores; i is the query and j the key. Biases have these, all to the bit, as a
 * bias is a single product (ALiBi) or a value of a table:
 *
 *   distance         bias(i, j) depends on i + query_offset - j alone
 *   by-hand          T5: the row of a bucket, found from the thresholds in this file
 *   by-batch         4 batches of 3 slopes give the bits of 12 heads
 *   slopes           slopes of 8 and 12 heads are those that Press et al. 2108.12409 print
 *   window-by-hand   the row of a window's table for each query and key, with the class token
 *
 * relative_bias and relative_sum have these. The first three compare the kernel with the formula of an encoding as
 * its authors wrote it:
 *
 *   shaw             q_i (a_clip(j-i))^T, gathered for each query and key
 *   transformer-xl   a column of zeros is added in front, the memory is read as rows that are one element
 *                    longer, and the first row is dropped; compared for keys up to the query
 *   deberta          c2p gathered by bucket(i - j); p2c gathered for keys by bucket(j - i), negated
 *                    and transposed
 *   distance         if all queries and keys have equal terms, the bias depends on i - j alone
 *   adjoint          <relative_bias(A), W> = <A, relative_sum(W)>: a sum of at most n keys in f32 is
 *                    within n 2^-24 of the sum of magnitudes
 *
 * References: Liu et al. 2103.14030; Bao et al. 2106.08254 with Hugging Face modeling_beit.py; Shaw et al.
 * 1803.02155; Dai et al. 1901.02860 with kimiyoung/transformer-xl, mem_transformer.py; He et al. 2006.03654 with
 * Hugging Face modeling_deberta_v2.py.
 */
#include "properties.h"

#include <math.h>
#include <stdlib.h>

/* ---- By distance ---- */

/* Requires that a bias equals that of the previous query and key. */
static void check_by_distance(struct tally *t, const struct call *out)
{
    for (EACH_ELEMENT(at, out))
        if (at.row % out->problem.queries && at.column)
            element_require(t, &at, call_row(out, 0, at.row - 1)[at.column - 1],
                            "one query and one key before");
}

/* ---- Buckets of T5 ---- */

/* Returns the distance from the query of row r to key j. */
static int64_t distance_to_key(const struct problem *p, int64_t r, int64_t j)
{
    return j - (r % p->queries + p->query_offset);
}

/* First distance of each bucket, for 32 buckets up to distance 128. It rises by 1 up to 8 (unidirectional: 16), then
 * by a factor of 16^(1/8) (unidirectional: 8^(1/16)). */
static const int64_t thresholds_bi[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91
};
static const int64_t thresholds_uni[32] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                            11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                            35, 40, 46, 52, 59, 67, 77, 87, 99, 113 };

static float expected_t5(const struct call *inputs, int64_t r, int64_t j)
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

/* log2 of the slopes of 8 heads. 12 heads have these, then every other slope of 16 heads. */
static const double slope_log2[12] = { -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5 };

/* One key before the query, the bias is -slope. The slope is within 1 ulp of the power of two. */
static void check_slopes(struct tally *t, const struct call *out)
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

static float expected_window(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t row = window_row(p, r % p->queries, j);
    return inputs->table[row * p->heads + r / p->queries % p->heads];
}

/* ---- Encodings by their formulas ---- */

/* Returns the sum of the term of query r at column c2p_at and the term of key j at column p2c_at. */
static float gather_terms(const struct call *inputs, int64_t r, int64_t j, int64_t c2p_at,
                          int64_t p2c_at)
{
    const struct problem *p = &inputs->problem;
    const int64_t columns = inputs->columns, key = r / p->queries * p->keys + j;
    const float scale = (float)p->scale, c2p = inputs->c2p[r * columns + c2p_at];
    return inputs->p2c ? fmaf(scale, inputs->p2c[key * columns + p2c_at], scale * c2p)
                       : scale * c2p;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static float expected_shaw(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t i = r % p->queries + p->query_offset, most = p->max_distance;
    return gather_terms(inputs, r, j, clamp(j - i, -most, most) + most, 0);
}

/* The terms of a head, [queries, keys], belong to distances keys - 1 to 0. With a zero before each row, they are read
 * as [keys + 1, queries] without the first row of `queries` elements: (i, j) is element queries + i keys + j of the
 * padded terms. Transformer-XL leaves keys after the query undefined. For those, the library's index is followed. */
static float expected_transformer_xl(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t head = r / p->queries, i = r % p->queries, wide = p->keys + 1;
    if (j > i + p->keys - p->queries)
        return inputs->c2p[r * p->keys + inputs->args.relative.index[i - j + p->keys - 1]];
    const int64_t n = p->queries + i * p->keys + j, row = n / wide, column = n % wide;
    return column == 0 ? 0.0f : inputs->c2p[(head * p->queries + row) * p->keys + column - 1];
}

/* Computes one element of Hugging Face's make_log_bucket_position(). */
static int64_t log_bucket(int64_t relative, int64_t buckets, int64_t most)
{
    const int64_t middle = buckets / 2, sign = (relative > 0) - (relative < 0);
    const double far =
        relative < middle && relative > -middle ? (double)(middle - 1) : fabs((double)relative);
    if (far <= (double)middle)
        return relative;
    const double log_position =
        ceil(log(far / (double)middle) / log((double)(most - 1) / (double)middle) *
             (double)(middle - 1)) +
        (double)middle;
    return (int64_t)log_position * sign;
}

static int64_t deberta_bucket(const struct problem *p, int64_t relative)
{
    return p->num_buckets ? log_bucket(relative, p->num_buckets, p->max_distance) : relative;
}

/* As disentangled_attention_bias() of Hugging Face: c2p is gathered at clamp(rel + span). p2c is gathered at
 * clamp(-rel + span), with the keys as queries, and transposed. */
static float expected_deberta(const struct call *inputs, int64_t r, int64_t j)
{
    const struct problem *p = &inputs->problem;
    const int64_t i = r % p->queries + p->query_offset;
    const int64_t span = p->num_buckets ? p->num_buckets : p->max_distance;
    return gather_terms(inputs, r, j, clamp(deberta_bucket(p, i - j) + span, 0, 2 * span - 1),
                        clamp(-deberta_bucket(p, j - i) + span, 0, 2 * span - 1));
}

/* ---- By distance alone ---- */

/* Gives every query and key the terms of the first one, and fills the x of an add with 1. */
static void edit_no_content(struct call *call, const void *user)
{
    (void)user;
    tensor_repeat_rows(storage_as_writable(&call->args.relative.c2p), 1);
    tensor_repeat_rows(storage_as_writable(&call->args.relative.p2c), 1);
    edit_fill_x(call, &plus_one);
}

/* ---- Sums ---- */

static void compare_adjoint(struct tally *t, const struct call *sums, const struct call *bias)
{
    double magnitudes = 0.0, unused = 0.0;
    const double forward = element_inner_product(bias, sums->x, &magnitudes);
    require_within(t, element_inner_product(sums, bias->c2p, &unused), forward,
                   (double)sums->problem.keys * 0x1p-24 * magnitudes,
                   "<A, relative_sum(W)> and <relative_bias(A), W>");
}

/* ---- All of them ---- */

const struct property properties_scores[] = {
    { "distance", .check_output = check_by_distance, .problems = "biases", .edit = edit_fill_x,
      .user = &plus_one, .by_bits = true },
    { "by-hand", .expected = expected_t5, .problems = "biases",
      .needed_field = "bidirectional" },
    { "by-batch", .twin = "batch=1 heads=12 slopes_by_batch=false", .problems = "biases",
      .needed_field = "slopes_by_batch", .fields = "batch=4 heads=3 slopes_by_batch=true",
      .edit = edit_fill_x, .user = &plus_one },
    { "slopes", .check_output = check_slopes },
    { "window-by-hand", .expected = expected_window, .problems = "windows" },
    { "shaw", .expected = expected_shaw },
    { "transformer-xl", .expected = expected_transformer_xl },
    { "deberta", .expected = expected_deberta },
    { "distance", .check_output = check_by_distance, .problems = "relative-distance",
      .edit = edit_no_content, .by_bits = true },
    { "adjoint", .compare_outputs = compare_adjoint, .problems = "sums",
      .twin = "relative_bias" },
    { 0 },
};
