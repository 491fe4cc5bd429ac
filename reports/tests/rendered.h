/* A report as text, for tests to look into. */
#ifndef POSENC_TESTS_RENDERED_H
#define POSENC_TESTS_RENDERED_H

#include "reports/formats.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The records in a format, to be freed; NULL where they cannot be rendered. */
static inline char *rendered(const char *format, const json_t *records, int width)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct render_options options = { .width = width, .color = 0 };
    const struct format *row = format_find(record_formats, BY_ALL, format, strlen(format));
    int status = out && row ? render(row, records, out, &options) : -1;
    if (out)
        fclose(out);
    if (status == 0)
        return text;
    free(text);
    return NULL;
}

static inline bool contains(const char *text, const char *what)
{
    return text && strstr(text, what);
}

#endif
