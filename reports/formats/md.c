/*
 * Markdown: reads well on a forge and as plain text.
 */
#include "md.h"
#include "reports/glossary.h"
#include "reports/report.h"

#include <stdint.h>
#include <string.h>

/* Where the code that begins at a backtick ends; NULL: it is a backtick and no mark.  In a cell a
 * backslash before a bar would end the cell in it. */
static const char *end_of_code(const char *text, bool cell)
{
    const char *end = strchr(text + 1, '`'), *bar = cell ? strstr(text, "\\|") : NULL;
    return end && end > text + 1 && end[1] != '`' && !(bar && bar < end) ? end : NULL;
}

/* Text with its marks, `code` and **strong words**.  What else Markdown would take for one (HTML,
 * links, pictures, code without an end, and of a cell its end) stands behind a backslash. */
static void write_marked(const char *text, bool cell, FILE *out)
{
    while (*text) {
        const char *end = *text == '`' ? end_of_code(text, cell) : NULL;
        if (!end && strchr(cell ? "`<[]\\|" : "`<[]\\", *text))
            fputc('\\', out);
        for (size_t n = end ? (size_t)(end - text) + 1 : 1; n > 0; n--, text++) {
            if (end && cell && *text == '|')
                fputc('\\', out);
            fputc(*text == '\n' && cell ? ' ' : *text, out);
        }
    }
}

static void write_cell(const char *text, FILE *out) { write_marked(text, true, out); }

/* A block of code between fences longer than any that it holds. */
static void write_code(const char *text, FILE *out)
{
    int fence = 3;
    for (const char *at = text; (at = strchr(at, '`'));) {
        const int n = (int)strspn(at, "`");
        fence = n >= fence ? n + 1 : fence;
        at += n;
    }
    for (int line = 0; line < 2; line++) {
        for (int i = 0; i < fence; i++)
            fputc('`', out);
        fprintf(out, "\n%s", line == 0 ? text : "\n");
    }
}

void md_summary(const char *text, FILE *out)
{
    fputs("<details><summary>", out);
    for (; *text; text++)
        fprintf(out, strchr("<>&", *text) ? "&#%d;" : "%c", *text);
    fputs("</summary>\n\n", out);
}

static bool is_shown(const struct column *column)
{
    return is_seen(column->medium, false, true) && !column->bar;
}

static void write_row(const struct table *t, size_t row, FILE *out)
{
    if (!table_at(t, row, 0)) /* a line for terminals: pages have the same in columns */
        return;
    for (int c = 0, n = 0; c < t->n_columns; c++) {
        if (!is_shown(&t->column[c]))
            continue;
        fputs(n++ ? " | " : "| ", out);
        write_cell(table_at(t, row, c), out);
    }
    fputs(" |\n", out);
}

static void write_table(const struct table *t, size_t rows, FILE *out)
{
    const size_t all = table_rows(t);
    for (int c = 0, n = 0; c < t->n_columns; c++) {
        if (!is_shown(&t->column[c]))
            continue;
        fputs(n++ ? " | " : "| ", out);
        write_cell(t->column[c].head, out);
    }
    fputs(" |\n", out);
    for (int c = 0; c < t->n_columns; c++)
        if (is_shown(&t->column[c]))
            fputs(t->column[c].right ? "|---:" : "|---", out);
    fputs("|\n", out);
    for (size_t row = 0; row < all && row < rows; row++)
        write_row(t, row, out);
    fputc('\n', out);
    if (all > rows)
        fprintf(out, "%zu more.\n\n", all - rows);
}

void md_text(const char *text, FILE *out) { write_marked(text, false, out); }

static void write_block(const char *before, const char *text, const char *after, FILE *out)
{
    fputs(before, out);
    write_marked(text, false, out);
    fputs(after, out);
}

static void write_section(const struct node *node, int level, size_t rows, FILE *out)
{
    static const char level_marks[] = "###### ";
    if (node->medium == DETAIL)
        md_summary(node->text, out);
    else
        write_block(level_marks + 6 - level, node->text, "\n\n", out);
    for (const struct node *child = node->first; child; child = child->next)
        md_node(child, level + 1, rows, out);
    if (node->medium == DETAIL)
        fputs("</details>\n\n", out);
}

static void write_figure(const struct node *node, FILE *out)
{
    if (node->picture) {
        write_block("![", node->text, "](", out);
        fprintf(out, "%s)\n\n", node->picture);
    } else if (node->plain) {
        write_code(node->plain, out);
        write_block("", node->text, "\n\n", out);
    }
}

void md_node(const struct node *node, int level, size_t rows, FILE *out)
{
    if (!node_is_seen(node, false, true))
        return;
    switch (node->kind) {
    case SECTION:
        write_section(node, level, rows, out);
        break;
    case PARAGRAPH:
        write_block("", node->text, "\n\n", out);
        break;
    case NOTE:
        write_block("> ", node->text, "\n\n", out);
        break;
    case ITEM:
    case TERM:
        write_block("- ", node->text,
                    node->next && node->next->kind == node->kind ? "\n" : "\n\n", out);
        break;
    case CODE:
        write_code(node->text, out);
        break;
    case TABLE:
        write_table(node->table, rows, out);
        break;
    case FIGURE:
        write_figure(node, out);
        break;
    }
}

int format_md(const json_t *records, FILE *out, const struct render_options *options)
{
    struct node *root = report_make(records, options);
    if (!root || !glossary_explain(root, false, true)) {
        document_free(root);
        return -1;
    }
    write_section(root, 1, SIZE_MAX, out);
    document_free(root);
    return 0;
}
