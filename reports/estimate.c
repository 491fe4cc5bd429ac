/*
 * What a record of a static estimate must hold, and files of nothing else; see estimate.h.
 */
#include "estimate.h"

#include <string.h>

const char *estimate_problem(const json_t *record)
{
    static const char *const texts[][2] = {
        { "kernel", "is an estimate whose \"kernel\" is no text" },
        { "profile", "is an estimate whose \"profile\" is no text" },
        { "variant", "is an estimate whose \"variant\" is no text" },
        { "backend", "is an estimate whose \"backend\" is no text" },
        { "core", "is an estimate whose \"core\" is no text" },
        { "tool", "is an estimate whose \"tool\" is no text" },
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!*record_text(record, texts[i][0]))
            return texts[i][1];
    if (!(record_value(record, "cycles_per_element", 0.0) > 0.0))
        return "is an estimate whose \"cycles_per_element\" is no number above 0";
    if (!(record_value(record, "elements_per_vector", 0.0) > 0.0))
        return "is an estimate whose \"elements_per_vector\" is no number above 0";
    if (record_value(record, "measured_per_vector", 1.0) > 0.0)
        return NULL;
    return "is an estimate whose \"measured_per_vector\" is no number above 0";
}

bool estimate_header(const json_t *record)
{
    return strcmp(record_text(record, "t"), "header") == 0 &&
           strcmp(record_text(record, "mode"), "estimate") == 0;
}

bool estimates_only(const json_t *records)
{
    bool aside = false, some = false;
    for (size_t i = 0; i < json_array_size(records); i++) {
        const json_t *record = json_array_get(records, i);
        bool one = strcmp(record_text(record, "t"), "estimate") == 0;
        if (strcmp(record_text(record, "t"), "header") == 0)
            aside = estimate_header(record);
        if (!aside && !one)
            return false;
        some = some || one;
    }
    return some;
}
