/*
 * One or two named arrays [rows, width] of one type with the position or time of each row, and
 * their file formats.
 */
#ifndef POSENC_CLI_TABLE_H
#define POSENC_CLI_TABLE_H

#include "args.h"

#include <stdio.h>

#define TABLE_BYTES ((int64_t)4 << 30) /* a larger one is refused */

struct number_table {
    int64_t rows, width;
    int n_axes;         /* of positions: 1, or those of a picture */
    int64_t *positions; /* [n_axes][rows]; NULL where rows have times */
    float *times;       /* [n_axes][rows]; NULL where rows have positions */
    int n_arrays;
    const char *name[2];
    enum posenc_dtype dtype;
    void *array[2];
    double
        *wavelength; /* of a picture, [width]: positions in which a number repeats; 0: never */
    char caption[128]; /* parameters and the backend that computed it */
};

/* The table the command line asks for; `kind` is one of TABLE_... or PICTURE_SINUSOIDAL.
 * EXIT_FINE, or EXIT_USAGE after a message. */
int table_compute(struct cli *cli, unsigned kind, struct number_table *table);
/* The table of --problem, a problem of a table kernel; the rows of its batches follow each other. */
int table_of_problem(struct cli *cli, struct number_table *table);
void table_free(struct number_table *table);

/* The rows the command line asks for: how many, and their positions or times.  `n_axes` is how
 * many a picture's have, `dim` how many numbers are made for each row.  EXIT_FINE, or
 * EXIT_USAGE after a message. */
int table_positions(const struct cli *cli, int n_axes, int64_t dim, struct number_table *table);

/* NULL-terminated: csv, npy, safetensors. */
extern const struct format table_formats[];

/* csv: a line of names (position, or position[0], position[1], ... of several axes; then
 * sinusoidal[0] or cos[0], sin[0], ...), then a line a row with nine significant digits, which
 * name each f32 uniquely, and what is narrower, too.  npy, which knows no bf16: the one array.
 * safetensors: all, by name.  False when memory runs out; a write error shows in the stream. */
bool table_write(const struct number_table *table, const char *format, FILE *out);

#endif
