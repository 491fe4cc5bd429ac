/*
 * The table of formats; see formats.h.
 */
#include "formats.h"
#include "base/records.h"

#include <string.h>

const struct format record_formats[] = {
#define RECORD_FORMAT(name, extension, commands, by_line, purpose, begins)                     \
    { #name, extension, commands, by_line, purpose, begins, NULL, format_##name },
#define EXPORTED_FORMAT(name, extension, commands, program, purpose, begins)                   \
    { #name, extension, commands, false, purpose, begins, program, NULL },
#include "formats.def"
#undef EXPORTED_FORMAT
#undef RECORD_FORMAT
    { .name = NULL },
};

const struct format *format_find(const struct format *formats, unsigned commands,
                                 const char *name, size_t n)
{
    for (; formats->name; formats++)
        if ((formats->commands & commands) && strlen(formats->name) == n &&
            memcmp(formats->name, name, n) == 0)
            return formats;
    return NULL;
}

int render(const struct format *format, const json_t *records, FILE *out)
{
    return format->write(records, out) || fflush(out) || ferror(out) ? -1 : 0;
}

/* JSON Lines: the records as they are. */
int format_jsonl(const json_t *records, FILE *out)
{
    for (size_t i = 0; i < json_array_size(records); i++)
        if (json_dumpf(json_array_get(records, i), out, RECORDS_DUMP) ||
            fputc('\n', out) == EOF)
            return -1;
    return 0;
}
