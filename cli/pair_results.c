/*
 * Compares the results of two builds (see pair.h). It runs the suites on both builds, and reports outputs whose bits
 * differ (changes.h), including those of timed problems that fit a cache. The member "build" tells
 * reports/posenc/compare which build a check belongs to.
 */
#define _POSIX_C_SOURCE 200809L
#include "checks.h"
#include "conformance/engine/changes.h"
#include "pair.h"
#include "worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Outputs of larger problems are checked by the timings alone. */
static const size_t most_bytes = (size_t)4 << 20;

struct result_comparison {
    struct pair_run *run;
    struct checks checks;
    struct conf_options options;
    /* Base and head of each backend: base has an even index, and head the next one. */
    struct checks_implementation implementations[2 * BACKENDS_MAX];
    struct problem_line *timed; /* timed problems that fit a cache */
    size_t n_timed;
    size_t n_checks, n_failed; /* of head, for the current kernel and backend */
    size_t current;            /* index of the implementation, in the worker */
};

/* Returns the index of base with the same backend. */
static size_t base_of(size_t index) { return index - index % 2; }

/* ---- In the worker ---- */

/* Returns the largest error of a build, and its value there. */
static json_t *error_record(double max, float value)
{
    return json_pack("{s:o,s:o}", "max", record_number(max), "value",
                     record_hex((double)value));
}

/* Sends a record of outputs that differ, with the largest errors if there is a metric. */
static void send_change(void *user, const struct output_change *c)
{
    const struct result_comparison *comparison = user;
    const struct conf_result *r = &c->head;
    const bool is_worse = r->max > c->base_max, is_better = r->max < c->base_max;
    if (!selection_has_dtype(&comparison->run->session.selected, r->id))
        return;
    json_t *record =
        emit_result("change", r->kernel, case_dtype(r->id), r->numerics, r->id, r->backend);
    record = record_merge(
        record, json_pack("{s:s,s:s,s:o}", "suite", r->suite, "what", "bits", "worse",
                          is_worse || is_better ? json_boolean(is_worse) : json_null()));
    if (r->metric)
        record =
            record_merge(record, json_pack("{s:o,s:o,s:s,s:o,s:s,s:o}", "base",
                                           error_record(c->base_max, c->base_got), "head",
                                           error_record(r->max, r->got), "metric", r->metric,
                                           "limit", record_number(r->limit), "worst_at",
                                           r->worst_at, "want", record_hex(r->want)));
    record = record_merge(record, json_pack("{s:I,s:I,s:{s:s,s:o,s:o},s:s*}", "moved",
                                            (json_int_t)c->n_moved, "of",
                                            (json_int_t)c->n_values, "first", "worst_at",
                                            c->first, "base", record_hex((double)c->first_base),
                                            "head", record_hex((double)c->first_head),
                                            "problem", r->problem[0] ? r->problem : NULL));
    worker_send(record);
}

/* Sends checks of a problem that only one build could run. If both fail in the same way, nothing has changed. */
static void send_fault(void *user, const struct conf_result *base,
                       const struct conf_result *head)
{
    const struct result_comparison *comparison = user;
    if (base->status == head->status)
        return;
    worker_send(checks_record(&comparison->checks, base_of(comparison->current), base));
    worker_send(checks_record(&comparison->checks, comparison->current, head));
}

static bool has_kernel(const struct result_comparison *comparison, size_t index,
                       enum posenc_kernel kernel)
{
    const struct posenc_backend *backend =
        comparison->implementations[index].implementation.backend;
    return backend && posenc_backend_provides(backend, kernel);
}

/* Sends a check that belongs to no suite: alibi/f32/supported or alibi/f32/ended. */
static void send_own_check(const struct result_comparison *comparison,
                           enum posenc_kernel kernel, enum posenc_dtype dtype, const char *name,
                           bool is_supported)
{
    struct conf_result r = {
        .kernel = kernel,
        .suite = "all",
        .backend = comparison->implementations[comparison->current].implementation.backend,
        .status = is_supported ? CONF_PASS : CONF_UNSUPPORTED
    };
    snprintf(r.id, sizeof r.id, "%s/%s/%s", posenc_kernel_name(kernel), dtype_names[dtype],
             name);
    worker_send(checks_record(&comparison->checks, comparison->current, &r));
}

/* Compares outputs of an implementation with those of base. Base is compared with itself first, so that a problem that
 * crashes it is attributed to base. Then sends checks that the implementation supports the kernel and its types, and
 * did not crash. */
static void compare_outputs(void *user, size_t index, enum posenc_kernel kernel)
{
    struct result_comparison *comparison = user;
    const size_t base = base_of(index);
    const bool base_has = has_kernel(comparison, base, kernel),
               head_has = has_kernel(comparison, index, kernel);
    const struct changes_request request = {
        .options = &(struct conf_options){ .vectors = comparison->options.vectors },
        .base = &comparison->implementations[base].implementation,
        .head = &comparison->implementations[index].implementation,
        .extra = comparison->timed,
        .n_extra = comparison->n_timed,
        .on_change = send_change,
        .on_fault = send_fault,
        .user = comparison
    };
    const struct posenc_backend *backend = request.head->backend;
    struct change_counts seen = { 0 };
    comparison->current = index;
    if (!base_has && !head_has)
        return;
    if (base_has && head_has)
        seen = changes_find(&request, kernel);
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        if (!comparison->run->session.selected.names_dtypes ||
            comparison->run->session.selected.dtypes[dtype])
            send_own_check(comparison, kernel, (enum posenc_dtype)dtype, "supported",
                           head_has && (dtype == POSENC_DTYPE_F32 || backend->f16_bf16));
    send_own_check(comparison, kernel, POSENC_DTYPE_F32, "ended", true);
    if (index != base)
        worker_send(json_pack("{s:s,s:s,s:s,s:s,s:I,s:I,s:I}", "t", "agreement", "kernel",
                              posenc_kernel_name(kernel), "backend", backend->name, "family",
                              backend->family, "problems", (json_int_t)seen.problems, "values",
                              (json_int_t)seen.values, "moved", (json_int_t)seen.moved));
}

/* ---- In the parent ---- */

/* Counts the checks of head until its "agreement" takes the counts. A head that crashes sends none; the "ended" of the
 * next base then clears the counts. */
static void receive_check(struct result_comparison *comparison, const json_t *check)
{
    const char *id = record_text(check, "case");
    const char *name = strrchr(id, '/');
    if (record_is(check, "build", "head")) {
        comparison->n_checks++;
        comparison->n_failed += check_has_failed(check);
        comparison->run->head_failed |= check_has_failed(check);
    } else if (name && strcmp(name, "/ended") == 0) {
        comparison->n_checks = comparison->n_failed = 0;
    }
}

static void receive_record(void *user, json_t *record)
{
    struct result_comparison *comparison = user;
    const char *kind = record_text(record, "t");
    if (record_is(record, "status", "elsewhere"))
        return;
    if (strcmp(kind, "check") == 0)
        receive_check(comparison, record);
    if (strcmp(kind, "agreement") == 0) {
        json_object_set_new(record, "cases", json_integer((json_int_t)comparison->n_checks));
        json_object_set_new(record, "failed", json_integer((json_int_t)comparison->n_failed));
        comparison->n_checks = comparison->n_failed = 0;
    }
    records_append(&comparison->run->session.records, json_incref(record));
}

static void show_progress(void *user, size_t done, size_t total)
{
    (void)user;
    progress_draw(&(struct progress){ .command = "pair results",
                                      .unit = "kernels on backends of either build",
                                      .done = (double)done,
                                      .total = total });
}

/* ---- Setup ---- */

/* Lists the timed problems that fit a cache, named by the last part of their ids. */
static void list_timed(struct result_comparison *comparison)
{
    const struct pair_run *run = comparison->run;
    comparison->timed = cli_allocate(run->n_cases, sizeof *comparison->timed);
    for (size_t i = 0; i < run->n_cases; i++) {
        const char *slash = strrchr(run->cases[i].id, '/');
        if (problem_working_set(&run->cases[i].problem) <= most_bytes)
            comparison->timed[comparison->n_timed++] =
                (struct problem_line){ .name = slash ? slash + 1 : run->cases[i].id,
                                       .problem = run->cases[i].problem };
    }
}

static void list_implementations(struct result_comparison *comparison)
{
    const struct pair_run *run = comparison->run;
    for (size_t i = 0; i < run->n_cases; i++)
        comparison->options.kernels[run->cases[i].problem.kernel] = true;
    for (size_t i = 0; i < run->n_backends; i++) {
        const struct pair_backend *backend = &run->backends[i];
        struct checks_implementation *base = &comparison->implementations[2 * i],
                                     *head = base + 1;
        base->build = "base";
        head->build = "head";
        if (backend->base)
            base->implementation = *backend->base;
        if (backend->head)
            head->implementation = *backend->head;
    }
}

static bool wants_check(const void *user, const struct posenc_backend *backend, const char *id)
{
    const struct result_comparison *comparison = user;
    (void)backend;
    return selection_has_dtype(&comparison->run->session.selected, id);
}

void pair_compare_results(struct pair_run *run)
{
    struct session *session = &run->session;
    struct result_comparison *comparison = cli_allocate(1, sizeof *comparison);
    comparison->run = run;
    comparison->options = (struct conf_options){ .full = session->cli->full,
                                                 .vectors = &session->vectors,
                                                 .wants = wants_check,
                                                 .wants_user = comparison };
    comparison->checks = (struct checks){ .implementations = comparison->implementations,
                                          .n_implementations = 2 * run->n_backends,
                                          .options = &comparison->options,
                                          .rerun = "",
                                          .limit_s = (double)NAN,
                                          .on_record = receive_record,
                                          .after_suites = compare_outputs,
                                          .progress = show_progress,
                                          .user = comparison };
    list_timed(comparison);
    list_implementations(comparison);
    checks_run(&comparison->checks);
    free(comparison->timed);
    free(comparison);
    progress_clear();
    session_exit_if_interrupted(session);
}
