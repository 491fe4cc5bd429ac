/*
 * What the system decides about a timing, as /proc and /sys tell it: clocks, which CPUs, pages,
 * limits, power.  What is not told is NOT_EXPOSED as a text, and left out as a number.
 * `root`: where /proc and /sys are (sysfs.h).
 */
#ifndef POSENC_ENV_HOST_H
#define POSENC_ENV_HOST_H

#include <jansson.h>

/* {governor, driver, preference, boost: "1" | "0"} */
json_t *host_frequency(const char *root);

/* {online, allowed, list, best, pinned, smt, siblings, isolated, kinds}: CPUs there are, and how many and
 * which this process may use; the one to measure on; the only one where it is one; "on", "off", ...; the CPUs on the best
 * one's core; those kept free by the kernel; how many kinds of core differ in speed. */
json_t *host_cpus(const char *root);

/* {page, thp, nodes, balancing, swap_used, available} */
json_t *host_memory(const char *root);

/* {clock, source, sources, resolution_ns}; the sources are those to choose from. */
json_t *host_timer(const char *root);

/* {quota, container, power: "mains" | "battery", aslr}: CPUs that a control group allows (0: no limit);
 * "docker", "podman", "kubernetes" or "". */
json_t *host_limits(const char *root);

#endif
