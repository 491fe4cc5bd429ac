/* Reads files of /proc and /sys; see sysfs.h. */
#define _POSIX_C_SOURCE 200809L
#include "sysfs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints the path of a file below a root. */
static void print_path(char path[SYSFS_PATH], const char *root, const char *format,
                       va_list list)
{
    size_t at = (size_t)snprintf(path, SYSFS_PATH, "%.200s", root);
    vsnprintf(path + at, SYSFS_PATH - at, format, list);
}

FILE *sysfs_open(const char *root, const char *format, ...)
{
    char path[SYSFS_PATH];
    va_list list;
    va_start(list, format);
    print_path(path, root, format, list);
    va_end(list);
    return fopen(path, "r");
}

bool sysfs_has(const char *root, const char *format, ...)
{
    char path[SYSFS_PATH];
    va_list list;
    va_start(list, format);
    print_path(path, root, format, list);
    va_end(list);
    return access(path, F_OK) == 0;
}

static bool read_first_line(const char *path, char *line, size_t bytes)
{
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, (int)bytes, file);
    if (file)
        fclose(file);
    line[read ? strcspn(line, "\n") : 0] = 0;
    return read;
}

bool sysfs_line(const char *root, char *line, size_t bytes, const char *format, ...)
{
    char path[SYSFS_PATH];
    va_list list;
    va_start(list, format);
    print_path(path, root, format, list);
    va_end(list);
    return read_first_line(path, line, bytes);
}

long long sysfs_number(const char *root, long long fallback, const char *format, ...)
{
    char path[SYSFS_PATH], line[64], *end;
    va_list list;
    va_start(list, format);
    print_path(path, root, format, list);
    va_end(list);
    if (!read_first_line(path, line, sizeof line))
        return fallback;
    long long value = strtoll(line, &end, 10);
    return end != line ? value : fallback;
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

bool sysfs_value(const char *root, const char *path, const char *key, char *value, size_t bytes)
{
    FILE *file = sysfs_open(root, "%s", path);
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

double sysfs_value_number(const char *root, const char *path, const char *key, double fallback)
{
    char text[64], *end;
    if (!sysfs_value(root, path, key, text, sizeof text))
        return fallback;
    double value = strtod(text, &end);
    return end != text ? value : fallback;
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
