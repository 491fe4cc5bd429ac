/*
 * Runs the tests of the primitives, for the ISAs named or for all of this build.
 *
 *     primitives [--except NAME] [ISA]...
 *
 * --except leaves out the primitives whose names begin with NAME, for emulators that get them wrong. Prints a line for
 * each failure, and for each ISA "ISA (L lanes): N passed, N failed, N skipped" or "off: ISA: reason", then the sums. A
 * test is a primitive. Exit 1 on failures, 2 on bad input, 77 if nothing ran.
 */
#include "primitives.h"

#include <stdio.h>
#include <string.h>

enum { BAD_INPUT = 2, NOTHING_RAN = 77 };

#define ISA(name) extern const struct isa_tests primitives_##name;
SIMD_ISAS
#undef ISA

static const struct isa {
    const char *name;
    const struct isa_tests *tests;
} isas[] = {
#define ISA(name) { #name, &primitives_##name },
    SIMD_ISAS
#undef ISA
};
enum { ISA_COUNT = sizeof isas / sizeof *isas };

struct test_counts {
    unsigned long passed, failed, skipped;
};

static void test_isa(const struct isa *isa, const char *except, struct test_counts *all)
{
    const char *unavailable_reason =
        posenc_backend_unavailable_reason(posenc_backend_find(isa->name));
    struct test_counts counts = { 0, 0, 0 };

    if (unavailable_reason) {
        printf("off: %s: %s\n", isa->name, unavailable_reason);
        all->skipped++;
        return;
    }
    for (size_t test = 0; test < isa->tests->count(); test++)
        if (except && strncmp(isa->tests->name(test), except, strlen(except)) == 0)
            counts.skipped++;
        else if (run_test(isa->name, isa->tests, test))
            counts.passed++;
        else
            counts.failed++;
    printf("%s (%d lanes): %lu passed, %lu failed, %lu skipped\n", isa->name,
           (int)isa->tests->lanes(), counts.passed, counts.failed, counts.skipped);
    all->passed += counts.passed;
    all->failed += counts.failed;
    all->skipped += counts.skipped;
}

static int report_unknown_isa(const char *what)
{
    fprintf(stderr, "primitives: %s: not an ISA of this build: expected one of", what);
    for (int k = 0; k < ISA_COUNT; k++)
        fprintf(stderr, " %s", isas[k].name);
    fprintf(stderr, "\n");
    return BAD_INPUT;
}

int main(int argc, char **argv)
{
    struct test_counts all = { 0, 0, 0 };
    const char *except = NULL;
    bool wanted[ISA_COUNT] = { false }, named = false;

    for (int i = 1, k; i < argc; i++) {
        if (strcmp(argv[i], "--except") == 0 && i + 1 < argc) {
            except = argv[++i];
            continue;
        }
        for (k = 0; k < ISA_COUNT && strcmp(argv[i], isas[k].name) != 0; k++)
            ;
        if (k == ISA_COUNT)
            return report_unknown_isa(argv[i]);
        wanted[k] = named = true;
    }
    for (int k = 0; k < ISA_COUNT; k++)
        if (wanted[k] || !named)
            test_isa(&isas[k], except, &all);
    printf("%lu passed, %lu failed, %lu skipped\n", all.passed, all.failed, all.skipped);
    return all.failed ? 1 : all.passed ? 0 : NOTHING_RAN;
}
