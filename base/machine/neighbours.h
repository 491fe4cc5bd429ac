/*
 * Who takes the CPUs of a machine, and which of them: of each CPU and of each process between two
 * looks.  In a container only its own processes are seen.
 */
#ifndef POSENC_NEIGHBOURS_H
#define POSENC_NEIGHBOURS_H

#include <jansson.h>
#include <stddef.h>

enum { NEIGHBOUR_CPUS = 1024, NEIGHBOUR_NAME = 24 };

struct neighbours {
    double wall_s;
    int n_cpus;
    double busy_s
        [NEIGHBOUR_CPUS]; /* time in which something ran on a CPU, or its hypervisor took it */
    size_t n;
    struct neighbour {
        long pid;
        char name[NEIGHBOUR_NAME];
        double cpu_s;
    } * process; /* malloc'ed */
};

/* A look at the machine below `root` (sysfs.h) at that time. */
void neighbours_look(const char *root, double wall_s, struct neighbours *seen);
void neighbours_free(struct neighbours *seen);

/* {busy: share of each CPU, taken: [{name, cpus}]}: the four names that took most, with how many CPUs
 * all processes of that name took together, and without the process `self`.  What ended before the
 * second look is not counted. */
json_t *neighbours_between(const struct neighbours *start, const struct neighbours *stop,
                           long self);

#endif
