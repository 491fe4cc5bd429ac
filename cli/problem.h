/*
 * The option --problem: one problem, written as a line (conformance/problem/notation.h).
 */
#ifndef POSENC_CLI_PROBLEM_H
#define POSENC_CLI_PROBLEM_H

#include "conformance/problem/notation.h"
#include "args.h"

/* Reads what --problem says, and makes sure that a call of it can be made and has an element.
 * Options that choose among cases are refused beside it.  EXIT_FINE, or EXIT_USAGE after a
 * message. */
int problem_take(const struct cli *cli, struct problem_line *line, struct arena *arena);

/* The id under which its results are reported: kernel/dtype/profile/problem. */
void problem_id(const struct problem *problem, char *id, size_t size);

#endif
