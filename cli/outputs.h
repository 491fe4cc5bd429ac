/*
 * Where results go: --out FORMAT[:PATH].  A file is written under a temporary name beside the
 * target, opened before any long work so that a path that cannot be written is refused at once,
 * and renamed when it is complete; a failure or a signal removes it.
 */
#ifndef POSENC_CLI_OUTPUTS_H
#define POSENC_CLI_OUTPUTS_H

#include "args.h"

#include <stdio.h>

struct out_file {
    const struct format *format;
    const char *path; /* NULL: stdout */
    char *target;     /* path with symbolic links resolved; NULL: stdout */
    char *temporary;  /* NULL where it is written directly: stdout, a device, a pipe */
    FILE *stream;
};

struct outputs {
    size_t n;
    struct out_file output[LIST_MAX];
};

/* Opens what --out asks for, in formats that one of `commands` may write, or else the first of them
 * on stdout.  EXIT_FINE, or EXIT_USAGE after a message. */
int outputs_open(struct cli *cli, struct outputs *outputs, const struct format *formats,
                 unsigned commands);
/* One more file.  What is there already is overwritten only where it is empty or begins as the
 * format's own files do, unless --force is given; one file is written once. */
int outputs_add(const struct cli *cli, struct outputs *outputs, const struct format *format,
                const char *path);
/* Flushes, checks and renames; on a failure, all that is not yet in place is removed.  That the reader of a
 * pipe is gone is none: */
bool outputs_reader_gone(void);
/* The exit code of a program that could not write its format; 0: none.  Other outputs are in place. */
int outputs_failed(void);
int outputs_commit(const struct cli *cli, struct outputs *outputs);
void outputs_discard(struct outputs *outputs);
/* Writes records to all outputs but the stream that has them already, or NULL.  Returns EXIT_FINE; else
 * the exit code, after a message. */
int outputs_write(const struct cli *cli, struct outputs *outputs, const json_t *records,
                  const FILE *written);

/* Whether a file is empty or begins as those of the format do. */
bool output_is_own(const struct format *format, const char *path);

/* Makes the three standard streams open, so that no file takes their place: one that was closed
 * cannot be read or written.  First in main(). */
void outputs_guard(void);
/* Why the stream cannot be written, 0 when all is well; and a sentence for stdout. */
int outputs_error(FILE *stream);
int outputs_refuse_stdout(const struct cli *cli, int why);

/* SIGINT, SIGTERM, SIGHUP: remove the temporaries and die of it; after outputs_finish_on_signal
 * the first of them only makes outputs_interrupted() its number, so that a run can end with a
 * valid file. */
void outputs_finish_on_signal(void);
int outputs_interrupted(void); /* 0: no */

#endif
