/*
 * Formats of output, one table: what --out and every --help know of them.  Those of records
 * (formats.def) are written here, each by its file in formats/; tables of numbers and pictures have
 * tables of their own, which end with a name of NULL as this one does.
 */
#ifndef POSENC_FORMATS_H
#define POSENC_FORMATS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { BY_VERIFY = 1, BY_BENCH = 2, BY_REPORT = 4, BY_COMPARE = 8, BY_ALL = 15 };

struct render_options {
    int width; /* columns of the console; 0: COLUMNS, the terminal's, or 100 */
    int color; /* console: 1 yes, 0 no, -1: when it is a terminal and NO_COLOR is unset */
    bool all;  /* console: details, too */
    const char *command; /* what to run to get this again; NULL: from the header's argv */
    const char *explain; /* the evidence of the verdicts on these cases, a pattern; or NULL */
    size_t n_pictures;
    const struct report_picture {
        const char *path, *file; /* relative to the report, and where to read it; SVG */
        const char *caption;
    } * pictures;
};

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
    int (*write)(const json_t *records, FILE *out, const struct render_options *options);
};

extern const struct format record_formats[];
/* The format of that name, n bytes of it, that one of `commands` may write; NULL: none. */
const struct format *format_find(const struct format *formats, unsigned commands,
                                 const char *name, size_t n);

/* Writes records in a format without a program; `options` may be NULL.  0; -1: no memory, or a write error. */
int render(const struct format *format, const json_t *records, FILE *out,
           const struct render_options *options);

#define RECORD_FORMAT(name, extension, commands, by_line, purpose, begins)                     \
    int format_##name(const json_t *records, FILE *out, const struct render_options *options);
#define EXPORTED_FORMAT(name, extension, commands, program, purpose, begins)
#include "formats.def"
#undef EXPORTED_FORMAT
#undef RECORD_FORMAT

#endif
