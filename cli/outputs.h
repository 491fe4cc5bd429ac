/*
 * Formats and files of --out and -o: "--out jsonl:run.jsonl", "--out console". The files are opened before any long
 * work, so that a bad path is rejected at once. A file is unnamed until it is complete: a failure or a signal leaves
 * nothing behind, and leaves an existing file unchanged.
 */
#ifndef POSENC_CLI_OUTPUTS_H
#define POSENC_CLI_OUTPUTS_H

#include "args.h"

#include <jansson.h>
#include <stdio.h>

/* ---- Formats (formats.c) ---- */

struct output_format {
    const char *name, *extension; /* "jsonl", "jsonl" */
    unsigned commands;            /* FOR_VERIFY, ...: commands that write it */
    bool by_line;                 /* each record can be written at once */
    const char *purpose;          /* for --help */
    /* Pattern of fnmatch() for the first 512 bytes of a file of this format, with zero bytes replaced by spaces and
     * non-ASCII bytes by ?. Without --force, only such files are overwritten. */
    const char *begins;
    const char
        *program; /* "report": posenc-report writes it from records; NULL: this program */
};

/* Returns the format of the command that follows `format`, or the first one for NULL; NULL after the last. */
const struct output_format *format_next(const struct cli *cli,
                                        const struct output_format *format);

/* Writes records in a format of this program. Returns 0, or -1 without memory or on a write error; the next, too. */
int format_write(const struct output_format *format, const json_t *records, FILE *out);
int write_jsonl(const json_t *records, FILE *out);

/* Returns true for the record of a check that failed or crashed. */
bool check_has_failed(const json_t *check);

/* Error and limit for display, such as "0.512 ulp" and "0.5", with enough digits to show which is larger. */
struct formatted_error {
    char error[48], limit[48];
};
struct formatted_error format_error(double max, double limit, const char *metric);

/* ---- Files ---- */

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

/* Opens the outputs of --out; without --out, the command's first format on stdout. Without --force, an existing file is
 * overwritten only if it is empty or matches the format's pattern. */
void outputs_open(const struct cli *cli, struct outputs *outputs);
/* Flushes and checks all outputs, then renames them to their targets. */
void outputs_commit(struct outputs *outputs);
void outputs_discard(struct outputs *outputs);
/* Writes records to all outputs except the stream `written`, to which they were streamed. */
void outputs_write(struct outputs *outputs, const json_t *records, const FILE *written);

/* Opens closed standard streams as /dev/null, so that no file gets their descriptors. Called first in main(). */
void outputs_reserve_standard_streams(void);
/* Flushes standard output at the end of a command. Returns the exit code: that of an external program that could not
 * write its format, or of standard output that could not be written; otherwise `status`. */
int outputs_finish(int status);

/* Installs a handler of SIGINT, SIGTERM and SIGHUP: outputs_interrupted() returns the number of the first signal, so
 * that a run can end with a valid file; the second signal ends the process. */
void outputs_catch_signals(void);
int outputs_interrupted(void); /* 0: none */

#endif
