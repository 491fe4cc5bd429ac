/*
 * Problem of a command line: --problem LINE (conformance/problem/notation.h), or a call of --model with the fields that
 * the line changes.
 */
#ifndef POSENC_CLI_PROBLEM_H
#define POSENC_CLI_PROBLEM_H

#include "conformance/models/model.h"
#include "conformance/problem/notation.h"
#include "args.h"

/* Reads --problem, and makes sure that a call of it can be made and has an element.  Options that choose among cases
 * are rejected beside it.  Returns EXIT_FINE, or EXIT_USAGE after a message. */
int problem_take(const struct cli *cli, struct problem_line *line, struct arena *arena);

/* Call of a model, changed by a line. */
struct model_problem {
    struct problem problem;
    bool column_first; /* of a picture: its columns are the axis before its rows */
    struct arena arena;
    struct model model; /* the problem may point into it */
};

/* Reads a line.  With --model or --config, fields that it does not name are those of the model's first call of that
 * kernel, or of the layers of --layer-type; numerics, length and positions are blank.  Returns EXIT_FINE, or EXIT_USAGE
 * after a message; problem_free() after either. */
int problem_take_model(const struct cli *cli, const char *text, struct model_problem *taken);
void problem_free(struct model_problem *taken);

/* Rejects a problem that takes more memory than this machine has; with `checked`, also one whose oracle takes more than
 * minutes. */
int problem_check_cost(const struct cli *cli, const struct problem *problem, bool checked);

/* Rejects a problem whose outputs have no element. */
int problem_refuse_empty(const struct cli *cli, const struct problem *problem);

/* Writes the id under which the results of a problem are reported: kernel/dtype/profile/problem. */
void problem_id(const struct problem *problem, char *id, size_t size);

#endif
