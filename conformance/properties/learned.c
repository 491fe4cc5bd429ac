/*
 * Properties of learned tables.
 *
 *   adjoint            learned_grad is the transpose of learned_add: <row of each token, g> over the
 *                      tokens is <table, gradient> over the rows. Each element of the gradient is a
 *                      sum of n terms in f32, within (n - 1) 2^-24 of the sum of their magnitudes. The
 *                      bound is twice that, to cover terms of higher order
 *   batches, in-parts  gradients of one batch or token after the other, each added to those before,
 *                      give the bits of one call
 *   padding-positions  positions beside padding are those of fairseq, RoBERTa and OPT
 *
 * References: fairseq utils.make_positions; Hugging Face modeling_roberta.py, modeling_opt.py.
 */
#include "properties.h"
#include "conformance/problem/signature.h"

#include <math.h>
#include <string.h>

/* ---- The gradient ---- */

static void compare_adjoint(struct tally *t, const struct call *gradient,
                            const struct call *rows)
{
    const double tokens = (double)(rows->problem.batch * rows->problem.tokens);
    double magnitudes = 0.0, unused = 0.0;
    const double forward = element_inner_product(rows, gradient->x, &magnitudes);
    require_within(t, element_inner_product(gradient, rows->table, &unused), forward,
                   2.0 * tokens * 0x1p-24 * magnitudes, "<table, gradient> and <rows, g>");
}

/* Makes learned_add return the rows themselves: adding -0 changes no value. */
static void edit_zero_x(struct call *call, const void *user)
{
    (void)user;
    edit_fill_x(call, &minus_zero);
}

/* Runs the parts of size 1 along a dimension, except the last one. Each adds to the gradient of the parts before it.
 * Leaves the last part in `call`, which the caller of the edit runs. */
static void run_parts(struct call *call, enum dim dim, int64_t n)
{
    const struct call whole = *call;
    for (int64_t i = 0; i < n; i++) {
        *call = call_cut(&whole, dim, i, 1);
        call->args.learned_grad.accumulate = i > 0;
        if (i < n - 1)
            guard_run(call, call->implementation->backend, NULL);
    }
}

static void edit_batches(struct call *call, const void *user)
{
    (void)user;
    run_parts(call, DIM_BATCH, call->problem.batch);
}

static void edit_tokens(struct call *call, const void *user)
{
    (void)user;
    run_parts(call, DIM_TOKEN, call->problem.tokens);
}

static void compare_parts(struct tally *t, const struct call *whole, const struct call *parts)
{
    const float *first = call_row(whole, 0, 0);
    bool alike = true;
    for (EACH_ELEMENT(at, whole))
        alike = alike && float_to_bits(at.value) == float_to_bits(first[at.column]);
    require(t, !alike, "rows with tokens are as those without");
    require_same_outputs(t, parts, whole, "one part after the other");
}

static bool sums_positions(enum posenc_kernel kernel)
{
    return kernel_has_positions(kernel) && !kernel_has_encoded_rows(kernel);
}

/* ---- Padding ---- */

enum { BATCH = 4, TOKENS = 6 };
static const uint8_t mask[BATCH * TOKENS] = {
    1, 1, 0, 0, 0, 0, /* padding on the right */
    0, 0, 0, 1, 1, 1, /* on the left */
    1, 1, 1, 1, 1, 1, /* none */
    1, 0, 7, 0, 1, 0, /* within: any byte but 0 is a token */
};

/* Sets the positions that the library computes from the mask; all 0 if it rejects padding_idx. */
static void edit_padding(struct call *call, const void *padding_idx)
{
    int32_t *positions = (int32_t *)(uintptr_t)call_positions(call)->data;
    if (call->implementation->padding_positions(
            BATCH, TOKENS, mask, *(const int64_t *)padding_idx, positions, NULL) != POSENC_OK)
        memset(positions, 0, BATCH * TOKENS * sizeof *positions);
}

/* padding_idx of RoBERTa, and the positions that its code computes for the mask. OPT reads the same rows, as its
 * table adds an offset of 2. */
static const int64_t published_idx = 1;
static float published_row(const struct call *inputs, int64_t r, int64_t c)
{
    static const int64_t published[BATCH * TOKENS] = { 2, 3, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4,
                                                       2, 3, 4, 5, 6, 7, 2, 1, 3, 1, 4, 1 };
    return inputs->table[published[r] * inputs->problem.dim + c];
}

const struct property properties_learned[] = {
    { "adjoint", .compare_outputs = compare_adjoint, .problems = "adjoint-of-add",
      .twin = "learned_add", .twin_edit = edit_zero_x },
    { "batches", .compare_outputs = compare_parts, .twin = "", .twin_edit = edit_batches,
      .applies_to = sums_positions, .by_bits = true },
    { "in-parts", .compare_outputs = compare_parts, .twin = "", .twin_edit = edit_tokens,
      .by_bits = true },
    { "padding-positions", .expected = published_row, .edit = edit_padding,
      .user = &published_idx },
    { 0 },
};
