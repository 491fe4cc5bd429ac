/*
 * Reads the sizes of caches and memory: from /sys of Linux, from sysctl of macOS, else from sysconf.
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

#if defined(__APPLE__)

/* Reads a number of 32 or 64 bits; both are little-endian. */
static size_t sysctl_size(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
}

/* Performance cores are level 0 if there are two kinds. */
static struct bench_caches caches_of_system(void)
{
    const size_t l1 = sysctl_size("hw.perflevel0.l1dcachesize"),
                 l2 = sysctl_size("hw.perflevel0.l2cachesize");
    return (struct bench_caches){ l1 > 0 ? l1 : sysctl_size("hw.l1dcachesize"),
                                  l2 > 0 ? l2 : sysctl_size("hw.l2cachesize"),
                                  sysctl_size("hw.l3cachesize") };
}

#else

/* Reads one attribute of cache `index` of CPU 0. */
static bool cache_attribute(int index, const char *name, char text[32])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(text, 32, file);
    if (file)
        fclose(file);
    return read;
}

static struct bench_caches caches_of_system(void)
{
    size_t sizes[4] = { 0 };
    char level[32], type[32], size[32];
    for (int i = 0; cache_attribute(i, "level", level); i++) {
        if (!cache_attribute(i, "type", type) || !cache_attribute(i, "size", size) ||
            strncmp(type, "Instruction", 11) == 0)
            continue;
        char *unit;
        const size_t number = strtoul(size, &unit, 10);
        if (level[0] >= '1' && level[0] <= '3')
            sizes[level[0] - '0'] = number << (*unit == 'M' ? 20 : 10);
    }
    return (struct bench_caches){ sizes[1], sizes[2], sizes[3] };
}

#endif

static size_t configured(int name)
{
    const long value = sysconf(name);
    return value > 0 ? (size_t)value : 0;
}

/* In a virtual machine sysconf may give the host's whole L3 (384 MiB for 32), so it is not asked. */
struct bench_caches bench_caches(void)
{
    struct bench_caches caches = caches_of_system();
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    if (caches.l1 == 0)
        caches.l1 = configured(_SC_LEVEL1_DCACHE_SIZE);
    if (caches.l2 == 0)
        caches.l2 = configured(_SC_LEVEL2_CACHE_SIZE);
#endif
    return caches;
}

size_t bench_memory_bytes(void)
{
    const size_t bytes = configured(_SC_PHYS_PAGES) * configured(_SC_PAGESIZE);
    return bytes > 0 ? bytes : (size_t)1 << 30;
}
