/*
 * Begins a run with a selection, models and vectors, and ends it with the outputs that were asked
 * for (see work.h).
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SIGNAL = 128 }; /* and its number: as a shell tells it */

int work_refuse_memory(const struct work *work)
{
    return cli_refuse(work->cli, "memory", NULL, "none left");
}

/* ---- records ---- */

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

/* After a signal what there is becomes a valid file that says it is not complete. */
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
