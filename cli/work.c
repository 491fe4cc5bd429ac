/*
 * Runs the conformance engine and the benchmark for a command, appends what they find to its
 * records and ends with the outputs that were asked for (see work.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"
#include "compare_files.h"
#include "bench/emulation.h"
#include "data.h"
#include "emit.h"
#include "models.h"
#include "progress.h"
#include "side_by_side.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SIGNAL = 128 }; /* and its number: as a shell tells it */

static int refuse_memory(const struct work *work)
{
    return cli_refuse(work->cli, "memory", NULL, "none left");
}

/* ---- records ---- */

static int refuse_records(const struct work *work)
{
    return cli_refuse(work->cli, "records", NULL, "cannot be written: %s",
                      strerror(work->records.failed));
}

static const char *mode_of(const struct cli *cli)
{
    return cli->exhaustive ? "exhaustive" : cli->full ? "full" : "quick";
}

/* Where one of the outputs is jsonl, records go there line by line as they come; into a
 * report's folder in place, so that it is not empty whatever ends the run. */
static int begin_records(struct work *work, bool with_vectors)
{
    char error[RECORDS_ERROR];
    struct out_file *last = NULL;
    if (records_open(&work->records, NULL, error) != 0)
        return cli_refuse(work->cli, "records", NULL, "%s", error);
    for (size_t i = 0; i < work->outputs.n; i++) {
        if (work->outputs.output[i].format->by_line) {
            last = &work->outputs.output[i];
            work->records.stream = last->stream;
        }
    }
    struct cli *cli = work->cli;
    struct emit_run run = { .mode = mode_of(cli),
                            .argc = cli->argc,
                            .argv = cli->argv,
                            .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                            .vectors_sha256 = with_vectors ? work->vectors.sha256 : NULL,
                            .by_model = work->by_model,
                            .compare = work->compare };
    int failed = emit_start(&work->records, &run, work->selected.backends, work->selected.n);
    for (size_t i = 0; i < work->n_models; i++)
        failed |= records_append(&work->records, emit_model(&work->models[i], &work->selected));
    if (failed)
        return refuse_records(work);
    return last && last->path == work->jsonl_path ? outputs_publish(cli, last) : EXIT_FINE;
}

/* One more output: a file in the folder of a report. */
static int add_report_file(struct work *work, const char *format, const char *path)
{
    return outputs_add(work->cli, &work->outputs,
                       format_find(record_formats, BY_REPORT, format, strlen(format)), path);
}

int work_begin(struct work *work, struct cli *cli, unsigned command, bool with_vectors,
               bool plugins_alone)
{
    size_t n_models = work->n_models;
    work->cli = cli;
    work->render.color = -1;
    work->render.all = cli->all;
    work->render.explain = cli->explain;
    if ((cli->problem && problem_take(cli, &work->line, &work->arena) != EXIT_FINE) ||
        select_all(cli, &work->selected, plugins_alone) != EXIT_FINE ||
        (n_models == 0 && work_models(work, cli->model.item, cli->model.n) != EXIT_FINE) ||
        work_check_kernels(work) != EXIT_FINE ||
        work_open(work, command, with_vectors) != EXIT_FINE) {
        work_give_up(work);
        return EXIT_USAGE;
    }
    return EXIT_FINE;
}

int work_open(struct work *work, unsigned command, bool with_vectors)
{
    struct cli *cli = work->cli;
    if (outputs_open(cli, &work->outputs, record_formats, command) != EXIT_FINE ||
        (work->folder && folder_refuse_inside(work->folder, &work->outputs) != EXIT_FINE) ||
        (work->md_path && add_report_file(work, "md", work->md_path) != EXIT_FINE) ||
        (work->html_path && add_report_file(work, "html", work->html_path) != EXIT_FINE) ||
        (work->jsonl_path && add_report_file(work, "jsonl", work->jsonl_path) != EXIT_FINE) ||
        (with_vectors && data_vectors(cli, &work->vectors) != EXIT_FINE) ||
        begin_records(work, with_vectors) != EXIT_FINE)
        return EXIT_USAGE;
    work->watch = work->timing = noise_watch_start();
    outputs_finish_on_signal();
    return EXIT_FINE;
}

void work_give_up(struct work *work)
{
    outputs_discard(&work->outputs);
    if (work->folder)
        folder_discard(work->folder);
    work_free(work);
}

void work_free(struct work *work)
{
    arena_free(&work->arena);
    char error[RECORDS_ERROR];
    work->records.stream = NULL; /* an output owns it */
    if (work->records.list)
        (void)records_close(&work->records, error);
    vectors_free(&work->vectors);
    work_free_models(work);
    free(work->kept);
    json_decref(work->noise);
    json_decref(work->compare);
    *work = (struct work){ 0 };
}

int work_end(struct work *work, bool complete)
{
    progress_clear();
    const struct cli *cli = work->cli;
    if (!work->noise)
        work->noise = noise_watch_stop(&work->timing);
    double seconds = noise_watch_start().wall_s - work->watch.wall_s;
    records_append(&work->records, emit_footer(&work->records, complete, seconds, work->noise));
    work->noise = NULL;
    int status = work->records.failed == 0 ? EXIT_FINE : refuse_records(work);
    for (size_t i = 0; i < work->outputs.n && status == EXIT_FINE; i++) {
        const struct out_file *output = &work->outputs.output[i];
        if (output->stream != work->records.stream &&
            render(output->format, work->records.list, output->stream, &work->render) != 0 &&
            !ferror(output->stream))
            status = cli_refuse(cli, "--out", output->format->name, "could not be rendered");
    }
    if (status == EXIT_FINE)
        status = outputs_commit(cli, &work->outputs);
    else
        outputs_discard(&work->outputs);
    if (work->folder && status == EXIT_FINE && (complete || !folder_is_taken(work->folder)))
        status = folder_publish(work->folder);
    else if (work->folder)
        folder_discard(work->folder);
    work_free(work);
    return status;
}

/* After a signal what there is becomes a valid file that says it is not complete. */
void work_end_if_interrupted(struct work *work)
{
    int number = outputs_interrupted();
    if (number != 0) {
        progress_clear();
        if (work->folder && folder_is_taken(work->folder))
            fprintf(stderr, "posenc: interrupted: the report in %s stays as it is\n",
                    work->folder->name);
        else
            fputs("posenc: interrupted: writing what there is\n", stderr);
        work_end(work, false);
        exit(EXIT_SIGNAL + number);
    }
}

/* ---- conformance ---- */

static void keep_for_budgets(struct work *work, const struct conf_result *result)
{
    if (!work->cli->update_budgets)
        return;
    if (work->n_kept % 1024 == 0) {
        struct conf_result *more = realloc(work->kept, (work->n_kept + 1024) * sizeof *more);
        if (!more)
            return;
        work->kept = more;
    }
    work->kept[work->n_kept++] = *result;
}

static void on_conf(void *user, const struct conf_result *result)
{
    struct work *work = user;
    bool unsupported = result->status == CONF_UNSUPPORTED; /* whatever the type */
    work->matched[work->glob] |= !unsupported;
    for (size_t i = 0; i < work->glob; i++)
        if (unsupported || fnmatch(work->globs.item[i], result->id, 0) == 0)
            return; /* seen with an earlier pattern */
    if (!unsupported && !selects_dtype(&work->selected, result->id))
        return;
    bool failed = result->status == CONF_FAIL || result->status == CONF_CRASH ||
                  result->status == CONF_WEAK;
    bool judged = failed || result->status == CONF_PASS;
    work->n_failed += failed;
    work->n_judged += judged;
    work->n_skipped += !judged;
    records_append(&work->records, emit_conf(result, work->selection));
    keep_for_budgets(work, result);
    snprintf(work->doing, sizeof work->doing, "%s %s",
             result->backend ? result->backend->name : "", result->id);
}

/* One pattern after the other is run, each on all kernels and backends. */
static void on_progress(void *user, double done, size_t total)
{
    struct work *work = user;
    const size_t globs = work->globs.n > 0 ? work->globs.n : 1;
    const struct progress now = { .what = "verify",
                                  .unit = "kernels on backends",
                                  .done = (double)(work->glob * total) + done,
                                  .total = globs * total,
                                  .notes = work->notes,
                                  .where = work->doing };
    if (work->n_failed > 0)
        snprintf(work->notes, sizeof work->notes, ", %zu FAILED", work->n_failed);
    progress(&now);
}

/* Notes the options that a case's own name does not say, for the lines that rerun it. */
static void note_selection(struct work *work)
{
    const struct list *lists[] = { &work->cli->plugin, &work->cli->model };
    static const char *const options[] = { "--plugin", "--model" };
    size_t at = 0;
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->n && at < sizeof work->selection; i++)
            at += (size_t)snprintf(work->selection + at, sizeof work->selection - at, " %s %s",
                                   options[l], lists[l]->item[i]);
    }
}

/* Patterns of ids to run: all of them where there is none. */
static void choose_globs(struct work *work)
{
    work->globs = work->cli->cases;
    for (int dtype = 0; dtype < N_DTYPES && work->cli->cases.n == 0; dtype++) {
        if (work->selected.dtypes[dtype]) {
            snprintf(work->dtype_glob[dtype], sizeof work->dtype_glob[dtype], "*/%s/*",
                     dtype_names[dtype]);
            work->globs.item[work->globs.n++] = work->dtype_glob[dtype];
        }
    }
}

/* The model's shapes in the types that were named. */
static size_t model_problems(const struct work *work, struct problem *problems)
{
    size_t n = 0;
    for (size_t m = 0; m < work->n_models; m++) {
        for (size_t i = 0; i < work->models[m].n_verify; i++) {
            for (int dtype = 0; dtype < N_DTYPES; dtype++) {
                if (times_dtype(&work->selected, &work->models[m], (enum posenc_dtype)dtype)) {
                    problems[n] = work->models[m].verify[i];
                    problems[n++].dtype = (enum posenc_dtype)dtype;
                }
            }
        }
    }
    return n;
}

int work_verify(struct work *work, const struct conf_options *options)
{
    note_selection(work);
    choose_globs(work);
    struct conf_options mine = *options;
    memcpy(mine.kernels, work->selected.kernels, sizeof mine.kernels);
    mine.vectors = work->vectors.n > 0 ? &work->vectors : NULL;
    struct problem *problems =
        calloc(work->n_models * MODEL_MAX_CASES * N_DTYPES + 1, sizeof *problems);
    if (!problems)
        return refuse_memory(work);
    mine.problem = problems;
    mine.n_problems = model_problems(work, problems);
    if (work->cli->problem) {
        mine.only = &work->line.problem;
        mine.suite = "problem";
    }
    for (work->glob = 0; work->glob < work->globs.n || work->glob == 0; work->glob++) {
        mine.case_glob = work->globs.n > 0 ? work->globs.item[work->glob] : NULL;
        const int64_t jobs = work->cli->jobs;
        side_by_side(work->selected.backends, work->selected.n,
                     jobs != INT64_MIN ? (int)jobs : 0, &mine, on_conf, on_progress, work);
        work_end_if_interrupted(work);
    }
    free(problems);
    progress_clear();
    return EXIT_FINE;
}

/* ---- timing ---- */

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

static void on_bench(void *user, const struct bench_result *result)
{
    struct work *work = user;
    work->n_timed++;
    work->timed = work->timed || result->outcome == BENCH_TIMED;
    work->worst = result->outcome > work->worst ? result->outcome : work->worst;
    emit_bench_sink(&work->records, result);
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
        fprintf(stderr,
                "The machine is busy: %s.  End other work, or the timings will tell little.\n",
                words);
    work->timing = noise_watch_start();
}

int work_bench(struct work *work, const struct bench_case *cases, size_t n, double budget_s)
{
    const struct cli *cli = work->cli;
    if (work_no_timing())
        return refuse_timing(cli);
    struct bench_options options = { .full = cli->full,
                                     .threads =
                                         cli->threads != INT64_MIN ? (int)cli->threads : 1,
                                     .budget_s = budget_s,
                                     .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                                     .stop = is_interrupted };
    const struct posenc_backend *backends[BACKENDS_MAX];
    size_t n_backends = 0, n_chosen = 0;
    for (size_t i = 0; i < work->selected.n; i++)
        if (!posenc_backend_obstacle(work->selected.backends[i]))
            backends[n_backends++] = work->selected.backends[i];
    struct bench_case *chosen = calloc(n + 1, sizeof *chosen);
    if (!chosen)
        return refuse_memory(work);
    for (size_t i = 0; i < n; i++) {
        if (work_wants(work, cases[i].id)) {
            chosen[n_chosen] = cases[i];
            if (!chosen[n_chosen].footprint)
                chosen[n_chosen].footprint =
                    bench_footprint(problem_working_set(&cases[i].problem));
            n_chosen++;
        }
    }
    if (n_chosen == 0) {
        free(chosen);
        return EXIT_FINE;
    }
    char error[256] = "";
    begin_timing(work);
    work->n_contenders = n_backends;
    work->progress_results = 0;
    work->timing_cases = chosen;
    work->progress = (struct progress){ .what = "bench",
                                        .unit = "shapes",
                                        .total = n_chosen,
                                        .most_s = bench_budget(&options),
                                        .notes = "" };
    int failed =
        bench_run(chosen, n_chosen, backends, n_backends, &options, on_bench, work, error) != 0;
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
    if (!chosen || work->cli->cases.n > 0 || !times_dtype(&work->selected, NULL, POSENC_F32) ||
        (work->selected.any_kernel && !work->selected.kernels[POSENC_KERNEL_rope_half]))
        return;
    for (int i = 0; i < OVERHEAD_ROWS; i++) {
        struct overhead overhead;
        if (overhead_measure(overhead_heads[i], &overhead))
            records_append(&work->records, emit_overhead(&overhead));
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

int work_bench(struct work *work, const struct bench_case *cases, size_t n, double budget_s)
{
    (void)cases;
    (void)n;
    (void)budget_s;
    return refuse_timing(work->cli);
}

void work_overhead(struct work *work) { (void)work; }

int command_compare(struct cli *cli)
{
    const bool files = cli->n_operands == 2 && is_result_file(cli->operands[0]) &&
                       is_result_file(cli->operands[1]);
    return files ? compare_result_files(cli) : refuse_timing(cli);
}
int command_launch(struct cli *cli) { return refuse_timing(cli); }

#endif
