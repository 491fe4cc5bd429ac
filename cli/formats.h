/*
 * Formats of --out: one table for the parser and every --help. posenc table and pair have tables of their own. A NULL
 * name ends a table.
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

extern const struct format record_formats[];
/* Finds a format by a name of n bytes that one of `commands` may write; NULL: none. */
const struct format *format_find(const struct format *formats, unsigned commands,
                                 const char *name, size_t n);

/* Writes records in a format without a program. Returns -1 without memory or on a write error. */
int render(const struct format *format, const json_t *records, FILE *out);

#define RECORD_FORMAT(name, extension, commands, by_line, purpose, begins)                     \
    int format_##name(const json_t *records, FILE *out);
#define EXPORTED_FORMAT(name, extension, commands, program, purpose, begins)
#include "formats.def"
#undef EXPORTED_FORMAT
#undef RECORD_FORMAT

#endif
