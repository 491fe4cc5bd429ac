/*
 * What the system tells about the CPU: its name, its caches, what lies between it and us.
 */
#ifndef POSENC_ENV_CPU_H
#define POSENC_ENV_CPU_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* As a person would call it: "AMD EPYC", "Neoverse N1", "Apple M1".  False: not told.  `root`: where
 * /proc and /sys are (sysfs.h). */
bool env_cpu_name(const char *root, char *text, size_t bytes);

/* An array of {level, type, bytes, shared_by, source}. */
json_t *env_caches(const char *root);

/* The hypervisor's name, "unnamed" or NOT_EXPOSED as text, or null where there is none.  An x86 CPU
 * says it itself, whatever the root. */
json_t *env_hypervisor(const char *root);

/* sysctlbyname() of macOS: a text; false elsewhere. */
bool env_sysctl_text(const char *name, char *text, size_t bytes);

#endif
