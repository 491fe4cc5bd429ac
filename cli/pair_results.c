/*
 * Compares the results of two builds exactly (see pair.h): every kernel that is compared, on each of the backends,
 * by the suites and on the same problems, those that are timed and fit a cache among them.
 */
#define _POSIX_C_SOURCE 200809L
#include "pair.h"
#include "accuracy.h"
#include "emit.h"

#include <stdlib.h>
#include <string.h>

/* Larger problems take longer than they add: timings check them. */
static const size_t most_bytes = (size_t)4 << 20;

struct comparing {
    struct pair_run *run;
    struct conf_options options;
    struct problem_line *extra;
    size_t n_extra;
    struct progress progress;
};

static void on_change(void *user, const struct change *change)
{
    struct comparing *c = user;
    struct work *work = &c->run->work;
    if (!selects_dtype(&work->selected, change->head.id))
        return;
    c->run->broken += change->what == CHANGE_STATUS && change->way == CHANGE_WORSE &&
                      change->head.status != CONF_UNSUPPORTED;
    records_append(&work->records, emit_change(change));
}

/* What is timed, by the last part of its id. */
static bool take_timed(struct comparing *c)
{
    const struct pairing *p = &c->run->pairing;
    c->extra = calloc(p->n_cases + 1, sizeof *c->extra);
    for (size_t i = 0; c->extra && i < p->n_cases; i++) {
        const char *slash = strrchr(p->cases[i].id, '/');
        if (problem_working_set(&p->cases[i].problem) <= most_bytes)
            c->extra[c->n_extra++] =
                (struct problem_line){ .name = slash ? slash + 1 : p->cases[i].id,
                                       .problem = p->cases[i].problem };
    }
    return c->extra != NULL;
}

static bool is_compared(const struct pairing *p, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < p->n_cases; i++)
        if (p->cases[i].problem.kernel == kernel)
            return true;
    return false;
}

/* In the place of a backend that a build does not have: one without kernels. */
static struct implementation without(const struct implementation *other,
                                     struct posenc_backend *none)
{
    *none = (struct posenc_backend){ .size = sizeof *none,
                                     .abi = POSENC_ABI,
                                     .name = other->backend->name,
                                     .family = other->backend->family,
                                     .description = "",
                                     .needs = "" };
    struct implementation implementation = *other;
    implementation.backend = none;
    return implementation;
}

static void compare_one(struct comparing *c, const struct pairing_name *name,
                        enum posenc_kernel kernel)
{
    struct posenc_backend none;
    const struct implementation *any = name->head ? name->head : name->base;
    const struct implementation missing = without(any, &none);
    const struct changes_ask ask = { .options = &c->options,
                                     .base = name->base ? name->base : &missing,
                                     .head = name->head ? name->head : &missing,
                                     .extra = c->extra,
                                     .n_extra = c->n_extra };
    if (!posenc_provides(ask.base->backend, kernel) &&
        !posenc_provides(ask.head->backend, kernel))
        return;
    c->progress.where = name->name;
    c->progress.unit = "kernels on backends";
    progress(&c->progress);
    const struct accuracy found = accuracy_apart(&ask, kernel, on_change, c);
    if (outputs_interrupted() == 0)
        records_append(&c->run->work.records, emit_agreement(kernel, any->backend, &found));
}

int pair_results(struct pair_run *run)
{
    struct work *work = &run->work;
    const struct pairing *p = &run->pairing;
    struct comparing c = { .run = run,
                           .options = { .full = work->cli->full, .vectors = &work->vectors },
                           .progress = { .what = "pair results", .notes = "" } };
    if (!take_timed(&c))
        return cli_refuse(work->cli, "memory", NULL, "none left");
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++)
        c.progress.total += is_compared(p, (enum posenc_kernel)k) ? p->n_names : 0;
    for (int k = 0; k < POSENC_KERNEL_COUNT; k++) {
        if (!is_compared(p, (enum posenc_kernel)k))
            continue;
        for (size_t i = 0; i < p->n_names && outputs_interrupted() == 0; i++) {
            compare_one(&c, &p->names[i], (enum posenc_kernel)k);
            c.progress.done += 1.0;
        }
    }
    progress_clear();
    free(c.extra);
    work_end_if_interrupted(work);
    return EXIT_FINE;
}
