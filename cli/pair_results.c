/*
 * Compares the results of two builds exactly (see pair.h): every kernel that is compared, on each
 * of the backends, by the suites and on the same problems, with those that are timed and fit a
 * cache.
 *
 * A worker compares a kernel on a backend. If that ends early, others run each build beside
 * itself and find who did it.
 */
#define _POSIX_C_SOURCE 200809L
#include "accuracy.h"
#include "emit.h"
#include "pair.h"
#include "worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Larger problems take longer than they add: timings check them. */
static const size_t most_bytes = (size_t)4 << 20;
/* The longest CPU time that a worker uses without a message: all cases of a kernel, on a slow
 * machine. */
static const double QUICK_S = 600.0, FULL_S = 7200.0;

enum step { BOTH, BASE_ALONE, HEAD_ALONE, STEPS };

struct results;

/* A kernel on a backend. */
struct comparison {
    struct results *all;
    const struct pairing_name *name;
    enum posenc_kernel kernel;
    struct implementation base, head;
    struct posenc_backend none; /* in place of the backend that a build lacks */
    struct accuracy found;
    char lost[STEPS][WORKER_HOW]; /* how the worker of a step ended; "": as it should */
    bool reported;
};

struct results {
    struct pair_run *run;
    struct conf_options options;
    struct problem_line *extra;
    size_t n_extra, n;
    struct comparison *comparisons;
    struct worker_job *jobs;
    struct progress progress;
};

/* ---- In the worker ---- */

static void ignore_change(void *user, const struct change *change) { (void)user, (void)change; }

/* Sends a change. Its record is left out if its type is not selected. */
static void send_change(void *user, const struct change *change)
{
    const struct comparison *c = user;
    const bool selected = selects_dtype(&c->all->run->work.selected, change->head.id);
    const bool broken = change->what == CHANGE_STATUS && change->way == CHANGE_WORSE &&
                        change->head.status != CONF_UNSUPPORTED;
    worker_tell(json_pack("{s:i,s:b,s:o}", "way", (int)change->way, "broken",
                          selected && broken, "record",
                          selected ? emit_change(change) : json_null()));
}

static void send_found(const struct accuracy *found)
{
    worker_tell(json_pack("{s:[I,I,I,I,I]}", "found", (json_int_t)found->seen.problems,
                          (json_int_t)found->seen.values, (json_int_t)found->seen.moved,
                          (json_int_t)found->cases, (json_int_t)found->failed));
}

static size_t compare(void *user, size_t step)
{
    struct comparison *c = user;
    const struct changes_ask ask = { .options = &c->all->options,
                                     .base = step == HEAD_ALONE ? &c->head : &c->base,
                                     .head = step == BASE_ALONE ? &c->base : &c->head,
                                     .extra = c->all->extra,
                                     .n_extra = c->all->n_extra };
    if (step == BOTH) {
        const struct accuracy found = accuracy_compare(&ask, c->kernel, send_change, c);
        send_found(&found);
    } else {
        accuracy_compare(&ask, c->kernel, ignore_change, NULL);
    }
    return STEPS;
}

/* ---- In the parent ---- */

static void add_change(struct comparison *c, enum change_direction way, bool broken,
                       json_t *record)
{
    struct pair_run *run = c->all->run;
    c->found.changes[way]++;
    run->broken += broken;
    if (json_is_object(record))
        records_append(&run->work.records, json_incref(record));
}

static void take_message(void *user, json_t *message)
{
    struct comparison *c = user;
    json_int_t n[5];
    json_t *record;
    int way, broken;
    if (json_unpack(message, "{s:i,s:b,s:o}", "way", &way, "broken", &broken, "record",
                    &record) == 0 &&
        way >= 0 && way < CHANGE_DIRECTIONS) {
        add_change(c, (enum change_direction)way, broken != 0, record);
    } else if (json_unpack(message, "{s:[I,I,I,I,I]}", "found", &n[0], &n[1], &n[2], &n[3],
                           &n[4]) == 0) {
        c->found.seen.problems = (uint64_t)n[0];
        c->found.seen.values = (uint64_t)n[1];
        c->found.seen.moved = (uint64_t)n[2];
        c->found.cases = (size_t)n[3];
        c->found.failed = (size_t)n[4];
    }
}

/* After both builds together, base runs alone; head does if base ended its worker as well. */
static size_t lose_comparison(void *user, const struct worker_end *end)
{
    struct comparison *c = user;
    const size_t step = c->lost[BOTH][0] == '\0'         ? BOTH
                        : c->lost[BASE_ALONE][0] == '\0' ? BASE_ALONE
                                                         : HEAD_ALONE;
    snprintf(c->lost[step], WORKER_HOW, "%s", end->how);
    return step + 1;
}

static struct conf_result result_of(const struct comparison *c,
                                    const struct implementation *implementation,
                                    const char *lost)
{
    struct conf_result r = { .kernel = c->kernel, .suite = "all", .profile = "given" };
    r.backend = implementation->backend;
    r.status = lost ? CONF_CRASH : CONF_PASS;
    snprintf(r.id, sizeof r.id, "%s/f32/ended", posenc_kernel_name(c->kernel));
    snprintf(r.reason, sizeof r.reason, "%s", lost ? lost : "");
    return r;
}

/* Reports who ended the worker. Head did if base does not end one alone. */
static void report_end(struct comparison *c)
{
    const char *base = c->lost[BASE_ALONE][0] != '\0' ? c->lost[BASE_ALONE] : NULL;
    const char *head = !base                            ? c->lost[BOTH]
                       : c->lost[HEAD_ALONE][0] != '\0' ? c->lost[HEAD_ALONE]
                                                        : NULL;
    const struct conf_result was = result_of(c, &c->base, base),
                             is = result_of(c, &c->head, head);
    struct change change;
    c->found.failed += head != NULL;
    if (!change_of_case(&change, &was, &is))
        return;
    json_t *record = emit_change(&change);
    add_change(c, change.way, change.way == CHANGE_WORSE, record);
    json_decref(record);
}

/* Reports comparisons that have ended, and draws the progress. */
static bool goes_on(void *user)
{
    struct results *all = user;
    if (outputs_interrupted() != 0)
        return false;
    for (size_t i = 0; i < all->n; i++) {
        struct comparison *c = &all->comparisons[i];
        if (c->reported)
            continue;
        all->progress.where = c->name->name;
        if (!all->jobs[i].finished)
            break;
        if (c->lost[BOTH][0] != '\0')
            report_end(c);
        records_append(&all->run->work.records,
                       emit_agreement(c->kernel, c->head.backend, &c->found));
        c->reported = true;
        all->progress.done += 1.0;
    }
    progress(&all->progress);
    return true;
}

/* ---- What is compared ---- */

/* Lists the problems that are timed, named by the last part of their ids. */
static bool list_timed(struct results *all)
{
    const struct pairing *p = &all->run->pairing;
    all->extra = calloc(p->n_cases + 1, sizeof *all->extra);
    for (size_t i = 0; all->extra && i < p->n_cases; i++) {
        const char *slash = strrchr(p->cases[i].id, '/');
        if (problem_working_set(&p->cases[i].problem) <= most_bytes)
            all->extra[all->n_extra++] =
                (struct problem_line){ .name = slash ? slash + 1 : p->cases[i].id,
                                       .problem = p->cases[i].problem };
    }
    return all->extra != NULL;
}

static bool is_compared(const struct pairing *p, enum posenc_kernel kernel)
{
    for (size_t i = 0; i < p->n_cases; i++)
        if (p->cases[i].problem.kernel == kernel)
            return true;
    return false;
}

/* Makes one of the two implementations: of a build that lacks the backend, one without kernels. */
static struct implementation implementation_or_none(struct comparison *c,
                                                    const struct implementation *own,
                                                    const struct implementation *other)
{
    struct implementation implementation = own ? *own : *other;
    if (own)
        return implementation;
    c->none = (struct posenc_backend){ .size = sizeof c->none,
                                       .abi = POSENC_ABI,
                                       .name = other->backend->name,
                                       .family = other->backend->family,
                                       .description = "",
                                       .needs = "" };
    implementation.backend = &c->none;
    return implementation;
}

static void add_comparison(struct results *all, const struct pairing_name *name,
                           enum posenc_kernel kernel)
{
    struct comparison *c = &all->comparisons[all->n];
    *c = (struct comparison){ .all = all, .name = name, .kernel = kernel };
    c->base = implementation_or_none(c, name->base, name->head);
    c->head = implementation_or_none(c, name->head, name->base);
    all->jobs[all->n] = (struct worker_job){ .user = c,
                                             .n_steps = STEPS,
                                             .run = compare,
                                             .take = take_message,
                                             .lost = lose_comparison };
    if (posenc_provides(c->base.backend, kernel) || posenc_provides(c->head.backend, kernel))
        all->n++;
}

static bool list_comparisons(struct results *all)
{
    const struct pairing *p = &all->run->pairing;
    const size_t most = POSENC_KERNEL_COUNT * p->n_names + 1;
    all->comparisons = calloc(most, sizeof *all->comparisons);
    all->jobs = calloc(most, sizeof *all->jobs);
    for (int k = 0; all->comparisons && all->jobs && k < POSENC_KERNEL_COUNT; k++)
        for (size_t i = 0; is_compared(p, (enum posenc_kernel)k) && i < p->n_names; i++)
            add_comparison(all, &p->names[i], (enum posenc_kernel)k);
    return all->comparisons && all->jobs;
}

int pair_results(struct pair_run *run)
{
    struct work *work = &run->work;
    struct results all = {
        .run = run,
        .options = { .full = work->cli->full, .vectors = &work->vectors },
        .progress = { .what = "pair results", .unit = "kernels on backends", .notes = "" }
    };
    const struct worker_limits limits =
        worker_limits_of((double)NAN, work->cli->full ? FULL_S : QUICK_S);
    const bool listed = list_timed(&all) && list_comparisons(&all);
    all.progress.total = all.n;
    if (listed)
        workers_run(all.jobs, all.n, 1, &limits, goes_on, &all);
    free(all.extra);
    free(all.comparisons);
    free(all.jobs);
    progress_clear();
    if (!listed)
        return work_refuse_memory(work);
    work_end_if_interrupted(work);
    return EXIT_FINE;
}
