/*
 * The engine's own runner, for machines without Criterion, for emulators and for checkers of
 * memory: all suites on all backends in one process that ends by returning from main, so that a
 * leak or a finding of a sanitizer is its exit status.  libc only.
 *
 *     runner [--full] [--no-accuracy | --suite NAME] [--backend NAME]... [--except GLOB OF CASES]...
 *            [PACK OF VECTORS]
 *
 * --no-accuracy leaves the scans out, which take too long in an emulator; --suite takes one suite
 * alone; --except leaves cases out that an emulator gets wrong.  Prints each failure and how to
 * repeat it; for each backend "NAME (L lanes): N passed, N failed, N skipped", or "off: NAME:
 * reason" for one that cannot run here, which counts as one skipped; last the sum of all.  One
 * that is asked for by name has to run.  Exit 1 on failures, 2 on bad input, 77: nothing ran.
 */
#include "suites.h"
#include "conformance/engine/plugin.h"
#include "conformance/readers/vectors.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BACKENDS = 64, BAD_INPUT = 2, NOTHING_RAN = 77 };

struct counts {
    unsigned long passed, failed, skipped;
};

struct wanted {
    struct conf_options options;
    const char *pack;
    const struct posenc_backend *backends[MOST_BACKENDS]; /* none: all of them */
    struct counts counts[MOST_BACKENDS];
    size_t n, n_except;
};

/* ---- Arguments ---- */

static int refuse_backend(const char *name, const char *reason)
{
    const struct posenc_backend *b;
    fprintf(stderr, "runner: --backend: %s: %s: expected one of", name, reason);
    for (size_t i = 0; (b = posenc_backend_at(i)); i++)
        if (!posenc_backend_obstacle(b))
            fprintf(stderr, " %s", b->name);
    fprintf(stderr, "\n");
    return BAD_INPUT;
}

static int take_backend(struct wanted *wanted, const char *name)
{
    const struct posenc_backend *backend = name ? posenc_backend_find(name) : NULL;
    if (!backend)
        return refuse_backend(name ? name : "no name", "there is no such backend");
    if (posenc_backend_obstacle(backend))
        return refuse_backend(name, posenc_backend_obstacle(backend));
    for (size_t i = 0; i < wanted->n; i++)
        if (wanted->backends[i] == backend)
            return 0;
    if (wanted->n < MOST_BACKENDS)
        wanted->backends[wanted->n++] = backend;
    return 0;
}

static int take_arguments(int argc, char **argv, struct wanted *wanted)
{
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strcmp(argument, "--full") == 0) {
            wanted->options.full = true;
        } else if (strcmp(argument, "--no-accuracy") == 0) {
            wanted->options.no_accuracy = true;
        } else if (strcmp(argument, "--suite") == 0 && argv[i + 1]) {
            wanted->options.suite = argv[++i];
        } else if (strcmp(argument, "--backend") == 0) {
            int bad = take_backend(wanted, argv[++i]);
            if (bad)
                return bad;
        } else if (strcmp(argument, "--except") == 0 && argv[i + 1] &&
                   wanted->n_except < MOST_EXCEPT) {
            wanted->options.except[wanted->n_except++] = argv[++i];
        } else if (argument[0] == '-' || wanted->pack) {
            fprintf(stderr,
                    "runner: unexpected argument: %s: expected [--full] [--no-accuracy | "
                    "--suite NAME] "
                    "[--backend NAME]... [--except GLOB OF CASES]... [PACK OF VECTORS]\n",
                    argument);
            return BAD_INPUT;
        } else {
            wanted->pack = argument;
        }
    }
    return 0;
}

/* ---- Results ---- */

static void on_result(void *user, const struct conf_result *r)
{
    struct wanted *wanted = user;
    struct counts *counts = wanted->counts;
    for (size_t i = 0; wanted->backends[i] != r->backend; i++)
        counts++;
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

static void print_counts(const struct counts *counts)
{
    printf("%lu passed, %lu failed, %lu skipped\n", counts->passed, counts->failed,
           counts->skipped);
    fflush(stdout);
}

/* Adds its counts to the sum, too. */
static void print_backend(const struct posenc_backend *backend, const struct counts *counts,
                          struct counts *sum)
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

/* Takes all that can run here; returns the number of those that cannot. */
static unsigned long take_all(struct wanted *wanted)
{
    const struct posenc_backend *b;
    unsigned long off = 0;
    for (size_t i = 0; (b = posenc_backend_at(i)); i++) {
        const char *obstacle = posenc_backend_obstacle(b);
        if (obstacle) {
            printf("off: %s: %s\n", b->name, obstacle);
            off++;
        } else {
            take_backend(wanted, b->name);
        }
    }
    return off;
}

int main(int argc, char **argv)
{
    struct wanted wanted = { .n = 0 };
    struct vectors vectors;
    struct counts sum = { 0, 0, 0 };
    char error[VECTORS_ERROR];
    if (plugins_of_build())
        return BAD_INPUT;
    int bad = take_arguments(argc, argv, &wanted);
    if (bad)
        return bad;
    if (wanted.pack && !vectors_load_pack(wanted.pack, &vectors, error)) {
        fprintf(stderr, "runner: %s\n", error);
        return BAD_INPUT;
    }
    wanted.options.vectors = wanted.pack ? &vectors : NULL;
    if (wanted.n == 0)
        sum.skipped += take_all(&wanted);
    conf_run(wanted.backends, wanted.n, &wanted.options, on_result, &wanted);
    for (size_t i = 0; i < wanted.n; i++)
        print_backend(wanted.backends[i], &wanted.counts[i], &sum);
    if (wanted.pack)
        vectors_free(&vectors);
    print_counts(&sum);
    return sum.failed ? 1 : sum.passed ? 0 : NOTHING_RAN;
}
