/*
 * Properties of every kernel: the value of a row depends on its own position and parameters, not on memory or on the
 * other rows.
 *
 *   in-place                the same bits with the output on top of the input
 *   numbering               the same bits for positions as an offset and as i32, i64 and f32 arrays,
 *                           in any order
 *   batches                 every batch of a call with an offset has the encoding of the first, as
 *                           only the token decides the position
 *   add-is-build-then-add   x + encoding equals building the encoding, then one fma per element
 *   layouts                 the bits of dense tensors, in guarded memory: for tensors backwards, far
 *                           apart, or with reversed order of dimensions, each tensor in another way;
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
    tensor_repeat_rows(call_x(call), 1);
}

/* Does the same, but only for problems with an array of positions. */
static void edit_numbered(struct call *call, const void *user)
{
    if (call->problem.positions)
        edit_same_rows(call, user);
}

/* Compares each row with the row of its position in a call whose tokens are in order. An output of sums
 * (learned_grad) has a row for each position, and is compared row by row. Row place * heads + head of `order` has
 * the position p->first + place. */
static void compare_numbering(struct tally *t, const struct call *out, const struct call *order)
{
    const struct problem *p = &out->problem;
    const int64_t heads = kernel_has_output_dim(p->kernel, DIM_HEAD) ? p->heads : 1;
    for (EACH_ELEMENT(at, out)) {
        const int64_t token = at.row / heads % p->tokens, batch = at.row / heads / p->tokens;
        const int64_t place = batch * p->tokens + problem_position(p, 0, token) - p->first;
        const int64_t row =
            kernel_has_encoded_rows(p->kernel) ? place * heads + at.row % heads : at.row;
        element_require(t, &at, call_row(order, at.output, row)[at.column],
                        "of positions from an offset");
    }
}

/* ---- Batches ---- */

static bool encodes_positions(enum posenc_kernel kernel)
{
    return kernel_has_positions(kernel) && kernel_has_encoded_rows(kernel);
}

static void check_batches(struct tally *t, const struct call *out)
{
    const int64_t rows = out->outputs[0].rows / out->problem.batch;
    /* if all tokens had the same encoding, the loop could not fail */
    require(t,
            memcmp(call_row(out, 0, 0), call_row(out, 0, rows - 1),
                   (size_t)out->outputs[0].width * sizeof(float)) != 0,
            "first and last token have the same encoding");
    for (EACH_ELEMENT(at, out))
        element_require(t, &at, call_row(out, at.output, at.row % rows)[at.column],
                        "of the same token of the first batch");
}

/* ---- Kernels that add ---- */

/* Returns the kernel of the same signature that builds the term added by this kernel, or the kernel itself if it adds
 * nothing. */
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

/* Returns false for biases that all batches share, which are therefore built once. */
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
    if (!property_can_call(t, table.kernel))
        return;
    const struct call *built = tally_run(t, &table, NULL, NULL),
                      *got = built ? tally_run(t, p, NULL, NULL) : NULL;
    for (EACH_ELEMENT(at, got)) {
        const float term = call_row(built, 0, at.row % built->outputs[0].rows)[at.column];
        element_require(t, &at, fmaf(element_x(&at), p->x_scale, term), "built, then added,");
    }
}

/* ---- Layouts ---- */

/* Orders of a tensor in memory. The tensors of a call take the first N_ORDERS in turn; GAPLESS_ROWS is for check_woven()
 * alone. */
enum order { FORWARDS, BACKWARDS, REVERSED_DIMS, GAPLESS_ROWS, N_ORDERS = GAPLESS_ROWS };

/* Sets the strides of all dimensions but the last. Rows have 3 unused elements between them. FORWARDS has 97, and starts
 * 4 bytes later, so that rows are far apart and not aligned. The innermost of these dimensions is the last, or the
 * first with REVERSED_DIMS. GAPLESS_ROWS has gaps only between runs of rows. */
static void lay_out(const struct problem *p, const struct tensor_spec *row, enum order order,
                    struct tensor_layout *to)
{
    static const int64_t gaps[] = {
        [FORWARDS] = 97, [BACKWARDS] = 3, [REVERSED_DIMS] = 3, [GAPLESS_ROWS] = 0
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

/* Lays out positions far apart, backwards, or with the batches of each token side by side. */
static void lay_out_positions(const struct problem *p, enum order order,
                              struct tensor_layout *to)
{
    const int64_t batch = p->batch, tokens = p->tokens;
    to->n_strides = MOST_STRIDES;
    const int64_t strides[N_ORDERS][2] = { [FORWARDS] = { 5 * tokens, 5 },
                                           [BACKWARDS] = { -tokens, -1 },
                                           [REVERSED_DIMS] = { 1, batch } };
    to->stride[0] = strides[order][0];
    to->stride[1] = strides[order][1];
    to->stride[2] = 5 * batch * tokens;
}

/* Returns a problem whose tensors have other orders: the first one has order `shift`. */
static struct problem with_layouts(const struct problem *dense, int shift)
{
    struct problem p = *dense;
    int k = shift;
    for (EACH_TENSOR(row, signature_of(p.kernel))) {
        struct tensor_layout *to = &p.layouts[row - signature_of(p.kernel)->tensors];
        if (row->form == FORM_TENSOR)
            lay_out(&p, row, (enum order)(k++ % N_ORDERS), to);
        else if (row->form == FORM_POSITIONS && p.position_kind != POSENC_POSITIONS_OFFSET)
            lay_out_positions(&p, (enum order)(k++ % N_ORDERS), to);
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

/* Weaves two tensors into each other: densely, with gaps between runs of rows, and with gaps everywhere. */
static void check_woven(struct tally *t, const struct problem *dense, enum woven how,
                        struct guard *guard, const struct call *want)
{
    const struct tensor_spec *first = signature_output(signature_of(dense->kernel), 0);
    /* the third way takes another shift of orders for each kind of weaving */
    struct problem ways[] = { *dense, *dense, with_layouts(dense, (int)how) };
    lay_out(dense, first, GAPLESS_ROWS,
            &ways[1].layouts[first - signature_of(dense->kernel)->tensors]);
    for (int i = 0; i < 3; i++) {
        ways[i].woven = how;
        check_guarded(t, &ways[i], i % 2 ? GUARD_START : GUARD_END, guard, want);
    }
}

/* Returns the last way of weaving two tensors to try. Quick runs weave only two outputs. */
static int most_woven(const struct tally *t, const struct problem *p)
{
    const struct tensor_spec *other = p->in_place ? NULL : kernel_woven_row(p->kernel);
    const bool all = t->run->options->full || (other && other->role == ROLE_OUTPUT);
    return other && all ? WOVEN_TENSORS : WOVEN_NONE;
}

static void property_layouts(struct tally *t, const struct problem *dense)
{
    struct guard *guard = guard_create();
    const struct call *want = tally_run(t, dense, NULL, NULL);
    if (!guard)
        tally_skip(t, "this system has no memory that is guarded");
    for (int shift = 0; guard && want && shift < N_ORDERS; shift++) {
        const struct problem p = with_layouts(dense, shift);
        check_guarded(t, &p, shift % 2 ? GUARD_START : GUARD_END, guard, want);
    }
    for (int how = WOVEN_ROWS; guard && want && how <= most_woven(t, dense); how++)
        check_woven(t, dense, (enum woven)how, guard, want);
    guard_destroy(guard);
}

/* ---- All of them ---- */

const struct property properties_call[] = {
    { "in-place", .twin = "in_place=true", .applies_to = kernel_in_place, .problems = "parts" },
    { "numbering", .compare_outputs = compare_numbering, .applies_to = kernel_has_positions,
      .edit = edit_numbered, .twin = "position_kind=offset" },
    { "batches", .check_output = check_batches, .applies_to = encodes_positions,
      .edit = edit_same_rows },
    { "add-is-build-then-add", .check_problem = property_add, .applies_to = adds_built_term,
      .problems = "parts" },
    { "layouts", .check_problem = property_layouts, .applies_to = kernel_is_any,
      .problems = "parts", .in_place = true },
    { 0 },
};
