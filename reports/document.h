/*
 * A report as a tree of sections, paragraphs, tables and figures: built once from records
 * (report.h), then written by each format in its own way (formats/).
 *
 * Text may hold `code` and **strong words**; formats turn or drop the marks.  What only some readers
 * need says so by its medium.  Memory that runs out is told by document_failed(), not by each call:
 * all of them take a NULL parent or table and do nothing.
 */
#ifndef POSENC_DOCUMENT_H
#define POSENC_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Who gets to see something: a terminal has little room, a page (md, html) is read at leisure.
 * Details are folded away on a page and shown on a terminal only where all is wanted. */
enum medium { EVERYWHERE, ON_TERMINAL, ON_PAGE, DETAIL };

enum node_kind { SECTION, PARAGRAPH, NOTE, ITEM, TERM, CODE, TABLE, FIGURE };
enum tone { PLAIN, GOOD, BAD };

struct node {
    enum node_kind kind;
    enum medium medium;
    enum tone tone;
    char *text;          /* of a section its title, of a figure its caption */
    const char *picture; /* figure: path relative to the report, and where it can be read */
    const char *file;
    char *
        drawing; /* figure: itself, SVG, in place of a file; and as text, where only text goes */
    char *plain;
    struct table *table;
    struct node *first, *last, *next; /* children, and the next of the same parent */
    bool failed;
};

#define FORMATTED(form, first) __attribute__((format(printf, form, first)))

struct node *document_make(const char *title);
void document_free(struct node *node);
/* Whether memory ran out for some of it. */
bool document_failed(const struct node *root);

FORMATTED(3, 4)
struct node *add_section(struct node *into, enum medium medium, const char *title, ...);
/* A paragraph, a note (something to know before reading on), an item of a list, a word and what it
 * means, or a block of code, whose lines stay as they are. */
FORMATTED(4, 5)
struct node *add_text(struct node *into, enum node_kind kind, enum medium medium,
                      const char *format, ...);
/* The same behind one of its children. */
FORMATTED(4, 5)
struct node *insert_text(struct node *into, struct node *after, enum node_kind kind,
                         const char *format, ...);
struct node *add_figure(struct node *into, const char *caption, const char *picture,
                        const char *file);
/* A picture that was drawn here, as SVG; `plain` is what it looks like in characters, or NULL.  Takes both;
 * without a drawing there is no figure. */
struct node *add_drawing(struct node *into, const char *caption, char *drawing, char *plain);

/* ---- Tables ---- */

enum { TABLE_COLUMNS = 20 };

struct column {
    char *head, *brief; /* brief: on a terminal */
    enum medium medium;
    bool right; /* flushed */
    bool bar;   /* cells hold a ratio to be drawn as a bar; not told to those who cannot draw */
    bool spare; /* left out where a terminal is too narrow, the leftmost first */
};

struct table {
    int n_columns;
    struct column column[TABLE_COLUMNS];
    char **cells; /* row after row; a NULL where a line begins that takes all of a row */
    size_t used, capacity;
    bool
        listed; /* on a terminal each row takes some lines: the first two cells, then the others */
    size_t brief; /* rows a terminal shows where not all is wanted; 0: all */
    bool failed;
};

/* Columns "head" or "head;brief", separated by '|', each after marks: '>' flushed right, '~' on a
 * page only, '!' on a terminal only, '=' a bar, '?' left out where a terminal is too narrow. */
struct table *add_table(struct node *into, enum medium medium, const char *columns);
/* The next cell; a new row begins when the last one is full. */
FORMATTED(2, 3) void table_cell(struct table *table, const char *format, ...);
/* A line above the rows that follow, for terminals; pages are told the same in columns. */
FORMATTED(2, 3) void table_line(struct table *table, const char *format, ...);

size_t table_rows(const struct table *table);
/* A cell; NULL in a row that is a line, whose text its cell 1 holds. */
const char *table_at(const struct table *table, size_t row, int column);

/* ---- For formats ---- */

/* Whether a medium is for terminals, or pages; and whether something is left of a node there. */
bool is_seen(enum medium medium, bool terminal, bool all);
bool node_is_seen(const struct node *node, bool terminal, bool all);

#endif
