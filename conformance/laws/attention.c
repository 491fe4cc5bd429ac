/*
 * What an encoding is for.  Attention without one does not see the order of its tokens: permute
 * the tokens and the outputs are permuted alike,
 *
 *     out(P x) = P out(x),      out_i = sum_j softmax_j(q_i . k_j / sqrt(d)) v_j,
 *
 * since the sums run over the same terms.  Each encoding must break that.  The attention here
 * is one head in f64 with q = k = v = x, of which a rotation turns q and k alone; rounding moves
 * it by less than 1e-12, and the law asks that an encoding moves it by more than 1e-3.
 *
 * And the sentences of docs/encodings.md, with the numbers printed there:
 *
 *   dog-bites-man       what attention makes of the dog that bites and of the one bitten
 *   cat-at-1-and-4      one word at two positions is two vectors
 *   sat-the-cat         a permutation changes distances, a shift does not
 *   reversal-is-unseen  by |i - j| alone: ALiBi without its causal mask
 */
#include "pairs.h"

#include <math.h>
#include <string.h>

/* Tokens by channels, or scores of tokens by tokens. */
enum { MOST = 8 };
struct matrix {
    int rows, columns;
    double at[MOST][MOST];
};

static struct matrix times(const struct matrix *a, const struct matrix *b)
{
    struct matrix product = { a->rows, b->columns, { { 0.0 } } };
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < b->columns; j++)
            for (int k = 0; k < b->rows; k++)
                product.at[i][j] += a->at[i][k] * b->at[k][j];
    return product;
}

/* Of each token with each, over the root of their channels. */
static struct matrix products(const struct matrix *x)
{
    struct matrix keys = { x->columns, x->rows, { { 0.0 } } };
    for (int i = 0; i < x->rows; i++)
        for (int c = 0; c < x->columns; c++)
            keys.at[c][i] = x->at[i][c] / sqrt((double)x->columns);
    return times(x, &keys);
}

/* Softmax of each row. */
static struct matrix weights_of(const struct matrix *scores)
{
    struct matrix weights = *scores;
    for (int i = 0; i < scores->rows; i++) {
        double sum = 0.0;
        for (int j = 0; j < scores->columns; j++)
            sum += weights.at[i][j] = exp(scores->at[i][j]);
        for (int j = 0; j < scores->columns; j++)
            weights.at[i][j] /= sum;
    }
    return weights;
}

static struct matrix attend(const struct matrix *scores, const struct matrix *values)
{
    const struct matrix weights = weights_of(scores);
    return times(&weights, values);
}

/* ---- Calls of a kernel ---- */

/* What a table that is learned holds for a column, and its product with a token. */
static double learned(int64_t column, int c)
{
    return (double)(mix64(9, (uint64_t)(column * MOST + c)) >> 40) * 0x1p-23 - 1.0;
}

static float term(const struct matrix *tokens, struct place at)
{
    double sum = 0.0;
    for (int c = 0; c < tokens->columns; c++)
        sum += tokens->at[at.row % tokens->rows][c] * learned(at.column, c);
    return (float)sum;
}

/* What a call is given: rows of x, which further batches and heads repeat; terms of each token's
 * content. */
struct content {
    const struct matrix *tokens, *x;
};

static void edit_content(struct call *call, const void *user)
{
    const struct content *content = user;
    for (EACH_PLACE(at, call_x(call)))
        place_put(at, (float)content->x->at[at.row % content->x->rows][at.column]);
    if (!call->c2p && !call->p2c)
        return;
    for (EACH_PLACE(at, input_as_writable(&call->args.relative.c2p)))
        place_put(at, term(content->tokens, at));
    for (EACH_PLACE(at, input_as_writable(&call->args.relative.p2c)))
        place_put(at, term(content->tokens, at));
}

/* What the kernel gave, or what it gave and this: scores or tokens. */
static void encode(struct matrix *m, const struct call *out)
{
    const double held = kernel_takes_x(out->problem.kernel) ? 0.0 : 1.0;
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < m->columns; j++)
            m->at[i][j] = (double)call_row(out, 0, i)[j] + held * m->at[i][j];
}

/* Channels turned by a table. */
static void turn(struct matrix *x, const struct call *table)
{
    for (EACH_PAIR(at, table)) {
        double *pair = &x->at[at.row][2 * at.i];
        const double complex turned = pair_with(pair[0], pair[1]) * at.z;
        pair[0] = creal(turned);
        pair[1] = cimag(turned);
    }
}

/* Shaw's values: what the weights of each column sum to, times what is learned for it. */
static void add_values(struct matrix *out, const struct call *sums)
{
    for (EACH_ELEMENT(at, sums))
        for (int c = 0; c < out->columns && at.row < out->rows; c++)
            out->at[at.row][c] += (double)at.value * learned(at.column, c);
}

/* Attention over x with what the kernel gives: weights by column, scores or a bias of them,
 * cosines and sines, tokens or what is added to them. */
static bool attend_encoded(struct tally *t, const struct problem *p, const struct matrix *x,
                           struct matrix *out)
{
    const bool by_column = kernel_counts(p->kernel, DIM_COLUMN),
               on_scores = kernel_on_scores(p->kernel);
    struct matrix scores = products(x), weights = weights_of(&scores), tokens = *x;
    const struct content content = { x, by_column ? &weights : on_scores ? &scores : x };
    const struct call *call = tally_run(t, p, edit_content, &content);
    if (!call)
        return false;
    if (on_scores && !by_column)
        encode(&scores, call);
    if (!on_scores) {
        (call->n_outputs == 2 ? turn : encode)(&tokens, call);
        scores = products(&tokens);
    }
    const bool turns = call->n_outputs == 2 || kernel_rotates(p->kernel);
    *out = attend(&scores, turns ? x : &tokens);
    if (by_column)
        add_values(out, call);
    return true;
}

/* ---- The order of tokens ---- */

static struct matrix permuted(const struct matrix *in)
{
    static const int permutation[] = { 3, 0, 5, 1, 4, 2 };
    struct matrix out = *in;
    for (int i = 0; i < in->rows; i++)
        memcpy(out.at[i], in->at[permutation[i]], sizeof out.at[i]);
    return out;
}

/* Between the output for permuted tokens, and the permuted output. */
static double distance(const struct matrix *of_permuted, const struct matrix *out)
{
    const struct matrix want = permuted(out);
    double most = 0.0;
    for (int i = 0; i < want.rows; i++)
        for (int c = 0; c < want.columns; c++)
            most = fmax(most, fabs(of_permuted->at[i][c] - want.at[i][c]));
    return most;
}

static void law_order(struct tally *t, const struct problem *of)
{
    struct matrix x = { 6, 8, { { 0.0 } } };
    struct problem p = *of;
    p.tokens = p.queries = p.keys = x.rows;
    p.dim = p.freqs.dim = x.columns;
    p.rotary_dim = p.rotary_dim ? x.columns : 0;
    p.heads = p.heads ? 1 : 0;
    p.window_height = 2;
    p.window_width = x.rows / 2;
    p.query_offset = p.first = 0;
    for (int i = 0; i < x.rows; i++)
        for (int c = 0; c < x.columns; c++)
            x.at[i][c] =
                (double)(float)((double)(mix64(7, (uint64_t)(i * x.columns + c)) >> 40) *
                                    0x1p-23 -
                                1.0);
    const struct matrix px = permuted(&x), scores = products(&x), p_scores = products(&px);
    struct matrix of_x = attend(&scores, &x), of_px = attend(&p_scores, &px);
    require(t, distance(&of_px, &of_x) < 1e-12,
            "attention without an encoding sees the order of tokens");
    if (attend_encoded(t, &p, &x, &of_x) && attend_encoded(t, &p, &px, &of_px))
        require(t, distance(&of_px, &of_x) > 1e-3,
                "attention with this encoding does not see the order of tokens");
}

/* ---- "dog bites man", "man bites dog" ---- */

/* Two channels of each word, and what the dog at its place receives: without an encoding the same
 * in both sentences.  The rotation and the sum set them apart; slope 1/2 by |i - j| leaves the two
 * dogs alike, its causal mask does not. */
static const struct matrix sentences[2] = { { 3, 2, { { 1, 0 }, { 1, 1 }, { 0, 1 } } },
                                            { 3, 2, { { 0, 1 }, { 1, 1 }, { 1, 0 } } } };
static const int dog_at[2] = { 0, 2 };
static const double dog_alone[2] = { 0.802, 0.599 };
static const struct {
    enum posenc_kernel kernel;
    bool causal;
    double dog[2][2];
} dogs[] = {
    { POSENC_KERNEL_sinusoidal_add, false, { { 1.499, 1.263 }, { 1.841, 0.289 } } },
    { POSENC_KERNEL_rope_interleaved, false, { { 0.844, 0.397 }, { 0.711, 0.692 } } },
    { POSENC_KERNEL_alibi_add, false, { { 0.899, 0.441 }, { 0.899, 0.441 } } },
    { POSENC_KERNEL_alibi_add, true, { { 1.0, 0.0 }, { 0.899, 0.441 } } },
};

static void require_dog(struct tally *t, const struct matrix *out, int s, const double want[2],
                        const char *what)
{
    for (int c = 0; c < 2; c++)
        require_within(t, out->at[dog_at[s]][c], want[c], 0.5e-3, what);
}

static void law_dog(struct tally *t, const struct problem *p)
{
    int k = 0;
    while (dogs[k].kernel != p->kernel || dogs[k].causal != p->causal)
        k++;
    for (int s = 0; s < 2; s++) {
        const struct matrix scores = products(&sentences[s]);
        struct matrix out = attend(&scores, &sentences[s]);
        require_dog(t, &out, s, dog_alone, "the dog, without an encoding");
        if (attend_encoded(t, p, &sentences[s], &out))
            require_dog(t, &out, s, dogs[k].dog[s], "the dog, encoded");
    }
}

/* ---- "the cat saw a cat", "The cat sat" ---- */

/* What 4 sinusoidal dimensions make of both cats: to the four digits that the text prints. */
static void law_cat(struct tally *t, const struct problem *p)
{
    static const struct matrix words = { 5,
                                         4,
                                         { { 0.2, -0.1, 0.3, 0.4 },
                                           { 1.0, 0.5, -0.5, 0.2 },
                                           { -0.3, 0.8, 0.6, -0.2 },
                                           { 0.1, 0.3, -0.2, 0.5 },
                                           { 1.0, 0.5, -0.5, 0.2 } } };
    static const double cats[2][4] = { { 1.8415, 1.0403, -0.4900, 1.2000 },
                                       { 0.2432, -0.1536, -0.4600, 1.1992 } };
    const struct content content = { &words, &words };
    for (EACH_ELEMENT(at, tally_run(t, p, edit_content, &content)))
        if (at.row == 1 || at.row == 4)
            require_within(t, (double)at.value, cats[at.row / 4][at.column],
                           0.5e-4 + TABLE_ERROR, at.row == 1 ? "cat at 1" : "cat at 4");
}

enum { THE, CAT, SAT };

/* Of the six ordered pairs of two words, whose positions are in `at`, how many keep the bias they
 * have in "The cat sat". */
static int pairs_kept(const struct call *out, int64_t head, const int64_t at[3])
{
    const int64_t first = head * out->problem.queries;
    int kept = 0;
    for (int a = THE; a <= SAT; a++)
        for (int b = THE; b <= SAT; b++)
            kept += a != b &&
                    call_row(out, 0, first + at[a])[at[b]] == call_row(out, 0, first + a)[b];
    return kept;
}

/* "Sat the cat": sat is at 0, the at 1, cat at 2. */
static void holds_sat_the_cat(struct tally *t, const struct call *out)
{
    static const int64_t permuted[3] = { 1, 2, 0 }, shifted[3] = { 5, 6, 7 };
    for (int64_t h = 0; h < out->problem.heads; h++) {
        const int kept = pairs_kept(out, h, permuted), all = pairs_kept(out, h, shifted);
        require(t, kept == 2,
                "\"Sat the cat\" keeps %d of 6 biases, not those of the and cat alone", kept);
        require(t, all == 6, "five words before it, and %d of 6 biases are kept", all);
    }
}

/* Turned by half a turn, as the reversed sentence has it, the biases by |i - j| are the same;
 * with the mask they are not. */
static void holds_reversal(struct tally *t, const struct call *out)
{
    const bool causal = out->problem.causal;
    int changed = 0;
    for (int r = 0; r < 8; r++)
        for (int j = 0; j < 8; j++)
            changed += call_row(out, 0, r)[j] != call_row(out, 0, 7 - r)[7 - j];
    require(t, changed == (causal ? 56 : 0), "%s: %d of 64 biases changed",
            causal ? "causal" : "symmetric", changed);
}

const struct law laws_attention[] = {
    { "breaks-permutation-equivariance", .check = law_order, .concerns = encodes },
    { "dog-bites-man", .check = law_dog },
    { "cat-at-1-and-4", .check = law_cat },
    { "sat-the-cat", .holds = holds_sat_the_cat },
    { "reversal-is-unseen", .holds = holds_reversal },
    { 0 },
};
