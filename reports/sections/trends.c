/*
 * Times of two runs: a trend, and never a verdict, since between runs a machine changes by more than code does.
 */
#include "reports/report.h"
#include "reports/show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A change of the share of the roof that is worth a line on a terminal. */
static const double worth_showing = 0.1;

static double change_of(const json_t *trend)
{
    const double ratio = record_value(trend, "roof_ratio", record_value(trend, "ratio", 0.0));
    return ratio > 0.0 ? log(ratio) : 0.0;
}

static int by_change(const void *a, const void *b)
{
    const double x = fabs(change_of(*(const json_t *const *)a)),
                 y = fabs(change_of(*(const json_t *const *)b));
    return (x < y) - (x > y);
}

/* A baseline has no times. */
static void add_time(struct table *t, const json_t *trend, const char *path)
{
    const double ns = record_value(trend, path, 0.0);
    table_cell(t, "%s", ns > 0.0 ? show_time(ns) : "-");
}

static void add_roof(struct table *t, const json_t *trend, const char *path)
{
    const double share = record_value(trend, path, 0.0);
    table_cell(t, "%s", show_percent(share));
}

static void add_trends(struct node *into, const json_t **list, size_t n)
{
    struct table *t =
        add_table(into, EVERYWHERE,
                  "~case|~backend|>base|>of roof;roof|>head|>of roof;roof|>time to "
                  "roof;time/roof");
    for (size_t i = 0; i < n; i++) {
        table_line(t, "%s %s", record_text(list[i], "case"), record_text(list[i], "backend"));
        table_cell(t, "%s", record_text(list[i], "case"));
        table_cell(t, "%s", record_text(list[i], "backend"));
        add_time(t, list[i], "base.ns");
        add_roof(t, list[i], "base.roof");
        add_time(t, list[i], "head.ns");
        add_roof(t, list[i], "head.roof");
        table_cell(t, "%+.0f %%", 100.0 * expm1(change_of(list[i])));
    }
}

void section_trends(struct node *into, const struct results *r)
{
    const json_t **sorted = calloc(r->n_trends + 1, sizeof *sorted);
    double sum = 0.0;
    size_t n = r->n_trends, large = 0;
    if (sorted && n > 0) {
        memcpy(sorted, r->trends, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_change);
        for (size_t i = 0; i < n; i++) {
            sum += change_of(sorted[i]);
            large += fabs(expm1(change_of(sorted[i]))) >= worth_showing;
        }
        struct node *section = add_section(into, EVERYWHERE, "Times, as a trend");
        add_text(
            section, PARAGRAPH, EVERYWHERE,
            "%zu timed in both runs: %+.1f %% of time to roof (geometric mean), %zu by 10 %% "
            "or "
            "more.  Two runs are two states of a machine: this is **no verdict**.  `posenc "
            "compare` of two builds gives one.",
            n, 100.0 * expm1(sum / (double)n), large);
        add_trends(section, sorted, large);
        if (n > large)
            add_trends(add_section(section, DETAIL, "%zu by less", n - large), sorted + large,
                       n - large);
    }
    free(sorted);
}
