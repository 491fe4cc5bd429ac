/*
 * Criterion suites: a test for each kernel, such as conformance/rope_half, runs the engine's quick cases on each backend
 * that can run here. The expected rows are computed once for all backends.
 *
 * The environment variable POSENC_VECTORS names the folder of golden vectors. Without it, the suite of vectors is left
 * out.
 */
#include "conformance/engine/library.h"
#include "conformance/suites/suites.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BACKENDS = 64, MOST_LISTED = 5 /* failures in the message of a test */ };

/* Counts of results, and the first failures. */
struct outcome {
    size_t n_passed, n_failed;
    char text[MOST_LISTED * 1000 + 1];
};

static void on_result(void *user, const struct conf_result *r)
{
    struct outcome *outcome = user;
    outcome->n_passed += r->status == CONF_PASS;
    if (r->status != CONF_FAIL && r->status != CONF_CRASH)
        return;
    size_t used = strlen(outcome->text);
    if (outcome->n_failed++ < MOST_LISTED)
        snprintf(outcome->text + used, sizeof outcome->text - used,
                 "\n  %s %s\n  rerun: posenc verify --backend %s --case %s%s%s", r->id,
                 r->reason, r->backend->name, r->id, r->problem[0] ? "\n  problem: " : "",
                 r->problem);
}

#ifdef WITH_FAULTY_KERNEL /* the tests of this runner */
#include "conformance/faults/faulty.h"

/* The environment variable POSENC_FAULT names a fault, with which the test must fail. Without it, or if no fault has
 * that name, the kernels are right and the test passes. */
static void run(const struct conf_options *options, struct outcome *outcome)
{
    const char *name = getenv("POSENC_FAULT");
    const struct implementation faulty = implementation_of(
        faulty_backend(name ? fault_find(name) : NULL, posenc_backend_find("scalar")));
    conf_run_implementation(&faulty, options, on_result, outcome);
}
#else
static void run(const struct conf_options *options, struct outcome *outcome)
{
    const struct posenc_backend *usable[MOST_BACKENDS], *backend;
    size_t n = 0;
    cr_assert(plugins_add_of_build() == 0, "a plug-in of this build cannot be loaded");
    for (size_t i = 0; (backend = posenc_backend_at(i)); i++) {
        cr_assert(n < MOST_BACKENDS);
        if (!posenc_backend_unavailable_reason(backend))
            usable[n++] = backend;
    }
    conf_run(usable, n, options, on_result, outcome);
}
#endif

static void check_kernel(enum posenc_kernel kernel)
{
    struct conf_options options = { .full = false };
    struct outcome outcome = { 0 };
    struct vectors vectors;
    char error[VECTORS_ERROR];
    const char *golden = getenv("POSENC_VECTORS");
    if (golden)
        cr_assert(vectors_load(golden, &vectors, error), "%s", error);
    options.vectors = golden ? &vectors : NULL;
    options.kernels[kernel] = true;
    run(&options, &outcome);
    if (golden)
        vectors_free(&vectors);
    cr_assert(outcome.n_passed > 0, "nothing was checked");
    cr_assert(outcome.n_failed == 0, "%s: %zu cases failed, the first of them:%s",
              posenc_kernel_name(kernel), outcome.n_failed, outcome.text);
}

#define POSENC_KERNEL(ID, name, signature, ...)                                                \
    Test(conformance, name, .timeout = 1200) { check_kernel(POSENC_KERNEL_##ID); }
#include <posenc_kernels.def>
