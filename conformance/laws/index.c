/*
 * Laws of biases by index in a window, to the bit; and indices that others printed.
 *
 *   window-by-hand   the row of the table for each query and key, from their places in the
 *                    window
 *   displacement     without a class token two pairs with the same displacement have the same
 *                    bias; of a pair turned round the index is mirrored
 *   class-token      queries that are not the class token give it all the same bias
 *   any-index        queries and keys that are no window, an index in no order
 *   published        Swin's index of a window of 2 by 2; DeBERTa-v3's buckets
 *
 * Liu et al. 2103.14030; Bao et al. 2106.08254 with Hugging Face modeling_beit.py; He et al.
 * 2006.03654 with modeling_deberta_v2.py.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <stdlib.h>

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

/* The first bias seen with each displacement. */
static void check_displacements(struct tally *t, const struct problem *p)
{
    enum { MOST = 2 * 33 - 1 };
    const struct call *out = tally_run(t, p, NULL, NULL);
    const float *seen[MOST][MOST] = { { NULL } };
    const int64_t w = p->window_width;
    for (int64_t i = 0; out && i < p->queries; i++)
        for (int64_t j = 0; j < p->keys; j++) {
            const int64_t down = i / w - j / w, right = i % w - j % w;
            const float **first = &seen[down + p->window_height - 1][right + w - 1];
            const float *bias = call_row(out, 0, i) + j;
            if (!*first)
                *first = bias;
            require_same_bits(t, bias, *first, 1, "the same displacement");
        }
}

/* Of each pair of tokens, and of the one turned round. */
static void check_mirrored(struct tally *t, const struct problem *p)
{
    const int64_t n = p->keys;
    int32_t *index = malloc((size_t)(n * n) * sizeof *index);
    const bool made = index && t->run->subject->swin_index(p->window_height, p->window_width,
                                                           index) == POSENC_OK;
    require(t, made, "posenc_swin_index");
    for (int64_t e = 0; made && e < n * n; e++)
        require(t, index[e] + index[e % n * n + e / n] == problem_extent(p, DIM_ROW) - 1,
                "indices of %lld, %lld and of the pair turned round", (long long)(e / n),
                (long long)(e % n));
    free(index);
}

static void law_displacement(struct tally *t, const struct problem *p)
{
    check_displacements(t, p);
    check_mirrored(t, p);
}

static void law_class_token(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, NULL, NULL);
    for (int64_t h = 0; out && h < p->heads; h++) {
        const float *rows = call_row(out, 0, h * p->queries);
        for (int64_t i = 1; i < p->queries; i++) {
            require_same_bits(t, rows + i, rows + 1, 1, "keys of the class token");
            require_same_bits(t, rows + i * p->keys, rows + p->keys, 1,
                              "queries that meet the class token");
        }
        require(t, p->keys < 2 || (rows[0] != rows[1] && rows[1] != rows[p->keys]),
                "the three rows of the class token are not apart");
    }
}

/* ---- Any index ---- */

/* Two queries and more keys than kernels take at once. */
enum { ANY_QUERIES = 2, ANY_KEYS = 4200, ANY_ROWS = 100, ANY_HEADS = 3 };

static int32_t any_row(int64_t place)
{
    return (int32_t)(mix64(3, (uint64_t)place) % ANY_ROWS);
}

static float any_value(int64_t row, int64_t head)
{
    return (float)(row * ANY_HEADS + head) + 0.25f;
}

static void fill_any(struct posenc_window_args *args, int32_t *index, float *table, float *x,
                     float *out, bool add)
{
    for (int64_t i = 0; i < ANY_QUERIES * ANY_KEYS; i++)
        index[i] = any_row(i);
    for (int64_t i = 0; i < ANY_ROWS * ANY_HEADS; i++)
        table[i] = any_value(i / ANY_HEADS, i % ANY_HEADS);
    for (int64_t i = 0; i < ANY_HEADS * ANY_QUERIES * ANY_KEYS; i++)
        x[i] = (float)(i % 1000);
    *args = posenc_window_args_init();
    args->index = index;
    args->table = posenc_const_dense(table, 2, ANY_ROWS, ANY_HEADS, 0, 0);
    args->out = posenc_dense(out, 3, ANY_HEADS, ANY_QUERIES, ANY_KEYS, 0);
    if (add)
        args->x = posenc_const_dense(x, 3, ANY_HEADS, ANY_QUERIES, ANY_KEYS, 0);
}

static void law_any_index(struct tally *t, const struct problem *p)
{
    enum { N = ANY_HEADS * ANY_QUERIES * ANY_KEYS };
    static int32_t index[ANY_QUERIES * ANY_KEYS];
    static float table[ANY_ROWS * ANY_HEADS], x[N], out[N];
    const bool add = kernel_takes_x(p->kernel);
    struct call call = { .problem = *p, .subject = t->run->subject };
    fill_any(&call.args.window, index, table, x, out, add);
    struct guarded g = guarded_run(&call, t->run->backend, NULL);
    if (!require_clean(t, &g))
        return;
    for (int64_t i = 0; i < N; i++) {
        const int64_t place = i % (ANY_QUERIES * ANY_KEYS);
        const float want = any_value(any_row(place), i / (ANY_QUERIES * ANY_KEYS)) +
                           (add ? (float)(i % 1000) : 0.0f);
        require_same_bits(t, &out[i], &want, 1, "bias by any index");
    }
}

/* ---- DeBERTa-v3 ---- */

/* Its columns (256 buckets, 512 positions, span 256) at some distances: the bucket, plus the
 * span. */
static void law_deberta(struct tally *t, const struct problem *p)
{
    static const struct {
        int64_t distance;
        int32_t column;
    } printed[] = { { -600, 0 },         { -512, 0 },         { -511, 256 - 255 },
                    { -256, 256 - 192 }, { -128, 256 - 128 }, { -1, 256 - 1 },
                    { 0, 256 },          { 128, 256 + 128 },  { 129, 256 + 129 },
                    { 256, 256 + 192 },  { 510, 256 + 255 },  { 511, 256 + 255 },
                    { 512, 511 },        { 600, 511 } };
    static int32_t index[2 * 601 - 1];
    const enum posenc_status status = t->run->subject->deberta_index(
        p->queries, p->keys, p->query_offset, p->num_buckets, p->max_distance, index);
    if (!require(t, status == POSENC_OK, "posenc_deberta_index: %s",
                 posenc_status_string(status)))
        return;
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        const int32_t column = index[printed[i].distance + p->keys - 1];
        require(t, column == printed[i].column, "distance %lld has column %d, not %d",
                (long long)printed[i].distance, (int)column, (int)printed[i].column);
    }
}

const struct law laws_index[] = {
    BY_HAND("window-by-hand", window_by_hand, .problems = "windows"),
    LAW("displacement", law_displacement),
    LAW("class-token", law_class_token),
    LAW("any-index", law_any_index, .problems = "any-index-in-window"),
    BY_HAND("published", two_by_two),
    LAW("published", law_deberta, .problems = "published-buckets"),
    { 0 },
};
