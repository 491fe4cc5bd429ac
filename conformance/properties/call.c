/*
 * Properties of every kernel: the value of a row depends on its own position and parameters, not on memory, on other
 * rows, or on the number of calls.
 *
 *   in-place                the same bits with the output on top of the input
 *   numbering               the same bits for positions as an offset and as i32, i64 and f32 arrays
 *   layouts                 the same bits for rows at other distances
 *   add-is-build-then-add   x + encoding equals building the encoding, then one fma per element
 *   slices                  the same bits from calls of parts: by batch, token or query, head, key and channel
 *   wide                    parts of rows with more keys or columns than a kernel's tile
 *   large                   parts of a call that exceeds the caches, for which kernels may take another path
 *   split                   any number of parts by posenc_split(); an element that is written twice in place would
 *                           be rotated twice
 *
 * Properties of kernels on attention scores; i is the query and j the key:
 *
 *   distance                bias(i, j) depends on i + query_offset - j alone; of relative_bias if all queries and keys
 *                           have equal terms
 *   by-batch                4 batches of 3 slopes give the bits of 12 heads
 *   slopes                  slopes of 8 and 12 heads are those that Press et al. 2108.12409 print
 *
 * Properties of sums, by token or by key:
 *
 *   adjoint                 the sum is the transpose of the kernel that reads rows or terms: learned_grad of
 *                           learned_add, relative_sum of relative_bias
 */
#include "properties.h"

#include <math.h>
#include <stdio.h>

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

/* ---- Slices ---- */

static void run_part(struct tally *t, struct call *part)
{
    const struct guard_result g = guard_run(part, t->run->backend, NULL);
    require_clean(t, &g);
}

/* Cuts a call along one dimension into at least two parts, of different sizes from 1 to `most`. */
static void check_cut(struct tally *t, struct call *call, enum dim dim, int64_t most,
                      const struct call *want)
{
    const int last = call_dim_from_last(call, dim);
    const int64_t n = call_extent(call, dim);
    char what[64];
    call_reset(call);
    for (int64_t from = 0, count; from < n; from += count) {
        count = 1 + (from * 3 + last) % most;
        if (from == 0 && count >= n)
            count = n - 1;
        count = from + count > n ? n - from : count;
        struct call part = call_cut(call, dim, from, count);
        run_part(t, &part);
    }
    snprintf(what, sizeof what, "cut along dimension %d from the last", last);
    require_same_outputs(t, call, want, what);
}

/* Cuts along one dimension after the other, into parts of at most `most`. */
static void check_slices(struct tally *t, const struct problem *p, int64_t most)
{
    const enum dim *cuts = signature_of(p->kernel)->cuts;
    const struct call *want = tally_run(t, p, NULL, NULL);
    struct call *call = tally_create_call(t, t->run->implementation, p);
    for (int i = 0; want && call && i < MOST_CUTS && cuts[i]; i++)
        if (call_extent(call, cuts[i]) > 1)
            check_cut(t, call, cuts[i], most, want);
}

static void property_slices(struct tally *t, const struct problem *p) { check_slices(t, p, 5); }

static void property_large(struct tally *t, const struct problem *p)
{
    check_slices(t, p, kernel_has_output_dim(p->kernel, DIM_COLUMN) ? 13 : 1999);
}

static void check_split(struct tally *t, const struct problem *p)
{
    static const int64_t numbers[] = { 1, 2, 3, 7, 64 };
    const struct call *want = tally_run(t, p, NULL, NULL);
    struct call *call = tally_create_call(t, t->run->implementation, p);
    char what[64];
    for (size_t i = 0; want && call && i < sizeof numbers / sizeof *numbers; i++) {
        const int64_t n = numbers[i];
        call_reset(call);
        for (int64_t k = n; k-- > 0;) {
            struct call part = *call;
            if (!require(t, !posenc_split(p->kernel, &call->args, k, n, &part.args, NULL),
                         "part %lld of %lld was rejected", (long long)k, (long long)n))
                return;
            run_part(t, &part);
        }
        snprintf(what, sizeof what, "%lld parts of posenc_split()", (long long)n);
        require_same_outputs(t, call, want, what);
    }
}

/* Checks posenc_split() on the problem, which it cuts by batches or heads, and on the same problem with one batch and
 * head, which it cuts by tokens or queries. */
static void property_split(struct tally *t, const struct problem *p)
{
    struct problem single = *p;
    check_split(t, p);
    single.batch = 1;
    if (kernel_has_output_dim(p->kernel, DIM_HEAD))
        single.heads = 1;
    check_split(t, &single);
}

/* ---- Attention scores ---- */

/* Requires that a bias equals that of the previous query and key. */
static void check_by_distance(struct tally *t, const struct call *out)
{
    for (EACH_ELEMENT(at, out))
        if (at.row % out->problem.queries && at.column)
            element_require(t, &at, call_row(out, 0, at.row - 1)[at.column - 1],
                            "one query and one key before");
}

/* Gives every query and key the terms of the first one, and fills the x of an add with 1. */
static void edit_no_content(struct call *call, const void *user)
{
    (void)user;
    tensor_repeat_rows(storage_as_writable(&call->args.relative.c2p), 1);
    tensor_repeat_rows(storage_as_writable(&call->args.relative.p2c), 1);
    edit_fill_x(call, &plus_one);
}

/* log2 of the slopes of 8 heads. 12 heads have these, then every other slope of 16 heads. */
static const double slope_log2[12] = { -1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5 };

/* One key before the query, the bias is -slope. The slope is within 1 ulp of the power of two. */
static void check_slopes(struct tally *t, const struct call *out)
{
    for (int64_t h = 0; h < out->problem.heads; h++) {
        const double want = -exp2(slope_log2[h]);
        const float *row = call_row(out, 0, h * out->problem.queries);
        require_within(t, (double)row[out->problem.query_offset - 1], want, -want * 0x1p-23,
                       "bias one key behind, minus the slope");
    }
}

/* Makes learned_add return the rows themselves: adding -0 changes no value. */
static void edit_no_x(struct call *call, const void *user)
{
    (void)user;
    edit_fill_x(call, &minus_zero);
}

/* Compares <rows, g> with <table, sums of g>. Each sum has at most n terms in f32, so it is within (n - 1) 2^-24 of the sum
 * of their magnitudes, and n 2^-24 covers terms of higher order. */
static void compare_adjoint(struct tally *t, const struct call *sums, const struct call *rows)
{
    const struct problem *p = &sums->problem;
    const int64_t n = kernel_on_scores(p->kernel) ? p->keys : p->batch * p->tokens;
    double magnitudes = 0.0, unused = 0.0;
    const double forward = element_inner_product(rows, sums->x, &magnitudes);
    require_within(t, element_inner_product(sums, rows->c2p ? rows->c2p : rows->table, &unused),
                   forward, (double)n * 0x1p-24 * magnitudes, "<table, sums> and <rows, g>");
}

const struct property properties_call[] = {
    { "in-place", .twin = "in_place=true", .applies_to = kernel_in_place, .problems = "parts" },
    { "numbering", .twin = "position_kind=offset", .applies_to = kernel_has_positions },
    { "layouts", .twin = "pad=5", .applies_to = kernel_is_any, .problems = "parts",
      .in_place = true },
    { "add-is-build-then-add", .check_problem = property_add, .by_bits = true,
      .applies_to = adds_built_term, .problems = "parts" },
    { "slices", .check_problem = property_slices, .by_bits = true, .applies_to = kernel_is_any,
      .problems = "parts", .in_place = true },
    { "wide", .check_problem = property_large, .by_bits = true, .applies_to = kernel_is_any,
      .needed_field = "keys" },
    { "large", .check_problem = property_large, .by_bits = true, .full_only = true },
    { "split", .check_problem = property_split, .by_bits = true, .applies_to = kernel_is_any,
      .problems = "parts", .in_place = true },
    { "distance", .check_output = check_by_distance, .problems = "biases", .edit = edit_fill_x,
      .user = &plus_one, .by_bits = true },
    { "distance", .check_output = check_by_distance, .problems = "relative-distance",
      .edit = edit_no_content, .by_bits = true },
    { "by-batch", .twin = "batch=1 heads=12 slopes_by_batch=false", .problems = "biases",
      .needed_field = "slopes_by_batch", .fields = "batch=4 heads=3 slopes_by_batch=true",
      .edit = edit_fill_x, .user = &plus_one },
    { "slopes", .check_output = check_slopes },
    { "adjoint", .compare_outputs = compare_adjoint, .problems = "adjoint-of-add",
      .twin = "learned_add", .twin_edit = edit_no_x },
    { "adjoint", .compare_outputs = compare_adjoint, .problems = "sums",
      .twin = "relative_bias" },
    { 0 },
};
