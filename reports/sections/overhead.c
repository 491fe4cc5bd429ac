/*
 * What a call costs before its kernel begins: front-end and prepared call.
 */
#include "reports/report.h"
#include "reports/show.h"

#include <stdio.h>

static void add_ns(const json_t *record, const char *way, struct table *table)
{
    char median[32], lo[32], hi[32];
    snprintf(median, sizeof median, "%s.median_ns", way);
    snprintf(lo, sizeof lo, "%s.ci.lo", way);
    snprintf(hi, sizeof hi, "%s.ci.hi", way);
    table_cell(table, "%+.1f ns (%.1f to %.1f)", record_value(record, median, 0.0),
               record_value(record, lo, 0.0), record_value(record, hi, 0.0));
}

void section_overhead(struct node *into, const struct results *r,
                      const struct render_options *options)
{
    (void)options;
    if (r->n_overheads == 0)
        return;
    struct node *section = add_section(into, EVERYWHERE, "Overhead of a call");
    struct table *table = add_table(
        section, EVERYWHERE,
        "one token|~backend|>function|>front-end|>prepared|>function again;again|>pace");
    for (size_t i = 0; i < r->n_overheads; i++) {
        const json_t *record = r->overheads[i];
        int heads = record_int(record, "heads", 0);
        table_cell(table, "%s, %d head%s of %.0f", record_text(record, "kernel"), heads,
                   heads == 1 ? "" : "s", record_value(record, "head_dim", 0.0));
        table_cell(table, "%s", record_text(record, "backend"));
        table_cell(table, "%s", show_time(record_value(record, "function_ns", 0.0)));
        add_ns(record, "front", table);
        add_ns(record, "prepared", table);
        add_ns(record, "null", table);
        table_cell(table, "%.2f", record_value(record, "pace", 0.0));
    }
    add_text(section, PARAGRAPH, EVERYWHERE,
             "Nanoseconds above calling the backend's function: medians of differences within "
             "rounds, and their intervals of 99 %%.  The limits are 20 and 5 where the pace is "
             "1: the time of a fixed run of "
             "loads, comparisons and stores in the same rounds, in units of the core for which "
             "they were set; a slower core has more, and so has one that is shared.");
}
