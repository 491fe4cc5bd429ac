/*
 * Runs the benchmark for a command and appends what it finds to its records (see work.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"
#include "bench/emulation.h"
#include "bench_apart.h"
#include "base/text/text.h"
#include "emit.h"
#include "plugins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse_timing(const struct cli *cli)
{
    cli_refuse(cli, "nothing is timed here", NULL, "%s", work_no_timing());
    return EXIT_NOTHING;
}

#ifdef POSENC_HAVE_BENCH

const char *work_no_timing(void) { return bench_emulator(); }

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

size_t work_tuning_cases(const struct work *work, struct bench_case **cases)
{
    return bench_tuning_cases(work->selected.kernels, work->selected.dtypes, cases);
}

/* Behind those of all cases. */
static const uint64_t LAST_PLACES = (uint64_t)1 << 48;

static uint64_t case_place(size_t at, size_t backend) { return at * BACKENDS_MAX + backend; }

/* The place of a row among those of all shards: that of its case, then of its backend. */
static uint64_t bench_place(const struct work *work, const struct bench_result *result)
{
    const size_t chosen = (size_t)(result->bench_case - work->timing_cases);
    size_t backend = 0;
    while (work->selected.backends[backend] != result->backend)
        backend++;
    return case_place(work->timing_places[chosen], backend);
}

static void on_bench(void *user, const struct bench_result *result)
{
    struct work *work = user;
    work->n_timed++;
    work->timed = work->timed || result->outcome == BENCH_TIMED;
    work->worst = result->outcome > work->worst ? result->outcome : work->worst;
    work_append(work, emit_bench(result), bench_place(work, result));
    work->progress.done = (double)(++work->progress_results) / (double)work->n_contenders;
    work_end_if_interrupted(work);
}

static bool is_interrupted(void *user)
{
    struct work *work = user;
    const size_t at = (size_t)work->progress.done;
    work->progress.where = at < work->progress.total ? work->timing_cases[at].id : "";
    progress(&work->progress);
    return outputs_interrupted() != 0;
}

/* What was running when the program began is told before it takes anybody's time. */
static void begin_timing(struct work *work)
{
    char words[96];
    if (noise_of_others(json_array_get(work->records.list, 1), NULL, words, sizeof words))
        text_print(
            stderr,
            "The machine is busy: %s.  End other work, or the timings will tell little.\n",
            words);
    work->timing = noise_watch_start();
}

/* Those that match --case and are this shard's: how many. */
static size_t choose_cases(struct work *work, const struct bench_case *cases, size_t n,
                           struct bench_case *chosen)
{
    size_t n_chosen = 0;
    for (size_t i = 0; i < n; i++) {
        if (!work_wants(work, cases[i].id))
            continue;
        const bool here = shard_has(&work->shard, cases[i].id);
        work->elsewhere |= !here;
        if (!here)
            continue;
        work->timing_places[n_chosen] = i;
        chosen[n_chosen] = cases[i];
        if (!chosen[n_chosen].footprint)
            chosen[n_chosen].footprint =
                bench_footprint(problem_working_set(&cases[i].problem));
        n_chosen++;
    }
    return n_chosen;
}

int work_bench(struct work *work, const struct bench_case *cases, size_t n, double budget_s)
{
    const struct cli *cli = work->cli;
    if (work_no_timing())
        return refuse_timing(cli);
    struct bench_options options = { .full = cli->full,
                                     .contest = cli->tune,
                                     .threads =
                                         cli->threads != INT64_MIN ? (int)cli->threads : 1,
                                     .budget_s = budget_s,
                                     .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                                     .stop = is_interrupted };
    const struct posenc_backend *backends[BACKENDS_MAX];
    size_t n_backends = 0;
    for (size_t i = 0; i < work->selected.n; i++)
        if (!posenc_backend_obstacle(work->selected.backends[i]) &&
            !(cli->tune && plugins_has(work->selected.backends[i]))) /* the library lacks it */
            backends[n_backends++] = work->selected.backends[i];
    struct bench_case *chosen = calloc(n + 1, sizeof *chosen);
    work->timing_places = calloc(n + 1, sizeof *work->timing_places);
    if (!chosen || !work->timing_places) {
        free(chosen);
        return work_refuse_memory(work);
    }
    const size_t n_chosen = choose_cases(work, cases, n, chosen);
    if (n_chosen == 0) {
        free(chosen);
        return EXIT_FINE;
    }
    char error[256] = "";
    begin_timing(work);
    work->n_contenders = n_backends;
    work->progress_results = 0;
    work->timing_cases = chosen;
    work->progress = (struct progress){ .what = cli->tune ? "tune" : "bench",
                                        .unit = "shapes",
                                        .total = n_chosen,
                                        .most_s = bench_budget(&options),
                                        .notes = "" };
    bool crashed;
    const int failed = bench_apart(chosen, n_chosen, backends, n_backends, &options, cli->limit,
                                   &work->unfit, on_bench, work, &crashed, error) != 0;
    if (crashed)
        work->worst = BENCH_WRONG;
    work->noise = noise_watch_stop(&work->timing);
    free(chosen);
    progress_clear();
    work_end_if_interrupted(work);
    return failed ? cli_refuse(cli, "bench", NULL, "%s", error) : EXIT_FINE;
}

void work_overhead(struct work *work)
{
    const struct posenc_backend *backend = posenc_selection(POSENC_KERNEL_rope_half).backend;
    bool chosen = false;
    for (size_t i = 0; i < work->selected.n; i++)
        chosen |= work->selected.backends[i] == backend;
    if (!chosen || plugins_has(backend) || work->cli->cases.n > 0 ||
        !times_dtype(&work->selected, NULL, POSENC_F32) ||
        (work->selected.any_kernel && !work->selected.kernels[POSENC_KERNEL_rope_half]))
        return;
    for (int i = 0; i < OVERHEAD_ROWS; i++) {
        const uint64_t place = LAST_PLACES + (uint64_t)i;
        struct overhead overhead;
        char id[EMIT_ID];
        emit_overhead_id(POSENC_KERNEL_rope_half, overhead_heads[i], id);
        if (shard_has(&work->shard, id) && overhead_measure(overhead_heads[i], &overhead))
            work_append(work, emit_overhead(&overhead), place);
        work_end_if_interrupted(work);
    }
}

#else

const char *work_no_timing(void)
{
    return "this program was built without Google Benchmark (libbenchmark-dev)";
}

size_t work_problem_case(const struct work *work, struct bench_case **cases)
{
    return work_footprint_cases(work, cases);
}

size_t work_footprint_cases(const struct work *work, struct bench_case **cases)
{
    (void)work;
    *cases = NULL;
    return 0;
}

size_t work_tuning_cases(const struct work *work, struct bench_case **cases)
{
    return work_footprint_cases(work, cases);
}

int work_bench(struct work *work, const struct bench_case *cases, size_t n, double budget_s)
{
    (void)cases;
    (void)n;
    (void)budget_s;
    return refuse_timing(work->cli);
}

void work_overhead(struct work *work) { (void)work; }

int command_pair(struct cli *cli) { return refuse_timing(cli); }
#endif
