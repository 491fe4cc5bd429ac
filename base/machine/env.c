/*
 * Makes the record of the machine and the build, and grades its measurement quality (see env.h). The kernel's
 * documentation describes the files: admin-guide/pm/cpufreq, admin-guide/mm/transhuge, admin-guide/cputopology,
 * admin-guide/sysctl/kernel, ABI/testing/sysfs-class-power.
 */
#define _GNU_SOURCE
#include "env.h"
#include "base/clock.h"
#include "base/records.h"
#include "machine.h"
#include "sysfs.h"

#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

/* Set a fact. A text that the system does not report is NOT_EXPOSED; a number, which is negative then, is absent. */
static void set_text(json_t *record, const char *name, bool known, const char *text)
{
    json_object_set_new(record, name, json_string(known ? text : NOT_EXPOSED));
}

static void set_number(json_t *record, const char *name, double value)
{
    if (value >= 0.0)
        json_object_set_new(record, name, json_real(value));
}

/* ---- Facts of one file each ---- */

#define CPU_FOLDER   "/sys/devices/system/cpu"
#define CLOCK_FOLDER "/sys/devices/system/clocksource/clocksource0"

/* Adds to each group of the record the facts that are the first line of a file. */
static void add_lines(json_t *env)
{
    enum form { TEXT, CHOSEN /* the word in brackets */, NUMBER, CPU_COUNT /* of a list */ };
    static const struct {
        const char *group, *name, *path;
        enum form form;
    } facts[] = {
        { "frequency", "governor", CPU_FOLDER "/cpu0/cpufreq/scaling_governor", TEXT },
        { "frequency", "driver", CPU_FOLDER "/cpu0/cpufreq/scaling_driver", TEXT },
        { "frequency", "preference", CPU_FOLDER "/cpu0/cpufreq/energy_performance_preference",
          TEXT },
        { "cpus", "smt", CPU_FOLDER "/smt/control", TEXT },
        { "memory", "thp", "/sys/kernel/mm/transparent_hugepage/enabled", CHOSEN },
        { "memory", "nodes", "/sys/devices/system/node/online", CPU_COUNT },
        { "memory", "balancing", "/proc/sys/kernel/numa_balancing", NUMBER },
        { "limits", "aslr", "/proc/sys/kernel/randomize_va_space", NUMBER },
        { "timer", "source", CLOCK_FOLDER "/current_clocksource", TEXT },
        { "timer", "sources", CLOCK_FOLDER "/available_clocksource", TEXT },
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        json_t *group = json_object_get(env, facts[i].group);
        char line[256], *text = line;
        const bool known = sysfs_line(line, sizeof line, "%s", facts[i].path);
        if (facts[i].form == NUMBER || facts[i].form == CPU_COUNT) {
            const double value = facts[i].form == NUMBER ? atof(line) : cpu_list_count(line);
            set_number(group, facts[i].name, known ? value : -1.0);
        } else {
            if (facts[i].form == CHOSEN && strchr(line, '[')) { /* "always [madvise] never" */
                text = strchr(line, '[') + 1;
                text[strcspn(text, "]")] = 0;
            }
            set_text(group, facts[i].name, known, text);
        }
    }
}

/* ---- CPUs and caches ---- */

/* Returns the speed of a CPU relative to the fastest of the machine, which has 1024. Hybrid x86 CPUs only report the list
 * of fast ones. */
static long capacity_of(int cpu)
{
    char fast[256];
    const double capacity = sysfs_number(CPU_FOLDER "/cpu%d/cpu_capacity", cpu);
    if (capacity >= 0.0)
        return (long)capacity;
    const bool is_hybrid = sysfs_line(fast, sizeof fast, "/sys/devices/cpu_core/cpus");
    return is_hybrid && !cpu_list_has(fast, cpu) ? 512 : 1024;
}

enum { MOST_CPUS = 4096 };

/* Returns the number of different capacities of the allowed CPUs, at most 8. */
static int count_kinds(const char *allowed)
{
    enum { MOST_KINDS = 8 };
    long capacities[MOST_KINDS];
    int kinds = 0;
    for (int cpu = 0; cpu < MOST_CPUS && kinds < MOST_KINDS; cpu++) {
        if (!cpu_list_has(allowed, cpu))
            continue;
        int kind = 0;
        capacities[kinds] = capacity_of(cpu);
        while (capacities[kind] != capacities[kinds])
            kind++;
        kinds += kind == kinds; /* found no earlier one */
    }
    return kinds;
}

/* Returns the best CPU to measure on, or -1: one that the kernel keeps free, of the fastest kind, and not the first,
 * which handles most interrupts. The last one of equal CPUs wins. */
static int best_cpu(const char *allowed, const char *isolated)
{
    long best_rank = -1;
    int best = -1;
    for (int cpu = 0; cpu < MOST_CPUS; cpu++) {
        if (!cpu_list_has(allowed, cpu))
            continue;
        const long free_rank = cpu_list_has(isolated, cpu) ? 2048 : 0, /* above any capacity */
            rank = (free_rank + capacity_of(cpu)) * 2 + (cpu != 0);
        if (rank >= best_rank) {
            best_rank = rank;
            best = cpu;
        }
    }
    return best;
}

/* Returns the CPUs online, those that this process may use, and the best one to measure on, with the CPUs of its core. */
static json_t *cpu_facts(void)
{
    char online[256], allowed[256], isolated[256], siblings[64];
    int n_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (sysfs_line(online, sizeof online, CPU_FOLDER "/online"))
        n_online = cpu_list_count(online);
    if (!sysfs_value("/proc/self/status", "Cpus_allowed_list", allowed, sizeof allowed))
        snprintf(allowed, sizeof allowed, "%s", online);
    sysfs_line(isolated, sizeof isolated, CPU_FOLDER "/isolated");
    const int n_allowed = *allowed ? cpu_list_count(allowed) : n_online,
              best = best_cpu(allowed, isolated);
    const bool has_siblings =
        best >= 0 && sysfs_line(siblings, sizeof siblings,
                                CPU_FOLDER "/cpu%d/topology/thread_siblings_list", best);
    json_t *cpus = json_pack("{s:i,s:i,s:s,s:s*,s:s*}", "online", n_online, "allowed",
                             n_allowed, "isolated", isolated, "list", *allowed ? allowed : NULL,
                             "siblings", has_siblings ? siblings : NULL);
    set_number(cpus, "best", best);
    set_number(cpus, "pinned", n_allowed == 1 ? best : -1.0);
    set_number(cpus, "kinds", count_kinds(allowed));
    return cpus;
}

static json_t *cache_facts(void)
{
    struct machine_cache list[MACHINE_CACHES];
    const size_t n = machine_list_caches(list);
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(array,
                              json_pack("{s:i,s:s,s:I}", "level", list[i].level, "type",
                                        list[i].type, "bytes", (json_int_t)list[i].bytes));
    return array;
}

/* Returns boost as "1" or "0": that of cpufreq, or the opposite of no_turbo of intel_pstate. */
static json_t *frequency_facts(void)
{
    double boost = sysfs_number(CPU_FOLDER "/cpufreq/boost"),
           no_turbo = sysfs_number(CPU_FOLDER "/intel_pstate/no_turbo");
    if (boost < 0.0 && no_turbo >= 0.0)
        boost = no_turbo == 0.0;
    json_t *frequency = json_object();
    set_text(frequency, "boost", boost >= 0.0, boost > 0.0 ? "1" : "0");
    return frequency;
}

static json_t *memory_facts(void)
{
    const double swap = sysfs_value_number("/proc/meminfo", "SwapTotal"),
                 free = sysfs_value_number("/proc/meminfo", "SwapFree");
    json_t *memory = json_pack("{s:i}", "page", (int)sysconf(_SC_PAGESIZE));
    set_number(memory, "swap_used", swap < 0.0 ? -1.0 : 1024.0 * (swap - free));
    return memory;
}

/* ---- Limits ---- */

enum { GROUP_NAME = 256 }; /* bytes of the name of a control group */

/* Reads the names of the control group from lines "0::/name" (version 2) and "4:cpu,cpuacct:/name" (version 1). */
static void read_group_names(char names[2][GROUP_NAME])
{
    FILE *file = sysfs_open("/proc/self/cgroup");
    char line[512];
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':'), *path = NULL;
        if (controllers)
            path = strchr(++controllers, ':');
        if (!path)
            continue;
        *path++ = 0;
        if (*controllers == 0 || text_has_word(controllers, ',', "cpu", strlen("cpu")))
            snprintf(names[*controllers != 0], GROUP_NAME, "%.250s", path);
    }
    if (file)
        fclose(file);
}

/* Adds the limits of a group. Version 2 has "150000 100000" for 1.5 CPUs in one file, version 1 has two files. */
static void add_group(const char *folder, const char *group, struct cgroup_limits *all)
{
    char line[64], path[SYSFS_PATH];
    double quota = sysfs_number("%s%s/cpu.cfs_quota_us", folder, group),
           period = sysfs_number("%s%s/cpu.cfs_period_us", folder, group);
    if (sysfs_line(line, sizeof line, "%s%s/cpu.max", folder, group) &&
        sscanf(line, "%lf %lf", &quota, &period) != 2)
        quota = -1.0; /* "max 100000" */
    if (quota > 0.0 && period > 0.0 && (all->quota <= 0.0 || quota / period < all->quota))
        all->quota = quota / period;
    snprintf(path, sizeof path, "%s%s/cpu.stat", folder, group);
    const double us = sysfs_value_number(path, "throttled_usec"),
                 ns = sysfs_value_number(path, "throttled_time");
    if (us >= 0.0 || ns >= 0.0)
        all->throttled_s = fmax(all->throttled_s, 0.0) + (us >= 0.0 ? 1e-6 * us : 1e-9 * ns);
}

/* Adds the group of each version and those above it; the top has the empty name. A container may see the name that the
 * host uses, while its own group is mounted at the top: then the folder of that name does not exist. */
struct cgroup_limits cgroup_limits(void)
{
    static const char *const folders[2] = { "/sys/fs/cgroup", "/sys/fs/cgroup/cpu" };
    struct cgroup_limits all = { 0.0, -1.0 };
    char names[2][GROUP_NAME] = { "", "" };
    read_group_names(names);
    for (int version = 0; version < 2; version++) {
        char *group = names[version], *slash;
        while ((slash = strrchr(group, '/')) != NULL) {
            if (slash[1])
                add_group(folders[version], group, &all);
            *slash = 0;
        }
        add_group(folders[version], "", &all);
    }
    return all;
}

/* Returns the power supply. One connected mains supply outranks others that are not connected. */
static const char *power_supply(void)
{
    char folder[SYSFS_PATH], type[32];
    const char *state = NOT_EXPOSED;
    snprintf(folder, sizeof folder, "%.200s/sys/class/power_supply", sysfs_root);
    DIR *supplies = opendir(folder);
    for (struct dirent *entry; supplies && (entry = readdir(supplies));) {
        const char *name = entry->d_name;
        if (!sysfs_line(type, sizeof type, "/sys/class/power_supply/%.64s/type", name) ||
            strcmp(type, "Mains") != 0)
            continue;
        if (sysfs_number("/sys/class/power_supply/%.64s/online", name) > 0.0)
            state = "mains";
        else if (strcmp(state, "mains") != 0)
            state = "battery";
    }
    if (supplies)
        closedir(supplies);
    return state;
}

/* Returns the name of the container software, by the files that each leaves. */
static const char *container_name(void)
{
    static const char *const files[][2] = { { "/var/run/secrets/kubernetes.io", "kubernetes" },
                                            { "/run/.containerenv", "podman" },
                                            { "/.dockerenv", "docker" } };
    char path[SYSFS_PATH];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%.200s%s", sysfs_root, files[i][0]);
        if (access(path, F_OK) == 0)
            return files[i][1];
    }
    return "";
}

/* ---- Clock, system, build ---- */

double env_load_average(void)
{
    double load[1];
    return getloadavg(load, 1) == 1 ? load[0] : -1.0;
}

/* Returns facts about the clock; overhead_ns is the smallest positive step between two readings. */
static json_t *timer_facts(void)
{
    struct timespec resolution = { 0 };
    double step = 1e9;
    clock_getres(CLOCK_MONOTONIC, &resolution);
    for (int i = 0; i < 1000; i++) {
        const double a = clock_now(), step_ns = 1e9 * (clock_now() - a);
        if (step_ns > 0.0 && step_ns < step)
            step = step_ns;
    }
    return json_pack("{s:f,s:f}", "resolution_ns", (double)resolution.tv_nsec, "overhead_ns",
                     step);
}

static json_t *system_facts(void)
{
    struct utsname name;
    char distro[128], release[64], kernel[160];
    bool named = uname(&name) == 0;
    bool has_distro = sysfs_value("/etc/os-release", "PRETTY_NAME", distro, sizeof distro);
    if (machine_sysctl_text("kern.osproductversion", release, sizeof release))
        has_distro = snprintf(distro, sizeof distro, "macOS %s", release) > 0;
    snprintf(kernel, sizeof kernel, "%.60s %.90s", named ? name.sysname : "",
             named ? name.release : NOT_EXPOSED);
#if defined(__GLIBC__)
    char libc[64];
    snprintf(libc, sizeof libc, "glibc %s", gnu_get_libc_version());
#elif defined(__APPLE__)
    const char *libc = "libSystem";
#else
    const char *libc = NOT_EXPOSED;
#endif
    return json_pack("{s:s,s:s,s:s}", "kernel", kernel, "libc", libc, "distro",
                     has_distro ? distro : NOT_EXPOSED);
}

static json_t *build_facts(const struct env_library *library)
{
#if defined(__clang__)
    const char *cc = "clang";
#elif defined(__GNUC__)
    const char *cc = "gcc";
#else
    const char *cc = "unknown";
#endif
#if defined(__OPTIMIZE__)
    bool optimised = true;
#else
    bool optimised = false;
#endif
    return json_pack("{s:s,s:s,s:s,s:s,s:b,s:s,s:s,s:s*}", "cc", cc, "version", __VERSION__,
                     "flags", POSENC_BUILD_FLAGS, "type", POSENC_BUILD_TYPE, "optimised",
                     optimised, "sanitizer", POSENC_BUILD_SANITIZER, "library",
                     library->version, "id", library->build);
}

/* ---- Measurement quality ---- */

/* Measurement quality so far: the worst grade of all reasons ('A' without any). */
struct grading {
    char grade;
    json_t *reasons;
};

/* Lowers the grade ('D' is the worst) and adds a reason. */
PRINTF_LIKE(3, 4)
static void grading_lower(struct grading *g, char grade, const char *format, ...)
{
    char reason[160];
    va_list list;
    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    if (grade > g->grade)
        g->grade = grade;
    json_array_append_new(g->reasons, json_string(reason));
}

static void grade_build(struct grading *g, const json_t *env)
{
    const char *sanitizer = record_text(env, "build.sanitizer");
    if (json_is_false(json_object_get(json_object_get(env, "build"), "optimised")) ||
        strcmp(record_text(env, "build.type"), "debug") == 0)
        grading_lower(g, 'D', "the build is not optimised");
    if (*sanitizer)
        grading_lower(g, 'D', "the build is instrumented (%.40s sanitizer)", sanitizer);
    if (*record_text(env, "emulator"))
        grading_lower(g, 'D', "the CPU is emulated, so that timings have no meaning");
}

static void grade_host(struct grading *g, const json_t *env)
{
    const char *virt = record_text(env, "virtualization"),
               *governor = record_text(env, "frequency.governor"),
               *source = record_text(env, "timer.source");
    double quota = record_value(env, "limits.quota", 0.0);
    if (*virt && strcmp(virt, NOT_EXPOSED) != 0)
        grading_lower(g, 'C', "virtual machine (%.60s): its neighbours cannot be seen", virt);
    if (quota > 0.0)
        grading_lower(g, 'C',
                      "a control group allows %.3g CPUs and stalls a program that uses more",
                      quota);
    if (strcmp(governor, NOT_EXPOSED) == 0)
        grading_lower(g, 'B', "the CPU's clock is not exposed");
    else if (*governor && strcmp(governor, "performance") != 0)
        grading_lower(g, 'B', "the frequency governor is %.40s, not performance", governor);
    if (strcmp(record_text(env, "limits.power"), "battery") == 0)
        grading_lower(g, 'B', "the machine runs on battery power");
    if (*source && strcmp(source, "tsc") != 0 && strcmp(source, "arch_sys_counter") != 0 &&
        strcmp(source, NOT_EXPOSED) != 0)
        grading_lower(g, 'B', "the clock source is %.40s", source);
}

bool env_is_busy(const json_t *env, char *words, size_t bytes)
{
    const double cpus = record_value(env, "cpus.online", 1.0),
                 load = record_value(env, "noise.load1", -1.0);
    snprintf(words, bytes, "the load average was %.1f on %.0f CPUs", load, cpus);
    return load > cpus;
}

json_t *env_quality(const json_t *env)
{
    struct grading g = { 'A', json_array() };
    char words[96];
    grade_build(&g, env);
    grade_host(&g, env);
    if (env_is_busy(env, words, sizeof words))
        grading_lower(&g, 'D', "%s", words);
    const char grade[2] = { g.grade, 0 };
    return json_pack("{s:s,s:o}", "grade", grade, "reasons", g.reasons);
}

/* ---- The record ---- */

/* Under an emulator /proc and /sys describe the host. The record then has no hypervisor and no caches, and a
 * placeholder as CPU name. */
json_t *env_record(const struct env_library *library)
{
    const bool emulated = library->emulator != NULL;
    char name[128] = "emulated CPU", hypervisor[96] = "", id[160];
    if (!emulated && !machine_cpu_name(name, sizeof name))
        snprintf(name, sizeof name, NOT_EXPOSED);
    if (!emulated)
        machine_hypervisor(hypervisor, sizeof hypervisor);
    const char *under = emulated ? "emulated" : hypervisor;
    snprintf(id, sizeof id, "%s%s%s", library->cpu_key, *under ? "/" : "", under);
    json_t *env = json_pack(
        "{s:s,s:s,s:{s:s,s:s,s:o},s:s?,s:s?,s:o,s:o,s:o,s:o,s:{s:f,s:s,s:s},s:o,s:o,s:o,s:{s:f}"
        "}",
        "t", "env", "env_id", id, "cpu", "key", library->cpu_key, "name", name, "features",
        record_words(library->cpu_features), "virtualization", *hypervisor ? hypervisor : NULL,
        "emulator", library->emulator, "cpus", cpu_facts(), "caches",
        emulated ? json_array() : cache_facts(), "frequency", frequency_facts(), "memory",
        memory_facts(), "limits", "quota", cgroup_limits().quota, "container", container_name(),
        "power", power_supply(), "os", system_facts(), "build", build_facts(library), "timer",
        timer_facts(), "noise", "load1", env_load_average());
    if (env) {
        add_lines(env);
        json_object_set_new(env, "quality", env_quality(env));
    }
    return env;
}
