/*
 * Formats of --out, in one table for the parser and every --help. posenc table and pair have tables of their own.
 */
#ifndef POSENC_FORMATS_H
#define POSENC_FORMATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { BY_VERIFY = 1, BY_BENCH = 2, BY_ALL = 3 };

struct format {
    const char *name, *extension;
    unsigned commands; /* that may write it */
    bool by_line;      /* records may be written one by one, as they come */
    const char *purpose;
    /* Pattern of fnmatch() for the beginning of its files, with a space for a zero byte and ? for what is not ASCII.
     * Other files are not overwritten without --force. */
    const char *begins;
    const char *program; /* posenc-NAME, which writes it; NULL: write() does */
    /* Writes records; -1: no memory, or a write error. */
    int (*write)(const json_t *records, FILE *out);
};

extern const struct format record_formats[]; /* a NULL name ends it */
/* Finds a format by a name of n bytes that one of `commands` may write; NULL: none. */
const struct format *format_find(const struct format *formats, unsigned commands,
                                 const char *name, size_t n);

/* Write records in a format without a program, and as JSON Lines. Return -1 without memory or on a write error. */
int format_write(const struct format *format, const json_t *records, FILE *out);
int write_jsonl(const json_t *records, FILE *out);

/* ---- Numbers as people read them, in one of a few static buffers ---- */

const char *show_time(double ns); /* 29.2 ns, 1.87 us, 12.3 ms */

/* An error and its limit, with enough digits to see which is larger: an error that passed never reads as a failure. */
struct shown_error {
    const char *error, *limit;
};
struct shown_error show_judged(double max, double limit, const char *metric);

#endif
