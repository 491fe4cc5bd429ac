/*
 * The command posenc verify: chooses checks, takes their records from workers (checks.h), and lowers
 * error limits (--update-error-limits).
 */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "checks.h"
#include "models.h"
#include "work.h"
#include "conformance/engine/error_limits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const suites[] = { "vectors",    "accuracy",     "digests", "memory",
                                      "properties", "side-effects", "random" };
enum { N_SUITES = sizeof suites / sizeof *suites };

struct verify {
    struct work work;
    char rerun[512]; /* --plugin and --model as given, for commands that rerun a check */
    char last[160];  /* backend and case of the last check, for the line of progress */
    size_t n_judged, n_failed;
    uint64_t place;      /* index of the last check among the checks of all shards */
    json_t *with_limits; /* checks with a row of error limits, for --update-error-limits */
};

/* ---- Arguments ---- */

static int check_arguments(const struct cli *cli)
{
    if (cli->n_operands > 0)
        return cli_refuse(cli, "unexpected argument", cli->operands[0],
                          "expected options only");
    bool known = !cli->suite;
    for (size_t i = 0; i < N_SUITES && !known; i++)
        known = strcmp(cli->suite, suites[i]) == 0;
    if (!known)
        return cli_refuse_name(cli, "--suite", cli->suite, suites, N_SUITES);
    if (cli->update_error_limits && !cli->error_limits)
        return cli_refuse(cli, "--update-error-limits", NULL,
                          "expected --error-limits FILE beside it: the file to write");
    /* Limits lowered from some of the cases would make the others fail. */
    if (cli->update_error_limits &&
        (!cli->full || cli->kernel.n > 0 || cli->cases.n > 0 || cli->shard))
        return cli_refuse(cli, "--update-error-limits", NULL,
                          "expected --full beside it, and every kernel and case in one run");
    if (cli->error_limits &&
        access(cli->error_limits, cli->update_error_limits ? R_OK | W_OK : R_OK) != 0)
        return cli_refuse(cli, "--error-limits", cli->error_limits,
                          "%s: expected a file of error limits", strerror(errno));
    return EXIT_FINE;
}

/* Reads error limits. Backends have to be selected before, since their families may have limits. */
static int read_error_limits(const struct work *work)
{
    char error[ERROR_LIMITS_MESSAGE];
    error_limits_add_backends(work->selected.backends, work->selected.n);
    if (work->cli->error_limits && !error_limits_read(work->cli->error_limits, error))
        return cli_refuse(work->cli, "--error-limits", NULL, "%s",
                          error); /* the message names the file */
    return EXIT_FINE;
}

/* Narrows the kernels to those that the models use. */
static void narrow_to_models(struct work *work)
{
    for (size_t m = 0; m < work->n_models && work->cli->kernel.n == 0; m++) {
        for (size_t i = 0; i < work->models[m].n_verify; i++)
            work->selected.kernels[work->models[m].verify[i].kernel] =
                work->selected.any_kernel = true;
        for (size_t i = 0; i < work->models[m].n_cases; i++)
            work->selected.kernels[work->models[m].cases[i].problem.kernel] = true;
    }
}

/* Returns the seconds that one kernel and backend have for random problems, of --budget. */
static double random_share_s(const struct work *work)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t asked = work->cli->jobs;
    const double at_once = asked != INT64_MIN ? (double)asked : fmax((double)cpus, 1.0);
    double kernels = 0.0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        kernels += !work->selected.any_kernel || work->selected.kernels[k];
    if (isnan(work->cli->budget) || kernels * (double)work->selected.n <= 0.0)
        return 0.0;
    return work->cli->budget * at_once / (kernels * (double)work->selected.n);
}

/* Notes the options that a case's own name does not say, for commands that rerun it. */
static void note_rerun(struct verify *verify)
{
    const struct cli *cli = verify->work.cli;
    const struct list *lists[] = { &cli->plugin, &cli->model };
    static const char *const options[] = { "--plugin", "--model" };
    size_t at = 0;
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->n && at < sizeof verify->rerun; i++)
            at += (size_t)snprintf(verify->rerun + at, sizeof verify->rerun - at, " %s %s",
                                   options[l], lists[l]->item[i]);
}

/* ---- Problems of models ---- */

/* Adds a call in the types that were named. */
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

/* Returns true for the first call of a kernel, which is a prompt's or a picture's. A quick run
 * takes no others. */
static bool is_first(const struct model *model, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (model->cases[k].problem.kernel == model->cases[i].problem.kernel)
            return false;
    return true;
}

/* Lists the models' calls with few tokens, then those at their real sizes. */
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

/* ---- Records of checks ---- */

/* Returns true for a check that --case and --dtype select. A kernel that cannot run, or that ended its
 * worker, is recorded whatever they say. */
static bool is_selected(struct work *work, const char *id)
{
    static const char *const always[] = { "unsupported", "ended", "loaded", "lanes" };
    const char *slash = strrchr(id, '/'), *name = slash ? slash + 1 : id;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (strcmp(name, always[i]) != 0)
            continue;
        for (size_t c = 0; c < work->cli->cases.n && i > 0; c++)
            work->matched[c] = true; /* a case that did not run may have matched */
        return true;
    }
    return work_wants(work, id) && selects_dtype(&work->selected, id);
}

/* Answers the engine, which asks before it does any work for a check. */
static bool wants_check(const void *asked, const struct posenc_backend *backend, const char *id)
{
    struct work *work = (struct work *)(uintptr_t)asked;
    (void)backend;
    return is_selected(work, id) && shard_has(&work->shard, id);
}

/* Returns the place of a check among those of all shards: by kernel and backend, then one
 * after the other. */
static uint64_t place_of(struct verify *verify, const json_t *check)
{
    enum { RESULTS = 65536 }; /* more than a kernel has on a backend */
    const struct selection *selected = &verify->work.selected;
    const enum posenc_kernel kernel = posenc_kernel_find(record_text(check, "kernel"));
    size_t backend = 0;
    while (backend < selected->n &&
           strcmp(selected->backends[backend]->name, record_text(check, "backend")) != 0)
        backend++;
    const uint64_t pair = (uint64_t)kernel * BACKENDS_MAX + backend;
    verify->place = verify->place / RESULTS == pair ? verify->place + 1 : pair * RESULTS;
    return verify->place;
}

static bool has_status(const json_t *check, enum conf_status status)
{
    return strcmp(record_text(check, "status"), conf_status_name[status]) == 0;
}

static void take_check(void *user, json_t *check)
{
    struct verify *verify = user;
    struct work *work = &verify->work;
    const char *id = record_text(check, "case");
    if (!is_selected(work, id))
        return;
    const uint64_t place = place_of(verify, check);
    if (has_status(check, CONF_ELSEWHERE)) {
        work->elsewhere = true;
        return;
    }
    const bool failed = has_status(check, CONF_FAIL) || has_status(check, CONF_CRASH) ||
                        has_status(check, CONF_WEAK);
    verify->n_failed += failed;
    verify->n_judged += failed || has_status(check, CONF_PASS);
    snprintf(verify->last, sizeof verify->last, "%s %s", record_text(check, "backend"), id);
    if (work->cli->update_error_limits && json_object_get(check, "range") &&
        json_array_append_new(verify->with_limits, json_copy(check)) != 0)
        abort(); /* rather than keep a limit that is too high */
    json_object_del(check, "range");
    work_append(work, json_incref(check), place);
}

static void show_progress(void *user, size_t done, size_t total)
{
    const struct verify *verify = user;
    char notes[64] = "";
    if (verify->n_failed > 0)
        snprintf(notes, sizeof notes, ", %zu FAILED", verify->n_failed);
    progress_draw(&(struct progress){ .what = "verify",
                                      .unit = "kernels on backends",
                                      .done = (double)done,
                                      .total = total,
                                      .notes = notes,
                                      .where = verify->last });
}

/* ---- The ratchet of error limits ---- */

static struct conf_result result_of_check(const json_t *check, const struct selection *selected)
{
    struct conf_result r = { .status = has_status(check, CONF_PASS) ? CONF_PASS : CONF_FAIL,
                             .kernel = posenc_kernel_find(record_text(check, "kernel")),
                             .profile = record_text(check, "numerics"),
                             .range = record_text(check, "range"),
                             .metric = record_text(check, "error.metric"),
                             .max = record_value(check, "error.max", (double)NAN) };
    snprintf(r.worst_at, sizeof r.worst_at, "%s", record_text(check, "error.worst_at"));
    for (size_t i = 0; i < selected->n; i++)
        if (strcmp(selected->backends[i]->name, record_text(check, "backend")) == 0)
            r.backend = selected->backends[i];
    return r;
}

static int lower_error_limits(const struct verify *verify)
{
    const struct cli *cli = verify->work.cli;
    const size_t n = json_array_size(verify->with_limits);
    struct conf_result *results = calloc(n + 1, sizeof *results);
    char error[ERROR_LIMITS_MESSAGE];
    if (!results)
        return work_refuse_memory(&verify->work);
    for (size_t i = 0; i < n; i++)
        results[i] =
            result_of_check(json_array_get(verify->with_limits, i), &verify->work.selected);
    const int lowered = error_limits_lower(cli->error_limits, results, n, error);
    free(results);
    if (lowered < 0)
        return cli_refuse(cli, "--error-limits", cli->error_limits, "%s", error);
    text_print(stderr, "posenc verify: %d limits lowered in %s\n", lowered, cli->error_limits);
    return EXIT_FINE;
}

/* ---- The command ---- */

static void run_checks(struct verify *verify, const struct conf_options *options)
{
    struct work *work = &verify->work;
    const int64_t jobs = work->cli->jobs;
    struct checks_subject subjects[BACKENDS_MAX];
    for (size_t i = 0; i < work->selected.n; i++)
        subjects[i] =
            (struct checks_subject){ implementation_of(work->selected.backends[i]), NULL };
    const struct checks checks = { .subjects = subjects,
                                   .n_subjects = work->selected.n,
                                   .options = options,
                                   .rerun = verify->rerun,
                                   .at_once = jobs != INT64_MIN ? (size_t)jobs : 0,
                                   .limit_s = work->cli->limit,
                                   .take = take_check,
                                   .progress = show_progress,
                                   .user = verify };
    checks_run(&checks);
    work_end_if_interrupted(work);
    progress_clear();
}

static int verify_all(struct verify *verify)
{
    struct work *work = &verify->work;
    const struct cli *cli = work->cli;
    const size_t n_problems = 2 * work->n_models * MODEL_MAX_CASES * N_DTYPES;
    struct problem *problems = calloc(n_problems + 1, sizeof *problems);
    struct presets presets = { .n = 0 };
    struct conf_options options = { .full = cli->full || cli->exhaustive,
                                    .exhaustive = cli->exhaustive,
                                    .suite = cli->problem ? "problem" : cli->suite,
                                    .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                                    .random_s = random_share_s(work),
                                    .problem = problems,
                                    .only = cli->problem ? &work->line.problem : NULL,
                                    .vectors = work->vectors.n > 0 ? &work->vectors : NULL,
                                    /* a single pattern spares work; wants_check() knows all */
                                    .case_glob = cli->cases.n == 1 ? cli->cases.item[0] : NULL,
                                    .wants = wants_check,
                                    .wants_user = work };
    const bool with_presets = options.full && work->n_models == 0 && !cli->problem;
    if (!problems || (with_presets && !presets_load(&presets))) {
        free(problems);
        return work_refuse_memory(work);
    }
    options.n_problems = model_problems(work, options.full, problems);
    options.presets = presets.problems;
    options.n_presets = presets.n;
    memcpy(options.kernels, work->selected.kernels, sizeof options.kernels);
    run_checks(verify, &options);
    free(problems);
    presets_free(&presets);
    return work_check_patterns(work);
}

static int verify_selected(struct verify *verify, struct cli *cli)
{
    struct work *work = &verify->work;
    if (check_arguments(cli) != EXIT_FINE ||
        work_begin(work, cli, BY_VERIFY, true, true) != EXIT_FINE)
        return EXIT_USAGE;
    int status = read_error_limits(work);
    if (status == EXIT_FINE) {
        narrow_to_models(work);
        note_rerun(verify);
        status = verify_all(verify);
    }
    if (status != EXIT_FINE) {
        work_give_up(work);
        return status;
    }
    const bool judged = verify->n_judged > 0 || work->elsewhere;
    if (cli->update_error_limits && verify->n_failed == 0)
        status = lower_error_limits(verify);
    if (work_end(work, true) != EXIT_FINE || status != EXIT_FINE)
        return EXIT_USAGE;
    if (verify->n_failed > 0)
        return EXIT_CONFORMANCE;
    return judged ? EXIT_FINE : EXIT_NOTHING;
}

int command_verify(struct cli *cli)
{
    if (cli->verbose)
        return verify_in_depth(cli);
    struct verify verify = { .with_limits = json_array() };
    const int status = verify_selected(&verify, cli);
    json_decref(verify.with_limits);
    return status;
}
