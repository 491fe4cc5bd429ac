/*
 * posenc table: one or two named arrays [rows, width] of one type with the position or time of each row, or columns of
 * numbers about frequencies, and their file formats.
 */
#ifndef POSENC_CLI_TABLE_H
#define POSENC_CLI_TABLE_H

#include "outputs.h"
#include "problem.h"

enum table_kind { TABLE_VALUES, TABLE_FREQUENCIES, TABLE_DRIFT, TABLE_ERRORS };

struct number_table {
    int64_t rows, width;
    const char *places; /* the first name of a CSV header: "position" or "row" */
    int n_axes;         /* of positions: 1, or those of a picture */
    int64_t *positions; /* [n_axes][rows]; NULL where rows have times */
    float *times;       /* [n_axes][rows]; NULL where rows have positions */
    int n_arrays;
    const char *name[2];
    enum posenc_dtype dtype;
    void *array[2];
};

extern const struct format table_formats[]; /* NULL-terminated: csv, npy, safetensors */

/* Places the rows that --positions or --grid ask for, and sets the tokens of the problem to their number.  Returns
 * EXIT_FINE, or EXIT_USAGE after a message. */
int table_place_rows(const struct cli *cli, struct model_problem *taken,
                     struct number_table *table);

/* Makes the sequence length of a model's frequencies, unless the line named one, the largest position and 1, as Hugging
 * Face transformers does (modeling_rope_utils.py); prints a note if that is beyond the training context. */
void table_settle_length(const struct cli *cli, int64_t largest,
                         struct posenc_freqs_spec *freqs);

/* Writes columns of numbers as CSV into each output: of each pair the radians per position and positions per full turn,
 * with scaling and without (frequencies); the first position at which a numerics mode differs by more than a limit from
 * the exact one (drift); the largest error in each bin of positions (errors).  Returns EXIT_FINE, or EXIT_USAGE after a
 * message. */
int table_write_columns(struct cli *cli, enum table_kind kind, struct problem *problem,
                        const struct outputs *outputs);
int table_write_errors(struct cli *cli, struct posenc_freqs_spec *spec,
                       const struct outputs *outputs);

#endif
