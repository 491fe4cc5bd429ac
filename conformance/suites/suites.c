/*
 * The suites as the engine takes them: see suites.h.
 */
#include "suites.h"

#include <stdio.h>

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

size_t conf_run(const struct posenc_backend *const *backends, size_t n,
                const struct conf_options *options, conf_sink *sink, void *user)
{
    size_t failed = 0;
    if (!read_limits(options, n ? backends[0] : NULL, sink, user))
        return 1;
    for (size_t i = 0; i < n; i++) {
        const struct subject subject = subject_of(backends[i]);
        failed += engine_run(suites, n_suites, &subject, options, sink, user);
    }
    return failed;
}
