/*
 * The command posenc pair: chooses the rows, and runs the parts that are asked for (see pair.h).
 */
#define _DEFAULT_SOURCE
#include "pair.h"
#include "emit.h"

#include <errno.h>
#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Parts ---- */

static const char *const part_names[] = { "results", "code", "times", "counts", "none" };
enum { N_PARTS = sizeof part_names / sizeof *part_names };

static bool has_part(const struct cli *cli, const char *name)
{
    bool found = cli->part.n == 0 && (strcmp(name, "code") == 0 || strcmp(name, "times") == 0);
    for (size_t i = 0; i < cli->part.n; i++)
        found = found || strcmp(cli->part.item[i], name) == 0;
    return found;
}

static int check_parts(const struct cli *cli)
{
    for (size_t i = 0; i < cli->part.n; i++) {
        size_t known = 0;
        while (known < N_PARTS && strcmp(part_names[known], cli->part.item[i]) != 0)
            known++;
        if (known == N_PARTS)
            return cli_refuse_name(cli, "--part", cli->part.item[i], part_names, N_PARTS);
    }
    return EXIT_FINE;
}

/* ---- Rows ---- */

static bool make_rows(struct pair_run *run)
{
    const struct pairing *p = &run->pairing;
    const size_t most = p->n_cases * p->n_names + 1;
    run->rows = calloc(most, sizeof *run->rows);
    run->wanted = calloc(most, sizeof *run->wanted);
    for (size_t c = 0; run->rows && run->wanted && c < p->n_cases; c++)
        for (size_t b = 0; b < p->n_names; b++) {
            const enum pairing_kind kind = pairing_kind(p, c, b);
            if (kind != PAIRING_NONE)
                run->rows[run->n++] =
                    (struct pair_row){ .at_case = c, .name = b, .kind = kind };
        }
    return run->rows && run->wanted;
}

static void want(struct pair_run *run, size_t row)
{
    if (run->rows[row].kind == PAIRING_BOTH && !run->rows[row].wanted)
        run->wanted[run->n_wanted++] = row;
    run->rows[row].wanted = true;
}

static int want_line(struct pair_run *run, char *line)
{
    const struct pairing *p = &run->pairing;
    char *rest = NULL;
    const char *id = strtok_r(line, " \t\r\n", &rest), *name = strtok_r(NULL, " \t\r\n", &rest);
    size_t i = 0;
    if (!id)
        return EXIT_FINE;
    while (name && i < run->n &&
           (strcmp(p->cases[run->rows[i].at_case].id, id) != 0 ||
            strcmp(p->names[run->rows[i].name].name, name) != 0))
        i++;
    if (!name || i == run->n)
        return cli_refuse(run->work.cli, "--pairs", id,
                          "is not compared here with the backend %s: expected lines of a case "
                          "and a backend that were selected",
                          name ? name : "(none)");
    want(run, i);
    return EXIT_FINE;
}

/* Rows that --pairs lists, or all. */
static int choose_rows(struct pair_run *run)
{
    const struct cli *cli = run->work.cli;
    char *line = NULL;
    size_t room = 0;
    int status = EXIT_FINE;
    if (!cli->pairs) {
        for (size_t i = 0; i < run->n; i++)
            want(run, i);
        return EXIT_FINE;
    }
    FILE *in = strcmp(cli->pairs, "-") == 0 ? stdin : fopen(cli->pairs, "r");
    if (!in)
        return cli_refuse(cli, "--pairs", cli->pairs, "%s", strerror(errno));
    while (status == EXIT_FINE && getline(&line, &room, in) > 0)
        status = want_line(run, line);
    free(line);
    if (in != stdin)
        fclose(in);
    return status;
}

/* ---- The process ---- */

/* Ends with the process that started this one, whatever happens to that one. */
static int end_with(const struct cli *cli)
{
    if (cli->parent == INT64_MIN)
        return EXIT_FINE;
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    return getppid() == (pid_t)cli->parent
               ? EXIT_FINE
               : cli_refuse(cli, "--parent", NULL, "that process did not start this one");
}

static json_t *build_record(const struct library *library)
{
    char sha256[65] = "";
    pairing_sha256(library, sha256);
    return json_pack("{s:o,s:s,s:I,s:s,s:b}", "path", record_string(library->path), "version",
                     library->version, "abi", (json_int_t)library->abi, "sha256", sha256,
                     "plugin", library->is_plugin);
}

static int measure(struct pair_run *run)
{
    const struct cli *cli = run->work.cli;
    int status = EXIT_FINE;
    if (has_part(cli, "results"))
        status = pair_results(run);
    for (size_t i = 0; i < run->n && !cli->pairs; i++)
        records_append(&run->work.records,
                       pair_record_planned(run, &run->rows[i], has_part(cli, "code")));
    if (status == EXIT_FINE && has_part(cli, "times"))
        status = pair_times(run);
    if (status == EXIT_FINE && has_part(cli, "counts"))
        pair_counts(run);
    if (status == EXIT_FINE)
        work_end_if_interrupted(&run->work);
    return status;
}

static int exit_code(const struct pair_run *run)
{
    size_t common = 0;
    for (size_t i = 0; i < run->n; i++)
        common += run->rows[i].kind == PAIRING_BOTH;
    return run->broken > 0 ? EXIT_CONFORMANCE : common == 0 ? EXIT_INCOMPARABLE : EXIT_FINE;
}

static int pair_builds(struct pair_run *run, struct cli *cli)
{
    struct work *work = &run->work;
    int status = pairing_open(&run->pairing, work, cli, has_part(cli, "times"));
    if (status != EXIT_FINE)
        return status;
    work->compare = json_pack("{s:o,s:o}", "base", build_record(run->pairing.base), "head",
                              build_record(run->pairing.head));
    work->formats = pair_formats;
    if (!make_rows(run))
        return work_refuse_memory(work);
    status = choose_rows(run);
    if (status == EXIT_FINE)
        status = work_open(work, BY_ALL, !cli->pairs);
    if (status == EXIT_FINE)
        status = measure(run);
    if (status == EXIT_FINE) {
        const int code = exit_code(run);
        status = work_end(work, true);
        status = status == EXIT_FINE ? code : status;
    }
    return status;
}

int command_pair(struct cli *cli)
{
    if (cli->n_operands != 2)
        return cli_refuse(cli, "operands", cli->n_operands > 2 ? cli->operands[2] : NULL,
                          "expected two builds of the library, or two plug-ins: BASE HEAD");
    if (check_parts(cli) != EXIT_FINE || end_with(cli) != EXIT_FINE)
        return EXIT_USAGE;
    if (work_no_timing()) {
        cli_refuse(cli, "nothing is timed here", NULL, "%s", work_no_timing());
        return EXIT_NOTHING;
    }
    struct pair_run *run = calloc(1, sizeof *run);
    if (!run)
        return cli_refuse(cli, "memory", NULL, "none left");
    run->seed = mix64(cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0, 0);
    const int status = pair_builds(run, cli);
    work_give_up(&run->work);
    free(run->rows);
    free(run->wanted);
    pairing_close(&run->pairing);
    free(run);
    return status;
}
