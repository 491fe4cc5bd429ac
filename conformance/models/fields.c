/*
 * Members of a configuration, see fields.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int refuse(const struct fields *f, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(f->error, MODEL_ERROR, format, list);
    va_end(list);
    return -1;
}

void note(const struct fields *f, const char *format, ...)
{
    size_t at = strlen(f->notes);
    if (at)
        at += (size_t)snprintf(f->notes + at, MODEL_NOTES - at, ".  ");
    if (at >= MODEL_NOTES)
        return;
    va_list list;
    va_start(list, format);
    vsnprintf(f->notes + at, MODEL_NOTES - at, format, list);
    va_end(list);
}

static const json_t *key(const json_t *object, const char *const *names, const char **found)
{
    for (; *names; names++) {
        const json_t *value = json_object_get(object, *names);
        if (value && !json_is_null(value)) {
            *found = *names;
            return value;
        }
    }
    return NULL;
}

const json_t *find_field_of_file(const struct fields *f, const char *const *names,
                                 const char **found)
{
    const char *unused;
    if (!found)
        found = &unused;
    *found = names[0];
    return key(f->file, names, found);
}

const json_t *find_field(const struct fields *f, const char *const *names, const char **found)
{
    const char *unused;
    if (!found)
        found = &unused;
    const json_t *value = find_field_of_file(f, names, found);
    return value ? value : key(f->defaults, names, found);
}

int field_whole(const struct fields *f, const char *const *names, int64_t most,
                int64_t otherwise, int64_t *value)
{
    const char *name;
    const json_t *j = find_field(f, names, &name);
    *value = otherwise;
    if (!j)
        return otherwise ? 0 : refuse(f, "%s is missing: a whole number is needed", name);
    if (!json_is_number(j))
        return refuse(f, "%s is no number: a whole number from 1 to %lld is needed", name,
                      (long long)most);
    double d = json_number_value(j);
    if (!(d >= 1.0 && d <= (double)most) || d != floor(d))
        return refuse(f, "%s is %.10g: a whole number from 1 to %lld is needed", name, d,
                      (long long)most);
    *value = (int64_t)d;
    return 0;
}

int number_in(const struct fields *f, const json_t *j, const char *name, double least,
              double most, double *value)
{
    if (!j || json_is_null(j))
        return 0;
    if (!json_is_number(j))
        return refuse(f, "%s is no number: a number from %g to %g is needed", name, least,
                      most);
    double d = json_number_value(j);
    if (!(d >= least && d <= most))
        return refuse(f, "%s is %.9g: a number from %g to %g is needed", name, d, least, most);
    *value = d;
    return 0;
}

int field_number(const struct fields *f, const char *const *names, double least, double most,
                 double *value)
{
    const char *name;
    const json_t *j = find_field(f, names, &name);
    return number_in(f, j, name, least, most, value);
}

int field_truth(const struct fields *f, const char *const *names, bool *value)
{
    const char *name;
    const json_t *j = find_field(f, names, &name);
    if (!j)
        return 0;
    if (!json_is_boolean(j))
        return refuse(f, "%s is neither true nor false: one of them is needed", name);
    *value = json_is_true(j);
    return 0;
}

void field_text(const json_t *object, const char *name, const char *otherwise, char *into,
                size_t bytes)
{
    const char *s = json_string_value(json_object_get(object, name));
    if (!s || !*s)
        s = otherwise;
    size_t n = strlen(s);
    if (n >= bytes)
        for (n = bytes - 1; n && ((unsigned char)s[n] & 0xc0) == 0x80;)
            n--;
    for (size_t i = 0; i < n; i++)
        into[i] = (unsigned char)s[i] < ' ' || s[i] == 0x7f ? ' ' : s[i];
    into[n] = 0;
}
