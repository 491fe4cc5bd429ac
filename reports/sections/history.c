/*
 * Many runs in their order: where a case came nearer to its roof or fell behind, and which errors changed.
 */
#define _POSIX_C_SOURCE 200809L
#include "reports/report.h"
#include "reports/show.h"
#include "reports/sparkline.h"
#include "reports/statistics/changepoints.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES = 30, IN_ONE = 9 };

static bool is_of(const json_t *history, const char *what)
{
    return strcmp(record_text(history, "what"), what) == 0;
}

static size_t points_in(const json_t *history)
{
    return json_array_size(json_object_get(history, "points"));
}

static const json_t *point_at(const json_t *history, size_t i)
{
    return json_array_get(json_object_get(history, "points"), i);
}

static size_t count(const struct results *r, const char *what, size_t least)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_histories; i++)
        n += is_of(r->histories[i], what) && points_in(r->histories[i]) >= least;
    return n;
}

/* What a row is about: "rope_half/f32/exact/llama-decode", or the mean of a kernel's cases. */
static void name_of(const json_t *history, char *text, size_t bytes)
{
    const double threads = record_value(history, "threads", 1.0);
    int at;
    if (is_of(history, "mean"))
        at = snprintf(text, bytes, "%.40s, %.0f cases", record_text(history, "kernel"),
                      record_value(history, "cases", 0.0));
    else
        at = snprintf(text, bytes, "%.150s", record_text(history, "case"));
    if (threads > 1.0 && at > 0 && (size_t)at < bytes)
        snprintf(text + at, bytes - (size_t)at, ", %.0f threads", threads);
}

/* ---- Changes of level ---- */

struct level_change {
    const json_t *history, *change;
};

static int by_size(const void *a, const void *b)
{
    const struct level_change *x = a, *y = b;
    const double p = fabs(log1p(record_value(x->change, "change", 0.0))),
                 q = fabs(log1p(record_value(y->change, "change", 0.0)));
    return (p < q) - (p > q);
}

/* Both neighbours of a change, whatever a file says. */
static bool runs_beside(const struct level_change *c, char before[RUN_NAME],
                        char after[RUN_NAME])
{
    const double at = record_value(c->change, "at", 0.0);
    if (!(at >= 1.0 && at < (double)points_in(c->history)))
        return false;
    name_run(point_at(c->history, (size_t)at - 1), before);
    name_run(point_at(c->history, (size_t)at), after);
    return true;
}

static void add_change(struct node *into, const struct level_change *c)
{
    char name[200], before[RUN_NAME], after[RUN_NAME];
    if (!runs_beside(c, before, after))
        return;
    name_of(c->history, name, sizeof name);
    const double p = record_value(c->change, "p", 1.0);
    add_text(into, ITEM, EVERYWHERE,
             "%s %s: between %s and %s: %.2f -> %.2f of the roof (%+.0f %%), p %s", name,
             record_text(c->history, "backend"), before, after,
             record_value(c->change, "before", 0.0), record_value(c->change, "after", 0.0),
             100.0 * record_value(c->change, "change", 0.0), p < 0.001 ? "< 0.001" : "= 0.001");
}

static size_t list_changes(const struct results *r, struct level_change *list, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_histories; i++) {
        const json_t *changes = json_object_get(r->histories[i], "changes");
        for (size_t k = 0; k < json_array_size(changes) && n < most; k++)
            list[n++] = (struct level_change){ r->histories[i], json_array_get(changes, k) };
    }
    qsort(list, n, sizeof *list, by_size);
    return n;
}

static size_t number_of_changes(const struct results *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_histories; i++)
        n += json_array_size(json_object_get(r->histories[i], "changes"));
    return n;
}

/* A picture for each case that changed, the largest changes first. */
static void add_pictures(struct node *into, const struct level_change *list, size_t n)
{
    for (size_t i = 0, drawn = 0; i < n && drawn < PICTURES; i++) {
        char name[200], sparks[SPARKLINE];
        bool first = !is_of(list[i].history, "mean");
        for (size_t k = 0; k < i; k++)
            first = first && list[k].history != list[i].history;
        if (!first)
            continue;
        name_of(list[i].history, name, sizeof name);
        sparkline(list[i].history, sparks);
        add_drawing(into, name, history_svg(&list[i].history, 1), strdup(strcat(sparks, "\n")));
        drawn++;
    }
}

static void add_changes(struct node *into, const struct results *r)
{
    const size_t most = number_of_changes(r);
    struct level_change *list = calloc(most + 1, sizeof *list);
    const size_t n = list ? list_changes(r, list, most) : 0;
    struct node *section = n ? add_section(into, EVERYWHERE, "Changes of level") : NULL;
    for (size_t i = 0; i < n; i++)
        add_change(section, &list[i]);
    if (n > 0)
        add_pictures(section, list, n);
    else if (count(r, "roof", CHANGEPOINTS_LEAST) > 0)
        add_text(into, PARAGRAPH, EVERYWHERE, "No change of level was found.");
    free(list);
}

/* ---- All of them ---- */

/* A case without its kernel, which stands above. */
static const char *short_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash ? slash + 1 : name;
}

static void add_row(struct table *t, const json_t *history)
{
    char name[200], sparks[SPARKLINE];
    const size_t n = points_in(history);
    const size_t changes = json_array_size(json_object_get(history, "changes"));
    name_of(history, name, sizeof name);
    sparkline(history, sparks);
    table_cell(t, "%s", name);
    table_cell(t, "%s", short_name(name));
    table_cell(t, "%s", record_text(history, "backend"));
    table_cell(t, "%s", sparks);
    table_cell(t, "%zu", n);
    table_cell(t, "%.2f", record_value(point_at(history, 0), "roof", 0.0));
    table_cell(t, "%.2f", record_value(point_at(history, n - 1), "roof", 0.0));
    if (n < CHANGEPOINTS_LEAST)
        table_cell(t, "-");
    else
        table_cell(t, "%zu", changes);
}

static void add_table_of(struct node *into, const struct results *r, const char *what,
                         size_t brief)
{
    const char *kernel = "";
    struct table *t = count(r, what, 1)
                          ? add_table(into, EVERYWHERE,
                                      "~case|!case|backend|share of the roof;history|?>runs|"
                                      "?>first|>last|?>changes")
                          : NULL;
    for (size_t i = 0; t && i < r->n_histories; i++) {
        const char *next = record_text(r->histories[i], "kernel");
        if (!is_of(r->histories[i], what) || points_in(r->histories[i]) == 0)
            continue;
        if (strcmp(next, kernel) != 0 && is_of(r->histories[i], "roof"))
            table_line(t, "%s", next);
        kernel = next;
        add_row(t, r->histories[i]);
    }
    if (t)
        t->brief = brief;
}

/* The means of a kernel's backends in one picture. */
static void draw_means(struct node *into, const struct results *r)
{
    for (size_t i = 0; i < r->n_histories; i++) {
        const char *kernel = record_text(r->histories[i], "kernel");
        const json_t *some[IN_ONE];
        size_t n = 0;
        bool first = is_of(r->histories[i], "mean");
        for (size_t k = 0; k < r->n_histories && first; k++) {
            if (!is_of(r->histories[k], "mean") ||
                strcmp(record_text(r->histories[k], "kernel"), kernel) != 0)
                continue;
            first = k >= i;
            if (n < IN_ONE)
                some[n++] = r->histories[k];
        }
        char caption[120];
        snprintf(caption, sizeof caption, "%.64s: geometric mean of its cases", kernel);
        if (first && n > 0)
            add_drawing(into, caption, history_svg(some, n), NULL);
    }
}

/* ---- Errors ---- */

/* Exact: what is not the same has changed. */
static void add_errors(struct node *into, const struct results *r, const json_t *runs)
{
    const double checked = record_value(runs, "checked", 0.0);
    const size_t changed = count(r, "error", 2);
    struct node *section = checked > 0.0 ? add_section(into, EVERYWHERE, "Errors") : NULL;
    if (changed == 0)
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "The largest errors of all %.0f checks are the same in all runs, to the last "
                 "digit.",
                 checked);
    if (changed == 0)
        return;
    add_text(section, PARAGRAPH, EVERYWHERE,
             "%zu of %.0f changed, exactly: errors need no statistics.", changed, checked);
    struct table *t =
        add_table(section, EVERYWHERE, "case|backend|?suite|since|>was|>is|?which is");
    for (size_t i = 0; i < r->n_histories; i++) {
        const json_t *h = r->histories[i];
        for (size_t k = 1; is_of(h, "error") && k < points_in(h); k++) {
            char since[RUN_NAME];
            const double was = record_value(point_at(h, k - 1), "max", 0.0),
                         is = record_value(point_at(h, k), "max", 0.0);
            name_run(point_at(h, k), since);
            table_cell(t, "%s", record_text(h, "case"));
            table_cell(t, "%s", record_text(h, "backend"));
            table_cell(t, "%s", record_text(h, "suite"));
            table_cell(t, "%s", since);
            table_cell(t, "%s", show_error(was, record_text(h, "metric")));
            table_cell(t, "%s", show_error(is, record_text(h, "metric")));
            table_cell(t, "%s", is > was || isnan(is) ? "worse" : "better");
        }
    }
}

void section_history(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    (void)options;
    const json_t *runs = json_object_get(r->history, "runs");
    const size_t n = json_array_size(runs), timed = count(r, "roof", 1),
                 enough = count(r, "roof", CHANGEPOINTS_LEAST);
    char first[RUN_NAME], last[RUN_NAME];
    if (!r->history || n == 0)
        return;
    name_run(json_array_get(runs, 0), first);
    name_run(json_array_get(runs, n - 1), last);
    struct node *section =
        add_section(into, EVERYWHERE, "History on %s, %s", record_text(r->env, "env_id"),
                    record_text(r->env, "cpu.name"));
    add_text(section, PARAGRAPH, EVERYWHERE,
             "%zu run%s from %s to %s; %zu cases timed.  Shown is the share of the roof, which "
             "was measured beside each "
             "case.  A trend, and **no gate**: `posenc compare` judges a change.",
             n, n == 1 ? "" : "s", first, last, timed);
    if (enough < timed)
        add_text(
            section, NOTE, EVERYWHERE,
            "%zu of them %s fewer than %d runs: too few for a change of level to show at p %g.",
            timed - enough, timed - enough == 1 ? "has" : "have", (int)CHANGEPOINTS_LEAST,
            CHANGEPOINTS_P);
    add_changes(section, r);
    add_errors(section, r, r->history);
    if (count(r, "mean", 1)) {
        struct node *means = add_section(section, EVERYWHERE, "Geometric means");
        add_table_of(means, r, "mean", 0);
        draw_means(means, r);
    }
    if (timed)
        add_table_of(add_section(section, EVERYWHERE, "Cases"), r, "roof", 40);
    if (enough > 0)
        add_text(section, PARAGRAPH, ON_PAGE,
                 "Changes of level are found by E-divisive (Matteson and James 2014) on ranks "
                 "in windows of %d runs, "
                 "as Hunter and Apache Otava look for regressions, with a permutation test at "
                 "p %g: about one "
                 "series of noise in a thousand shows one.",
                 (int)CHANGEPOINTS_WINDOW, CHANGEPOINTS_P);
}
