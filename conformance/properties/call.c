/*
 * Properties of every kernel: the value of a row depends on its own position and parameters, not on
 * memory or on the other rows.
 *
 *   in-place                the same bits with the output on top of the input
 *   numbering               the same bits for positions as an offset and as i32, i64 and f32 arrays,
 *                           in any order
 *   batches                 every batch of a call with an offset has the encoding of the first, as
 *                           the token decides the position, never the batch
 *   add-is-build-then-add   x + encoding equals building the encoding, then one fma per element
 */
#include "properties.h"

#include <math.h>
#include <string.h>

/* ---- Numbering ---- */

/* Makes every row of x the first one, so that the output is a function of position alone. */
static void edit_same_rows(struct call *call, const void *user)
{
    (void)user;
    repeat_rows(call_x(call), 1);
}

/* Does the same for problems with an array of positions. */
static void edit_numbered(struct call *call, const void *user)
{
    if (call->problem.positions)
        edit_same_rows(call, user);
}

/* Compares each row with that of its position in a call whose tokens are in order. Rows of sums belong
 * to positions already. */
static void compare_numbering(struct tally *t, const struct call *out, const struct call *order)
{
    const struct problem *p = &out->problem;
    const int64_t heads = has_output_dim(p->kernel, DIM_HEAD) ? p->heads : 1;
    for (EACH_ELEMENT(at, out)) {
        const int64_t token = at.row / heads % p->tokens, batch = at.row / heads / p->tokens;
        const int64_t place = batch * p->tokens + problem_position(p, 0, token) - p->first;
        const int64_t row =
            has_encoded_rows(p->kernel) ? place * heads + at.row % heads : at.row;
        require_element(t, &at, call_row(order, at.output, row)[at.column],
                        "of positions from an offset");
    }
}

/* ---- Batches ---- */

static bool encodes_positions(enum posenc_kernel kernel)
{
    return has_positions(kernel) && has_encoded_rows(kernel);
}

static void holds_batches(struct tally *t, const struct call *out)
{
    const int64_t rows = out->outputs[0].rows / out->problem.batch;
    require(t,
            memcmp(call_row(out, 0, 0), call_row(out, 0, rows - 1),
                   (size_t)out->outputs[0].width * sizeof(float)) != 0,
            "first and last token have the same encoding");
    for (EACH_ELEMENT(at, out))
        require_element(t, &at, call_row(out, at.output, at.row % rows)[at.column],
                        "of the same token of the first batch");
}

/* ---- Adds ---- */

/* Returns the kernel of the same signature that builds the term that this one adds, or itself. */
static enum posenc_kernel find_builder(enum posenc_kernel kernel)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (kernel_signature((enum posenc_kernel)k) == kernel_signature(kernel) &&
            !kernel_takes_x((enum posenc_kernel)k))
            return (enum posenc_kernel)k;
    return kernel;
}

static bool adds_built_term(enum posenc_kernel kernel)
{
    return find_builder(kernel) != kernel;
}

/* Returns false for biases that are equal for all batches, and so are built once. */
static bool depends_on_batch(const struct problem *p)
{
    for (EACH_TENSOR(row, signature_of(p->kernel)))
        if (row->role == ROLE_INPUT && row->dims[0] == DIM_BATCH && tensor_present(p, row) &&
            !(row->shared && row->shared(p)))
            return true;
    return !kernel_on_scores(p->kernel);
}

static void property_add(struct tally *t, const struct problem *p)
{
    struct problem table = *p;
    table.kernel = find_builder(p->kernel);
    table.batch = depends_on_batch(&table) ? p->batch : 1;
    if (!property_needs(t, table.kernel))
        return;
    const struct call *built = tally_run(t, &table, NULL, NULL),
                      *got = built ? tally_run(t, p, NULL, NULL) : NULL;
    for (EACH_ELEMENT(at, got)) {
        const float term = call_row(built, 0, at.row % built->outputs[0].rows)[at.column];
        require_element(t, &at, fmaf(x_of(&at), p->x_scale, term), "built, then added,");
    }
}

const struct property properties_call[] = {
    { "in-place", .twin = "in_place=true", .concerns = kernel_in_place, .problems = "parts" },
    { "numbering", .compares = compare_numbering, .concerns = has_positions,
      .edit = edit_numbered, .twin = "position_kind=offset" },
    { "batches", .holds = holds_batches, .concerns = encodes_positions,
      .edit = edit_same_rows },
    { "add-is-build-then-add", .check = property_add, .concerns = adds_built_term,
      .problems = "parts" },
    { 0 },
};
