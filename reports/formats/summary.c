/*
 * The summary of a job on GitHub, for $GITHUB_STEP_SUMMARY: GitHub takes 1024 KiB of a step, and of more than
 * that nothing.
 */
#define _POSIX_C_SOURCE 200809L
#include "summary.h"
#include "md.h"
#include "reports/glossary.h"
#include "reports/outcome.h"
#include "reports/report.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    GITHUB_TAKES = 1024 * 1024,
    LEFT_OUT = 1024, /* bytes kept for saying what was left out */
    NAMED = 8,       /* sections that are named there */
};

static const struct {
    const char *name;
    void (*make)(struct node *, const struct results *, const struct render_options *);
} sections[] = {
#define SECTION_OF(name) { #name, section_##name },
#include "reports/sections.def"
#undef SECTION_OF
};

enum place { OPEN, FOLDED, NOWHERE };

/* A section that is not named here is evidence; what is the same of all machines is told of the first. */
static enum place place_of(const char *section, size_t machine)
{
    static const char *const open[] = { "verdict", "compare", "failures", "summary", "about" };
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (strcmp(section, open[i]) == 0)
            return OPEN;
    /* Pictures are files, which stay on the machine. */
    return strcmp(section, "pictures") == 0 || (machine > 0 && strcmp(section, "method") == 0)
               ? NOWHERE
               : FOLDED;
}

struct page {
    FILE *out;
    size_t left;      /* bytes that may follow, the note not counted */
    size_t n_dropped; /* sections */
    char dropped[LEFT_OUT - 512];
    bool failed;
};

/* What write() makes of a node, malloc'ed. */
static char *text_of(const struct node *node, size_t rows,
                     void (*write)(const struct node *, size_t, FILE *), size_t *bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes);
    if (!out)
        return NULL;
    write(node, rows, out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void write_children(const struct node *root, size_t rows, FILE *out)
{
    for (const struct node *child = root->first; child; child = child->next)
        md_node(child, 3, rows, out);
}

static void write_folded(const struct node *node, size_t rows, FILE *out)
{
    if (node->kind != SECTION) {
        md_node(node, 3, rows, out);
        return;
    }
    md_summary(node->text, out);
    write_children(node, rows, out);
    fputs("</details>\n\n", out);
}

static void drop(struct page *page, const char *title, size_t bytes)
{
    size_t at = strlen(page->dropped);
    if (page->n_dropped++ < NAMED && at < sizeof page->dropped)
        snprintf(page->dropped + at, sizeof page->dropped - at, "%s%.60s (%zu KiB)",
                 at ? ", " : "", title, bytes / 1024 + 1);
}

/* Writes what fits into `most` bytes: all of it, or with fewer and fewer rows where that is no matter, or
 * nothing. */
static void put(struct page *page, const struct node *node, const char *title, size_t most,
                bool by_rows, void (*write)(const struct node *, size_t, FILE *))
{
    static const size_t rows[] = { SIZE_MAX, 1024, 256, 64, 32, 16, 8, 4, 2, 1, 0 };
    size_t bytes = 0, whole = 0;
    char *text = NULL;
    for (size_t i = 0; i < (by_rows ? sizeof rows / sizeof *rows : 1); i++) {
        free(text);
        text = text_of(node, rows[i], write, &bytes);
        page->failed |= !text;
        whole = i == 0 ? bytes : whole;
        if (!text || bytes <= most)
            break;
    }
    if (text && bytes <= most) {
        page->left -= bytes;
        fputs(text, page->out);
    } else {
        drop(page, title, whole);
    }
    free(text);
}

/* One root for what is shown and one for what is folded. */
struct machine {
    struct results results;
    struct node *open, *folded;
    char title[200];
};

/* "Speed, amd-1a-02-1/KVM": whose evidence it is, where there are several machines. */
static bool name_sections(struct machine *m)
{
    for (struct node *node = m->folded->first; node; node = node->next) {
        if (node->kind != SECTION)
            continue;
        const size_t size = strlen(node->text) + strlen(m->title) + 3;
        char *text = malloc(size);
        if (!text)
            return false;
        snprintf(text, size, "%s, %s", node->text, m->title);
        free(node->text);
        node->text = text;
    }
    return true;
}

static bool make_machine(struct machine *m, const json_t *records, size_t at, size_t n)
{
    static const struct render_options none = { .color = -1 };
    if (results_make(records, at, &m->results))
        return false;
    results_narrow(&m->results);
    snprintf(m->title, sizeof m->title, "%.160s", record_text(m->results.env, "env_id"));
    m->open = document_make("");
    m->folded = document_make("");
    for (size_t i = 0; m->open && m->folded && i < sizeof sections / sizeof *sections; i++) {
        enum place place = place_of(sections[i].name, at);
        if (place != NOWHERE)
            sections[i].make(place == OPEN ? m->open : m->folded, &m->results, &none);
    }
    if (!m->open || !m->folded || (n > 1 && !name_sections(m)))
        return false;
    if (at + 1 == n) /* estimates are of no machine */
        section_estimates(m->folded, records);
    return glossary_explain(m->folded, false, true) && !document_failed(m->open) &&
           !document_failed(m->folded);
}

static void free_machine(struct machine *m)
{
    results_free(&m->results);
    document_free(m->open);
    document_free(m->folded);
}

/* Every machine's answers before anybody's evidence, none longer than its share of what is left. */
static void put_machines(struct page *page, struct machine *machines, size_t n)
{
    for (size_t m = 0; m < n; m++) {
        const size_t share = page->left / (n - m),
                     bytes = n > 1 ? 2 * strlen(machines[m].title) + 6 : 0; /* at most */
        if (share <= bytes) {
            drop(page, machines[m].title, 0);
            continue;
        }
        if (n > 1) {
            fputs("### ", page->out);
            md_text(machines[m].title, page->out);
            fputs("\n\n", page->out);
        }
        page->left -= bytes;
        put(page, machines[m].open, machines[m].title, share - bytes, true, write_children);
    }
    for (size_t m = 0; m < n; m++)
        for (const struct node *node = machines[m].folded->first; node; node = node->next) {
            if (node_is_seen(node, false, true))
                put(page, node, node->text, page->left, false, write_folded);
        }
}

/* What was left out, within LEFT_OUT bytes. */
static void write_note(const struct page *page, size_t limit)
{
    if (page->n_dropped == 0)
        return;
    fprintf(page->out, "> Left out, to stay within %zu KiB: ", limit / 1024);
    md_text(page->dropped, page->out);
    if (page->n_dropped > NAMED)
        fprintf(page->out, " and %zu more", page->n_dropped - NAMED);
    fputs(".  `posenc report RESULTS.jsonl --out md` has all of it.\n", page->out);
}

int summary_write(const json_t *records, FILE *out, size_t limit)
{
    const size_t n = results_machines(records);
    struct machine *machines = calloc(n, sizeof *machines);
    struct page page = { .out = out };
    struct outcome outcome;
    char words[OUTCOME_TEXT];
    page.failed = !machines || outcome_of(records, &outcome) != 0;
    for (size_t m = 0; !page.failed && m < n; m++)
        page.failed = !make_machine(&machines[m], records, m, n);
    if (!page.failed) {
        outcome_words(&outcome, words);
        page.left = limit - LEFT_OUT - (size_t)fprintf(out, "## posenc: %s\n\n", words);
        put_machines(&page, machines, n);
        write_note(&page, limit);
    }
    for (size_t m = 0; machines && m < n; m++)
        free_machine(&machines[m]);
    free(machines);
    return page.failed ? -1 : 0;
}

int format_summary(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    return summary_write(records, out, GITHUB_TAKES);
}
