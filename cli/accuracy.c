/*
 * Compares the results of two builds, kernel by kernel: see accuracy.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "accuracy.h"

#include "conformance/suites/suites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct results {
    struct conf_result *result;
    size_t n, room;
    struct arena arena;
};

/* A comparison of one kernel. */
struct run {
    struct changes_ask ask;
    struct conf_options options; /* of the kernel alone */
    enum posenc_kernel kernel;
    struct accuracy found;
    struct results told; /* cases that have changed their status already */
    change_sink *sink;
    void *user;
};

/* ---- Results ---- */

static void keep_result(void *user, const struct conf_result *result)
{
    struct results *all = user;
    void *room = arena_grow(&all->arena, all->result, all->n, &all->room, sizeof *all->result);
    if (!room)
        abort(); /* rather than say that nothing changed */
    all->result = room;
    all->result[all->n++] = *result;
}

/* The case of the same name; it is at `from` unless some are missing. */
static const struct conf_result *same_case(const struct results *in, size_t from,
                                           const struct conf_result *as)
{
    for (size_t i = 0; i < in->n; i++) {
        const struct conf_result *r = &in->result[(from + i) % in->n];
        if (strcmp(r->id, as->id) == 0 && strcmp(r->suite, as->suite) == 0)
            return r;
    }
    return NULL;
}

static bool is_bad(const struct conf_result *r)
{
    return r->status == CONF_FAIL || r->status == CONF_CRASH;
}

static void tell(void *user, const struct change *change)
{
    struct run *run = user;
    run->found.changes[change->way]++;
    if (change->what == CHANGE_STATUS)
        keep_result(&run->told, &change->head);
    run->sink(run->user, change);
}

/* A case on both sides.  One that base has not was never passed. */
static void compare_case(struct run *run, const struct conf_result *base,
                         const struct conf_result *head)
{
    struct change change;
    struct conf_result none = *head;
    none.backend = run->ask.base->backend;
    none.status = is_bad(head) ? CONF_UNSUPPORTED : head->status;
    none.reason[0] = '\0';
    if (!same_case(&run->told, 0, head) && change_of_case(&change, base ? base : &none, head))
        tell(run, &change);
}

static void compare_suites(struct run *run)
{
    struct results base = { .n = 0 }, head = { .n = 0 };
    struct accuracy *found = &run->found;
    conf_run_implementation(run->ask.head, &run->options, keep_result, &head);
    found->cases = head.n;
    for (size_t i = 0; i < head.n; i++)
        found->failed += is_bad(&head.result[i]);
    if (found->seen.moved || found->seen.faulted || found->failed || run->options.full) {
        conf_run_implementation(run->ask.base, &run->options, keep_result, &base);
        for (size_t i = 0; i < head.n; i++)
            compare_case(run, same_case(&base, i, &head.result[i]), &head.result[i]);
    }
    arena_free(&base.arena);
    arena_free(&head.arena);
}

/* ---- A kernel ---- */

/* Reports a kernel, or one of its types, that only one side has. */
static void compare_support(struct run *run, enum posenc_dtype dtype, bool had, bool has)
{
    struct conf_result base = { .kernel = run->kernel, .suite = "all", .profile = "given" };
    snprintf(base.id, sizeof base.id, "%s/%s/unsupported", posenc_kernel_name(run->kernel),
             dtype_names[dtype]);
    struct conf_result head = base, *lacks = had ? &head : &base;
    base.backend = run->ask.base->backend;
    head.backend = run->ask.head->backend;
    lacks->status = CONF_UNSUPPORTED;
    snprintf(lacks->reason, sizeof lacks->reason, "%s has no %s of %s", lacks->backend->name,
             posenc_kernel_name(run->kernel), dtype_names[dtype]);
    if (had != has)
        compare_case(run, &base, &head);
}

static bool has_kernel(const struct posenc_backend *backend, enum posenc_kernel kernel)
{
    return posenc_provides(backend, kernel) && !posenc_backend_obstacle(backend);
}

struct accuracy accuracy_compare(const struct changes_ask *ask, enum posenc_kernel kernel,
                                 change_sink *sink, void *user)
{
    struct run run = {
        .ask = *ask, .options = *ask->options, .kernel = kernel, .sink = sink, .user = user
    };
    const struct posenc_backend *base = ask->base->backend, *head = ask->head->backend;
    const bool had = has_kernel(base, kernel), has = has_kernel(head, kernel);
    memset(run.options.kernels, 0, sizeof run.options.kernels);
    run.options.kernels[kernel] = true;
    run.ask.options = &run.options;
    compare_support(&run, POSENC_F32, had, has);
    for (int dtype = POSENC_F16; had && has && dtype <= POSENC_BF16; dtype++)
        compare_support(&run, (enum posenc_dtype)dtype, base->f16_bf16, head->f16_bf16);
    if (had && has)
        run.found.seen = changes_find(&run.ask, kernel, tell, &run);
    if (has)
        compare_suites(&run);
    arena_free(&run.told.arena);
    return run.found;
}
