/*
 * Records -> text.  Everything shown comes from the records alone, so that a saved file renders
 * as the run itself did.
 */
#ifndef POSENC_RENDER_H
#define POSENC_RENDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct render_options {
    int width; /* columns of the console; 0: COLUMNS, the terminal's, or 96 */
    int color; /* console: 1 yes, 0 no, -1: when it is a terminal and NO_COLOR is unset */
    bool all;  /* show passing cases and every shape one by one, too */
    const char *command; /* what to run to get this again; NULL: from the header's argv */
    size_t n_pictures;   /* md: pictures to show, paths relative to the report */
    const struct render_picture {
        const char *path, *caption;
    } * pictures;
};

/* NULL-terminated: console, md, jsonl, csv, junit. */
extern const char *const render_formats[];

/* Writes `records` (a JSON array) as `format`; `options` may be NULL.  0; -1: unknown format,
 * out of memory or a write error. */
int render(const char *format, const json_t *records, FILE *out,
           const struct render_options *options);

#endif
