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
#include "conformance/problem/inputs.h"
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Queries before, inside and after the keys; more keys than queries and the other way round. */
static const struct {
    int64_t queries, keys, query_offset;
} shapes[] = { { 7, 37, 30 },   { 37, 7, 0 },  { 5, 40, -3 },
               { 3, 300, 140 }, { 1, 33, 32 }, { 20, 20, 100 } };
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static struct problem bias_problem(enum posenc_kernel kernel, int shape, int setting,
                                   int64_t heads)
{
    struct problem p = problem_default(kernel);
    p.queries = shapes[shape].queries;
    p.keys = shapes[shape].keys;
    p.query_offset = shapes[shape].query_offset;
    p.heads = heads;
    p.causal = setting & 1;
    p.bidirectional = !(setting & 1);
    p.num_buckets = 32;
    p.max_distance = 128;
    p.distances = setting & 1 ? problem_distances(p.queries, p.keys) + 9 : 0;
    return p;
}

/* An add's x is the same everywhere, so that the sum is a function of the bias. */
static void edit_ones(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = x->data ? tensor_rows(x) : 0; r < n; r++)
        for (int64_t c = 0; c < x->shape[x->rank - 1]; c++)
            tensor_row(x, r)[c] = 1.0f;
}

static void law_distance(struct tally *t, enum posenc_kernel kernel)
{
    for (int s = 0; s < SHAPES; s++)
        for (int v = 0; v < 2; v++) {
            struct problem p = bias_problem(kernel, s, v, 5);
            struct copy out;
            if (run_problem(t, &p, edit_ones, NULL, &out))
                for (int64_t h = 0; h < p.heads; h++)
                    for (int64_t i = 1; i < p.queries; i++) {
                        const float *up = copy_row(&out, 0, h * p.queries + i - 1),
                                    *row = up + p.keys;
                        require_same_bits(t, row + 1, up, p.keys - 1,
                                          "one query and one key on");
                    }
            copy_free(&out);
            t->problem = NULL;
        }
}

/* ---- By hand ---- */

static float alibi_by_hand(const struct problem *p, const struct call *c, int64_t h, int64_t i,
                           int64_t j)
{
    int64_t ahead = j - (i + p->query_offset);
    if (p->causal && ahead > 0)
        return -INFINITY;
    return -(c->slopes[h] * (float)llabs(ahead));
}

/* First distance of each bucket of (32, 128): exact up to 8 (16), then by powers of 16^(1/8)
 * (8^(1/16)). */
static const int64_t thresholds_bi[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91
};
static const int64_t thresholds_uni[32] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                            11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                            35, 40, 46, 52, 59, 67, 77, 87, 99, 113 };

static float t5_by_hand(const struct problem *p, const struct call *c, int64_t h, int64_t i,
                        int64_t j)
{
    int64_t ahead = j - (i + p->query_offset);
    const int64_t *thresholds = p->bidirectional ? thresholds_bi : thresholds_uni;
    int64_t n = p->bidirectional ? 16 : 32, distance = p->bidirectional ? llabs(ahead)
                                                       : ahead < 0      ? -ahead
                                                                        : 0;
    int64_t bucket = n - 1;
    while (thresholds[bucket] > distance)
        bucket--;
    if (p->bidirectional && ahead > 0)
        bucket += n;
    return c->table[bucket * p->heads + h];
}

static float value_by_hand(const struct problem *p, const struct call *c, int64_t h, int64_t i,
                           int64_t j)
{
    const struct posenc_distance_args *a = &c->args.distance;
    return c->table[h * c->columns + i + p->query_offset - j - a->first];
}

static float bias_by_hand(const struct problem *p, const struct call *c, int64_t h, int64_t i,
                          int64_t j)
{
    enum signature_id s = kernel_signature(p->kernel);
    return s == SIGNATURE_alibi ? alibi_by_hand(p, c, h, i, j)
           : s == SIGNATURE_t5  ? t5_by_hand(p, c, h, i, j)
                                : value_by_hand(p, c, h, i, j);
}

static void law_by_hand(struct tally *t, enum posenc_kernel kernel)
{
    bool add = kernel_takes_x(kernel);
    for (int s = 0; s < SHAPES; s++)
        for (int v = 0; v < 2; v++) {
            struct problem p = bias_problem(kernel, s, v, s % 2 ? 6 : 8);
            struct call pristine;
            struct copy out = { .n = 0 };
            p.x_scale = 0.125f;
            if (run_problem(t, &p, NULL, NULL, &out) &&
                call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
                for (int64_t r = 0; r < out.rows[0]; r++)
                    for (int64_t j = 0; j < p.keys; j++) {
                        int64_t h = r / p.queries, i = r % p.queries;
                        float want = bias_by_hand(&p, &pristine, h, i, j);
                        if (add)
                            want = fmaf(pristine.x[r * p.keys + j], p.x_scale, want);
                        float got = copy_row(&out, 0, r)[j];
                        require(t, got == want,
                                "head %lld query %lld key %lld is %.9g, by hand %.9g",
                                (long long)h, (long long)i, (long long)j, (double)got,
                                (double)want);
                    }
                call_destroy(&pristine);
            }
            copy_free(&out);
            t->problem = NULL;
        }
}

/* ---- Slopes and masks ---- */

/* log2 of the slopes of 8 heads; of 12 heads the same, then every other one of 16. */
static const double slope_log2[12] = { -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5 };

/* One key behind the query the bias is -slope: to 1 ulp of the power of two. */
static void law_slopes(struct tally *t, enum posenc_kernel kernel)
{
    for (int64_t heads = 8; heads <= 12; heads += 4) {
        struct problem p = bias_problem(kernel, 0, 0, heads);
        struct copy out;
        if (run_problem(t, &p, NULL, NULL, &out))
            for (int64_t h = 0; h < heads; h++) {
                double want = -exp2(slope_log2[h]);
                float got = copy_row(&out, 0, h * p.queries)[p.query_offset - 1];
                require_within(t, (double)got, want, -want * 0x1p-23,
                               "bias one key behind, minus the slope");
            }
        copy_free(&out);
        t->problem = NULL;
    }
}

/* Batches of 3 heads are those of a call with all of them; an add's x is 1 everywhere. */
static void law_by_batch(struct tally *t, enum posenc_kernel kernel)
{
    for (int s = 0; s < SHAPES; s++) {
        struct problem batches = bias_problem(kernel, s, s & 1, 3), heads;
        struct copy got = { .n = 0 }, want = { .n = 0 };
        heads = batches;
        batches.batch = 4;
        heads.heads = 12;
        batches.slopes_by_batch = true;
        if (run_problem(t, &heads, edit_ones, NULL, &want) &&
            run_problem(t, &batches, edit_ones, NULL, &got))
            require_same_copy(t, &got, &want, "slopes by batch");
        copy_free(&got);
        copy_free(&want);
        t->problem = NULL;
    }
}

/* Causal: -infinity exactly after the query, finite up to it. */
static void law_causal(struct tally *t, enum posenc_kernel kernel)
{
    for (int s = 0; s < SHAPES; s++) {
        struct problem p = bias_problem(kernel, s, 1, 3);
        struct copy out;
        if (run_problem(t, &p, NULL, NULL, &out))
            for (int64_t r = 0; r < out.rows[0]; r++)
                for (int64_t j = 0; j < p.keys; j++) {
                    float got = copy_row(&out, 0, r)[j];
                    bool after = j > r % p.queries + p.query_offset;
                    require(t, after ? got == -INFINITY : isfinite(got),
                            "query %lld key %lld is %.9g", (long long)(r % p.queries),
                            (long long)j, (double)got);
                }
        copy_free(&out);
        t->problem = NULL;
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_bias[] = {
    { "distance", law_distance,
      KERNELS(K(alibi), K(alibi_add), K(t5_bias), K(t5_bias_add), K(distance_bias),
              K(distance_bias_add)) },
    { "by-hand", law_by_hand,
      KERNELS(K(alibi), K(alibi_add), K(t5_bias), K(t5_bias_add), K(distance_bias),
              K(distance_bias_add)) },
    { "by-batch", law_by_batch, KERNELS(K(alibi), K(alibi_add)) },
    { "slopes", law_slopes, KERNELS(K(alibi)) },
    { "causal-mask", law_causal, KERNELS(K(alibi), K(alibi_add)) },
};
const int n_laws_bias = sizeof laws_bias / sizeof laws_bias[0];
