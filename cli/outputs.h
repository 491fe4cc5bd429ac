/*
 * Outputs of --out and -o. A file is opened before any long work, so that a bad path is rejected at once. It has no name
 * until it is complete, so that a failure or a signal leaves nothing behind, and a file that is replaced stays as it was.
 */
#ifndef POSENC_CLI_OUTPUTS_H
#define POSENC_CLI_OUTPUTS_H

#include "args.h"

#include <stdio.h>

struct out_file {
    const struct format *format;
    const char *path; /* NULL: stdout */
    char *target;     /* path with symbolic links resolved; NULL: stdout */
    bool is_nameless; /* false where it is written directly: stdout, a device, a pipe */
    FILE *stream;
};

struct outputs {
    size_t n;
    struct out_file output[LIST_MAX];
};

/* Opens the outputs of --out in formats that one of `commands` may write, or without --out the first format on stdout.
 * Without --force, a file that is there is overwritten only if it is empty or begins as the format's own files do.
 * Returns EXIT_FINE, or EXIT_USAGE after a message. */
int outputs_open(struct cli *cli, struct outputs *outputs, const struct format *formats,
                 unsigned commands);
/* Flushes and checks all outputs, then gives them their names. After a failure, the rest is dropped. */
int outputs_commit(const struct cli *cli, struct outputs *outputs);
/* Returns true if the reader of a pipe went away, which is no failure. */
bool outputs_reader_gone(void);
/* Returns the exit code of a program that could not write its format, or 0. Other outputs are in place. */
int outputs_failed(void);
void outputs_discard(struct outputs *outputs);
/* Writes records to all outputs but the stream that has them already. Returns EXIT_FINE, or an exit code after a
 * message. */
int outputs_write(const struct cli *cli, struct outputs *outputs, const json_t *records,
                  const FILE *written);

/* Opens standard streams that were closed, so that no file takes their place. Called first in main(). */
void outputs_guard(void);
/* Returns the errno of a stream that cannot be written, or 0; prints it for stdout. */
int outputs_error(FILE *stream);
int outputs_refuse_stdout(const struct cli *cli, int why);

/* After this call the first SIGINT, SIGTERM or SIGHUP sets outputs_interrupted() to its number, so that a run can end with
 * a valid file; the second ends the process. */
void outputs_finish_on_signal(void);
int outputs_interrupted(void); /* 0: no */

#endif
