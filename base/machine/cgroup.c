/*
 * Reads cpu.max and cpu.stat (version 2), cpu.cfs_quota_us and cpu.stat (version 1); see cgroup.h.
 *
 * /proc/self/cgroup names the group.  A container may be shown the name that the host uses, while
 * what is mounted is its own group: then the folder of that name is missing, and the top is it.
 */
#define _POSIX_C_SOURCE 200809L
#include "cgroup.h"
#include "sysfs.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP = 256 };

/* Whether "cpu" is among "cpu,cpuacct". */
static bool names_cpu(const char *controllers, size_t n)
{
    for (const char *end = controllers + n; controllers < end;) {
        size_t length = strcspn(controllers, ",:");
        if (length == 3 && strncmp(controllers, "cpu", 3) == 0)
            return true;
        controllers += length + 1;
    }
    return false;
}

/* The group's name in lines "0::/name" (version 2) or "4:cpu,cpuacct:/name"; "" where it is not told. */
static void group_name(const char *root, int version, char name[GROUP])
{
    FILE *file = sysfs_open(root, "/proc/self/cgroup");
    char line[512];
    name[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        const char *controllers = strchr(line, ':'),
                   *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        size_t n = (size_t)(path - controllers) - 1;
        if (version == 2 ? n == 0 : names_cpu(controllers + 1, n))
            snprintf(name, GROUP, "%.250s", path + 1);
    }
    if (file)
        fclose(file);
    if (strcmp(name, "/") == 0)
        name[0] = 0;
}

/* "150000 100000": 1.5 CPUs; "max 100000": no limit. */
static double quota_of_2(const char *root, const char *group)
{
    char line[64];
    double quota, period;
    return sysfs_line(root, line, sizeof line, "/sys/fs/cgroup%s/cpu.max", group) &&
                   sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0.0
               ? quota / period
               : 0.0;
}

static double quota_of_1(const char *root, const char *group)
{
    const char *folder = "/sys/fs/cgroup/cpu";
    double quota = (double)sysfs_number(root, -1, "%s%s/cpu.cfs_quota_us", folder, group),
           period = (double)sysfs_number(root, -1, "%s%s/cpu.cfs_period_us", folder, group);
    return quota > 0.0 && period > 0.0 ? quota / period : 0.0;
}

static double throttled_of(const char *root, int version, const char *group)
{
    char path[SYSFS_PATH];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%s/cpu.stat", version == 1 ? "/cpu" : "",
             group);
    return version == 2 ? 1e-6 * sysfs_value_number(root, path, "throttled_usec", -1e6)
                        : 1e-9 * sysfs_value_number(root, path, "throttled_time", -1e9);
}

/* The group and those above it; the top has the empty name. */
static void add_groups(const char *root, int version, struct cgroup_cpu *all)
{
    char group[GROUP];
    group_name(root, version, group);
    for (bool top = false; !top;) {
        double quota = version == 2 ? quota_of_2(root, group) : quota_of_1(root, group),
               throttled = throttled_of(root, version, group);
        if (quota > 0.0 && (all->quota <= 0.0 || quota < all->quota))
            all->quota = quota;
        if (throttled >= 0.0)
            all->throttled_s = (all->throttled_s > 0.0 ? all->throttled_s : 0.0) + throttled;
        char *slash = strrchr(group, '/');
        top = !slash;
        if (slash)
            *slash = 0;
    }
}

struct cgroup_cpu cgroup_cpu(const char *root)
{
    struct cgroup_cpu all = { 0.0, -1.0 };
    add_groups(root, 2, &all);
    add_groups(root, 1, &all);
    return all;
}
