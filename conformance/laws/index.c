/*
 * Laws of biases by index in a window, to the bit; and indices that others printed.
 *
 *   window-by-hand   the row of the table for each query and key, from their places in the
 *   window
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
#include "conformance/problem/signature.h"
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int64_t height, width;
    bool class_token;
} windows[] = { { 2, 2, false }, { 7, 7, false }, { 3, 12, false }, { 1, 33, false },
                { 4, 4, true },  { 5, 3, true },  { 1, 1, true } };
enum { WINDOWS = sizeof windows / sizeof windows[0] };

static struct problem window_problem(enum posenc_kernel kernel, int w)
{
    struct problem p = problem_default(kernel);
    p.window_height = windows[w].height;
    p.window_width = windows[w].width;
    p.window_class = windows[w].class_token;
    p.queries = p.keys = problem_window(&p);
    p.heads = 3;
    p.x_scale = 0.125f;
    return p;
}

/* Runs window w; pristine: a call for its inputs, to be destroyed. */
static bool run_window(struct tally *t, const struct problem *p, struct copy *out,
                       struct call *pristine)
{
    *out = (struct copy){ .n = 0 };
    if (run_problem(t, p, NULL, NULL, out) &&
        require(t, call_create(pristine, p, &memory_plain) == POSENC_OK, "no inputs"))
        return true;
    copy_free(out);
    return false;
}

/* The bias at an element: without what was added. */
static float expected(const struct problem *p, const struct call *c, int64_t r, int64_t j,
                      int64_t row)
{
    const int64_t head = r / p->queries % p->heads;
    const float value = c->table[row * p->heads + head];
    return kernel_takes_x(p->kernel) ? fmaf(c->x[r * p->keys + j], p->x_scale, value) : value;
}

static int64_t row_by_hand(const struct problem *p, int64_t query, int64_t key)
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

static void law_by_hand(struct tally *t, enum posenc_kernel kernel)
{
    for (int w = 0; w < WINDOWS; w++) {
        struct problem p = window_problem(kernel, w);
        struct copy out;
        struct call c;
        if (!run_window(t, &p, &out, &c))
            continue;
        for (int64_t r = 0; r < out.rows[0]; r++)
            for (int64_t j = 0; j < p.keys; j++) {
                const float want = expected(&p, &c, r, j, row_by_hand(&p, r % p.queries, j));
                require_same_bits(t, &copy_row(&out, 0, r)[j], &want, 1, "bias by hand");
            }
        call_destroy(&c);
        copy_free(&out);
        t->problem = NULL;
    }
}

/* The first bias seen with each displacement, and of each the one turned round. */
static void law_displacement(struct tally *t, enum posenc_kernel kernel)
{
    enum { MOST = 2 * 33 - 1 };
    for (int w = 0; w < WINDOWS && !windows[w].class_token; w++) {
        struct problem p = window_problem(kernel, w);
        struct copy out = { .n = 0 };
        float seen[MOST][MOST];
        bool any[MOST][MOST] = { { false } };
        if (run_problem(t, &p, NULL, NULL, &out))
            for (int64_t i = 0; i < p.queries; i++)
                for (int64_t j = 0; j < p.keys; j++) {
                    const int64_t down = i / p.window_width - j / p.window_width,
                                  right = i % p.window_width - j % p.window_width;
                    float *first =
                        &seen[down + p.window_height - 1][right + p.window_width - 1];
                    bool *is = &any[down + p.window_height - 1][right + p.window_width - 1];
                    if (!*is)
                        *first = copy_row(&out, 0, i)[j];
                    *is = true;
                    require_same_bits(t, &copy_row(&out, 0, i)[j], first, 1,
                                      "the same displacement");
                }
        copy_free(&out);
        int32_t *index = malloc((size_t)(p.queries * p.keys) * sizeof *index);
        if (index && require(t,
                             t->run->subject->swin_index(p.window_height, p.window_width,
                                                         index) == POSENC_OK,
                             "posenc_swin_index"))
            for (int64_t i = 0; i < p.queries; i++)
                for (int64_t j = 0; j < p.keys; j++)
                    require(t,
                            index[i * p.keys + j] + index[j * p.keys + i] ==
                                problem_extent(&p, DIM_ROW) - 1,
                            "indices of %lld, %lld and of the pair turned round", (long long)i,
                            (long long)j);
        free(index);
        t->problem = NULL;
    }
}

static void law_class_token(struct tally *t, enum posenc_kernel kernel)
{
    for (int w = 0; w < WINDOWS; w++) {
        struct problem p = window_problem(kernel, w);
        struct copy out = { .n = 0 };
        if (!windows[w].class_token || !run_problem(t, &p, NULL, NULL, &out))
            continue;
        for (int64_t h = 0; h < p.heads; h++) {
            const float *rows = copy_row(&out, 0, h * p.queries);
            for (int64_t i = 1; i < p.queries; i++) {
                require_same_bits(t, rows + i, rows + 1, 1, "keys of the class token");
                require_same_bits(t, rows + i * p.keys, rows + p.keys, 1,
                                  "queries that meet the class token");
            }
            require(t, p.keys < 2 || (rows[0] != rows[1] && rows[1] != rows[p.keys]),
                    "the three rows of the class token are not apart");
        }
        copy_free(&out);
        t->problem = NULL;
    }
}

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

static void law_any_index(struct tally *t, enum posenc_kernel kernel)
{
    enum { N = ANY_HEADS * ANY_QUERIES * ANY_KEYS };
    static int32_t index[ANY_QUERIES * ANY_KEYS];
    static float table[ANY_ROWS * ANY_HEADS], x[N], out[N];
    const bool add = kernel_takes_x(kernel);
    struct call call = { .problem = problem_default(kernel), .subject = t->run->subject };
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

static void law_swin(struct tally *t, enum posenc_kernel kernel)
{
    static const int32_t two_by_two[4][4] = {
        { 4, 3, 1, 0 }, { 5, 4, 2, 1 }, { 7, 6, 4, 3 }, { 8, 7, 5, 4 }
    };
    struct problem p = window_problem(kernel, 0);
    struct copy out;
    struct call c;
    if (!run_window(t, &p, &out, &c))
        return;
    for (int64_t r = 0; r < out.rows[0]; r++)
        for (int64_t j = 0; j < 4; j++) {
            const float want = expected(&p, &c, r, j, two_by_two[r % 4][j]);
            require_same_bits(t, &copy_row(&out, 0, r)[j], &want, 1, "Swin, 2 by 2");
        }
    call_destroy(&c);
    copy_free(&out);
    t->problem = NULL;
}

/* Columns of DeBERTa-v3 (256 buckets, 512 positions, span 256) at some distances: the bucket,
 * plus the span. */
static void law_deberta(struct tally *t, enum posenc_kernel kernel)
{
    static const struct {
        int64_t distance;
        int32_t column;
    } printed[] = { { -600, 0 },         { -512, 0 },         { -511, 256 - 255 },
                    { -256, 256 - 192 }, { -128, 256 - 128 }, { -1, 256 - 1 },
                    { 0, 256 },          { 128, 256 + 128 },  { 129, 256 + 129 },
                    { 256, 256 + 192 },  { 510, 256 + 255 },  { 511, 256 + 255 },
                    { 512, 511 },        { 600, 511 } };
    enum { FAR = 600, QUERIES = FAR + 1, KEYS = FAR + 1 };
    static int32_t index[QUERIES + KEYS - 1];
    (void)kernel;
    const enum posenc_status status =
        t->run->subject->deberta_index(QUERIES, KEYS, 0, 256, 512, index);
    if (!require(t, status == POSENC_OK, "posenc_deberta_index: %s",
                 posenc_status_string(status)))
        return;
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        const int32_t column = index[printed[i].distance + KEYS - 1];
        require(t, column == printed[i].column, "distance %lld has column %d, not %d",
                (long long)printed[i].distance, (int)column, (int)printed[i].column);
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_index[] = {
    { "window-by-hand", law_by_hand, KERNELS(K(window_bias), K(window_bias_add)) },
    { "displacement", law_displacement, KERNELS(K(window_bias)) },
    { "class-token", law_class_token, KERNELS(K(window_bias)) },
    { "any-index", law_any_index, KERNELS(K(window_bias), K(window_bias_add)) },
    { "published", law_swin, KERNELS(K(window_bias), K(window_bias_add)) },
    { "published", law_deberta, KERNELS(K(relative_bias)) },
};
const int n_laws_index = sizeof laws_index / sizeof laws_index[0];
