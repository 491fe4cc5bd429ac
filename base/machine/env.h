/*
 * Record of the machine and the build on which a measurement depends, with a grade of measurement quality, such as
 * {"t":"env","cpu":{...},"memory":{"thp":"madvise",...},...,"quality":{"grade":"C",...}}. A fact that the system does not
 * report is "not exposed" or absent.
 */
#ifndef POSENC_ENV_H
#define POSENC_ENV_H

#include <jansson.h>
#include <stdbool.h>

/* Facts that the library reports about itself and the CPU. */
struct env_library {
    const char *version, *cpu_key; /* "0.1.0"; key of the CPU's model in tuning files */
    const char *cpu_features;      /* words, separated by spaces */
    const char *emulator;          /* name of the program that emulates the CPU, or NULL */
    const char *build;             /* posenc_build_id() */
};

/* Returns the "env" record. */
json_t *env_record(const struct env_library *library);

/* Returns the measurement quality {grade: "A".."D", reasons: [..]} that the facts of an env record allow. The report
 * adds the quality that timings show (reports/posenc/quality.py). */
json_t *env_quality(const json_t *env);

/* Returns true if the load average exceeds the number of CPUs. Writes a sentence about it. */
bool env_is_busy(const json_t *env, char *words, size_t bytes);

/* Returns the load average of the last minute, or -1 if it is unknown. */
double env_load_average(void);

/* CPU limits of the control group of this process and of all groups above it: cgroups(7), both versions. */
struct cgroup_limits {
    double quota;       /* CPUs, the minimum of all groups; 0: no limit */
    double throttled_s; /* time of waiting for a quota; below 0: unknown */
};
struct cgroup_limits cgroup_limits(void);

#endif
