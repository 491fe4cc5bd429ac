/* Readers of /proc and /sys: sysfs_value_number("/proc/meminfo", "SwapFree") returns 2097148.0. */
#ifndef POSENC_SYSFS_H
#define POSENC_SYSFS_H

#include "base/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define NOT_EXPOSED "not exposed" /* in records: a text that the system does not report */
enum { SYSFS_PATH = 512 };

/* Folder before each path: "" for this machine. Tests set a folder with the files of an imitated machine. */
extern const char *sysfs_root;

/* Opens a file for reading; returns NULL on failure. Paths are format strings and begin with a slash. */
FILE *sysfs_open(const char *format, ...) PRINTF_LIKE(1, 2);
/* Reads the first line of a file without its newline; returns false and "" if there is none. */
bool sysfs_line(char *line, size_t bytes, const char *format, ...) PRINTF_LIKE(3, 4);
/* Returns the number at the start of a file, or -1. */
double sysfs_number(const char *format, ...) PRINTF_LIKE(1, 2);
/* Reads the value of the first line "key : value", "key value" or key="value" of a file. */
bool sysfs_value(const char *path, const char *key, char *value, size_t bytes);
/* Returns such a value as a number, or -1. */
double sysfs_value_number(const char *path, const char *key);

/* Returns true if a list of CPUs ("0-3,8") contains a CPU. */
bool cpu_list_has(const char *list, int cpu);
/* Returns the number of CPUs in a list. */
int cpu_list_count(const char *list);

#endif
