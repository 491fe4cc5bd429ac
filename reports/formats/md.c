/*
 * Markdown: reads well on a forge and as plain text.
 */
#include "md.h"
#include "reports/glossary.h"
#include "reports/report.h"

#include <stdint.h>
#include <string.h>

/* Cells are one line each and hold no bar of their own, nor what a forge would take for HTML; between
 * backticks that stands for itself. */
static void write_cell(const char *text, FILE *out)
{
    for (bool code = false; *text; text++) {
        code = code != (*text == '`');
        if (*text == '|' || (*text == '<' && !code))
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
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

static void write_section(const struct node *node, int level, size_t rows, FILE *out)
{
    if (node->medium == DETAIL)
        fprintf(out, "<details><summary>%s</summary>\n\n", node->text);
    else
        fprintf(out, "%.*s %s\n\n", level, "######", node->text);
    for (const struct node *child = node->first; child; child = child->next)
        md_node(child, level + 1, rows, out);
    if (node->medium == DETAIL)
        fputs("</details>\n\n", out);
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
        fprintf(out, "%s\n\n", node->text);
        break;
    case NOTE:
        fprintf(out, "> %s\n\n", node->text);
        break;
    case ITEM:
    case TERM:
        fprintf(out, "- %s\n%s", node->text,
                node->next && node->next->kind == node->kind ? "" : "\n");
        break;
    case CODE:
        fprintf(out, "```\n%s```\n\n", node->text);
        break;
    case TABLE:
        write_table(node->table, rows, out);
        break;
    case FIGURE:
        if (node->picture)
            fprintf(out, "![%s](%s)\n\n", node->text, node->picture);
        else if (node->plain)
            fprintf(out, "```\n%s```\n\n%s\n\n", node->plain, node->text);
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
