/*
 * Criterion suites, made of the lists of kernels and of backends: one test for each kernel and
 * backend, Test(rope_half, avx2).  It runs the engine's quick cases of that kernel on that
 * backend, all of them inside the one test, for a test costs a process.  A backend that cannot
 * run here or lacks the kernel is a skipped test with the reason.
 *
 * The environment variable POSENC_VECTORS names the pack of golden vectors.
 */
#include "backends.h"

#include "conformance/engine/plugin.h"
#include "conformance/suites/suites.h"
#include "conformance/readers/vectors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 5 }; /* failures in the message of a test */

struct failures {
    size_t n;
    char text[LISTED * 1000 + 1];
};

static void on_result(void *user, const struct conf_result *r)
{
    struct failures *failures = user;
    if (r->status != CONF_FAIL && r->status != CONF_CRASH)
        return;
    size_t used = strlen(failures->text);
    if (failures->n++ < LISTED)
        snprintf(failures->text + used, sizeof failures->text - used,
                 "\n  %s %s\n  rerun: posenc verify --backend %s --case %s%s%s", r->id,
                 r->reason, r->backend->name, r->id, r->problem[0] ? "\n  problem: " : "",
                 r->problem);
}

#ifdef WITH_BROKEN_KERNEL /* the test of this runner: it must fail */
#include "conformance/broken/mistake.h"

static struct subject find(const char *name)
{
    const struct posenc_backend *base = posenc_backend_find(name);
    return base ? *mistaken(mistake_find("rope_half_clobber"), base) : subject_library;
}
#else
static struct subject find(const char *name)
{
    cr_assert(plugins_of_build() == 0, "a plug-in of this build cannot be loaded");
    return subject_of(posenc_backend_find(name));
}
#endif

static void check_kernel(enum posenc_kernel kernel, const char *name)
{
    const struct subject subject = find(name);
    const struct posenc_backend *backend = subject.backend;
    cr_assert(backend, "%s is not in this build", name);
    if (posenc_backend_obstacle(backend))
        cr_skip_test("%s", posenc_backend_obstacle(backend));
    if (!posenc_provides(backend, kernel))
        cr_skip_test("%s does not provide %s", name, posenc_kernel_name(kernel));
    struct conf_options options = { .full = false };
    struct failures failures = { 0 };
    struct vectors vectors;
    char error[VECTORS_ERROR];
    const char *pack = getenv("POSENC_VECTORS");
    if (pack)
        cr_assert(vectors_load_pack(pack, &vectors, error), "%s", error);
    options.vectors = pack ? &vectors : NULL;
    options.kernels[kernel] = true;
    size_t failed = conf_run_subject(&subject, &options, on_result, &failures);
    if (pack)
        vectors_free(&vectors);
    cr_assert(failed == 0, "%s on %s: %zu cases failed, the first of them:%s",
              posenc_kernel_name(kernel), name, failed, failures.text);
}

#define SUITE(kernel, backend)                                                                 \
    Test(kernel, backend, .timeout = 1200) { check_kernel(POSENC_KERNEL_##kernel, #backend); }
#define POSENC_KERNEL(name, signature, ...) FOR_EACH_BACKEND(SUITE, name)
#include <posenc_kernels.def>
