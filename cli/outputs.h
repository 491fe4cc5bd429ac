/*
 * Output files of --out and -o. They are opened before any long work, so that a bad path is rejected at once. A file is
 * unnamed until it is complete: a failure or a signal leaves nothing behind, and leaves an existing file unchanged.
 */
#ifndef POSENC_CLI_OUTPUTS_H
#define POSENC_CLI_OUTPUTS_H

#include "args.h"

#include <stdio.h>

struct output_file {
    const struct output_format *format;
    const char *path; /* NULL: stdout */
    char *target;     /* path with symbolic links resolved; NULL: stdout */
    bool is_unnamed;  /* false for stdout, a device or a pipe */
    FILE *stream;
};

struct outputs {
    size_t n;
    struct output_file output[LIST_MAX];
};

/* Opens the outputs of --out, in formats that one of `commands` may write; without --out, the first format on stdout.
 * Without --force, an existing file is overwritten only if it is empty or matches the format's pattern. Returns
 * EXIT_OK, or EXIT_USAGE after a message. */
int outputs_open(struct cli *cli, struct outputs *outputs, const struct output_format *formats,
                 unsigned commands);
/* Flushes and checks all outputs, then renames them to their targets. After a failure, discards the rest. */
int outputs_commit(const struct cli *cli, struct outputs *outputs);
/* Returns true if the reader of a pipe went away, which is not a failure. */
bool outputs_pipe_is_broken(void);
/* Returns the exit code of an external program that could not write its format, or 0. */
int outputs_exit_code(void);
void outputs_discard(struct outputs *outputs);
/* Writes records to all outputs except the stream `written`, to which they were streamed. Returns EXIT_OK, or an exit
 * code after a message. */
int outputs_write(const struct cli *cli, struct outputs *outputs, const json_t *records,
                  const FILE *written);

/* Opens closed standard streams as /dev/null, so that no file gets their descriptors. Called first in main(). */
void outputs_reserve_standard_streams(void);
/* Flushes a stream. Returns the errno of a failure, or 0. */
int outputs_error(FILE *stream);
int outputs_reject_stdout(const struct cli *cli, int error);

/* Installs a handler of SIGINT, SIGTERM and SIGHUP: outputs_interrupted() returns the number of the first signal, so
 * that a run can end with a valid file; the second signal ends the process. */
void outputs_catch_signals(void);
int outputs_interrupted(void); /* 0: none */

#endif
