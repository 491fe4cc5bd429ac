/*
 * Static estimates.  Where a core was at hand its loops were timed, too, and how far the estimates of it
 * are off is the best there is to say of the others'.
 */
#include "reports/estimate.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/statistics/stats.h"

#include <stdlib.h>
#include <string.h>

#define ESTIMATES_TITLE "Static estimates (llvm-mca, not measured)"

enum { RESULTS = 16, MAX_CORES = (TABLE_COLUMNS - 1) / 2, MAX_LOOPS = 64, MAX_RATIOS = 1024 };

static const char *text_of(const json_t *estimate, const char *name)
{
    return record_text(estimate, name);
}

static bool same(const json_t *a, const json_t *b, const char *name)
{
    return strcmp(text_of(a, name), text_of(b, name)) == 0;
}

static bool same_loop(const json_t *a, const json_t *b)
{
    return same(a, b, "kernel") && same(a, b, "profile") && same(a, b, "variant");
}

/* The estimates among the records, from number `from` on; NULL when there is none left. */
static const json_t *next_estimate(const json_t *records, size_t *from)
{
    while (*from < json_array_size(records)) {
        const json_t *record = json_array_get(records, (*from)++);
        if (strcmp(record_text(record, "t"), "estimate") == 0 && !estimate_problem(record))
            return record;
    }
    return NULL;
}

/* The estimates that differ in one thing, in order of appearance; at most n. */
static size_t distinct(const json_t *records, const char *backend,
                       bool (*equal)(const json_t *, const json_t *), const json_t **found,
                       size_t n)
{
    size_t used = 0, at = 0;
    const json_t *estimate;
    while ((estimate = next_estimate(records, &at))) {
        size_t i = 0;
        if (backend && strcmp(text_of(estimate, "backend"), backend) != 0)
            continue;
        while (i < used && !equal(found[i], estimate))
            i++;
        if (i == used && used < n)
            found[used++] = estimate;
    }
    return used;
}

static bool same_backend(const json_t *a, const json_t *b) { return same(a, b, "backend"); }
static bool same_core(const json_t *a, const json_t *b) { return same(a, b, "core"); }

static bool same_table(const json_t *a, const json_t *b)
{
    return same_core(a, b) && same_backend(a, b);
}

/* The last estimate of a loop on a core. */
static const json_t *estimate_of(const json_t *records, const json_t *loop, const json_t *core)
{
    const json_t *estimate, *last = NULL;
    size_t at = 0;
    while ((estimate = next_estimate(records, &at)))
        if (same_loop(estimate, loop) && same_core(estimate, core) &&
            same_backend(estimate, core))
            last = estimate;
    return last;
}

static bool is_measured(const json_t *records, const json_t *core)
{
    const json_t *estimate;
    size_t at = 0;
    while ((estimate = next_estimate(records, &at)))
        if (same_table(estimate, core) &&
            record_value(estimate, "measured_per_vector", 0.0) > 0.0)
            return true;
    return false;
}

static void cycles_cell(struct table *table, double per_element)
{
    table_cell(table, "%s", per_element > 0.0 ? show_rate((double)RESULTS * per_element) : "-");
}

static double measured_per_element(const json_t *estimate)
{
    return record_value(estimate, "measured_per_vector", 0.0) /
           record_value(estimate, "elements_per_vector", 1.0);
}

static void loop_cells(const json_t *records, const json_t *loop, const json_t *const *cores,
                       const bool *measured, size_t n_cores, struct table *table)
{
    const char *profile = text_of(loop, "profile"), *variant = text_of(loop, "variant");
    bool profiled = strcmp(profile, "given") != 0, varied = strcmp(variant, "plain") != 0;
    table_cell(table, "%s%s%s%s%s", text_of(loop, "kernel"), profiled ? " " : "",
               profiled ? profile : "", varied ? " " : "", varied ? variant : "");
    for (size_t c = 0; c < n_cores; c++) {
        const json_t *estimate = estimate_of(records, loop, cores[c]);
        cycles_cell(table, estimate ? record_value(estimate, "cycles_per_element", 0.0) : 0.0);
        if (measured[c])
            cycles_cell(table, estimate ? measured_per_element(estimate) : 0.0);
    }
}

/* The loops of a backend by core. */
static void add_backend(struct node *section, const json_t *records, const char *name)
{
    const json_t *cores[MAX_CORES], *loops[MAX_LOOPS];
    bool measured[MAX_CORES];
    char head[1024];
    size_t n_cores = distinct(records, name, same_core, cores, MAX_CORES);
    size_t n_loops = distinct(records, name, same_loop, loops, MAX_LOOPS);
    size_t at = (size_t)snprintf(head, sizeof head, "%.40s", name);
    for (size_t c = 0; c < n_cores; c++) {
        measured[c] = is_measured(records, cores[c]);
        at += (size_t)snprintf(head + at, sizeof head - at, "|>%.40s%s",
                               text_of(cores[c], "core"), measured[c] ? "|>measured" : "");
    }
    struct table *table = add_table(section, EVERYWHERE, head);
    table_cell(table, "lanes");
    for (size_t c = 0; c < n_cores; c++) {
        table_cell(table, "%.0f", record_value(cores[c], "elements_per_vector", 0.0));
        if (measured[c])
            table_cell(table, "%s", "");
    }
    for (size_t i = 0; i < n_loops; i++)
        loop_cells(records, loops[i], cores, measured, n_cores, table);
}

/* The times of loops on a core that was at hand, as multiples of their estimates. */
static struct stats_summary ratios_of(const json_t *records, const json_t *core)
{
    double ratios[MAX_RATIOS];
    const json_t *estimate;
    size_t used = 0, at = 0;
    while (used < MAX_RATIOS && (estimate = next_estimate(records, &at))) {
        double measured = measured_per_element(estimate);
        if (same_table(estimate, core) && measured > 0.0)
            ratios[used++] = measured / record_value(estimate, "cycles_per_element", 1.0);
    }
    return stats_summarise(ratios, used);
}

/* How far off the estimates of cores that were at hand are. */
static void add_checked(struct node *section, const json_t *records)
{
    const json_t *tables[MAX_LOOPS];
    char text[1024] = "";
    size_t n_tables = distinct(records, NULL, same_table, tables, MAX_LOOPS), at = 0;
    for (size_t i = 0; i < n_tables && at < sizeof text; i++) {
        struct stats_summary ratios = ratios_of(records, tables[i]);
        if (ratios.n > 0)
            at += (size_t)snprintf(
                text + at, sizeof text - at, "%s %.40s on %.40s %.2f to %.2f (median %.2f)",
                at ? ";" : "", text_of(tables[i], "backend"), text_of(tables[i], "core"),
                ratios.min, ratios.max, ratios.median);
    }
    if (at)
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "Timed on a core that was at hand, the loops took, as multiples of their "
                 "estimates:%s.",
                 text);
    else
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "None of these cores was at hand: how far off they are was not measured.");
}

/* Cores whose model is another core's. */
static void add_models(struct node *section, const json_t *records)
{
    const json_t *cores[MAX_LOOPS];
    char text[2048] = "";
    size_t n = distinct(records, NULL, same_core, cores, MAX_LOOPS), at = 0;
    for (size_t i = 0; i < n && at < sizeof text; i++) {
        const char *model = text_of(cores[i], "model");
        if (*model && strcmp(model, "own") != 0)
            at +=
                (size_t)snprintf(text + at, sizeof text - at, "%s %.40s is taken for a %.100s",
                                 at ? "," : "", text_of(cores[i], "core"), model);
    }
    if (at)
        add_text(section, PARAGRAPH, EVERYWHERE, "LLVM has no model of some:%s.", text);
}

void section_estimates(struct node *into, const json_t *records)
{
    const json_t *backends[MAX_LOOPS];
    size_t n = distinct(records, NULL, same_backend, backends, MAX_LOOPS);
    if (n == 0)
        return;
    struct node *section = add_section(into, EVERYWHERE, ESTIMATES_TITLE);
    for (size_t b = 0; b < n; b++)
        add_backend(section, records, text_of(backends[b], "backend"));
    const char *compiler = text_of(backends[0], "compiler");
    add_text(section, PARAGRAPH, EVERYWHERE,
             "Cycles for %d results, which fill a line of 64 bytes: what %.60s makes of the "
             "kernels' inner loops%s%.60s, by a model of the core.  Everything is in the L1 "
             "cache, every branch foreseen, nothing outside of the loop counted.",
             RESULTS, text_of(backends[0], "tool"), *compiler ? " as compiled by " : "",
             compiler);
    add_models(section, records);
    add_checked(section, records);
}
