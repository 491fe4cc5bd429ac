/*
 * Laws of the sentences in docs/encodings.md, with the numbers printed there.
 *
 *   dog-bites-man       what attention makes of the dog that bites and of the one bitten
 *   cat-at-1-and-4      one word at two positions is two vectors
 *   sat-the-cat         a permutation changes distances, a shift does not
 *   reversal-is-unseen  by |i - j| alone: ALiBi without its causal mask
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <string.h>

/* Rows for a call's activations, over and over. */
struct rows {
    int64_t n, columns;
    float x[5][4];
};

static void edit_rows(struct call *call, const void *user)
{
    const struct rows *rows = user;
    for (int64_t r = 0, n = tensor_rows(call_x(call)); r < n; r++)
        memcpy(tensor_row(call_x(call), r), rows->x[r % rows->n],
               (size_t)rows->columns * sizeof(float));
}

/* The words of "dog bites man" and "man bites dog" by position: query, key and value of their
 * words, two channels each. */
static const struct rows sentences[2] = { { 3, 2, { { 1, 0 }, { 1, 1 }, { 0, 1 } } },
                                          { 3, 2, { { 0, 1 }, { 1, 1 }, { 1, 0 } } } };
static const int64_t dog_at[2] = { 0, 2 };

struct vector {
    double x, y;
};

/* sum of softmax_j(scores) values_j. */
static struct vector attend(const double scores[3], const struct vector values[3])
{
    struct vector sum = { 0.0, 0.0 };
    double total = 0.0;
    for (int j = 0; j < 3; j++) {
        double weight = exp(scores[j]);
        total += weight;
        sum.x += weight * values[j].x;
        sum.y += weight * values[j].y;
    }
    return (struct vector){ sum.x / total, sum.y / total };
}

/* What the dog receives where row j of `encoded` is query and key of word j. */
static struct vector dog_of_rows(const float *const encoded[3], int64_t at,
                                 const struct vector values[3])
{
    double scores[3];
    for (int j = 0; j < 3; j++)
        scores[j] = ((double)encoded[at][0] * (double)encoded[j][0] +
                     (double)encoded[at][1] * (double)encoded[j][1]) /
                    sqrt(2.0);
    return attend(scores, values);
}

static void require_dog(struct tally *t, struct vector got, const double want[2],
                        const char *what)
{
    require_within(t, got.x, want[0], 0.5e-3, what);
    require_within(t, got.y, want[1], 0.5e-3, what);
}

/* Without an encoding the dog receives the same in both sentences; the rotation and the sum set
 * them apart. */
static void law_dog(struct tally *t, enum posenc_kernel kernel)
{
    static const double none[2] = { 0.802, 0.599 };
    static const double added[2][2] = { { 1.499, 1.263 }, { 1.841, 0.289 } };
    static const double turned[2][2] = { { 0.844, 0.397 }, { 0.711, 0.692 } };
    bool rope = kernel_signature(kernel) == SIGNATURE_rope;
    for (int s = 0; s < 2; s++) {
        struct problem p = problem_default(kernel);
        const float *row[3];
        struct vector values[3], sums[3];
        struct copy out;
        p.tokens = 3;
        p.freqs.dim = rope ? 0 : 2;
        p.dim = p.rotary_dim = rope ? 2 : 0;
        p.heads = rope ? 1 : 0;
        for (int j = 0; j < 3; j++) {
            row[j] = sentences[s].x[j];
            values[j] = (struct vector){ (double)row[j][0], (double)row[j][1] };
        }
        require_dog(t, dog_of_rows(row, dog_at[s], values), none, "without an encoding");
        if (run_problem(t, &p, edit_rows, &sentences[s], &out)) {
            for (int j = 0; j < 3; j++) {
                row[j] = copy_row(&out, 0, j);
                sums[j] = (struct vector){ (double)row[j][0], (double)row[j][1] };
            }
            require_dog(t, dog_of_rows(row, dog_at[s], rope ? values : sums),
                        rope ? turned[s] : added[s], "the dog, encoded");
        }
        copy_free(&out);
        t->problem = NULL;
    }
}

/* Slope 1/2 by |i - j| leaves the two dogs alike; its causal mask does not. */
static void law_dog_biased(struct tally *t, enum posenc_kernel kernel)
{
    static const double want[2][2][2] = { { { 0.899, 0.441 }, { 0.899, 0.441 } },
                                          { { 1.0, 0.0 }, { 0.899, 0.441 } } };
    for (int k = 0; k < 4; k++) {
        const struct rows *words = &sentences[k % 2];
        struct problem p = problem_default(kernel);
        struct rows scores = { .n = 3, .columns = 3 };
        struct vector values[3];
        struct copy out;
        p.heads = 8;
        p.queries = p.keys = 3;
        p.query_offset = 0;
        p.causal = k >= 2;
        for (int i = 0; i < 3; i++) {
            values[i] = (struct vector){ (double)words->x[i][0], (double)words->x[i][1] };
            for (int j = 0; j < 3; j++)
                scores.x[i][j] =
                    (words->x[i][0] * words->x[j][0] + words->x[i][1] * words->x[j][1]) /
                    sqrtf(2.0f);
        }
        if (run_problem(t, &p, edit_rows, &scores, &out)) {
            double biased[3];
            for (int j = 0; j < 3; j++)
                biased[j] = (double)copy_row(&out, 0, dog_at[k % 2])[j];
            require_dog(t, attend(biased, values), want[k / 2][k % 2],
                        p.causal ? "the dog, causal" : "the dog, symmetric");
        }
        copy_free(&out);
        t->problem = NULL;
    }
}

/* "the cat saw a cat", and what 4 sinusoidal dimensions make of both cats: to the four digits
 * that the text prints. */
static const struct rows cat_words = { 5,
                                       4,
                                       { { 0.2f, -0.1f, 0.3f, 0.4f },
                                         { 1.0f, 0.5f, -0.5f, 0.2f },
                                         { -0.3f, 0.8f, 0.6f, -0.2f },
                                         { 0.1f, 0.3f, -0.2f, 0.5f },
                                         { 1.0f, 0.5f, -0.5f, 0.2f } } };
static const double cats[2][4] = { { 1.8415, 1.0403, -0.4900, 1.2000 },
                                   { 0.2432, -0.1536, -0.4600, 1.1992 } };

static void law_cat(struct tally *t, enum posenc_kernel kernel)
{
    struct problem p = problem_default(kernel);
    struct copy out;
    p.freqs.dim = 4;
    p.tokens = 5;
    if (run_problem(t, &p, edit_rows, &cat_words, &out))
        for (int k = 0; k < 2; k++)
            for (int c = 0; c < 4; c++)
                require_within(t, (double)copy_row(&out, 0, k == 0 ? 1 : 4)[c], cats[k][c],
                               0.5e-4 + TABLE_ERROR, k == 0 ? "cat at 1" : "cat at 4");
    copy_free(&out);
}

enum { THE, CAT, SAT };

/* The bias between two words whose positions are in `at`. */
static float between(const struct problem *p, const struct copy *out, int64_t head,
                     const int64_t at[3], int a, int b)
{
    return copy_row(out, 0, head * p->queries + at[a])[at[b]];
}

/* Of the six ordered pairs of two words, how many keep the bias they have in "The cat sat". */
static int pairs_kept(const struct problem *p, const struct copy *out, int64_t head,
                      const int64_t at[3])
{
    static const int64_t in_order[3] = { 0, 1, 2 };
    int kept = 0;
    for (int a = THE; a <= SAT; a++)
        for (int b = THE; b <= SAT; b++)
            kept += a != b &&
                    between(p, out, head, at, a, b) == between(p, out, head, in_order, a, b);
    return kept;
}

/* "Sat the cat": sat is at 0, the at 1, cat at 2. */
static void law_sat_the_cat(struct tally *t, enum posenc_kernel kernel)
{
    static const int64_t permuted[3] = { 1, 2, 0 }, shifted[3] = { 5, 6, 7 };
    struct problem p = problem_default(kernel);
    struct copy out;
    p.queries = p.keys = 8;
    p.query_offset = 0;
    if (run_problem(t, &p, NULL, NULL, &out))
        for (int64_t h = 0; h < p.heads; h++) {
            int kept = pairs_kept(&p, &out, h, permuted),
                all = pairs_kept(&p, &out, h, shifted);
            require(t, kept == 2,
                    "\"Sat the cat\" keeps %d of 6 biases, not those of the and cat alone",
                    kept);
            require(t, all == 6, "five words before it, and %d of 6 biases are kept", all);
        }
    copy_free(&out);
}

/* Turned by half a turn, as the reversed sentence has it, the biases by |i - j| are the same;
 * with the mask they are not. */
static void law_reversal(struct tally *t, enum posenc_kernel kernel)
{
    for (int causal = 0; causal < 2; causal++) {
        struct problem p = problem_default(kernel);
        struct copy out;
        int64_t changed = 0;
        p.queries = p.keys = 8;
        p.query_offset = 0;
        p.causal = causal;
        if (run_problem(t, &p, NULL, NULL, &out)) {
            for (int64_t r = 0; r < 8; r++)
                for (int64_t j = 0; j < 8; j++)
                    changed += copy_row(&out, 0, r)[j] != copy_row(&out, 0, 7 - r)[7 - j];
            require(t, changed == (causal ? 56 : 0), "%s: %lld of 64 biases changed",
                    causal ? "causal" : "symmetric", (long long)changed);
        }
        copy_free(&out);
    }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_words[] = {
    { "dog-bites-man", law_dog, KERNELS(K(sinusoidal_add), K(rope_interleaved)) },
    { "dog-bites-man", law_dog_biased, KERNELS(K(alibi_add)) },
    { "cat-at-1-and-4", law_cat, KERNELS(K(sinusoidal_add)) },
    { "sat-the-cat", law_sat_the_cat, KERNELS(K(alibi), K(t5_bias)) },
    { "reversal-is-unseen", law_reversal, KERNELS(K(alibi)) },
};
const int n_laws_words = sizeof laws_words / sizeof laws_words[0];
