/*
 * posenc bench: times the selected backends on the selected cases and appends a record for each pair. The parts
 * --probe (probe.c) and --instructions (instructions.c) are started here.
 *
 * The timings run in a worker, which loads the plug-ins; the steps of its job are the cases. If a backend crashes or
 * hangs, another worker repeats the case without it, and does not time it again. Its records then say
 * "wrong: crashed: the process ended by signal 11 (Segmentation fault) in alibi/f32/given/l2".
 */
#define _POSIX_C_SOURCE 200809L
#include "base/clock.h"
#include "base/machine/env.h"
#include "base/text/text.h"
#include "base/machine/machine.h"
#include "plugins.h"
#include "session.h"
#include "worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef POSENC_HAVE_BENCH

const char *timings_unavailable_reason(void) { return machine_emulator(); }

/* ---- Cases ---- */

/* Lists the case of --problem. */
static size_t list_problem(const struct session *session, struct bench_case **cases)
{
    struct bench_case *one = *cases = cli_allocate(1, sizeof *one);
    one->problem = session->line.problem;
    problem_id(&one->problem, "problem", one->id, sizeof one->id);
    return 1;
}

size_t session_list_cases(const struct session *session, struct bench_case **cases)
{
    const struct selection *selected = &session->selected;
    const struct cli *cli = session->cli;
    const size_t n =
        cli->tune      ? bench_tuning_cases(selected->kernels, selected->dtypes, cases)
        : cli->problem ? list_problem(session, cases)
        : session->n_models > 0
            ? session_model_cases(session, cases)
            : bench_footprint_cases(selected->kernels, selected->dtypes, cli->full, cases);
    for (size_t i = 0; i < n; i++)
        if (!(*cases)[i].level)
            (*cases)[i].level = bench_level(problem_working_set(&(*cases)[i].problem));
    return n;
}

/* ---- The run ---- */

enum { REASON = 288, BENCH_ERROR = 256 };
/* Limit of the time between two calls of backends, in which inputs are filled and outputs are checked. */
static const double BETWEEN_S = 600.0;

struct bench {
    struct session session;
    size_t n_cases, n_backends;
    struct bench_case *cases;
    size_t *positions; /* index of each case among the cases of all shards */
    const struct posenc_backend *backends[BACKENDS_MAX];
    char excluded[BACKENDS_MAX][REASON]; /* why a backend is not timed, or "" */
    struct bench_options options;
    double deadline_s; /* of clock_now() */
    struct worker_job job;
    bool plugin_was_called; /* in this worker */
    struct progress progress;
    size_t n_results; /* received so far, case by case; each case has one of every backend */
    bool has_timing;  /* among the results */
    enum bench_outcome worst;
};

/* Keeps those of n cases that --case and --shard select. */
static void choose_cases(struct bench *bench, size_t n)
{
    struct session *session = &bench->session;
    for (size_t i = 0; i < n; i++) {
        if (!session_wants_case(session, bench->cases[i].id))
            continue;
        if (!shard_has_case(&session->shard, bench->cases[i].id)) {
            session->in_other_shard = true;
            continue;
        }
        bench->positions[bench->n_cases] = i;
        bench->cases[bench->n_cases++] = bench->cases[i];
    }
}

/* Keeps the backends that run here; for a tuning file, without plug-ins. */
static void choose_backends(struct bench *bench)
{
    const struct selection *selected = &bench->session.selected;
    for (size_t i = 0; i < selected->n; i++)
        if (!posenc_backend_unavailable_reason(selected->backends[i]) &&
            !(bench->session.cli->tune && plugins_is_stub(selected->backends[i])))
            bench->backends[bench->n_backends++] = selected->backends[i];
}

/* Returns the index of a backend that is timed, or n_backends. */
static size_t index_of(const struct bench *bench, const struct posenc_backend *backend)
{
    size_t i = 0;
    while (i < bench->n_backends && bench->backends[i] != backend)
        i++;
    return i;
}

/* ---- In the worker ---- */

static void send_result(void *user, const struct bench_result *result)
{
    const struct bench *bench = user;
    worker_send(json_pack("{s:I,s:I,s:i,s:o}", "case",
                          (json_int_t)(result->bench_case - bench->cases), "backend",
                          (json_int_t)index_of(bench, result->backend), "outcome",
                          (int)result->outcome, "record", emit_bench(result)));
}

/* Sets the step and the number of the worker, with which exclude_crashed() finds the backend to blame. The number is 1
 * plus the index of the last plug-in that was called, as it may have damaged the process; without one, of the current
 * backend; 0: none. */
static void begin_call(void *user, const struct bench_case *bench_case,
                       const struct posenc_backend *backend)
{
    struct bench *bench = user;
    const size_t i = index_of(bench, backend);
    const bool is_known = i < bench->n_backends,
               is_plugin = is_known && plugins_is_stub(backend);
    worker_set_step((size_t)(bench_case - bench->cases));
    if (is_plugin || !bench->plugin_was_called)
        worker_set_number(is_known ? i + 1 : 0);
    bench->plugin_was_called |= is_plugin;
    worker_set_activity(is_known, "in %s", bench_case->id);
}

static const char *find_exclusion(void *user, const struct bench_case *bench_case,
                                  const struct posenc_backend *backend)
{
    const struct bench *bench = user;
    const char *reason = bench->excluded[index_of(bench, backend)];
    (void)bench_case;
    return *reason != '\0' ? reason : NULL;
}

/* Loads the plug-ins that are not excluded. */
static void load_plugins(struct bench *bench)
{
    for (size_t i = 0; i < bench->n_backends; i++) {
        worker_set_number(i + 1);
        if (*bench->excluded[i] == '\0')
            plugins_load(bench->backends[i]);
    }
    worker_set_number(0);
}

static size_t time_in_worker(void *user, size_t first)
{
    struct bench *bench = user;
    char error[BENCH_ERROR] = "";
    load_plugins(bench);
    bench->options.time_limit_s = fmax(bench->deadline_s - clock_now(), 0.1);
    bench->options.on_call = begin_call;
    bench->options.find_exclusion = find_exclusion;
    if (bench_run(bench->cases + first, bench->n_cases - first, bench->backends,
                  bench->n_backends, &bench->options, send_result, bench, error) != 0)
        worker_send(json_pack("{s:s}", "error", error));
    return bench->n_cases;
}

/* ---- In the parent ---- */

/* Receives a result, or an error that ends the run. Ignores results of a repeated case that arrived before. */
static void receive_result(void *user, json_t *message)
{
    struct bench *bench = user;
    const struct selection *selected = &bench->session.selected;
    const char *error = json_string_value(json_object_get(message, "error"));
    json_int_t case_index, backend;
    json_t *record;
    int outcome;
    if (error) {
        progress_clear();
        cli_reject("bench", NULL, "%s", error);
    }
    if (json_unpack(message, "{s:I,s:I,s:i,s:o}", "case", &case_index, "backend", &backend,
                    "outcome", &outcome, "record", &record) != 0 ||
        case_index < 0 || backend < 0 || (size_t)case_index >= bench->n_cases ||
        (size_t)case_index * bench->n_backends + (size_t)backend != bench->n_results)
        return;
    size_t selected_index = 0;
    while (selected->backends[selected_index] != bench->backends[backend])
        selected_index++;
    bench->has_timing |= outcome == BENCH_TIMED;
    bench->worst = outcome > (int)bench->worst ? (enum bench_outcome)outcome : bench->worst;
    session_append(&bench->session, json_incref(record),
                   bench->positions[case_index] * BACKENDS_MAX + selected_index);
    bench->progress.done = (double)(++bench->n_results) / (double)bench->n_backends;
}

/* Excludes the backend of begin_call(). Returns false if there is none, or if it is excluded already. */
static bool exclude_crashed(struct bench *bench, const struct worker_end *end)
{
    const size_t crashed = end->status->number;
    if (crashed == 0 || crashed > bench->n_backends || *bench->excluded[crashed - 1] != '\0')
        return false;
    snprintf(bench->excluded[crashed - 1], REASON, "wrong: crashed: %.130s %.130s", end->cause,
             end->status->activity);
    return true;
}

static size_t handle_early_end(void *user, const struct worker_end *end)
{
    struct bench *bench = user;
    bench->worst = BENCH_WRONG;
    progress_clear();
    text_print(stderr, "posenc: the timing process ended %s: %s\n", end->status->activity,
               end->cause);
    if (end->status->finished)
        return bench->n_cases;
    if (!exclude_crashed(bench, end))
        cli_reject("bench", NULL, "the timing process: %s", end->cause);
    return bench->n_results / bench->n_backends;
}

static void exclude_unloadable(struct bench *bench)
{
    for (size_t i = 0; i < bench->n_backends; i++)
        if (plugins_load_error(bench->backends[i]))
            snprintf(bench->excluded[i], REASON, "wrong: %.280s",
                     plugins_load_error(bench->backends[i]));
}

/* Draws the progress. Returns false after a signal. */
static bool keep_going(void *user)
{
    struct bench *bench = user;
    const size_t current = (size_t)bench->progress.done;
    bench->progress.case_id = current < bench->n_cases ? bench->cases[current].id : "";
    progress_draw(&bench->progress);
    return outputs_interrupted() == 0;
}

static void warn_if_busy(const struct session *session)
{
    char words[96];
    if (env_is_busy(json_array_get(session->records.list, 1), words, sizeof words))
        text_print(
            stderr,
            "The machine is busy: %s.  End other work, or the timings will tell little.\n",
            words);
}

static void time_cases(struct bench *bench)
{
    struct session *session = &bench->session;
    const struct cli *cli = session->cli;
    struct worker_limits limits = worker_limits_of(cli->limit, BETWEEN_S);
    if (bench->n_backends == 0)
        cli_reject("bench", NULL, "no backend");
    bench->options =
        (struct bench_options){ .full = cli->full,
                                .tuning = cli->tune,
                                .threads = cli->threads != INT64_MIN ? (int)cli->threads : 1,
                                .time_limit_s = isnan(cli->time_limit) ? 0.0 : cli->time_limit,
                                .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0 };
    limits.inside_s *= bench->options.threads;
    bench->job = (struct worker_job){ .user = bench,
                                      .n_steps = bench->n_cases,
                                      .run = time_in_worker,
                                      .on_message = receive_result,
                                      .on_early_end = handle_early_end };
    bench->progress = (struct progress){ .command = cli->tune ? "tune" : "bench",
                                         .unit = "shapes",
                                         .total = bench->n_cases,
                                         .most_s = bench_time_limit(&bench->options) };
    warn_if_busy(session);
    session->at_timing_start = noise_read();
    keep_going(bench); /* draws the progress line before the first result */
    bench->deadline_s = clock_now() + bench->progress.most_s;
    exclude_unloadable(bench);
    workers_run(&bench->job, 1, 1, &limits, keep_going, bench);
    session->noise = noise_since(&session->at_timing_start);
    progress_clear();
    session_exit_if_interrupted(session);
}

static void time_all(struct bench *bench)
{
    struct session *session = &bench->session;
    const size_t n = session_list_cases(session, &bench->cases);
    bench->positions = cli_allocate(n, sizeof *bench->positions);
    choose_cases(bench, n);
    choose_backends(bench);
    if (bench->n_cases > 0)
        time_cases(bench);
    session_check_patterns(session);
}

/* Returns the exit code. A wrong output decides first. Otherwise a run that timed anything succeeds, and so does a
 * shard without cases. The other codes are those of a rejected shape and of a kernel that no backend provides. */
static int exit_code(const struct bench *bench)
{
    if (bench->worst == BENCH_WRONG)
        return EXIT_CONFORMANCE;
    if (bench->has_timing || (bench->n_results == 0 && bench->session.in_other_shard))
        return EXIT_OK;
    return bench->worst == BENCH_REJECTED ? EXIT_USAGE : EXIT_SKIPPED;
}

/* Selects the tuning file of --tuning, so that records mark the backends that it chooses. */
static void use_tuning(const struct cli *cli)
{
    struct posenc_error error;
    const enum posenc_status status =
        cli->tuning ? posenc_load_tuning(cli->tuning, &error) : POSENC_OK;
    if (status == POSENC_OK)
        return;
    cli_complain("tuning file", NULL, "%s", error.what);
    exit(status == POSENC_ERR_UNSUPPORTED ? EXIT_INCOMPARABLE : EXIT_USAGE);
}

static int bench_all(struct cli *cli)
{
    static struct bench bench; /* large */
    use_tuning(cli);
    session_begin(&bench.session, cli, false);
    session_select_plugin_kernels(&bench.session);
    if (timings_unavailable_reason()) {
        session_free(&bench.session);
        return timings_report_unavailable();
    }
    time_all(&bench);
    const int verdict = exit_code(&bench);
    free(bench.cases);
    free(bench.positions);
    session_end(&bench.session, true);
    if (verdict == EXIT_USAGE)
        cli_reject(
            "shapes", NULL,
            "none could be timed: expected smaller ones, or more memory; the results say "
            "why");
    return verdict;
}

#else

const char *timings_unavailable_reason(void)
{
    return "this program was built without Google Benchmark (libbenchmark-dev)";
}

static int bench_all(struct cli *cli)
{
    (void)cli;
    return timings_report_unavailable();
}

int command_pair(struct cli *cli)
{
    (void)cli;
    return timings_report_unavailable();
}

#endif

int timings_report_unavailable(void)
{
    cli_complain("nothing is timed here", NULL, "%s", timings_unavailable_reason());
    return EXIT_SKIPPED;
}

int command_bench(struct cli *cli)
{
    cli_check_operands(cli);
    if (cli->probe)
        return bench_probe(cli);
    if (cli->instructions)
        return bench_instructions(cli);
    if (cli->tune)
        cli_set_command(cli->command = "tune");
    return bench_all(cli);
}
