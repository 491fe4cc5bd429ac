/*
 * What several machines have in common and what not, before each of them is told by itself: a column
 * for each CPU.
 */
#include "reports/machines.h"
#include "reports/ranking.h"
#include "reports/report.h"
#include "reports/show.h"
#include "reports/trust.h"

#include <stdlib.h>
#include <string.h>

/* Machines that a table has columns for. */
enum { ACROSS = TABLE_COLUMNS - 3, CELL = 128 };

static size_t shown(const struct machines *m) { return m->n < ACROSS ? m->n : ACROSS; }

static struct table *by_machine(struct node *section, const struct machines *m,
                                const char *first)
{
    char head[64 + ACROSS * (MACHINE_NAME + 1)];
    size_t at = (size_t)snprintf(head, sizeof head, "%s", first);
    for (size_t i = 0; i < shown(m) && at < sizeof head; i++)
        at += (size_t)snprintf(head + at, sizeof head - at, "|%s", m->name[i]);
    return add_table(section, EVERYWHERE, head);
}

/* ---- The machines ---- */

static void conformance_words(const struct results *r, char text[CELL])
{
    const struct counts t = count_all(r);
    const int failed = t.fail + t.crash, ran = failed + t.pass + t.weak;
    if (ran == 0)
        snprintf(text, CELL, "not checked");
    else if (failed)
        snprintf(text, CELL, "**✗ %d of %d failed**", failed, ran);
    else
        snprintf(text, CELL, "● %d", ran);
}

static void add_machine_row(const struct machines *m, size_t i, struct table *table)
{
    const struct results *r = &m->of[i];
    char checked[CELL];
    size_t here = 0;
    json_t *trust = env_trust(r->env, r->noise, median_null(r));
    for (size_t b = 0; b < r->n_backends; b++)
        here += r->backends[b].available;
    conformance_words(r, checked);
    table_cell(table, "%s", m->name[i]);
    table_cell(table, "%s", record_text(r->env, "cpu.name"));
    table_cell(table, "%zu", here);
    table_cell(table, "%s", checked);
    if (r->n_bench)
        table_cell(table, "%zu, trust %s", r->n_cases, record_text(trust, "grade"));
    else
        table_cell(table, "none");
    table_cell(table, "%s", r->finished < r->runs ? "**partial**" : "whole");
    json_decref(trust);
}

static void add_machines(struct node *into, const struct machines *m)
{
    struct node *section = add_section(into, EVERYWHERE, "%zu machines", m->n);
    struct table *table = add_table(section, EVERYWHERE,
                                    "machine|CPU|?>backends here;backends|checks passed;passed|"
                                    "cases timed;timed|run");
    for (size_t i = 0; i < m->n; i++)
        add_machine_row(m, i, table);
    if (shown(m) < m->n)
        add_text(section, NOTE, EVERYWHERE, "The tables below have room for the first %zu.",
                 shown(m));
}

/* ---- Failures ---- */

static bool failed(const struct conf_row *c)
{
    return strcmp(c->status, "fail") == 0 || strcmp(c->status, "crash") == 0;
}

/* Whether no machine before `i` had that backend fail. */
static bool is_first(const struct machines *m, size_t i, const struct conf_row *row)
{
    for (size_t k = 0; k <= i; k++)
        for (size_t c = 0; c < m->of[k].n_conf; c++) {
            const struct conf_row *other = &m->of[k].conf[c];
            if (other == row)
                return true;
            if (failed(other) && strcmp(other->backend, row->backend) == 0)
                return false;
        }
    return true;
}

static void add_failure(const struct machines *m, const struct conf_row *row,
                        struct table *table)
{
    char where[256] = "";
    size_t at = 0;
    for (size_t i = 0; i < m->n && at < sizeof where; i++) {
        const struct counts t = count_conf(&m->of[i], NULL, row->backend, NULL);
        if (t.fail + t.crash)
            at += (size_t)snprintf(where + at, sizeof where - at, "%s%s (%d)", at ? ", " : "",
                                   m->name[i], t.fail + t.crash);
    }
    table_cell(table, "%s", row->backend);
    table_cell(table, "%s", where);
    table_cell(table, "%s", row->id);
}

static void add_failures(struct node *into, const struct machines *m)
{
    struct node *section = add_section(into, EVERYWHERE, "Backends that failed");
    struct table *table = add_table(section, EVERYWHERE, "backend|on|the first of them");
    for (size_t i = 0; i < m->n; i++)
        for (size_t c = 0; c < m->of[i].n_conf; c++)
            if (failed(&m->of[i].conf[c]) && is_first(m, i, &m->of[i].conf[c]))
                add_failure(m, &m->of[i].conf[c], table);
}

/* ---- Conformance ---- */

static void add_backend_cell(const struct results *r, const char *id, struct table *table)
{
    const struct backend_row *row = machine_backend(r, id);
    const struct counts t = count_conf(r, NULL, id, NULL);
    if (row && !row->available)
        table_cell(table, "cannot run");
    else
        add_tally_cell(t, table);
}

static void add_conformance(struct node *into, const struct machines *m)
{
    size_t n_kernels, n_backends, checks = 0;
    const char **kernels = machines_kernels(m, &n_kernels),
               **backends = machines_backends(m, &n_backends);
    for (size_t i = 0; i < m->n; i++)
        checks += m->of[i].n_conf;
    struct node *section = add_section(into, EVERYWHERE, "Conformance by CPU");
    if (checks > 0) {
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "Checks passed (●), failed (✗) or crashed (☠) of all that ran, of every "
                 "backend there; · where none ran.");
        struct table *table = by_machine(section, m, "kernel");
        for (size_t k = 0; k < n_kernels; k++) {
            table_cell(table, "%s", kernels[k]);
            for (size_t i = 0; i < shown(m); i++)
                add_tally_cell(count_conf(&m->of[i], kernels[k], NULL, NULL), table);
        }
        table = by_machine(section, m, "backend");
        for (size_t b = 0; b < n_backends; b++) {
            table_cell(table, "%s", backends[b]);
            for (size_t i = 0; i < shown(m); i++)
                add_backend_cell(&m->of[i], backends[b], table);
        }
    }
    free(kernels);
    free(backends);
}

/* ---- Who is fastest where ---- */

/* "avx512 = avx2 82 %", "avx512 + 2 tied 82 %": by the rule of ranking.h, with the share of the roof. */
static void add_fastest_cell(const struct results *r, const char *id, struct table *table)
{
    char names[CELL] = "";
    size_t at = 0;
    struct ranking k;
    rank_case(r, id, &k);
    for (size_t i = 0; i < k.n && k.tied <= 1; i++)
        if (k.standing[i] >= TIED && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? " = " : "",
                                   k.row[i]->backend);
    if (k.best && k.tied > 1)
        snprintf(names, sizeof names, "%s + %zu tied", k.best->backend, k.tied);
    if (k.n == 0 || k.standing[0] == NOT_TIMED)
        table_cell(table, "·");
    else if (!k.best)
        table_cell(table, telling_row(r, &k) ? "too noisy to tell" : "none conforms");
    else
        table_cell(table, "%s%s%s", names, k.best->roof_ratio > 0.0 ? " " : "",
                   k.best->roof_ratio > 0.0 ? show_percent(k.best->roof_ratio) : "");
}

/* A row of any machine that has the case. */
static const struct bench_row *row_of(const struct machines *m, const char *id)
{
    const struct bench_row *row = NULL;
    for (size_t i = 0; i < m->n && !row; i++)
        (void)rows_of_case(&m->of[i], id, &row, 1);
    return row;
}

static void add_case_row(const struct machines *m, const char *id, char line[CELL],
                         struct table *table)
{
    const json_t *model, *one = machines_model_case(m, id, &model);
    const struct bench_row *row = row_of(m, id);
    const char *title = one ? record_text(model, "title") : "",
               *profile = strcmp(row->profile, "given") == 0 ? "" : row->profile,
               *dtype = narrow_name(row->dtype);
    char above[CELL];
    snprintf(above, sizeof above, "%.64s%s%.48s", row->kernel, *title ? ", " : "", title);
    if (strcmp(above, line) != 0)
        table_line(table, "%s", above);
    memcpy(line, above, CELL);
    table_cell(table, "%s", title);
    table_cell(table, "`%s`", row->kernel);
    table_cell(table, "%s%s%s%s%s", short_shape(id, model), *dtype ? " " : "", dtype,
               *profile ? " " : "", profile);
    for (size_t i = 0; i < shown(m); i++)
        add_fastest_cell(&m->of[i], id, table);
}

static void add_fastest(struct node *into, const struct machines *m)
{
    size_t n;
    const char **cases = machines_cases(m, &n);
    struct node *section = add_section(into, EVERYWHERE, "The fastest by CPU");
    if (n > 0) {
        char line[CELL] = "";
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "The fastest backend of each CPU that conforms, all that tie with it (=), and "
                 "their share of that CPU's roof; · where nothing was timed.");
        struct table *table = by_machine(section, m, "~model|~kernel|shape");
        for (size_t i = 0; i < n; i++)
            add_case_row(m, cases[i], line, table);
    }
    free(cases);
}

void section_across(struct node *into, const json_t *records)
{
    struct machines m;
    if (machines_make(records, &m) != 0) {
        into->failed = true;
        return;
    }
    add_machines(into, &m);
    add_failures(into, &m);
    add_conformance(into, &m);
    add_fastest(into, &m);
    machines_free(&m);
}
