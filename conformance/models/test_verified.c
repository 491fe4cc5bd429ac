/*
 * Every built-in model on every backend that runs here: a few rows of each of its calls against
 * the oracle, at the first positions and the last, on both sides of a change of frequencies.
 */
#include "conformance/tap/tap.h"
#include "conformance/suites/suites.h"
#include "model.h"

#include <string.h>

struct judged {
    size_t n, failed;
};

static void on_result(void *user, const struct conf_result *r)
{
    struct judged *judged = user;
    if (r->status == CONF_UNSUPPORTED || r->status == CONF_SKIPPED)
        return;
    judged->n++;
    if (r->status == CONF_PASS)
        return;
    judged->failed++;
    printf("# %s %s: %s %s, %g %s where %g is the limit, at %s\n", r->backend->name, r->id,
           conf_status_name[r->status], r->reason, r->max, r->metric ? r->metric : "", r->limit,
           r->witness);
}

static void verify(const char *name, const struct posenc_backend *const *backends, size_t n)
{
    static struct model m;
    char error[MODEL_ERROR] = "", sentence[128];
    struct judged judged = { 0 };
    if (model_by_name(name, &m, error) == 0) {
        const struct conf_options options = { .suite = "accuracy",
                                              .case_glob = "*/model*",
                                              .problem = m.verify,
                                              .n_problems = m.n_verify };
        conf_run(backends, n, &options, on_result, &judged);
    }
    snprintf(sentence, sizeof sentence, "%s conforms, in %zu results", name, judged.n);
    /* The scalar backend provides everything, so that each problem has a result at least. */
    require(judged.n >= m.n_verify && m.n_verify > 0 && judged.failed == 0, sentence);
    model_free(&m);
}

int main(void)
{
    const struct posenc_backend *backends[64];
    size_t n = 0;
    for (size_t i = 0; posenc_backend_at(i) && n < 64; i++)
        if (!posenc_backend_obstacle(posenc_backend_at(i)))
            backends[n++] = posenc_backend_at(i);
    for (size_t i = 0; model_name_at(i); i++)
        verify(model_name_at(i), backends, n);
    return tap_end();
}
