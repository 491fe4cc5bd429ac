/*
 * The section "Speed": everything that was timed, a table for each kernel.
 */
#include "reports/ranking.h"
#include "reports/report.h"
#include "reports/show.h"

#include <stdio.h>
#include <string.h>

static const char *const standing_words[] = {
    [NOT_TIMED] = "", [WRONG] = "does not conform", [NOISY] = "noisy",
    [SLOWER] = "",    [TIED] = "= fastest",         [FASTEST] = "fastest",
};

/* Whether the name of a resource needs that of what was timed: of a roof the line above its rows tells,
 * and calls are of one kind. */
static bool needs_kind(const struct bench_row *b)
{
    return strcmp(b->limit_resource, "memory") != 0 && strcmp(b->limit_resource, "calls") != 0;
}

/* What binds, and the share of it that was reached. */
static void add_limit(const struct bench_row *b, struct table *table)
{
    if (b->limit_ratio <= 0.0)
        table_cell(table, "%s", "");
    else if (needs_kind(b))
        table_cell(table, "%s of %.20s (%.30s)", show_percent(b->limit_ratio),
                   b->limit_resource, b->limit_kind);
    else
        table_cell(table, "%s of %.20s", show_percent(b->limit_ratio), b->limit_resource);
}

static void add_timing_cells(const struct bench_row *b, enum standing standing, bool steps,
                             struct table *table)
{
    double width = row_width(b);
    table_cell(table, "%s", b->backend);
    if (*b->refused) {
        for (int i = 0; i < 8 + steps; i++)
            table_cell(table, "%s", "");
        table_cell(table, "%s", b->refused);
        return;
    }
    table_cell(table, "%s", show_time(b->median));
    if (width < 1e3)
        table_cell(table, width < 9.995 ? "%.1f %%" : "%.0f %%", 100.0 * width);
    else
        table_cell(table, "-");
    table_cell(table, "%s", show_rate(b->gbps));
    table_cell(table, "%s", show_percent(b->roof_ratio));
    table_cell(table, "%.6f", b->roof_ratio);
    add_limit(b, table);
    table_cell(table, "%s", show_times(b->vs_libm));
    table_cell(table, "%s", show_times(b->vs_autovec));
    if (steps)
        table_cell(table, "%s", show_times(b->vs_apart));
    table_cell(table, "%s", standing_words[standing]);
}

/* Shape, size and roof of a case: a line above its rows, or the cells that the first row carries. */
static void add_case_cells(const struct results *r, const struct bench_row *b,
                           struct table *table)
{
    const json_t *model = NULL, *one = model_case(r, b->id, &model);
    const char *profile = strcmp(b->profile, "given") == 0 ? "" : b->profile,
               *comma = *profile ? ", " : "";
    const char *dtype = narrow_name(b->dtype);
    char shape[224], roof[192] = "-";
    if (one)
        snprintf(shape, sizeof shape, "%.90s: %.64s%s%s", record_text(model, "title"),
                 record_text(one, "label"), comma, profile);
    else
        snprintf(shape, sizeof shape, "%.96s%s%s%s%s", short_shape(b->id, NULL),
                 *dtype ? ", " : "", dtype, comma, profile);
    if (b->roof_gbps > 0.0)
        snprintf(roof, sizeof roof, "%s GB/s (%.30s%s%.30s)", show_rate(b->roof_gbps),
                 b->roof_kind, *b->roof_variant ? ", " : "", b->roof_variant);
    if (b->roof_gbps > 0.0 && b->limit_gbps > 0.0 && needs_kind(b))
        snprintf(roof + strlen(roof), sizeof roof - strlen(roof), ", %.30s %s GB/s (%.30s)",
                 b->limit_kind, show_rate(b->limit_gbps), b->limit_variant);
    table_line(table, "%s  %s%s%s  roof %s", shape, b->footprint, *b->footprint ? " " : "",
               show_bytes(b->bytes), roof);
    table_cell(table, "%s", shape);
    table_cell(table, "%s %s", b->footprint, show_bytes(b->bytes));
    table_cell(table, "%s", roof);
}

/* Whether a kernel was compared with its steps, one after the other. */
static bool has_steps(const struct results *r, const char *kernel)
{
    bool steps = false;
    for (size_t c = 0; c < r->n_cases; c++) {
        const struct bench_row *rows[RANKED];
        const size_t n = rows_of_case(r, r->cases[c], rows, RANKED);
        for (size_t i = 0; i < n && strcmp(rows[0]->kernel, kernel) == 0; i++)
            steps = steps || rows[i]->vs_apart > 0.0;
    }
    return steps;
}

static void add_kernel(struct node *into, const struct results *r, const char *kernel)
{
    struct node *section = add_section(into, EVERYWHERE, "%s", kernel);
    const bool steps = has_steps(r, kernel);
    char heads[160];
    snprintf(heads, sizeof heads,
             "~shape|~size|~roof|backend|>time|>+-|>GB/s|>of roof;roof|=|bound by|"
             ">vs libm;libm|>vs autovec;autovec|%s",
             steps ? ">vs its steps;steps|" : "");
    struct table *table = add_table(section, EVERYWHERE, heads);
    for (size_t c = 0; c < r->n_cases; c++) {
        const struct bench_row *one[1];
        struct ranking k;
        if (rows_of_case(r, r->cases[c], one, 1) == 0 || strcmp(one[0]->kernel, kernel) != 0)
            continue;
        rank_case(r, r->cases[c], &k);
        add_case_cells(r, k.row[0], table);
        for (size_t i = 0; i < k.n; i++) {
            for (int empty = 0; i > 0 && empty < 3; empty++)
                table_cell(table, "%s", "");
            add_timing_cells(k.row[i], k.standing[i], steps, table);
        }
    }
}

void section_speed(struct node *into, const struct results *r,
                   const struct render_options *options)
{
    (void)options;
    struct node *section = add_section(into, EVERYWHERE, "Speed");
    for (size_t k = 0; k < r->n_kernels; k++)
        add_kernel(section, r, r->kernels[k]);
}
