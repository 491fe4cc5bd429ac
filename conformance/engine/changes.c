/* Runs the same problems on two implementations and reports differences; see changes.h. */
#include "changes.h"
#include "conformance/problem/cases.h"
#include "judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const change_kind_name[] = { "status", "error", "bits" };

enum { MOST_ROWS = 256 }; /* of a problem that are compared with the oracle */

struct change_search {
    const struct changes_ask *ask;
    enum posenc_kernel kernel;
    struct suite_run base, head;
    struct changes_seen seen;
    change_sink *sink;
    void *user;
};

/* ---- Cases ---- */

static int severity(enum conf_status status)
{
    return status == CONF_PASS ? 0 : status == CONF_FAIL ? 2 : status == CONF_CRASH ? 3 : 1;
}

static enum change_direction compare_directions(double base, double head)
{
    return head > base ? CHANGE_WORSE : head < base ? CHANGE_BETTER : CHANGE_ONLY;
}

bool change_of_case(struct change *change, const struct conf_result *base,
                    const struct conf_result *head)
{
    *change = (struct change){ .what = CHANGE_STATUS, .base = *base, .head = *head };
    if (base->status != head->status) {
        change->way = compare_directions(severity(base->status), severity(head->status));
        return true;
    }
    change->what = CHANGE_ERROR;
    change->way = compare_directions(base->max, head->max);
    return base->metric && head->metric && base->max != head->max;
}

/* ---- Bits ---- */

/* Returns the index of the next value that moved from `from` on, or n. */
static int64_t next_moved(const float *was, const float *is, int64_t from, int64_t n)
{
    if (from == 0 && n > 0 && memcmp(was, is, (size_t)n * sizeof *was) == 0)
        return n;
    while (from < n && value_bits(was[from]) == value_bits(is[from]))
        from++;
    return from;
}

/* Two calls of a problem whose outputs differ, and a comparison of each with the oracle, within the
 * limits of its backend. The oracle's call is made by the library of this program. */
struct moved_outputs {
    struct change *change;
    const struct call *was, *is;
    uint64_t rows; /* that moved */
    struct comparison base, head;
    struct oracle *oracle;
    double most[2]; /* errors of the two */
};

/* Counts a value that moved; returns true and keeps it if it is the worst on either side. */
static bool count_moved_value(struct moved_outputs *m, int64_t r, int64_t column,
                              const float got[2], double want, double mass)
{
    bool right;
    struct change *c = m->change;
    const struct stored_error base = compare_value(&m->base, r, column, got[0], want, mass,
                                                   &right),
                              head = compare_value(&m->head, r, column, got[1], want, mass,
                                                   &right);
    const double worst = fmax(m->most[0], m->most[1]);
    c->judged++;
    c->nearer += head.error < base.error;
    c->farther += head.error > base.error;
    m->most[0] = fmax(m->most[0], base.error);
    m->most[1] = fmax(m->most[1], head.error);
    if (fmax(m->most[0], m->most[1]) <= worst)
        return false;
    c->base.got = got[0];
    c->head.got = got[1];
    c->base.want = c->head.want = want;
    c->base.max = base.error;
    c->head.max = head.error;
    c->base.limit = base.limit;
    c->head.limit = head.limit;
    return true;
}

static void count_moved_rows(struct moved_outputs *m, int o)
{
    const struct output *out = &m->was->outputs[o];
    const int64_t width = out->width;
    double *want = malloc((size_t)(2 * width + 1) * sizeof *want);
    uint64_t moved = 0;
    for (int64_t r = 0; want && r < out->rows; r++) {
        const float *was = call_row(m->was, o, r), *is = call_row(m->is, o, r);
        int64_t i = next_moved(was, is, 0, width);
        if (i == width || moved++ % (m->rows / MOST_ROWS + 1) != 0)
            continue;
        oracle_row(m->oracle, o, r, want, want + width);
        for (; i < width; i = next_moved(was, is, i + 1, width))
            if (count_moved_value(m, r, i, (float[]){ was[i], is[i] }, want[i],
                                  want[width + i]))
                describe_place(m->was, o, r, i, m->change->head.worst_at,
                               sizeof m->change->head.worst_at);
    }
    free(want);
}

static void judge_moved(struct change_search *f, struct moved_outputs *m)
{
    struct tally t = { .run = &f->head };
    struct change *c = m->change;
    const struct call *truth = tally_call(&t, &implementation_library, &m->was->problem);
    m->oracle = truth ? oracle_create(truth) : NULL;
    if (m->oracle) {
        compare_begin(&m->base, &t);
        compare_begin(&m->head, &t);
        compare_next(&m->base, truth, f->base.backend, -1);
        compare_next(&m->head, truth, f->head.backend, -1);
        c->base.metric = c->head.metric = compare_metric(&m->head);
    }
    for (int o = 0; m->oracle && o < truth->n_outputs; o++)
        count_moved_rows(m, o);
    oracle_destroy(m->oracle);
    tally_forget(&t);
}

static void compare_outputs(struct change_search *f, struct change *c, const struct call *base,
                            const struct call *head)
{
    struct moved_outputs m = { .change = c, .was = base, .is = head, .most = { -1.0, -1.0 } };
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
    f->seen.problems++;
    f->seen.values += c->of;
    f->seen.moved += c->moved;
    if (c->moved > 0) {
        conf_note_problem(c->head.problem, &base->problem);
        judge_moved(f, &m);
        c->way = compare_directions(m.most[0], m.most[1]);
        f->sink(f->user, c);
    }
}

/* Runs a problem on both sides, if the options select it and both support its types. */
static void compare_runs(struct change_search *f, const struct problem *p, const char *suite,
                         const char *before, const char *name)
{
    struct tally base, head;
    if (p->kernel != f->kernel ||
        !tally_begin_problem(&base, &f->base, p, suite, "%s%s", before, name) ||
        !tally_begin_problem(&head, &f->head, p, suite, "%s%s", before, name))
        return;
    base.result.backend = f->base.backend;
    head.result.backend = f->head.backend;
    const struct call *was = tally_run(&base, p, NULL, NULL),
                      *is = tally_run(&head, p, NULL, NULL);
    struct change c = { .what = CHANGE_BITS, .base = base.result, .head = head.result };
    if (was && is) {
        compare_outputs(f, &c, was, is);
    } else {
        f->seen.faulted++;
        if (change_of_case(&c, &base.result, &head.result))
            f->sink(f->user, &c);
    }
    tally_forget(&base);
    tally_forget(&head);
}

struct changes_seen changes_find(const struct changes_ask *ask, enum posenc_kernel kernel,
                                 change_sink *sink, void *user)
{
    struct change_search f = { .ask = ask, .kernel = kernel, .sink = sink, .user = user };
    f.base = (struct suite_run){ .options = ask->options,
                                 .implementation = ask->base,
                                 .backend = ask->base->backend };
    f.head = (struct suite_run){ .options = ask->options,
                                 .implementation = ask->head,
                                 .backend = ask->head->backend };
    const struct vectors *vectors = ask->options->vectors;
    for (EACH_CASE(line, CASES_VARIANTS))
        compare_runs(&f, &line->problem, "digests", "digest-", line->name);
    for (size_t i = 0; vectors && i < vectors->n; i++)
        compare_runs(&f, &vectors->cases[i].problem, "vectors", "", vectors->cases[i].name);
    for (size_t i = 0; i < ask->n_extra; i++)
        compare_runs(&f, &ask->extra[i].problem, "accuracy", "", ask->extra[i].name);
    return f.seen;
}
