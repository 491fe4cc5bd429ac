/*
 * posenc bench: times the selected backends on the selected cases and writes a record for each pair. Also starts posenc
 * bench --probe, --instructions and --tune.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/machine/env.h"
#include "base/text/text.h"
#include "bench/machine.h"
#include "emit.h"
#include "instructions.h"
#include "plugins.h"
#include "probe.h"
#include "timings.h"
#include "tuning_file.h"
#include "session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef POSENC_HAVE_BENCH

const char *timings_unavailable_reason(void) { return machine_emulator(); }

/* ---- Cases ---- */

size_t session_problem_case(const struct session *session, struct bench_case **cases)
{
    *cases = calloc(1, sizeof **cases);
    if (!*cases)
        return 0;
    struct bench_case *one = *cases;
    one->problem = session->line.problem;
    one->level = bench_level(problem_working_set(&one->problem));
    problem_id(&one->problem, "problem", one->id, sizeof one->id);
    return 1;
}

size_t session_footprint_cases(const struct session *session, struct bench_case **cases)
{
    bool dtypes[N_DTYPES];
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        dtypes[dtype] =
            selection_times_dtype(&session->selected, NULL, (enum posenc_dtype)dtype);
    return bench_footprint_cases(session->selected.kernels, dtypes, session->cli->full, cases);
}

/* State of posenc bench. */
struct bench {
    struct session session;
    struct bench_case *cases; /* timed in this process */
    size_t *positions;        /* index of each case among the cases of all shards */
    size_t n_cases, n_backends, n_results;
    const struct posenc_backend *backends[BACKENDS_MAX];
    struct progress progress;
    bool timed; /* at least one result */
    enum bench_outcome worst;
};

static size_t list_cases(const struct session *session, struct bench_case **cases)
{
    if (session->cli->tune)
        return bench_tuning_cases(session->selected.kernels, session->selected.dtypes, cases);
    if (session->cli->problem)
        return session_problem_case(session, cases);
    return session->n_models > 0 ? session_model_cases(session, cases)
                                 : session_footprint_cases(session, cases);
}

/* Keeps the cases that --case and --shard select. */
static void choose_cases(struct bench *bench, size_t n)
{
    struct session *session = &bench->session;
    for (size_t i = 0; i < n; i++) {
        struct bench_case *one = &bench->cases[bench->n_cases];
        *one = bench->cases[i];
        if (!session_wants_case(session, one->id))
            continue;
        const bool here = shard_has_case(&session->shard, one->id);
        session->in_other_shard |= !here;
        if (!here)
            continue;
        if (!one->level)
            one->level = bench_level(problem_working_set(&one->problem));
        bench->positions[bench->n_cases++] = i;
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

/* ---- Timings ---- */

static void receive_timing(void *user, size_t at_case, size_t backend,
                           enum bench_outcome outcome, json_t *record)
{
    struct bench *bench = user;
    const struct selection *selected = &bench->session.selected;
    size_t at = 0;
    while (selected->backends[at] != bench->backends[backend])
        at++;
    bench->timed = bench->timed || outcome == BENCH_TIMED;
    bench->worst = outcome > bench->worst ? outcome : bench->worst;
    session_append(&bench->session, record, bench->positions[at_case] * BACKENDS_MAX + at);
    bench->progress.done = (double)(++bench->n_results) / (double)bench->n_backends;
}

static bool keep_going(void *user)
{
    struct bench *bench = user;
    const size_t at = (size_t)bench->progress.done;
    bench->progress.case_id = at < bench->n_cases ? bench->cases[at].id : "";
    progress_draw(&bench->progress);
    return outputs_interrupted() == 0;
}

static int time_cases(struct bench *bench)
{
    struct session *session = &bench->session;
    const struct cli *cli = session->cli;
    const struct bench_options options = {
        .full = cli->full,
        .tuning = cli->tune,
        .threads = cli->threads != INT64_MIN ? (int)cli->threads : 1,
        .time_limit_s = isnan(cli->time_limit) ? 0.0 : cli->time_limit,
        .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0
    };
    const struct timings timings = { .cases = bench->cases,
                                     .n_cases = bench->n_cases,
                                     .backends = bench->backends,
                                     .n_backends = bench->n_backends,
                                     .options = &options,
                                     .limit_s = cli->limit,
                                     .on_record = receive_timing,
                                     .keep_going = keep_going,
                                     .user = bench };
    char error[TIMINGS_ERROR], words[96];
    bool crashed;
    if (env_is_busy(json_array_get(session->records.list, 1), words, sizeof words))
        text_print(
            stderr,
            "The machine is busy: %s.  End other work, or the timings will tell little.\n",
            words);
    session->at_timing_start = noise_read();
    bench->progress = (struct progress){ .command = cli->tune ? "tune" : "bench",
                                         .unit = "shapes",
                                         .total = bench->n_cases,
                                         .most_s = bench_time_limit(&options),
                                         .notes = "" };
    keep_going(bench); /* draws the progress line before the first result */
    const int failed = timings_run(&timings, &crashed, error);
    if (crashed)
        bench->worst = BENCH_WRONG;
    session->noise = noise_since(&session->at_timing_start);
    progress_clear();
    session_exit_if_interrupted(session);
    return failed ? cli_reject(cli, "bench", NULL, "%s", error) : EXIT_OK;
}

/* Times the overhead of a call of rope_half, if that kernel and its default backend are selected. */
static void time_overhead(struct session *session)
{
    static const uint64_t positions = (uint64_t)1 << 48; /* beyond those of all cases */
    const struct posenc_backend *backend =
        posenc_selection_of(POSENC_KERNEL_ROPE_HALF, POSENC_DTYPE_F32, 0).backend;
    bool chosen = false;
    for (size_t i = 0; i < session->selected.n; i++)
        chosen |= session->selected.backends[i] == backend;
    if (!chosen || plugins_is_stub(backend) || session->cli->cases.n > 0 ||
        !selection_times_dtype(&session->selected, NULL, POSENC_DTYPE_F32) ||
        (session->selected.names_kernels &&
         !session->selected.kernels[POSENC_KERNEL_ROPE_HALF]))
        return;
    for (int i = 0; i < OVERHEAD_HEAD_COUNTS; i++) {
        struct overhead overhead;
        char id[EMIT_ID];
        emit_overhead_id(POSENC_KERNEL_ROPE_HALF, overhead_heads[i], id);
        if (shard_has_case(&session->shard, id) &&
            overhead_measure(overhead_heads[i], &overhead))
            session_append(session, emit_overhead(&overhead), positions + (uint64_t)i);
        session_exit_if_interrupted(session);
    }
}

static int time_all(struct bench *bench)
{
    struct session *session = &bench->session;
    const size_t n = list_cases(session, &bench->cases);
    bench->positions = calloc(n + 1, sizeof *bench->positions);
    if ((n > 0 && !bench->cases) || !bench->positions)
        return cli_reject_memory(session->cli);
    choose_cases(bench, n);
    choose_backends(bench);
    const int status = bench->n_cases > 0 ? time_cases(bench) : EXIT_OK;
    if (status == EXIT_OK && !session->cli->tune && !session->cli->problem &&
        session->n_models == 0)
        time_overhead(session);
    return status == EXIT_OK ? session_check_patterns(session) : status;
}

/* Returns the exit code. A wrong output decides first. Otherwise a run that timed anything succeeds, and so does a
 * shard without cases. The other codes are those of a rejected shape and of a kernel that no backend provides. */
static int exit_code(const struct bench *bench)
{
    if (bench->worst == BENCH_WRONG)
        return EXIT_CONFORMANCE;
    if (bench->timed || (bench->n_results == 0 && bench->session.in_other_shard))
        return EXIT_OK;
    return bench->worst == BENCH_REJECTED ? EXIT_USAGE : EXIT_SKIPPED;
}

/* Selects the tuning file of --tuning, so that records mark the backends that it chooses. */
static int use_tuning(const struct cli *cli)
{
    struct posenc_error error;
    if (!cli->tuning)
        return EXIT_OK;
    const enum posenc_status status = posenc_load_tuning(cli->tuning, &error);
    if (status == POSENC_OK)
        return EXIT_OK;
    cli_reject(cli, "tuning file", NULL, "%s", error.what);
    return status == POSENC_ERR_UNSUPPORTED ? EXIT_INCOMPARABLE : EXIT_USAGE;
}

static int bench_all(struct cli *cli)
{
    struct bench bench = { .n_cases = 0 };
    const int unusable_tuning = use_tuning(cli);
    if (unusable_tuning)
        return unusable_tuning;
    if (session_begin(&bench.session, cli, BY_BENCH, false, false) != EXIT_OK)
        return EXIT_USAGE;
    session_select_plugin_kernels(&bench.session);
    const int code =
        timings_unavailable_reason() ? timings_report_unavailable(cli) : time_all(&bench);
    const int verdict = exit_code(&bench);
    free(bench.cases);
    free(bench.positions);
    if (code != EXIT_OK) {
        session_abort(&bench.session);
        return code;
    }
    const int status = session_end(&bench.session, true);
    if (status == EXIT_OK && verdict == EXIT_USAGE)
        return cli_reject(cli, "shapes", NULL,
                          "none could be timed: expected smaller ones, or more memory; the "
                          "results say why");
    return status != EXIT_OK ? status : verdict;
}

#else

const char *timings_unavailable_reason(void)
{
    return "this program was built without Google Benchmark (libbenchmark-dev)";
}

static int bench_all(struct cli *cli) { return timings_report_unavailable(cli); }

int command_pair(struct cli *cli) { return timings_report_unavailable(cli); }

#endif

int timings_report_unavailable(const struct cli *cli)
{
    cli_reject(cli, "nothing is timed here", NULL, "%s", timings_unavailable_reason());
    return EXIT_SKIPPED;
}

int command_bench(struct cli *cli)
{
    if (cli_reject_operands(cli) != EXIT_OK)
        return EXIT_USAGE;
    if (cli->probe)
        return probe_machine(cli);
    if (cli->instructions)
        return command_instructions(cli);
    if (cli->tune)
        cli->command = "tune"; /* the command in messages and records */
    return bench_all(cli);
}
