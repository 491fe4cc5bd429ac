/*
 * Adds up the calls of a step; see cost.h.
 */
#include "cost.h"
#include "ranking.h"
#include "show.h"

#include <math.h>
#include <string.h>

/* The first row of a case that was timed, or the one of a backend; NULL: there is none. */
static const struct bench_row *row_of(const struct results *r, const char *id,
                                      const char *backend)
{
    for (size_t i = 0; i < r->n_bench; i++)
        if (strcmp(r->bench[i].id, id) == 0 && !*r->bench[i].refused &&
            (!backend || strcmp(r->bench[i].backend, backend) == 0))
            return &r->bench[i];
    return NULL;
}

static bool has_tables(const struct bench_row *row)
{
    return strcmp(row->profile, "given") != 0 && *row->profile;
}

static bool same_step(const struct step *a, const struct step *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
           (!*a->profile || !*b->profile || strcmp(a->profile, b->profile) == 0);
}

bool cost_step_is(const struct step *step, const char *what)
{
    size_t n = strlen(step->name), tail = strlen(what);
    return n >= tail && strcmp(step->name + n - tail, what) == 0;
}

/* Steps that differ in their tables' profile are told apart; a call without tables belongs to all. */
static size_t collect(const struct results *r, const json_t *model, struct step steps[STEPS])
{
    const json_t *cases = json_object_get(model, "cases");
    size_t n = 0;
    for (int tables = 1; tables >= 0; tables--)
        for (size_t i = 0; i < json_array_size(cases); i++) {
            const json_t *one = json_array_get(cases, i);
            const struct bench_row *row = row_of(r, record_text(one, "case"), NULL);
            if (!*record_text(one, "step") || !row || has_tables(row) != tables)
                continue;
            struct step step = { record_text(one, "step"), row->dtype,
                                 tables ? row->profile : "" };
            size_t k = 0;
            while (k < n && !same_step(&steps[k], &step))
                k++;
            if (k == n && n < STEPS)
                steps[n++] = step;
        }
    return n;
}

size_t cost_steps(const struct results *r, const json_t *model, struct step steps[STEPS])
{
    struct step all[STEPS];
    size_t n = collect(r, model, all), at = 0;
    for (int decoding = 1; decoding >= 0; decoding--)
        for (size_t i = 0; i < n; i++)
            if (cost_step_is(&all[i], "decode") == decoding)
                steps[at++] = all[i];
    return n;
}

const char *cost_step_name(const struct step *step, const struct step *steps, size_t n,
                           char text[STEP_TEXT])
{
    bool profiles = false;
    for (size_t i = 0; i < n; i++)
        profiles |= strcmp(steps[i].name, step->name) == 0 &&
                    strcmp(steps[i].profile, step->profile) != 0;
    const char *dtype = narrow_name(step->dtype);
    snprintf(text, STEP_TEXT, "%.24s%s%.8s%s%.24s", step->name, *dtype ? " " : "", dtype,
             profiles ? " " : "", profiles ? step->profile : "");
    return text;
}

size_t cost_calls(const struct results *r, const json_t *model, const struct step *step,
                  const char *backend, struct cost_call calls[COST_CALLS])
{
    const json_t *cases = json_object_get(model, "cases");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(cases) && n < COST_CALLS; i++) {
        const json_t *one = json_array_get(cases, i);
        const char *id = record_text(one, "case");
        const struct bench_row *any = row_of(r, id, NULL);
        if (strcmp(record_text(one, "step"), step->name) != 0 || !any ||
            strcmp(any->dtype, step->dtype) != 0 ||
            (has_tables(any) && strcmp(any->profile, step->profile) != 0))
            continue;
        const char *who = backend ? backend : default_backend(r, record_text(one, "kernel"));
        calls[n++] =
            (struct cost_call){ one, row_of(r, id, who), record_value(one, "times", 0.0) };
    }
    return n;
}

struct cost cost_of(const struct results *r, const json_t *model, const struct step *step,
                    const char *backend)
{
    struct cost_call calls[COST_CALLS];
    size_t n = cost_calls(r, model, step, backend, calls);
    struct cost cost = { .known = n > 0, .backend = backend };
    for (size_t i = 0; i < n; i++) {
        const struct bench_row *row = calls[i].row;
        const char *kernel = record_text(calls[i].one, "kernel");
        double times = calls[i].times;
        bool checked;
        cost.known &= times > 0.0;
        if (!row || !conforms(r, kernel, row->backend, &checked)) {
            cost.missing = kernel;
            continue;
        }
        cost.ns += times * shown_time(row->median); /* as whoever adds up what is printed */
        cost.lo += times * (row->lo > 0.0 ? row->lo : row->median);
        cost.hi += isinf(row_width(row)) ? HUGE_VAL : times * row->hi;
        cost.noisy |= is_noisy(row);
        cost.backend = !cost.backend                             ? row->backend
                       : strcmp(cost.backend, row->backend) == 0 ? row->backend
                                                                 : "";
    }
    return cost;
}
