/*
 * The section of the static estimates.  Where a core was at hand its loops were timed, too, and how
 * far the estimates of it are off is the best there is to say of the others'.
 */
#define _POSIX_C_SOURCE 200809L
#include "estimate.h"
#include "statistics/stats.h"

#include <stdlib.h>
#include <string.h>

enum { RESULTS = 16, MAX_CORES = (GRID_COLUMNS - 1) / 2, MAX_LOOPS = 64, MAX_RATIOS = 1024 };

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

const char *estimate_problem(const json_t *record)
{
    static const char *const texts[][2] = {
        { "kernel", "is an estimate whose \"kernel\" is no text" },
        { "profile", "is an estimate whose \"profile\" is no text" },
        { "variant", "is an estimate whose \"variant\" is no text" },
        { "backend", "is an estimate whose \"backend\" is no text" },
        { "core", "is an estimate whose \"core\" is no text" },
        { "tool", "is an estimate whose \"tool\" is no text" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!*record_text(record, texts[i][0]))
            return texts[i][1];
    if (!(record_value(record, "cycles_per_element", 0.0) > 0.0))
        return "is an estimate whose \"cycles_per_element\" is no number above 0";
    if (!(record_value(record, "elements_per_vector", 0.0) > 0.0))
        return "is an estimate whose \"elements_per_vector\" is no number above 0";
    if (record_value(record, "measured_per_vector", 1.0) > 0.0)
        return NULL;
    return "is an estimate whose \"measured_per_vector\" is no number above 0";
}

bool estimate_header(const json_t *record)
{
    return strcmp(record_text(record, "t"), "header") == 0 &&
           strcmp(record_text(record, "mode"), "estimate") == 0;
}

bool estimates_only(const json_t *records)
{
    bool aside = false, some = false;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        bool one = strcmp(record_text(record, "t"), "estimate") == 0;
        if (strcmp(record_text(record, "t"), "header") == 0)
            aside = estimate_header(record);
        if (!aside && !one)
            return false;
        some = some || one;
    }
    return some;
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

static void cycles_cell(struct grid *grid, double per_element)
{
    grid_cell(grid, "%s", per_element > 0.0 ? show_rate((double)RESULTS * per_element) : "-");
}

static double measured_per_element(const json_t *estimate)
{
    return record_value(estimate, "measured_per_vector", 0.0) /
           record_value(estimate, "elements_per_vector", 1.0);
}

static void loop_cells(const json_t *records, const json_t *loop, const json_t *const *cores,
                       const bool *measured, size_t n_cores, struct grid *grid)
{
    const char *profile = text_of(loop, "profile"), *variant = text_of(loop, "variant");
    bool profiled = strcmp(profile, "given") != 0, varied = strcmp(variant, "plain") != 0;
    grid_cell(grid, "%s%s%s%s%s", text_of(loop, "kernel"), profiled ? " " : "",
              profiled ? profile : "", varied ? " " : "", varied ? variant : "");
    for (size_t c = 0; c < n_cores; c++) {
        const json_t *estimate = estimate_of(records, loop, cores[c]);
        cycles_cell(grid, estimate ? record_value(estimate, "cycles_per_element", 0.0) : 0.0);
        if (measured[c])
            cycles_cell(grid, estimate ? measured_per_element(estimate) : 0.0);
    }
}

size_t section_estimates(const json_t *records, size_t backend, struct grid *grid)
{
    const json_t *backends[MAX_LOOPS], *cores[MAX_CORES], *loops[MAX_LOOPS];
    bool measured[MAX_CORES];
    char head[1024];

    if (backend >= distinct(records, NULL, same_backend, backends, MAX_LOOPS))
        return 0;
    const char *name = text_of(backends[backend], "backend");
    size_t n_cores = distinct(records, name, same_core, cores, MAX_CORES);
    size_t n_loops = distinct(records, name, same_loop, loops, MAX_LOOPS);
    size_t at = (size_t)snprintf(head, sizeof head, "%.40s", name);
    for (size_t c = 0; c < n_cores; c++) {
        measured[c] = is_measured(records, cores[c]);
        at += (size_t)snprintf(head + at, sizeof head - at, "|>%.40s%s",
                               text_of(cores[c], "core"), measured[c] ? "|>measured" : "");
    }
    grid_begin(grid, head);
    grid_cell(grid, "lanes");
    for (size_t c = 0; c < n_cores; c++) {
        grid_cell(grid, "%.0f", record_value(cores[c], "elements_per_vector", 0.0));
        if (measured[c])
            grid_cell(grid, "%s", "");
    }
    for (size_t i = 0; i < n_loops; i++)
        loop_cells(records, loops[i], cores, measured, n_cores, grid);
    return n_loops;
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

static void add_checked(const json_t *records, FILE *out)
{
    const json_t *tables[MAX_LOOPS];
    size_t n_tables = distinct(records, NULL, same_table, tables, MAX_LOOPS), checked = 0;
    for (size_t i = 0; i < n_tables; i++) {
        struct stats_summary ratios = ratios_of(records, tables[i]);
        if (ratios.n > 0)
            fprintf(out, "%s %.40s on %.40s %.2f to %.2f (median %.2f)",
                    checked++
                        ? ";"
                        : "Timed on a core that was at hand, the loops took, as multiples of "
                          "their estimates:",
                    text_of(tables[i], "backend"), text_of(tables[i], "core"), ratios.min,
                    ratios.max, ratios.median);
    }
    fprintf(out, "%s\n",
            checked
                ? "."
                : "None of these cores was at hand: how far off they are was not measured.");
}

/* Cores whose model is another core's. */
static void add_models(const json_t *records, FILE *out)
{
    const json_t *cores[MAX_LOOPS];
    size_t n = distinct(records, NULL, same_core, cores, MAX_LOOPS), borrowed = 0;
    for (size_t i = 0; i < n; i++) {
        const char *model = text_of(cores[i], "model");
        if (*model && strcmp(model, "own") != 0)
            fprintf(out, "%s %.40s is taken for a %.100s",
                    borrowed++ ? "," : "LLVM has no model of some:", text_of(cores[i], "core"),
                    model);
    }
    if (borrowed)
        fprintf(out, ".\n");
}

char *estimate_caveats(const json_t *records)
{
    size_t at = 0, size;
    const json_t *first = next_estimate(records, &at);
    const char *compiler = text_of(first, "compiler");
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (first) {
        fprintf(out,
                "Cycles for %d results, which fill a line of 64 bytes: what %.60s makes of the "
                "kernels' inner loops%s%.60s, by a model of the core.  Everything is in the L1 "
                "cache, every branch foreseen, nothing outside of the loop counted.\n",
                RESULTS, text_of(first, "tool"), *compiler ? " as compiled by " : "", compiler);
        add_models(records, out);
        add_checked(records, out);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
