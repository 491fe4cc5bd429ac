/*
 * JSON Lines: the records as they are (records.h).
 */
#include "reports/formats.h"
#include "reports/records.h"

int format_jsonl(const json_t *records, FILE *out, const struct render_options *options)
{
    (void)options;
    for (size_t i = 0; i < json_array_size(records); i++)
        if (json_dumpf(json_array_get(records, i), out, RECORDS_DUMP) ||
            fputc('\n', out) == EOF)
            return -1;
    return 0;
}
