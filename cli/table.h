/*
 * posenc table: the output of a kernel with the position of each row (table.c, table_rows.c), or columns of numbers:
 * frequencies, drift, errors by position (table_columns.c).
 */
#ifndef POSENC_CLI_TABLE_H
#define POSENC_CLI_TABLE_H

#include "outputs.h"
#include "problem.h"

enum table_kind { TABLE_VALUES, TABLE_FREQUENCIES, TABLE_DRIFT, TABLE_ERRORS };

/* Output of a kernel: one or two arrays [rows, width]. */
struct number_table {
    int64_t rows, width;
    const char *position_header; /* first column of CSV: "position" or "row" */
    int n_axes;                  /* axes of positions: more than 1 for a picture */
    double *positions;           /* [n_axes][rows] positions, or times in f32 */
    bool are_times;
    int n_arrays;
    const char *name[2];
    enum posenc_dtype dtype;
    void *array[2];
};

/* Stores the positions of --positions or --grid, and sets the number of tokens of the problem. */
void table_set_rows(const struct cli *cli, struct model_problem *input,
                    struct number_table *table);

/* Sets the sequence length of a model's frequencies to the largest position + 1, unless the line sets it, as Hugging
 * Face transformers does (modeling_rope_utils.py). Prints a note if that exceeds the training context. */
void table_set_seq_len(const struct cli *cli, int64_t largest, struct posenc_freqs_spec *freqs);

/* Writes columns of numbers as CSV to each output: radians per position and positions per turn of each pair, with and
 * without scaling (frequencies); the first position at which a numerics mode differs from exact by more than a limit
 * (drift); the largest error in each bin of positions (errors). */
void table_write_columns(const struct cli *cli, enum table_kind kind, struct problem *problem,
                         const struct outputs *outputs);

#endif
