/*
 * Sizes that models have and small problems lack, and addresses that only 64 bits hold. One result for each kernel,
 * dtype and name:
 *
 *   sizes         one dimension of hundreds or thousands and the others small, or two or three of dozens; in full runs
 *                 also in place, and with two tensors woven into each other
 *   far-strides   rows farther apart than an index of 32 bits counts
 *   many-rows     tables with row numbers beyond 16 and 24 bits, of which only the rows that the call reads have memory
 *   values        small problems with parameters and inputs of every magnitude
 *   gaps          no access between rows, where another thread may own the memory
 *
 * The first four are the problems of conformance/cases/sizes.txt with that name, in guarded memory and judged by the
 * oracle. For gaps, every row lies on pages of its own, flush with their start or end, and all pages between are
 * inaccessible. A tail that loads a whole vector, replaces its own elements and stores it back faults there at any row.
 *
 * Rows gigabytes apart take address space, but no memory. far-strides, many-rows and gaps are skipped if the system
 * denies the space (ulimit -v, 32 bits), or if an emulator is slow to give it.
 */
#include "suites.h"
#include "conformance/engine/judge.h"
#include "conformance/problem/arena.h"
#include "conformance/problem/signature.h"

#include <string.h>

static const char no_space[] = "this system does not give so much address space";

/* Skips a case if it takes long to reserve address space. */
static bool skip_if_slow(struct tally *t)
{
    static int slow = -1;
    slow = slow < 0 ? !pages_reserve_is_quick() : slow;
    if (slow)
        tally_skip(t, "address space takes too long here: an emulator keeps a list of pages");
    return slow;
}

/* ---- Problems of sizes.txt ---- */

enum sizes_case { SIZES, FAR_STRIDES, MANY_ROWS, VALUES, SIZES_CASES };
static const char *const case_name[SIZES_CASES] = { "sizes", "far-strides", "many-rows",
                                                    "values" };

static bool needs_space(enum sizes_case name)
{
    return name == FAR_STRIDES || name == MANY_ROWS;
}

/* Returns false if the system lacks the address space. */
static bool check_problem(struct tally *t, struct guard *guard, enum guard_mode mode,
                          const struct problem *p, enum sizes_case name)
{
    struct call call;
    bool has_space = true;
    if (!tally_run_guarded(t, guard, mode, p, &call, needs_space(name) ? &has_space : NULL))
        return has_space;
    require_within_limits(t, &call, t->run->backend);
    require_modes_kept(t, &call, guard);
    call_destroy(&call);
    return true;
}

/* Checks a line as it stands. In full runs, small problems of `sizes` follow in place and woven. */
static bool check_line(struct tally *t, struct guard *guard, const struct problem_line *line,
                       enum sizes_case name, int index)
{
    const enum guard_mode mode = index % 2 ? GUARD_START : GUARD_END;
    struct problem p = line->problem;
    if (!check_problem(t, guard, mode, &p, name))
        return false;
    if (name != SIZES || p.in_place || !t->run->options->full || problem_memory(&p) > 1 << 20)
        return true;
    p.in_place = true;
    problem_derive(&p);
    if (p.in_place)
        check_problem(t, guard, mode, &p, name);
    p = line->problem;
    p.woven = (enum woven)(1 + index % WOVEN_TENSORS);
    if (!*line->flags && kernel_woven_row(p.kernel))
        check_problem(t, guard, mode, &p, name);
    return true;
}

static bool is_selected_line(const struct suite_run *run, const struct problem_line *line,
                             enum posenc_kernel kernel, enum posenc_dtype dtype,
                             enum sizes_case name)
{
    const struct problem *p = &line->problem;
    return p->kernel == kernel && p->dtype == dtype &&
           strcmp(line->name, case_name[name]) == 0 && (!*line->flags || run->options->full) &&
           (run->backend->f16_bf16 || problem_is_f32(p));
}

/* A kernel may lack lines of many-rows, which is for tables, and of `values`, for parameters. Without one of the others
 * nothing is checked, and the case fails. */
static void check_lines(struct suite_run *run, struct guard *guard, enum posenc_kernel kernel,
                        enum posenc_dtype dtype, enum sizes_case name)
{
    struct tally t;
    bool has_space = true;
    int n = 0, index = 0;
    for (EACH_CASE(line, CASES_SIZES))
        n += is_selected_line(run, line, kernel, dtype, name);
    if ((n == 0 && (dtype != POSENC_DTYPE_F32 || name > FAR_STRIDES)) ||
        !tally_begin(&t, run, kernel, dtype, "memory", NULL, "%s", case_name[name]))
        return;
    const bool is_slow = needs_space(name) && skip_if_slow(&t);
    for (EACH_CASE(line, CASES_SIZES))
        if (!is_slow && has_space && is_selected_line(run, line, kernel, dtype, name))
            has_space = check_line(&t, guard, line, name, index++);
    if (!has_space)
        tally_skip(&t, no_space);
    tally_end(&t);
}

static bool is_known_line(const struct problem_line *line)
{
    bool known = false;
    for (enum sizes_case name = SIZES; name < SIZES_CASES; name++)
        known = known || strcmp(line->name, case_name[name]) == 0;
    return known;
}

/* ---- Gaps ---- */

/* Bytes from row to row: whole pages of any size, and more than any allocation of a case. */
enum { ROW_DISTANCE = 1 << 26 };

/* Places each row of each tensor apart. */
static struct problem spread_rows(struct problem p)
{
    const struct signature *s = signature_of(p.kernel);
    for (EACH_TENSOR(spec, s)) {
        struct tensor_layout *layout = &p.layouts[spec - s->tensors];
        const int n = tensor_dims(spec);
        if (spec->form != FORM_TENSOR || n < 2 || !tensor_present(&p, spec))
            continue;
        int64_t stride = ROW_DISTANCE / (tensor_dtype(&p, spec) == POSENC_DTYPE_F32 ? 4 : 2);
        layout->n_strides = n - 1;
        for (int d = n - 2; d >= 0; d--) {
            const int64_t extent = problem_extent(&p, spec->dims[d]);
            layout->stride[d] = stride;
            stride *= extent > 1 ? extent : 1;
        }
    }
    return p;
}

/* Checks lengths up to two vectors and a tail, each in one variant. A quick run takes the lengths around one vector,
 * and the longest. */
static void check_gaps(struct tally *t, struct guard *guard, enum posenc_kernel kernel,
                       enum posenc_dtype dtype)
{
    const bool full = t->run->options->full;
    const int64_t lanes = backend_vector_lanes(t->run->backend), most = 2 * lanes + 3;
    bool has_space = true;
    for (int64_t n = 1; n <= most; n++) {
        /* Lengths with the same remainder of a division by four take different variants. */
        struct problem p = problem_of_length(kernel, n, (int)((n + n / 4) % LENGTH_VARIANTS));
        if (!full && n != 3 && n != lanes - 1 && n != lanes + 1 && n != most)
            continue;
        p.dtype = p.values_dtype = dtype;
        p = spread_rows(p);
        for (int mode = GUARD_END; mode <= GUARD_START && has_space; mode++) {
            struct call call;
            if (tally_run_guarded(t, guard, (enum guard_mode)mode, &p, &call, &has_space))
                call_destroy(&call);
        }
    }
    if (!has_space)
        tally_skip(t, no_space);
}

void check_sizes(struct suite_run *run, enum posenc_kernel kernel)
{
    struct guard *guard = guard_create();
    require_known_lines(CASES_SIZES, "sizes.txt", is_known_line);
    for (enum sizes_case name = SIZES; guard && name < SIZES_CASES; name++)
        for (int dtype = POSENC_DTYPE_F32; dtype <= POSENC_DTYPE_BF16; dtype++)
            check_lines(run, guard, kernel, (enum posenc_dtype)dtype, name);
    for (int dtype = POSENC_DTYPE_F32; guard && dtype <= POSENC_DTYPE_BF16; dtype++) {
        struct tally t;
        if (!tally_begin(&t, run, kernel, (enum posenc_dtype)dtype, "memory", NULL, "gaps"))
            continue;
        if (!skip_if_slow(&t))
            check_gaps(&t, guard, kernel, (enum posenc_dtype)dtype);
        tally_end(&t);
    }
    guard_destroy(guard);
}
