/* Files of /proc and /sys below a root: "" is this machine, another folder one that a test made up. */
#ifndef POSENC_SYSFS_H
#define POSENC_SYSFS_H

#include "base/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define NOT_EXPOSED "not exposed"

enum { SYSFS_PATH = 512 };

/* Opens a file for reading; returns NULL on failure. Paths are formatted and begin with a slash. */
FILE *sysfs_open(const char *root, const char *format, ...) PRINTF_LIKE(2, 3);
bool sysfs_has(const char *root, const char *format, ...) PRINTF_LIKE(2, 3);
/* Reads the first line of a file without its newline; returns false and "" if there is none. */
bool sysfs_line(const char *root, char *line, size_t bytes, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Returns the number at the beginning of a file, or `otherwise`. */
long long sysfs_number(const char *root, long long otherwise, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Reads the value of the first line "key : value", "key value" or key="value" of a file. */
bool sysfs_value(const char *root, const char *path, const char *key, char *value,
                 size_t bytes);
/* Returns such a value as a number, or `otherwise`. */
double sysfs_value_number(const char *root, const char *path, const char *key,
                          double otherwise);

/* Return true if a list of CPUs ("0-3,8") has one of that number, and the number of its CPUs. */
bool cpu_list_has(const char *list, int cpu);
int cpu_list_count(const char *list);

#endif
