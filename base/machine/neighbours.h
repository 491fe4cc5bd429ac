/*
 * Usage of the CPUs of a machine between two snapshots: the busy share of each CPU, and the programs that took most
 * time. In a container, only its own processes are visible.
 */
#ifndef POSENC_NEIGHBOURS_H
#define POSENC_NEIGHBOURS_H

#include <jansson.h>
#include <stddef.h>

enum { NEIGHBOUR_CPUS = 1024, NEIGHBOUR_NAME = 24 };

struct neighbours {
    double wall_s;
    int n_cpus;
    double busy_s[NEIGHBOUR_CPUS]; /* including time that the hypervisor took */
    size_t n;
    struct neighbour {
        long pid;
        char name[NEIGHBOUR_NAME];
        double cpu_s;
    } * process; /* malloc'ed */
};

/* Takes a snapshot of the machine below `root` (sysfs.h), at the time wall_s. */
void neighbours_look(const char *root, double wall_s, struct neighbours *seen);
void neighbours_free(struct neighbours *seen);

/* Returns {busy: share of each CPU, taken: [{name, cpus}]}: the four program names that took most, with the CPUs that
 * all processes of a name took together. The process `self`, and processes that ended before the second snapshot, are
 * not counted. */
json_t *neighbours_between(const struct neighbours *start, const struct neighbours *stop,
                           long self);

#endif
