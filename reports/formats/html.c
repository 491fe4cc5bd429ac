/*
 * One file for a browser: nothing is loaded from elsewhere, pictures lie in it, and colours follow the
 * reader's choice of light or dark.
 */
#include "reports/glossary.h"
#include "reports/report.h"

#include <stdlib.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2024;--soft:#5b6470;--page:#fff;--line:#d9dee3;"
    "--tint:#f4f6f8;--bar:#3b7dd8;--good:#1a7f37;--bad:#c62828}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e3e6ea;--soft:#9aa4af;--page:#15181c;"
    "--line:#343a41;--tint:#1e2227;--bar:#5b9bf0;--good:#4ac26b;--bad:#ff7b72}}"
    "body{margin:0 auto;padding:1.5rem;max-width:72rem;color:var(--ink);background:var(--page);"
    "font:16px/1.5 system-ui,sans-serif}"
    "h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid "
    "var(--line);padding-bottom:.2rem}h3{font-size:1.05rem;margin-top:1.6rem}"
    "p,li{max-width:50rem}code,pre{font-family:ui-monospace,monospace;font-size:.9em}"
    "pre{background:var(--tint);padding:.7rem 1rem;overflow-x:auto}"
    ".note{border-left:.25rem solid var(--bar);padding:.1rem 1rem;color:var(--soft)}"
    ".terms{list-style:none;padding-left:1rem;color:var(--soft);font-size:.875rem}"
    ".wide{overflow-x:auto;margin:1rem 0}"
    "table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid var(--line);"
    "vertical-align:top}th{color:var(--soft);font-weight:600;white-space:nowrap}"
    ".r{text-align:right;white-space:nowrap}.good{color:var(--good)}.bad{color:var(--bad)}"
    "tr.top td{border-top:2px solid var(--line)}"
    ".bar{display:inline-block;width:8rem;height:.7rem;background:var(--tint)}"
    ".bar rect{fill:var(--bar)}summary{cursor:pointer;font-weight:600}"
    "figure{margin:1.5rem 0;overflow-x:auto}figure svg{max-width:100%;height:auto;"
    "background:#fff}figcaption{color:var(--soft)}";

static void write_escaped(const char *text, size_t n, FILE *out)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '<')
            fputs("&lt;", out);
        else if (text[i] == '>')
            fputs("&gt;", out);
        else if (text[i] == '&')
            fputs("&amp;", out);
        else if (text[i] == '"')
            fputs("&quot;", out);
        else
            fputc(text[i], out);
    }
}

/* Text with its marks: `code` and **strong words**; a mark without its partner stands for itself. */
static void write_marked(const char *text, FILE *out)
{
    while (*text) {
        bool strong = strncmp(text, "**", 2) == 0, code = *text == '`';
        size_t mark = strong ? 2 : 1;
        const char *end = strong ? strstr(text + 2, "**") : code ? strchr(text + 1, '`') : NULL;
        if (!end) {
            size_t n = strong || code ? mark : strcspn(text, "*`");
            n = n ? n : 1;
            write_escaped(text, n, out);
            text += n;
            continue;
        }
        fputs(strong ? "<strong>" : "<code>", out);
        write_escaped(text + mark, (size_t)(end - text) - mark, out);
        fputs(strong ? "</strong>" : "</code>", out);
        text = end + mark;
    }
}

static void write_bar(const char *ratio, FILE *out)
{
    double share = atof(ratio);
    share = share > 1.0 ? 1.0 : share > 0.0 ? share : 0.0;
    if (*ratio)
        fprintf(
            out,
            "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" "
            "role=\"img\" aria-label=\"%.0f %%\"><rect width=\"%.1f\" height=\"10\"/></svg>",
            100.0 * share, 100.0 * share);
}

/* What a cell says of right and wrong, by how it begins. */
static const char *tone_of(const char *cell)
{
    static const char *const bad[] = { "✗", "☠", "FAIL", "CRASH", "SLOWER", "worse" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (strncmp(cell, bad[i], strlen(bad[i])) == 0)
            return "bad";
    static const char *const good[] = { "●", "FASTER", "better" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (strncmp(cell, good[i], strlen(good[i])) == 0)
            return "good";
    return "";
}

static void write_cell(const struct column *column, const char *cell, FILE *out)
{
    const char *tone = tone_of(cell);
    if (column->right || *tone)
        fprintf(out, "<td class=\"%s\">", column->right ? "r" : tone);
    else
        fputs("<td>", out);
    if (column->bar)
        write_bar(cell, out);
    else
        write_marked(cell, out);
    fputs("</td>", out);
}

static void write_table(const struct table *t, FILE *out)
{
    fputs("<div class=\"wide\"><table>\n<tr>", out);
    for (int c = 0; c < t->n_columns; c++) {
        if (!is_seen(t->column[c].medium, false, true))
            continue;
        fprintf(out, "<th%s>", t->column[c].right ? " class=\"r\"" : "");
        write_marked(t->column[c].head, out);
        fputs("</th>", out);
    }
    fputs("</tr>\n", out);
    bool top = false;
    for (size_t row = 0; row < table_rows(t); row++) {
        if (!table_at(t, row, 0)) { /* what comes next belongs together */
            top = row > 0;
            continue;
        }
        fputs(top ? "<tr class=\"top\">" : "<tr>", out);
        top = false;
        for (int c = 0; c < t->n_columns; c++)
            if (is_seen(t->column[c].medium, false, true))
                write_cell(&t->column[c], table_at(t, row, c), out);
        fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
}

/* The picture's own text from its element svg on: a prologue has no place inside of a page. */
static void write_figure(const struct node *node, FILE *out)
{
    FILE *in = node->file ? fopen(node->file, "r") : NULL;
    char line[4096];
    bool inside = false;
    fputs("<figure>\n", out);
    fputs(node->drawing ? node->drawing : "", out);
    while (in && fgets(line, sizeof line, in)) {
        const char *begin = inside ? line : strstr(line, "<svg");
        inside = begin != NULL;
        if (begin)
            fputs(begin, out);
    }
    if (in)
        fclose(in);
    fputs("<figcaption>", out);
    write_marked(node->text, out);
    fputs("</figcaption>\n</figure>\n", out);
}

static void write_node(const struct node *node, int level, FILE *out);

static void write_children(const struct node *node, int level, FILE *out)
{
    enum node_kind list = SECTION; /* which is none */
    for (const struct node *child = node->first; child; child = child->next) {
        bool item = child->kind == ITEM || child->kind == TERM;
        enum node_kind now = item && node_is_seen(child, false, true) ? child->kind : SECTION;
        if (now != list) {
            fputs(list == SECTION ? "" : "</ul>\n", out);
            fputs(now == ITEM ? "<ul>\n" : now == TERM ? "<ul class=\"terms\">\n" : "", out);
        }
        list = now;
        write_node(child, level, out);
    }
    fputs(list == SECTION ? "" : "</ul>\n", out);
}

static void write_section(const struct node *node, int level, FILE *out)
{
    if (node->medium == DETAIL) {
        fputs("<details><summary>", out);
        write_marked(node->text, out);
        fputs("</summary>\n", out);
        write_children(node, level + 1, out);
        fputs("</details>\n", out);
        return;
    }
    fprintf(out, "<h%d>", level);
    write_marked(node->text, out);
    fprintf(out, "</h%d>\n", level);
    write_children(node, level + 1, out);
}

static void write_text(const char *open, const char *text, const char *close, FILE *out)
{
    fputs(open, out);
    write_marked(text, out);
    fputs(close, out);
}

static void write_node(const struct node *node, int level, FILE *out)
{
    if (!node_is_seen(node, false, true))
        return;
    switch (node->kind) {
    case SECTION:
        write_section(node, level < 6 ? level : 6, out);
        break;
    case PARAGRAPH:
        write_text("<p>", node->text, "</p>\n", out);
        break;
    case NOTE:
        write_text("<p class=\"note\">", node->text, "</p>\n", out);
        break;
    case ITEM:
    case TERM:
        write_text("<li>", node->text, "</li>\n", out);
        break;
    case CODE:
        fputs("<pre>", out);
        write_escaped(node->text, strlen(node->text), out);
        fputs("</pre>\n", out);
        break;
    case TABLE:
        write_table(node->table, out);
        break;
    case FIGURE:
        write_figure(node, out);
        break;
    }
}

int format_html(const json_t *records, FILE *out, const struct render_options *options)
{
    struct node *root = report_make(records, options);
    if (!root || !glossary_explain(root, false, true)) {
        document_free(root);
        return -1;
    }
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
            "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n",
            root->text, style);
    write_section(root, 1, out);
    fputs("</body>\n</html>\n", out);
    document_free(root);
    return 0;
}
