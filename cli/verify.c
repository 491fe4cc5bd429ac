/*
 * The command posenc verify: selects checks, collects their records from workers (checks.h), and lowers error limits
 * (--update-error-limits). The exit code is EXIT_CONFORMANCE if a check failed, and EXIT_SKIPPED if none ran.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/text/text.h"
#include "checks.h"
#include "conformance/program/connection.h"
#include "problem.h"
#include "session.h"
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
    struct session session;
    char rerun[1024]; /* options --plugin, --exec and --model for commands that rerun a check */
    char last[160];   /* backend and case of the last check, for the progress line */
    size_t n_passed_or_failed, n_failed, n_skipped;
    uint64_t place;      /* sort key of the last check among those of all shards */
    json_t *with_limits; /* checks with an error limit, for --update-error-limits */
};

/* ---- Arguments ---- */

static void check_arguments(const struct cli *cli)
{
    cli_check_operands(cli);
    if (cli->suite)
        cli_find_name("--suite", cli->suite, suites, N_SUITES);
    if (cli->update_error_limits && !cli->error_limits)
        cli_reject("--update-error-limits", NULL,
                   "expected --error-limits FILE beside it: the file to write");
    /* Limits that are lowered to the errors of some cases would make others fail. */
    if (cli->update_error_limits &&
        (!cli->full || cli->kernel.n > 0 || cli->cases.n > 0 || cli->shard))
        cli_reject("--update-error-limits", NULL,
                   "expected --full beside it, and every kernel and case in one run");
    if (cli->error_limits &&
        access(cli->error_limits, cli->update_error_limits ? R_OK | W_OK : R_OK) != 0)
        cli_reject("--error-limits", cli->error_limits, "%s: expected a file of error limits",
                   strerror(errno));
}

/* Reads --error-limits. Backends are selected before, since limits may be those of a family. */
static void read_error_limits(const struct session *session)
{
    char error[ERROR_LIMITS_MESSAGE];
    error_limits_add_backends(session->selected.backends, session->selected.n);
    if (session->cli->error_limits && !error_limits_read(session->cli->error_limits, error))
        cli_reject("--error-limits", NULL, "%s", error);
}

/* Returns the share of --time-limit, in seconds, for random problems of one kernel on one backend. */
static double random_share_s(const struct session *session)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    const int64_t jobs = session->cli->jobs;
    const double at_once = jobs != INT64_MIN ? (double)jobs : fmax((double)cpus, 1.0);
    double pairs = 0.0; /* of a kernel and a backend */
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (!session->selected.names_kernels || session->selected.kernels[k])
            pairs += (double)session->selected.n;
    if (isnan(session->cli->time_limit) || pairs <= 0.0)
        return 0.0;
    return session->cli->time_limit * at_once / pairs;
}

/* Prints " --plugin my.so". The value is quoted if a shell would split or change it. */
static void print_option(const char *option, const char *value, FILE *out)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_./:,=+@%-";
    const char *quote = value[strspn(value, plain)] == '\0' ? "" : "'";
    fprintf(out, " %s %s", option, quote);
    for (; *value != '\0'; value++)
        if (*value == '\'')
            fputs("'\\''", out);
        else
            fputc(*value, out);
    fputs(quote, out);
}

/* Writes the options that a command needs to rerun a check, beside the id of the case. */
static void write_rerun_options(struct verify *verify)
{
    const struct cli *cli = verify->session.cli;
    const struct option_values *lists[] = { &cli->plugin, &cli->exec, &cli->model };
    static const char *const options[] = { "--plugin", "--exec", "--model" };
    FILE *out = fmemopen(verify->rerun, sizeof verify->rerun - 1, "w");
    for (size_t l = 0; out && l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            print_option(options[l], lists[l]->item[i], out);
    if (out && cli->exec.n > 0 && !isnan(cli->limit)) {
        char limit[32];
        snprintf(limit, sizeof limit, "%g", cli->limit);
        print_option("--limit", limit, out);
    }
    if (out)
        fclose(out);
}

/* ---- Records of checks ---- */

/* Returns true for a check that --case and --dtype select, and for one that says why a kernel did not run. */
static bool is_selected(struct session *session, const char *id)
{
    const char *slash = strrchr(id, '/'), *name = slash ? slash + 1 : id;
    if (strcmp(name, "unsupported") == 0)
        return true;
    if (strcmp(name, "ended") == 0 || strcmp(name, "loaded") == 0) {
        for (size_t c = 0; c < session->cli->cases.n; c++)
            session->matched[c] = true; /* cases that did not run may match */
        return true;
    }
    return session_wants_case(session, id) && selection_has_dtype(&session->selected, id);
}

/* Returns true if this process runs a check. The engine calls this before any work for the check. */
static bool wants_check(const void *user, const struct posenc_backend *backend, const char *id)
{
    struct session *session = (struct session *)(uintptr_t)user; /* notes matched patterns */
    (void)backend;
    return is_selected(session, id) && shard_has_case(&session->shard, id);
}

/* Returns the sort key of a check among those of all shards: kernel, backend, and the order of checks. */
static uint64_t place_of(struct verify *verify, const json_t *check)
{
    enum { RESULTS = 65536 }; /* more checks than a kernel has on a backend */
    const struct selection *selected = &verify->session.selected;
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
    return record_is(check, "status", conf_status_name[status]);
}

static void receive_check(void *user, json_t *check)
{
    struct verify *verify = user;
    struct session *session = &verify->session;
    const char *id = record_text(check, "case");
    if (!is_selected(session, id))
        return;
    const uint64_t place = place_of(verify, check);
    if (has_status(check, CONF_ELSEWHERE)) {
        session->in_other_shard = true;
        return;
    }
    if (session->cli->answers && json_object_get(check, "command"))
        json_object_set_new(check, "command",
                            json_sprintf("posenc vectors answers %s%s --case %s",
                                         session->cli->answers, verify->rerun, id));
    verify->n_failed += check_has_failed(check);
    verify->n_skipped += has_status(check, CONF_SKIPPED);
    verify->n_passed_or_failed += check_has_failed(check) || has_status(check, CONF_PASS);
    snprintf(verify->last, sizeof verify->last, "%s %s", record_text(check, "backend"), id);
    if (session->cli->update_error_limits && json_object_get(check, "range") &&
        json_array_append_new(verify->with_limits, json_copy(check)) != 0)
        abort(); /* without it, a limit would stay too high */
    json_object_del(check, "range");
    session_append(session, json_incref(check), place);
}

static void show_progress(void *user, size_t done, size_t total)
{
    const struct verify *verify = user;
    char notes[64] = "";
    if (verify->n_failed > 0)
        snprintf(notes, sizeof notes, ", %zu FAILED", verify->n_failed);
    progress_draw(&(struct progress){ .command = "verify",
                                      .unit = "kernels on backends",
                                      .done = (double)done,
                                      .total = total,
                                      .notes = notes,
                                      .case_id = verify->last });
}

/* ---- --update-error-limits ---- */

static struct conf_result result_of_check(const json_t *check, const struct selection *selected)
{
    struct conf_result r = { .status = has_status(check, CONF_PASS) ? CONF_PASS : CONF_FAIL,
                             .kernel = posenc_kernel_find(record_text(check, "kernel")),
                             .numerics = record_text(check, "numerics"),
                             .range = record_text(check, "range"),
                             .metric = record_text(check, "error.metric"),
                             .max = record_value(check, "error.max", (double)NAN) };
    snprintf(r.worst_at, sizeof r.worst_at, "%s", record_text(check, "error.worst_at"));
    for (size_t i = 0; i < selected->n; i++)
        if (strcmp(selected->backends[i]->name, record_text(check, "backend")) == 0)
            r.backend = selected->backends[i];
    return r;
}

static void lower_error_limits(const struct verify *verify)
{
    const struct cli *cli = verify->session.cli;
    const size_t n = json_array_size(verify->with_limits);
    struct conf_result *results = cli_allocate(n, sizeof *results);
    char error[ERROR_LIMITS_MESSAGE];
    for (size_t i = 0; i < n; i++)
        results[i] =
            result_of_check(json_array_get(verify->with_limits, i), &verify->session.selected);
    const int lowered = error_limits_lower(cli->error_limits, results, n, error);
    free(results);
    if (lowered < 0)
        cli_reject("--error-limits", cli->error_limits, "%s", error);
    text_print(stderr, "posenc verify: %d limits lowered in %s\n", lowered, cli->error_limits);
}

/* ---- Calls of all presets, for --full ---- */

/* Distinct calls, at their real sizes and also with few tokens. */
struct presets {
    size_t n;
    struct problem *problems;
    size_t n_models;
    struct model *models; /* own memory of `problems` */
};

/* Adds a call unless its line is in `lines`. */
static void add_call(struct presets *presets, json_t *lines, const struct problem *p)
{
    char *line = problem_print_line(p);
    if (!json_object_get(lines, line)) {
        presets->problems[presets->n++] = *p;
        json_object_set_new(lines, line, json_true());
    }
    free(line);
}

/* Skips presets whose calls are too large for this machine, with a message. */
static void presets_load(struct presets *presets)
{
    char error[MODEL_ERROR];
    json_t *lines = json_object();
    size_t n = 0;
    while (model_name_at(n))
        n++;
    *presets = (struct presets){ .problems = cli_allocate(2 * n * MODEL_MAX_CASES,
                                                          sizeof *presets->problems),
                                 .models = cli_allocate(n, sizeof *presets->models) };
    for (size_t m = 0; m < n; m++) {
        struct model *model = &presets->models[presets->n_models];
        if (model_load(model_name_at(m), model, error) != 0) {
            text_print(stderr, "skipped the calls of %s: %s\n", model_name_at(m), error);
            continue;
        }
        presets->n_models++;
        for (size_t i = 0; i < model->n_cases; i++)
            add_call(presets, lines, &model->cases[i].problem);
        for (size_t i = 0; i < model->n_verify; i++)
            add_call(presets, lines, &model->verify[i]);
    }
    json_decref(lines);
}

static void presets_free(struct presets *presets)
{
    for (size_t i = 0; i < presets->n_models; i++)
        model_free(&presets->models[i]);
    free(presets->models);
    free(presets->problems);
}

/* ---- The command ---- */

/* Returns the largest number of workers; 0: one for each CPU. A socket carries one connection at a time. */
static size_t max_jobs(const struct cli *cli)
{
    for (size_t i = 0; i < cli->exec.n; i++)
        if (connection_is_socket(cli->exec.item[i]))
            return 1;
    return cli->jobs != INT64_MIN ? (size_t)cli->jobs : 0;
}

static void run_checks(struct verify *verify, const struct conf_options *options)
{
    struct session *session = &verify->session;
    struct checks_implementation implementations[BACKENDS_MAX];
    for (size_t i = 0; i < session->selected.n; i++)
        implementations[i] =
            (struct checks_implementation){ implementation_of(session->selected.backends[i]),
                                            NULL };
    const struct checks checks = { .implementations = implementations,
                                   .n_implementations = session->selected.n,
                                   .options = options,
                                   .rerun = verify->rerun,
                                   .max_jobs = max_jobs(session->cli),
                                   .limit_s = session->cli->limit,
                                   .on_record = receive_check,
                                   .progress = show_progress,
                                   .user = verify };
    checks_run(&checks);
    session_exit_if_interrupted(session);
    progress_clear();
}

static void verify_all(struct verify *verify)
{
    struct session *session = &verify->session;
    const struct cli *cli = session->cli;
    size_t n_problems;
    struct problem *problems =
        session_list_problems(session, cli->full || cli->exhaustive, &n_problems);
    struct presets presets = { .n = 0 };
    struct conf_options options = { .full = cli->full || cli->exhaustive,
                                    .exhaustive = cli->exhaustive,
                                    .suite = cli->problem ? "problem" : cli->suite,
                                    .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                                    .random_s = random_share_s(session),
                                    .problem = problems,
                                    .n_problems = n_problems,
                                    .only = cli->problem ? &session->line.problem : NULL,
                                    .vectors =
                                        session->vectors.n > 0 ? &session->vectors : NULL,
                                    /* only saves work: wants_check() tests all patterns */
                                    .case_glob = cli->cases.n == 1 ? cli->cases.item[0] : NULL,
                                    .wants = wants_check,
                                    .wants_user = session };
    if (options.full && session->n_models == 0 && !cli->problem)
        presets_load(&presets);
    options.presets = presets.problems;
    options.n_presets = presets.n;
    memcpy(options.kernels, session->selected.kernels, sizeof options.kernels);
    run_checks(verify, &options);
    free(problems);
    presets_free(&presets);
    session_check_patterns(session);
}

static int verify_selected(struct verify *verify, struct cli *cli)
{
    struct session *session = &verify->session;
    check_arguments(cli);
    session_begin(session, cli, true);
    read_error_limits(session);
    session_select_model_kernels(session);
    write_rerun_options(verify);
    verify_all(verify);
    const bool judged = verify->n_passed_or_failed > 0 || session->in_other_shard;
    if (cli->update_error_limits && verify->n_failed == 0)
        lower_error_limits(verify);
    session_end(session, true);
    if (verify->n_failed > 0)
        return EXIT_CONFORMANCE;
    if (judged)
        return EXIT_OK;
    cli_complain("nothing was checked", NULL, "%s",
                 verify->n_skipped > 0
                     ? "every check was skipped; the results say why"
                     : "no check fits: expected another --kernel, --dtype, --suite or --case");
    return EXIT_SKIPPED;
}

int command_verify(struct cli *cli)
{
    if (cli->verbose)
        return verify_verbose(cli);
    struct verify verify = { .with_limits = json_array() };
    const int status = verify_selected(&verify, cli);
    json_decref(verify.with_limits);
    return status;
}
