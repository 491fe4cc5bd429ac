/*
 * The section that says how many checks passed: for each kernel and each suite, by backend.
 */
#include "reports/report.h"

#include <string.h>

enum { MAX_SUITES = 16 };

void add_tally_cell(struct counts counts, struct table *table)
{
    int ran = counts.pass + counts.fail + counts.crash + counts.weak;
    if (counts.total == 0)
        table_cell(table, "·");
    else if (ran == 0)
        table_cell(table, "%s", counts.unsupported ? "cannot run" : "skipped");
    else if (counts.crash)
        table_cell(table, "☠ %d/%d", counts.crash, ran);
    else if (counts.fail)
        table_cell(table, "✗ %d/%d", counts.fail, ran);
    else if (counts.weak)
        table_cell(table, "● %d, %d weak", counts.pass, counts.weak);
    else
        table_cell(table, "● %d", counts.pass);
}

static struct table *by_backend(struct node *section, const struct results *r,
                                const char *first)
{
    char head[1024];
    size_t at = (size_t)snprintf(head, sizeof head, "%s", first);
    for (size_t b = 0; b < r->n_backends && at < sizeof head; b++)
        at += (size_t)snprintf(head + at, sizeof head - at, "|%s", r->backends[b].id);
    return add_table(section, EVERYWHERE, head);
}

static void row(const struct results *r, const char *kernel, const char *suite,
                struct table *table)
{
    table_cell(table, "%s", kernel ? kernel : suite);
    for (size_t b = 0; table && b < r->n_backends && (int)b + 1 < table->n_columns; b++)
        add_tally_cell(count_conf(r, kernel, r->backends[b].id, suite), table);
}

/* The kinds of evidence in order of appearance. */
static size_t suites_of(const struct results *r, const char *suites[MAX_SUITES])
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_conf; i++) {
        size_t s = 0;
        while (s < n && strcmp(suites[s], r->conf[i].suite) != 0)
            s++;
        if (s == n && n < MAX_SUITES)
            suites[n++] = r->conf[i].suite;
    }
    return n;
}

/* What was drawn of a kernel is the same for all backends that take its types: the most counts. */
static void add_classes(struct node *section, const struct results *r)
{
    double met = 0.0, of = 0.0, pairs = 0.0;
    for (size_t k = 0; k < r->n_kernels; k++) {
        const struct conf_row *most = NULL;
        for (size_t i = 0; i < r->n_conf; i++)
            if (strcmp(r->conf[i].kernel, r->kernels[k]) == 0 &&
                (!most || r->conf[i].classes_of > most->classes_of))
                most = &r->conf[i];
        met += most ? most->classes : 0.0;
        of += most ? most->classes_of : 0.0;
        pairs += most ? most->pairs : 0.0;
    }
    if (of > 0.0)
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "Problems drawn at random had %.0f of the %.0f classes of values that fields "
                 "have, and %.0f pairs of classes.",
                 met, of, pairs);
}

void section_conformance(struct node *into, const struct results *r,
                         const struct render_options *options)
{
    (void)options;
    if (r->n_conf == 0)
        return;
    struct node *section = add_section(into, EVERYWHERE, "Conformance");
    add_text(section, PARAGRAPH, EVERYWHERE,
             "Checks passed (●), failed (✗) or crashed (☠) of all that ran; · where none "
             "ran.");
    struct table *table = by_backend(section, r, "kernel");
    for (size_t k = 0; k < r->n_kernels; k++)
        row(r, r->kernels[k], NULL, table);
    const char *suites[MAX_SUITES];
    size_t n = suites_of(r, suites);
    table = by_backend(section, r, "evidence");
    for (size_t s = 0; s < n; s++)
        row(r, NULL, suites[s], table);
    add_classes(section, r);
}
