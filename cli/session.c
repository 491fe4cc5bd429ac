/* Begins and ends a session: selection, models, records and outputs (see session.h). */
#define _POSIX_C_SOURCE 200809L
#include "session.h"
#include "data.h"
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

/* Writes the names of the kernels for which `holds` returns true: "alibi, alibi_add". */
static void list_kernels(const struct session *session,
                         bool (*holds)(const struct session *, enum posenc_kernel),
                         char text[512])
{
    text[0] = '\0';
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (holds(session, (enum posenc_kernel)k))
            text_list_add(text, 512, ", ", posenc_kernel_name((enum posenc_kernel)k));
}

/* Rejects a selected kernel for which `holds` returns false. */
static void check_selected(const struct session *session,
                           bool (*holds)(const struct session *, enum posenc_kernel),
                           const char *reason)
{
    char names[512];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        if (!session->selected.kernels[k] || holds(session, kernel))
            continue;
        list_kernels(session, holds, names);
        cli_reject("--kernel", posenc_kernel_name(kernel), "%s: expected one of %s", reason,
                   names);
    }
}

/* Rejects a selection in which no backend provides a selected kernel. */
static void check_backends(const struct session *session)
{
    const struct cli *cli = session->cli;
    char wanted[512];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (is_selected(session, (enum posenc_kernel)k) &&
            is_provided(session, (enum posenc_kernel)k))
            return;
    list_kernels(session, is_selected, wanted);
    cli_reject(cli->backend.n > 0 ? "--backend" : "--plugin",
               session->selected.n > 0 ? session->selected.backends[0]->name : NULL,
               "provides none of the selected kernels: expected a backend with %s", wanted);
}

void session_check_model_kernels(const struct session *session)
{
    if (session->cli->model.n > 0)
        check_selected(session, is_called_by_model, "no selected model calls it");
}

/* ---- Models ---- */

void session_load_models(struct session *session)
{
    const struct option_values *names = &session->cli->model;
    session->models = cli_allocate(names->n, sizeof *session->models);
    for (size_t i = 0; i < names->n; i++) {
        struct model *model = &session->models[session->n_models++];
        char storage[128];
        models_read(session->cli, names->item[i], model);
        if (*models_describe_dtype(model, &session->selected, storage))
            cli_print_note("%s: %s\n", model->name, storage);
    }
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

void session_check_patterns(const struct session *session)
{
    static const char nothing[] =
        "matches nothing that was selected: expected a pattern such as 'rope_table/*'";
    const struct cli *cli = session->cli;
    bool any = cli->cases.n == 0;
    for (size_t i = 0; i < cli->cases.n; i++)
        any |= session->matched[i];
    if (!any)
        cli_reject("--case", cli->cases.item[0], "%s", nothing);
    for (size_t i = 0; i < cli->cases.n; i++)
        if (!session->matched[i])
            cli_complain("--case", cli->cases.item[i], "%s", nothing);
}

/* ---- Records ---- */

/* Rejects an output to which a record could not be written, except by a reader that went away. */
static void check_records(const struct session *session)
{
    const int failed = session->records.failed;
    if (failed != 0 && failed != EPIPE)
        cli_reject("records", NULL, "cannot be written: %s", strerror(failed));
}

void session_append(struct session *session, json_t *record, uint64_t place)
{
    if (record && session->shard.n > 0)
        json_object_set_new(record, "place", json_integer((json_int_t)place));
    records_append(&session->records, record);
}

void session_begin(struct session *session, struct cli *cli, bool verifies)
{
    session->cli = cli;
    session->shard = shard_parse(cli);
    if (cli->problem)
        problem_read_option(cli, &session->line, &session->arena);
    select_all(cli, &session->selected, verifies);
    session_load_models(session);
    session_check_model_kernels(session);
    check_selected(session, is_provided, "no selected backend provides it");
    check_backends(session);
    session_open(session, verifies);
}

void session_open(struct session *session, bool with_vectors)
{
    outputs_open(session->cli, &session->outputs);
    if (with_vectors)
        data_load_vectors(session->cli, &session->vectors);
    session->records.list = json_array();
    for (size_t i = 0; i < session->outputs.n; i++)
        if (session->outputs.output[i].format->by_line)
            session->records.stream = session->outputs.output[i].stream;
    emit_preamble(session);
    check_records(session);
    session->at_start = session->at_timing_start = noise_read();
    outputs_catch_signals();
}

void session_free(struct session *session)
{
    outputs_discard(&session->outputs);
    arena_free(&session->arena);
    json_decref(session->records.list);
    vectors_free(&session->vectors);
    for (size_t i = 0; i < session->n_models; i++)
        model_free(&session->models[i]);
    free(session->models);
    json_decref(session->noise);
    json_decref(session->compare);
    *session = (struct session){ 0 };
}

void session_end(struct session *session, bool complete)
{
    progress_clear();
    if (!session->noise)
        session->noise = noise_since(&session->at_timing_start);
    double seconds = noise_read().wall_s - session->at_start.wall_s;
    records_append(&session->records,
                   emit_footer(&session->records, complete, seconds, session->noise));
    session->noise = NULL;
    check_records(session);
    outputs_write(&session->outputs, session->records.list, session->records.stream);
    outputs_commit(&session->outputs);
    session_free(session);
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
        exit(EXIT_SIGNAL + number);
    }
}
