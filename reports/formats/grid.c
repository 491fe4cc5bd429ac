/*
 * Lays out a table in columns of text for which a terminal has room (see grid.h).
 */
#define _POSIX_C_SOURCE 200809L
#include "grid.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int text_width(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80; /* continuation bytes take no column */
    return n;
}

static char *copy(const char *text, size_t n)
{
    char *s = malloc(n + 1);
    if (s) {
        memcpy(s, text, n);
        s[n] = 0;
    }
    return s;
}

static void append(struct grid *t, char *text)
{
    if (!text || t->failed) {
        free(text);
        t->failed = true;
        return;
    }
    if (t->cells_used == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        char **cells = realloc(t->cells, capacity * sizeof *cells);
        if (!cells) {
            free(text);
            t->failed = true;
            return;
        }
        t->cells = cells;
        t->capacity = capacity;
    }
    t->cells[t->cells_used++] = text;
}

void grid_begin(struct grid *t, const char *columns)
{
    *t = (struct grid){ .gap = 2 };
    for (const char *p = columns; t->columns < GRID_COLUMNS;) {
        size_t n = strcspn(p, "|");
        bool right = *p == '>';
        t->right[t->columns] = right;
        t->columns++;
        append(t, copy(p + right, n - right));
        if (!p[n])
            break;
        p += n + 1;
    }
}

void grid_cell(struct grid *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text) {
        va_start(list, format);
        vsnprintf(text, (size_t)n + 1, format, list);
        va_end(list);
    }
    append(t, text);
}

/* Marks a cell that takes the whole row, the rest of which is empty. */
#define LINE_MARK '\1'

void grid_line(struct grid *t, const char *text)
{
    grid_cell(t, "%c%s", LINE_MARK, text);
    for (int c = 1; c < t->columns; c++)
        grid_cell(t, "%s", "");
}

void grid_end(struct grid *t)
{
    for (size_t i = 0; i < t->cells_used; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct grid){ 0 };
}

/* Part of a cell: n bytes. */
struct span {
    const char *text;
    size_t n;
};

static int span_width(struct span s)
{
    int width = 0;
    for (size_t i = 0; i < s.n; i++)
        width += ((unsigned char)s.text[i] & 0xc0) != 0x80;
    return width;
}

/* A line of a cell.  A head in two lines is cut at its blank, else before or after an underscore, where
 * its wider line is the least wide. */
static struct span line_of(const struct grid *t, size_t cell, int line)
{
    const char *text = t->cells[cell];
    size_t n = strlen(text), cut = n, least = n;
    const char *blank = t->split && cell < (size_t)t->columns ? strchr(text, ' ') : NULL;
    if (blank) {
        cut = (size_t)(blank - text);
        return line == 0 ? (struct span){ text, cut } : (struct span){ blank + 1, n - cut - 1 };
    }
    for (size_t i = 1; t->split && cell < (size_t)t->columns && i < n; i++) {
        size_t wider = i > n - i ? i : n - i;
        if ((text[i] == '_' || text[i - 1] == '_') && wider < least) {
            cut = i;
            least = wider;
        }
    }
    return line == 0 ? (struct span){ text, cut } : (struct span){ text + cut, n - cut };
}

static void widths(const struct grid *t, int width[GRID_COLUMNS])
{
    memset(width, 0, GRID_COLUMNS * sizeof *width);
    for (size_t i = 0; i < t->cells_used; i++) {
        if (t->cells[i][0] == LINE_MARK)
            continue;
        for (int line = 0; line < 2; line++) {
            int w = span_width(line_of(t, i, line)), column = (int)(i % (size_t)t->columns);
            width[column] = w > width[column] ? w : width[column];
        }
    }
}

int grid_width(const struct grid *t)
{
    int width[GRID_COLUMNS], sum = t->gap * (t->columns - 1);
    widths(t, width);
    for (int c = 0; c < t->columns; c++)
        sum += width[c];
    return sum;
}

/* Spaces are owed until text follows: none at a line's end. */
static void console_line(const struct grid *t, const char *indent, const int *width, size_t row,
                         int line, FILE *out)
{
    int owed = 0;
    for (int column = 0; column < t->columns; column++) {
        struct span part = line_of(t, row + (size_t)column, line);
        int space = width[column] - span_width(part);
        owed += column ? t->gap : text_width(indent);
        owed += t->right[column] ? space : 0;
        if (part.n) {
            fprintf(out, "%*s%.*s", owed, "", (int)part.n, part.text);
            owed = 0;
        }
        owed += t->right[column] ? 0 : space;
    }
    fputc('\n', out);
}

/* Broken at blanks where it is too long, with more room before what is left of it. */
static void write_line(const char *text, const char *indent, int room, FILE *out)
{
    int column = 0;
    for (const char *word = text; *word;) {
        int blanks = (int)strspn(word, " "), n = (int)strcspn(word + blanks, " ");
        int takes = span_width((struct span){ word + blanks, (size_t)n });
        if (column == 0 || (room && column + blanks + takes > room)) {
            fprintf(out, "%s%s%s", column ? "\n" : "", indent, column ? "    " : "");
            column = text_width(indent) + (column ? 4 : 0);
            blanks = 0;
        }
        fprintf(out, "%*s%.*s", blanks, "", n, word + strspn(word, " "));
        column += blanks + takes;
        word += strspn(word, " ") + (size_t)n;
    }
    fputc('\n', out);
}

void grid_console(const struct grid *t, const char *indent, FILE *out)
{
    size_t columns = (size_t)t->columns;
    int width[GRID_COLUMNS];
    widths(t, width);
    for (size_t row = 0; row + columns <= t->cells_used; row += columns) {
        if (t->cells[row][0] == LINE_MARK)
            write_line(t->cells[row] + 1, indent, t->room, out);
        else
            console_line(t, indent, width, row, 0, out);
        if (row == 0 && t->split)
            console_line(t, indent, width, row, 1, out);
    }
}

void grid_blocks(const struct grid *t, const char *indent, int width, FILE *out)
{
    size_t columns = (size_t)t->columns;
    for (size_t row = columns; row + columns <= t->cells_used; row += columns) {
        int at = 0;
        if (t->cells[row][0] == LINE_MARK) {
            write_line(t->cells[row] + 1, indent, width, out);
            continue;
        }
        for (size_t c = 0; c < columns; c++) {
            const char *head = t->cells[c], *text = t->cells[row + c];
            if (!*text)
                continue;
            bool named = c > 0 && *head; /* the first column names the row itself */
            int takes = text_width(text) + (named ? text_width(head) + 1 : 0);
            if (at == 0 || at + 2 + takes > width) {
                fprintf(out, "%s%s%s", at ? "\n" : "", indent, at || c ? "    " : "");
                at = text_width(indent) + (c ? 4 : 0);
            } else {
                at += fprintf(out, "  ");
            }
            fprintf(out, "%s%s%s", named ? head : "", named ? " " : "", text);
            at += takes;
        }
        fputc('\n', out);
    }
}
