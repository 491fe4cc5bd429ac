/*
 * Sizes that models have and small problems do not, and addresses that only 64 bits hold.  Each
 * problem of conformance/cases/sizes.txt is judged by the oracle and lies in guarded memory; one
 * result per kernel and name of lines:
 *
 *   sizes         one dimension of hundreds or thousands, the others small: heads, batches,
 *                 channels, tokens, queries, keys, columns; or two or three of dozens and hundreds.
 *                 In full runs also in place, and with two tensors woven into each other
 *   far-strides   rows farther apart than an index of 32 bits counts, and tensors of which a
 *                 cut-off offset lands where nothing is
 *   many-rows     rows of tables with ids beyond 16 and 24 bits, of which only those are in
 *                 memory that the call asks for
 *   values        small problems with parameters and inputs of every magnitude
 *
 * Rows gigabytes apart take address space, no memory.  Where a system does not give it (ulimit
 * -v, a 32-bit one), or an emulator takes a second for it, far-strides and many-rows are
 * skipped.
 */
#define _POSIX_C_SOURCE 200809L
#include "suites.h"
#include "conformance/engine/judge.h"
#include "conformance/problem/cases.h"
#include "conformance/problem/arena.h"
#include "conformance/problem/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = { "sizes", "far-strides", "many-rows", "values" };
enum { NAMES = sizeof names / sizeof *names };

static bool is_far(const char *name)
{
    return strcmp(name, names[1]) == 0 || strcmp(name, names[2]) == 0;
}

/* False: the system has not the memory. */
static bool check_line(struct tally *t, struct guard *guard, const struct problem_line *line,
                       enum guard_mode mode)
{
    struct call call;
    char text[200];
    const struct suite_run *run = t->run;
    const struct memory memory = guard_memory(guard, mode);
    const enum posenc_status made =
        call_create_by(run->implementation, &call, &line->problem, &memory);
    t->problem = &line->problem;
    if (made == POSENC_ERR_MEMORY && is_far(line->name))
        return false;
    posenc_error_text(&call.error, text, sizeof text);
    if (!require(t, made == POSENC_OK, "the call was not made: %s", text))
        return true;
    const struct guarded g = guarded_run(&call, run->backend, guard);
    if (require_clean(t, &g) && require(t, !g.overwritten, "%s", g.reason)) {
        require_right(t, &call, run->backend);
        require_modes(t, &call, guard);
    }
    call_destroy(&call);
    return true;
}

/* A line as it stands; in full runs one of `sizes` that is not large in place as well, and woven. */
static bool check_ways(struct tally *t, struct guard *guard, const struct problem_line *line,
                       int turn)
{
    const struct problem *p = &line->problem;
    const enum guard_mode mode = turn % 2 ? GUARD_START : GUARD_END;
    struct problem_line other = *line;
    if (!check_line(t, guard, line, mode))
        return false;
    if (strcmp(line->name, names[0]) != 0 || p->in_place || !t->run->options->full ||
        problem_memory(p) > 1 << 20)
        return true;
    other.problem.in_place = true;
    problem_settle(&other.problem);
    if (other.problem.in_place && !check_line(t, guard, &other, mode))
        return false;
    other.problem = *p;
    other.problem.woven = (enum woven)(1 + turn % WOVEN_TENSORS);
    return *line->flags || !kernel_woven_row(p->kernel) || check_line(t, guard, &other, mode);
}

/* Checks the problems of one name and one type. */
static void check_lines(struct suite_run *run, struct guard *guard, enum posenc_kernel kernel,
                        enum posenc_dtype dtype, const char *name)
{
    static int slow = -1;
    struct tally t = { .selected = false };
    bool begun = false, ready = true;
    int n = 0;
    for (EACH_CASE(line, CASES_SIZES)) {
        const struct problem *p = &line->problem;
        if (p->kernel != kernel || p->dtype != dtype || strcmp(line->name, name) != 0 ||
            (*line->flags && !run->options->full) ||
            (!run->backend->f16_bf16 && !problem_is_f32(p)))
            continue;
        if (!begun && !tally_begin(&t, run, kernel, dtype, "memory", NULL, "%s", name))
            return;
        begun = true;
        if (is_far(name) && slow < 0)
            slow = !pages_reserve_is_quick();
        if (is_far(name) && slow)
            continue;
        ready = ready && check_ways(&t, guard, line, n++);
    }
    if (is_far(name) && slow > 0)
        tally_skip(&t, "address space is dear here: an emulator keeps books of each page");
    if (!ready)
        tally_skip(&t, "this system does not give so much address space");
    t.problem = NULL;
    if (begun)
        tally_end(&t);
}

/* A line that no name has would never be checked: it is a mistake of whoever built this program,
 * which ends here, told. */
static void require_names(void)
{
    for (EACH_CASE(line, CASES_SIZES)) {
        bool found = false;
        for (int i = 0; i < NAMES; i++)
            found = found || strcmp(line->name, names[i]) == 0;
        if (found && (!*line->flags || strcmp(line->flags, "full") == 0))
            continue;
        fprintf(stderr,
                "sizes.txt:%d: %s | %s: expected sizes, far-strides, many-rows or values, and "
                "full or no flag\n",
                line->number, line->name, line->flags);
        abort();
    }
}

/* So is a kernel without lines that a quick run takes. */
static void require_kernels(void)
{
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (int i = 0; i < 2; i++) {
            bool found = false;
            for (EACH_CASE(line, CASES_SIZES))
                found = found || (line->problem.kernel == (enum posenc_kernel)k &&
                                  !*line->flags && strcmp(line->name, names[i]) == 0);
            if (found)
                continue;
            fprintf(stderr, "sizes.txt: %s: expected a line %s without a flag\n",
                    posenc_kernel_name((enum posenc_kernel)k), names[i]);
            abort();
        }
}

void check_sizes(struct suite_run *run, enum posenc_kernel kernel)
{
    static bool known;
    struct guard *guard = guard_create();
    if (!known) {
        require_names();
        require_kernels();
    }
    known = true;
    for (int i = 0; guard && i < NAMES; i++)
        for (int dtype = POSENC_F32; dtype <= POSENC_BF16; dtype++)
            check_lines(run, guard, kernel, (enum posenc_dtype)dtype, names[i]);
    guard_destroy(guard);
}
