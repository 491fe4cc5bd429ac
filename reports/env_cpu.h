/*
 * What the system tells about the CPU: its name, its caches, what lies between it and us.
 */
#ifndef POSENC_ENV_CPU_H
#define POSENC_ENV_CPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define NOT_EXPOSED "not exposed"

/* As a person would call it: "AMD EPYC", "Neoverse N1", "Apple M1".  False: not told. */
bool env_cpu_name(char *text, size_t bytes);

/* An array of {level, type, bytes, shared_by, source}. */
json_t *env_caches(void);

/* The hypervisor's name, "unnamed" or NOT_EXPOSED as text, or null where there is none. */
json_t *env_hypervisor(void);

/* First line of a file without its newline; false where there is none. */
bool env_first_line(const char *path, char *line, int bytes);
/* The value of the first line "key : value" or key="value" of a file. */
bool env_value_of(const char *path, const char *key, char *value, size_t bytes);
/* sysctlbyname() of macOS: a text; false elsewhere. */
bool env_sysctl_text(const char *name, char *text, size_t bytes);

#endif
