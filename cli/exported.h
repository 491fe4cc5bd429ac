/*
 * Formats that programs in Python write: posenc-results and others.  They read records on standard input.
 */
#ifndef POSENC_CLI_EXPORTED_H
#define POSENC_CLI_EXPORTED_H

#include "args.h"

#include <stdio.h>

/* Starts the program of a format, and prints a message if that fails: before a run that takes minutes.
 * Returns EXIT_FINE or EXIT_USAGE. */
int exported_check(const struct cli *cli, const struct format *format);
/* Writes records in a format to a stream.  Returns the exit code of the program, which printed why. */
int exported_write(const struct cli *cli, const struct format *format, const json_t *records,
                   FILE *to);

#endif
