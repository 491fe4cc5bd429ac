/*
 * A report for a terminal: tables in aligned columns that fit it, text broken at its width, and
 * only characters that it has.
 */
#define _DEFAULT_SOURCE
#include "grid.h"
#include "reports/glossary.h"
#include "reports/report.h"
#include "reports/text/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { STANDARD_WIDTH = 100, LEAST_BAR = 6, WIDEST_BAR = 24 };

struct console {
    FILE *out;
    int width;
    bool color, utf8, all;
    bool begun, failed;
    enum node_kind last; /* what was written last */
};

static int columns_of(FILE *out, int wanted)
{
    if (wanted > 0)
        return wanted;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    struct winsize size;
    if (n <= 0 && fileno(out) >= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0)
        n = size.ws_col;
    return n >= 40 ? n : STANDARD_WIDTH;
}

/* The locale's character set by its name, as a terminal's user has set it. */
static bool utf8_here(void)
{
    const char *names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strstr(value, "UTF-8") || strstr(value, "utf8") || strstr(value, "UTF8") ||
                   strstr(value, "utf-8");
    }
    return false;
}

static struct console console_of(FILE *out, const struct render_options *options)
{
    const char *no_color = getenv("NO_COLOR");
    bool terminal = fileno(out) >= 0 && isatty(fileno(out));
    return (struct console){
        .out = out,
        .width = columns_of(out, options->width),
        .color = options->color >= 0 ? options->color : terminal && !(no_color && *no_color),
        .utf8 = utf8_here(),
        .all = options->all,
    };
}

/* ---- Text ---- */

static const char *color_of(const struct console *c, enum tone tone)
{
    return !c->color ? "" : tone == BAD ? "\033[31m" : tone == GOOD ? "\033[32m" : "";
}

/* What a terminal without UTF-8 is shown for a character; "": the character itself. */
static const char *ascii_for(const char *text, size_t *bytes)
{
    static const char *const words[][2] = {
        { "●", "ok" }, { "✗", "FAIL" }, { "☠", "CRASH" }, { "·", "." }, { "±", "+-" },
        { "▁", "_" },  { "▂", "." },    { "▃", "-" },     { "▄", "=" }, { "▅", "+" },
        { "▆", "*" },  { "▇", "%" },    { "█", "#" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *bytes = strlen(words[i][0]);
        if (strncmp(text, words[i][0], *bytes) == 0)
            return words[i][1];
    }
    return "";
}

/* Characters of what GitHub's runners would take for a command, where a word of a text begins with
 * it, and which is shown with a backslash before its last character: ::error, ##[group]. */
static size_t command_at(const char *text, const char *at)
{
    return strncmp(at, "##[", 3) == 0                                   ? 3
           : strncmp(at, "::", 2) == 0 && (at == text || at[-1] == ' ') ? 2
                                                                        : 0;
}

/* Without the marks of strong words and of code; to be freed. */
static char *plain(struct console *c, const char *whole)
{
    const char *text = whole;
    char *out = malloc(2 * strlen(text) + 1), *to = out;
    while (out && *text) {
        const size_t command = command_at(whole, text);
        if (command > 0) {
            to += sprintf(to, "%.*s\\%c", (int)command - 1, text, text[command - 1]);
            text += command;
            continue;
        }
        size_t skip = strncmp(text, "**", 2) == 0 ? 2 : *text == '`';
        const char *word = skip || c->utf8 ? "" : ascii_for(text, &skip);
        if (*word)
            to += sprintf(to, "%s", word);
        else if (!(strncmp(text, "**", 2) == 0 || *text == '`')) {
            skip = 1;
            *to++ = *text;
        }
        text += skip;
    }
    c->failed = c->failed || !out;
    if (out)
        *to = 0;
    return out;
}

/* Broken at blanks; `mark` before the first line, and as much room before the others. */
static void write_wrapped(struct console *c, const char *mark, const char *marked)
{
    char *text = plain(c, marked);
    int indent = (int)strlen(mark), column = 0;
    for (const char *word = text; word && *word;) {
        int blanks = (int)strspn(word, " "), n = (int)strcspn(word + blanks, " ");
        while (strncmp(word + blanks + n, " %", 2) == 0) /* stays with its number */
            n += 2 + (int)strcspn(word + blanks + n + 2, " ");
        char *end = text + (word - text) + blanks + n;
        char after = *end;
        *end = 0;
        int takes = text_width(word + blanks);
        if (column == 0 || column + blanks + takes > c->width) {
            fprintf(c->out, "%s%*s%s", column ? "\n" : mark, column ? indent : 0, "",
                    word + blanks);
            column = indent + takes;
        } else {
            fprintf(c->out, "%*s%s", blanks, "", word + blanks);
            column += blanks + takes;
        }
        *end = after;
        word = end;
    }
    fputc('\n', c->out);
    free(text);
}

static void write_code(const struct console *c, const char *text)
{
    for (size_t n; (n = strcspn(text, "\n")) > 0; text += n + (text[n] != 0)) {
        text_print(c->out, "    %.*s\n", (int)n, text);
    }
}

/* ---- Tables ---- */

/* Eighths of a block where they can be shown. */
static void bar_cell(const struct console *c, const char *ratio, int width, struct grid *grid)
{
    static const char *const eighth[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    char text[4 * WIDEST_BAR] = "";
    double share = atof(ratio), length = (share > 1.0   ? 1.0
                                          : share > 0.0 ? share
                                                        : 0.0) *
                                         width;
    int whole = (int)length, at = 0;
    for (int i = 0; i < whole; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, "%s", c->utf8 ? "█" : "#");
    if (c->utf8)
        snprintf(text + at, sizeof text - (size_t)at, "%s",
                 eighth[(int)((length - whole) * 8.0)]);
    grid_cell(grid, "%s", text);
}

/* The columns and rows of a table that a terminal is shown, bars of that width (0: none), without the
 * first so many of the columns that can be spared. */
static void make_grid(struct console *c, const struct table *t, int bar, int without,
                      struct grid *grid)
{
    char head[2048];
    size_t at = 0, rows = t->brief && !c->all ? t->brief : table_rows(t);
    bool seen[TABLE_COLUMNS];
    for (int i = 0, n = 0; i < t->n_columns; i++) {
        seen[i] = is_seen(t->column[i].medium, true, c->all) && (bar || !t->column[i].bar) &&
                  !(t->column[i].spare && without-- > 0);
        if (seen[i] && at < sizeof head)
            at += (size_t)snprintf(head + at, sizeof head - at, "%s%s%s", n++ ? "|" : "",
                                   t->column[i].right ? ">" : "", t->column[i].brief);
    }
    grid_begin(grid, head);
    grid->room = c->width;
    for (size_t row = 0; row < table_rows(t) && row < rows; row++) {
        bool line = !table_at(t, row, 0);
        for (int i = line ? 1 : 0; i < (line ? 2 : t->n_columns); i++) {
            char *text = line || seen[i] ? plain(c, table_at(t, row, i)) : NULL;
            if (text && line)
                grid_line(grid, text);
            else if (text && t->column[i].bar)
                bar_cell(c, text, bar, grid);
            else if (text)
                grid_cell(grid, "%s", text);
            free(text);
        }
    }
    c->failed = c->failed || grid->failed;
}

/* Where the window is too narrow: less between the columns, heads in two lines, no indent, or a block
 * for each row. */
static void write_grid(const struct console *c, struct grid *grid)
{
    for (int way = 0; way < 3 && grid_width(grid) + 2 > c->width; way++) {
        grid->gap = way % 2 ? 2 : 1;
        grid->split = way > 0;
    }
    int room = c->width - grid_width(grid);
    if (room >= 0)
        grid_console(grid, room >= 2 ? "  " : "", c->out);
    else
        grid_blocks(grid, "  ", c->width, c->out);
}

/* With one blank between columns and heads in two lines. */
static int least_width(const struct grid *grid)
{
    struct grid tight = *grid;
    tight.gap = 1;
    tight.split = true;
    return grid_width(&tight);
}

/* Which columns were spared. */
static void tell_spared(const struct console *c, const struct table *t, int without)
{
    if (without == 0)
        return;
    fputs("  (no room for ", c->out);
    for (int i = 0, n = 0; i < t->n_columns && n < without; i++)
        if (t->column[i].spare)
            fprintf(c->out, "%s%s", n++ ? ", " : "", t->column[i].brief);
    fprintf(c->out, " in %d columns)\n", c->width);
}

/* Each row in some lines: what kind, whose and what, then all there is to say of it. */
static void write_listed(const struct console *c, const struct grid *grid)
{
    size_t n = (size_t)grid->columns;
    for (size_t row = n; row + n <= grid->cells_used; row += n) {
        char *const *cell = grid->cells + row;
        int indent = text_width(cell[0]) + 3;
        fprintf(c->out, "  %s%s%s %s  %s\n", color_of(c, BAD), cell[0],
                c->color ? "\033[0m" : "", cell[1], cell[2]);
        for (size_t i = 3; i < n; i++)
            if (*cell[i])
                fprintf(c->out, "%*s%s\n", indent, "", cell[i]);
    }
}

static void write_table(struct console *c, const struct table *t)
{
    struct grid grid;
    bool bars = false;
    int spare = 0, without = 0;
    for (int i = 0; i < t->n_columns; i++) {
        bars = bars || t->column[i].bar;
        spare += t->column[i].spare;
    }
    make_grid(c, t, 0, 0, &grid);
    while (without < spare && least_width(&grid) + 2 > c->width) {
        grid_end(&grid);
        make_grid(c, t, 0, ++without, &grid);
    }
    int space = c->width - grid_width(&grid) - 4;
    if (bars && space >= LEAST_BAR) { /* they take what is left */
        grid_end(&grid);
        make_grid(c, t, space < WIDEST_BAR ? space : WIDEST_BAR, without, &grid);
    }
    if (t->listed)
        write_listed(c, &grid);
    else
        write_grid(c, &grid);
    tell_spared(c, t, without);
    grid_end(&grid);
}

/* ---- The tree ---- */

static bool has_words(const struct console *c, const struct node *section)
{
    for (const struct node *child = section->first; child; child = child->next)
        if (child->kind != SECTION && node_is_seen(child, true, c->all))
            return true;
    return false;
}

static void write_node(struct console *c, const struct node *node, int depth);

/* A title needs something below it: the chapters of a section have titles of their own. */
static void write_section(struct console *c, const struct node *node, int depth)
{
    if (depth > 0 && has_words(c, node)) {
        char *title = plain(c, node->text);
        fprintf(c->out, "%s%s%s%s\n", c->begun ? "\n" : "", c->color ? "\033[1m" : "",
                title ? title : "", c->color ? "\033[0m" : "");
        free(title);
        c->begun = true;
        c->last = SECTION;
    }
    for (const struct node *child = node->first; child; child = child->next)
        write_node(c, child, depth + 1);
}

static void write_paragraph(struct console *c, const struct node *node, int depth)
{
    if (c->begun && (depth == 1 || c->last == TABLE))
        fputc('\n', c->out);
    fputs(color_of(c, node->tone), c->out);
    write_wrapped(c, depth == 1 ? "" : "  ", node->text);
    fputs(*color_of(c, node->tone) ? "\033[0m" : "", c->out);
}

static void write_node(struct console *c, const struct node *node, int depth)
{
    if (!node_is_seen(node, true, c->all))
        return;
    switch (node->kind) {
    case SECTION:
        write_section(c, node, depth);
        return;
    case PARAGRAPH:
        write_paragraph(c, node, depth);
        break;
    case NOTE:
    case ITEM:
    case TERM:
        write_wrapped(c, "  ", node->text);
        break;
    case CODE:
        write_code(c, node->text);
        break;
    case TABLE:
        if (c->last == TABLE)
            fputc('\n', c->out);
        write_table(c, node->table);
        break;
    case FIGURE:
        return;
    }
    c->begun = true;
    c->last = node->kind;
}

int format_console(const json_t *records, FILE *out, const struct render_options *options)
{
    struct console c = console_of(out, options);
    struct node *root = report_make(records, options);
    if (!root || !glossary_explain(root, true, c.all)) {
        document_free(root);
        return -1;
    }
    write_section(&c, root, 0);
    document_free(root);
    return c.failed ? -1 : 0;
}
