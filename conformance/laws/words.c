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
    for (int64_t r = 0, n = storage_rows(call_x(call)); r < n; r++)
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

static struct vector vector_of(const float *row)
{
    return (struct vector){ (double)row[0], (double)row[1] };
}

/* Without an encoding the dog receives the same in both sentences; the rotation and the sum set
 * them apart. */
static void law_dog(struct tally *t, const struct problem *p)
{
    static const double none[2] = { 0.802, 0.599 };
    static const double added[2][2] = { { 1.499, 1.263 }, { 1.841, 0.289 } };
    static const double turned[2][2] = { { 0.844, 0.397 }, { 0.711, 0.692 } };
    const bool turns = p->rotary_dim > 0;
    for (int s = 0; s < 2; s++) {
        const float *row[3];
        struct vector values[3], sums[3];
        for (int j = 0; j < 3; j++) {
            row[j] = sentences[s].x[j];
            values[j] = vector_of(row[j]);
        }
        require_dog(t, dog_of_rows(row, dog_at[s], values), none, "without an encoding");
        const struct call *out = tally_run(t, p, edit_rows, &sentences[s]);
        if (!out)
            return;
        for (int j = 0; j < 3; j++) {
            row[j] = call_row(out, 0, j);
            sums[j] = vector_of(row[j]);
        }
        require_dog(t, dog_of_rows(row, dog_at[s], turns ? values : sums),
                    turns ? turned[s] : added[s], "the dog, encoded");
    }
}

/* Slope 1/2 by |i - j| leaves the two dogs alike; its causal mask does not. */
static void law_dog_biased(struct tally *t, const struct problem *p)
{
    static const double want[2][2][2] = { { { 0.899, 0.441 }, { 0.899, 0.441 } },
                                          { { 1.0, 0.0 }, { 0.899, 0.441 } } };
    for (int s = 0; s < 2; s++) {
        const struct rows *words = &sentences[s];
        struct rows scores = { .n = 3, .columns = 3 };
        struct vector values[3];
        double biased[3];
        for (int i = 0; i < 3; i++) {
            values[i] = vector_of(words->x[i]);
            for (int j = 0; j < 3; j++)
                scores.x[i][j] =
                    (words->x[i][0] * words->x[j][0] + words->x[i][1] * words->x[j][1]) /
                    sqrtf(2.0f);
        }
        const struct call *out = tally_run(t, p, edit_rows, &scores);
        for (int j = 0; out && j < 3; j++)
            biased[j] = (double)call_row(out, 0, dog_at[s])[j];
        if (out)
            require_dog(t, attend(biased, values), want[p->causal][s],
                        p->causal ? "the dog, causal" : "the dog, symmetric");
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

static void law_cat(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, edit_rows, &cat_words);
    for (int k = 0; out && k < 2; k++)
        for (int c = 0; c < 4; c++)
            require_within(t, (double)call_row(out, 0, k == 0 ? 1 : 4)[c], cats[k][c],
                           0.5e-4 + TABLE_ERROR, k == 0 ? "cat at 1" : "cat at 4");
}

enum { THE, CAT, SAT };

/* Of the six ordered pairs of two words, whose positions are in `at`, how many keep the bias they
 * have in "The cat sat". */
static int pairs_kept(const struct call *out, int64_t head, const int64_t at[3])
{
    const int64_t queries = out->problem.queries;
    int kept = 0;
    for (int a = THE; a <= SAT; a++)
        for (int b = THE; b <= SAT; b++)
            kept += a != b && call_row(out, 0, head * queries + at[a])[at[b]] ==
                                  call_row(out, 0, head * queries + a)[b];
    return kept;
}

/* "Sat the cat": sat is at 0, the at 1, cat at 2. */
static void law_sat_the_cat(struct tally *t, const struct problem *p)
{
    static const int64_t permuted[3] = { 1, 2, 0 }, shifted[3] = { 5, 6, 7 };
    const struct call *out = tally_run(t, p, NULL, NULL);
    for (int64_t h = 0; out && h < p->heads; h++) {
        const int kept = pairs_kept(out, h, permuted), all = pairs_kept(out, h, shifted);
        require(t, kept == 2,
                "\"Sat the cat\" keeps %d of 6 biases, not those of the and cat alone", kept);
        require(t, all == 6, "five words before it, and %d of 6 biases are kept", all);
    }
}

/* Turned by half a turn, as the reversed sentence has it, the biases by |i - j| are the same;
 * with the mask they are not. */
static void law_reversal(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, NULL, NULL);
    int64_t changed = 0;
    for (int64_t r = 0; out && r < 8; r++)
        for (int64_t j = 0; j < 8; j++)
            changed += call_row(out, 0, r)[j] != call_row(out, 0, 7 - r)[7 - j];
    require(t, changed == (p->causal ? 56 : 0), "%s: %lld of 64 biases changed",
            p->causal ? "causal" : "symmetric", (long long)changed);
}

const struct law laws_words[] = {
    LAW("dog-bites-man", law_dog),
    LAW("dog-bites-man", law_dog_biased, .problems = "dog-bites-man-biased"),
    LAW("cat-at-1-and-4", law_cat),
    LAW("sat-the-cat", law_sat_the_cat),
    LAW("reversal-is-unseen", law_reversal),
    { 0 },
};
