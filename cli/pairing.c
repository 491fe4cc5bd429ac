/*
 * Chooses what is compared of two builds, see pair.h.
 *
 * The quick set, where the command line names no shapes: f32, one shape in L2 on every backend; of kernels
 * that it names, one in memory (DRAM), too, on the backend that serves by default.  That one takes as
 * long as twenty in L2, by any backend.  Named backends, and --full, are timed on all.
 */
#define _POSIX_C_SOURCE 200809L
#include "pair.h"
#include "conformance/problem/signature.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Builds ---- */

static int open_build(const struct cli *cli, const char *path, struct library **library)
{
    char error[PLUGIN_ERROR];
    *library = library_open(path, error);
    if (!*library)
        return cli_refuse(cli, "build", path, "%s", error);
    if ((*library)->abi == POSENC_ABI)
        return EXIT_FINE;
    cli_refuse(cli, "build", path,
               "is incomparable: of ABI %u, and this program of ABI %u; expected builds of ABI "
               "%u, or a posenc of their own",
               (*library)->abi, POSENC_ABI, POSENC_ABI);
    return EXIT_INCOMPARABLE;
}

static int open_builds(struct pairing *p, const struct cli *cli, bool with_null)
{
    const char *base = cli->operands[0], *head = cli->operands[1];
    int status = open_build(cli, base, &p->base);
    if (status == EXIT_FINE)
        status = open_build(cli, head, &p->head);
    if (status == EXIT_FINE && with_null)
        status = open_build(cli, base, &p->again);
    return status;
}

void pairing_sha256(const struct library *library, char hex[65])
{
    static char block[1 << 16];
    struct sha256 hash;
    off_t at = 0;
    sha256_init(&hash);
    for (ssize_t n; (n = pread(library->file, block, sizeof block, at)) > 0; at += n)
        sha256_update(&hash, block, (size_t)n);
    sha256_final(&hash, hex);
}

/* ---- Backends ---- */

/* An implementation that can run here. */
static const struct implementation *usable(const struct library *library, const char *name)
{
    const struct implementation *implementation =
        library ? library_implementation(library, name) : NULL;
    return implementation && !library->obstacle(implementation->backend) ? implementation
                                                                         : NULL;
}

static void add_names(struct pairing *p, const struct library *library)
{
    for (size_t i = 0; i < library->n && p->n_names < PAIRING_NAMES; i++) {
        const char *name = library->implementations[i].backend->name;
        size_t at = 0;
        while (at < p->n_names && strcmp(p->names[at].name, name) != 0)
            at++;
        if (at < p->n_names)
            continue;
        p->names[p->n_names++] = (struct pairing_name){ .name = name,
                                                        .base = usable(p->base, name),
                                                        .head = usable(p->head, name),
                                                        .again = usable(p->again, name) };
    }
}

/* Returns the description of a backend, usable or not. */
static const struct posenc_backend *backend_of(const struct pairing *p, size_t name)
{
    const struct implementation *implementation =
        library_implementation(p->head, p->names[name].name);
    if (!implementation)
        implementation = library_implementation(p->base, p->names[name].name);
    return implementation->backend;
}

static bool is_called(const struct pairing *p, size_t name, const char *what)
{
    return strcmp(p->names[name].name, what) == 0 ||
           strcmp(backend_of(p, name)->family, what) == 0;
}

/* Keeps the backends that the command line names, or all that run here. */
static int choose_names(struct pairing *p, const struct cli *cli)
{
    const char *names[PAIRING_NAMES];
    size_t kept = 0;
    for (size_t i = 0; i < p->n_names; i++)
        names[i] = p->names[i].name;
    for (size_t i = 0; i < cli->backend.n; i++) {
        const char *obstacle = NULL;
        bool known = false, runs = false;
        for (size_t j = 0; j < p->n_names; j++) {
            if (!is_called(p, j, cli->backend.item[i]))
                continue;
            known = true;
            runs = runs || p->names[j].base || p->names[j].head;
            obstacle = posenc_backend_obstacle(backend_of(p, j));
        }
        if (!known)
            return cli_refuse_name(cli, "--backend", cli->backend.item[i], names, p->n_names);
        if (!runs)
            return cli_refuse(cli, "--backend", cli->backend.item[i],
                              "cannot run here: %s; expected one that can",
                              obstacle ? obstacle : "its build refuses it");
    }
    for (size_t i = 0; i < p->n_names; i++) {
        bool wanted = cli->backend.n == 0;
        for (size_t j = 0; j < cli->backend.n; j++)
            wanted = wanted || is_called(p, i, cli->backend.item[j]);
        if (wanted && (p->names[i].base || p->names[i].head))
            p->names[kept++] = p->names[i];
    }
    p->n_names = kept;
    return EXIT_FINE;
}

/* ---- Pairs ---- */

/* Returns which of the builds have a backend's kernel. */
static enum pairing_kind kind_of(const struct pairing_name *name, enum posenc_kernel kernel)
{
    const bool base = implementation_provides(name->base, kernel);
    const bool head = implementation_provides(name->head, kernel);
    return base && head ? PAIRING_BOTH
           : head       ? PAIRING_NEW
           : base       ? PAIRING_REMOVED
                        : PAIRING_NONE;
}

static bool is_in_memory(const struct bench_case *c)
{
    return strcmp(c->footprint, "DRAM") == 0;
}

enum pairing_kind pairing_kind(const struct pairing *p, size_t at_case, size_t name)
{
    const struct bench_case *c = &p->cases[at_case];
    const struct implementation *any =
        p->names[name].head ? p->names[name].head : p->names[name].base;
    enum pairing_kind kind = kind_of(&p->names[name], c->problem.kernel);
    if (!any->backend->f16_bf16 && !problem_is_f32(&c->problem))
        kind = PAIRING_NONE;
    for (size_t i = 0; i < name && is_in_memory(c) && !p->all_alike; i++)
        if (kind_of(&p->names[i], c->problem.kernel) != PAIRING_NONE)
            return PAIRING_NONE; /* that one serves, being the first */
    return kind;
}

/* The cases that are asked for and that a backend has. */
static int choose_cases(struct pairing *p, struct work *work)
{
    struct bench_case *cases = NULL;
    const size_t n = work->cli->problem   ? work_problem_case(work, &cases)
                     : work->n_models > 0 ? work_model_cases(work, &cases)
                                          : work_footprint_cases(work, &cases);
    const struct cli *cli = work->cli;
    const bool in_memory = cli->full || cli->kernel.n > 0 || cli->cases.n > 0 || cli->problem ||
                           work->n_models > 0;
    p->cases = cases;
    p->all_alike =
        work->cli->full || work->cli->problem || work->n_models > 0 || work->cli->backend.n > 0;
    for (size_t i = 0; i < n; i++) {
        bool any = false;
        if (!cases[i].footprint)
            cases[i].footprint = bench_footprint(problem_working_set(&cases[i].problem));
        for (size_t j = 0; j < p->n_names; j++)
            any = any || kind_of(&p->names[j], cases[i].problem.kernel) != PAIRING_NONE;
        if (any && (in_memory || !is_in_memory(&cases[i])) && work_wants(work, cases[i].id))
            cases[p->n_cases++] = cases[i];
    }
    if (p->n_cases > 0)
        return EXIT_FINE;
    if (work->cli->cases.n > 0)
        return work_check_patterns(work);
    return cli_refuse(work->cli, work->selected.any_kernel ? "--kernel" : "builds",
                      work->selected.any_kernel ? work->cli->kernel.item[0] : NULL,
                      "neither build has what was selected: expected a kernel of one of their "
                      "backends (posenc list kernels)");
}

/* Backends as records tell of them: head's, and those of base alone. */
static void note_backends(const struct pairing *p, struct selection *selected)
{
    selected->n = 0;
    for (size_t i = 0; i < p->n_names && selected->n < BACKENDS_MAX; i++)
        selected->backends[selected->n++] = backend_of(p, i);
}

int pairing_open(struct pairing *p, struct work *work, struct cli *cli, bool with_null)
{
    *p = (struct pairing){ 0 };
    work->cli = cli;
    int status = select_shapes(cli, &work->selected);
    if (status == EXIT_FINE && cli->problem)
        status = problem_take(cli, &work->line, &work->arena);
    if (status == EXIT_FINE)
        status = work_models(work, cli->model.item, cli->model.n);
    if (status == EXIT_FINE)
        status = open_builds(p, cli, with_null);
    if (status == EXIT_FINE) {
        add_names(p, p->head);
        add_names(p, p->base);
        status = choose_names(p, cli);
    }
    if (status == EXIT_FINE) {
        note_backends(p, &work->selected);
        status = choose_cases(p, work);
    }
    return status;
}

void pairing_close(struct pairing *p)
{
    free(p->cases);
    library_close(p->base);
    library_close(p->head);
    library_close(p->again);
    *p = (struct pairing){ 0 };
}
