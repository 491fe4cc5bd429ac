/*
 * Reads the settings of the system that influence timings; see env_parts.h. The kernel's documentation describes the
 * files: admin-guide/pm/cpufreq, admin-guide/mm/transhuge, admin-guide/cputopology, admin-guide/sysctl/kernel,
 * ABI/testing/sysfs-class-power.
 */
#define _DEFAULT_SOURCE
#include "env_parts.h"
#include "sysfs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPU_FOLDER "/sys/devices/system/cpu"

enum { LIST = 256, MOST_CPUS = 4096 };

json_t *env_text(bool known, const char *text)
{
    return json_string(known ? text : NOT_EXPOSED);
}

double env_load_average(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : -1.0;
}

static void set_number(json_t *record, const char *name, double value)
{
    if (value >= 0.0)
        json_object_set_new(record, name, json_real(value));
}

/* ---- Frequency ---- */

/* Returns "1" or "0" of cpufreq, or the opposite of no_turbo of intel_pstate. */
static const char *boost_state(const char *root)
{
    long long boost = sysfs_number(root, -1, CPU_FOLDER "/cpufreq/boost"),
              no_turbo = sysfs_number(root, -1, CPU_FOLDER "/intel_pstate/no_turbo");
    if (boost < 0 && no_turbo >= 0)
        boost = !no_turbo;
    if (boost < 0)
        return NOT_EXPOSED;
    return boost > 0 ? "1" : "0";
}

json_t *env_frequency(const char *root)
{
    const char *folder = CPU_FOLDER "/cpu0/cpufreq";
    char governor[64], driver[64], preference[64];
    bool governed = sysfs_line(root, governor, sizeof governor, "%s/scaling_governor", folder);
    bool driven = sysfs_line(root, driver, sizeof driver, "%s/scaling_driver", folder);
    bool preferred = sysfs_line(root, preference, sizeof preference,
                                "%s/energy_performance_preference", folder);
    return json_pack("{s:o,s:o,s:o,s:s}", "governor", env_text(governed, governor), "driver",
                     env_text(driven, driver), "preference", env_text(preferred, preference),
                     "boost", boost_state(root));
}

/* ---- CPUs ---- */

/* Returns the speed of a CPU relative to the fastest of the machine, which has 1024. */
static long capacity_of(const char *root, int cpu)
{
    char fast[LIST];
    const long long capacity = sysfs_number(root, -1, CPU_FOLDER "/cpu%d/cpu_capacity", cpu);
    if (capacity >= 0)
        return (long)capacity;
    const bool has_slow = sysfs_line(root, fast, sizeof fast, "/sys/devices/cpu_core/cpus");
    return has_slow && !cpu_list_has(fast, cpu) ? 512 : 1024;
}

/* Returns the best CPU to measure on, or -1: one that the kernel keeps free, of the fastest kind, and not the first,
 * which handles most interrupts. */
static int best_cpu(const char *root, const char *allowed, const char *isolated, int *kinds)
{
    long most = -1, capacities[8];
    int best = -1;
    *kinds = 0;
    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        if (!cpu_list_has(allowed, cpu))
            continue;
        long capacity = capacity_of(root, cpu);
        long worth =
            ((cpu_list_has(isolated, cpu) * 2048L + capacity) * 2 + (cpu != 0)) * MOST_CPUS +
            cpu;
        int kind = 0;
        while (kind < *kinds && capacities[kind] != capacity)
            kind++;
        if (kind == *kinds && kind < 8)
            capacities[(*kinds)++] = capacity;
        if (worth > most) {
            most = worth;
            best = cpu;
        }
    }
    return best;
}

json_t *env_cpus(const char *root)
{
    char online[LIST], allowed[LIST], isolated[LIST], smt[32], siblings[64];
    int kinds = 0, here = (int)sysconf(_SC_NPROCESSORS_ONLN);
    bool has_online = sysfs_line(root, online, sizeof online, CPU_FOLDER "/online");
    if (!sysfs_value(root, "/proc/self/status", "Cpus_allowed_list", allowed, sizeof allowed))
        snprintf(allowed, sizeof allowed, "%s", online);
    sysfs_line(root, isolated, sizeof isolated, CPU_FOLDER "/isolated");
    bool has_smt = sysfs_line(root, smt, sizeof smt, CPU_FOLDER "/smt/control");
    int n_allowed = *allowed ? cpu_list_count(allowed) : here,
        best = best_cpu(root, allowed, isolated, &kinds);
    json_t *cpus =
        json_pack("{s:i,s:i,s:s,s:o}", "online", has_online ? cpu_list_count(online) : here,
                  "allowed", n_allowed, "isolated", isolated, "smt", env_text(has_smt, smt));
    if (*allowed)
        json_object_set_new(cpus, "list", json_string(allowed));
    set_number(cpus, "best", best);
    if (n_allowed == 1)
        set_number(cpus, "pinned", best);
    if (best >= 0 && sysfs_line(root, siblings, sizeof siblings,
                                CPU_FOLDER "/cpu%d/topology/thread_siblings_list", best))
        json_object_set_new(cpus, "siblings", json_string(siblings));
    set_number(cpus, "kinds", kinds);
    return cpus;
}

/* ---- Memory ---- */

/* "always [madvise] never" -> "madvise" */
static json_t *huge_pages(const char *root)
{
    char line[128];
    if (!sysfs_line(root, line, sizeof line, "/sys/kernel/mm/transparent_hugepage/enabled"))
        return json_string(NOT_EXPOSED);
    char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close)
        return json_string(line);
    *close = 0;
    return json_string(open + 1);
}

json_t *env_memory(const char *root)
{
    const char *file = "/proc/meminfo";
    char nodes[64];
    double swap = sysfs_value_number(root, file, "SwapTotal", -1.0),
           free = sysfs_value_number(root, file, "SwapFree", 0.0);
    json_t *memory =
        json_pack("{s:i,s:o}", "page", (int)sysconf(_SC_PAGESIZE), "thp", huge_pages(root));
    if (sysfs_line(root, nodes, sizeof nodes, "/sys/devices/system/node/online"))
        set_number(memory, "nodes", cpu_list_count(nodes));
    set_number(memory, "balancing",
               (double)sysfs_number(root, -1, "/proc/sys/kernel/numa_balancing"));
    set_number(memory, "swap_used", swap < 0.0 ? -1.0 : 1024.0 * (swap - free));
    set_number(memory, "available",
               1024.0 * sysfs_value_number(root, file, "MemAvailable", -1.0));
    return memory;
}

/* ---- Clock ---- */

json_t *env_timer(const char *root)
{
    const char *folder = "/sys/devices/system/clocksource/clocksource0";
    char source[64], sources[128];
    struct timespec resolution = { 0 };
    bool known = sysfs_line(root, source, sizeof source, "%s/current_clocksource", folder);
    sysfs_line(root, sources, sizeof sources, "%s/available_clocksource", folder);
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return json_pack("{s:s,s:o,s:s,s:f}", "clock", "CLOCK_MONOTONIC", "source",
                     env_text(known, source), "sources", sources, "resolution_ns",
                     (double)resolution.tv_nsec);
}

/* ---- Control groups: cgroups(7), both versions ---- */

enum { GROUP_NAME = 256 };

/* Returns true if "cpu" is one of the controllers "cpu,cpuacct". */
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

/* Reads the group's name from lines "0::/name" (version 2) or "4:cpu,cpuacct:/name"; "" if unknown. A container may
 * see the name that the host uses, while its own group is mounted at the top: then the folder of that name does not
 * exist. */
static void read_group_name(const char *root, int version, char name[GROUP_NAME])
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
            snprintf(name, GROUP_NAME, "%.250s", path + 1);
    }
    if (file)
        fclose(file);
    if (strcmp(name, "/") == 0)
        name[0] = 0;
}

/* Return the quota in CPUs, 0 if there is no limit. Version 2: "150000 100000" is 1.5 CPUs. */
static double quota_of_version_2(const char *root, const char *group)
{
    char line[64];
    double quota, period;
    return sysfs_line(root, line, sizeof line, "/sys/fs/cgroup%s/cpu.max", group) &&
                   sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0.0
               ? quota / period
               : 0.0;
}

static double quota_of_version_1(const char *root, const char *group)
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

/* Adds the group and those above it; the top has the empty name. */
static void add_groups(const char *root, int version, struct cgroup_limits *all)
{
    char group[GROUP_NAME];
    read_group_name(root, version, group);
    for (bool top = false; !top;) {
        double quota = version == 2 ? quota_of_version_2(root, group)
                                    : quota_of_version_1(root, group),
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

struct cgroup_limits cgroup_limits(const char *root)
{
    struct cgroup_limits all = { 0.0, -1.0 };
    add_groups(root, 2, &all);
    add_groups(root, 1, &all);
    return all;
}

/* ---- Limits ---- */

/* Returns the power supply. One connected mains supply outranks others that are not connected. */
static const char *power_supply(const char *root)
{
    char folder[SYSFS_PATH], type[32];
    const char *state = NOT_EXPOSED;
    snprintf(folder, sizeof folder, "%.200s/sys/class/power_supply", root);
    DIR *supplies = opendir(folder);
    for (struct dirent *entry; supplies && (entry = readdir(supplies));) {
        const char *name = entry->d_name;
        if (!sysfs_line(root, type, sizeof type, "/sys/class/power_supply/%.64s/type", name) ||
            strcmp(type, "Mains") != 0)
            continue;
        if (sysfs_number(root, 0, "/sys/class/power_supply/%.64s/online", name) > 0)
            state = "mains";
        else if (strcmp(state, "mains") != 0)
            state = "battery";
    }
    if (supplies)
        closedir(supplies);
    return state;
}

/* Returns the name of the container software, by the files that each leaves. */
static const char *container_name(const char *root)
{
    return sysfs_has(root, "/var/run/secrets/kubernetes.io") ? "kubernetes"
           : sysfs_has(root, "/run/.containerenv")           ? "podman"
           : sysfs_has(root, "/.dockerenv")                  ? "docker"
                                                             : "";
}

json_t *env_limits(const char *root)
{
    json_t *limits = json_pack("{s:f,s:s,s:s}", "quota", cgroup_limits(root).quota, "container",
                               container_name(root), "power", power_supply(root));
    set_number(limits, "aslr",
               (double)sysfs_number(root, -1, "/proc/sys/kernel/randomize_va_space"));
    return limits;
}
