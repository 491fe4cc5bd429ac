/* Runs the same problems on two implementations and reports outputs that differ; see changes.h. */
#include "changes.h"
#include "conformance/problem/cases.h"
#include "judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* About; the oracle computes only an even sample of the rows that moved. */
enum { MAX_JUDGED_ROWS = 256 };

/* State of changes_find(). */
struct change_search {
    const struct changes_request *request;
    struct suite_run base, head;
    struct change_counts seen;
};

/* Returns the index of the first value from `from` on that differs between two rows, or n. */
static int64_t next_moved(const float *base, const float *head, int64_t from, int64_t n)
{
    if (from == 0 && n > 0 && memcmp(base, head, (size_t)n * sizeof *base) == 0)
        return n;
    while (from < n && canonical_bits(base[from]) == canonical_bits(head[from]))
        from++;
    return from;
}

/* ---- Errors of values that moved ---- */

/* Two calls of a problem whose outputs differ, and a comparison of each with the oracle. Frequencies and slopes of the
 * oracle's call come from the library of this program. */
struct moved_outputs {
    struct output_change *change;
    const struct call *base_call, *head_call;
    uint64_t n_rows; /* rows with a value that moved */
    struct comparison base_error, head_error;
    struct oracle *oracle;
};

/* Computes the errors of a value that moved, at the place and with the expected value of `at`. Records both if one is
 * the largest so far of either side. */
static void judge_moved_value(struct moved_outputs *m, struct compared_value at)
{
    struct output_change *change = m->change;
    struct compared_value base = at, head = at;
    base.got = call_row(m->base_call, at.output, at.row)[at.column];
    head.got = call_row(m->head_call, at.output, at.row)[at.column];
    compare_value(&m->base_error, &base);
    compare_value(&m->head_error, &head);
    const double worst = fmax(change->base_max, change->head.max);
    change->base_max = fmax(change->base_max, base.error.error);
    change->head.max = fmax(change->head.max, head.error.error);
    if (fmax(base.error.error, head.error.error) <= worst)
        return;
    change->base_got = base.got;
    change->head.got = head.got;
    change->head.want = at.want;
    change->head.limit = head.error.limit;
    describe_place(m->base_call, at.output, at.row, at.column, change->head.worst_at,
                   sizeof change->head.worst_at);
}

static void judge_moved_rows(struct moved_outputs *m, int o)
{
    const struct output *out = &m->base_call->outputs[o];
    const int64_t width = out->width;
    double *want = malloc((size_t)(2 * width + 1) * sizeof *want);
    uint64_t moved = 0;
    if (!want)
        abort(); /* rather than report no error */
    for (int64_t r = 0; r < out->rows; r++) {
        const float *base_row = call_row(m->base_call, o, r),
                    *head_row = call_row(m->head_call, o, r);
        int64_t i = next_moved(base_row, head_row, 0, width);
        if (i == width || moved++ % (m->n_rows / MAX_JUDGED_ROWS + 1) != 0)
            continue;
        oracle_compute_row(m->oracle, o, r, want, want + width);
        for (; i < width; i = next_moved(base_row, head_row, i + 1, width))
            judge_moved_value(m, (struct compared_value){ .output = o,
                                                          .row = r,
                                                          .column = i,
                                                          .want = want[i],
                                                          .magnitude = want[width + i] });
    }
    free(want);
}

/* Computes the errors of base and head in the rows that moved. */
static void judge_moved(struct change_search *search, struct moved_outputs *m)
{
    struct tally t = { .run = &search->head };
    struct output_change *c = m->change;
    const struct call *truth =
        tally_create_call(&t, &implementation_library, &m->base_call->problem);
    m->oracle = truth ? oracle_create(truth) : NULL;
    if (m->oracle) {
        compare_begin(&m->base_error, &t);
        compare_begin(&m->head_error, &t);
        compare_next(&m->base_error, truth, search->base.backend, RANGE_FARTHEST);
        compare_next(&m->head_error, truth, search->head.backend, RANGE_FARTHEST);
        c->head.metric = compare_metric(&m->head_error);
        c->base_max = c->head.max = -1.0;
    }
    for (int o = 0; m->oracle && o < truth->n_outputs; o++)
        judge_moved_rows(m, o);
    oracle_destroy(m->oracle);
    tally_free_calls(&t);
}

/* Counts the values of row r of output o, and those that moved. Describes the first that moved in any row. */
static void count_moved(struct moved_outputs *m, int o, int64_t r)
{
    struct output_change *c = m->change;
    const float *base = call_row(m->base_call, o, r), *head = call_row(m->head_call, o, r);
    const int64_t width = m->base_call->outputs[o].width,
                  first = next_moved(base, head, 0, width);
    c->n_values += (uint64_t)width;
    if (first == width)
        return;
    if (c->n_moved == 0) {
        describe_place(m->base_call, o, r, first, c->first, sizeof c->first);
        c->first_base = base[first];
        c->first_head = head[first];
    }
    m->n_rows++;
    for (int64_t i = first; i < width; i = next_moved(base, head, i + 1, width))
        c->n_moved++;
}

static void compare_outputs(struct change_search *search, struct output_change *c,
                            const struct call *base, const struct call *head)
{
    struct moved_outputs m = { .change = c, .base_call = base, .head_call = head };
    for (int o = 0; o < base->n_outputs; o++)
        for (int64_t r = 0; r < base->outputs[o].rows; r++)
            count_moved(&m, o, r);
    search->seen.problems++;
    search->seen.values += c->n_values;
    search->seen.moved += c->n_moved;
    if (c->n_moved > 0) {
        conf_print_problem(c->head.problem, &base->problem);
        judge_moved(search, &m);
        search->request->on_change(search->request->user, c);
    }
}

/* Runs a problem on both sides, if the options select it and both support its types. */
static void compare_runs(struct change_search *search, const struct problem *p,
                         const char *suite, const char *prefix, const char *name)
{
    struct tally base, head;
    if (p->kernel != search->head.kernel ||
        !tally_begin_problem(&base, &search->base, p, suite, prefix, name) ||
        !tally_begin_problem(&head, &search->head, p, suite, prefix, name))
        return;
    base.result.backend = search->base.backend;
    head.result.backend = search->head.backend;
    const struct call *base_call = tally_run(&base, p, NULL, NULL),
                      *head_call = tally_run(&head, p, NULL, NULL);
    struct output_change c = { .head = head.result };
    if (base_call && head_call)
        compare_outputs(search, &c, base_call, head_call);
    else
        search->request->on_fault(search->request->user, &base.result, &head.result);
    tally_free_calls(&base);
    tally_free_calls(&head);
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

struct change_counts changes_find(const struct changes_request *request,
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
