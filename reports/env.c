/*
 * The machine and the build, as far as a Linux or another POSIX system tells; and what of it
 * makes a timing less believable.
 */
#define _GNU_SOURCE
#include "env.h"
#include "records.h"

#include <ctype.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#ifndef POSENC_BUILD_TYPE
#define POSENC_BUILD_TYPE "unknown"
#endif
#ifndef POSENC_BUILD_FLAGS
#define POSENC_BUILD_FLAGS ""
#endif

#define NOT_EXPOSED "not exposed"

/* First line of a file without its newline; false where there is none. */
static bool first_line(const char *path, char *line, int bytes)
{
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, bytes, file);
    if (file)
        fclose(file);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

/* The value of the first line "key : value" or key="value" of a file. */
static bool value_of(const char *path, const char *key, char *value, size_t bytes)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *start = line + strlen(key);
        start += strspn(start, " \t:=\"");
        snprintf(value, bytes, "%.*s", (int)strcspn(start, "\"\n"), start);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

static json_t *text_or(bool known, const char *text)
{
    return json_string(known ? text : NOT_EXPOSED);
}

static json_t *words(const char *text)
{
    json_t *array = json_array();
    while (text && *(text += strspn(text, " "))) {
        size_t n = strcspn(text, " ");
        json_array_append_new(array, json_stringn(text, n));
        text += n;
    }
    return array;
}

/* "KVMKVMKVM" and such: the hypervisor's own name where it gives one. */
static json_t *hypervisor(void)
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return json_string(NOT_EXPOSED);
    if (!(c & 1u << 31))
        return json_null();
    char name[13] = "";
    __cpuid(0x40000000, a, b, c, d);
    memcpy(name, &b, 4);
    memcpy(name + 4, &c, 4);
    memcpy(name + 8, &d, 4);
    for (char *p = name; *p; p++)
        if (!isprint((unsigned char)*p))
            *p = 0;
    return json_string(strncmp(name, "KVM", 3) == 0 ? "KVM" : *name ? name : "unnamed");
#else
    return json_string(NOT_EXPOSED);
#endif
}

static json_t *caches(void)
{
    json_t *array = json_array();
    for (int i = 0; i < 8; i++) {
        char path[96], level[16], type[32], size[32], shared[64] = "";
        const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%d/level", folder, i);
        if (!first_line(path, level, sizeof level))
            break;
        snprintf(path, sizeof path, "%s%d/type", folder, i);
        bool known = first_line(path, type, sizeof type);
        snprintf(path, sizeof path, "%s%d/size", folder, i);
        known = known && first_line(path, size, sizeof size);
        snprintf(path, sizeof path, "%s%d/shared_cpu_list", folder, i);
        first_line(path, shared, sizeof shared);
        if (!known)
            continue;
        char *unit;
        long long bytes = strtoll(size, &unit, 10);
        bytes *= *unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1;
        json_array_append_new(array, json_pack("{s:i,s:s,s:I,s:s,s:s}", "level", atoi(level),
                                               "type", type, "bytes", (json_int_t)bytes,
                                               "shared_by", shared, "source", "sysfs"));
    }
    return array;
}

static int cpus_allowed(void)
{
#ifdef CPU_COUNT
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
#endif
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static json_t *frequency(void)
{
    const char *folder = "/sys/devices/system/cpu/cpu0/cpufreq/";
    char path[96], governor[64], driver[64], boost[16];
    snprintf(path, sizeof path, "%sscaling_governor", folder);
    bool has_governor = first_line(path, governor, sizeof governor);
    snprintf(path, sizeof path, "%sscaling_driver", folder);
    bool has_driver = first_line(path, driver, sizeof driver);
    bool has_boost = first_line("/sys/devices/system/cpu/cpufreq/boost", boost, sizeof boost);
    return json_pack("{s:o,s:o,s:o}", "governor", text_or(has_governor, governor), "driver",
                     text_or(has_driver, driver), "boost", text_or(has_boost, boost));
}

/* "always [madvise] never" -> "madvise" */
static json_t *huge_pages(void)
{
    char line[128];
    if (!first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
        return json_string(NOT_EXPOSED);
    char *open = strchr(line, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close)
        return json_string(line);
    *close = 0;
    return json_string(open + 1);
}

static json_t *system_facts(void)
{
    struct utsname name;
    char distro[128];
    bool named = uname(&name) == 0;
    bool has_distro = value_of("/etc/os-release", "PRETTY_NAME", distro, sizeof distro);
    char kernel[160];
    snprintf(kernel, sizeof kernel, "%.60s %.90s", named ? name.sysname : "",
             named ? name.release : NOT_EXPOSED);
#if defined(__GLIBC__)
    char libc[64];
    snprintf(libc, sizeof libc, "glibc %s", gnu_get_libc_version());
#else
    const char *libc = NOT_EXPOSED;
#endif
    return json_pack("{s:s,s:s,s:o}", "kernel", kernel, "libc", libc, "distro",
                     text_or(has_distro, distro));
}

static json_t *build(const char *library)
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
    return json_pack("{s:s,s:s,s:s,s:s,s:b,s:s}", "cc", cc, "version", __VERSION__, "flags",
                     POSENC_BUILD_FLAGS, "type", POSENC_BUILD_TYPE, "optimised", optimised,
                     "library", library);
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The least step seen between two readings is what a reading costs at best. */
static json_t *timer(void)
{
    char source[64];
    bool known = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                            source, sizeof source);
    struct timespec resolution = { 0 };
    clock_getres(CLOCK_MONOTONIC, &resolution);
    double step = 1e9;
    for (int i = 0; i < 1000; i++) {
        double a = now_ns(), b = now_ns();
        if (b > a && b - a < step)
            step = b - a;
    }
    return json_pack("{s:s,s:o,s:f,s:f}", "clock", "CLOCK_MONOTONIC", "source",
                     text_or(known, source), "resolution_ns", (double)resolution.tv_nsec,
                     "overhead_ns", step);
}

json_t *env_record(const struct env_library *library)
{
    char name[128];
    bool named = value_of("/proc/cpuinfo", "model name", name, sizeof name);
    char id[160];
    json_t *virt = hypervisor();
    snprintf(id, sizeof id, "%s%s%s", library->cpu_key, json_is_string(virt) ? "/" : "",
             json_is_string(virt) ? json_string_value(virt) : "");
    double load[1] = { -1.0 };
    if (getloadavg(load, 1) != 1)
        load[0] = -1.0;
    json_t *env = json_pack(
        "{s:s,s:s,s:{s:s,s:o,s:o},s:{s:o},s:{s:i,s:i},s:o,s:o,s:{s:i,s:o},s:o,s:o,s:o,s:{s:f}}",
        "t", "env", "env_id", id, "cpu", "key", library->cpu_key, "name", text_or(named, name),
        "features", words(library->cpu_features), "virt", "kind", virt, "cpus", "online",
        (int)sysconf(_SC_NPROCESSORS_ONLN), "allowed", cpus_allowed(), "caches", caches(),
        "freq", frequency(), "mem", "page", (int)sysconf(_SC_PAGESIZE), "thp", huge_pages(),
        "os", system_facts(), "build", build(library->version), "timer", timer(), "noise",
        "load1", load[0]);
    if (env)
        json_object_set_new(env, "trust", env_trust(env, NULL, -1.0));
    return env;
}

/* Ticks of all CPUs since boot, and those a hypervisor gave to others (proc(5), /proc/stat). */
static void cpu_ticks(unsigned long long *steal, unsigned long long *all)
{
    unsigned long long tick[8] = { 0 };
    FILE *file = fopen("/proc/stat", "r");
    if (file) {
        if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &tick[0], &tick[1],
                   &tick[2], &tick[3], &tick[4], &tick[5], &tick[6], &tick[7]) < 4)
            memset(tick, 0, sizeof tick);
        fclose(file);
    }
    *steal = tick[7];
    *all = 0;
    for (int i = 0; i < 8; i++)
        *all += tick[i];
}

struct env_watch env_watch_start(void)
{
    struct env_watch watch = { .wall_s = now_ns() * 1e-9 };
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        watch.involuntary_switches = usage.ru_nivcsw;
    cpu_ticks(&watch.steal, &watch.ticks);
    return watch;
}

json_t *env_watch_stop(const struct env_watch *start)
{
    struct env_watch stop = env_watch_start();
    double ticks = (double)(stop.ticks - start->ticks), load[1] = { -1.0 };
    if (getloadavg(load, 1) != 1)
        load[0] = -1.0;
    return json_pack("{s:f,s:f,s:I,s:f}", "wall_s", stop.wall_s - start->wall_s, "steal_pct",
                     ticks > 0.0 ? 100.0 * (double)(stop.steal - start->steal) / ticks : 0.0,
                     "involuntary_switches",
                     (json_int_t)(stop.involuntary_switches - start->involuntary_switches),
                     "load1", load[0]);
}

struct grading {
    char grade;
    json_t *reasons;
};

static void lower(struct grading *g, char grade, const char *reason)
{
    if (grade > g->grade)
        g->grade = grade;
    json_array_append_new(g->reasons, json_string(reason));
}

static void grade_facts(struct grading *g, const json_t *env)
{
    const json_t *optimised = json_object_get(json_object_get(env, "build"), "optimised");
    const char *type = record_text(env, "build.type");
    if (json_is_false(optimised) || strcmp(type, "debug") == 0)
        lower(g, 'D', "the build is not optimised");
    char text[128];
    const char *virt = record_text(env, "virt.kind");
    if (*virt && strcmp(virt, NOT_EXPOSED) != 0) {
        snprintf(text, sizeof text, "virtual machine (%s): its neighbours cannot be seen",
                 virt);
        lower(g, 'C', text);
    }
    const char *governor = record_text(env, "freq.governor");
    if (strcmp(governor, NOT_EXPOSED) == 0)
        lower(g, 'B', "the CPU's clock is not exposed");
    else if (*governor && strcmp(governor, "performance") != 0) {
        snprintf(text, sizeof text, "the frequency governor is %s, not performance", governor);
        lower(g, 'B', text);
    }
    const char *source = record_text(env, "timer.source");
    if (*source && strcmp(source, "tsc") != 0 && strcmp(source, "arch_sys_counter") != 0 &&
        strcmp(source, NOT_EXPOSED) != 0) {
        snprintf(text, sizeof text, "the clock source is %s", source);
        lower(g, 'B', text);
    }
}

json_t *env_trust(const json_t *env, const json_t *noise, double null_pct)
{
    struct grading g = { 'A', json_array() };
    char text[128];
    grade_facts(&g, env);
    if (null_pct > 0.5) {
        snprintf(text, sizeof text,
                 "a backend differs from its own copy by %.1f %% (median over cases)",
                 null_pct);
        lower(&g, null_pct > 3.0 ? 'D' : null_pct > 1.5 ? 'C' : 'B', text);
    }
    double steal = record_value(noise, "steal_pct", 0.0),
           load = record_value(noise, "load1", -1.0);
    if (steal > 0.1) {
        snprintf(text, sizeof text, "%.1f %% of CPU time was stolen by the hypervisor", steal);
        lower(&g, steal > 1.0 ? 'D' : 'C', text);
    }
    double cpus = record_value(env, "cpus.online", 1.0);
    if (load > cpus) {
        snprintf(text, sizeof text, "the load was %.1f on %.0f CPUs", load, cpus);
        lower(&g, 'C', text);
    }
    char grade[2] = { g.grade, 0 };
    return json_pack("{s:s,s:o}", "grade", grade, "reasons", g.reasons);
}
