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
#include "laws.h"

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

/* Two queries and more keys than kernels take at once. */
static void law_any_index(struct tally *t, const struct problem *p)
{
    enum { QUERIES = 2, KEYS = 4200, PLACES = QUERIES * KEYS, ROWS = 100, HEADS = 3 };
    static int32_t index[PLACES];
    static float table[ROWS * HEADS], x[HEADS * PLACES], out[HEADS * PLACES];
    const bool add = kernel_takes_x(p->kernel);
    struct call call = { .problem = *p, .subject = t->run->subject };
    struct posenc_window_args *args = &call.args.window;
    for (int i = 0; i < PLACES; i++)
        index[i] = (int32_t)(mix64(3, (uint64_t)i) % ROWS);
    for (int i = 0; i < ROWS * HEADS; i++)
        table[i] = (float)i + 0.25f;
    for (int i = 0; i < HEADS * PLACES; i++)
        x[i] = add ? (float)(i % 1000) : 0.0f;
    *args = posenc_window_args_init();
    args->index = index;
    args->table = posenc_const_dense(table, 2, ROWS, HEADS, 0, 0);
    args->out = posenc_dense(out, 3, HEADS, QUERIES, KEYS, 0);
    if (add)
        args->x = posenc_const_dense(x, 3, HEADS, QUERIES, KEYS, 0);
    struct guarded g = guarded_run(&call, t->run->backend, NULL);
    const bool clean = require_clean(t, &g);
    for (int i = 0; clean && i < HEADS * PLACES; i++) {
        const float want = table[index[i % PLACES] * HEADS + i / PLACES] + x[i];
        require_same_bits(t, &out[i], &want, 1, "bias by any index");
    }
}

/* ---- DeBERTa-v3 ---- */

/* Its columns (256 buckets, 512 positions, span 256) at some distances: the bucket, plus the
 * span. */
static void holds_deberta(struct tally *t, const struct call *out)
{
    static const int printed[][2] = {
        { -600, 0 },         { -512, 0 },        { -511, 256 - 255 }, { -256, 256 - 192 },
        { -128, 256 - 128 }, { -1, 256 - 1 },    { 0, 256 },          { 128, 256 + 128 },
        { 129, 256 + 129 },  { 256, 256 + 192 }, { 510, 256 + 255 },  { 511, 256 + 255 },
        { 512, 511 },        { 600, 511 }
    };
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        const int32_t column = out->args.relative.index[printed[i][0] + out->problem.keys - 1];
        require(t, column == printed[i][1], "distance %d has column %d, not %d", printed[i][0],
                (int)column, printed[i][1]);
    }
}

const struct law laws_index[] = {
    { "window-by-hand", .by_hand = window_by_hand, .problems = "windows" },
    { "displacement", .holds = holds_displacement },
    { "class-token", .holds = holds_class_token },
    { "any-index", .check = law_any_index, .problems = "any-index-in-window" },
    { "published", .by_hand = two_by_two },
    { "published", .holds = holds_deberta, .problems = "published-buckets" },
    { 0 },
};
