/*
 * The process that times, and the one that listens to it: see bench_apart.h.
 *
 * A result goes through the pipe as it is: its pointers are to constants, cases and backends, which lie at
 * the same addresses in a process and its parent.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench_apart.h"

#include "apart.h"
#include "base/clock.h"
#include "plugins.h"
#include "progress.h"
#include "base/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON = 288, ERROR = 256 };
/* So long may pass between two calls: a case is filled, checked by the oracle. */
static const double BETWEEN_S = 600.0;

/* What a process notes: the case at hand; the backend at hand, and the plug-in that ran last, each its
 * number plus one. */
enum { AT_CASE, AT_BACKEND, AT_PLUGIN };

struct message {
    enum { HAS_RESULT, HAS_FAILED, HAS_ENDED } what;
    struct bench_result result;
    char refused[REASON], error[ERROR];
};

struct timing {
    const struct bench_case *cases;
    size_t n_cases, first; /* from which the process begins */
    const struct posenc_backend *const *backends;
    size_t n_backends, results; /* that were handed on */
    struct bench_options options;
    struct unfit *unfit;
    bench_sink *sink;
    void *user;
    int to; /* of the process */
    struct message message;
    bool stopped, ended, failed;
};

/* ---- The process ---- */

static void send_result(void *user, const struct bench_result *result)
{
    struct timing *timing = user;
    struct message *message = &timing->message;
    *message = (struct message){ .what = HAS_RESULT, .result = *result };
    snprintf(message->refused, REASON, "%s", result->refused ? result->refused : "");
    apart_tell(timing->to, message, sizeof *message);
}

static void note_call(void *user, const struct bench_case *bench_case,
                      const struct posenc_backend *backend)
{
    const struct timing *timing = user;
    size_t i = 0;
    while (backend && i < timing->n_backends && timing->backends[i] != backend)
        i++;
    const bool known = backend && i < timing->n_backends,
               foreign = known && plugins_has(backend);
    apart_at(AT_CASE, (size_t)(bench_case - timing->cases));
    apart_at(AT_BACKEND, known ? i + 1 : 0);
    if (foreign)
        apart_at(AT_PLUGIN, i + 1);
    if (known)
        apart_enter(bench_case->id);
    else
        apart_doing(bench_case->id);
}

static const char *tell_unfit(void *user, const struct bench_case *bench_case,
                              const struct posenc_backend *backend)
{
    const struct timing *timing = user;
    return unfit_why(timing->unfit, backend, bench_case->problem.kernel);
}

/* Those that have something to time. */
static void load_plugins(const struct timing *timing)
{
    for (size_t i = 0; i < timing->n_backends; i++) {
        bool wanted = false;
        for (size_t c = timing->first; c < timing->n_cases; c++) {
            const enum posenc_kernel kernel = timing->cases[c].problem.kernel;
            wanted |= posenc_provides(timing->backends[i], kernel) &&
                      !unfit_why(timing->unfit, timing->backends[i], kernel);
        }
        apart_at(AT_BACKEND, i + 1);
        if (wanted)
            plugins_use(timing->backends[i]);
    }
}

static void run_timing(void *user, int to)
{
    struct timing *timing = user;
    struct bench_options options = timing->options;
    char error[ERROR] = "";
    timing->to = to;
    apart_at(AT_CASE, timing->first);
    load_plugins(timing);
    options.stop = NULL; /* its parent ends it */
    options.watch = note_call;
    options.unfit = tell_unfit;
    const int status =
        bench_run(timing->cases + timing->first, timing->n_cases - timing->first,
                  timing->backends, timing->n_backends, &options, send_result, timing, error);
    timing->message = (struct message){ .what = status != 0 ? HAS_FAILED : HAS_ENDED };
    snprintf(timing->message.error, ERROR, "%s", error);
    apart_tell(to, &timing->message, sizeof timing->message);
}

/* ---- Its parent ---- */

/* A result: what a case that began again has told before is not told twice. */
static void take_result(struct timing *timing, struct bench_result *result)
{
    const size_t at_case = (size_t)(result->bench_case - timing->cases);
    size_t backend = 0;
    while (backend < timing->n_backends && timing->backends[backend] != result->backend)
        backend++;
    if (at_case >= timing->n_cases || backend == timing->n_backends ||
        at_case * timing->n_backends + backend != timing->results)
        return;
    timing->results++;
    result->refused = result->outcome == BENCH_TIMED ? NULL : timing->message.refused;
    timing->sink(timing->user, result);
}

static void take_message(struct timing *timing, char *error)
{
    struct message *message = &timing->message;
    message->refused[REASON - 1] = message->error[ERROR - 1] = '\0';
    if (message->what == HAS_RESULT)
        take_result(timing, &message->result);
    timing->failed = message->what == HAS_FAILED;
    timing->ended = timing->failed || message->what == HAS_ENDED;
    if (timing->failed)
        snprintf(error, ERROR, "%s", message->error);
}

/* Reads until it ends, hangs or is not wanted any more; `hung` then says how. */
static void listen_to(struct timing *timing, struct apart *apart,
                      const struct patience *patience, char hung[APART_WORDS], char *error)
{
    const struct bench_options *options = &timing->options;
    enum apart_said said = APART_QUIET;
    while (!timing->ended && !timing->stopped && said != APART_OVER) {
        said = apart_listen(apart, patience, &timing->message, sizeof timing->message, hung);
        timing->stopped = options->stop && options->stop(timing->user);
        if (said == APART_SAID && !timing->stopped)
            take_message(timing, error);
    }
}

/* Whose doing the end was: the backend's at hand; where our own code was, that of the plug-in that ran
 * last, whose traces may show late.  False: nobody's that is not unfit already. */
static bool blame(struct timing *timing, const struct apart *apart, const char *words)
{
    const struct apart_note *note = apart->note;
    const size_t at = note->at[AT_CASE], last = note->at[AT_PLUGIN];
    size_t who = note->at[AT_BACKEND];
    if (at >= timing->n_cases)
        return false;
    const enum posenc_kernel kernel = timing->cases[at].problem.kernel;
    if (who == 0 || (last > 0 && !plugins_has(timing->backends[who - 1])))
        who = last;
    if (who == 0 || who > timing->n_backends ||
        unfit_why(timing->unfit, timing->backends[who - 1], kernel))
        return false;
    char why[UNFIT_WHY], where[APART_DOING + 16];
    apart_where(apart, "", where, sizeof where);
    snprintf(why, sizeof why, "crashed: %.130s%.130s", words, where);
    const bool loading = strcmp(note->doing, "loading") == 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (loading || k == (int)kernel)
            unfit_add(timing->unfit, timing->backends[who - 1], (enum posenc_kernel)k, why);
    return true;
}

/* What is known of plug-ins since they were met. */
static void note_met(struct timing *timing)
{
    for (size_t i = 0; i < timing->n_backends; i++) {
        const char *broken = plugins_broken(timing->backends[i]),
                   *lie = plugins_lie(timing->backends[i]);
        char why[UNFIT_WHY];
        snprintf(why, sizeof why, "%s%.250s", broken ? "crashed: " : "",
                 broken ? broken
                 : lie  ? lie
                        : "");
        for (int k = 0; (broken || lie) && k < POSENC_KERNEL_COUNT; k++)
            unfit_add(timing->unfit, timing->backends[i], (enum posenc_kernel)k, why);
    }
}

/* A process, and whether another one is to go on. */
static bool time_on(struct timing *timing, const struct patience *patience, bool *crashed,
                    char *error)
{
    struct apart apart;
    char hung[APART_WORDS] = "", words[APART_WORDS];
    timing->first = timing->results / timing->n_backends;
    timing->ended = timing->failed = false;
    if (!apart_begin(&apart, run_timing, timing, false)) {
        snprintf(error, ERROR, "no process can be made for it");
        timing->failed = true;
        return false;
    }
    listen_to(timing, &apart, patience, hung, error);
    const bool done = apart_end(&apart, timing->stopped || hung[0] != '\0', words);
    bool again = false;
    if (!timing->stopped && !timing->failed && !(timing->ended && done)) {
        const char *how = hung[0] != '\0' ? hung : words;
        *crashed = true;
        again = blame(timing, &apart, how) && !timing->ended;
        if (!again && !timing->ended) {
            snprintf(error, ERROR, "the process that times: %s", how);
            timing->failed = true;
        }
        progress_clear();
        text_print(stderr, "posenc: the process that times ended in %.*s: %s\n", APART_DOING,
                   apart.note->doing, how);
    }
    apart_forget(&apart);
    return again;
}

int bench_apart(const struct bench_case *cases, size_t n_cases,
                const struct posenc_backend *const *backends, size_t n_backends,
                const struct bench_options *options, double limit_s, struct unfit *unfit,
                bench_sink *sink, void *user, bool *crashed, char *error)
{
    const int threads = options->threads > 1 ? options->threads : 1;
    struct patience patience = patience_of(limit_s, BETWEEN_S);
    patience.inside_s *= threads;
    const double until = clock_now() + bench_budget(options);
    struct timing *timing = calloc(1, sizeof *timing);
    *crashed = false;
    if (!timing || n_backends == 0) {
        free(timing);
        snprintf(error, ERROR, timing ? "no backend" : "out of memory");
        return -1;
    }
    *timing = (struct timing){ .cases = cases,
                               .n_cases = n_cases,
                               .backends = backends,
                               .n_backends = n_backends,
                               .options = *options,
                               .unfit = unfit,
                               .sink = sink,
                               .user = user };
    note_met(timing);
    while (time_on(timing, &patience, crashed, error)) {
        const double left = until - clock_now();
        timing->options.budget_s = left > 0.1 ? left : 0.1;
    }
    const int status = timing->failed ? -1 : 0;
    free(timing);
    return status;
}
