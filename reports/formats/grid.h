/*
 * Tables of text in aligned columns, for the console.
 */
#ifndef POSENC_GRID_H
#define POSENC_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { GRID_COLUMNS = 20 };

struct grid {
    int columns;
    size_t cells_used, capacity;
    bool right[GRID_COLUMNS];
    char **cells; /* row after row; the first is the head */
    int gap;      /* blanks between columns on the console */
    bool split;   /* heads in two lines, cut at an underscore */
    int room;     /* columns for a line of its own; 0: any number */
    bool failed;  /* memory ran out */
};

/* Columns "name" or ">name" (flushed right), separated by '|'. */
void grid_begin(struct grid *t, const char *columns);
/* Appends to the last row; a new row begins when it is full. */
__attribute__((format(printf, 2, 3))) void grid_cell(struct grid *t, const char *format, ...);
/* A line of its own between rows. */
void grid_line(struct grid *t, const char *text);
void grid_console(const struct grid *t, const char *indent, FILE *out);
/* For a narrow window: each row as "head value" items, broken at the width. */
void grid_blocks(const struct grid *t, const char *indent, int width, FILE *out);
void grid_end(struct grid *t);
/* Columns of the terminal it takes, indent not counted. */
int grid_width(const struct grid *t);

/* Columns of a terminal a UTF-8 text takes (no wide characters are used here). */
int text_width(const char *text);

#endif
