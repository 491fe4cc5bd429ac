/*
 * Runs the conformance engine for a command and appends what it finds to its records (see work.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"
#include "emit.h"
#include "models.h"
#include "side_by_side.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Whether a check is to be recorded: of a type that was named, and not seen with an earlier pattern.
 * That a kernel cannot run is told whatever the type. */
static bool is_new(struct work *work, const struct conf_result *result)
{
    static const char unsupported[] = "/unsupported";
    const size_t n = strlen(result->id), tail = strlen(unsupported);
    const bool of_kernel = n > tail && strcmp(result->id + n - tail, unsupported) == 0;
    work->matched[work->glob] |= !of_kernel;
    for (size_t i = 0; i < work->glob; i++)
        if (of_kernel || fnmatch(work->globs.item[i], result->id, 0) == 0)
            return false;
    return of_kernel || selects_dtype(&work->selected, result->id);
}

/* Its place among the checks of all shards: by pattern, kernel and backend, then one after the
 * other. */
static uint64_t place_of(struct work *work, const struct conf_result *result)
{
    enum { RESULTS = 65536 }; /* of a kernel on a backend */
    size_t backend = 0;
    while (backend < work->selected.n && work->selected.backends[backend] != result->backend)
        backend++;
    const uint64_t pair =
        (work->glob * POSENC_KERNEL_COUNT + (uint64_t)result->kernel) * BACKENDS_MAX + backend;
    work->place = work->place / RESULTS == pair ? work->place + 1 : pair * RESULTS;
    return work->place;
}

static void count_status(struct work *work, const char *status)
{
    const bool failed = strcmp(status, conf_status_name[CONF_FAIL]) == 0 ||
                        strcmp(status, conf_status_name[CONF_CRASH]) == 0 ||
                        strcmp(status, conf_status_name[CONF_WEAK]) == 0;
    const bool judged = failed || strcmp(status, conf_status_name[CONF_PASS]) == 0;
    work->n_failed += failed;
    work->n_judged += judged;
    work->n_skipped += !judged;
}

/* What failed is not timed. */
static void note_unfit(struct work *work, const struct posenc_backend *backend,
                       enum posenc_kernel kernel, const char *status, const char *id,
                       const char *reason)
{
    const bool crashed = strcmp(status, conf_status_name[CONF_CRASH]) == 0;
    char why[UNFIT_WHY];
    if (!crashed && strcmp(status, conf_status_name[CONF_FAIL]) != 0)
        return;
    snprintf(why, sizeof why, "%s%.96s: %.160s", crashed ? "crashed: " : "", id, reason);
    unfit_add(&work->unfit, backend, kernel, why);
}

static void on_conf(void *user, const struct conf_result *result)
{
    struct work *work = user;
    if (!is_new(work, result))
        return;
    const uint64_t place = place_of(work, result);
    if (result->status == CONF_ELSEWHERE) {
        work->elsewhere = true; /* another shard makes it */
        return;
    }
    count_status(work, conf_status_name[result->status]);
    note_unfit(work, result->backend, result->kernel, conf_status_name[result->status],
               result->id, result->reason);
    work_append(work, emit_conf(result, work->selection), place);
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

/* For the engine, before it does any work for a check. */
static bool wants_check(const void *asked, const struct posenc_backend *backend, const char *id)
{
    const struct work *work = asked;
    (void)backend;
    return shard_has(&work->shard, id);
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

/* A call in the types that were named. */
static void add_problem(const struct work *work, const struct model *model,
                        const struct problem *p, struct problem *problems, size_t *n)
{
    for (int dtype = 0; dtype < N_DTYPES; dtype++) {
        if (times_dtype(&work->selected, model, (enum posenc_dtype)dtype)) {
            problems[*n] = *p;
            problems[(*n)++].dtype = (enum posenc_dtype)dtype;
        }
    }
}

/* Whether a quick run takes a call: of those of a kernel the first, which is a prompt's or a picture's. */
static bool is_first(const struct model *model, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (model->cases[k].problem.kernel == model->cases[i].problem.kernel)
            return false;
    return true;
}

/* The models' calls with few tokens, then those at their real sizes. */
static size_t model_problems(const struct work *work, bool full, struct problem *problems)
{
    size_t n = 0;
    for (const struct model *m = work->models; m < work->models + work->n_models; m++) {
        for (size_t i = 0; i < m->n_verify; i++)
            add_problem(work, m, &m->verify[i], problems, &n);
        for (size_t i = 0; i < m->n_cases; i++)
            if (full || is_first(m, i))
                add_problem(work, m, &m->cases[i].problem, problems, &n);
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
    mine.wants = work->shard.n > 0 ? wants_check : NULL;
    mine.asked = work;
    struct presets presets = { .n = 0 };
    struct problem *problems =
        calloc(2 * work->n_models * MODEL_MAX_CASES * N_DTYPES + 1, sizeof *problems);
    if (!problems || (options->full && work->n_models == 0 && !work->cli->problem &&
                      !presets_load(&presets))) {
        free(problems);
        return work_refuse_memory(work);
    }
    mine.problem = problems;
    mine.n_problems = model_problems(work, options->full, problems);
    mine.presets = presets.problems;
    mine.n_presets = presets.n;
    if (work->cli->problem) {
        mine.only = &work->line.problem;
        mine.suite = "problem";
    }
    for (work->glob = 0; work->glob < work->globs.n || work->glob == 0; work->glob++) {
        mine.case_glob = work->globs.n > 0 ? work->globs.item[work->glob] : NULL;
        const int64_t jobs = work->cli->jobs;
        side_by_side(work->selected.backends, work->selected.n,
                     jobs != INT64_MIN ? (int)jobs : 0, work->cli->limit, &mine, on_conf,
                     on_progress, work);
        work_end_if_interrupted(work);
    }
    free(problems);
    presets_free(&presets);
    progress_clear();
    return EXIT_FINE;
}
