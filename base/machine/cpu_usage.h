/*
 * CPU usage between two snapshots: the busy share of each CPU, and the programs that used most time. In a container,
 * only its own processes are visible.
 */
#ifndef POSENC_CPU_USAGE_H
#define POSENC_CPU_USAGE_H

#include <jansson.h>
#include <stddef.h>

enum { CPU_USAGE_CPUS = 1024, CPU_USAGE_NAME = 24 };

struct cpu_usage {
    double wall_s;
    int n_cpus;
    double busy_s[CPU_USAGE_CPUS]; /* including time that the hypervisor took */
    size_t n;
    struct process_usage {
        long pid;
        char name[CPU_USAGE_NAME];
        double cpu_s;
    } * process; /* malloc'ed */
};

/* Reads /proc below `root` (sysfs.h) at the time wall_s. */
void cpu_usage_snapshot(const char *root, double wall_s, struct cpu_usage *usage);
void cpu_usage_free(struct cpu_usage *usage);

/* Returns {busy: share of each CPU, taken: [{name, cpus}]}: the four program names that used most CPU time, with the
 * average number of CPUs of all processes of that name. The process `self`, and processes that ended before the second
 * snapshot, are not counted. */
json_t *cpu_usage_record(const struct cpu_usage *start, const struct cpu_usage *stop,
                         long self);

#endif
