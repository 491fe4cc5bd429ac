/* Runs suites, kernel by kernel; see suites.h. If a backend cannot run here, each of its kernels gets a result with the
 * reason: "alibi/f32/unsupported". A provided kernel that no case runs is a failure: "alibi/f32/never-entered". */
#include "suites.h"
#include "conformance/properties/properties.h"
#include "conformance/random/random.h"

#include <string.h>

/* The suites and parts of suites, in the order in which they run for each kernel. */
static const struct suite {
    const char *name;
    suite_function *run;
    enum program_mode programs; /* the last mode in which it judges programs */
} suites[] = {
    /* must make the first call of each kernel */
    { "side-effects", suite_side_effects, NO_PROGRAM },
    { "vectors", suite_vectors, PROGRAM_ANSWERED },
    { "accuracy", suite_accuracy, PROGRAM_RUNS },
    { "accuracy", suite_model, PROGRAM_ANSWERED },
    { "digests", suite_digests, NO_PROGRAM },
    { "memory", suite_memory, NO_PROGRAM },
    { "properties", suite_properties, PROGRAM_RUNS },
    { "random", suite_random, PROGRAM_RUNS },
    { "problem", suite_problem, PROGRAM_RUNS },
};

static bool is_selected(const struct suite *suite, const struct conf_options *options)
{
    if (options->suite && strcmp(options->suite, suite->name) != 0)
        return false;
    return suite->programs >= options->program &&
           !(options->no_accuracy && strcmp(suite->name, "accuracy") == 0);
}

/* Runs the suites of one kernel; returns the number of failed or crashed results. */
static size_t run_kernel(const struct implementation *implementation, enum posenc_kernel kernel,
                         const struct conf_options *options, conf_sink *sink, void *user)
{
    struct suite_run run = { .options = options,
                             .implementation = implementation,
                             .backend = implementation->backend,
                             .kernel = kernel,
                             .sink = sink,
                             .user = user };
    const char *unavailable_reason = posenc_backend_unavailable_reason(run.backend);
    if (!conf_selects(options, kernel) || !posenc_backend_provides(run.backend, kernel))
        return 0;
    if (unavailable_reason) {
        suite_report_kernel(&run, CONF_UNSUPPORTED, unavailable_reason);
        return run.failed;
    }
    for (size_t s = 0; s < sizeof suites / sizeof *suites; s++)
        if (is_selected(&suites[s], options))
            suites[s].run(&run, kernel);
    const bool has_all_cases =
        !options->suite && !options->case_glob && options->program != PROGRAM_ANSWERED;
    if (has_all_cases && !run.n_entered && !run.n_elsewhere)
        suite_report_kernel(&run, CONF_FAIL,
                            options->program
                                ? "no prompt was answered, although the hello offers it"
                                : "no case entered this kernel");
    return run.failed;
}

size_t conf_run_implementation(const struct implementation *implementation,
                               const struct conf_options *options, conf_sink *sink, void *user)
{
    size_t failed = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        failed += run_kernel(implementation, (enum posenc_kernel)k, options, sink, user);
    return failed;
}

size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user)
{
    size_t failed = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (size_t i = 0; i < n; i++) {
            const struct implementation implementation = implementation_of(backends[i]);
            failed += run_kernel(&implementation, (enum posenc_kernel)k, options, sink, user);
        }
    return failed;
}
