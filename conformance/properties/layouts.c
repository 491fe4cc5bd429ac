/*
 * Properties of memory: a result depends on the values of tensors, not on their layout.
 *
 *   layouts     Tensors backwards, far apart, or with reversed order of dimensions, independently of
 *               each other and in guarded memory, give the bits of dense tensors. So do two outputs,
 *               or x and out, that are woven into each other.
 */
#include "conformance/problem/signature.h"
#include "properties.h"

#include <string.h>

enum layout { FORWARDS, BACKWARDS, REVERSED_DIMS, CLOSE, ORDERS = CLOSE };

/* Sets the strides of all dimensions but the last, with a few elements between rows. The last of
 * these dimensions is innermost, or with REVERSED_DIMS the first. CLOSE: no gap between rows, only between
 * runs of them. */
static void lay_out(const struct problem *p, const struct tensor_row *row, enum layout order,
                    struct tensor_layout *to)
{
    const int n = tensor_dims(row) - 1;
    const int64_t sign = order == BACKWARDS ? -1 : 1;
    int64_t stride = problem_extent(p, row->dims[n]) + (order == FORWARDS ? 97
                                                        : order == CLOSE  ? 0
                                                                          : 3);
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
    to->stride[0] = order == REVERSED_DIMS ? 1 : order == BACKWARDS ? -tokens : 5 * tokens;
    to->stride[1] = order == REVERSED_DIMS ? batch : order == BACKWARDS ? -1 : 5;
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

const struct property properties_layouts[] = {
    { "layouts", .check = property_layouts, .concerns = is_any_kernel, .problems = "parts",
      .in_place = true },
    { 0 },
};
