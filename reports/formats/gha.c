/*
 * JSON for github-action-benchmark, tool customSmallerIsBetter: a list of {name, unit, value, range,
 * extra}.  Its values are ratios, never nanoseconds, since the next run may be on another machine: the
 * time as a multiple of the best this machine could do with the same bytes, the time of head as a multiple
 * of base's, and instructions per element.  Of all of them less is better.
 *
 * The action finds a result by its name, the first of that name, and reads a range that is "±" and a
 * number, with nothing behind it.
 */
#include "reports/exported.h"
#include "reports/formats.h"
#include "reports/show.h"

#include <math.h>
#include <string.h>

struct gha {
    struct exported list;
    const struct results *results;
    const char *machine;
};

/* The wider side of an interval; none: no range. */
static void add(struct gha *g, const char *name, const char *unit, double value, double lo,
                double hi, const char *extra)
{
    if (!(value > 0.0) || !isfinite(value))
        return;
    json_t *entry = json_pack("{s:s,s:s,s:f}", "name", name, "unit", unit, "value", value);
    double half = fmax(value - lo, hi - value);
    char range[40];
    snprintf(range, sizeof range, "± %.3g", half);
    if (half >= 0.0 && half < 1e6 && entry)
        json_object_set_new(entry, "range", json_string(range));
    if (*extra && entry)
        json_object_set_new(entry, "extra", json_string(extra));
    exported_entry(&g->list, NULL, entry);
}

static void add_timing(struct gha *g, const struct bench_row *b)
{
    char name[EXPORTED_NAME], extra[512];
    const double value = exported_roof(b);
    if (*b->refused || !(value > 0.0))
        return;
    exported_name(name, g->machine, b->id, b->backend, b->threads, "");
    snprintf(extra, sizeof extra,
             "%s, %.0f %% interval %s to %s\n%s of the roof (%.60s)\non %.160s%s%s",
             show_time(b->median), 100.0 * b->level, show_time(b->lo), show_time(b->hi),
             show_percent(1.0 / value), b->roof_kind, record_text(g->results->env, "env_id"),
             *vectors_note(g->results) ? "\n" : "", vectors_note(g->results));
    add(g, name, "time/roof", value, value * b->lo / b->median, value * b->hi / b->median,
        extra);
}

static void add_pair(struct gha *g, const json_t *pair)
{
    char name[EXPORTED_NAME];
    exported_name(name, g->machine, record_text(pair, "case"), record_text(pair, "backend"), 1,
                  "head/base");
    add(g, name, "head/base", record_value(pair, "ratio", 0.0),
        record_value(pair, "ci.lo", (double)NAN), record_value(pair, "ci.hi", (double)NAN),
        record_text(pair, "reason"));
}

static void add_count(struct gha *g, const json_t *count)
{
    char name[EXPORTED_NAME];
    exported_count_name(name, g->machine, count, "instructions");
    add(g, name, "instructions/element", instructions_per_element(count), (double)NAN,
        (double)NAN, record_text(count, "by"));
}

int format_gha(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    struct gha g = { .list = { .out = out } };
    fputc('[', out);
    for (size_t m = 0; m < results_machines(records); m++) {
        struct results r;
        if (results_make(records, m, &r))
            return -1;
        g.results = &r;
        g.machine = exported_machine(records, &r);
        for (size_t i = 0; i < r.n_bench; i++)
            add_timing(&g, &r.bench[i]);
        for (size_t i = 0; i < r.n_pairs; i++)
            add_pair(&g, r.pairs[i]);
        for (size_t i = 0; i < r.n_counts; i++)
            add_count(&g, r.counts[i]);
        results_free(&r);
    }
    fputs("\n]\n", out);
    return g.list.failed ? -1 : 0;
}
