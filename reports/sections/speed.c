/*
 * The section "Speed": everything that was timed, a table for each kernel.
 */
#include "reports/report.h"
#include "reports/show.h"

#include <string.h>

enum { MAX_ROWS = 32 };

static void add_timing_cells(const struct bench_row *b, const struct bench_row *best,
                             bool steps, struct table *table)
{
    double above = b->hi > 0.0 ? b->hi - b->median : 0.0,
           below = b->lo > 0.0 ? b->median - b->lo : 0.0;
    double half = above > below ? above : below;
    table_cell(table, "%s", b->backend);
    if (*b->refused) {
        for (int i = 0; i < 7 + steps; i++)
            table_cell(table, "%s", "");
        table_cell(table, "%s", b->refused);
        return;
    }
    table_cell(table, "%s", show_time(b->median));
    table_cell(table, "%.1f %%", 100.0 * half / b->median);
    table_cell(table, "%s", show_rate(b->gbps));
    table_cell(table, "%s", show_percent(b->roof_ratio));
    table_cell(table, "%.6f", b->roof_ratio);
    table_cell(table, "%s", show_times(b->vs_libm));
    table_cell(table, "%s", show_times(b->vs_autovec));
    if (steps)
        table_cell(table, "%s", show_times(b->vs_apart));
    table_cell(table, "%s", b == best ? "fastest" : is_tie(best, b) ? "= fastest" : "");
}

/* Shape, size and roof of a case: a line above its rows, or the cells that the first row carries. */
static void add_case_cells(const struct results *r, const struct bench_row *b,
                           struct table *table)
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
    table_line(table, "%s  %s%s%s  roof %s", shape, b->footprint, *b->footprint ? " " : "",
               show_bytes(b->bytes), roof);
    table_cell(table, "%s", shape);
    table_cell(table, "%s %s", b->footprint, show_bytes(b->bytes));
    table_cell(table, "%s", roof);
}

/* Whether a kernel was compared with its steps, one after the other. */
static bool has_steps(const struct results *r, const char *kernel)
{
    bool has = false;
    for (size_t c = 0; c < r->n_cases; c++) {
        const struct bench_row *rows[MAX_ROWS];
        const size_t n = rows_of_case(r, r->cases[c], rows, MAX_ROWS);
        for (size_t i = 0; i < n && strcmp(rows[0]->kernel, kernel) == 0; i++)
            has = has || rows[i]->vs_apart > 0.0;
    }
    return has;
}

static void add_kernel(struct node *into, const struct results *r, const char *kernel)
{
    struct node *section = add_section(into, EVERYWHERE, "%s", kernel);
    const bool steps = has_steps(r, kernel);
    struct table *table = add_table(
        section, EVERYWHERE,
        steps ? "~shape|~size|~roof|backend|>time|>+-|>GB/s|>of roof;roof|=|>vs libm;libm|"
                ">vs autovec;autovec|>vs its steps;steps|"
              : "~shape|~size|~roof|backend|>time|>+-|>GB/s|>of roof;roof|=|>vs libm;libm|"
                ">vs autovec;autovec|");
    for (size_t c = 0; c < r->n_cases; c++) {
        const struct bench_row *rows[MAX_ROWS];
        size_t n = rows_of_case(r, r->cases[c], rows, MAX_ROWS);
        if (n == 0 || strcmp(rows[0]->kernel, kernel) != 0)
            continue;
        add_case_cells(r, rows[0], table);
        for (size_t i = 0; i < n; i++) {
            for (int empty = 0; i > 0 && empty < 3; empty++)
                table_cell(table, "%s", "");
            add_timing_cells(rows[i], rows[0], steps, table);
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
