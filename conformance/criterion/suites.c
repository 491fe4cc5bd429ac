/*
 * Criterion suites: a test for each kernel, such as conformance/rope_half, runs the engine's quick
 * cases on each backend that can run here. The oracle answers once for all of them.
 *
 * The environment variable POSENC_VECTORS names the pack of golden vectors.
 */
#include "conformance/engine/plugin.h"
#include "conformance/suites/suites.h"
#include "conformance/readers/vectors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 5, MOST_BACKENDS = 64 }; /* LISTED: failures in the message of a test */

struct failures {
    size_t n_passed, n;
    char text[LISTED * 1000 + 1];
};

static void on_result(void *user, const struct conf_result *r)
{
    struct failures *failures = user;
    failures->n_passed += r->status == CONF_PASS;
    if (r->status != CONF_FAIL && r->status != CONF_CRASH)
        return;
    size_t used = strlen(failures->text);
    if (failures->n++ < LISTED)
        snprintf(failures->text + used, sizeof failures->text - used,
                 "\n  %s %s\n  rerun: posenc verify --backend %s --case %s%s%s", r->id,
                 r->reason, r->backend->name, r->id, r->problem[0] ? "\n  problem: " : "",
                 r->problem);
}

#ifdef WITH_FAULTY_KERNEL /* the test of this runner: it must fail */
#include "conformance/faults/faulty.h"

static void run(const struct conf_options *options, struct failures *failures)
{
    const struct implementation faulty = implementation_of(
        faulty_backend(fault_find("differs-in-place"), posenc_backend_find("scalar")));
    conf_run_implementation(&faulty, options, on_result, failures);
}
#else
static void run(const struct conf_options *options, struct failures *failures)
{
    const struct posenc_backend *usable[MOST_BACKENDS], *backend;
    size_t n = 0;
    cr_assert(plugins_add_of_build() == 0, "a plug-in of this build cannot be loaded");
    for (size_t i = 0; (backend = posenc_backend_at(i)); i++) {
        cr_assert(n < MOST_BACKENDS);
        if (!posenc_backend_obstacle(backend))
            usable[n++] = backend;
    }
    conf_run(usable, n, options, on_result, failures);
    cr_assert(failures->n_passed > 0, "nothing was checked");
}
#endif

static void check_kernel(enum posenc_kernel kernel)
{
    struct conf_options options = { .full = false };
    struct failures failures = { 0 };
    struct vectors vectors;
    char error[VECTORS_ERROR];
    const char *pack = getenv("POSENC_VECTORS");
    if (pack)
        cr_assert(vectors_load_pack(pack, &vectors, error), "%s", error);
    options.vectors = pack ? &vectors : NULL;
    options.kernels[kernel] = true;
    run(&options, &failures);
    if (pack)
        vectors_free(&vectors);
    cr_assert(failures.n == 0, "%s: %zu cases failed, the first of them:%s",
              posenc_kernel_name(kernel), failures.n, failures.text);
}

#define POSENC_KERNEL(name, signature, ...)                                                    \
    Test(conformance, name, .timeout = 1200) { check_kernel(POSENC_KERNEL_##name); }
#include <posenc_kernels.def>
