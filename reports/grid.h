/*
 * Tables of text, for the console (aligned columns) and for Markdown; and numbers with sensible
 * digits.
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
    bool split;   /* heads in two lines, cut at an underscore; console only */
    bool failed;  /* memory ran out */
};

/* Columns "name" or ">name" (flushed right), separated by '|'. */
void grid_begin(struct grid *grid, const char *columns);
/* Appends to the last row; a new row begins when it is full. */
__attribute__((format(printf, 2, 3))) void grid_cell(struct grid *grid, const char *format,
                                                     ...);
/* A line of its own between rows; console only. */
void grid_line(struct grid *grid, const char *text);
void grid_console(const struct grid *grid, const char *indent, FILE *out);
/* For a narrow window: each row as "head value" items, broken at the width. */
void grid_blocks(const struct grid *grid, const char *indent, int width, FILE *out);
void grid_markdown(const struct grid *grid, FILE *out);
void grid_end(struct grid *grid);
/* Columns the console version takes, indent not counted. */
int grid_width(const struct grid *grid);

/* Columns of a terminal a UTF-8 text takes (no wide characters are used here). */
int text_width(const char *text);

/* A small number of static buffers in turn, so that several may stand in one printf. */
const char *show_time(double ns);                       /* 29.2 ns, 1.87 us, 12.3 ms */
const char *show_rate(double gbps);                     /* 281, 43.2, 5.85 */
const char *show_times(double ratio);                   /* 5.1x; "-" for 0 */
const char *show_percent(double ratio);                 /* 0.77 -> 77 % */
const char *show_error(double max, const char *metric); /* 0.500 ulp, 2.1e-02 abs, exact */
const char *show_bytes(double bytes);                   /* 512 KiB */
const char *show_count(double n);                       /* 2 400 000; 1e+15 and above so */

#endif
