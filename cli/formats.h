/*
 * Formats of --out, in one table for the parser and every --help. posenc table and posenc pair have tables of their own.
 */
#ifndef POSENC_FORMATS_H
#define POSENC_FORMATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Commands that write a format, as bits. */
enum { BY_VERIFY = 1, BY_BENCH = 2, BY_ALL = 3 };

struct output_format {
    const char *name, *extension;
    unsigned commands; /* BY_VERIFY, ... */
    bool by_line;      /* each record can be written at once */
    const char *purpose;
    /* Pattern of fnmatch() for the first 512 bytes of a file of this format, with zero bytes replaced by spaces and
     * non-ASCII bytes by ?. Without --force, only such files are overwritten. */
    const char *begins;
    const char *program; /* posenc-NAME writes it; NULL: write() */
    /* Writes records. Returns 0, or -1 without memory or on a write error. */
    int (*write)(const json_t *records, FILE *out);
};

extern const struct output_format record_formats[]; /* ends with a NULL name */
/* Returns the format of one of `commands` whose name has these n bytes, or NULL. */
const struct output_format *format_find(const struct output_format *formats, unsigned commands,
                                        const char *name, size_t n);

/* Write records by format->write() and as JSON Lines. Return 0, or -1 without memory or on a write error. */
int format_write(const struct output_format *format, const json_t *records, FILE *out);
int write_jsonl(const json_t *records, FILE *out);

/* Returns true for the record of a check that failed or crashed. */
bool check_has_failed(const json_t *check);

/* ---- Numbers rounded for display, in one of a few static buffers ---- */

const char *format_time(double ns); /* 29.2 ns, 1.87 us, 12.3 ms */

/* Error and limit, with enough digits to show which is larger. */
struct formatted_error {
    const char *error, *limit;
};
struct formatted_error format_error(double max, double limit, const char *metric);

#endif
