/*
 * The machine and the build, as far as a Linux or another POSIX system tells.
 */
#define _GNU_SOURCE
#include "env.h"
#include "base/clock.h"
#include "env_cpu.h"
#include "env_host.h"
#include "sysfs.h"
#include "quality.h"

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
                     text_or(has_distro, distro));
}

static json_t *build(const struct env_library *library)
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

/* The least step seen between two readings is what a reading costs at best. */
static json_t *timer(const char *root)
{
    json_t *timer = host_timer(root);
    double step = 1e9;
    for (int i = 0; i < 1000; i++) {
        const double a = clock_now(), step_ns = 1e9 * (clock_now() - a);
        if (step_ns > 0.0 && step_ns < step)
            step = step_ns;
    }
    json_object_set_new(timer, "overhead_ns", json_real(step));
    return timer;
}

/* What /proc and /sys tell under an emulator is about the host: no name, no hypervisor. */
json_t *env_record(const struct env_library *library, const char *root)
{
    char name[128], id[160];
    bool emulated = library->emulator != NULL;
    bool named = !emulated && env_cpu_name(root, name, sizeof name);
    json_t *virt = emulated ? json_null() : env_hypervisor(root);
    const char *under = emulated ? "emulated" : json_string_value(virt);
    snprintf(id, sizeof id, "%s%s%s", library->cpu_key, under ? "/" : "", under ? under : "");
    double load[1] = { -1.0 };
    if (getloadavg(load, 1) != 1)
        load[0] = -1.0;
    json_t *env = json_pack(
        "{s:s,s:s,s:{s:s,s:o,s:o},s:o,s:s?,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:{s:f}}", "t",
        "env", "env_id", id, "cpu", "key", library->cpu_key, "name",
        emulated ? json_string("emulated CPU") : text_or(named, name), "features",
        words(library->cpu_features), "virtualization", virt, "emulator", library->emulator,
        "cpus", host_cpus(root), "caches", emulated ? json_array() : env_caches(root),
        "frequency", host_frequency(root), "memory", host_memory(root), "limits",
        host_limits(root), "os", system_facts(root), "build", build(library), "timer",
        timer(root), "noise", "load1", load[0]);
    if (env)
        json_object_set_new(env, "quality", env_quality(env));
    return env;
}
