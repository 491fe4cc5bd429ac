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
 *   have
 *                      them, written out
 *   fairseq            with such positions, a table of sinusoids whose row of padding is zero
 *                      is fairseq's encoding
 *
 * fairseq sinusoidal_positional_embedding.py and utils.make_positions; Hugging Face
 * modeling_roberta.py, modeling_opt.py.
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The gradient ---- */

static void edit_no_x(struct call *call, const void *user)
{
    (void)user;
    struct posenc_tensor *x = call_x(call);
    for (int64_t r = 0, n = tensor_rows(x); r < n; r++)
        for (int64_t c = 0; c < x->shape[x->rank - 1]; c++)
            tensor_row(x, r)[c] = -0.0f;
}

/* <rows, g> and <table, gradient>, and the sum of what their terms are of. */
struct products {
    double forward, backward, mass;
};

static struct products products_of(const struct problem *p, const struct call *forward,
                                   const struct copy *rows, const struct call *backward,
                                   const struct copy *gradient)
{
    struct products sum = { 0 };
    for (int64_t t = 0; t < p->batch * p->tokens; t++)
        for (int64_t c = 0; c < p->dim; c++) {
            const double term =
                (double)copy_row(rows, 0, t)[c] * (double)backward->x[t * p->dim + c];
            sum.forward += term;
            sum.mass += fabs(term);
        }
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t c = 0; c < p->dim; c++)
            sum.backward +=
                (double)forward->table[r * p->dim + c] * (double)copy_row(gradient, 0, r)[c];
    return sum;
}

/* The same positions for both: an array with repeats, several batches. */
static struct problem with_repeats(enum posenc_kernel kernel)
{
    static const int64_t positions[] = { 5, 0, 31, 5, 5, 17, 0, 2, 2, 9, 5, 30, 11 };
    struct problem p = cut_problem(kernel, GIVEN_OFFSET);
    p.position_kind = POSENC_POSITIONS_I64;
    p.positions = positions;
    return p;
}

static void law_adjoint(struct tally *t, enum posenc_kernel kernel)
{
    if (!law_needs(t, POSENC_KERNEL_learned_add))
        return;
    struct problem back = with_repeats(kernel), p = with_repeats(POSENC_KERNEL_learned_add);
    struct copy rows = { .n = 0 }, gradient = { .n = 0 };
    struct call forward, backward;
    p.x_scale = 1.0f;
    if (run_problem(t, &p, edit_no_x, NULL, &rows) &&
        run_problem(t, &back, NULL, NULL, &gradient) &&
        call_create(&forward, &p, &memory_plain) == POSENC_OK) {
        if (call_create(&backward, &back, &memory_plain) == POSENC_OK) {
            const struct products sum = products_of(&p, &forward, &rows, &backward, &gradient);
            const double terms = (double)(p.batch * p.tokens); /* in a sum, at most */
            require_within(t, sum.backward, sum.forward, 2.0 * terms * 0x1p-24 * sum.mass,
                           "<table, gradient> and <rows, g>");
            call_destroy(&backward);
        }
        call_destroy(&forward);
    }
    copy_free(&rows);
    copy_free(&gradient);
    t->problem = NULL;
}

/* What a gradient is added onto. */
static void edit_onto(struct call *call, const void *user)
{
    const struct copy *onto = user;
    for (int64_t r = 0; r < call->problem.rows; r++)
        memcpy(tensor_row(call_out(call), r), copy_row(onto, 0, r),
               (size_t)call->problem.dim * sizeof(float));
}

/* Tokens [from, tokens) of a problem of one batch. */
static void edit_later(struct call *call, const void *user)
{
    const int64_t from = 5;
    struct posenc_learned_grad_args *a = &call->args.learned_grad;
    edit_onto(call, user);
    a->x.data = tensor_row(owned(&a->x), from);
    a->x.shape[a->x.rank - 2] -= from;
    a->positions.data = (const int64_t *)a->positions.data + from;
}

static void law_in_parts(struct tally *t, enum posenc_kernel kernel)
{
    struct problem all = with_repeats(kernel), first = all, later;
    struct copy want = { .n = 0 }, part = { .n = 0 }, got = { .n = 0 };
    all.batch = first.batch = 1;
    later = all;
    first.tokens = 5;
    later.accumulate = true;
    if (run_problem(t, &all, NULL, NULL, &want) && run_problem(t, &first, NULL, NULL, &part) &&
        run_problem(t, &later, edit_later, &part, &got))
        require_same_copy(t, &got, &want, "the other tokens onto the gradient of the first");
    copy_free(&want);
    copy_free(&part);
    copy_free(&got);
    t->problem = NULL;
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

static bool padding_positions(struct tally *t, int64_t padding_idx,
                              int32_t positions[BATCH][TOKENS])
{
    const enum posenc_status status =
        t->run->subject->padding_positions(BATCH, TOKENS, mask[0], padding_idx, positions[0]);
    return require(t, status == POSENC_OK, "posenc_padding_positions: %s",
                   posenc_status_string(status));
}

/* A problem of BATCH by TOKENS whose array of positions an edit fills. */
static struct problem padded(int64_t dim)
{
    struct problem p = problem_default(POSENC_KERNEL_learned_add);
    p.dim = dim;
    p.batch = BATCH;
    p.tokens = TOKENS;
    p.rows = 12;
    p.position_kind = POSENC_POSITIONS_I32;
    p.batch_shift = 1; /* an array for each batch */
    return p;
}

struct padding {
    int32_t (*positions)[TOKENS];
    const struct copy *table; /* or NULL: as it is */
    int64_t padding_idx;      /* its row there is zero */
};

static void edit_padding(struct call *call, const void *user)
{
    const struct padding *padding = user;
    struct posenc_learned_args *a = &call->args.learned;
    memcpy((void *)(uintptr_t)a->positions.data, padding->positions,
           BATCH * TOKENS * sizeof(int32_t));
    for (int64_t r = 0; padding->table && r < call->problem.rows; r++)
        for (int64_t c = 0; c < call->problem.dim; c++)
            tensor_row(owned(&a->table), r)[c] =
                r == padding->padding_idx ? 0.0f : copy_row(padding->table, 0, r)[c];
    edit_no_x(call, NULL);
}

static void law_padding(struct tally *t, enum posenc_kernel kernel)
{
    (void)kernel;
    struct problem p = padded(37);
    struct copy got = { .n = 0 };
    struct call pristine;
    int32_t positions[BATCH][TOKENS];
    if (!padding_positions(t, 1, positions))
        return;
    const struct padding padding = { positions, NULL, 1 };
    require(t, memcmp(positions, published, sizeof published) == 0,
            "positions with padding are not RoBERTa's");
    if (run_problem(t, &p, edit_padding, &padding, &got) &&
        call_create(&pristine, &p, &memory_plain) == POSENC_OK) {
        for (int64_t r = 0; r < BATCH * TOKENS; r++)
            require_same_bits(t, copy_row(&got, 0, r),
                              pristine.table + published[r / TOKENS][r % TOKENS] * p.dim, p.dim,
                              "the row of a token among padding");
        call_destroy(&pristine);
    }
    copy_free(&got);
    t->problem = NULL;
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

static void law_fairseq(struct tally *t, enum posenc_kernel kernel)
{
    (void)kernel;
    if (!law_needs(t, POSENC_KERNEL_sinusoidal))
        return;
    for (int64_t dim = 36; dim <= 37; dim++)
        for (int64_t padding_idx = 0; padding_idx <= 3; padding_idx++) {
            struct problem p = padded(dim), rows = problem_default(POSENC_KERNEL_sinusoidal);
            struct copy table = { .n = 0 }, got = { .n = 0 };
            int32_t at[BATCH][TOKENS];
            rows.freqs.dim = dim;
            rows.freqs.convention = POSENC_ENDPOINT;
            rows.layout = POSENC_SIN_COS;
            rows.tokens = p.rows;
            const struct padding padding = { at, &table, padding_idx };
            if (padding_positions(t, padding_idx, at) &&
                run_problem(t, &rows, NULL, NULL, &table) &&
                run_problem(t, &p, edit_padding, &padding, &got))
                for (int64_t r = 0; r < BATCH * TOKENS; r++)
                    for (int64_t c = 0; c < dim; c++) {
                        const int64_t position = at[r / TOKENS][r % TOKENS];
                        const bool token = mask[r / TOKENS][r % TOKENS] != 0;
                        require_within(t, (double)copy_row(&got, 0, r)[c],
                                       token ? fairseq_value(position, dim, c) : 0.0,
                                       token ? TABLE_ERROR : 0.0, "fairseq's encoding");
                    }
            copy_free(&table);
            copy_free(&got);
            t->problem = NULL;
        }
}

#define K(name) POSENC_KERNEL_##name
const struct law laws_learned[] = {
    { "adjoint", law_adjoint, KERNELS(K(learned_grad)) },
    { "in-parts", law_in_parts, KERNELS(K(learned_grad)) },
    { "padding-positions", law_padding, KERNELS(K(learned_add)) },
    { "fairseq", law_fairseq, KERNELS(K(learned_add)) },
};
const int n_laws_learned = sizeof laws_learned / sizeof laws_learned[0];
