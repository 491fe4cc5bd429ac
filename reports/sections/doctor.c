/*
 * Whether a machine can be trusted to measure, as `posenc doctor` found it: its grade, what it tells
 * apart, what disturbs it and what to type against that.
 */
#include "reports/findings.h"
#include "reports/records.h"
#include "reports/report.h"
#include "reports/show.h"

#include <string.h>

/* A number of per cent, with the digits that it deserves; a factor where it is large. */
static const char *per_cent(double pct, char text[24])
{
    if (pct < 0.0)
        snprintf(text, 24, "-");
    else if (pct >= 1000.0)
        snprintf(text, 24, "%.0fx", 1.0 + pct / 100.0);
    else
        snprintf(text, 24, "%.*f %%", pct < 1.0 ? 2 : pct < 10.0 ? 1 : 0, pct);
    return text;
}

/* Which machine, where and for how long. */
static void add_machine(struct node *into, const struct results *r)
{
    char where[32] = "any CPU";
    int cpu = record_int(r->machine, "cpu", -1);
    if (cpu >= 0)
        snprintf(where, sizeof where, "CPU %d", cpu);
    add_text(into, NOTE, EVERYWHERE, "%s (%s), %.0f CPUs; measured on %s for %.0f s.",
             record_text(r->env, "cpu.name"), record_text(r->env, "env_id"),
             record_value(r->env, "cpus.online", 0.0), where,
             record_value(r->machine, "seconds", 0.0));
}

static void add_answer(struct node *into, const json_t *machine)
{
    char cache[24], dram[24], reasons[600] = "";
    size_t at = 0;
    double in_dram = record_value(machine, "tells_apart.dram_pct", -1.0);
    per_cent(record_value(machine, "tells_apart.cache_pct", -1.0), cache);
    per_cent(in_dram, dram);
    struct node *answer = add_text(
        into, PARAGRAPH, EVERYWHERE,
        "**Grade %.2s**: timings tell apart what differs by more than **%s** in cache%s%s%s.",
        record_text(machine, "grade"), cache, in_dram >= 0.0 ? ", **" : "",
        in_dram >= 0.0 ? dram : "", in_dram >= 0.0 ? "** in DRAM" : "");
    if (answer)
        answer->tone = strchr("CD", *record_text(machine, "grade")) ? BAD : GOOD;
    const json_t *list = json_object_get(machine, "reasons");
    for (size_t i = 0; i < json_array_size(list) && at < sizeof reasons; i++)
        at += (size_t)snprintf(reasons + at, sizeof reasons - at, "%s%s", i ? "; " : "",
                               json_string_value(json_array_get(list, i)));
    if (*reasons)
        add_text(into, NOTE, EVERYWHERE, "Not better because: %s.", reasons);
    add_text(into, NOTE, EVERYWHERE,
             "Of a smaller difference `posenc compare` says SAME where it is sure of less than "
             "3 %%, and UNCLEAR where not.");
}

static void add_floors(struct node *into, const json_t *machine)
{
    const json_t *floors = json_object_get(json_object_get(machine, "measured"), "floors");
    if (json_array_size(floors) == 0)
        return;
    struct table *table = add_table(
        into, EVERYWHERE,
        "a kernel against its own copy;against its own copy|CPU|>tells apart|>typical|"
        ">largest|>rounds|>~one call");
    for (size_t i = 0; i < json_array_size(floors); i++) {
        const json_t *f = json_array_get(floors, i);
        char text[24];
        int cpu = record_int(machine, "cpu", -1);
        table_cell(table, "%s, %s", record_text(f, "place"),
                   show_bytes(record_value(f, "bytes", 0.0)));
        if (json_is_true(json_object_get(f, "pinned")) && cpu >= 0)
            table_cell(table, "%d", cpu);
        else
            table_cell(table, "any");
        table_cell(table, "%s", per_cent(record_value(f, "apart_pct", -1.0), text));
        table_cell(table, "%s", per_cent(record_value(f, "typical_pct", -1.0), text));
        table_cell(table, "%s", per_cent(record_value(f, "largest_pct", -1.0), text));
        table_cell(table, "%s", show_count(record_value(f, "rounds", 0.0)));
        table_cell(table, "%s", show_time(record_value(f, "call_ns", 0.0)));
    }
    add_text(into, NOTE, EVERYWHERE,
             "Tells apart: what 99 of 100 comparisons of 3 x 31 rounds would find.  Typical, "
             "largest: how far a call was from its copy in one round.");
}

/* What it is, what it costs, what was seen; what to do; what to type. */
static void add_finding(struct node *into, const json_t *finding)
{
    char cost[24];
    const char *fix = record_text(finding, "fix"), *command = record_text(finding, "command");
    double pct = record_value(finding, "cost_pct", -1.0);
    add_text(into, ITEM, EVERYWHERE, "**%s** (%s): %s.%s%s", record_text(finding, "what"),
             pct < 0.0 ? "cost not known" : per_cent(pct, cost),
             record_text(finding, "evidence"), *fix ? "  " : "", fix);
    if (*command)
        add_text(into, CODE, EVERYWHERE, "%s\n", command);
}

static bool is_of(const json_t *finding, const char *level)
{
    return strcmp(record_text(finding, "level"), level) == 0;
}

static void add_chapter(struct node *into, const json_t *findings, const char *level,
                        const char *title)
{
    struct node *section = NULL;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        if (!is_of(json_array_get(findings, i), level))
            continue;
        if (!section)
            section = add_section(into, EVERYWHERE, "%s", title);
        add_finding(section, json_array_get(findings, i));
    }
}

/* A line each on a terminal, a table on a page. */
static void add_fine(struct node *into, const json_t *findings)
{
    struct node *section = add_section(into, EVERYWHERE, "Fine");
    struct table *table = NULL;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        const json_t *finding = json_array_get(findings, i);
        const char *what = record_text(finding, "what"),
                   *seen = record_text(finding, "evidence");
        if (!is_of(finding, "fine"))
            continue;
        if (!table)
            table = add_table(section, ON_PAGE, "what|seen");
        table_cell(table, "%s", what);
        table_cell(table, "%s", seen);
        add_text(section, ITEM, ON_TERMINAL, "%s: %s", what, seen);
    }
}

static void add_hidden(struct node *into, const json_t *findings)
{
    char names[300] = "";
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(findings) && at < sizeof names; i++) {
        const json_t *finding = json_array_get(findings, i);
        if (is_of(finding, "hidden"))
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s (%s)", at ? "; " : "",
                                   record_text(finding, "what"),
                                   record_text(finding, "evidence"));
    }
    if (*names)
        add_text(into, PARAGRAPH, EVERYWHERE, "Not known here: %s.", names);
}

void section_doctor(struct node *into, const struct results *r,
                    const struct render_options *options)
{
    (void)options;
    const json_t *findings = json_object_get(r->machine, "findings");
    if (!r->machine)
        return;
    struct node *section =
        add_section(into, EVERYWHERE, "Can this machine be trusted to measure?");
    if (r->env)
        add_machine(section, r);
    add_answer(section, r->machine);
    add_floors(section, r->machine);
    add_chapter(section, findings, "costs", "What disturbs it");
    add_chapter(section, findings, "note", "What may");
    add_fine(section, findings);
    add_hidden(section, findings);
}
