/* The list of suites, in the order in which they run; see suites.h. */
#include "suites.h"
#include "conformance/properties/properties.h"
#include "conformance/random/random.h"

#include <string.h>

static const struct suite suites[] = {
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

size_t conf_run_implementation(const struct implementation *implementation,
                               const struct conf_options *options, conf_sink *sink, void *user)
{
    return engine_run(suites, sizeof suites / sizeof *suites, implementation, options, sink,
                      user);
}

static size_t run_kernel(const struct posenc_backend *backend, enum posenc_kernel kernel,
                         const struct conf_options *options, conf_sink *sink, void *user)
{
    const struct implementation implementation = implementation_of(backend);
    struct conf_options alone = *options;
    memset(alone.kernels, 0, sizeof alone.kernels);
    alone.kernels[kernel] = true;
    return conf_run_implementation(&implementation, &alone, sink, user);
}

size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user)
{
    size_t failed = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (size_t i = 0; i < n && conf_selects(options, (enum posenc_kernel)k); i++)
            failed += run_kernel(backends[i], (enum posenc_kernel)k, options, sink, user);
    return failed;
}
