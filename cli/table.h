/*
 * posenc table: the output of a kernel, one or two arrays with the position or time of each row (table.c, table_rows.c),
 * or columns of numbers: frequencies and drift (table_columns.c), errors by position (table_errors.c).
 */
#ifndef POSENC_CLI_TABLE_H
#define POSENC_CLI_TABLE_H

#include "outputs.h"
#include "problem.h"

enum table_kind { TABLE_VALUES, TABLE_FREQUENCIES, TABLE_DRIFT, TABLE_ERRORS };

/* Output of a kernel, row by row. */
struct number_table {
    int64_t rows, width;
    const char *places; /* the first name of a CSV header: "position" or "row" */
    int n_axes;         /* axes of positions: 1, or more for a picture */
    int64_t *positions; /* [n_axes][rows]; NULL where rows have times */
    float *times;       /* [n_axes][rows]; NULL where rows have positions */
    int n_arrays;
    const char *name[2];
    enum posenc_dtype dtype;
    void *array[2];
};

extern const struct format table_formats[]; /* NULL-terminated: csv, npy, safetensors */

/* Stores the positions of --positions or --grid, and sets the tokens of the problem to their number. Returns EXIT_FINE, or
 * EXIT_USAGE after a message. */
int table_place_rows(const struct cli *cli, struct model_problem *taken,
                     struct number_table *table);

/* Sets the sequence length of a model's frequencies, unless the line named one, to the largest position and 1, as Hugging
 * Face transformers does (modeling_rope_utils.py). Prints a note if that is beyond the training context. */
void table_settle_length(const struct cli *cli, int64_t largest,
                         struct posenc_freqs_spec *freqs);

/* Write columns of numbers as CSV into each output: of each pair the radians per position and positions per full turn,
 * with scaling and without (frequencies); the first position at which a numerics mode differs by more than a limit from
 * the exact one (drift); the largest error in each bin of positions (errors). Return EXIT_FINE, or EXIT_USAGE after a
 * message. */
int table_write_columns(struct cli *cli, enum table_kind kind, struct problem *problem,
                        const struct outputs *outputs);
int table_write_errors(struct cli *cli, struct posenc_freqs_spec *spec,
                       const struct outputs *outputs);

#endif
