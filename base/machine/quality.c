/*
 * Grades a machine by facts.
 */
#include "quality.h"
#include "base/records.h"
#include "sysfs.h"

#include <stdarg.h>
#include <string.h>

struct grading {
    char grade;
    json_t *reasons;
};

FORMATTED(3, 4)
static void lower(struct grading *g, char grade, const char *format, ...)
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
        lower(g, 'D', "the build is not optimised");
    if (*sanitizer)
        lower(g, 'D', "the build is instrumented (%.40s sanitizer)", sanitizer);
    if (*record_text(env, "emulator"))
        lower(g, 'D', "the CPU is emulated: no time says anything");
}

static void grade_host(struct grading *g, const json_t *env)
{
    const char *virt = record_text(env, "virtualization"),
               *governor = record_text(env, "frequency.governor"),
               *source = record_text(env, "timer.source");
    double quota = record_value(env, "limits.quota", 0.0);
    if (*virt && strcmp(virt, NOT_EXPOSED) != 0)
        lower(g, 'C', "virtual machine (%.60s): its neighbours cannot be seen", virt);
    if (quota > 0.0)
        lower(g, 'C', "a control group allows %.3g CPUs, and makes wait what takes more",
              quota);
    if (strcmp(governor, NOT_EXPOSED) == 0)
        lower(g, 'B', "the CPU's clock is not exposed");
    else if (*governor && strcmp(governor, "performance") != 0)
        lower(g, 'B', "the frequency governor is %.40s, not performance", governor);
    if (strcmp(record_text(env, "limits.power"), "battery") == 0)
        lower(g, 'B', "it runs on its battery");
    if (*source && strcmp(source, "tsc") != 0 && strcmp(source, "arch_sys_counter") != 0 &&
        strcmp(source, NOT_EXPOSED) != 0)
        lower(g, 'B', "the clock source is %.40s", source);
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
        lower(&g, 'D', "%s", words);
    const char grade[2] = { g.grade, 0 };
    return json_pack("{s:s,s:o}", "grade", grade, "reasons", g.reasons);
}
