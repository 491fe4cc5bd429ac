/*
 * Sections about speed: the answer for a model, and the benchmarks.
 */
#define _POSIX_C_SOURCE 200809L
#include "sections.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 32 };

const char *short_shape(const char *id, const json_t *model)
{
    const char *slash = strrchr(id, '/'), *last = slash ? slash + 1 : id;
    const char *name = record_text(model, "name");
    size_t n = strlen(name);
    if (n && strncmp(last, name, n) == 0 && last[n] == '-')
        return last + n + 1;
    return last;
}

/* "avx2 = avx512" where the clock cannot tell them apart; rows are fastest first.  On the
 * console more than two are counted only. */
static void name_fastest(const struct bench_row *const *rows, size_t n, const struct look *look,
                         char *text, size_t bytes)
{
    size_t tied = 0, at = (size_t)snprintf(text, bytes, "%s", rows[0]->backend);
    for (size_t i = 1; i < n; i++)
        tied += is_tie(rows[0], rows[i]);
    if (tied > 1 && !look->labels) {
        snprintf(text + at, bytes - at, " + %zu tied", tied);
        return;
    }
    for (size_t i = 1; i < n && at < bytes; i++)
        if (is_tie(rows[0], rows[i]))
            at += (size_t)snprintf(text + at, bytes - at, " = %s", rows[i]->backend);
}

static const struct bench_row *row_of(const struct bench_row *const *rows, size_t n,
                                      const char *backend)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i]->backend, backend) == 0 && !*rows[i]->refused)
            return rows[i];
    return NULL;
}

/* The rows of a case whose backends conform, fastest first; `faster_but_wrong` the first one
 * that was passed over. */
static size_t trusted_rows(const struct results *r, const char *id,
                           const struct bench_row **rows,
                           const struct bench_row **faster_but_wrong)
{
    size_t n = rows_of_case(r, id, rows, MAX_ROWS), kept = 0;
    *faster_but_wrong = NULL;
    for (size_t i = 0; i < n; i++) {
        bool checked;
        if (*rows[i]->refused)
            continue;
        if (conforms(r, rows[i]->kernel, rows[i]->backend, &checked))
            rows[kept++] = rows[i];
        else if (kept == 0 && !*faster_but_wrong)
            *faster_but_wrong = rows[i];
    }
    return kept;
}

static const char *error_text(const struct results *r, const struct bench_row *b)
{
    const struct conf_row *c = worst_error(r, b->kernel, b->dtype, b->backend, b->profile);
    return c ? show_error(c->max, c->metric) : "not measured";
}

static void default_cell(const struct results *r, const struct bench_row *const *rows, size_t n,
                         struct grid *grid)
{
    const char *name = default_backend(r, rows[0]->kernel);
    const struct bench_row *row = row_of(rows, n, name);
    if (!*name)
        grid_cell(grid, "not recorded");
    else if (!row)
        grid_cell(grid, "%s (not timed)", name);
    else if (row == rows[0])
        grid_cell(grid, "%s", name);
    else if (is_tie(rows[0], row))
        grid_cell(grid, "%s (tie)", name);
    else
        grid_cell(grid, "%s (%.0f %% slower, error %s)", name,
                  100.0 * (row->median / rows[0]->median - 1.0), error_text(r, row));
}

static void error_cell(const struct results *r, const struct bench_row *b,
                       const struct look *look, struct grid *grid)
{
    const struct conf_row *c = worst_error(r, b->kernel, b->dtype, b->backend, b->profile);
    if (!c)
        grid_cell(grid, look->labels ? "not measured" : "-");
    else if (strcmp(c->metric, "exact") == 0 || !look->labels)
        grid_cell(grid, "%s", show_error(c->max, c->metric));
    else
        grid_cell(grid, "%s (limit %.3g)", show_error(c->max, c->metric), c->limit);
}

static bool answer(const struct results *r, const json_t *one, const json_t *model,
                   const struct look *look, struct grid *grid)
{
    const struct bench_row *rows[MAX_ROWS], *wrong;
    const char *id = record_text(one, "case");
    size_t n = trusted_rows(r, id, rows, &wrong);
    if (n == 0)
        return false;
    const struct bench_row *best = rows[0];
    char fastest[160];
    name_fastest(rows, n, look, fastest, sizeof fastest);
    bool checked;
    conforms(r, best->kernel, best->backend, &checked);
    const char *profile = strcmp(best->profile, "given") == 0 ? "" : best->profile;
    if (look->labels) {
        grid_cell(grid, "`%s`", best->kernel);
        grid_cell(grid, "%s%s%s", record_text(one, "label"), *profile ? ", " : "", profile);
        grid_cell(grid, "**%s**", fastest);
        grid_cell(grid, "%s", show_time(best->median));
    } else {
        const char *dtype = narrow_name(best->dtype);
        grid_cell(grid, "%s %s%s%s%s%s", best->kernel, short_shape(id, model),
                  *dtype ? " " : "", dtype, *profile ? " " : "", profile);
        grid_cell(grid, "%s", fastest);
    }
    grid_cell(grid, "%s", show_rate(best->gbps));
    grid_cell(grid, "%s", show_percent(best->roof_ratio));
    grid_cell(grid, "%s", show_times(best->vs_libm));
    grid_cell(grid, "%s", show_times(best->vs_autovec));
    error_cell(r, best, look, grid);
    if (wrong)
        grid_cell(grid, "yes; %s is faster and does NOT", wrong->backend);
    else
        grid_cell(grid, "%s", checked ? "yes" : look->labels ? "not checked" : "-");
    if (look->labels)
        default_cell(r, rows, n, grid);
    return true;
}

int section_answers(const struct results *r, const json_t *model, const struct look *look,
                    struct grid *grid)
{
    int n = 0;
    grid_begin(
        grid,
        look->labels
            ? "kernel|shape|fastest|>time|>GB/s|>of roof|>vs libm|>vs autovec|>worst error|"
              "conforms|default here"
            : "shape|fastest|>GB/s|>roof|>libm|>autovec|>error|conforms");
    const json_t *cases = json_object_get(model, "cases");
    for (size_t i = 0; i < json_array_size(cases); i++)
        n += answer(r, json_array_get(cases, i), model, look, grid);
    return n;
}

void default_cost(const struct results *r, const char *id, char *text, size_t bytes)
{
    const struct bench_row *rows[MAX_ROWS], *wrong;
    size_t n = trusted_rows(r, id, rows, &wrong);
    text[0] = 0;
    if (n == 0)
        return;
    const struct bench_row *standard = row_of(rows, n, default_backend(r, rows[0]->kernel));
    if (standard && standard != rows[0] && !is_tie(rows[0], standard))
        snprintf(text, bytes, "the default, %s, is %.0f %% slower (error %s)",
                 standard->backend, 100.0 * (standard->median / rows[0]->median - 1.0),
                 error_text(r, standard));
}

/* Sum of the logarithms of a backend's times at the model's shapes of a kernel; infinite where
 * it lacks one or does not conform. */
static double log_time(const struct results *r, const json_t *model, const char *kernel,
                       const char *backend, int *shapes)
{
    const json_t *cases = json_object_get(model, "cases");
    double sum = 0.0;
    *shapes = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i);
        const struct bench_row *rows[MAX_ROWS], *wrong;
        if (strcmp(record_text(one, "kernel"), kernel) != 0)
            continue;
        size_t n = trusted_rows(r, record_text(one, "case"), rows, &wrong);
        const struct bench_row *row = row_of(rows, n, backend);
        if (n == 0)
            continue;
        if (!row)
            return HUGE_VAL;
        sum += log(row->median);
        ++*shapes;
    }
    return *shapes ? sum : HUGE_VAL;
}

/* What the fastest must gain over the default, on average, to be worth naming. */
static const double worth = 0.03;

bool better_choice(const struct results *r, const json_t *model, char *text, size_t bytes)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t k = 0; k < r->n_kernels; k++) {
        int shapes;
        const char *best = default_backend(r, r->kernels[k]);
        double standard = log_time(r, model, r->kernels[k], best, &shapes), least = standard;
        if (isinf(standard))
            continue;
        for (size_t b = 0; b < r->n_backends; b++) {
            double time = log_time(r, model, r->kernels[k], r->backends[b].id, &shapes);
            if (time < least - 1e-12) {
                least = time;
                best = r->backends[b].id;
            }
        }
        log_time(r, model, r->kernels[k], best, &shapes);
        if (standard - least > shapes * log1p(worth) && at < bytes)
            at += (size_t)snprintf(text + at, bytes - at, "%.60s %.60s\n", r->kernels[k], best);
    }
    return at > 0;
}

/* ---- Benchmarks ---- */

/* Eighths of a block where they can be shown. */
static void bar_cell(double ratio, const struct look *look, struct grid *grid)
{
    static const char *const eighth[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    char text[256] = "";
    double length = (ratio > 1.0 ? 1.0 : ratio > 0.0 ? ratio : 0.0) * look->bar;
    int whole = (int)length, at = 0;
    for (int i = 0; i < whole && at < 240; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s", look->utf8 ? "█" : "#");
    if (look->utf8 && at < 240)
        snprintf(text + at, sizeof text - (size_t)at, "%s",
                 eighth[(int)((length - whole) * 8.0)]);
    grid_cell(grid, "%s", text);
}

static void bench_cells(const struct bench_row *b, const struct bench_row *best,
                        const struct look *look, struct grid *grid)
{
    double above = b->hi > 0.0 ? b->hi - b->median : 0.0,
           below = b->lo > 0.0 ? b->median - b->lo : 0.0;
    double half = above > below ? above : below;
    grid_cell(grid, "%s", b->backend);
    if (*b->refused) {
        for (int i = 0; i < 6 + (look->bar > 0); i++)
            grid_cell(grid, "%s", "");
        grid_cell(grid, "%s", b->refused);
        return;
    }
    grid_cell(grid, "%s", show_time(b->median));
    grid_cell(grid, "%.1f %%", 100.0 * half / b->median);
    grid_cell(grid, "%s", show_rate(b->gbps));
    grid_cell(grid, "%s", show_percent(b->roof_ratio));
    if (look->bar > 0)
        bar_cell(b->roof_ratio, look, grid);
    grid_cell(grid, "%s", show_times(b->vs_libm));
    grid_cell(grid, "%s", show_times(b->vs_autovec));
    grid_cell(grid, "%s", b == best ? "fastest" : is_tie(best, b) ? "= fastest" : "");
}

/* Shape, size and roof of a case: a line above its rows, or the cells that the first row
 * carries. */
static void case_cells(const struct results *r, const struct bench_row *b,
                       const struct look *look, struct grid *grid)
{
    const json_t *model = NULL, *one = model_case(r, b->id, &model);
    const char *profile = strcmp(b->profile, "given") == 0 ? "" : b->profile,
               *comma = *profile ? ", " : "";
    const char *dtype = narrow_name(b->dtype);
    char shape[224], roof[96] = "-";
    if (one)
        snprintf(shape, sizeof shape, "%.90s: %.64s%s%s", record_text(model, "title"),
                 record_text(one, "label"), comma, profile);
    else
        snprintf(shape, sizeof shape, "%.96s%s%s%s%s", short_shape(b->id, NULL),
                 *dtype ? ", " : "", dtype, comma, profile);
    if (b->roof_gbps > 0.0)
        snprintf(roof, sizeof roof, "%s GB/s (%.30s%s%.30s)", show_rate(b->roof_gbps),
                 b->roof_kind, *b->roof_variant ? ", " : "", b->roof_variant);
    if (look->labels) {
        grid_cell(grid, "%s", shape);
        grid_cell(grid, "%s %s", b->footprint, show_bytes(b->bytes));
        grid_cell(grid, "%s", roof);
        return;
    }
    char line[400];
    snprintf(line, sizeof line, "%s  %s%s%s  roof %s", shape, b->footprint,
             *b->footprint ? " " : "", show_bytes(b->bytes), roof);
    grid_line(grid, line);
}

int section_benchmarks(const struct results *r, const char *kernel, const struct look *look,
                       struct grid *grid)
{
    int cases = 0;
    grid_begin(grid,
               look->labels
                   ? "shape|size|roof|backend|>time|>+-|>GB/s|>of roof|>vs libm|>vs autovec|"
               : look->bar > 0 ? "backend|>time|>+-|>GB/s|>roof||>libm|>autovec|"
                               : "backend|>time|>+-|>GB/s|>roof|>libm|>autovec|");
    for (size_t c = 0; c < r->n_cases; c++) {
        const struct bench_row *rows[MAX_ROWS];
        size_t n = rows_of_case(r, r->cases[c], rows, MAX_ROWS);
        if (n == 0 || strcmp(rows[0]->kernel, kernel) != 0)
            continue;
        cases++;
        for (size_t i = 0; i < n; i++) {
            if (i == 0)
                case_cells(r, rows[0], look, grid);
            for (int empty = 0; look->labels && i > 0 && empty < 3; empty++)
                grid_cell(grid, "%s", "");
            bench_cells(rows[i], rows[0], look, grid);
        }
    }
    return cases;
}
