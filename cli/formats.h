/*
 * Formats of output, one table: what --out and every --help know of them.  Tables of numbers and pairs have
 * tables of their own, which end with a name of NULL as this one does.
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
    /* How its files begin, for fnmatch(), with a space for a zero byte and ? for what is not
     * ASCII: what begins otherwise is not overwritten unasked. */
    const char *begins;
    const char *program; /* posenc-NAME, which writes it; NULL: write() does */
    /* Of formats of records.  0, or -1: no memory, or a write error. */
    int (*write)(const json_t *records, FILE *out);
};

extern const struct format record_formats[];
/* The format of that name, n bytes of it, that one of `commands` may write; NULL: none. */
const struct format *format_find(const struct format *formats, unsigned commands,
                                 const char *name, size_t n);

/* Writes records in a format without a program.  Returns 0, or -1: no memory, or a write error. */
int render(const struct format *format, const json_t *records, FILE *out);

#define RECORD_FORMAT(name, extension, commands, by_line, purpose, begins)                     \
    int format_##name(const json_t *records, FILE *out);
#define EXPORTED_FORMAT(name, extension, commands, program, purpose, begins)
#include "formats.def"
#undef EXPORTED_FORMAT
#undef RECORD_FORMAT

#endif
