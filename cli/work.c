/*
 * Begins a run: a selection of kernels, models and cases, and outputs. Ends it with the outputs that
 * were asked for (see work.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"
#include "worker.h"
#include "data.h"
#include "emit.h"
#include "models.h"
#include "base/text/text.h"
#include "progress.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SIGNAL = 128 }; /* plus its number, as a shell reports it */

int work_refuse_memory(const struct work *work)
{
    return cli_refuse(work->cli, "memory", NULL, "none left");
}

/* ---- Kernels ---- */

static bool is_called(const struct work *work, enum posenc_kernel kernel)
{
    for (size_t m = 0; m < work->n_models; m++)
        for (size_t i = 0; i < work->models[m].n_cases; i++)
            if (work->models[m].cases[i].problem.kernel == kernel)
                return true;
    return false;
}

static bool is_provided(const struct work *work, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < work->selected.n; i++)
        if (posenc_provides(work->selected.backends[i], kernel))
            return true;
    return false;
}

/* Returns true for the kernel of --problem, else for selected kernels that the models call. */
static bool is_wanted(const struct work *work, enum posenc_kernel kernel)
{
    if (work->cli->problem)
        return work->line.problem.kernel == kernel;
    return (!work->selected.any_kernel || work->selected.kernels[kernel]) &&
           (work->cli->model.n == 0 || is_called(work, kernel));
}

/* Lists the kernels for which the test holds: "alibi, alibi_add". */
static void list_kernels(const struct work *work,
                         bool (*holds)(const struct work *, enum posenc_kernel), char text[512])
{
    size_t at = 0;
    text[0] = '\0';
    for (int k = 0; k < POSENC_KERNEL_COUNT && at < 512; k++)
        if (holds(work, (enum posenc_kernel)k))
            at += (size_t)snprintf(text + at, 512 - at, "%s%s", at > 0 ? ", " : "",
                                   posenc_kernel_name((enum posenc_kernel)k));
}

/* Rejects a selected kernel for which the test does not hold. */
static int check_named(const struct work *work,
                       bool (*holds)(const struct work *, enum posenc_kernel), const char *why)
{
    char good[512];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        enum posenc_kernel kernel = (enum posenc_kernel)k;
        if (!work->selected.kernels[k] || holds(work, kernel))
            continue;
        list_kernels(work, holds, good);
        return cli_refuse(work->cli, "--kernel", posenc_kernel_name(kernel),
                          "%s: expected one of %s", why, good);
    }
    return EXIT_FINE;
}

/* Rejects backends of which none has a selected kernel. */
static int check_backends(const struct work *work)
{
    const struct cli *cli = work->cli;
    char wanted[512];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        if (is_wanted(work, (enum posenc_kernel)k) && is_provided(work, (enum posenc_kernel)k))
            return EXIT_FINE;
    list_kernels(work, is_wanted, wanted);
    return cli_refuse(cli, cli->backend.n > 0 ? "--backend" : "--plugin",
                      work->selected.n > 0 ? work->selected.backends[0]->name : NULL,
                      "does not provide what was selected: expected a backend with %s", wanted);
}

int work_check_kernels(const struct work *work)
{
    if ((work->cli->model.n > 0 &&
         check_named(work, is_called, "no model that was named calls it") != EXIT_FINE) ||
        check_named(work, is_provided, "no backend that was selected provides it") != EXIT_FINE)
        return EXIT_USAGE;
    return check_backends(work);
}

/* ---- Models ---- */

void work_free_models(struct work *work)
{
    for (size_t i = 0; i < work->n_models; i++)
        model_free(&work->models[i]);
    free(work->models);
    work->models = NULL;
    work->n_models = 0;
}

int work_models(struct work *work, const char *const *names, size_t n)
{
    work_free_models(work);
    work->models = calloc(n > 0 ? n : 1, sizeof *work->models);
    if (!work->models)
        return cli_refuse(work->cli, "memory", NULL, "none left");
    for (size_t i = 0; i < n; i++) {
        struct model *model = &work->models[work->n_models++];
        char storage[128];
        if (models_read(work->cli, names[i], model) != EXIT_FINE)
            return EXIT_USAGE;
        if (*models_storage(model, &work->selected, storage))
            cli_print_note("%s: %s\n", model->name, storage);
    }
    return EXIT_FINE;
}

size_t work_model_cases(const struct work *work, struct bench_case **cases)
{
    size_t n = 0;
    *cases = calloc(work->n_models * MODEL_MAX_CASES * N_DTYPES + 1, sizeof **cases);
    for (size_t m = 0; m < work->n_models && *cases; m++) {
        for (size_t i = 0; i < work->models[m].n_cases; i++) {
            const struct model_case *one = &work->models[m].cases[i];
            bool wanted =
                !work->selected.any_kernel || work->selected.kernels[one->problem.kernel];
            for (int dtype = 0; wanted && dtype < N_DTYPES; dtype++)
                if (times_dtype(&work->selected, &work->models[m], (enum posenc_dtype)dtype))
                    (*cases)[n++] = case_stored_as(one, (enum posenc_dtype)dtype);
        }
    }
    return n;
}

/* ---- Cases ---- */

void work_keep_to_plugins(struct work *work)
{
    const struct cli *cli = work->cli;
    struct selection *selected = &work->selected;
    bool named = selected->any_kernel || cli->cases.n > 0 || cli->problem;
    for (size_t i = 0; i < selected->n && !named; i++) {
        const struct posenc_backend *backend = selected->backends[i];
        for (int k = 0; k < POSENC_KERNEL_COUNT && selected->is_plugin[i]; k++)
            if (posenc_provides(backend, (enum posenc_kernel)k))
                selected->kernels[k] = selected->any_kernel = true;
    }
}

bool work_wants(struct work *work, const char *id)
{
    const struct list *globs = &work->cli->cases;
    bool wanted = globs->n == 0;
    for (size_t i = 0; i < globs->n; i++) {
        bool matches = fnmatch(globs->item[i], id, 0) == 0;
        work->matched[i] |= matches;
        wanted |= matches;
    }
    return wanted;
}

int work_check_patterns(const struct work *work)
{
    static const char nothing[] =
        "matches nothing that was selected: expected a pattern such as 'rope_table/*'";
    const struct cli *cli = work->cli;
    bool any = cli->cases.n == 0;
    for (size_t i = 0; i < cli->cases.n; i++)
        any |= work->matched[i];
    if (!any)
        return cli_refuse(cli, "--case", cli->cases.item[0], "%s", nothing);
    for (size_t i = 0; i < cli->cases.n; i++)
        if (!work->matched[i])
            (void)cli_refuse(cli, "--case", cli->cases.item[i], "%s", nothing);
    return EXIT_FINE;
}

/* ---- Records ---- */

/* Returns true if records are lost; that nobody reads them any more is no loss. */
static bool has_lost_records(const struct work *work)
{
    return work->records.failed != 0 && work->records.failed != EPIPE;
}

static int refuse_records(const struct work *work)
{
    return cli_refuse(work->cli, "records", NULL, "cannot be written: %s",
                      strerror(work->records.failed));
}

static const char *mode_of(const struct cli *cli)
{
    return cli->exhaustive ? "exhaustive" : cli->full ? "full" : "quick";
}

void work_append(struct work *work, json_t *record, uint64_t place)
{
    if (record && work->shard.n > 0)
        json_object_set_new(record, "place", json_integer((json_int_t)place));
    records_append(&work->records, record);
}

/* Streams records, line by line as they come, to an output that takes lines. */
static void open_stream(struct work *work)
{
    for (size_t i = 0; i < work->outputs.n; i++)
        if (work->outputs.output[i].format->by_line)
            work->records.stream = work->outputs.output[i].stream;
    for (size_t i = 0; i < json_array_size(work->records.list); i++)
        records_write(&work->records, json_array_get(work->records.list, i));
}

static int begin_records(struct work *work, bool with_vectors)
{
    char error[RECORDS_ERROR];
    if (records_open(&work->records, error) != 0)
        return cli_refuse(work->cli, "records", NULL, "%s", error);
    struct cli *cli = work->cli;
    struct emit_run run = { .cli = cli,
                            .mode = mode_of(cli),
                            .seed = cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0,
                            .vectors = with_vectors ? &work->vectors : NULL,
                            .compare = work->compare,
                            .shard = work->shard };
    int failed = emit_start(&work->records, &run, work->selected.backends, work->selected.n);
    for (size_t i = 0; i < work->n_models; i++)
        failed |= records_keep(&work->records, emit_model(&work->models[i], &work->selected));
    if (failed)
        return refuse_records(work);
    open_stream(work);
    return has_lost_records(work) ? refuse_records(work) : EXIT_FINE;
}

int work_begin(struct work *work, struct cli *cli, unsigned command, bool with_vectors,
               bool plugins_alone)
{
    size_t n_models = work->n_models;
    work->cli = cli;
    if (shard_read(cli, &work->shard) != EXIT_FINE ||
        (cli->problem && problem_take(cli, &work->line, &work->arena) != EXIT_FINE) ||
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
    if (outputs_open(cli, &work->outputs, work->formats ? work->formats : record_formats,
                     command) != EXIT_FINE ||
        (with_vectors && data_vectors(cli, &work->vectors) != EXIT_FINE) ||
        begin_records(work, with_vectors) != EXIT_FINE)
        return EXIT_USAGE;
    work->watch = work->timing = noise_watch_start();
    outputs_finish_on_signal();
    return EXIT_FINE;
}

static void work_free(struct work *work)
{
    arena_free(&work->arena);
    char error[RECORDS_ERROR];
    work->records.stream = NULL; /* an output's */
    if (work->records.list)
        (void)records_close(&work->records, error);
    vectors_free(&work->vectors);
    work_free_models(work);
    json_decref(work->noise);
    json_decref(work->compare);
    *work = (struct work){ 0 };
}

void work_give_up(struct work *work)
{
    outputs_discard(&work->outputs);
    work_free(work);
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
    int status = has_lost_records(work) ? refuse_records(work) : EXIT_FINE;
    if (status == EXIT_FINE)
        status = outputs_write(cli, &work->outputs, work->records.list, work->records.stream);
    if (status == EXIT_FINE)
        status = outputs_commit(cli, &work->outputs);
    else
        outputs_discard(&work->outputs);
    work_free(work);
    return status;
}

/* Writes what there is after a signal: a valid file that says it is incomplete. */
void work_end_if_interrupted(struct work *work)
{
    int number = outputs_interrupted();
    if (number != 0) {
        progress_clear();
        if (!work->cli->tune) /* posenc tune writes nothing then */
            fputs("posenc: interrupted: writing what there is\n", stderr);
        work_end(work, false);
        worker_exit(EXIT_SIGNAL + number);
    }
}
