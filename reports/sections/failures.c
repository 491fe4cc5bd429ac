/*
 * Failed and crashed checks, each told once for all the backends that fail it in the same way.
 */
#include "reports/report.h"
#include "reports/show.h"

#include <string.h>

enum { LISTED = 50, BRIEF = 20, NAMED = 32 };

static bool failed(const struct conf_row *c)
{
    return strcmp(c->status, "fail") == 0 || strcmp(c->status, "crash") == 0;
}

/* The same check failing in the same way, on another backend. */
static bool alike(const struct conf_row *a, const struct conf_row *b)
{
    return failed(b) && strcmp(a->id, b->id) == 0 && strcmp(a->suite, b->suite) == 0 &&
           strcmp(a->status, b->status) == 0 && strcmp(a->witness, b->witness) == 0 &&
           strcmp(a->got, b->got) == 0 && strcmp(a->reason, b->reason) == 0;
}

/* "avx512, avx2" of the rows like row `at`; false when one before it named them. */
static bool name_alike(const struct results *r, size_t at, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < r->n_conf; i++) {
        if (!alike(&r->conf[at], &r->conf[i]))
            continue;
        if (i < at)
            return false;
        if (used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
                                     r->conf[i].backend);
    }
    return true;
}

static void describe(const struct conf_row *c, const char *backends, struct table *table)
{
    bool crash = strcmp(c->status, "crash") == 0;
    const struct shown_error shown = show_judged(c->max, c->limit, c->metric);
    const char *more =
        strncmp(c->reason, "got ", 4) == 0 ? "" : c->reason; /* told apart, next */
    table_cell(table, "%s", crash ? "CRASH" : "FAIL");
    table_cell(table, "%s", backends);
    table_cell(table, "%s", c->id);
    if (*c->metric && !crash)
        table_cell(table, "%s, limit %s%s%s", shown.error, shown.limit, *more ? "; " : "",
                   more);
    else
        table_cell(table, "%s", c->reason);
    if (*c->metric && *c->got && *c->witness && !crash)
        table_cell(table, "%s, got %s, want %s", c->witness, c->got, c->want);
    else
        table_cell(table, "%s", c->witness);
    table_cell(table, "%s%s%s", *c->repro ? "`" : "", c->repro, *c->repro ? "`" : "");
}

/* A report by model lists the failures of its kernels, and says where else there are some. */
static void add_elsewhere(struct node *section, const struct results *r)
{
    const char *names[NAMED];
    size_t n = other_kernels(r, true, names, NAMED), at = 0;
    struct counts t = count_others(r);
    char list[NAMED * 32] = "";
    for (size_t i = 0; i < n && at < sizeof list; i++)
        at +=
            (size_t)snprintf(list + at, sizeof list - at, "%s`%.24s`", i ? ", " : "", names[i]);
    if (n)
        add_text(section, PARAGRAPH, EVERYWHERE,
                 "%d %s of kernels that are not used here: %s.  `posenc verify --kernel NAME` "
                 "shows them.",
                 t.fail + t.crash, t.fail + t.crash == 1 ? "is" : "are", list);
}

void section_failures(struct node *into, const struct results *r,
                      const struct render_options *options)
{
    (void)options;
    struct counts t = count_all(r);
    struct node *section = add_section(into, EVERYWHERE, "%d failed", t.fail + t.crash);
    struct table *table =
        add_table(section, EVERYWHERE, "|backend|case|what|where|repeat with");
    size_t told = 0;
    if (table) {
        table->listed = true;
        table->brief = BRIEF;
    }
    for (size_t i = 0; i < r->n_conf && told <= LISTED; i++) {
        char backends[256];
        if (!failed(&r->conf[i]) || !name_alike(r, i, backends, sizeof backends))
            continue;
        if (told++ < LISTED)
            describe(&r->conf[i], backends, table);
    }
    if (told > BRIEF)
        add_text(section, PARAGRAPH, told > LISTED ? EVERYWHERE : ON_TERMINAL,
                 "The others are in the records (`--out jsonl`).");
    add_elsewhere(section, r);
}
