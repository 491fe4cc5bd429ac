/*
 * What a control group lets this process have of the CPUs: cgroups(7), of both versions.
 */
#ifndef POSENC_CGROUP_H
#define POSENC_CGROUP_H

/* Of the process's own group and of all above it. */
struct cgroup_cpu {
    double quota; /* CPUs, the least of them; 0: no limit */
    double
        throttled_s; /* time for which a quota that was used up made it wait, since ever; below 0:
                           not told */
};

/* `root`: where /proc and /sys are (sysfs.h). */
struct cgroup_cpu cgroup_cpu(const char *root);

#endif
