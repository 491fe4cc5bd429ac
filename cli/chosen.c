/*
 * What a command line chooses among what there is: kernels that its models call and its backends
 * have, and cases by pattern (see work.h).  A choice of nothing is refused.
 */
#define _POSIX_C_SOURCE 200809L
#include "work.h"

#include <fnmatch.h>
#include <stdio.h>

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

/* Refuses a kernel for which the test does not hold, with those for which it does. */
static int check_kernels(const struct work *work,
                         bool (*holds)(const struct work *, enum posenc_kernel),
                         const char *why)
{
    char good[512] = "";
    size_t at = 0;
    int bad = POSENC_KERNEL_COUNT;
    for (int k = POSENC_KERNEL_COUNT - 1; k >= 0; k--)
        if (work->selected.kernels[k] && !holds(work, (enum posenc_kernel)k))
            bad = k;
    if (bad == POSENC_KERNEL_COUNT)
        return EXIT_FINE;
    for (int k = 0; k < POSENC_KERNEL_COUNT && at < sizeof good; k++)
        if (holds(work, (enum posenc_kernel)k))
            at += (size_t)snprintf(good + at, sizeof good - at, "%s%s", at > 0 ? ", " : "",
                                   posenc_kernel_name((enum posenc_kernel)k));
    return cli_refuse(work->cli, "--kernel", posenc_kernel_name((enum posenc_kernel)bad),
                      "%s: expected one of %s", why, good);
}

int work_check_kernels(const struct work *work)
{
    if (work->cli->model.n > 0 &&
        check_kernels(work, is_called, "no model that was named calls it") != EXIT_FINE)
        return EXIT_USAGE;
    return check_kernels(work, is_provided, "no backend that was selected provides it");
}

/* ---- patterns of ids ---- */

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

size_t work_count_wanted(struct work *work, const struct bench_case *cases, size_t n)
{
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++)
        wanted += work_wants(work, cases[i].id);
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
