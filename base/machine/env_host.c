/*
 * Reads what the system decides about a timing; see env_host.h.  The files are those of the
 * kernel's documentation: admin-guide/pm/cpufreq, admin-guide/mm/transhuge, admin-guide/cputopology,
 * admin-guide/sysctl/kernel, ABI/testing/sysfs-class-power.
 */
#define _POSIX_C_SOURCE 200809L
#include "env_host.h"
#include "cgroup.h"
#include "sysfs.h"

#include <dirent.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CPU_FOLDER "/sys/devices/system/cpu"

enum { LIST = 256, MOST_CPUS = 4096 };

static json_t *text_or_hidden(bool known, const char *text)
{
    return json_string(known ? text : NOT_EXPOSED);
}

static void set_number(json_t *record, const char *name, double value)
{
    if (value >= 0.0)
        json_object_set_new(record, name, json_real(value));
}

/* ---- Frequency ---- */

/* Of cpufreq, or the opposite of what intel_pstate tells. */
static const char *boost_state(const char *root)
{
    long long boost = sysfs_number(root, -1, CPU_FOLDER "/cpufreq/boost"),
              no_turbo = sysfs_number(root, -1, CPU_FOLDER "/intel_pstate/no_turbo");
    if (boost < 0 && no_turbo >= 0)
        boost = !no_turbo;
    return boost < 0 ? NOT_EXPOSED : boost > 0 ? "1" : "0";
}

json_t *host_frequency(const char *root)
{
    const char *folder = CPU_FOLDER "/cpu0/cpufreq";
    char governor[64], driver[64], preference[64];
    bool governed = sysfs_line(root, governor, sizeof governor, "%s/scaling_governor", folder);
    bool driven = sysfs_line(root, driver, sizeof driver, "%s/scaling_driver", folder);
    bool preferred = sysfs_line(root, preference, sizeof preference,
                                "%s/energy_performance_preference", folder);
    return json_pack("{s:o,s:o,s:o,s:s}", "governor", text_or_hidden(governed, governor),
                     "driver", text_or_hidden(driven, driver), "preference",
                     text_or_hidden(preferred, preference), "boost", boost_state(root));
}

/* ---- CPUs ---- */

/* How much one CPU does, relative to the others of this machine: 1024 is most. */
static long capacity_of(const char *root, int cpu)
{
    char fast[LIST];
    long long told = sysfs_number(root, -1, CPU_FOLDER "/cpu%d/cpu_capacity", cpu);
    if (told >= 0)
        return (long)told;
    return !sysfs_line(root, fast, sizeof fast, "/sys/devices/cpu_core/cpus") ||
                   cpu_list_has(fast, cpu)
               ? 1024
               : 512;
}

/* One that the kernel keeps free, of the fastest kind, and not the first, which serves most
 * interrupts.  -1: none is known. */
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

json_t *host_cpus(const char *root)
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
    json_t *cpus = json_pack("{s:i,s:i,s:s,s:o}", "online",
                             has_online ? cpu_list_count(online) : here, "allowed", n_allowed,
                             "isolated", isolated, "smt", text_or_hidden(has_smt, smt));
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

json_t *host_memory(const char *root)
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

json_t *host_timer(const char *root)
{
    const char *folder = "/sys/devices/system/clocksource/clocksource0";
    char source[64], sources[128];
    struct timespec resolution = { 0 };
    bool known = sysfs_line(root, source, sizeof source, "%s/current_clocksource", folder);
    sysfs_line(root, sources, sizeof sources, "%s/available_clocksource", folder);
    clock_getres(CLOCK_MONOTONIC, &resolution);
    return json_pack("{s:s,s:o,s:s,s:f}", "clock", "CLOCK_MONOTONIC", "source",
                     text_or_hidden(known, source), "sources", sources, "resolution_ns",
                     (double)resolution.tv_nsec);
}

/* ---- Limits ---- */

/* Mains that deliver outrank those that do not. */
static const char *power(const char *root)
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

/* By the files that each leaves. */
static const char *container(const char *root)
{
    return sysfs_has(root, "/var/run/secrets/kubernetes.io") ? "kubernetes"
           : sysfs_has(root, "/run/.containerenv")           ? "podman"
           : sysfs_has(root, "/.dockerenv")                  ? "docker"
                                                             : "";
}

json_t *host_limits(const char *root)
{
    json_t *limits = json_pack("{s:f,s:s,s:s}", "quota", cgroup_cpu(root).quota, "container",
                               container(root), "power", power(root));
    set_number(limits, "aslr",
               (double)sysfs_number(root, -1, "/proc/sys/kernel/randomize_va_space"));
    return limits;
}
