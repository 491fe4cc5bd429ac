/*
 * What a command line chooses among what there is: models and their cases, kernels that its models
 * call and its backends have, and cases by pattern (see work.h).  A choice of nothing is refused.
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"
#include "models.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>

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

/* Of a problem its own, of models theirs, of those that were named none but these. */
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
