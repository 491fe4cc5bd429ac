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

/* ---- Splits ---- */

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

/* ---- All of them ---- */

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
    { 0 },
};
