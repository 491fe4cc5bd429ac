/* Times cases in a worker (see timings.h). The steps of its job are the cases. */
#define _POSIX_C_SOURCE 200809L
#include "timings.h"
#include "base/text/text.h"
#include "base/clock.h"
#include "emit.h"
#include "plugins.h"
#include "progress.h"
#include "worker.h"

#include <stdlib.h>
#include <string.h>

enum { REASON = 288 };
/* Limit of the time between two calls of backends, in which inputs are filled and outputs are checked. */
static const double BETWEEN_S = 600.0;

/* Numbers of worker_set_number(): 1 plus the index of the current backend, and of the last plug-in; 0: none. */
enum { AT_BACKEND, AT_PLUGIN };

struct timing_run {
    const struct timings *timings;
    const struct worker_job *job;
    double deadline_s;
    size_t n_results; /* passed to on_record() */
    bool failed, crashed;
    char error[TIMINGS_ERROR];
    char excluded[BACKENDS_MAX][POSENC_KERNEL_COUNT]
                 [REASON]; /* why a kernel is not timed, or "" */
};

/* Returns the index of a backend, or n_backends. */
static size_t index_of(const struct timings *timings, const struct posenc_backend *backend)
{
    size_t i = 0;
    while (i < timings->n_backends && timings->backends[i] != backend)
        i++;
    return i;
}

/* ---- In the worker ---- */

static void send_result(void *user, const struct bench_result *result)
{
    const struct timing_run *run = user;
    worker_send(json_pack("{s:I,s:I,s:i,s:o}", "case",
                          (json_int_t)(result->bench_case - run->timings->cases), "backend",
                          (json_int_t)index_of(run->timings, result->backend), "outcome",
                          (int)result->outcome, "record", emit_bench(result)));
}

static void note_call(void *user, const struct bench_case *bench_case,
                      const struct posenc_backend *backend)
{
    const struct timing_run *run = user;
    const size_t i = index_of(run->timings, backend);
    const bool known = i < run->timings->n_backends;
    worker_set_step((size_t)(bench_case - run->timings->cases));
    worker_set_number(AT_BACKEND, known ? i + 1 : 0);
    if (known && plugins_is_stub(backend))
        worker_set_number(AT_PLUGIN, i + 1);
    worker_set_activity(known, "in %s", bench_case->id);
}

static const char *exclusion_reason(void *user, const struct bench_case *bench_case,
                                    const struct posenc_backend *backend)
{
    const struct timing_run *run = user;
    const char *reason =
        run->excluded[index_of(run->timings, backend)][bench_case->problem.kernel];
    return *reason != '\0' ? reason : NULL;
}

/* Loads the plug-ins that are timed in a case from `first` on. */
static void load_plugins(struct timing_run *run, size_t first)
{
    const struct timings *timings = run->timings;
    for (size_t i = 0; i < timings->n_backends; i++) {
        bool wanted = false;
        for (size_t c = first; c < timings->n_cases; c++)
            wanted |= posenc_backend_provides(timings->backends[i],
                                              timings->cases[c].problem.kernel) &&
                      !exclusion_reason(run, &timings->cases[c], timings->backends[i]);
        worker_set_number(AT_BACKEND, i + 1);
        if (wanted)
            plugins_load(timings->backends[i]);
    }
}

static size_t time_cases(void *user, size_t first)
{
    struct timing_run *run = user;
    const struct timings *timings = run->timings;
    struct bench_options options = *timings->options;
    char error[TIMINGS_ERROR] = "";
    const double left_s = run->deadline_s - clock_now();
    load_plugins(run, first);
    options.time_limit_s = left_s > 0.1 ? left_s : 0.1;
    options.on_call = note_call;
    options.find_exclusion = exclusion_reason;
    if (bench_run(timings->cases + first, timings->n_cases - first, timings->backends,
                  timings->n_backends, &options, send_result, run, error) != 0)
        worker_send(json_pack("{s:s}", "error", error));
    return timings->n_cases;
}

/* ---- In the parent ---- */

/* Receives a result. Results of a repeated case that were passed on before are ignored. */
static void receive_result(void *user, json_t *message)
{
    struct timing_run *run = user;
    const struct timings *timings = run->timings;
    json_int_t at_case, backend;
    json_t *record;
    const char *error = json_string_value(json_object_get(message, "error"));
    int outcome;
    if (error) {
        run->failed = true;
        snprintf(run->error, sizeof run->error, "%s", error);
    } else if (json_unpack(message, "{s:I,s:I,s:i,s:o}", "case", &at_case, "backend", &backend,
                           "outcome", &outcome, "record", &record) == 0 &&
               at_case >= 0 && backend >= 0 && (size_t)at_case < timings->n_cases &&
               (size_t)at_case * timings->n_backends + (size_t)backend == run->n_results) {
        run->n_results++;
        timings->on_record(timings->user, (size_t)at_case, (size_t)backend,
                           (enum bench_outcome)outcome, json_incref(record));
    }
}

static void exclude(struct timing_run *run, size_t backend, int kernel, const char *reason)
{
    char *text = run->excluded[backend][kernel];
    if (*text == '\0')
        snprintf(text, REASON, "wrong: %s", reason);
}

/* Excludes the current backend from timings of its kernel. If it is no plug-in and one ran before, excludes that
 * plug-in instead, as it may have damaged the process. Returns false if there is no such backend, or if it is excluded
 * already. */
static bool exclude_crashed(struct timing_run *run, const struct worker_end *end)
{
    const struct timings *timings = run->timings;
    const size_t last = end->status->numbers[AT_PLUGIN];
    const enum posenc_kernel kernel = timings->cases[run->job->step].problem.kernel;
    size_t crashed = end->status->numbers[AT_BACKEND];
    if (crashed == 0 || crashed > timings->n_backends ||
        (last > 0 && !plugins_is_stub(timings->backends[crashed - 1])))
        crashed = last;
    if (crashed == 0 || crashed > timings->n_backends ||
        *run->excluded[crashed - 1][kernel] != '\0')
        return false;
    char reason[REASON - 8];
    snprintf(reason, sizeof reason, "crashed: %.130s %.130s", end->cause,
             end->status->activity);
    const bool loading = strcmp(end->status->activity, PLUGINS_LOADING) == 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (loading || k == (int)kernel)
            exclude(run, crashed - 1, k, reason);
    return true;
}

static size_t handle_early_end(void *user, const struct worker_end *end)
{
    struct timing_run *run = user;
    const bool ended = end->status->finished || run->failed,
               excluded_one = exclude_crashed(run, end);
    run->crashed = true;
    progress_clear();
    text_print(stderr, "posenc: the timing process ended %s: %s\n", end->status->activity,
               end->cause);
    if (ended || excluded_one)
        return ended ? run->timings->n_cases : run->n_results / run->timings->n_backends;
    run->failed = true;
    snprintf(run->error, sizeof run->error, "the timing process: %s", end->cause);
    return run->timings->n_cases;
}

/* Excludes plug-ins that could not be loaded or whose lanes() is wrong. */
static void exclude_unloadable(struct timing_run *run)
{
    for (size_t i = 0; i < run->timings->n_backends; i++) {
        const char *load_error = plugins_load_error(run->timings->backends[i]),
                   *lanes_error = plugins_lanes_error(run->timings->backends[i]);
        char reason[REASON - 8] = "";
        if (load_error)
            snprintf(reason, sizeof reason, "crashed: %.250s", load_error);
        else if (lanes_error)
            snprintf(reason, sizeof reason, "%.250s", lanes_error);
        for (int k = 0; *reason != '\0' && k < POSENC_KERNEL_COUNT; k++)
            exclude(run, i, k, reason);
    }
}

int timings_run(const struct timings *timings, bool *crashed, char error[TIMINGS_ERROR])
{
    const int threads = timings->options->threads > 1 ? timings->options->threads : 1;
    struct worker_limits limits = worker_limits_of(timings->limit_s, BETWEEN_S);
    struct timing_run *run = calloc(1, sizeof *run);
    *crashed = false;
    if (!run || timings->n_backends == 0) {
        snprintf(error, TIMINGS_ERROR, run ? "no backend" : "out of memory");
        free(run);
        return -1;
    }
    struct worker_job job = { .user = run,
                              .n_steps = timings->n_cases,
                              .run = time_cases,
                              .on_message = receive_result,
                              .on_early_end = handle_early_end };
    limits.inside_s *= threads;
    run->timings = timings;
    run->job = &job;
    run->deadline_s = clock_now() + bench_time_limit(timings->options);
    exclude_unloadable(run);
    workers_run(&job, 1, 1, &limits, timings->keep_going, timings->user);
    const int status = run->failed ? -1 : 0;
    *crashed = run->crashed;
    snprintf(error, TIMINGS_ERROR, "%s", run->error);
    free(run);
    return status;
}
