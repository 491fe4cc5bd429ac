/* Runs the same problems on two implementations and reports outputs that differ; see changes.h. */
#include "changes.h"
#include "conformance/problem/cases.h"
#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 256 }; /* rows of a problem that the oracle judges, at most */

struct change_search {
    const struct changes_request *request;
    struct suite_run base, head;
    struct changes_seen seen;
};

/* Returns the index of the next value that moved from `from` on, or n. */
static int64_t next_moved(const float *was, const float *is, int64_t from, int64_t n)
{
    if (from == 0 && n > 0 && memcmp(was, is, (size_t)n * sizeof *was) == 0)
        return n;
    while (from < n && value_bits(was[from]) == value_bits(is[from]))
        from++;
    return from;
}

/* ---- The truth ---- */

/* Two calls of a problem whose outputs differ, and a comparison of each with the oracle, within the
 * limits of its backend. The oracle's call is made by the library of this program. */
struct moved_outputs {
    struct change *change;
    const struct call *was, *is;
    uint64_t rows; /* rows that moved */
    struct comparison base, head;
    struct oracle *oracle;
};

/* Compares a value that moved with the oracle, and keeps it if it is the worst on either side. */
static void judge_moved_value(struct moved_outputs *m, int o, int64_t r, int64_t column,
                              double want, double mass)
{
    bool right;
    struct change *c = m->change;
    const float was = call_row(m->was, o, r)[column], is = call_row(m->is, o, r)[column];
    const struct stored_error base =
                                  compare_value(&m->base, r, column, was, want, mass, &right),
                              head = compare_value(&m->head, r, column, is, want, mass, &right);
    const double worst = fmax(c->base_max, c->head.max);
    c->base_max = fmax(c->base_max, base.error);
    c->head.max = fmax(c->head.max, head.error);
    if (fmax(base.error, head.error) <= worst)
        return;
    c->base_got = was;
    c->head.got = is;
    c->head.want = want;
    c->head.limit = head.limit;
    describe_place(m->was, o, r, column, c->head.worst_at, sizeof c->head.worst_at);
}

static void judge_moved_rows(struct moved_outputs *m, int o)
{
    const struct output *out = &m->was->outputs[o];
    const int64_t width = out->width;
    double *want = malloc((size_t)(2 * width + 1) * sizeof *want);
    uint64_t moved = 0;
    if (!want)
        abort(); /* rather than report no error */
    for (int64_t r = 0; r < out->rows; r++) {
        const float *was = call_row(m->was, o, r), *is = call_row(m->is, o, r);
        int64_t i = next_moved(was, is, 0, width);
        if (i == width || moved++ % (m->rows / MOST_ROWS + 1) != 0)
            continue;
        oracle_compute_row(m->oracle, o, r, want, want + width);
        for (; i < width; i = next_moved(was, is, i + 1, width))
            judge_moved_value(m, o, r, i, want[i], want[width + i]);
    }
    free(want);
}

static void judge_moved(struct change_search *search, struct moved_outputs *m)
{
    struct tally t = { .run = &search->head };
    struct change *c = m->change;
    const struct call *truth = tally_call(&t, &implementation_library, &m->was->problem);
    m->oracle = truth ? oracle_create(truth) : NULL;
    if (m->oracle) {
        compare_begin(&m->base, &t);
        compare_begin(&m->head, &t);
        compare_next(&m->base, truth, search->base.backend, RANGE_FARTHEST);
        compare_next(&m->head, truth, search->head.backend, RANGE_FARTHEST);
        c->head.metric = compare_metric(&m->head);
        c->base_max = c->head.max = -1.0;
    }
    for (int o = 0; m->oracle && o < truth->n_outputs; o++)
        judge_moved_rows(m, o);
    oracle_destroy(m->oracle);
    tally_forget(&t);
}

/* ---- Both sides ---- */

static void compare_outputs(struct change_search *search, struct change *c,
                            const struct call *base, const struct call *head)
{
    struct moved_outputs m = { .change = c, .was = base, .is = head };
    for (int o = 0; o < base->n_outputs; o++)
        for (int64_t r = 0, width = base->outputs[o].width; r < base->outputs[o].rows; r++) {
            const float *was = call_row(base, o, r), *is = call_row(head, o, r);
            const uint64_t before = c->moved;
            for (int64_t i = -1; (i = next_moved(was, is, i + 1, width)) < width;)
                if (c->moved++ == 0) {
                    describe_place(base, o, r, i, c->first, sizeof c->first);
                    c->first_base = was[i];
                    c->first_head = is[i];
                }
            m.rows += c->moved > before;
            c->of += (uint64_t)width;
        }
    search->seen.problems++;
    search->seen.values += c->of;
    search->seen.moved += c->moved;
    if (c->moved > 0) {
        conf_note_problem(c->head.problem, &base->problem);
        judge_moved(search, &m);
        search->request->on_change(search->request->user, c);
    }
}

/* Runs a problem on both sides, if the options select it and both support its types. */
static void compare_runs(struct change_search *search, const struct problem *p,
                         const char *suite, const char *before, const char *name)
{
    struct tally base, head;
    if (p->kernel != search->head.kernel ||
        !tally_begin_problem(&base, &search->base, p, suite, "%s%s", before, name) ||
        !tally_begin_problem(&head, &search->head, p, suite, "%s%s", before, name))
        return;
    base.result.backend = search->base.backend;
    head.result.backend = search->head.backend;
    const struct call *was = tally_run(&base, p, NULL, NULL),
                      *is = tally_run(&head, p, NULL, NULL);
    struct change c = { .head = head.result };
    if (was && is)
        compare_outputs(search, &c, was, is);
    else
        search->request->on_fault(search->request->user, &base.result, &head.result);
    tally_forget(&base);
    tally_forget(&head);
}

static struct suite_run run_of(const struct changes_request *request,
                               const struct implementation *implementation,
                               enum posenc_kernel kernel)
{
    return (struct suite_run){ .options = request->options,
                               .implementation = implementation,
                               .backend = implementation->backend,
                               .kernel = kernel };
}

struct changes_seen changes_find(const struct changes_request *request,
                                 enum posenc_kernel kernel)
{
    struct change_search search = { .request = request,
                                    .base = run_of(request, request->base, kernel),
                                    .head = run_of(request, request->head, kernel) };
    const struct vectors *vectors = request->options->vectors;
    for (EACH_CASE(line, CASES_VARIANTS))
        compare_runs(&search, &line->problem, "digests", "digest-", line->name);
    for (size_t i = 0; vectors && i < vectors->n; i++)
        compare_runs(&search, &vectors->cases[i].problem, "vectors", "",
                     vectors->cases[i].name);
    for (size_t i = 0; i < request->n_extra; i++)
        compare_runs(&search, &request->extra[i].problem, "accuracy", "",
                     request->extra[i].name);
    return search.seen;
}
