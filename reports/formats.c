/*
 * The table of formats; see formats.h.
 */
#include "formats.h"

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

int render(const struct format *format, const json_t *records, FILE *out,
           const struct render_options *options)
{
    static const struct render_options standard = { .color = -1 };
    int status = format->write(records, out, options ? options : &standard);
    return status || fflush(out) || ferror(out) ? -1 : 0;
}
