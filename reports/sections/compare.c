/*
 * Two builds, or two files of results, side by side: the verdicts, what changed in results, and what to type next.
 */
#include "reports/comparison.h"
#include "reports/evidence.h"
#include "reports/report.h"
#include "reports/show.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { BRIEF = 40, WORDS = 400 }; /* BRIEF: rows of a table on a terminal, two a pair */

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t bytes,
                                                         const char *format, ...)
{
    const size_t at = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + at, bytes - at, format, list);
    va_end(list);
}

/* ---- What was compared ---- */

/* "main (1f3c2abdef)", "base/libposenc.so (0.1.0)". */
static void side_name(const json_t *side, char *text, size_t bytes)
{
    const char *rev = record_text(side, "rev"), *path = record_text(side, "path"),
               *version = record_text(side, "version"), *commit = record_text(side, "commit");
    if (json_is_true(json_object_get(side, "dirty")))
        snprintf(text, bytes, "%.40s with changes that are not committed", rev);
    else if (*rev)
        snprintf(text, bytes, "%.40s%s%.10s%s", rev, *commit ? " (" : "", commit,
                 *commit ? ")" : "");
    else
        snprintf(text, bytes, "%.120s%s%.24s%s", *path ? path : "?", *version ? " (" : "",
                 version, *version ? ")" : "");
}

static struct node *add_heading(struct node *into, const struct results *r)
{
    const json_t *compare = json_object_get(r->header, "compare");
    char base[160], head[160];
    side_name(json_object_get(compare, "base"), base, sizeof base);
    side_name(json_object_get(compare, "head"), head, sizeof head);
    return compare ? add_section(into, EVERYWHERE, "Compared: base %s, head %s", base, head)
                   : add_section(into, EVERYWHERE, "Compared");
}

/* What cannot be compared, and why: other machines, builds, vectors. */
static void add_obstacles(struct node *section, const struct results *r)
{
    const json_t *compare = json_object_get(r->header, "compare"),
                 *list = json_object_get(compare, "incomparable");
    if (*record_text(compare, "machine"))
        add_text(section, NOTE, EVERYWHERE, "**The machine**: %s.",
                 record_text(compare, "machine"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        struct node *note = add_text(
            section, NOTE, EVERYWHERE, "**Not comparable**, %s: %s in base, %s in head.",
            record_text(one, "what"), record_text(one, "base"), record_text(one, "head"));
        if (note)
            note->tone = BAD;
    }
}

/* ---- The strip ---- */

static void add_verdicts(struct node *section, const struct results *r,
                         const struct comparison *c)
{
    const bool gate =
        json_is_true(json_object_get(json_object_get(r->header, "options"), "gate"));
    char text[WORDS] = "";
    if (c->broken)
        snprintf(text, sizeof text, "**FAILED %zu**    ", c->broken);
    for (int k = 0; k < VERDICT_KINDS; k++)
        if (k <= VERDICT_SAME || c->of[k] > 0)
            append(text, sizeof text, "%s%s%s %zu%s", k ? "    " : "",
                   c->of[k] && k <= VERDICT_FASTER ? "**" : "",
                   verdict_word((enum verdict_kind)k), c->of[k],
                   c->of[k] && k <= VERDICT_FASTER ? "**" : "");
    struct node *strip = add_text(section, PARAGRAPH, EVERYWHERE, "%s", text);
    if (strip)
        strip->tone = c->broken || c->of[VERDICT_SLOWER] ? BAD : GOOD;
    if (c->failing)
        add_text(section, NOTE, EVERYWHERE,
                 gate ? "%zu %s the gate: slower by the budget or more, and confirmed."
                      : "%zu %s: slower by the budget or more, and confirmed.",
                 c->failing, gate ? c->failing == 1 ? "fails" : "fail" : "would fail --gate");
    if (c->shift.machine)
        add_text(section, NOTE, EVERYWHERE, "**The machine**: %s.  Compare again.",
                 c->shift.reason);
}

/* How much was measured, and the yardstick. */
static void add_measured(struct node *section, const struct comparison *c)
{
    int launches = 0, rounds = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct pair_row *row = &c->rows[i];
        const int each = row->launches > 0 ? row->rounds / row->launches : 0;
        launches = row->launches > launches ? row->launches : launches;
        rounds = each > rounds ? each : rounds;
    }
    char mean[64] = "";
    if (c->known > 0)
        snprintf(mean, sizeof mean, ": %+.1f %% by the geometric mean of what is known",
                 100.0 * (c->geomean - 1.0));
    add_text(
        section, NOTE, EVERYWHERE,
        "%zu pair%s timed, in up to %d launches of up to %d rounds%s.  Base was %.1f %% from "
        "its own copy (median; at most %.1f %%).",
        c->timed, c->timed == 1 ? "" : "s", launches, rounds, mean, 100.0 * c->null_median,
        100.0 * c->null_most);
}

/* "1 204 checks", "46 problems of 214 259 values and 100 cases": how much was compared; false: nothing was. */
static bool compared_words(const struct results *r, char text[WORDS])
{
    const json_t *compare = json_object_get(r->header, "compare");
    const double checks = record_value(compare, "results", -1.0);
    double problems = 0.0, values = 0.0, cases = 0.0;
    for (size_t i = 0; i < r->n_agreements; i++) {
        problems += record_value(r->agreements[i], "problems", 0.0);
        values += record_value(r->agreements[i], "values", 0.0);
        cases += record_value(r->agreements[i], "cases", 0.0);
    }
    *text = 0;
    if (r->n_agreements > 0)
        snprintf(text, WORDS, " of %s cases, and %s values of %s problems", show_count(cases),
                 show_count(values), show_count(problems));
    else if (checks >= 0.0)
        snprintf(text, WORDS, " of %s checks", show_count(checks));
    return *text || r->n_changes > 0;
}

static void add_results_line(struct node *section, const struct results *r,
                             const struct comparison *c)
{
    char of[WORDS];
    if (!compared_words(r, of))
        return;
    struct node *line = add_text(section, PARAGRAPH, EVERYWHERE,
                                 "Results%s: **%zu worse**, %zu better, %zu otherwise changed.",
                                 of, c->worse, c->better, c->moved);
    if (line)
        line->tone = c->worse ? BAD : GOOD;
}

/* ---- Pairs ---- */

static bool any_counted(const struct comparison *c)
{
    bool any = false;
    for (size_t i = 0; i < c->n; i++)
        any = any || !isnan(c->rows[i].base_counted) || !isnan(c->rows[i].head_counted);
    return any;
}

static void why_of(const struct pair_row *row, char text[WORDS])
{
    snprintf(text, WORDS, "%.240s", row->reason);
    if (row->kind == VERDICT_UNCLEAR && row->more_s > 0.0)
        append(text, WORDS, "%sabout %.0f s more", *text ? "; " : "", ceil(row->more_s));
}

/* "13.0 (+4.0 %)" */
static void counted_cell(struct table *t, const struct pair_row *row)
{
    if (isnan(row->head_counted))
        table_cell(t, "-");
    else if (isnan(row->base_counted))
        table_cell(t, "%.3g", row->head_counted);
    else
        table_cell(t, "%.3g (%+.1f %%)", row->head_counted,
                   100.0 * (row->head_counted / row->base_counted - 1.0));
}

static void add_row(struct table *t, const struct pair_row *row, bool counted)
{
    char why[WORDS];
    why_of(row, why);
    table_line(t, "%s %s%s%s", row->id, row->backend, *why ? ": " : "", why);
    table_cell(t, "%s", row->id);
    table_cell(t, "%s", row->backend);
    table_cell(t, "%s", row_word(row));
    table_cell(t, "%s", row->base_ns > 0.0 ? show_time(row->base_ns) : "-");
    table_cell(t, "%s", row->head_ns > 0.0 ? show_time(row->head_ns) : "-");
    if (isnan(row->ratio)) {
        table_cell(t, "-");
        table_cell(t, "-");
    } else {
        table_cell(t, "%+.1f %%", 100.0 * (row->ratio - 1.0));
        if (row->launches > 1)
            table_cell(t, "[%+.1f, %+.1f] %%", 100.0 * (row->lo - 1.0),
                       100.0 * (row->hi - 1.0));
        else
            table_cell(t, "one launch"); /* whose rounds are one sample */
    }
    if (counted)
        counted_cell(t, row);
    table_cell(t, "%s", why);
}

static bool is_folded(const struct pair_row *row)
{
    return row->kind == VERDICT_SAME || row->kind == VERDICT_IDENTICAL;
}

static struct table *add_rows(struct node *section, const struct comparison *c, bool folded)
{
    const bool counted = any_counted(c);
    struct table *t = add_table(section, EVERYWHERE,
                                counted ? "~case|~backend|verdict|>base|>head|>change|interval|"
                                          ">?instructions;instr.|~why"
                                        : "~case|~backend|verdict|>base|>head|>change|interval|"
                                          "~why");
    for (size_t i = 0; i < c->n; i++)
        if (is_folded(&c->rows[i]) == folded)
            add_row(t, &c->rows[i], counted);
    return t;
}

static void add_pairs(struct node *into, const struct comparison *c, bool all)
{
    struct node *section = add_section(into, EVERYWHERE, "Times");
    const size_t folded = c->of[VERDICT_SAME] + c->of[VERDICT_IDENTICAL], seen = c->n - folded;
    struct table *t = add_rows(section, c, false);
    if (t)
        t->brief = BRIEF;
    if (2 * seen > BRIEF && !all)
        add_text(section, NOTE, ON_TERMINAL, "%zu more rows are shown with --all.",
                 seen - BRIEF / 2);
    if (folded > 0 && !all)
        add_text(section, NOTE, ON_TERMINAL, "%zu the same, %zu of identical code: not listed.",
                 c->of[VERDICT_SAME], c->of[VERDICT_IDENTICAL]);
    if (folded > 0)
        add_rows(add_section(section, DETAIL, "%zu the same, %zu of identical code",
                             c->of[VERDICT_SAME], c->of[VERDICT_IDENTICAL]),
                 c, true);
    add_drawing(
        section,
        "Change of each pair with its interval; grey: the floor, what base differs from "
        "itself; shaded: the budget; above all, base against its own copy",
        evidence_forest(c), NULL);
}

/* ---- Results ---- */

static void add_change(struct table *t, const struct change_row *row)
{
    char base[SIDE_TEXT], head[SIDE_TEXT], bits[64] = "";
    const double moved = record_value(row->json, "moved", -1.0),
                 of = record_value(row->json, "of", -1.0),
                 limit = record_value(row->json, "limit", -1.0);
    change_side(row, "base", base);
    change_side(row, "head", head);
    if (moved >= 0.0 && of > 0.0)
        snprintf(bits, sizeof bits, ": %s of %s", show_count(moved), show_count(of));
    table_line(t, "%s %s%s%s", row->id, row->backend, *row->witness ? ": " : "", row->witness);
    table_cell(t, "%s", row->id);
    table_cell(t, "%s", row->backend);
    table_cell(t, "%s", row->worse > 0 ? "worse" : row->worse < 0 ? "better" : "changed");
    table_cell(t, "%s%s", row->what, bits);
    table_cell(t, "%s", base);
    table_cell(t, "%s", head);
    if (limit >= 0.0)
        table_cell(t, "%.3g", limit);
    else
        table_cell(t, "%s", "");
    table_cell(t, "%s", row->witness);
}

static void add_changes(struct node *into, const struct comparison *c, bool all)
{
    struct node *section = add_section(into, EVERYWHERE, "What changed in results");
    struct table *t =
        add_table(section, EVERYWHERE, "~case|~backend||what|>base|>head|>limit|~where");
    for (size_t i = 0; i < c->n_changes; i++)
        add_change(t, &c->changes[i]);
    if (t)
        t->brief = BRIEF;
    if (2 * c->n_changes > BRIEF && !all)
        add_text(section, NOTE, ON_TERMINAL, "%zu more are shown with --all.",
                 c->n_changes - BRIEF / 2);
}

/* ---- What to type next ---- */

/* The words of the command that say what is compared: not which rows, nor where the result goes. */
static json_t *words_kept(const json_t *argv)
{
    static const char *const with_value[] = { "--out", "--case", "--backend", "--explain" },
                             *const flags[] = { "--force", "--gate", "--strict", "--all" };
    json_t *kept = json_array();
    for (size_t i = 0; i < json_array_size(argv); i++) {
        const char *word = json_string_value(json_array_get(argv, i));
        bool keep = word != NULL;
        for (int k = 0; keep && k < 4; k++) {
            const size_t n = strlen(with_value[k]);
            keep = strcmp(word, flags[k]) != 0 &&
                   !(strncmp(word, with_value[k], n) == 0 && (!word[n] || word[n] == '='));
            i += !keep && strcmp(word, with_value[k]) == 0; /* its value, too */
        }
        if (keep)
            json_array_append_new(kept, json_string(word));
    }
    return kept;
}

static void add_next(struct node *into, const struct results *r, const struct comparison *c)
{
    char command[1024];
    json_t *header = json_pack("{s:o}", "argv", words_kept(json_object_get(r->header, "argv")));
    command_of(header, command, sizeof command);
    json_decref(header);
    if (!*command || c->n == 0 || is_folded(&c->rows[0]) || isnan(c->rows[0].ratio))
        return;
    const struct pair_row *row = &c->rows[0];
    const bool unclear = row->kind == VERDICT_UNCLEAR;
    struct node *section = add_section(into, EVERYWHERE, "Next");
    add_text(section, PARAGRAPH, EVERYWHERE,
             unclear
                 ? "To know more of one that is unclear, and to see what a verdict rests on:"
                 : "To time one of them again, and to see what its verdict rests on:");
    add_text(section, CODE, EVERYWHERE,
             "%s \\\n    --case %s --backend %s\n%s \\\n    --explain %s\n", command, row->id,
             row->backend, command, row->id);
}

void section_compare(struct node *into, const struct results *r,
                     const struct render_options *options)
{
    struct comparison c;
    if (!has_comparison(r))
        return;
    struct node *section = add_heading(into, r);
    if (comparison_make(r, &c)) {
        if (section)
            section->failed = true;
        return;
    }
    if (options->explain) {
        explain_pairs(section, &c, options->explain);
    } else {
        add_obstacles(section, r);
        if (c.n > 0)
            add_verdicts(section, r, &c);
        add_results_line(section, r, &c);
        if (c.timed > 0)
            add_measured(section, &c);
        add_pairs(section, &c, options->all);
        add_changes(section, &c, options->all);
        section_trends(section, r);
        add_next(section, r, &c);
    }
    comparison_free(&c);
}
