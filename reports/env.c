/*
 * The machine and the build, as far as a Linux or another POSIX system tells; and what of it
 * makes a timing less believable.
 */
#define _GNU_SOURCE
#include "env.h"
#include "env_cpu.h"
#include "noise.h"
#include "records.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#ifndef POSENC_BUILD_TYPE
#define POSENC_BUILD_TYPE "unknown"
#endif
#ifndef POSENC_BUILD_FLAGS
#define POSENC_BUILD_FLAGS ""
#endif

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
    bool has_governor = env_first_line(path, governor, sizeof governor);
    snprintf(path, sizeof path, "%sscaling_driver", folder);
    bool has_driver = env_first_line(path, driver, sizeof driver);
    bool has_boost =
        env_first_line("/sys/devices/system/cpu/cpufreq/boost", boost, sizeof boost);
    return json_pack("{s:o,s:o,s:o}", "governor", text_or(has_governor, governor), "driver",
                     text_or(has_driver, driver), "boost", text_or(has_boost, boost));
}

/* "always [madvise] never" -> "madvise" */
static json_t *huge_pages(void)
{
    char line[128];
    if (!env_first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line))
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
    bool has_distro = env_value_of("/etc/os-release", "PRETTY_NAME", distro, sizeof distro);
    char release[64];
    if (env_sysctl_text("kern.osproductversion", release, sizeof release))
        has_distro = snprintf(distro, sizeof distro, "macOS %s", release) > 0;
    char kernel[160];
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
    bool known =
        env_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
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

/* What /proc and /sys tell under an emulator is about the host: no name, no hypervisor. */
json_t *env_record(const struct env_library *library)
{
    char name[128], id[160];
    bool emulated = library->emulator != NULL;
    bool named = !emulated && env_cpu_name(name, sizeof name);
    json_t *virt = emulated ? json_null() : env_hypervisor();
    const char *under = emulated ? "emulated" : json_string_value(virt);
    snprintf(id, sizeof id, "%s%s%s", library->cpu_key, under ? "/" : "", under ? under : "");
    double load[1] = { -1.0 };
    if (getloadavg(load, 1) != 1)
        load[0] = -1.0;
    json_t *env = json_pack(
        "{s:s,s:s,s:{s:s,s:o,s:o},s:{s:o},s:s?,s:{s:i,s:i},s:o,s:o,s:{s:i,s:o},s:o,s:o,s:o,s:{s"
        ":f}}",
        "t", "env", "env_id", id, "cpu", "key", library->cpu_key, "name",
        emulated ? json_string("emulated CPU") : text_or(named, name), "features",
        words(library->cpu_features), "virt", "kind", virt, "emulator", library->emulator,
        "cpus", "online", (int)sysconf(_SC_NPROCESSORS_ONLN), "allowed", cpus_allowed(),
        "caches", emulated ? json_array() : env_caches(), "freq", frequency(), "mem", "page",
        (int)sysconf(_SC_PAGESIZE), "thp", huge_pages(), "os", system_facts(), "build",
        build(library->version), "timer", timer(), "noise", "load1", load[0]);
    if (env)
        json_object_set_new(env, "trust", env_trust(env, NULL, -1.0));
    return env;
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
    if (*record_text(env, "emulator"))
        lower(g, 'D', "the CPU is emulated: no time says anything");
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
    double steal = record_value(noise, "steal_pct", 0.0);
    if (steal > 0.1) {
        snprintf(text, sizeof text, "%.1f %% of CPU time was stolen by the hypervisor", steal);
        lower(&g, steal > stolen_pct ? 'D' : 'C', text);
    }
    if (noise_of_others(env, noise, text, sizeof text))
        lower(&g, 'D', text);
    char grade[2] = { g.grade, 0 };
    return json_pack("{s:s,s:o}", "grade", grade, "reasons", g.reasons);
}
