/*
 * What compare says of results, before it times anything: every kernel that is compared, on each of the
 * backends, by the suites and on the same problems, those that are timed and fit a cache among them.
 */
#define _POSIX_C_SOURCE 200809L
#include "compare.h"
#include "accuracy.h"
#include "emit.h"

#include <stdlib.h>
#include <string.h>

/* Larger ones take longer than what they add: the launches check them. */
static const size_t most_bytes = (size_t)4 << 20;

struct comparing {
    struct compare *all;
    struct conf_options options;
    struct problem_line *extra;
    size_t n_extra;
    struct progress progress;
};

static void on_change(void *user, const struct change *change)
{
    struct comparing *c = user;
    struct work *work = &c->all->work;
    if (!selects_dtype(&work->selected, change->head.id))
        return;
    c->all->failing += change->what == CHANGE_STATUS && change->way == CHANGE_WORSE &&
                       change->head.status != CONF_UNSUPPORTED;
    c->all->grown += change->what == CHANGE_ERROR && change->way == CHANGE_WORSE;
    records_append(&work->records, emit_change(change));
}

/* What is timed, by the last part of its id. */
static bool take_timed(struct comparing *c)
{
    const struct pairing *p = &c->all->pairing;
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
static struct subject without(const struct subject *other, struct posenc_backend *none)
{
    *none = (struct posenc_backend){ .size = sizeof *none,
                                     .abi = POSENC_ABI,
                                     .name = other->backend->name,
                                     .family = other->backend->family,
                                     .description = "",
                                     .needs = "" };
    struct subject subject = *other;
    subject.backend = none;
    return subject;
}

static void compare_one(struct comparing *c, const struct pairing_name *name,
                        enum posenc_kernel kernel)
{
    struct posenc_backend none;
    const struct subject *any = name->head ? name->head : name->base;
    const struct subject missing = without(any, &none);
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
        records_append(&c->all->work.records, emit_agreement(kernel, any->backend, &found));
}

int compare_results(struct compare *all)
{
    struct work *work = &all->work;
    const struct pairing *p = &all->pairing;
    struct comparing c = { .all = all,
                           .options = { .full = work->cli->full, .vectors = &work->vectors },
                           .progress = { .what = "compare results", .notes = "" } };
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
