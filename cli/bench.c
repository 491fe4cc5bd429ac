/*
 * posenc bench: times the selected backends on the selected cases, and writes a record for each of both.  It
 * also runs posenc bench --probe, --instructions and --tune.
 */
#define _POSIX_C_SOURCE 200809L
#define POSENC_EXPERIMENTAL
#include "base/machine/env.h"
#include "base/text/text.h"
#include "bench/machine.h"
#include "emit.h"
#include "instructions.h"
#include "plugins.h"
#include "probe.h"
#include "timings.h"
#include "tuned.h"
#include "work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef POSENC_HAVE_BENCH

const char *work_no_timing(void) { return machine_emulator(); }

/* ---- Cases ---- */

size_t work_problem_case(const struct work *work, struct bench_case **cases)
{
    *cases = calloc(1, sizeof **cases);
    if (!*cases)
        return 0;
    struct bench_case *one = *cases;
    one->problem = work->line.problem;
    one->footprint = bench_footprint(problem_working_set(&one->problem));
    problem_id(&one->problem, one->id, sizeof one->id);
    return 1;
}

size_t work_footprint_cases(const struct work *work, struct bench_case **cases)
{
    bool dtypes[N_DTYPES];
    for (int dtype = 0; dtype < N_DTYPES; dtype++)
        dtypes[dtype] = times_dtype(&work->selected, NULL, (enum posenc_dtype)dtype);
    return bench_footprint_cases(work->selected.kernels, dtypes, work->cli->full, cases);
}

/* A run of posenc bench. */
struct bench {
    struct work work;
    struct bench_case *cases; /* that are timed here */
    size_t *places;           /* of these cases among those of all shards */
    size_t n_cases, n_backends, n_results;
    const struct posenc_backend *backends[BACKENDS_MAX];
    struct progress progress;
    bool timed; /* at least one backend on a case */
    enum bench_outcome worst;
};

static size_t list_cases(const struct work *work, struct bench_case **cases)
{
    if (work->cli->tune)
        return bench_tuning_cases(work->selected.kernels, work->selected.dtypes, cases);
    if (work->cli->problem)
        return work_problem_case(work, cases);
    return work->n_models > 0 ? work_model_cases(work, cases)
                              : work_footprint_cases(work, cases);
}

/* Keeps the cases that match --case and are this shard's. */
static void choose_cases(struct bench *bench, size_t n)
{
    struct work *work = &bench->work;
    for (size_t i = 0; i < n; i++) {
        struct bench_case *one = &bench->cases[bench->n_cases];
        *one = bench->cases[i];
        if (!work_wants(work, one->id))
            continue;
        const bool here = shard_has(&work->shard, one->id);
        work->elsewhere |= !here;
        if (!here)
            continue;
        if (!one->footprint)
            one->footprint = bench_footprint(problem_working_set(&one->problem));
        bench->places[bench->n_cases++] = i;
    }
}

/* Keeps the backends that run here; for a tuning file, those that the library has. */
static void choose_backends(struct bench *bench)
{
    const struct selection *selected = &bench->work.selected;
    for (size_t i = 0; i < selected->n; i++)
        if (!posenc_backend_obstacle(selected->backends[i]) &&
            !(bench->work.cli->tune && plugins_is_stand_in(selected->backends[i])))
            bench->backends[bench->n_backends++] = selected->backends[i];
}

/* ---- Timings ---- */

static void take_timing(void *user, size_t at_case, size_t backend, enum bench_outcome outcome,
                        json_t *record)
{
    struct bench *bench = user;
    const struct selection *selected = &bench->work.selected;
    size_t at = 0;
    while (selected->backends[at] != bench->backends[backend])
        at++;
    bench->timed = bench->timed || outcome == BENCH_TIMED;
    bench->worst = outcome > bench->worst ? outcome : bench->worst;
    work_append(&bench->work, record, bench->places[at_case] * BACKENDS_MAX + at);
    bench->progress.done = (double)(++bench->n_results) / (double)bench->n_backends;
}

static bool goes_on(void *user)
{
    struct bench *bench = user;
    const size_t at = (size_t)bench->progress.done;
    bench->progress.where = at < bench->n_cases ? bench->cases[at].id : "";
    progress_draw(&bench->progress);
    return outputs_interrupted() == 0;
}

static int time_cases(struct bench *bench)
{
    struct work *work = &bench->work;
    const struct cli *cli = work->cli;
    const struct bench_options options = {
        .full = cli->full,
        .tuning = cli->tune,
        .threads = cli->threads != INT64_MIN ? (int)cli->threads : 1,
        .budget_s = isnan(cli->budget) ? 0.0 : cli->budget,
        .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0
    };
    const struct timings timings = { .cases = bench->cases,
                                     .n_cases = bench->n_cases,
                                     .backends = bench->backends,
                                     .n_backends = bench->n_backends,
                                     .options = &options,
                                     .limit_s = cli->limit,
                                     .take = take_timing,
                                     .goes_on = goes_on,
                                     .user = bench };
    char error[TIMINGS_ERROR], words[96];
    bool crashed;
    if (env_is_busy(json_array_get(work->records.list, 1), words, sizeof words))
        text_print(
            stderr,
            "The machine is busy: %s.  End other work, or the timings will tell little.\n",
            words);
    work->timing = noise_watch_start();
    bench->progress = (struct progress){ .what = cli->tune ? "tune" : "bench",
                                         .unit = "shapes",
                                         .total = bench->n_cases,
                                         .most_s = bench_budget(&options),
                                         .notes = "" };
    goes_on(bench); /* shows the line before the first result */
    const int failed = timings_run(&timings, &crashed, error);
    if (crashed)
        bench->worst = BENCH_WRONG;
    work->noise = noise_watch_stop(&work->timing);
    progress_clear();
    work_end_if_interrupted(work);
    return failed ? cli_refuse(cli, "bench", NULL, "%s", error) : EXIT_FINE;
}

/* Times the cost of a call before its kernel, if that kernel and the backend that runs it are
 * selected. */
static void time_overhead(struct work *work)
{
    static const uint64_t places = (uint64_t)1 << 48; /* after those of all cases */
    const struct posenc_backend *backend = posenc_selection(POSENC_KERNEL_rope_half).backend;
    bool chosen = false;
    for (size_t i = 0; i < work->selected.n; i++)
        chosen |= work->selected.backends[i] == backend;
    if (!chosen || plugins_is_stand_in(backend) || work->cli->cases.n > 0 ||
        !times_dtype(&work->selected, NULL, POSENC_F32) ||
        (work->selected.any_kernel && !work->selected.kernels[POSENC_KERNEL_rope_half]))
        return;
    for (int i = 0; i < OVERHEAD_ROWS; i++) {
        struct overhead overhead;
        char id[EMIT_ID];
        emit_overhead_id(POSENC_KERNEL_rope_half, overhead_heads[i], id);
        if (shard_has(&work->shard, id) && overhead_measure(overhead_heads[i], &overhead))
            work_append(work, emit_overhead(&overhead), places + (uint64_t)i);
        work_end_if_interrupted(work);
    }
}

static int time_all(struct bench *bench)
{
    struct work *work = &bench->work;
    const size_t n = list_cases(work, &bench->cases);
    bench->places = calloc(n + 1, sizeof *bench->places);
    if ((n > 0 && !bench->cases) || !bench->places)
        return work_refuse_memory(work);
    choose_cases(bench, n);
    choose_backends(bench);
    const int status = bench->n_cases > 0 ? time_cases(bench) : EXIT_FINE;
    if (status == EXIT_FINE && !work->cli->tune && !work->cli->problem && work->n_models == 0)
        time_overhead(work);
    return status == EXIT_FINE ? work_check_patterns(work) : status;
}

/* Returns the exit code. A wrong output outweighs all that was timed. If nothing was timed, a
 * rejected shape outweighs a kernel that nobody has. A shard without cases is fine. */
static int exit_code(const struct bench *bench)
{
    if (bench->worst == BENCH_WRONG)
        return EXIT_CONFORMANCE;
    if (bench->timed || (bench->n_results == 0 && bench->work.elsewhere))
        return EXIT_FINE;
    return bench->worst == BENCH_REJECTED ? EXIT_USAGE : EXIT_NOTHING;
}

/* Selects the tuning file that is to be checked. */
static int use_tuning(const struct cli *cli)
{
    char why[TUNED_WHY];
    if (!cli->tuning)
        return EXIT_FINE;
    const enum posenc_status status = posenc_select_profile(cli->tuning, why, sizeof why);
    if (status == POSENC_OK)
        return EXIT_FINE;
    cli_refuse(cli, "tuning file", NULL, "%s", why);
    return status == POSENC_ERR_UNSUPPORTED ? EXIT_INCOMPARABLE : EXIT_USAGE;
}

static int bench_all(struct cli *cli)
{
    struct bench bench = { .n_cases = 0 };
    const int refused = use_tuning(cli);
    if (refused)
        return refused;
    if (work_begin(&bench.work, cli, BY_BENCH, false, false) != EXIT_FINE)
        return EXIT_USAGE;
    work_keep_to_plugins(&bench.work);
    const int code = work_no_timing() ? work_refuse_timing(cli) : time_all(&bench);
    const int verdict = exit_code(&bench);
    free(bench.cases);
    free(bench.places);
    if (code != EXIT_FINE) {
        work_give_up(&bench.work);
        return code;
    }
    const int status = work_end(&bench.work, true);
    if (status == EXIT_FINE && verdict == EXIT_USAGE)
        return cli_refuse(cli, "shapes", NULL,
                          "none could be timed: expected smaller ones, or more memory; the "
                          "results say why");
    return status != EXIT_FINE ? status : verdict;
}

#else

const char *work_no_timing(void)
{
    return "this program was built without Google Benchmark (libbenchmark-dev)";
}

static int bench_all(struct cli *cli) { return work_refuse_timing(cli); }

int command_pair(struct cli *cli) { return work_refuse_timing(cli); }

#endif

int work_refuse_timing(const struct cli *cli)
{
    cli_refuse(cli, "nothing is timed here", NULL, "%s", work_no_timing());
    return EXIT_NOTHING;
}

int command_bench(struct cli *cli)
{
    if (cli->n_operands > 0)
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    if (cli->probe)
        return probe_machine(cli);
    if (cli->instructions)
        return instructions_command(cli);
    if (cli->tune)
        cli->command = "tune"; /* which reads the records */
    return bench_all(cli);
}
