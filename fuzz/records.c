/*
 * A file of records, read and written again.  Nothing that a terminal obeys is left.
 */
#define _POSIX_C_SOURCE 200809L
#include "fuzz.h"
#include "base/records.h"
#include "base/text/text.h"

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
    size_t i;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        char *text = json_dumps(record, RECORDS_DUMP);
        if (!text)
            abort();
        look_at(text, strlen(text));
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
