/*
 * One or two named f32 arrays [rows, width] with the position of each row, and their file
 * formats.
 */
#ifndef POSENC_CLI_TABLE_H
#define POSENC_CLI_TABLE_H

#include "args.h"

#include <stdio.h>

struct table {
    int64_t rows, width;
    int64_t *positions;
    int n_arrays;
    const char *name[2];
    float *array[2];
    char caption[128]; /* parameters and the backend that computed it */
};

/* The table the command line asks for; `kind` is one of TABLE_... or PICTURE_SINUSOIDAL.  EXIT_FINE
 * or, told, EXIT_USAGE. */
int table_compute(struct cli *cli, unsigned kind, struct table *table);
void table_free(struct table *table);

/* NULL-terminated: csv, npy, safetensors. */
extern const char *const table_formats[];

/* csv: a line of names (position, then sinusoidal[0] or cos[0], sin[0], ...), then a line a row
 * with nine significant digits, which name each f32 uniquely.  npy: the one array.
 * safetensors: all, by name.  False when memory runs out; a write error shows in the stream. */
bool table_write(const struct table *table, const char *format, FILE *out);

#endif
