/*
 * A file of records, written in every format.  No output holds what a terminal obeys.
 */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"
#include "reports/formats.h"
#include "reports/records.h"
#include "reports/text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void look_at(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' && !strchr("\n\r\t", text[i]))
            abort();
}

static void write_all(const json_t *records)
{
    const struct render_options options = { .color = 0, .width = 100, .all = true };
    for (const struct format *f = record_formats; f->name; f++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out = f->program ? NULL : open_memstream(&text, &size);
        if (f->program)
            continue;
        if (!out)
            abort();
        render(f, records, out, &options);
        fclose(out);
        look_at(text, size);
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[RECORDS_ERROR];
    json_t *records = json_array();
    FILE *in = size > 0 ? fmemopen((void *)data, size, "rb") : NULL;
    if (in && records && records_read(in, "records", records, NULL, error) == 0)
        write_all(records);
    if (in)
        fclose(in);
    json_decref(records);
    return 0;
}
