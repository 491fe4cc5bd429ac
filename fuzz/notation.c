/*
 * A line of the notation of problems, as --problem takes it: read, bounded, printed and read again, made into a call
 * and run.
 */
#include "conformance/problem/notation.h"
#include "fuzz.h"

#include <posenc.h>

#include <stdlib.h>
#include <string.h>

static const struct problem_limits limits = { .bytes = 1 << 20,
                                              .values = 1 << 16,
                                              .basis = "enough" };

/* What is printed of a problem is read as the same. */
static void read_again(const struct problem *problem)
{
    char once[4096], twice[4096], error[NOTATION_ERROR];
    struct problem_line line;
    struct arena arena = { .last = NULL };
    if (notation_print(problem, NULL, once, sizeof once) >= sizeof once)
        return;
    if (!notation_read(once, &line, &arena, error))
        abort();
    notation_print(&line.problem, NULL, twice, sizeof twice);
    if (strcmp(once, twice) != 0)
        abort();
    arena_free(&arena);
}

static void run(const struct problem *problem)
{
    struct call call;
    if (call_create(&call, problem, &memory_default) != POSENC_OK)
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
        read_again(&line.problem);
        if (problem_within(&line.problem, &limits, error))
            run(&line.problem);
    } else if (!*error) {
        abort(); /* a rejection has a message */
    }
    arena_free(&arena);
    free(text);
    return 0;
}
