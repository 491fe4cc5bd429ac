/* Makes the record of the machine and the build, and grades its measurement quality (see env.h). */
#define _GNU_SOURCE
#include "env.h"
#include "base/clock.h"
#include "base/records.h"
#include "env_parts.h"
#include "sysfs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#ifndef POSENC_BUILD_TYPE
#define POSENC_BUILD_TYPE "unknown"
#endif
#ifndef POSENC_BUILD_SANITIZER
#define POSENC_BUILD_SANITIZER ""
#endif
#ifndef POSENC_BUILD_FLAGS
#define POSENC_BUILD_FLAGS ""
#endif

/* ---- The system and the build ---- */

static json_t *system_facts(const char *root)
{
    struct utsname name;
    char distro[128];
    bool named = uname(&name) == 0;
    bool has_distro =
        sysfs_value(root, "/etc/os-release", "PRETTY_NAME", distro, sizeof distro);
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
                     env_text(has_distro, distro));
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

/* Returns facts about the clock; overhead_ns is the smallest step between two readings. */
static json_t *timer_facts(const char *root)
{
    json_t *timer = env_timer(root);
    double step = 1e9;
    for (int i = 0; i < 1000; i++) {
        const double a = clock_now(), step_ns = 1e9 * (clock_now() - a);
        if (step_ns > 0.0 && step_ns < step)
            step = step_ns;
    }
    json_object_set_new(timer, "overhead_ns", json_real(step));
    return timer;
}

/* ---- Measurement quality ---- */

/* Measurement quality so far: the worst grade of all reasons. */
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
json_t *env_record(const struct env_library *library, const char *root)
{
    char name[128], id[160];
    bool emulated = library->emulator != NULL;
    bool named = !emulated && env_cpu_name(root, name, sizeof name);
    json_t *virt = emulated ? json_null() : env_hypervisor(root);
    const char *under = emulated ? "emulated" : json_string_value(virt);
    snprintf(id, sizeof id, "%s%s%s", library->cpu_key, under ? "/" : "", under ? under : "");
    json_t *cpu = json_pack("{s:s,s:o,s:o}", "key", library->cpu_key, "name",
                            emulated ? json_string("emulated CPU") : env_text(named, name),
                            "features", record_words(library->cpu_features));
    json_t *env = json_pack("{s:s,s:s,s:o,s:o,s:s?}", "t", "env", "env_id", id, "cpu", cpu,
                            "virtualization", virt, "emulator", library->emulator);
    json_object_set_new(env, "cpus", env_cpus(root));
    json_object_set_new(env, "caches", emulated ? json_array() : env_caches(root));
    json_object_set_new(env, "frequency", env_frequency(root));
    json_object_set_new(env, "memory", env_memory(root));
    json_object_set_new(env, "limits", env_limits(root));
    json_object_set_new(env, "os", system_facts(root));
    json_object_set_new(env, "build", build_facts(library));
    json_object_set_new(env, "timer", timer_facts(root));
    json_object_set_new(env, "noise", json_pack("{s:f}", "load1", env_load_average()));
    if (env)
        json_object_set_new(env, "quality", env_quality(env));
    return env;
}
