/*
 * Times cases in a worker (see timings.h). The steps of its job are the cases.
 */
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

enum { WHY = 288 };
/* The longest time between two calls of backends: a case is filled, and checked by the oracle. */
static const double BETWEEN_S = 600.0;

/* Numbers that the worker notes: the backend at hand, and the plug-in that ran last, each plus
 * one. */
enum { AT_BACKEND, AT_PLUGIN };

struct run {
    const struct timings *timings;
    const struct worker_job *job;
    double until_s;
    size_t results; /* that were handed on */
    bool failed, crashed;
    char error[TIMINGS_ERROR];
    char unfit[BACKENDS_MAX][POSENC_KERNEL_COUNT]
              [WHY]; /* why a kernel is not timed; "": it is */
};

/* Returns the index of a backend; n_backends for none of them. */
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
    const struct run *run = user;
    worker_send(json_pack("{s:I,s:I,s:i,s:o}", "case",
                          (json_int_t)(result->bench_case - run->timings->cases), "backend",
                          (json_int_t)index_of(run->timings, result->backend), "outcome",
                          (int)result->outcome, "record", emit_bench(result)));
}

static void note_call(void *user, const struct bench_case *bench_case,
                      const struct posenc_backend *backend)
{
    const struct run *run = user;
    const size_t i = index_of(run->timings, backend);
    const bool known = i < run->timings->n_backends;
    worker_note_step((size_t)(bench_case - run->timings->cases));
    worker_note_number(AT_BACKEND, known ? i + 1 : 0);
    if (known && plugins_is_stand_in(backend))
        worker_note_number(AT_PLUGIN, i + 1);
    worker_note_work(known, "in %s", bench_case->id);
}

static const char *why_unfit(void *user, const struct bench_case *bench_case,
                             const struct posenc_backend *backend)
{
    const struct run *run = user;
    const char *why = run->unfit[index_of(run->timings, backend)][bench_case->problem.kernel];
    return *why != '\0' ? why : NULL;
}

/* Loads the plug-ins that have something to time. */
static void load_plugins(struct run *run, size_t first)
{
    const struct timings *timings = run->timings;
    for (size_t i = 0; i < timings->n_backends; i++) {
        bool wanted = false;
        for (size_t c = first; c < timings->n_cases; c++)
            wanted |= posenc_provides(timings->backends[i], timings->cases[c].problem.kernel) &&
                      !why_unfit(run, &timings->cases[c], timings->backends[i]);
        worker_note_number(AT_BACKEND, i + 1);
        if (wanted)
            plugins_load(timings->backends[i]);
    }
}

static size_t time_cases(void *user, size_t first)
{
    struct run *run = user;
    const struct timings *timings = run->timings;
    struct bench_options options = *timings->options;
    char error[TIMINGS_ERROR] = "";
    const double left_s = run->until_s - clock_now();
    load_plugins(run, first);
    options.budget_s = left_s > 0.1 ? left_s : 0.1;
    options.watch = note_call;
    options.unfit = why_unfit;
    if (bench_run(timings->cases + first, timings->n_cases - first, timings->backends,
                  timings->n_backends, &options, send_result, run, error) != 0)
        worker_send(json_pack("{s:s}", "error", error));
    return timings->n_cases;
}

/* ---- In the parent ---- */

/* Takes a result. The part of a case that was handed on before its worker ended is skipped. */
static void take_result(void *user, json_t *message)
{
    struct run *run = user;
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
               (size_t)at_case * timings->n_backends + (size_t)backend == run->results) {
        run->results++;
        timings->take(timings->user, (size_t)at_case, (size_t)backend,
                      (enum bench_outcome)outcome, json_incref(record));
    }
}

static void set_unfit(struct run *run, size_t backend, int kernel, const char *why)
{
    char *text = run->unfit[backend][kernel];
    if (*text == '\0')
        snprintf(text, WHY, "wrong: %s", why);
}

/* Blames the backend at hand. If code of this program was, it blames the plug-in that ran
 * last, whose traces may show late. Returns false if nobody can be blamed who is not unfit
 * already. */
static bool blame(struct run *run, const struct worker_end *end)
{
    const struct timings *timings = run->timings;
    const size_t last = end->note->numbers[AT_PLUGIN];
    const enum posenc_kernel kernel = timings->cases[run->job->step].problem.kernel;
    size_t who = end->note->numbers[AT_BACKEND];
    if (who == 0 || who > timings->n_backends ||
        (last > 0 && !plugins_is_stand_in(timings->backends[who - 1])))
        who = last;
    if (who == 0 || who > timings->n_backends || *run->unfit[who - 1][kernel] != '\0')
        return false;
    char why[WHY - 8];
    snprintf(why, sizeof why, "crashed: %.130s %.130s", end->how, end->note->doing);
    const bool loading = strcmp(end->note->doing, PLUGINS_LOADING) == 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (loading || k == (int)kernel)
            set_unfit(run, who - 1, k, why);
    return true;
}

static size_t lose_case(void *user, const struct worker_end *end)
{
    struct run *run = user;
    const bool ended = end->note->finished || run->failed, blamed = blame(run, end);
    run->crashed = true;
    progress_clear();
    text_print(stderr, "posenc: the process that times ended %s: %s\n", end->note->doing,
               end->how);
    if (ended || blamed)
        return ended ? run->timings->n_cases : run->results / run->timings->n_backends;
    run->failed = true;
    snprintf(run->error, sizeof run->error, "the process that times: %s", end->how);
    return run->timings->n_cases;
}

/* Notes plug-ins that could not be loaded or misreport their vector width. */
static void note_loading(struct run *run)
{
    for (size_t i = 0; i < run->timings->n_backends; i++) {
        const char *broken = plugins_load_error(run->timings->backends[i]),
                   *lie = plugins_lanes_error(run->timings->backends[i]);
        char why[WHY - 8] = "";
        if (broken)
            snprintf(why, sizeof why, "crashed: %.250s", broken);
        else if (lie)
            snprintf(why, sizeof why, "%.250s", lie);
        for (int k = 0; *why != '\0' && k < POSENC_KERNEL_COUNT; k++)
            set_unfit(run, i, k, why);
    }
}

int timings_run(const struct timings *timings, bool *crashed, char error[TIMINGS_ERROR])
{
    const int threads = timings->options->threads > 1 ? timings->options->threads : 1;
    struct worker_limits limits = worker_limits_of(timings->limit_s, BETWEEN_S);
    struct run *run = calloc(1, sizeof *run);
    *crashed = false;
    if (!run || timings->n_backends == 0) {
        snprintf(error, TIMINGS_ERROR, run ? "no backend" : "out of memory");
        free(run);
        return -1;
    }
    struct worker_job job = { .user = run,
                              .n_steps = timings->n_cases,
                              .run = time_cases,
                              .take = take_result,
                              .lost = lose_case };
    limits.inside_s *= threads;
    run->timings = timings;
    run->job = &job;
    run->until_s = clock_now() + bench_budget(timings->options);
    note_loading(run);
    workers_run(&job, 1, 1, &limits, timings->goes_on, timings->user);
    const int status = run->failed ? -1 : 0;
    *crashed = run->crashed;
    snprintf(error, TIMINGS_ERROR, "%s", run->error);
    free(run);
    return status;
}
