/*
 * Parts of the env record. `root` is the folder of /proc and /sys (sysfs.h). Texts that the system does not report are
 * NOT_EXPOSED, numbers are absent.
 */
#ifndef POSENC_ENV_PARTS_H
#define POSENC_ENV_PARTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- env_cpu.c ---- */

/* Writes the common name of the CPU: "AMD EPYC", "Neoverse N1", "Apple M1". Returns false if it is unknown. */
bool env_cpu_name(const char *root, char *text, size_t bytes);

/* Returns an array of {level, type, bytes, shared_by, source}. */
json_t *env_caches(const char *root);

/* Returns the hypervisor's name, "unnamed" or NOT_EXPOSED as a text, or null if there is none. An x86 CPU reports it
 * itself, whatever the root. */
json_t *env_hypervisor(const char *root);

/* Reads a text by sysctlbyname() of macOS; returns false on other systems. */
bool env_sysctl_text(const char *name, char *text, size_t bytes);

/* ---- env_host.c ---- */

/* Returns the text if it is known, else NOT_EXPOSED. */
json_t *env_text(bool known, const char *text);
/* Returns the load average of the last minute, or -1 if it is unknown. */
double env_load_average(void);

/* Returns {governor, driver, preference, boost: "1" | "0"}. */
json_t *env_frequency(const char *root);

/* Returns {online, allowed, list, best, pinned, smt, siblings, isolated, kinds}: the number of CPUs, the number and
 * list of those that this process may use, the best CPU to measure on, the only allowed CPU, "on" or "off", the CPUs of
 * the core of `best`, isolated CPUs, and the number of core types of different speed. */
json_t *env_cpus(const char *root);

/* Returns {page, thp, nodes, balancing, swap_used, available}. */
json_t *env_memory(const char *root);

/* Returns {clock, source, sources, resolution_ns}, with all available sources. */
json_t *env_timer(const char *root);

/* Returns {quota, container, power: "mains" | "battery", aslr}: the CPUs that a control group allows (0: no limit);
 * "docker", "podman", "kubernetes" or "". */
json_t *env_limits(const char *root);

/* CPU limits of the control group of this process and of all groups above it. */
struct cgroup_limits {
    double quota;       /* CPUs, the minimum of all groups; 0: no limit */
    double throttled_s; /* time of waiting for a quota; below 0: unknown */
};
struct cgroup_limits cgroup_limits(const char *root);

#endif
