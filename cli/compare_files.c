/*
 * posenc compare of two files of results (reports/compare_files.h): nothing runs, so that nothing is selected or timed.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/compare_files.h"
#include "compare_files.h"
#include "emit.h"
#include "outputs.h"

#include <math.h>
#include <string.h>

/* A file of records begins with an object; a library does not. */
bool is_result_file(const char *path)
{
    FILE *file = fopen(path, "r");
    const int first = file ? fgetc(file) : EOF;
    if (file)
        fclose(file);
    return first == '{';
}

static int refuse_idle(const struct cli *cli)
{
    const struct idle_option others[] = {
        { "--problem", cli->problem != NULL },
        { "--seed", cli->seed != INT64_MIN },
        { "--launches", cli->launches != INT64_MIN },
        { "--threshold", !isnan(cli->threshold) },
        { "--strict", cli->strict },
    };
    return cli_refuse_idle(
        cli, others, sizeof others / sizeof *others,
        "two files of results are compared as they are, and nothing is timed");
}

static json_t *load(const struct cli *cli, const char *path)
{
    char error[RECORDS_ERROR];
    json_t *list = json_array();
    if (list && records_load(path, list, error) == 0)
        return list;
    cli_refuse(cli, "results", NULL, "%s", list ? error : "no memory");
    json_decref(list);
    return NULL;
}

/* The records of the comparison: a header, what was found, a footer. */
static json_t *records_of(const struct cli *cli, const struct files_compared *found)
{
    const struct emit_run run = { .cli = cli, .mode = "files", .compare = found->compare };
    struct records all = { .list = json_array() };
    if (all.list && records_append(&all, emit_header(&run)) == 0 &&
        json_array_extend(all.list, found->records) == 0 &&
        records_append(&all, emit_footer(&all, true, 0.0, NULL)) == 0)
        return all.list;
    json_decref(all.list);
    return NULL;
}

static int write_out(struct cli *cli, const json_t *records)
{
    struct outputs outputs;
    struct render_options options = { .color = -1, .all = cli->all };
    if (outputs_open(cli, &outputs, record_formats, BY_COMPARE) != EXIT_FINE)
        return EXIT_USAGE;
    const int status = outputs_write(cli, &outputs, records, &options, NULL);
    if (status == EXIT_FINE)
        return outputs_commit(cli, &outputs);
    outputs_discard(&outputs);
    return status;
}

/* What got worse fails a gate without statistics. */
static int exit_code(const struct cli *cli, const struct files_compared *found)
{
    return found->failed               ? EXIT_CONFORMANCE
           : found->obstacles          ? EXIT_INCOMPARABLE
           : found->worse && cli->gate ? EXIT_SLOWER
                                       : EXIT_FINE;
}

int compare_result_files(struct cli *cli)
{
    if (refuse_idle(cli) != EXIT_FINE)
        return EXIT_USAGE;
    json_t *base = load(cli, cli->operands[0]),
           *head = base ? load(cli, cli->operands[1]) : NULL, *records = NULL;
    struct files_compared found = { 0 };
    const struct result_file b = { cli->operands[0], base }, h = { cli->operands[1], head };
    int status = EXIT_USAGE;
    if (head && compare_files(&b, &h, &found) == 0)
        records = records_of(cli, &found);
    if (records)
        status = write_out(cli, records);
    else if (head)
        cli_refuse(cli, "memory", NULL, "none left");
    if (status == EXIT_FINE)
        status = exit_code(cli, &found);
    json_decref(records);
    files_compared_free(&found);
    json_decref(base);
    json_decref(head);
    return status;
}
