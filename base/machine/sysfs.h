/*
 * Files of /proc and /sys, below a root: "" is this machine, any other folder one that a test made up.
 */
#ifndef POSENC_SYSFS_H
#define POSENC_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define FORMATTED(form, first) __attribute__((format(printf, form, first)))
#define NOT_EXPOSED            "not exposed"

enum { SYSFS_PATH = 512 };

/* The file opened for reading, or NULL.  Every path is formatted and begins with a slash. */
FORMATTED(2, 3) FILE *sysfs_open(const char *root, const char *format, ...);
FORMATTED(2, 3) bool sysfs_has(const char *root, const char *format, ...);
/* The first line of a file without its newline; false, and "", where there is none. */
FORMATTED(4, 5)
bool sysfs_line(const char *root, char *line, size_t bytes, const char *format, ...);
/* The number that a file begins with. */
FORMATTED(3, 4)
long long sysfs_number(const char *root, long long otherwise, const char *format, ...);
/* The value of the first line "key : value", "key value" or key="value" of a file. */
bool sysfs_value(const char *root, const char *path, const char *key, char *value,
                 size_t bytes);
/* The same as a number. */
double sysfs_value_number(const char *root, const char *path, const char *key,
                          double otherwise);

/* Whether a list of CPUs ("0-3,8") has one of that number; and how many it has. */
bool cpu_list_has(const char *list, int cpu);
int cpu_list_count(const char *list);

#endif
