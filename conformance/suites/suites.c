/*
 * The suites as the engine takes them: see suites.h.
 */
#include "suites.h"

#include <stdio.h>
#include <string.h>

const struct suite suites[] = {
    { "vectors", suite_vectors },       { "accuracy", suite_accuracy },
    { "accuracy", suite_end_to_end },   { "accuracy", suite_model },
    { "digests", suite_digests },       { "memory", suite_memory },
    { "properties", suite_properties }, { "problem", suite_problem },
};
const size_t n_suites = sizeof suites / sizeof suites[0];

/* Limits that cannot be read are a result, too. */
static bool read_limits(const struct conf_options *options,
                        const struct posenc_backend *backend, conf_sink *sink, void *user)
{
    char error[512];
    if (budgets_read(options->budgets_path, error) == 0)
        return true;
    struct conf_result r = { .id = "budgets",
                             .suite = "accuracy",
                             .profile = "given",
                             .backend = backend,
                             .status = CONF_FAIL };
    snprintf(r.reason, sizeof r.reason, "%.190s", error);
    sink(user, &r);
    return false;
}

size_t conf_run_subject(const struct subject *subject, const struct conf_options *options,
                        conf_sink *sink, void *user)
{
    if (!read_limits(options, subject->backend, sink, user))
        return 1;
    return engine_run(suites, n_suites, subject, options, sink, user);
}

size_t conf_run_kernel(const struct posenc_backend *backend, enum posenc_kernel kernel,
                       const struct conf_options *options, conf_sink *sink, void *user)
{
    const struct subject subject = subject_of(backend);
    struct conf_options alone = *options;
    memset(alone.kernels, 0, sizeof alone.kernels);
    alone.kernels[kernel] = true;
    return conf_run_subject(&subject, &alone, sink, user);
}

size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user)
{
    size_t failed = 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        for (size_t i = 0; i < n && conf_selects(options, (enum posenc_kernel)k); i++)
            failed += conf_run_kernel(backends[i], (enum posenc_kernel)k, options, sink, user);
    return failed;
}
