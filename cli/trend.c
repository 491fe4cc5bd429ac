/*
 * posenc trend: the results of many runs in their order.
 */
#define _POSIX_C_SOURCE 200809L
#include "emit.h"
#include "outputs.h"
#include "reports/history.h"
#include "reports/text/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct files {
    struct history_file *file;
    size_t n;
};

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        json_decref((json_t *)files->file[i].records);
    free(files->file);
}

static int read_files(const struct cli *cli, struct files *files)
{
    files->file = calloc((size_t)cli->n_operands + 1, sizeof *files->file);
    for (int i = 0; files->file && i < cli->n_operands; i++) {
        char error[RECORDS_ERROR];
        json_t *records = json_array();
        files->file[files->n++] = (struct history_file){ cli->operands[i], records };
        if (records_load(cli->operands[i], records, error) != 0)
            return cli_refuse(cli, "results", NULL, "%s", error);
    }
    return files->file ? EXIT_FINE : cli_refuse(cli, "memory", NULL, "none left");
}

/* Commits, one a line, of which the first word counts; as texts. */
static int read_commits(const struct cli *cli, json_t **commits)
{
    char line[512];
    *commits = NULL;
    if (!cli->commits)
        return EXIT_FINE;
    FILE *file = fopen(cli->commits, "r");
    if (!file)
        return cli_refuse(cli, "--commits", cli->commits, "%s", strerror(errno));
    *commits = json_array();
    while (*commits && fgets(line, sizeof line, file)) {
        line[strcspn(line, " \t\r\n")] = 0;
        if (*line)
            json_array_append_new(*commits, json_string(line));
    }
    fclose(file);
    return json_array_size(*commits) > 0
               ? EXIT_FINE
               : cli_refuse(cli, "--commits", cli->commits,
                            "expected commits, one a line, as git rev-list --reverse prints");
}

static int write_out(struct cli *cli, struct outputs *outputs, const json_t *records)
{
    const struct render_options options = { .color = -1, .all = cli->all };
    const int status = outputs_write(cli, outputs, records, &options, NULL);
    if (status == EXIT_FINE)
        return outputs_commit(cli, outputs);
    outputs_discard(outputs);
    return status;
}

/* A header, what there is of each machine, a footer. */
static int tell(struct cli *cli, struct outputs *outputs, const struct history *history)
{
    const struct emit_run run = { .cli = cli, .mode = "trend" };
    struct records all = { .list = json_array() };
    int status = EXIT_USAGE;
    if (all.list && records_append(&all, emit_header(&run)) == 0 &&
        json_array_extend(all.list, history->records) == 0 &&
        records_append(&all, emit_footer(&all, true, 0.0, NULL)) == 0)
        status = write_out(cli, outputs, all.list);
    else
        cli_refuse(cli, "memory", NULL, "none left");
    json_decref(all.list);
    return status;
}

static struct history_names names_of(const struct list *list)
{
    return (struct history_names){ list->n, list->item };
}

static int show(struct cli *cli, struct outputs *outputs, const struct files *files,
                const json_t *commits)
{
    const struct history_wanted wanted = { names_of(&cli->kernel), names_of(&cli->backend),
                                           names_of(&cli->cases), commits };
    struct history history;
    if (history_make(files->file, files->n, &wanted, &history) != 0)
        return cli_refuse(cli, "memory", NULL, "none left");
    for (size_t i = 0; history.results > 0 && i < json_array_size(history.left_out); i++)
        text_print(stderr, "posenc trend: left out: %s\n",
                   json_string_value(json_array_get(history.left_out, i)));
    const int status = history.results > 0 ? tell(cli, outputs, &history)
                                           : cli_refuse(cli, "results", NULL,
                                                        "none of that kernel, backend or case");
    history_free(&history);
    return status;
}

int command_trend(struct cli *cli)
{
    struct files files = { NULL, 0 };
    struct outputs outputs = { .n = 0 };
    json_t *commits = NULL;
    if (cli->n_operands == 0)
        return cli_refuse(cli, "results", NULL,
                          "expected files of records, as --out jsonl writes them");
    if (outputs_open(cli, &outputs, record_formats, BY_TREND) != EXIT_FINE)
        return EXIT_USAGE;
    int status = read_files(cli, &files);
    if (status == EXIT_FINE)
        status = read_commits(cli, &commits);
    if (status == EXIT_FINE)
        status = show(cli, &outputs, &files, commits);
    if (status != EXIT_FINE)
        outputs_discard(&outputs);
    json_decref(commits);
    free_files(&files);
    return status;
}
