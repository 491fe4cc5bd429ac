/*
 * Runs all suites on all backends in one process, for machines without Criterion, for emulators and for memory
 * checkers. Needs libc only. It returns from main, so that a leak or a finding of a sanitizer sets its exit status.
 *
 *     runner [--full] [--no-accuracy | --suite NAME] [--backend NAME]...
 *            [--except GLOB OF CASES]... [FOLDER OF VECTORS]
 *
 * --no-accuracy omits the suite "accuracy", which takes too long in an emulator. --except omits cases that an emulator gets wrong.
 *
 * It prints each failure with the commands that repeat it, then a line for each backend and one for all: "avx2 (8 lanes):
 * 1234 passed, 0 failed, 5 skipped". A backend that cannot run here has a line "off: avx512: CPU lacks avx512f" and
 * counts as skipped; if --backend names it, that is an error. Exit status: 1 on failures, 2 on bad input, 77 if nothing ran.
 */
#include "suites.h"
#include "conformance/engine/library.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BACKENDS = 64, EXIT_FAILED = 1, EXIT_BAD_INPUT = 2, EXIT_NOTHING_RAN = 77 };

struct case_counts {
    unsigned long passed, failed, skipped;
};

struct runner {
    struct conf_options options;
    const char *golden; /* folder of the golden vectors, or NULL */
    const struct posenc_backend *backends[MOST_BACKENDS];
    struct case_counts counts[MOST_BACKENDS];
    size_t n_backends, n_except;
};

/* Returns NULL, or the reason why a backend cannot run here. */
static const char *add_backend(struct runner *run, const struct posenc_backend *backend)
{
    const char *reason =
        backend ? posenc_backend_unavailable_reason(backend) : "there is no such backend";
    if (!reason && run->n_backends < MOST_BACKENDS)
        run->backends[run->n_backends++] = backend;
    return reason;
}

/* Adds all backends that can run here, and prints the others. Returns the number of those. */
static unsigned long add_all_backends(struct runner *run)
{
    const struct posenc_backend *b;
    unsigned long n_unavailable = 0;
    for (size_t i = 0; (b = posenc_backend_at(i)); i++) {
        const char *reason = add_backend(run, b);
        if (reason)
            printf("off: %s: %s\n", b->name, reason);
        n_unavailable += reason != NULL;
    }
    return n_unavailable;
}

/* Returns false, with a message, for bad input. */
static bool read_arguments(int argc, char **argv, struct runner *run)
{
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strcmp(argument, "--full") == 0) {
            run->options.full = true;
        } else if (strcmp(argument, "--no-accuracy") == 0) {
            run->options.no_accuracy = true;
        } else if (strcmp(argument, "--suite") == 0 && argv[i + 1]) {
            run->options.suite = argv[++i];
        } else if (strcmp(argument, "--backend") == 0 && argv[i + 1]) {
            const char *reason = add_backend(run, posenc_backend_find(argv[++i]));
            if (reason) {
                fprintf(stderr, "runner: --backend: %s: %s\n", argv[i], reason);
                return false;
            }
        } else if (strcmp(argument, "--except") == 0 && argv[i + 1] &&
                   run->n_except < MOST_EXCEPT) {
            run->options.except[run->n_except++] = argv[++i];
        } else if (argument[0] == '-' || run->golden) {
            fprintf(stderr,
                    "runner: unexpected argument: %s: expected --full, --no-accuracy, "
                    "--suite NAME, --backend NAME, --except GLOB or one folder of vectors\n",
                    argument);
            return false;
        } else {
            run->golden = argument;
        }
    }
    return true;
}

/* Counts a result, and prints a failure; a conf_sink. */
static void on_result(void *user, const struct conf_result *r)
{
    struct runner *run = user;
    size_t i = 0;
    while (run->backends[i] != r->backend)
        i++;
    struct case_counts *counts = &run->counts[i];
    if (r->status == CONF_PASS) {
        counts->passed++;
    } else if (r->status == CONF_FAIL || r->status == CONF_CRASH) {
        counts->failed++;
        printf("%s: %s %s: %s\n", conf_status_name[r->status], r->backend->name, r->id,
               r->reason);
        printf("    posenc verify --backend %s --case %s\n", r->backend->name, r->id);
        if (r->problem[0])
            printf("    posenc verify --backend %s --problem '%s'\n", r->backend->name,
                   r->problem);
    } else {
        counts->skipped++;
    }
}

static void print_counts(const struct case_counts *counts)
{
    printf("%lu passed, %lu failed, %lu skipped\n", counts->passed, counts->failed,
           counts->skipped);
    fflush(stdout);
}

/* Prints the counts of a backend, and adds them to the sum. */
static void print_backend(const struct posenc_backend *backend,
                          const struct case_counts *counts, struct case_counts *sum)
{
    const long lanes = backend->lanes ? backend->lanes() : 0;
    printf("%s", backend->name);
    if (lanes)
        printf(" (%ld lane%s)", lanes, lanes == 1 ? "" : "s");
    printf(": ");
    print_counts(counts);
    sum->passed += counts->passed;
    sum->failed += counts->failed;
    sum->skipped += counts->skipped;
}

static int run_suites(struct runner *run)
{
    struct case_counts sum = { 0, 0, 0 };
    if (run->n_backends == 0)
        sum.skipped = add_all_backends(run);
    conf_run(run->backends, run->n_backends, &run->options, on_result, run);
    for (size_t i = 0; i < run->n_backends; i++)
        print_backend(run->backends[i], &run->counts[i], &sum);
    print_counts(&sum);
    if (sum.failed)
        return EXIT_FAILED;
    return sum.passed ? 0 : EXIT_NOTHING_RAN;
}

int main(int argc, char **argv)
{
    struct runner run = { .n_backends = 0 };
    struct vectors vectors = { .n = 0 };
    char error[VECTORS_ERROR];
    if (plugins_add_of_build() || !read_arguments(argc, argv, &run))
        return EXIT_BAD_INPUT;
    if (run.golden && !vectors_load(run.golden, &vectors, error)) {
        fprintf(stderr, "runner: %s\n", error);
        return EXIT_BAD_INPUT;
    }
    run.options.vectors = run.golden ? &vectors : NULL;
    const int status = run_suites(&run);
    if (run.golden)
        vectors_free(&vectors);
    return status;
}
