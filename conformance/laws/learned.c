/*
 * Laws of learned tables.
 *
 *   adjoint            learned_grad is the transpose of learned_add: <row of each token, g>
 *                      over the tokens is <table, gradient> over the rows.  Each element of the
 *                      gradient is a sum of n terms in f32, within (n - 1) 2^-24 of the sum of
 *                      magnitudes (and once more as much for what the next order adds)
 *   in-parts           the gradient of some tokens, then onto it that of the others, is that of
 *                      all, to the bit
 *   padding-positions  positions where some tokens are padding, as fairseq, RoBERTa and OPT
 *                      have them, written out
 *   fairseq            with such positions, a table of sinusoids whose row of padding is zero
 *                      is fairseq's encoding
 *
 * fairseq sinusoidal_positional_embedding.py and utils.make_positions; Hugging Face
 * modeling_roberta.py, modeling_opt.py.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <string.h>

/* ---- The gradient ---- */

static const float nothing = -0.0f; /* onto which a row is itself */

static void law_adjoint(struct tally *t, const struct problem *back)
{
    struct problem p = *back;
    p.kernel = POSENC_KERNEL_learned_add;
    if (!law_needs(t, p.kernel))
        return;
    const struct call *rows = tally_run(t, &p, edit_x, &nothing),
                      *gradient = tally_run(t, back, NULL, NULL);
    if (!rows || !gradient)
        return;
    double forward = 0.0, backward = 0.0, mass = 0.0;
    const int64_t tokens = p.batch * p.tokens;
    for (int64_t i = 0; i < tokens * p.dim; i++) {
        const double term =
            (double)call_row(rows, 0, i / p.dim)[i % p.dim] * (double)gradient->x[i];
        forward += term;
        mass += fabs(term);
    }
    for (int64_t i = 0; i < p.rows * p.dim; i++)
        backward +=
            (double)rows->table[i] * (double)call_row(gradient, 0, i / p.dim)[i % p.dim];
    require_within(t, backward, forward, 2.0 * (double)tokens * 0x1p-24 * mass,
                   "<table, gradient> and <rows, g>");
}

enum { FIRST_TOKENS = 5 };

/* The other tokens of a problem of one batch, onto the gradient of the first. */
static void edit_later(struct call *call, const void *user)
{
    struct posenc_learned_grad_args *a = &call->args.learned_grad;
    edit_onto(call, user);
    a->x.data = tensor_row(owned(&a->x), FIRST_TOKENS);
    a->x.shape[a->x.rank - 2] -= FIRST_TOKENS;
    a->positions.data = (const int64_t *)a->positions.data + FIRST_TOKENS;
}

static void law_in_parts(struct tally *t, const struct problem *all)
{
    struct problem first = *all, later = *all;
    first.tokens = FIRST_TOKENS;
    later.accumulate = true;
    const struct call *want = tally_run(t, all, NULL, NULL),
                      *part = tally_run(t, &first, NULL, NULL),
                      *got = part ? tally_run(t, &later, edit_later, part) : NULL;
    if (want && got)
        require_same_outputs(t, got, want, "the other tokens onto the gradient of the first");
}

/* ---- Padding ---- */

enum { BATCH = 4, TOKENS = 6 };
static const uint8_t mask[BATCH][TOKENS] = {
    { 1, 1, 0, 0, 0, 0 }, /* padding on the right */
    { 0, 0, 0, 1, 1, 1 }, /* on the left */
    { 1, 1, 1, 1, 1, 1 },
    { 1, 0, 7, 0, 1, 0 }, /* within: any byte but 0 is a token */
};
/* With padding_idx 1: RoBERTa's, and OPT's (a table with an offset of 2, less 1). */
static const int32_t published[BATCH][TOKENS] = {
    { 2, 3, 1, 1, 1, 1 }, { 1, 1, 1, 2, 3, 4 }, { 2, 3, 4, 5, 6, 7 }, { 2, 1, 3, 1, 4, 1 }
};

struct padding {
    int32_t positions[BATCH][TOKENS];
    const struct call *table; /* or NULL: as it is */
    int64_t padding_idx;      /* its row there is zero */
};

static bool make_padding(struct tally *t, struct padding *padding, int64_t padding_idx)
{
    padding->padding_idx = padding_idx;
    const enum posenc_status status = t->run->subject->padding_positions(
        BATCH, TOKENS, mask[0], padding_idx, padding->positions[0]);
    return require(t, status == POSENC_OK, "posenc_padding_positions: %s",
                   posenc_status_string(status));
}

static void edit_padding(struct call *call, const void *user)
{
    const struct padding *padding = user;
    struct posenc_learned_args *a = &call->args.learned;
    memcpy((void *)(uintptr_t)a->positions.data, padding->positions, sizeof padding->positions);
    for (int64_t r = 0; padding->table && r < call->problem.rows; r++)
        for (int64_t c = 0; c < call->problem.dim; c++)
            tensor_row(owned(&a->table), r)[c] =
                r == padding->padding_idx ? 0.0f : call_row(padding->table, 0, r)[c];
    edit_x(call, &nothing);
}

static void law_padding(struct tally *t, const struct problem *p)
{
    struct padding padding = { .table = NULL };
    if (!make_padding(t, &padding, 1))
        return;
    require(t, memcmp(padding.positions, published, sizeof published) == 0,
            "positions with padding are not RoBERTa's");
    const struct call *got = tally_run(t, p, edit_padding, &padding);
    for (int64_t r = 0; got && r < BATCH * TOKENS; r++)
        require_same_bits(t, call_row(got, 0, r),
                          got->table + published[r / TOKENS][r % TOKENS] * p->dim, p->dim,
                          "the row of a token among padding");
}

/* Row `position` of fairseq's table: sines, then cosines, at frequencies 10000^(-i/(n - 1)); a
 * zero after an odd number. */
static double fairseq_value(int64_t position, int64_t dim, int64_t column)
{
    const int64_t n = dim / 2;
    if (column >= 2 * n)
        return 0.0;
    const double omega = exp(-log(10000.0) * (double)(column % n) / (double)(n - 1));
    return column < n ? sin((double)position * omega) : cos((double)position * omega);
}

static void law_fairseq(struct tally *t, const struct problem *p)
{
    struct problem rows = problem_default(POSENC_KERNEL_sinusoidal);
    if (!law_needs(t, rows.kernel))
        return;
    rows.freqs.dim = p->dim;
    rows.freqs.convention = POSENC_ENDPOINT;
    rows.layout = POSENC_SIN_COS;
    rows.tokens = p->rows;
    for (int64_t padding_idx = 0; padding_idx <= 3; padding_idx++) {
        struct padding padding = { .table = tally_run(t, &rows, NULL, NULL) };
        if (!padding.table || !make_padding(t, &padding, padding_idx))
            return;
        const struct call *got = tally_run(t, p, edit_padding, &padding);
        for (int64_t r = 0; got && r < BATCH * TOKENS; r++)
            for (int64_t c = 0; c < p->dim; c++) {
                const bool token = mask[r / TOKENS][r % TOKENS] != 0;
                const int64_t position = padding.positions[r / TOKENS][r % TOKENS];
                require_within(t, (double)call_row(got, 0, r)[c],
                               token ? fairseq_value(position, p->dim, c) : 0.0,
                               token ? TABLE_ERROR : 0.0, "fairseq's encoding");
            }
    }
}

const struct law laws_learned[] = {
    LAW("adjoint", law_adjoint, .problems = "adjoint-of-add"),
    LAW("in-parts", law_in_parts),
    LAW("padding-positions", law_padding),
    LAW("fairseq", law_fairseq),
    { 0 },
};
