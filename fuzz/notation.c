/*
 * Fuzzes the notation of problems, which --problem reads. A problem that was read is printed and read again; if it is
 * small, its call is made and run.
 */
#include "conformance/problem/notation.h"
#include "fuzz.h"

#include <posenc/backend.h>

/* Larger problems are not run. A call of this size takes milliseconds. */
static const struct problem_limits run_limits = { .bytes = 1 << 20,
                                                  .values = 1 << 16,
                                                  .basis = "fuzz" /* only in the message */ };

/* Aborts unless a printed problem, read and printed again, has the same text. Longer lines are left out. */
static void check_round_trip(const struct problem *problem)
{
    char printed[4096], reprinted[4096], error[NOTATION_ERROR];
    struct problem_line line;
    struct arena arena = { .last = NULL };
    if (notation_print(problem, NULL, printed, sizeof printed) >= sizeof printed)
        return;
    if (!notation_read(printed, &line, &arena, error))
        abort();
    notation_print(&line.problem, NULL, reprinted, sizeof reprinted);
    if (strcmp(printed, reprinted) != 0)
        abort();
    arena_free(&arena);
}

/* Runs the call of a problem, unless the library rejects its arguments. Sanitizers judge the run, not its status. */
static void run_problem(const struct problem *problem)
{
    struct call call;
    if (call_create(&call, problem, &tensor_allocator_default) != POSENC_OK)
        return;
    call_run(&call, posenc_backend_find("libm"));
    call_destroy(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[NOTATION_ERROR] = "", *text = fuzz_text(data, size);
    struct problem_line line;
    struct arena arena = { .last = NULL };
    if (notation_read(text, &line, &arena, error)) {
        check_round_trip(&line.problem);
        if (problem_within(&line.problem, &run_limits, error))
            run_problem(&line.problem);
    } else if (!*error) {
        abort(); /* a rejection needs a message */
    }
    arena_free(&arena);
    free(text);
    return 0;
}
