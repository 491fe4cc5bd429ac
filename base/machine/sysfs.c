/* Reads files of /proc and /sys; see sysfs.h. */
#include "sysfs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *sysfs_root = "";

static FILE *open_file(const char *format, va_list list)
{
    char path[SYSFS_PATH];
    const size_t n = (size_t)snprintf(path, sizeof path, "%.200s", sysfs_root);
    vsnprintf(path + n, sizeof path - n, format, list);
    return fopen(path, "r");
}

/* Reads the first line of a file that may be NULL, and closes it. */
static bool read_line(FILE *file, char *line, size_t bytes)
{
    const bool read = file && fgets(line, (int)bytes, file);
    if (file)
        fclose(file);
    line[read ? strcspn(line, "\n") : 0] = 0;
    return read;
}

static double number_or_none(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    return end != text ? value : -1.0;
}

FILE *sysfs_open(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    FILE *file = open_file(format, list);
    va_end(list);
    return file;
}

bool sysfs_line(char *line, size_t bytes, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const bool read = read_line(open_file(format, list), line, bytes);
    va_end(list);
    return read;
}

double sysfs_number(const char *format, ...)
{
    char line[64];
    va_list list;
    va_start(list, format);
    read_line(open_file(format, list), line, sizeof line);
    va_end(list);
    return number_or_none(line);
}

/* Returns the value in a line of exactly that key, or NULL. */
static char *find_value(char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0 || !strchr(" \t:=", line[n]))
        return NULL;
    char *value = line + n + strspn(line + n, " \t:=\"");
    value[strcspn(value, "\"\n")] = 0;
    return value;
}

bool sysfs_value(const char *path, const char *key, char *value, size_t bytes)
{
    FILE *file = sysfs_open("%s", path);
    char line[4096];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *text = find_value(line, key);
        found = text != NULL;
        if (found)
            snprintf(value, bytes, "%s", text);
    }
    if (file)
        fclose(file);
    return found;
}

double sysfs_value_number(const char *path, const char *key)
{
    char text[64] = "";
    sysfs_value(path, key, text, sizeof text);
    return number_or_none(text);
}

/* ---- Lists of CPUs ---- */

/* Reads the next range of a list; returns false at its end, or if it is malformed. */
static bool read_range(const char **list, long *first, long *last)
{
    char *end;
    *first = *last = strtol(*list, &end, 10);
    if (end == *list)
        return false;
    if (*end == '-')
        *last = strtol(end + 1, &end, 10);
    *list = end + (*end == ',');
    return true;
}

bool cpu_list_has(const char *list, int cpu)
{
    long first, last;
    while (read_range(&list, &first, &last))
        if (cpu >= first && cpu <= last)
            return true;
    return false;
}

int cpu_list_count(const char *list)
{
    long first, last, n = 0;
    while (read_range(&list, &first, &last))
        n += last >= first && last - first < 1 << 20 ? last - first + 1 : 0;
    return (int)n;
}
