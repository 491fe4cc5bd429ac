/*
 * One or two named arrays [rows, width] of one type with the position or time of each row, and
 * their file formats.
 */
#ifndef POSENC_CLI_TABLE_H
#define POSENC_CLI_TABLE_H

#include "outputs.h"

#include <stdio.h>

#define TABLE_BYTES ((int64_t)4 << 30) /* a larger one is refused */

struct number_table {
    int64_t rows, width;
    const char *places; /* what a line of CSV begins with: "position" or "row" */
    int n_axes;         /* of positions: 1, or those of a picture */
    int64_t *positions; /* [n_axes][rows]; NULL where rows have times */
    float *times;       /* [n_axes][rows]; NULL where rows have positions */
    int n_arrays;
    const char *name[2];
    enum posenc_dtype dtype;
    void *array[2];
};

/* The table the command line asks for; `kind` is TABLE_SINUSOIDAL or TABLE_ROPE.
 * EXIT_FINE, or EXIT_USAGE after a message. */
int table_compute(struct cli *cli, unsigned kind, struct number_table *table);
/* The outputs of --problem, whatever its kernel; the rows of its batches follow each other. */
int table_of_problem(struct cli *cli, struct number_table *table);
void table_free(struct number_table *table);

/* The rows the command line asks for: how many, and their positions or times.  `n_axes` is how
 * many a picture's have, `dim` how many numbers are made for each row.  EXIT_FINE, or
 * EXIT_USAGE after a message. */
int table_positions(const struct cli *cli, int n_axes, int64_t dim, struct number_table *table);

/* Writes the columns of TABLE_FREQUENCIES, TABLE_DRIFT or TABLE_ERRORS, as CSV, into each output.  frequencies: a
 * pair a line, its axis, its radians per position and positions per full turn (empty: none), the same
 * without the scaling, the attention factor of all.  drift, of a problem: a limit a line, and the first position at
 * which a cosine or sine of its profile differs by more from the exact one (empty: none up to its last).  errors: a bin of positions a line, the least
 * position of it, and the largest absolute error there of what `curve` names.  EXIT_FINE, or
 * EXIT_USAGE after a message. */
int table_columns(struct cli *cli, unsigned kind, const struct outputs *outputs);

/* NULL-terminated: csv, npy, safetensors. */
extern const struct format table_formats[];

/* csv: a line of names (position, or position[0], position[1], ... of several axes; then
 * sinusoidal[0] or cos[0], sin[0], ...), then a line a row with nine significant digits, which
 * name each f32 uniquely, and what is narrower, too.  npy, which knows no bf16: the one array.
 * safetensors: all, by name.  False when memory runs out; a write error shows in the stream. */
bool table_write(const struct number_table *table, const char *format, FILE *out);

#endif
