/*
 * posenc merge: shards of a run, or runs of several machines, as one file of records.
 */
#define _POSIX_C_SOURCE 200809L
#include "emit.h"
#include "outputs.h"
#include "reports/merge.h"
#include "reports/text/text.h"

#include <stdio.h>
#include <stdlib.h>

struct files {
    struct merge_input *input;
    size_t n;
};

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->n; i++)
        json_decref((json_t *)files->input[i].records);
    free(files->input);
}

static int read_files(const struct cli *cli, struct files *files)
{
    files->n = 0;
    files->input = calloc((size_t)cli->n_operands + 1, sizeof *files->input);
    for (int i = 0; files->input && i < cli->n_operands; i++) {
        struct merge_input *input = &files->input[files->n++];
        char error[RECORDS_ERROR];
        json_t *records = json_array();
        *input = (struct merge_input){ .name = cli->operands[i], .records = records };
        if (records_load_end(input->name, records, &input->end, error) != 0)
            return cli_refuse(cli, "results", NULL, "%s", error);
    }
    return files->input ? EXIT_FINE : cli_refuse(cli, "memory", NULL, "none left");
}

/* Merged records, from the header to the footer. */
static int merge(const struct cli *cli, const struct files *files, struct records *records)
{
    char error[MERGE_ERROR];
    const struct emit_run run = { .cli = cli, .mode = "mixed" };
    json_t *header = emit_header(&run), *notes = json_array();
    enum merge_status status = MERGE_MEMORY;
    if (header && notes)
        status = merge_records(files->input, files->n, cli->mixed, header, records->list, notes,
                               error);
    if (status == MERGE_FINE) {
        for (size_t i = 0; i < json_array_size(notes); i++)
            text_print(stderr, "posenc merge: %s\n",
                       json_string_value(json_array_get(notes, i)));
        records_keep(records, emit_footer(records, true, 0.0, NULL));
    }
    json_decref(header);
    json_decref(notes);
    if (status == MERGE_FINE)
        return records->failed ? cli_refuse(cli, "memory", NULL, "none left") : EXIT_FINE;
    cli_refuse(cli, "results", NULL, "%s",
               status == MERGE_MEMORY ? "no memory is left" : error);
    return status == MERGE_MISSING ? EXIT_MISSING : EXIT_USAGE;
}

static int write_outputs(const struct cli *cli, struct outputs *outputs,
                         const struct records *records)
{
    const struct render_options options = { .color = -1 };
    const int status = outputs_write(cli, outputs, records->list, &options, NULL);
    if (status == EXIT_FINE)
        return outputs_commit(cli, outputs);
    outputs_discard(outputs);
    return status;
}

int command_merge(struct cli *cli)
{
    struct files files = { .n = 0 };
    struct outputs outputs = { .n = 0 };
    struct records records;
    char error[RECORDS_ERROR];
    if (cli->n_operands == 0)
        return cli_refuse(cli, "results", NULL,
                          "expected files of records, as --out jsonl writes them");
    if (outputs_open(cli, &outputs, record_formats, BY_REPORT) != EXIT_FINE)
        return EXIT_USAGE;
    int status = records_open(&records, NULL, error) == 0
                     ? read_files(cli, &files)
                     : cli_refuse(cli, "memory", NULL, "none left");
    if (status == EXIT_FINE)
        status = merge(cli, &files, &records);
    if (status == EXIT_FINE)
        status = write_outputs(cli, &outputs, &records);
    else
        outputs_discard(&outputs);
    free_files(&files);
    (void)records_close(&records, error);
    return status;
}
