/*
 * Commands that are programs of their own: posenc NAME runs posenc-NAME, as git does.
 */
#ifndef POSENC_CLI_HAND_OVER_H
#define POSENC_CLI_HAND_OVER_H

#include "args.h"
#include "data.h"

#include <stdbool.h>
#include <stdio.h>

/* Replaces this process by posenc-NAME with the arguments argv[2], ...: from the folder beside this program,
 * else from PATH.  It finds this program in POSENC_PROGRAM.  Returns EXIT_USAGE after a message where
 * posenc-NAME is there and cannot be run, and HAND_OVER_NONE where there is none. */
int hand_over(const char *name, char **argv);
enum { HAND_OVER_NONE = -1 };

/* Runs the program argv[0] with this standard input and output.  Returns its exit code, HAND_OVER_SIGNAL and the
 * number of the signal that ended it, or HAND_OVER_NOT_RUN. */
int hand_over_run(const char *const *argv, int in, int out);
enum { HAND_OVER_NOT_RUN = 127, HAND_OVER_SIGNAL = 128 };

/* Runs posenc-NAME with arguments, argv[1], ..., and returns its output, to be freed. Returns NULL after a message: its
 * own, or one about `option` if it is not there or lacks Python. */
char *hand_over_read(const struct cli *cli, const char *option, const char *name,
                     const char **argv);

/* Stores the path of posenc-NAME, found in the same way, and sets POSENC_PROGRAM for it. */
bool hand_over_find(const char *name, char path[DATA_PATH]);

/* Starts the program of a format, and prints a message if that fails: before a run that takes minutes.
 * Returns EXIT_FINE or EXIT_USAGE. */
int exported_check(const struct cli *cli, const struct format *format);
/* Writes records in a format to a stream.  Returns the exit code of the program, which printed why. */
int exported_write(const struct cli *cli, const struct format *format, const json_t *records,
                   FILE *to);

#endif
