/*
 * Problems of the command line: the calls of --model and --config, and --problem LINE (conformance/problem/notation.h).
 * With --model llama-3.1-8b, the line "rope_table tokens=4" has the frequencies of the model's call of rope_table.
 */
#ifndef POSENC_CLI_PROBLEM_H
#define POSENC_CLI_PROBLEM_H

#include "conformance/models/model.h"
#include "conformance/problem/notation.h"
#include "outputs.h"
#include "select.h"

/* ---- Models ---- */

/* Loads a preset by name or a configuration by path. Prints notes about unsupported parts and the numerics mode of the
 * training. The caller calls model_free(). */
void models_read(const struct cli *cli, const char *name, struct model *model);

/* Returns `text` with "storage bf16, from the config's torch_dtype", or the type of --dtype; "" if the configuration
 * names no element type. */
const char *models_describe_dtype(const struct model *model, const struct selection *selection,
                                  char text[128]);

/* ---- --problem ---- */

/* Parses --problem and checks that its call is valid and its output not empty. Rejects other options that select cases. */
void problem_read_option(const struct cli *cli, struct problem_line *line, struct arena *arena);

/* Problem from a line, which changes fields of the call of a model if --model is set. */
struct model_problem {
    struct problem problem;
    bool column_first; /* in a picture, columns are the axis before rows */
    struct arena arena;
    struct model model; /* owns memory of `problem` */
};

/* Parses a line. With --model or --config, other fields are those of the model's first call of that kernel, in layers
 * of --layer-type; numerics mode, length and positions keep their defaults. problem_free() frees it. */
void problem_read_over_model(const struct cli *cli, const char *text,
                             struct model_problem *input);
void problem_free(struct model_problem *input);

/* Rejects a problem that needs more memory than there is; if `checked`, also one that takes the oracle minutes. */
void problem_check_cost(const struct problem *problem, bool checked);

/* Rejects a problem whose outputs have no element. */
_Noreturn void problem_reject_empty(const struct cli *cli, const struct problem *problem);

/* Returns a problem as a line for --problem, to be freed. */
char *problem_print_line(const struct problem *problem);
/* Writes the id of a case, kernel/dtype/numerics/NAME. */
void problem_id(const struct problem *problem, const char *name, char *id, size_t size);

/* ---- posenc table: the output of a kernel (table.c), or columns of numbers (table_columns.c) ---- */

enum table_kind { TABLE_FREQUENCIES, TABLE_DRIFT, TABLE_ERRORS, TABLE_VALUES };

/* Sets the sequence length of a model's frequencies to the largest position + 1, unless the line sets it, as Hugging
 * Face transformers does (modeling_rope_utils.py). Prints a note if that exceeds the training context. */
void table_set_seq_len(const struct cli *cli, int64_t largest, struct posenc_freqs_spec *freqs);

/* Writes columns of numbers as CSV: radians per position and positions per turn of each pair, with and without scaling
 * (frequencies); the first position at which a numerics mode differs from exact by more than a limit (drift); the
 * largest error in each bin of positions (errors). */
void table_write_columns(const struct cli *cli, enum table_kind kind, struct problem *problem,
                         const struct output_file *output);

#endif
