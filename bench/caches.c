/*
 * Sizes of the caches, see caches.h.
 */
#define _GNU_SOURCE
#include "caches.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

#if defined(__APPLE__)

/* Of 32 or 64 bits; both little-endian. */
static size_t sysctl_size(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
}

/* Performance cores are level 0 where there are two kinds. */
static struct bench_caches caches_of_system(void)
{
    struct bench_caches caches = { sysctl_size("hw.perflevel0.l1dcachesize"),
                                   sysctl_size("hw.perflevel0.l2cachesize"),
                                   sysctl_size("hw.l3cachesize") };
    if (caches.l1 == 0)
        caches.l1 = sysctl_size("hw.l1dcachesize");
    if (caches.l2 == 0)
        caches.l2 = sysctl_size("hw.l2cachesize");
    return caches;
}

#else

/* One attribute of cache `index` of CPU 0, as Linux tells it. */
static bool cache_attribute(int index, const char *name, char text[32])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool read = fgets(text, 32, file);
    fclose(file);
    return read;
}

static struct bench_caches caches_of_system(void)
{
    struct bench_caches caches = { 0, 0, 0 };
    char level[32], type[32], size[32];
    for (int i = 0; cache_attribute(i, "level", level); i++) {
        if (!cache_attribute(i, "type", type) || !cache_attribute(i, "size", size) ||
            strncmp(type, "Instruction", 11) == 0)
            continue;
        char *unit;
        size_t bytes = strtoul(size, &unit, 10) * (*unit == 'M' ? MIB : KIB);
        if (level[0] == '1')
            caches.l1 = bytes;
        else if (level[0] == '2')
            caches.l2 = bytes;
        else if (level[0] == '3')
            caches.l3 = bytes;
    }
    return caches;
}

#endif

static size_t configured(int name)
{
    long value = sysconf(name);
    return value > 0 ? (size_t)value : 0;
}

struct bench_caches bench_caches(void)
{
    struct bench_caches caches = caches_of_system();
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    if (caches.l1 == 0)
        caches.l1 = configured(_SC_LEVEL1_DCACHE_SIZE);
    if (caches.l2 == 0)
        caches.l2 = configured(_SC_LEVEL2_CACHE_SIZE);
#else
    (void)configured;
#endif
    /* In a virtual machine sysconf may give the host's whole L3 (384 MiB for 32): not asked. */
    return caches;
}
