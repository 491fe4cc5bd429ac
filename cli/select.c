/*
 * Finds the backends, kernels and types that the command line names (see select.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "select.h"
#include "models.h"
#include "plugins.h"
#include "work.h"
#include "worker.h"
#include "conformance/problem/problem.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library's list, then the plug-ins of --plugin that are not on it. */
struct candidates {
    size_t n;
    const struct posenc_backend *backend[BACKENDS_MAX];
    bool named[BACKENDS_MAX]; /* by --plugin */
};

static size_t place(const struct candidates *all, const struct posenc_backend *backend)
{
    size_t i = 0;
    while (i < all->n && all->backend[i] != backend)
        i++;
    return i;
}

/* Whether what a plug-in does to its process is a result of the command's. */
static bool has_results(const struct cli *cli)
{
    return strcmp(cli->command, "verify") == 0 || strcmp(cli->command, "bench") == 0;
}

static int gather_plugin(const struct cli *cli, const char *path, struct candidates *all)
{
    char error[PLUGIN_ERROR];
    const struct posenc_backend *backend = plugins_meet(path, error);
    if (!backend)
        return cli_refuse(cli, "--plugin", path, "%s", error);
    if (plugins_broken(backend) && !has_results(cli)) {
        cli_refuse(cli, "--plugin", path, "cannot be loaded: %s", plugins_broken(backend));
        worker_exit(EXIT_CONFORMANCE);
    }
    const size_t i = place(all, backend);
    if (i == BACKENDS_MAX)
        return cli_refuse(cli, "--plugin", path, "expected at most %d backends", BACKENDS_MAX);
    for (size_t j = 0; j < all->n; j++)
        if ((j != i || all->named[i]) && strcmp(all->backend[j]->name, backend->name) == 0)
            return cli_refuse(cli, "--plugin", path, "is named %s, as one before it",
                              backend->name);
    all->n += i == all->n;
    all->backend[i] = backend;
    all->named[i] = true;
    return EXIT_FINE;
}

static int gather(const struct cli *cli, struct candidates *all)
{
    *all = (struct candidates){ 0 };
    while (all->n < BACKENDS_MAX && posenc_backend_at(all->n)) {
        all->backend[all->n] = posenc_backend_at(all->n);
        all->n++;
    }
    for (size_t i = 0; i < cli->plugin.n; i++)
        if (gather_plugin(cli, cli->plugin.item[i], all) != EXIT_FINE)
            return EXIT_USAGE;
    return EXIT_FINE;
}

static void usable_names(const struct candidates *all, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < all->n && at < size; i++) {
        if (!posenc_backend_obstacle(all->backend[i]))
            at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "",
                                   all->backend[i]->name);
    }
}

static int refuse_unusable(const struct cli *cli, const char *what, const char *name,
                           const struct candidates *all, const char *obstacle)
{
    char usable[512];
    usable_names(all, usable, sizeof usable);
    return cli_refuse(cli, what, name, "cannot run here: %s; expected one of %s", obstacle,
                      usable);
}

static int refuse_unknown(const struct cli *cli, const char *what, const char *name,
                          const struct candidates *all, bool with_families)
{
    const char *names[2 * BACKENDS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!posenc_backend_obstacle(all->backend[i]))
            names[n++] = all->backend[i]->name;
    for (size_t i = 0; i < all->n && with_families;
         i++) { /* families whose name is no backend's */
        bool listed = false;
        for (size_t j = 0; j < n; j++)
            listed = listed || strcmp(names[j], all->backend[i]->family) == 0;
        if (!listed)
            names[n++] = all->backend[i]->family;
    }
    return cli_refuse_name(cli, what, name, names, n);
}

/* Marks what `name`, a backend or a family, stands for. */
static int mark(const struct cli *cli, const struct candidates *all, const char *name,
                bool *chosen)
{
    const char *obstacle = NULL;
    bool known = false, usable = false;
    for (size_t i = 0; i < all->n; i++) {
        const struct posenc_backend *backend = all->backend[i];
        bool exact = strcmp(backend->name, name) == 0;
        if (!exact && strcmp(backend->family, name) != 0)
            continue;
        const char *why = posenc_backend_obstacle(backend);
        known = true;
        usable = usable || !why;
        obstacle = why ? why : obstacle;
        if (exact && why)
            return refuse_unusable(cli, "--backend", name, all, why);
        chosen[i] = chosen[i] || !why;
    }
    for (size_t i = 0; i < all->n && !known;
         i++) /* it may be the name of one that cannot be loaded */
        if (all->named[i] && plugins_broken(all->backend[i]))
            known = usable = chosen[i] = true;
    if (!known)
        return refuse_unknown(cli, "--backend", name, all, true);
    return usable ? EXIT_FINE : refuse_unusable(cli, "--backend", name, all, obstacle);
}

static int choose(struct cli *cli, struct candidates *all, bool *chosen, bool plugins_alone)
{
    if (gather(cli, all) != EXIT_FINE)
        return EXIT_USAGE;
    for (size_t i = 0; i < cli->backend.n; i++)
        if (mark(cli, all, cli->backend.item[i], chosen) != EXIT_FINE)
            return EXIT_USAGE;
    for (size_t i = 0; i < all->n && cli->backend.n == 0; i++)
        chosen[i] = all->named[i] || !plugins_alone || cli->plugin.n == 0;
    return EXIT_FINE;
}

int select_kernel(const struct cli *cli, const char *what, const char *name,
                  enum posenc_kernel *kernel)
{
    *kernel = posenc_kernel_find(name);
    if (*kernel != POSENC_KERNEL_COUNT)
        return EXIT_FINE;
    const char *names[POSENC_KERNEL_COUNT];
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        names[k] = posenc_kernel_name((enum posenc_kernel)k);
    return cli_refuse_name(cli, what, name, names, POSENC_KERNEL_COUNT);
}

/* ---- types of storage ---- */

int select_dtypes(const struct cli *cli, struct selection *selection)
{
    for (size_t i = 0; i < cli->dtype.n; i++) {
        int dtype = 0;
        while (dtype < N_DTYPES && strcmp(cli->dtype.item[i], dtype_names[dtype]) != 0)
            dtype++;
        if (dtype == N_DTYPES)
            return cli_refuse_name(cli, "--dtype", cli->dtype.item[i], dtype_names, N_DTYPES);
        selection->dtypes[dtype] = selection->any_dtype = true;
    }
    return EXIT_FINE;
}

enum posenc_dtype case_dtype(const char *id)
{
    const char *after = strchr(id, '/');
    for (int dtype = 0; dtype < N_DTYPES && after; dtype++) {
        size_t n = strlen(dtype_names[dtype]);
        if (strncmp(after + 1, dtype_names[dtype], n) == 0 && after[1 + n] == '/')
            return (enum posenc_dtype)dtype;
    }
    return POSENC_F32;
}

bool selects_dtype(const struct selection *selection, const char *id)
{
    return !selection->any_dtype || selection->dtypes[case_dtype(id)];
}

bool times_dtype(const struct selection *selection, const struct model *model,
                 enum posenc_dtype dtype)
{
    return selection->any_dtype ? selection->dtypes[dtype]
                                : dtype == (model ? model->storage : POSENC_F32);
}

struct bench_case case_stored_as(const struct model_case *one, enum posenc_dtype dtype)
{
    struct bench_case stored = { .problem = one->problem };
    size_t kernel = strcspn(one->id, "/");
    const char *rest = one->id[kernel] == '/' ? strchr(one->id + kernel + 1, '/') : NULL;
    stored.problem.dtype = dtype;
    snprintf(stored.id, sizeof stored.id, "%.*s/%s%s", (int)kernel, one->id, dtype_names[dtype],
             rest ? rest : "");
    return stored;
}

int select_shapes(const struct cli *cli, struct selection *selection)
{
    for (size_t i = 0; i < cli->kernel.n; i++) {
        enum posenc_kernel kernel;
        if (select_kernel(cli, "--kernel", cli->kernel.item[i], &kernel) != EXIT_FINE)
            return EXIT_USAGE;
        selection->kernels[kernel] = selection->any_kernel = true;
    }
    return select_dtypes(cli, selection);
}

int select_all(struct cli *cli, struct selection *selection, bool plugins_alone)
{
    *selection = (struct selection){ 0 };
    struct candidates all;
    bool chosen[BACKENDS_MAX] = { false };
    if (choose(cli, &all, chosen, plugins_alone) != EXIT_FINE)
        return EXIT_USAGE;
    for (size_t i = 0; i < all.n; i++)
        if (chosen[i]) {
            selection->is_plugin[selection->n] = all.named[i];
            selection->backends[selection->n++] = all.backend[i];
        }
    return select_shapes(cli, selection);
}

int select_require(const struct cli *cli, const struct selection *selection,
                   enum posenc_kernel kernel)
{
    for (size_t i = 0; i < selection->n; i++)
        if (posenc_provides(selection->backends[i], kernel) &&
            !posenc_backend_obstacle(selection->backends[i]))
            return EXIT_FINE;
    return cli_refuse(cli, cli->backend.n > 0 ? "--backend" : "--plugin",
                      selection->n > 0 ? selection->backends[0]->name : NULL,
                      "does not provide %s: expected one that does (posenc list backends)",
                      posenc_kernel_name(kernel));
}

int select_one(struct cli *cli, enum posenc_kernel kernel,
               const struct posenc_backend **backend)
{
    *backend = NULL;
    if (cli->backend.n == 0 && cli->plugin.n == 0)
        return EXIT_FINE;
    struct candidates all;
    bool chosen[BACKENDS_MAX] = { false };
    if (choose(cli, &all, chosen, true) != EXIT_FINE)
        return EXIT_USAGE;
    const char *name = cli->backend.n > 0 ? cli->backend.item[0] : cli->plugin.item[0];
    if (cli->backend.n > 1)
        return cli_refuse(cli, "--backend", cli->backend.item[1], "expected one backend");
    for (size_t i = 0; i < all.n; i++) {
        if (chosen[i] && posenc_backend_obstacle(all.backend[i]))
            return refuse_unusable(cli, "--plugin", name, &all,
                                   posenc_backend_obstacle(all.backend[i]));
        if (chosen[i] && posenc_provides(all.backend[i], kernel)) {
            *backend = all.backend[i];
            return EXIT_FINE;
        }
    }
    return cli_refuse(cli, "--backend", name,
                      "does not provide %s: expected one that does (posenc list backends)",
                      posenc_kernel_name(kernel));
}

int select_environment(const struct cli *cli)
{
    struct candidates all;
    struct cli plain = { .command = cli->command };
    const char *forced = getenv("POSENC_BACKEND"), *ceiling = getenv("POSENC_MAX_ISA");
    if (gather(&plain, &all) != EXIT_FINE)
        return EXIT_USAGE;
    if (forced && *forced != '\0') {
        const struct posenc_backend *backend = posenc_backend_find(forced);
        if (!backend)
            return refuse_unknown(cli, "POSENC_BACKEND", forced, &all, false);
        const char *why = posenc_backend_obstacle(backend);
        return !why ? EXIT_FINE : refuse_unusable(cli, "POSENC_BACKEND", forced, &all, why);
    }
    if (ceiling && *ceiling != '\0' && !posenc_backend_find(ceiling))
        return refuse_unknown(cli, "POSENC_MAX_ISA", ceiling, &all, false);
    return EXIT_FINE;
}

/* ---- What a run takes of them: kernels, models, cases ---- */

/* ---- kernels ---- */

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

/* Returns true for the kernel of --problem, those that models call, or those that are named. */
static bool is_wanted(const struct work *work, enum posenc_kernel kernel)
{
    if (work->cli->problem)
        return work->line.problem.kernel == kernel;
    return (!work->selected.any_kernel || work->selected.kernels[kernel]) &&
           (work->cli->model.n == 0 || is_called(work, kernel));
}

/* "alibi, alibi_add": the kernels for which the test holds. */
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

/* Refuses a kernel that was named and for which the test does not hold. */
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

/* Refuses backends of which none has any kernel that is wanted. */
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

/* ---- models ---- */

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

/* ---- patterns of ids ---- */

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
