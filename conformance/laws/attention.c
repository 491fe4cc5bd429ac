/*
 * What an encoding is for.  Attention without one does not see the order of its tokens: permute
 * the tokens and the outputs are permuted alike,
 *
 *     out(P x) = P out(x),      out_i = sum_j softmax_j(q_i . k_j / sqrt(d)) v_j,
 *
 * since the sums run over the same terms.  Each encoding must break that.  The attention here
 * is one head in f64 with q = k = v = x; rounding moves it by less than 1e-12, and the law asks
 * that an encoding moves it by more than 1e-3.
 */
#define _POSIX_C_SOURCE 200809L
#include "conformance/problem/inputs.h"
#include "laws.h"

#include <math.h>
#include <string.h>

enum { T = 6, DIM = 8 };
static const int permutation[T] = { 3, 0, 5, 1, 4, 2 };

struct tokens {
    double x[T][DIM];
};

/* Tokens of magnitude about 1: a function of token and channel alone. */
static struct tokens some_tokens(void)
{
    struct tokens tokens;
    for (int t = 0; t < T; t++)
        for (int c = 0; c < DIM; c++)
            tokens.x[t][c] =
                (double)(float)((double)(mix64(7, (uint64_t)(t * DIM + c)) >> 40) * 0x1p-23 -
                                1.0);
    return tokens;
}

static struct tokens permuted(const struct tokens *in)
{
    struct tokens out;
    for (int t = 0; t < T; t++)
        memcpy(out.x[t], in->x[permutation[t]], sizeof out.x[t]);
    return out;
}

/* x into a call whose rows are tokens (further rows, batches and heads, repeat them). */
static void edit_tokens(struct call *call, const void *user)
{
    const struct tokens *tokens = user;
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = x->data ? storage_rows(x) : 0; r < n; r++)
        for (int64_t c = 0; c < DIM; c++)
            tensor_row(x, r)[c] = (float)tokens->x[r % T][c];
}

struct scores {
    double s[T][T];
};

static struct scores products(const struct tokens *a)
{
    struct scores scores = { 0 };
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++)
            for (int c = 0; c < DIM; c++)
                scores.s[i][j] += a->x[i][c] * a->x[j][c] / sqrt((double)DIM);
    return scores;
}

static void edit_scores(struct call *call, const void *user)
{
    const struct scores *scores = user;
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = x->data ? storage_rows(x) : 0; r < n; r++)
        for (int64_t j = 0; j < T; j++)
            tensor_row(x, r)[j] = (float)scores->s[r % T][j];
}

/* Softmax of each row. */
static struct scores weights_of(const struct scores *scores)
{
    struct scores weights;
    for (int i = 0; i < T; i++) {
        double sum = 0.0;
        for (int j = 0; j < T; j++)
            sum += weights.s[i][j] = exp(scores->s[i][j]);
        for (int j = 0; j < T; j++)
            weights.s[i][j] /= sum;
    }
    return weights;
}

static struct tokens attend(const struct scores *scores, const struct tokens *values)
{
    struct scores weights = weights_of(scores);
    struct tokens out = { 0 };
    for (int i = 0; i < T; i++)
        for (int j = 0; j < T; j++)
            for (int c = 0; c < DIM; c++)
                out.x[i][c] += weights.s[i][j] * values->x[j][c];
    return out;
}

/* What a table that is learned holds for a column, and its product with a token. */
static double learned(int64_t column, int c)
{
    return (double)(mix64(9, (uint64_t)(column * DIM + c)) >> 40) * 0x1p-23 - 1.0;
}

static float term(const struct tokens *tokens, int64_t token, int64_t column)
{
    double sum = 0.0;
    for (int c = 0; c < DIM; c++)
        sum += tokens->x[token][c] * learned(column, c);
    return (float)sum;
}

/* Scores into x and terms of each token's content. */
struct content {
    const struct tokens *tokens;
    const struct scores *scores;
};

static void edit_content(struct call *call, const void *user)
{
    const struct content *content = user;
    edit_scores(call, content->scores);
    if (!call->c2p && !call->p2c)
        return;
    const struct posenc_tensor *terms[] = { owned(&call->args.relative.c2p),
                                            owned(&call->args.relative.p2c) };
    for (int k = 0; k < 2; k++)
        for (int64_t r = 0, n = terms[k]->data ? storage_rows(terms[k]) : 0; r < n; r++)
            for (int64_t c = 0; c < call->columns; c++)
                tensor_row(terms[k], r)[c] = term(content->tokens, r % T, c);
}

/* Shaw's values: what the weights of each column sum to, times what is learned for it. */
static struct tokens with_values(const struct call *sums, struct tokens out)
{
    for (int i = 0; i < T; i++)
        for (int64_t column = 0; column < sums->columns; column++)
            for (int c = 0; c < DIM; c++)
                out.x[i][c] += (double)call_row(sums, 0, i)[column] * learned(column, c);
    return out;
}

/* Channels turned by a table. */
static struct tokens turned(const struct tokens *x, const struct call *table)
{
    struct tokens out;
    for (int t = 0; t < T; t++)
        for (int i = 0; i < DIM / 2; i++) {
            double c = (double)call_row(table, 0, t)[i], s = (double)call_row(table, 1, t)[i];
            out.x[t][2 * i] = x->x[t][2 * i] * c - x->x[t][2 * i + 1] * s;
            out.x[t][2 * i + 1] = x->x[t][2 * i + 1] * c + x->x[t][2 * i] * s;
        }
    return out;
}

/* Attention over x with what the kernel gave: weights by column, scores or a bias of them,
 * cosines and sines, tokens or what is added to them. */
static struct tokens attend_encoded(const struct call *out, const struct tokens *x)
{
    const enum posenc_kernel kernel = out->problem.kernel;
    const bool alone = !kernel_takes_x(kernel);
    struct tokens encoded = *x;
    struct scores scores = products(x);
    if (kernel_counts(kernel, DIM_COLUMN))
        return with_values(out, attend(&scores, x));
    if (kernel_on_scores(kernel)) {
        for (int i = 0; i < T; i++)
            for (int j = 0; j < T; j++)
                scores.s[i][j] =
                    (double)call_row(out, 0, i)[j] + (alone ? scores.s[i][j] : 0.0);
        return attend(&scores, x);
    }
    if (out->n_outputs == 2)
        encoded = turned(x, out);
    for (int t = 0; t < T && out->n_outputs == 1; t++)
        for (int c = 0; c < DIM; c++)
            encoded.x[t][c] = (double)call_row(out, 0, t)[c] + (alone ? x->x[t][c] : 0.0);
    scores = products(&encoded);
    return attend(&scores, x);
}

static double distance(const struct tokens *a, const struct tokens *b)
{
    double most = 0.0;
    for (int t = 0; t < T; t++)
        for (int c = 0; c < DIM; c++)
            most = fmax(most, fabs(a->x[t][c] - b->x[t][c]));
    return most;
}

static struct problem attention_problem(enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    p.tokens = p.queries = p.keys = T;
    p.dim = p.freqs.dim = DIM;
    p.rotary_dim = p.rotary_dim ? DIM : 0;
    p.heads = p.heads ? 1 : 0;
    p.window_height = 2;
    p.window_width = T / 2;
    p.query_offset = 0;
    p.first = 0;
    return p;
}

static bool encode(struct tally *t, const struct problem *p, const struct tokens *x,
                   struct tokens *out)
{
    struct scores scores = products(x);
    if (kernel_counts(p->kernel, DIM_COLUMN))
        scores = weights_of(&scores);
    const struct content content = { x, &scores };
    const struct call *call = kernel_on_scores(p->kernel)
                                  ? tally_run(t, p, edit_content, &content)
                                  : tally_run(t, p, edit_tokens, x);
    if (call)
        *out = attend_encoded(call, x);
    return call != NULL;
}

static void law_order(struct tally *t, const struct problem *of)
{
    struct tokens x = some_tokens(), px = permuted(&x);
    struct scores plain = products(&x), plain_permuted = products(&px);
    struct tokens of_x = attend(&plain, &x), of_px = attend(&plain_permuted, &px),
                  p_of_x = permuted(&of_x);
    require(t, distance(&of_px, &p_of_x) < 1e-12,
            "attention without an encoding sees the order of tokens");
    struct problem p = attention_problem(of->kernel);
    struct tokens encoded_x, encoded_px;
    if (encode(t, &p, &x, &encoded_x) && encode(t, &p, &px, &encoded_px)) {
        struct tokens p_of_encoded = permuted(&encoded_x);
        require(t, distance(&encoded_px, &p_of_encoded) > 1e-3,
                "attention with this encoding does not see the order of tokens");
    }
}

const struct law laws_attention[] = {
    LAW("breaks-permutation-equivariance", law_order, .concerns = encodes),
    { 0 },
};
