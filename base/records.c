/* Stores and writes records, and reads their members (see records.h). */
#define _POSIX_C_SOURCE 200809L
#include "records.h"
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *record_string(const char *text)
{
    char *escaped = text_escape_copy(text);
    json_t *value = escaped ? json_string(escaped) : NULL;
    free(escaped);
    return value;
}

/* Escapes hidden characters in every string of a value (text.h). Returns 0, or -1 without memory. */
static int escape_strings(json_t *value)
{
    const char *name;
    json_t *member;
    int status = 0;
    if (json_is_string(value)) {
        char *escaped = text_escape_copy(json_string_value(value));
        status = escaped ? json_string_set(value, escaped) : -1;
        free(escaped);
    }
    for (size_t i = 0; i < json_array_size(value) && status == 0; i++)
        status = escape_strings(json_array_get(value, i));
    json_object_foreach(value, name, member) { status |= escape_strings(member); }
    return status;
}

void records_append(struct records *records, json_t *record)
{
    if (record && escape_strings(record) != 0) {
        json_decref(record);
        record = NULL;
    }
    if (!record || json_array_append_new(records->list, record) != 0)
        records->failed = ENOMEM;
    else
        records_write(records, record);
}

void records_write(struct records *records, const json_t *record)
{
    errno = 0;
    if (records->stream && (json_dumpf(record, records->stream, RECORDS_DUMP) ||
                            fputc('\n', records->stream) == EOF || fflush(records->stream)))
        records->failed = errno ? errno : EIO;
}

json_t *record_words(const char *text)
{
    json_t *array = json_array();
    while (text && *(text += strspn(text, " "))) {
        const size_t n = strcspn(text, " ");
        json_array_append_new(array, json_stringn(text, n));
        text += n;
    }
    return array;
}

json_t *record_merge(json_t *record, json_t *members)
{
    const bool merged = record && members && json_object_update(record, members) == 0;
    json_decref(members);
    if (merged)
        return record;
    json_decref(record);
    return NULL;
}

json_t *record_number(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_string(isnan(value) ? "nan" : value > 0.0 ? "inf" : "-inf");
}

json_t *record_hex(double value)
{
    if (!isfinite(value))
        return record_number(value);
    char text[40];
    snprintf(text, sizeof text, "%a", value);
    return json_string(text);
}

double record_double(const json_t *value, double fallback)
{
    if (json_is_number(value))
        return json_number_value(value);
    const char *text = json_string_value(value);
    if (!text)
        return fallback;
    char *end;
    double number = strtod(text, &end);
    return end == text || *end ? fallback : number;
}

/* Returns the member at a path of names joined by dots, or NULL. */
static const json_t *find_member(const json_t *record, const char *path)
{
    char name[64];
    while (record && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof name)
            return NULL;
        memcpy(name, path, n);
        name[n] = 0;
        record = json_object_get(record, name);
        path += n + (path[n] == '.');
    }
    return record;
}

const char *record_text(const json_t *record, const char *path)
{
    const char *text = json_string_value(find_member(record, path));
    return text ? text : "";
}

bool record_is(const json_t *record, const char *path, const char *text)
{
    return strcmp(record_text(record, path), text) == 0;
}

double record_value(const json_t *record, const char *path, double fallback)
{
    return record_double(find_member(record, path), fallback);
}

int record_int(const json_t *record, const char *path, int fallback)
{
    const double value = record_value(record, path, fallback);
    return value >= -1e9 && value <= 1e9 ? (int)value : fallback;
}
