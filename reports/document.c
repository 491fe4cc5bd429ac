/*
 * Making and freeing the tree of a report; see document.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "document.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FORMATTED(1, 0) static char *formatted(const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, format, list);
    return text;
}

static struct node *add(struct node *into, enum node_kind kind, enum medium medium, char *text)
{
    struct node *node = into && text ? calloc(1, sizeof *node) : NULL;
    if (!node) {
        free(text);
        if (into)
            into->failed = true;
        return NULL;
    }
    *node = (struct node){ .kind = kind, .medium = medium, .text = text };
    if (into->last)
        into->last->next = node;
    else
        into->first = node;
    into->last = node;
    return node;
}

struct node *document_make(const char *title)
{
    struct node *root = calloc(1, sizeof *root);
    if (root)
        root->text = strdup(title);
    if (root && root->text)
        return root;
    free(root);
    return NULL;
}

static void table_free(struct table *t)
{
    for (int c = 0; t && c < t->n_columns; c++) {
        free(t->column[c].head);
        free(t->column[c].brief);
    }
    for (size_t i = 0; t && i < t->used; i++)
        free(t->cells[i]);
    if (t)
        free(t->cells);
    free(t);
}

void document_free(struct node *node)
{
    while (node) {
        struct node *next = node->next;
        document_free(node->first);
        table_free(node->table);
        free(node->text);
        free(node->drawing);
        free(node->plain);
        free(node);
        node = next;
    }
}

bool document_failed(const struct node *node)
{
    bool failed = node->failed || (node->table && node->table->failed);
    for (const struct node *child = node->first; child && !failed; child = child->next)
        failed = document_failed(child);
    return failed;
}

struct node *add_section(struct node *into, enum medium medium, const char *title, ...)
{
    va_list list;
    va_start(list, title);
    struct node *node = add(into, SECTION, medium, formatted(title, list));
    va_end(list);
    return node;
}

struct node *add_text(struct node *into, enum node_kind kind, enum medium medium,
                      const char *format, ...)
{
    va_list list;
    va_start(list, format);
    struct node *node = add(into, kind, medium, formatted(format, list));
    va_end(list);
    return node;
}

struct node *insert_text(struct node *into, struct node *after, enum node_kind kind,
                         const char *format, ...)
{
    va_list list;
    va_start(list, format);
    struct node *last = into->last,
                *node = add(into, kind, EVERYWHERE, formatted(format, list));
    va_end(list);
    if (!node || after == last)
        return node;
    last->next = NULL; /* from the end to its place */
    into->last = last;
    node->next = after->next;
    after->next = node;
    return node;
}

struct node *add_figure(struct node *into, const char *caption, const char *picture,
                        const char *file)
{
    struct node *node = add(into, FIGURE, ON_PAGE, strdup(caption));
    if (node) {
        node->picture = picture;
        node->file = file;
    }
    return node;
}

struct node *add_drawing(struct node *into, const char *caption, char *drawing, char *plain)
{
    struct node *node = drawing ? add(into, FIGURE, ON_PAGE, strdup(caption)) : NULL;
    if (node) {
        node->drawing = drawing;
        node->plain = plain;
    } else {
        free(drawing);
        free(plain);
    }
    return node;
}

/* ---- Tables ---- */

/* One column of the n bytes that state it. */
static bool make_column(struct column *column, const char *text, size_t n)
{
    for (; n && strchr(">~!=?", *text); text++, n--) {
        column->right = column->right || *text == '>';
        column->bar = column->bar || *text == '=';
        column->spare = column->spare || *text == '?';
        column->medium = *text == '~' ? ON_PAGE : *text == '!' ? ON_TERMINAL : column->medium;
    }
    const char *half = memchr(text, ';', n);
    column->head = strndup(text, half ? (size_t)(half - text) : n);
    column->brief = half ? strndup(half + 1, n - (size_t)(half + 1 - text)) : strndup(text, n);
    return column->head && column->brief;
}

struct table *add_table(struct node *into, enum medium medium, const char *columns)
{
    struct node *node = add(into, TABLE, medium, strdup(""));
    struct table *t = node ? calloc(1, sizeof *t) : NULL;
    if (!t) {
        if (node)
            node->failed = true;
        return NULL;
    }
    node->table = t;
    for (const char *p = columns; t->n_columns < TABLE_COLUMNS;) {
        size_t n = strcspn(p, "|");
        t->failed = !make_column(&t->column[t->n_columns++], p, n) || t->failed;
        if (!p[n])
            break;
        p += n + 1;
    }
    return t;
}

static bool has_room(struct table *t, size_t n)
{
    if (t->used + n <= t->capacity)
        return true;
    size_t capacity = 2 * t->capacity + 64;
    char **cells = realloc(t->cells, capacity * sizeof *cells);
    if (!cells)
        return false;
    t->cells = cells;
    t->capacity = capacity;
    return true;
}

void table_cell(struct table *t, const char *format, ...)
{
    if (!t || t->failed)
        return;
    va_list list;
    va_start(list, format);
    char *text = formatted(format, list);
    va_end(list);
    t->failed = !text || !has_room(t, 1);
    if (t->failed)
        free(text);
    else
        t->cells[t->used++] = text;
}

void table_line(struct table *t, const char *format, ...)
{
    if (!t || t->failed)
        return;
    va_list list;
    va_start(list, format);
    char *text = formatted(format, list);
    va_end(list);
    t->failed = !text || !has_room(t, TABLE_COLUMNS);
    if (t->failed) {
        free(text);
        return;
    }
    for (int c = 0; c < t->n_columns; c++)
        t->cells[t->used++] = c == 1 ? text : NULL;
}

size_t table_rows(const struct table *t) { return t ? t->used / (size_t)t->n_columns : 0; }

const char *table_at(const struct table *t, size_t row, int column)
{
    return t->cells[row * (size_t)t->n_columns + (size_t)column];
}

/* ---- For formats ---- */

bool is_seen(enum medium medium, bool terminal, bool all)
{
    switch (medium) {
    case ON_TERMINAL:
        return terminal;
    case ON_PAGE:
        return !terminal;
    case DETAIL:
        return !terminal || all;
    case EVERYWHERE:
        break;
    }
    return true;
}

bool node_is_seen(const struct node *node, bool terminal, bool all)
{
    if (!is_seen(node->medium, terminal, all))
        return false;
    if (node->kind == TABLE)
        return table_rows(node->table) > 0;
    bool seen = node->kind != SECTION;
    for (const struct node *child = node->first; child && !seen; child = child->next)
        seen = node_is_seen(child, terminal, all);
    return seen;
}
