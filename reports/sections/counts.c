/*
 * How many instructions a call takes: for each element, by class, and besides.
 */
#include "reports/report.h"
#include "reports/show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What each element more takes of one class; NaN where that was not counted. */
static double per_element(const json_t *record, const char *name)
{
    char smaller[32];
    snprintf(smaller, sizeof smaller, "smaller.%s", name);
    const double more =
        record_value(record, "elements", 0.0) - record_value(record, "smaller.elements", 0.0);
    const double nowhere = (double)NAN, all = record_value(record, name, nowhere);
    return more > 0.0 ? (all - record_value(record, smaller, nowhere)) / more : nowhere;
}

static void add_rate(const json_t *record, const char *name, struct table *table)
{
    const double rate = per_element(record, name);
    table_cell(table, isnan(rate) ? "-" : rate < 1e-9 ? "0" : "%.3f", rate);
}

static bool is_counted(const json_t *record) { return !*record_text(record, "refused"); }

/* "rope_table, f16, hf_f32" */
static void name_form(const json_t *record, char *text, size_t size)
{
    const char *dtype = narrow_name(record_text(record, "dtype")),
               *profile = record_text(record, "profile");
    if (strcmp(profile, "given") == 0)
        profile = "";
    snprintf(text, size, "%.40s%s%.20s%s%.20s", record_text(record, "kernel"),
             *dtype ? ", " : "", dtype, *profile ? ", " : "", profile);
}

/* Whether a backend was counted with other lanes, too, as SVE is on other CPUs. */
static bool has_lengths(const struct results *r, const json_t *record)
{
    bool has = false;
    for (size_t i = 0; i < r->n_counts; i++)
        has |=
            strcmp(record_text(r->counts[i], "backend"), record_text(record, "backend")) == 0 &&
            record_value(r->counts[i], "lanes", 0.0) != record_value(record, "lanes", 0.0);
    return has;
}

static void add_row(const struct results *r, const json_t *record, struct table *table)
{
    static const char *const names[] = { "instructions", "loads",  "stores",
                                         "branches",     "vector", "outside" };
    if (has_lengths(r, record))
        table_cell(table, "%s, %.0f lanes", record_text(record, "backend"),
                   record_value(record, "lanes", 0.0));
    else
        table_cell(table, "%s", record_text(record, "backend"));
    for (int i = 0; i < 6; i++)
        add_rate(record, names[i], table);
    if (is_counted(record))
        table_cell(table, "%.0f", record_value(record, "per_call", 0.0));
    else
        table_cell(table, "-");
}

static void add_refused(struct node *section, const struct results *r)
{
    for (size_t i = 0; i < r->n_counts; i++) {
        char name[128];
        name_form(r->counts[i], name, sizeof name);
        if (!is_counted(r->counts[i]))
            add_text(section, NOTE, EVERYWHERE, "%s on %s: %s", name,
                     record_text(r->counts[i], "backend"),
                     record_text(r->counts[i], "refused"));
    }
}

/* What counted, and whether the CPU's own counter says the same. */
static void add_words(struct node *section, const struct results *r)
{
    double most = 0.0;
    size_t n = 0;
    const char *by = "";
    for (size_t i = 0; i < r->n_counts; i++) {
        const double perf = record_value(r->counts[i], "perf", 0.0),
                     all = record_value(r->counts[i], "instructions", 0.0) +
                           record_value(r->counts[i], "outside", 0.0);
        if (is_counted(r->counts[i]))
            by = record_text(r->counts[i], "by");
        if (perf > 0.0 && all > 0.0) {
            most = fmax(most, fabs(perf / all - 1.0));
            n++;
        }
    }
    add_text(section, PARAGRAPH, EVERYWHERE,
             "Instructions for each element of x or out, whichever has more of them, from two "
             "calls of different length, and in the last column what a call takes besides; "
             "outside: in other libraries, such as the C library's sine.  Counted exactly, by "
             "%s.  They explain a time and are none: instructions differ in what they cost.",
             *by ? by : "nothing");
    if (n)
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "The CPU's own counter (perf) was off by %.2g %% at most, in %zu calls.",
                 100.0 * most, n);
}

/* ---- Two builds ---- */

static const json_t *other_build(const struct results *r, const json_t *head)
{
    for (size_t i = 0; i < r->n_counts; i++)
        if (strcmp(record_text(r->counts[i], "build"), "base") == 0 &&
            strcmp(record_text(r->counts[i], "case"), record_text(head, "case")) == 0 &&
            strcmp(record_text(r->counts[i], "backend"), record_text(head, "backend")) == 0)
            return r->counts[i];
    return NULL;
}

static bool is_same(const json_t *base, const json_t *head)
{
    static const char *const names[] = {
        "instructions",        "loads", "stores", "outside", "branches", "vector",
        "smaller.instructions"
    };
    bool same = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        same &= record_value(base, names[i], 0.0) == record_value(head, names[i], 0.0);
    return same;
}

static void add_change(const json_t *base, const json_t *head, struct table *table)
{
    char name[128];
    const double before = record_value(base, "instructions", 0.0),
                 after = record_value(head, "instructions", 0.0);
    name_form(head, name, sizeof name);
    table_cell(table, "%s", name);
    table_cell(table, "%s", record_text(head, "backend"));
    table_cell(table, "%s", show_count(before));
    table_cell(table, "%s", show_count(after));
    table_cell(table, before > 0.0 ? "%+.2f %%" : "-", 100.0 * (after / before - 1.0));
    table_cell(table, "%.3f", per_element(base, "instructions"));
    table_cell(table, "%.3f", per_element(head, "instructions"));
}

static void add_changes(struct node *into, const struct results *r)
{
    struct node *section =
        add_section(into, EVERYWHERE, "Instructions of a call, base and head");
    struct table *table = NULL;
    size_t n = 0, changed = 0;
    for (size_t i = 0; i < r->n_counts; i++) {
        const json_t *head = r->counts[i], *base;
        if (strcmp(record_text(head, "build"), "head") != 0 || !is_counted(head) ||
            !(base = other_build(r, head)) || !is_counted(base))
            continue;
        n++;
        if (is_same(base, head))
            continue;
        changed++;
        if (!table)
            table = add_table(section, EVERYWHERE,
                              "kernel|backend|>base|>head|>change|>?base, an element;base/el|"
                              ">?head, an element;head/el");
        add_change(base, head, table);
    }
    add_text(
        section, PARAGRAPH, EVERYWHERE,
        "%zu of %zu kernels on backends take another number of instructions, counted exactly.  "
        "That explains a change of time, or says that it has other reasons; it is no verdict.",
        changed, n);
}

void section_counts(struct node *into, const struct results *r,
                    const struct render_options *options)
{
    (void)options;
    bool pairs = false;
    for (size_t i = 0; i < r->n_counts; i++)
        pairs |= *record_text(r->counts[i], "build") != '\0';
    if (r->n_counts == 0)
        return;
    if (pairs) {
        add_changes(into, r);
        return;
    }
    struct node *section = add_section(into, EVERYWHERE, "Instructions of a call");
    struct table *table =
        add_table(section, EVERYWHERE,
                  "~kernel|backend|>instructions;all|>loads|>stores|>branches|>vector|"
                  ">outside|>a call");
    char last[128] = "", name[128];
    for (size_t i = 0; i < r->n_counts; i++) {
        name_form(r->counts[i], name, sizeof name);
        if (strcmp(name, last) != 0)
            table_line(table, "%s", name);
        table_cell(table, "%s", strcmp(name, last) != 0 ? name : "");
        memcpy(last, name, sizeof last);
        add_row(r, r->counts[i], table);
    }
    add_refused(section, r);
    add_words(section, r);
}
