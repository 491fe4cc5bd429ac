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
 *   layouts                 the bits of dense tensors for tensors backwards, far apart, or with reversed
 *                           order of dimensions, independently of each other and in guarded memory;
 *                           and for two outputs, or x and out, that are woven into each other
 */
#include "properties.h"

#include "conformance/problem/signature.h"

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

/* ---- Layouts ---- */

enum layout { FORWARDS, BACKWARDS, REVERSED_DIMS, CLOSE, ORDERS = CLOSE };

/* Sets the strides of all dimensions but the last, with a few elements between rows. The last of
 * these dimensions is innermost, or with REVERSED_DIMS the first. CLOSE: no gap between rows, only between
 * runs of them. */
static void lay_out(const struct problem *p, const struct tensor_row *row, enum layout order,
                    struct tensor_layout *to)
{
    static const int64_t gaps[] = {
        [FORWARDS] = 97, [BACKWARDS] = 3, [REVERSED_DIMS] = 3, [CLOSE] = 0
    };
    const int n = tensor_dims(row) - 1;
    const int64_t sign = order == BACKWARDS ? -1 : 1;
    int64_t stride = problem_extent(p, row->dims[n]) + gaps[order];
    to->n_strides = n;
    to->offset_bytes = order == FORWARDS ? 4 : 0;
    for (int k = 0; k < n; k++) {
        const int d = order == REVERSED_DIMS ? k : n - 1 - k;
        to->stride[d] = sign * stride;
        stride *= problem_extent(p, row->dims[d]) + 1;
    }
}

/* Lays out positions backwards, far apart, or with the tokens of all batches alternately. */
static void lay_out_positions(const struct problem *p, enum layout order,
                              struct tensor_layout *to)
{
    const int64_t batch = p->batch, tokens = p->tokens;
    to->n_strides = MOST_STRIDES;
    const int64_t strides[ORDERS][2] = { [FORWARDS] = { 5 * tokens, 5 },
                                         [BACKWARDS] = { -tokens, -1 },
                                         [REVERSED_DIMS] = { 1, batch } };
    to->stride[0] = strides[order][0];
    to->stride[1] = strides[order][1];
    to->stride[2] = 5 * batch * tokens;
}

static struct problem with_layouts(const struct problem *dense, int shift)
{
    struct problem p = *dense;
    int k = shift;
    for (EACH_TENSOR(row, signature_of(p.kernel))) {
        struct tensor_layout *to = &p.layouts[row - signature_of(p.kernel)->tensors];
        if (row->form == FORM_TENSOR)
            lay_out(&p, row, (enum layout)(k++ % ORDERS), to);
        else if (row->form == FORM_POSITIONS && p.position_kind != POSENC_OFFSET)
            lay_out_positions(&p, (enum layout)(k++ % ORDERS), to);
    }
    return p;
}

/* Runs a problem in guarded memory, flush with its end or its start. */
static void check_guarded(struct tally *t, const struct problem *p, enum guard_mode mode,
                          struct guard *guard, const struct call *want)
{
    struct call call;
    if (!tally_run_guarded(t, guard, mode, p, &call, NULL))
        return;
    require_same_outputs(t, &call, want, "the same values elsewhere");
    call_destroy(&call);
}

/* Weaves two tensors into each other: densely, with gaps between runs of rows, and with gaps
 * everywhere. */
static void check_woven(struct tally *t, const struct problem *dense, enum woven how,
                        struct guard *guard, const struct call *want)
{
    const struct tensor_row *first = signature_output(signature_of(dense->kernel), 0);
    struct problem ways[] = { *dense, *dense, with_layouts(dense, (int)how) };
    lay_out(dense, first, CLOSE,
            &ways[1].layouts[first - signature_of(dense->kernel)->tensors]);
    for (int i = 0; i < 3; i++) {
        ways[i].woven = how;
        check_guarded(t, &ways[i], i % 2 ? GUARD_START : GUARD_END, guard, want);
    }
}

/* Returns the last way of weaving two tensors to try. Quick runs weave only two outputs. */
static int most_woven(const struct tally *t, const struct problem *p)
{
    const struct tensor_row *other = p->in_place ? NULL : kernel_woven_row(p->kernel);
    const bool all = t->run->options->full || (other && other->role == ROLE_OUTPUT);
    return other && all ? WOVEN_TENSORS : WOVEN_NONE;
}

static void property_layouts(struct tally *t, const struct problem *dense)
{
    struct guard *guard = guard_create();
    const struct call *want = tally_run(t, dense, NULL, NULL);
    if (!guard)
        tally_skip(t, "this system has no memory that is guarded");
    for (int shift = 0; guard && want && shift < ORDERS; shift++) {
        const struct problem p = with_layouts(dense, shift);
        check_guarded(t, &p, shift % 2 ? GUARD_START : GUARD_END, guard, want);
    }
    for (int how = WOVEN_ROWS; guard && want && how <= most_woven(t, dense); how++)
        check_woven(t, dense, (enum woven)how, guard, want);
    guard_destroy(guard);
}

/* ---- All of them ---- */

const struct property properties_call[] = {
    { "in-place", .twin = "in_place=true", .concerns = kernel_in_place, .problems = "parts" },
    { "numbering", .compares = compare_numbering, .concerns = has_positions,
      .edit = edit_numbered, .twin = "position_kind=offset" },
    { "batches", .holds = holds_batches, .concerns = encodes_positions,
      .edit = edit_same_rows },
    { "add-is-build-then-add", .check = property_add, .concerns = adds_built_term,
      .problems = "parts" },
    { "layouts", .check = property_layouts, .concerns = is_any_kernel, .problems = "parts",
      .in_place = true },
    { 0 },
};
