/*
 * posenc pair: opens two builds, selects cases and backends, and runs the parts of --part (see pair.h).
 *
 * By default each kernel is timed in f32 on one shape in L2, on every backend. A kernel of --kernel is also timed on
 * one shape in DRAM, on the default backend alone, since that takes as long as twenty shapes in L2. With --backend or
 * --full, all backends are timed on all shapes.
 */
#define _DEFAULT_SOURCE
#include "pair.h"
#include "conformance/problem/signature.h"
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Parts ---- */

static const char *const part_names[] = { "results", "code", "times", "counts" };
enum { N_PARTS = sizeof part_names / sizeof *part_names };

/* Returns true if --part names a part, or for "code" and "times" without that option. */
static bool has_part(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->part.n; i++)
        if (strcmp(cli->part.item[i], name) == 0)
            return true;
    return cli->part.n == 0 && (strcmp(name, "code") == 0 || strcmp(name, "times") == 0);
}

/* ---- Builds ---- */

static struct library *open_build(const char *path)
{
    char error[PLUGIN_ERROR];
    struct library *library = library_open(path, error);
    if (!library)
        cli_reject("build", path, "%s", error);
    if (library->abi == POSENC_ABI)
        return library;
    cli_complain("build", path,
                 "is incomparable: its ABI is %u, that of this program %u; expected builds of "
                 "ABI %u, or the posenc program of that ABI",
                 library->abi, POSENC_ABI, POSENC_ABI);
    exit(EXIT_INCOMPARABLE);
}

/* Returns the record of a build, with the hash of the loaded file. */
static json_t *build_record(const struct library *library)
{
    static char block[1 << 16];
    struct sha256 hash;
    char sha256[65];
    off_t done = 0;
    sha256_init(&hash);
    for (ssize_t n; (n = pread(library->file, block, sizeof block, done)) > 0; done += n)
        sha256_update(&hash, block, (size_t)n);
    sha256_final(&hash, sha256);
    return json_pack("{s:o,s:s,s:I,s:s,s:b}", "path", record_string(library->path), "version",
                     library->version, "abi", (json_int_t)library->abi, "sha256", sha256,
                     "plugin", library->is_plugin);
}

/* ---- Backends ---- */

/* Returns the implementation of that name if it can run here, or NULL. */
static const struct implementation *find_usable(const struct library *library, const char *name)
{
    const struct implementation *implementation =
        library ? library_implementation(library, name) : NULL;
    return implementation && !library->unavailable_reason(implementation->backend)
               ? implementation
               : NULL;
}

/* Adds the backends of a build whose names are new. */
static void add_backends(struct pair_run *run, const struct library *library)
{
    for (size_t i = 0; i < library->n && run->n_backends < BACKENDS_MAX; i++) {
        const struct posenc_backend *backend = library->implementations[i].backend;
        size_t same = 0; /* index of the backend with that name */
        while (same < run->n_backends &&
               strcmp(run->backends[same].descriptor->name, backend->name) != 0)
            same++;
        if (same == run->n_backends)
            run->backends[run->n_backends++] =
                (struct pair_backend){ .descriptor = backend,
                                       .base = find_usable(run->base, backend->name),
                                       .head = find_usable(run->head, backend->name),
                                       .control = find_usable(run->control, backend->name) };
    }
}

/* Keeps the selected backends that run here. Records describe the backends of head, and those that base alone has. */
static void choose_backends(struct pair_run *run)
{
    struct selection *selected = &run->session.selected;
    struct candidates candidates = { 0 };
    add_backends(run, run->head);
    add_backends(run, run->base);
    for (size_t i = 0; i < run->n_backends; i++) {
        const struct posenc_backend *backend = run->backends[i].descriptor;
        const char *reason = posenc_backend_unavailable_reason(backend);
        candidates.backend[i] = backend;
        if (!run->backends[i].base && !run->backends[i].head)
            candidates.reason[i] = reason ? reason : "its build rejects it";
    }
    candidates.n = run->n_backends;
    select_named(run->session.cli, &candidates);
    for (size_t i = 0; i < candidates.n; i++) {
        if (!candidates.chosen[i] || candidates.reason[i])
            continue;
        run->backends[selected->n] = run->backends[i];
        selected->backends[selected->n++] = candidates.backend[i];
    }
    run->n_backends = selected->n;
}

/* ---- Cases ---- */

static enum pair_providers providers_of(const struct pair_backend *backend,
                                        enum posenc_kernel kernel)
{
    if (!implementation_provides(backend->head, kernel))
        return implementation_provides(backend->base, kernel) ? PROVIDED_BY_BASE
                                                              : PROVIDED_BY_NONE;
    return implementation_provides(backend->base, kernel) ? PROVIDED_BY_BOTH : PROVIDED_BY_HEAD;
}

static bool has_backend(const struct pair_run *run, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < run->n_backends; i++)
        if (providers_of(&run->backends[i], kernel) != PROVIDED_BY_NONE)
            return true;
    return false;
}

static bool is_in_dram(const struct bench_case *c) { return strcmp(c->level, "DRAM") == 0; }

/* Keeps the selected cases whose kernel a backend provides. */
static void choose_cases(struct pair_run *run)
{
    struct session *session = &run->session;
    const struct cli *cli = session->cli;
    struct bench_case *cases = NULL;
    const size_t n = session_list_cases(session, &cases);
    const bool with_dram = cli->full || cli->kernel.n > 0 || cli->cases.n > 0 || cli->problem ||
                           session->n_models > 0;
    run->cases = cases;
    for (size_t i = 0; i < n; i++)
        if (has_backend(run, cases[i].problem.kernel) &&
            (with_dram || !is_in_dram(&cases[i])) && session_wants_case(session, cases[i].id))
            cases[run->n_cases++] = cases[i];
    if (run->n_cases > 0)
        return;
    session_check_patterns(session);
    cli_reject(
        session->selected.names_kernels ? "--kernel" : "builds",
        session->selected.names_kernels ? cli->kernel.item[0] : NULL,
        "neither build has a selected kernel: expected a kernel of one of their backends "
        "(posenc list kernels)");
}

/* ---- Rows ---- */

/* Adds the rows of a case: for every backend that provides its kernel, or for the first of them. */
static void add_rows(struct pair_run *run, const struct bench_case *c, bool first_alone)
{
    for (size_t i = 0; i < run->n_backends; i++) {
        const struct pair_backend *backend = &run->backends[i];
        const enum pair_providers providers = providers_of(backend, c->problem.kernel);
        const struct implementation *one = backend->head ? backend->head : backend->base;
        if (providers == PROVIDED_BY_NONE)
            continue;
        if (one->backend->f16_bf16 || problem_is_f32(&c->problem))
            run->rows[run->n_rows++] = (struct pair_row){ .bench_case = c,
                                                          .backend = backend,
                                                          .providers = providers };
        if (first_alone)
            return;
    }
}

static void make_rows(struct pair_run *run)
{
    const struct cli *cli = run->session.cli;
    const size_t most = run->n_cases * run->n_backends;
    const bool all_backends =
        cli->full || cli->problem || run->session.n_models > 0 || cli->backend.n > 0;
    run->rows = cli_allocate(most, sizeof *run->rows);
    run->chosen = cli_allocate(most, sizeof *run->chosen);
    for (size_t c = 0; c < run->n_cases; c++)
        add_rows(run, &run->cases[c], is_in_dram(&run->cases[c]) && !all_backends);
}

/* Selects a row. Only rows that both builds provide are timed. */
static void select_row(struct pair_run *run, struct pair_row *row)
{
    if (row->providers == PROVIDED_BY_BOTH && !row->chosen)
        run->chosen[run->n_chosen++] = row;
    row->chosen = true;
}

static void select_pair(struct pair_run *run, const char *id, const char *backend)
{
    size_t i = 0;
    while (i < run->n_rows && (strcmp(run->rows[i].bench_case->id, id) != 0 ||
                               strcmp(run->rows[i].backend->descriptor->name, backend) != 0))
        i++;
    if (i == run->n_rows)
        cli_reject("--pairs", id,
                   "is not compared here with the backend %s: expected lines of a case "
                   "and a backend that were selected",
                   backend);
    select_row(run, &run->rows[i]);
}

/* Selects the rows that --pairs lists, or all. */
static void choose_rows(struct pair_run *run)
{
    const struct cli *cli = run->session.cli;
    char line[256], id[96], backend[64];
    if (!cli->pairs) {
        for (size_t i = 0; i < run->n_rows; i++)
            select_row(run, &run->rows[i]);
        return;
    }
    FILE *in = strcmp(cli->pairs, "-") == 0 ? stdin : fopen(cli->pairs, "r");
    if (!in)
        cli_reject("--pairs", cli->pairs, "%s", strerror(errno));
    for (size_t number = 1; fgets(line, sizeof line, in); number++) {
        const int n = sscanf(line, "%95s %63s", id, backend);
        if (n == 1)
            cli_reject("--pairs", id, "line %zu: expected a case and a backend", number);
        if (n == 2)
            select_pair(run, id, backend);
    }
    if (in != stdin)
        fclose(in);
}

/* ---- The process ---- */

/* Resolves the command line, opens the builds and selects rows. */
static void prepare(struct pair_run *run)
{
    struct session *session = &run->session;
    const struct cli *cli = session->cli;
    select_kernels_and_dtypes(cli, &session->selected);
    if (cli->problem)
        problem_read_option(cli, &session->line, &session->arena);
    session_load_models(session);
    run->base = open_build(cli->operands[0]);
    run->head = open_build(cli->operands[1]);
    if (has_part(cli, "times"))
        run->control = open_build(cli->operands[0]);
    choose_backends(run);
    choose_cases(run);
    make_rows(run);
    choose_rows(run);
    session->compare = json_pack("{s:o,s:o}", "base", build_record(run->base), "head",
                                 build_record(run->head));
}

static void run_parts(struct pair_run *run)
{
    const struct cli *cli = run->session.cli;
    if (has_part(cli, "results"))
        pair_compare_results(run);
    for (size_t i = 0; i < run->n_rows && !cli->pairs; i++)
        records_append(&run->session.records,
                       pair_record_planned(&run->rows[i], has_part(cli, "code")));
    if (has_part(cli, "times"))
        pair_time_rows(run);
    if (has_part(cli, "counts"))
        pair_count_instructions(run);
    session_exit_if_interrupted(&run->session);
}

int command_pair(struct cli *cli)
{
    if (cli->n_operands != 2)
        cli_reject("operands", cli->n_operands > 2 ? cli->operands[2] : NULL,
                   "expected two builds of the library, or two plug-ins: BASE HEAD");
    for (size_t i = 0; i < cli->part.n; i++)
        cli_find_name("--part", cli->part.item[i], part_names, N_PARTS);
    if (cli->parent != INT64_MIN && !worker_end_with_parent((pid_t)cli->parent))
        cli_reject("--parent", NULL, "that process did not start this one");
    if (timings_unavailable_reason())
        return timings_report_unavailable();
    struct pair_run *run = cli_allocate(1, sizeof *run);
    run->session.cli = cli;
    run->seed = rng_u64(cli->seed != INT64_MIN ? (uint64_t)cli->seed : 0, 0);
    prepare(run);
    session_open(&run->session, !cli->pairs);
    run_parts(run);
    session_end(&run->session, true);
    const int status = run->head_failed     ? EXIT_CONFORMANCE
                       : run->n_chosen == 0 ? EXIT_INCOMPARABLE
                                            : EXIT_OK;
    free(run->rows);
    free(run->chosen);
    free(run->cases);
    library_close(run->base);
    library_close(run->head);
    library_close(run->control);
    free(run);
    return status;
}
