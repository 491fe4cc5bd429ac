/*
 * Records in memory, to a stream line by line, and back.
 */
#define _POSIX_C_SOURCE 200809L
#include "records.h"
#include "base/text/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What others wrote ---- */

json_t *record_string(const char *text)
{
    char *plain = text_is_plain(text) ? NULL : text_plain_copy(text);
    json_t *value = json_string(plain ? plain : text);
    free(plain);
    return value;
}

static int make_text_plain(json_t *value)
{
    if (text_is_plain(json_string_value(value)))
        return 0;
    char *plain = text_plain_copy(json_string_value(value));
    const int status = plain ? json_string_set(value, plain) : -1;
    free(plain);
    return status;
}

/* The member of that name, under the name as it may be shown. */
static int make_name_plain(json_t *object, const char *name, json_t *value)
{
    char *plain = text_plain_copy(name);
    const int status = plain ? json_object_set(object, plain, value) : -1;
    free(plain);
    return status == 0 ? json_object_del(object, name) : -1;
}

int records_make_plain(json_t *record)
{
    const char *name;
    void *next;
    json_t *value;
    int status = json_is_string(record) ? make_text_plain(record) : 0;
    for (size_t i = 0; i < json_array_size(record) && status == 0; i++)
        status = records_make_plain(json_array_get(record, i));
    json_object_foreach_safe(record, next, name, value)
    {
        status |= records_make_plain(value);
        status |= text_is_plain(name) ? 0 : make_name_plain(record, name, value);
    }
    return status;
}

/* ---- Records ---- */

int records_open(struct records *records, const char *path, char error[RECORDS_ERROR])
{
    *records = (struct records){ .list = json_array() };
    if (!records->list) {
        snprintf(error, RECORDS_ERROR, "out of memory");
        return -1;
    }
    if (!path)
        return 0;
    records->owned = strcmp(path, "-") != 0;
    records->stream = records->owned ? fopen(path, "w") : stdout;
    if (records->stream)
        return 0;
    snprintf(error, RECORDS_ERROR,
             "%.300s: %s; the path of a file that can be written is needed", path,
             strerror(errno));
    json_decref(records->list);
    records->list = NULL;
    return -1;
}

int records_append(struct records *records, json_t *record)
{
    return records_keep(records, record) == 0 ? records_write(records, record) : -1;
}

int records_keep(struct records *records, json_t *record)
{
    if (record && records_make_plain(record) == 0 &&
        json_array_append_new(records->list, record) == 0)
        return 0;
    records->failed = ENOMEM;
    return -1;
}

int records_write(struct records *records, const json_t *record)
{
    if (!records->stream)
        return 0;
    errno = 0;
    if (json_dumpf(record, records->stream, RECORDS_DUMP) ||
        fputc('\n', records->stream) == EOF || fflush(records->stream)) {
        records->failed = errno ? errno : EIO;
        return -1;
    }
    return 0;
}

int records_close(struct records *records, char error[RECORDS_ERROR])
{
    if (records->owned && records->stream && fclose(records->stream) && !records->failed)
        records->failed = errno;
    json_decref(records->list);
    records->list = NULL;
    records->stream = NULL;
    if (!records->failed)
        return 0;
    snprintf(error, RECORDS_ERROR, "records could not be written: %s",
             strerror(records->failed));
    return -1;
}

/* One line, without its newline.  Blank lines are passed over, and so is one that its writer did not
 * come to the end of. */
static int read_line(const char *line, const char *name, struct records_end *end, json_t *list,
                     char error[RECORDS_ERROR])
{
    const size_t number = end->lines;
    if (line[strspn(line, " \t\r")] == 0)
        return 0;
    json_error_t where;
    json_t *record = json_loads(line, JSON_REJECT_DUPLICATES, &where);
    if (!record && end->cut)
        return 0;
    end->cut = false;
    if (!record) {
        snprintf(error, RECORDS_ERROR,
                 "%.200s: line %zu, column %d: %.120s; one JSON object a line "
                 "(schema " RECORDS_SCHEMA ") is needed",
                 name, number, where.column, where.text);
        return -1;
    }
    const int plain = records_make_plain(record);
    const char *kind = json_string_value(json_object_get(record, "t"));
    const char *schema = json_string_value(json_object_get(record, "schema"));
    const char *wrong = !kind                            ? "has no member \"t\" of text"
                        : strcmp(kind, "header") != 0    ? NULL
                        : !schema                        ? "is a header without a schema"
                        : strcmp(schema, RECORDS_SCHEMA) ? "is of another schema"
                                                         : NULL;
    if (wrong || plain || json_array_append(list, record)) {
        snprintf(error, RECORDS_ERROR,
                 "%.200s: line %zu %s%s%.60s; a record of schema " RECORDS_SCHEMA " is needed",
                 name, number, wrong ? wrong : "does not fit into memory",
                 schema && wrong ? ", " : "", schema && wrong ? schema : "");
        json_decref(record);
        return -1;
    }
    json_decref(record);
    return 0;
}

int records_read(FILE *in, const char *name, json_t *list, struct records_end *end,
                 char error[RECORDS_ERROR])
{
    char *line = NULL;
    struct records_end at = { 0 };
    size_t size = 0, before = json_array_size(list);
    int status = 0;
    ssize_t n;
    while (status == 0 && (n = getline(&line, &size, in)) >= 0) {
        at.lines++;
        at.cut = n > 0 && line[n - 1] != '\n';
        if (n && !at.cut)
            line[n - 1] = 0;
        status = read_line(line, name, &at, list, error);
    }
    free(line);
    if (end)
        *end = at;
    if (status == 0 && ferror(in)) {
        snprintf(error, RECORDS_ERROR, "%.300s: %s", name, strerror(errno));
        status = -1;
    }
    if (status == 0 && json_array_size(list) == before) {
        snprintf(error, RECORDS_ERROR,
                 "%.300s: holds no record; JSON Lines of schema " RECORDS_SCHEMA " are needed",
                 name);
        status = -1;
    }
    return status;
}

int records_load(const char *path, json_t *list, char error[RECORDS_ERROR])
{
    return records_load_end(path, list, NULL, error);
}

int records_load_end(const char *path, json_t *list, struct records_end *end,
                     char error[RECORDS_ERROR])
{
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (!in) {
        snprintf(error, RECORDS_ERROR,
                 "%.300s: %s; a file of records (" RECORDS_SCHEMA ") is needed", path,
                 strerror(errno));
        return -1;
    }
    int status = records_read(in, path, list, end, error);
    if (in != stdin)
        fclose(in);
    return status;
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

double record_double(const json_t *value, double otherwise)
{
    if (json_is_number(value))
        return json_number_value(value);
    const char *text = json_string_value(value);
    if (!text)
        return otherwise;
    char *end;
    double number = strtod(text, &end);
    return end == text || *end ? otherwise : number;
}

void record_show(const json_t *value, char *text, size_t bytes)
{
    char *dump = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    snprintf(text, bytes, "%s", dump ? dump : "none");
    free(dump);
}

bool records_differ(const json_t *a, const json_t *b)
{
    const bool none = (!a || json_is_null(a)) && (!b || json_is_null(b));
    return !none && (!a || !b || !json_equal(a, b));
}

/* The member at a path of names joined by dots. */
static const json_t *member(const json_t *record, const char *path)
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
    const char *text = json_string_value(member(record, path));
    return text ? text : "";
}

double record_value(const json_t *record, const char *path, double otherwise)
{
    return record_double(member(record, path), otherwise);
}

int record_int(const json_t *record, const char *path, int otherwise)
{
    const double value = record_value(record, path, otherwise);
    return value >= -1e9 && value <= 1e9 ? (int)value : otherwise;
}
