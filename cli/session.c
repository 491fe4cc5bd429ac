/* Begins and ends a session: selection, models, records and outputs (see session.h). */
#define _POSIX_C_SOURCE 200809L
#include "session.h"
#include "worker.h"
#include "data.h"
#include "emit.h"
#include "problem.h"
#include "base/text/text.h"
#include "messages.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Kernels ---- */

static bool is_called_by_model(const struct session *session, enum posenc_kernel kernel)
{
    for (size_t m = 0; m < session->n_models; m++)
        for (size_t i = 0; i < session->models[m].n_cases; i++)
            if (session->models[m].cases[i].problem.kernel == kernel)
                return true;
    return false;
}

static bool is_provided(const struct session *session, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < session->selected.n; i++)
        if (posenc_backend_provides(session->selected.backends[i], kernel))
            return true;
    return false;
}

/* Returns true for the kernel of --problem; without it, for selected kernels that a model calls, if there are models. */
static bool is_selected(const struct session *session, enum posenc_kernel kernel)
{
    if (session->cli->problem)
        return session->line.problem.kernel == kernel;
    return (!session->selected.names_kernels || session->selected.kernels[kernel]) &&
           (session->cli->model.n == 0 || is_called_by_model(session, kernel));
}

/* Writes the names of the kernels for which `holds` is true: "alibi, alibi_add". */
static void list_kernels(const struct session *session,
                         bool (*holds)(const struct session *, enum posenc_kernel),
                         char text[512])
{
    text[0] = '\0';
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (holds(session, (enum posenc_kernel)k))
            text_list_add(text, 512, ", ", posenc_kernel_name((enum posenc_kernel)k));
}

/* Rejects a selected kernel for which `holds` is false. */
static int check_selected(const struct session *session,
                          bool (*holds)(const struct session *, enum posenc_kernel),
                          const char *reason)
{
    char names[512];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        if (!session->selected.kernels[k] || holds(session, kernel))
            continue;
        list_kernels(session, holds, names);
        return cli_reject(session->cli, "--kernel", posenc_kernel_name(kernel),
                          "%s: expected one of %s", reason, names);
    }
    return EXIT_OK;
}

/* Rejects a selection in which no backend provides a selected kernel. */
static int check_backends(const struct session *session)
{
    const struct cli *cli = session->cli;
    char wanted[512];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (is_selected(session, (enum posenc_kernel)k) &&
            is_provided(session, (enum posenc_kernel)k))
            return EXIT_OK;
    list_kernels(session, is_selected, wanted);
    return cli_reject(cli, cli->backend.n > 0 ? "--backend" : "--plugin",
                      session->selected.n > 0 ? session->selected.backends[0]->name : NULL,
                      "provides none of the selected kernels: expected a backend with %s",
                      wanted);
}

int session_check_model_kernels(const struct session *session)
{
    return session->cli->model.n == 0
               ? EXIT_OK
               : check_selected(session, is_called_by_model, "no selected model calls it");
}

static int check_kernels(const struct session *session)
{
    if (session_check_model_kernels(session) != EXIT_OK ||
        check_selected(session, is_provided, "no selected backend provides it") != EXIT_OK)
        return EXIT_USAGE;
    return check_backends(session);
}

/* ---- Models ---- */

static void free_models(struct session *session)
{
    for (size_t i = 0; i < session->n_models; i++)
        model_free(&session->models[i]);
    free(session->models);
    session->models = NULL;
    session->n_models = 0;
}

int session_load_models(struct session *session, const char *const *names, size_t n)
{
    free_models(session);
    session->models = cli_allocate(n, sizeof *session->models);
    for (size_t i = 0; i < n; i++) {
        struct model *model = &session->models[session->n_models++];
        char storage[128];
        if (models_read(session->cli, names[i], model) != EXIT_OK)
            return EXIT_USAGE;
        if (*models_describe_dtype(model, &session->selected, storage))
            cli_print_note("%s: %s\n", model->name, storage);
    }
    return EXIT_OK;
}

size_t session_model_cases(const struct session *session, struct bench_case **cases)
{
    size_t n = 0;
    *cases = cli_allocate(session->n_models * MODEL_MAX_CASES * N_DTYPES, sizeof **cases);
    for (size_t m = 0; m < session->n_models; m++) {
        for (size_t i = 0; i < session->models[m].n_cases; i++) {
            const struct model_case *one = &session->models[m].cases[i];
            bool wanted = !session->selected.names_kernels ||
                          session->selected.kernels[one->problem.kernel];
            for (int dtype = 0; wanted && dtype < N_DTYPES; dtype++)
                if (selection_times_dtype(&session->selected, &session->models[m],
                                          (enum posenc_dtype)dtype))
                    (*cases)[n++] = case_with_dtype(one, (enum posenc_dtype)dtype);
        }
    }
    return n;
}

/* ---- Problems of models ---- */

/* Adds a call in the selected types. */
static void add_problem(const struct session *session, const struct model *model,
                        const struct problem *p, struct problem *problems, size_t *n)
{
    for (int dtype = 0; dtype < N_DTYPES; dtype++) {
        if (selection_times_dtype(&session->selected, model, (enum posenc_dtype)dtype)) {
            problems[*n] = *p;
            problems[(*n)++].dtype = (enum posenc_dtype)dtype;
        }
    }
}

/* Returns true for the first call of a kernel, in prefill or on a picture. A quick run checks no others. */
static bool is_first(const struct model *model, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (model->cases[k].problem.kernel == model->cases[i].problem.kernel)
            return false;
    return true;
}

struct problem *session_list_problems(const struct session *session, bool full, size_t *n)
{
    struct problem *problems =
        cli_allocate(2 * session->n_models * MODEL_MAX_CASES * N_DTYPES, sizeof *problems);
    *n = 0;
    for (const struct model *m = session->models; m < session->models + session->n_models;
         m++) {
        for (size_t i = 0; i < m->n_verify; i++)
            add_problem(session, m, &m->verify[i], problems, n);
        for (size_t i = 0; i < m->n_cases; i++)
            if (full || is_first(m, i))
                add_problem(session, m, &m->cases[i].problem, problems, n);
    }
    return problems;
}

void session_select_model_kernels(struct session *session)
{
    for (size_t m = 0; m < session->n_models && session->cli->kernel.n == 0; m++) {
        for (size_t i = 0; i < session->models[m].n_verify; i++)
            session->selected.kernels[session->models[m].verify[i].kernel] =
                session->selected.names_kernels = true;
        for (size_t i = 0; i < session->models[m].n_cases; i++)
            session->selected.kernels[session->models[m].cases[i].problem.kernel] = true;
    }
}

/* ---- Cases ---- */

void session_select_plugin_kernels(struct session *session)
{
    const struct cli *cli = session->cli;
    struct selection *selected = &session->selected;
    bool named = selected->names_kernels || cli->cases.n > 0 || cli->problem;
    for (size_t i = 0; i < selected->n && !named; i++) {
        const struct posenc_backend *backend = selected->backends[i];
        for (int k = 0; k < POSENC_KERNEL_COUNT && selected->is_plugin[i]; k++)
            if (posenc_backend_provides(backend, (enum posenc_kernel)k))
                selected->kernels[k] = selected->names_kernels = true;
    }
}

bool session_wants_case(struct session *session, const char *id)
{
    const struct option_values *globs = &session->cli->cases;
    bool wanted = globs->n == 0;
    for (size_t i = 0; i < globs->n; i++) {
        bool matches = fnmatch(globs->item[i], id, 0) == 0;
        session->matched[i] |= matches;
        wanted |= matches;
    }
    return wanted;
}

int session_check_patterns(const struct session *session)
{
    static const char nothing[] =
        "matches nothing that was selected: expected a pattern such as 'rope_table/*'";
    const struct cli *cli = session->cli;
    bool any = cli->cases.n == 0;
    for (size_t i = 0; i < cli->cases.n; i++)
        any |= session->matched[i];
    if (!any)
        return cli_reject(cli, "--case", cli->cases.item[0], "%s", nothing);
    for (size_t i = 0; i < cli->cases.n; i++)
        if (!session->matched[i])
            (void)cli_reject(cli, "--case", cli->cases.item[i], "%s", nothing);
    return EXIT_OK;
}

/* ---- Records ---- */

/* Returns true if a record could not be written, except to a reader that went away. */
static bool has_lost_records(const struct session *session)
{
    return session->records.failed != 0 && session->records.failed != EPIPE;
}

static int reject_records(const struct session *session)
{
    return cli_reject(session->cli, "records", NULL, "cannot be written: %s",
                      strerror(session->records.failed));
}

void session_append(struct session *session, json_t *record, uint64_t place)
{
    if (record && session->shard.n > 0)
        json_object_set_new(record, "place", json_integer((json_int_t)place));
    records_append(&session->records, record);
}

/* Writes the records so far, and from now on each new one, to the output whose format allows single lines. */
static void open_stream(struct session *session)
{
    for (size_t i = 0; i < session->outputs.n; i++)
        if (session->outputs.output[i].format->by_line)
            session->records.stream = session->outputs.output[i].stream;
    for (size_t i = 0; i < json_array_size(session->records.list); i++)
        records_write(&session->records, json_array_get(session->records.list, i));
}

static int begin_records(struct session *session)
{
    char error[RECORDS_ERROR];
    if (records_open(&session->records, error) != 0)
        return cli_reject(session->cli, "records", NULL, "%s", error);
    if (emit_preamble(session) != 0)
        return reject_records(session);
    open_stream(session);
    return has_lost_records(session) ? reject_records(session) : EXIT_OK;
}

int session_begin(struct session *session, struct cli *cli, bool with_vectors,
                  bool plugins_alone)
{
    size_t n_models = session->n_models;
    session->cli = cli;
    if (shard_parse(cli, &session->shard) != EXIT_OK ||
        (cli->problem &&
         problem_read_option(cli, &session->line, &session->arena) != EXIT_OK) ||
        select_all(cli, &session->selected, plugins_alone) != EXIT_OK ||
        (n_models == 0 &&
         session_load_models(session, cli->model.item, cli->model.n) != EXIT_OK) ||
        check_kernels(session) != EXIT_OK || session_open(session, with_vectors) != EXIT_OK) {
        session_abort(session);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int session_open(struct session *session, bool with_vectors)
{
    struct cli *cli = session->cli;
    if (outputs_open(cli, &session->outputs) != EXIT_OK ||
        (with_vectors && data_vectors(cli, &session->vectors) != EXIT_OK) ||
        begin_records(session) != EXIT_OK)
        return EXIT_USAGE;
    session->at_start = session->at_timing_start = noise_read();
    outputs_catch_signals();
    return EXIT_OK;
}

static void session_free(struct session *session)
{
    arena_free(&session->arena);
    char error[RECORDS_ERROR];
    session->records.stream = NULL; /* owned by an output */
    if (session->records.list)
        (void)records_close(&session->records, error);
    vectors_free(&session->vectors);
    free_models(session);
    json_decref(session->noise);
    json_decref(session->compare);
    *session = (struct session){ 0 };
}

void session_abort(struct session *session)
{
    outputs_discard(&session->outputs);
    session_free(session);
}

int session_end(struct session *session, bool complete)
{
    progress_clear();
    const struct cli *cli = session->cli;
    if (!session->noise)
        session->noise = noise_since(&session->at_timing_start);
    double seconds = noise_read().wall_s - session->at_start.wall_s;
    records_append(&session->records,
                   emit_footer(&session->records, complete, seconds, session->noise));
    session->noise = NULL;
    int status = has_lost_records(session) ? reject_records(session) : EXIT_OK;
    if (status == EXIT_OK)
        status = outputs_write(cli, &session->outputs, session->records.list,
                               session->records.stream);
    if (status == EXIT_OK)
        status = outputs_commit(cli, &session->outputs);
    else
        outputs_discard(&session->outputs);
    session_free(session);
    return status;
}

/* The file is valid: its footer says that it is incomplete. */
void session_exit_if_interrupted(struct session *session)
{
    int number = outputs_interrupted();
    if (number != 0) {
        progress_clear();
        if (!session->cli->tune) /* posenc tune discards these records */
            fputs("posenc: interrupted: writing the results so far\n", stderr);
        session_end(session, false);
        worker_exit(EXIT_SIGNAL + number);
    }
}
