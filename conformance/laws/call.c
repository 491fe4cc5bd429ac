/*
 * Laws of every kernel: a row's value depends on its own position and parameters, not on how
 * the call was placed or numbered.
 *
 *   in-place    the same bits with the output on top of the input
 *   numbering   so do positions as offset, i32, i64 and f32 arrays, in any order
 *   batches     every batch of a call with an offset has the encoding of the first: the
 *               position is the token's, never the batch's index; a gradient over all of them
 *               is that over the first, and onto it that over the next
 *   add         x + encoding equals building the encoding, then one fma per element
 */
#define _POSIX_C_SOURCE 200809L
#include "laws.h"

#include <math.h>
#include <string.h>

/* ---- In place, numbering, batches ---- */

static void require_same_problems(struct tally *t, const struct problem *a,
                                  const struct problem *b, const char *what)
{
    const struct call *want = tally_run(t, b, NULL, NULL), *got = tally_run(t, a, NULL, NULL);
    if (want && got)
        require_same_outputs(t, got, want, what);
}

static void law_in_place(struct tally *t, const struct problem *of)
{
    for (int given = GIVEN_OFFSET; given <= GIVEN_ARRAY; given++)
        for (int transpose = 0; transpose < 2; transpose++) {
            struct problem apart = cut_problem(of->kernel, (enum given)given), same;
            apart.transpose = transpose;
            same = apart;
            same.in_place = true;
            require_same_problems(t, &same, &apart, "in place");
        }
}

/* Token i of 13 at the place of token 5 i mod 13: far jumps both ways. */
enum { CUT_TOKENS = 13, JUMP = 5 };

/* Where the encoding of row r stands in a call whose tokens are in order; sums are by position
 * already. */
static int64_t in_order(enum posenc_kernel kernel, int64_t heads, int64_t r)
{
    heads = kernel_counts(kernel, DIM_HEAD) ? heads : 1;
    return encodes(kernel) ? r / heads * JUMP % CUT_TOKENS * heads + r % heads : r;
}

static void law_numbering(struct tally *t, const struct problem *of)
{
    static const char *const what[] = { [POSENC_POSITIONS_I32] = "positions as an i32 array",
                                        [POSENC_POSITIONS_I64] = "positions as an i64 array",
                                        [POSENC_POSITIONS_F32] = "positions as an f32 array" };
    struct problem offset = cut_problem(of->kernel, GIVEN_OFFSET), array = offset, shuffled;
    const int last = kernel_has_plan(of->kernel) ? POSENC_POSITIONS_F32 : POSENC_POSITIONS_I64;
    for (int kind = POSENC_POSITIONS_I32; kind <= last; kind++) {
        array.position_kind = (enum posenc_position_kind)kind;
        require_same_problems(t, &array, &offset, what[kind]);
    }
    int64_t positions[CUT_TOKENS];
    for (int64_t i = 0; i < CUT_TOKENS; i++)
        positions[i] = offset.first + i * JUMP % CUT_TOKENS;
    offset.batch = 1;
    shuffled = offset;
    shuffled.position_kind = POSENC_POSITIONS_I64;
    shuffled.positions = positions;
    const struct call *straight = tally_run(t, &offset, edit_same_rows, NULL),
                      *mixed = tally_run(t, &shuffled, edit_same_rows, NULL);
    for (int o = 0; straight && mixed && o < mixed->n_outputs; o++)
        for (int64_t r = 0; r < mixed->outputs[o].rows; r++)
            require_same_bits(t, call_row(mixed, o, r),
                              call_row(straight, o, in_order(of->kernel, offset.heads, r)),
                              mixed->outputs[o].width, "positions out of order");
}

static void check_batches(struct tally *t, const struct problem *p)
{
    const struct call *out = tally_run(t, p, edit_same_rows, NULL);
    for (int o = 0; out && o < out->n_outputs; o++) {
        const int64_t rows = out->outputs[o].rows / p->batch, width = out->outputs[o].width;
        require(t,
                memcmp(call_row(out, o, 0), call_row(out, o, rows - 1),
                       (size_t)width * sizeof(float)) != 0,
                "first and last token have the same encoding");
        for (int64_t r = rows; r < out->outputs[o].rows; r++)
            require_same_bits(t, call_row(out, o, r), call_row(out, o, r % rows), width,
                              "same token of another batch");
    }
}

/* The rows of x that batch b of a larger call has, and what its gradient goes onto. */
struct batch {
    const struct call *whole, *onto;
    int64_t b;
};

static void edit_batch(struct call *call, const void *user)
{
    const struct batch *batch = user;
    const struct problem *p = &call->problem;
    for (int64_t t = 0; t < p->tokens; t++)
        memcpy(tensor_row(call_x(call), t),
               batch->whole->x + (batch->b * p->tokens + t) * p->dim,
               (size_t)p->dim * sizeof(float));
    if (batch->onto)
        edit_onto(call, batch->onto);
}

static void check_batches_of_sums(struct tally *t, const struct problem *p)
{
    struct problem one = *p;
    struct batch batch = { tally_run(t, p, NULL, NULL), NULL, 0 };
    one.batch = 1;
    for (; batch.whole && batch.b < p->batch; batch.b++) {
        one.accumulate = batch.b > 0;
        batch.onto = tally_run(t, &one, edit_batch, &batch);
        if (!batch.onto)
            return;
    }
    if (!batch.whole)
        return;
    require(t,
            memcmp(call_row(batch.onto, 0, p->first), call_row(batch.onto, 0, 0),
                   (size_t)p->dim * sizeof(float)) != 0,
            "a row with tokens is one without");
    require_same_outputs(t, batch.onto, batch.whole, "one batch after the other");
}

static void law_batches(struct tally *t, const struct problem *of)
{
    for (int token_major = 0; token_major < 2; token_major++) {
        struct problem p = cut_problem(of->kernel, GIVEN_OFFSET);
        p.token_major = token_major;
        (encodes(of->kernel) ? check_batches : check_batches_of_sums)(t, &p);
    }
}

/* ---- Adds ---- */

/* The kernel of the same signature that builds what this one adds; itself where there is none. */
static enum posenc_kernel builder_of(enum posenc_kernel kernel)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (kernel_signature((enum posenc_kernel)k) == kernel_signature(kernel) &&
            !kernel_takes_x((enum posenc_kernel)k))
            return (enum posenc_kernel)k;
    return kernel;
}

static bool adds_what_another_builds(enum posenc_kernel kernel)
{
    return builder_of(kernel) != kernel;
}

static void require_sum(struct tally *t, const struct problem *p, const struct problem *table)
{
    const struct call *built = tally_run(t, table, NULL, NULL),
                      *got = tally_run(t, p, NULL, NULL), *inputs = tally_call(t, NULL, p);
    if (!built || !got || !inputs)
        return;
    const int64_t width = got->outputs[0].width;
    for (int64_t r = 0; r < got->outputs[0].rows; r++)
        for (int64_t c = 0; c < width; c++) {
            const float term = call_row(built, 0, r % built->outputs[0].rows)[c];
            const float want = fmaf(inputs->x[r * width + c], p->x_scale, term);
            require_same_bits(t, &call_row(got, 0, r)[c], &want, 1, "build, then add");
        }
}

static void law_add(struct tally *t, const struct problem *of)
{
    const enum posenc_kernel builder = builder_of(of->kernel);
    if (!law_needs(t, builder))
        return;
    for (int v = 0; v < 6; v++) {
        struct problem p = cut_problem(of->kernel, v & 1 ? GIVEN_ARRAY : GIVEN_OFFSET), table;
        p.layout = (enum posenc_layout)(v % 3);
        if (kernel_has_plan(of->kernel))
            p.scale = v == 4 ? 0.125 : 1.0;
        p.freqs.profile = v > 3 ? POSENC_HF_F32 : POSENC_EXACT;
        p.special = v == 3; /* NaN and infinities go through */
        table = p;
        table.kernel = builder;
        if (kernel_on_scores(builder) && !problem_reads(&table, DIM_BATCH))
            table.batch = 1;
        require_sum(t, &p, &table);
    }
}

/* learned_add: out = fma(x, x_scale, row); the rows are inputs, so the whole kernel is one
 * line. */
static float row_by_hand(const struct call *inputs, int64_t r, int64_t c)
{
    const struct problem *p = &inputs->problem;
    const int64_t row = problem_position(p, r / p->tokens, r % p->tokens);
    return inputs->table[row * p->dim + c];
}

const struct law laws_call[] = {
    LAW("in-place", law_in_place, .concerns = kernel_in_place),
    LAW("numbering", law_numbering, .concerns = has_positions),
    LAW("batches", law_batches, .concerns = has_positions),
    LAW("add-is-build-then-add", law_add, .concerns = adds_what_another_builds),
    BY_HAND("row-plus-x", row_by_hand),
    { 0 },
};
