/*
 * Fuzzes the reader of case files (conformance/cases): lines, `with`, alternatives, comments and continued lines. The
 * problems that it reads are then checked against limits, and not run.
 */
#include "conformance/problem/notation.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct problem_limits limits = { .bytes = 1 << 26, /* 64 MiB */
                                                  .basis = "fuzz" /* only in the message */ };
    char error[NOTATION_ERROR] = "", *text = fuzz_text(data, size);
    struct problem_list list = { .n = 0 };
    if (notation_read_file(text, "cases.txt", &list, error)) {
        for (size_t i = 0; i < list.n; i++)
            problem_within(&list.lines[i].problem, &limits, error);
    } else if (!*error) {
        abort(); /* a rejection needs a message */
    }
    arena_free(&list.arena);
    free(text);
    return 0;
}
