/*
 * Reads the sizes of caches and memory, and finds signs of an emulated CPU:
 *
 *   Linux    a translator of user programs (qemu-user, valgrind) answers for /proc/self/exe itself, so
 *            that the program sees its own name; /proc/thread-self/exe names the file that really runs
 *   x86      CPUID leaf 0x40000000 names the hypervisor, QEMU's translator among them
 *   aarch64  MIDR_EL1 with implementer 0, reserved for software: QEMU's own model, -cpu max
 *   all      /proc/cpuinfo in the words of another architecture, or one that names qemu
 *   macOS    sysctl.proc_translated: Rosetta
 */
#define _GNU_SOURCE
#include "machine.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

/* Reads the first line of a file. Returns false if there is none. */
static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    const bool read = file && fgets(line, (int)size, file);
    if (file)
        fclose(file);
    return read;
}

/* ---- Caches and memory ---- */

#if defined(__APPLE__)

/* Returns a number of 32 or 64 bits, both of which are little-endian; 0: there is none. */
static size_t sysctl_number(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
}

/* Performance cores are level 0 if there are two kinds. */
struct machine_caches machine_caches(void)
{
    const size_t l1 = sysctl_number("hw.perflevel0.l1dcachesize"),
                 l2 = sysctl_number("hw.perflevel0.l2cachesize");
    return (struct machine_caches){ l1 > 0 ? l1 : sysctl_number("hw.l1dcachesize"),
                                    l2 > 0 ? l2 : sysctl_number("hw.l2cachesize"),
                                    sysctl_number("hw.l3cachesize") };
}

#else

enum { CACHE_LEVELS = 3 };

/* Reads one attribute of a cache of CPU 0. */
static bool read_cache(int index, const char *attribute, char text[32])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index,
             attribute);
    return read_line(path, text, 32);
}

/* Reads /sys, else sysconf() for L1 and L2. In a virtual machine sysconf() may return the host's whole L3. */
struct machine_caches machine_caches(void)
{
    size_t sizes[CACHE_LEVELS + 1] = { 0 };
    char level[32], type[32], size[32];
    for (int i = 0; read_cache(i, "level", level); i++) {
        const int at = atoi(level);
        if (!read_cache(i, "type", type) || !read_cache(i, "size", size) ||
            strncmp(type, "Instruction", strlen("Instruction")) == 0)
            continue;
        char *unit;
        const size_t number = strtoul(size, &unit, 10);
        if (at >= 1 && at <= CACHE_LEVELS)
            sizes[at] = number << (*unit == 'M' ? 20 : 10);
    }
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (sizes[1] == 0 && l1 > 0)
        sizes[1] = (size_t)l1;
    if (sizes[2] == 0 && l2 > 0)
        sizes[2] = (size_t)l2;
#endif
    return (struct machine_caches){ sizes[1], sizes[2], sizes[3] };
}

#endif

size_t machine_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : (size_t)1 << 30;
}

/* ---- Emulated CPUs ---- */

enum { SENTENCE = 256, PATH_BYTES = 4096 };

static bool read_link(const char *path, char target[PATH_BYTES])
{
    const ssize_t length = readlink(path, target, PATH_BYTES - 1);
    target[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool is_run_by_another_program(char text[SENTENCE])
{
    char shown[PATH_BYTES], real[PATH_BYTES];
    if (!read_link("/proc/self/exe", shown) || !read_link("/proc/thread-self/exe", real) ||
        strcmp(shown, real) == 0)
        return false;
    const char *slash = strrchr(real, '/');
    snprintf(text, SENTENCE, "%.60s runs this program (/proc/thread-self/exe is %.120s)",
             slash ? slash + 1 : real, real);
    return true;
}

/* Keys of /proc/cpuinfo that another architecture has. */
static const struct {
    const char *key, *architecture;
} foreign_keys[] = {
#if defined(__x86_64__) || defined(__i386__)
    { "CPU implementer", "ARM" },
    { "hart", "RISC-V" },
#elif defined(__aarch64__) || defined(__arm__)
    { "vendor_id", "x86" },
    { "hart", "RISC-V" },
#elif defined(__riscv)
    { "vendor_id", "x86" },
    { "CPU implementer", "ARM" },
#endif
    { NULL, NULL },
};

static bool is_foreign_line(const char *line, char text[SENTENCE])
{
    const size_t length = strcspn(line, "\t:");
    const char *value = line + length + strspn(line + length, "\t: ");
    if (length == strlen("uarch") && strncmp(line, "uarch", length) == 0 &&
        strncmp(value, "qemu", strlen("qemu")) == 0) {
        snprintf(text, SENTENCE, "QEMU runs this program (/proc/cpuinfo: uarch is qemu)");
        return true;
    }
    for (int i = 0; foreign_keys[i].key; i++)
        if (strlen(foreign_keys[i].key) == length &&
            strncmp(line, foreign_keys[i].key, length) == 0) {
            snprintf(text, SENTENCE,
                     "a translator on an %s CPU runs this program (/proc/cpuinfo is of %s)",
                     foreign_keys[i].architecture, foreign_keys[i].architecture);
            return true;
        }
    return false;
}

static bool is_cpuinfo_foreign(char text[SENTENCE])
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[PATH_BYTES];
    bool foreign = false;
    while (file && !foreign && fgets(line, sizeof line, file))
        foreign = is_foreign_line(line, text);
    if (file)
        fclose(file);
    return foreign;
}

/* Returns true if CPUID, MIDR_EL1 or Rosetta reports an emulated CPU. */
static bool says_cpu_is_emulated(char text[SENTENCE])
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    const unsigned has_hypervisor = 1u << 31;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & has_hypervisor)) {
        __cpuid(0x40000000, a, b, c, d);
        const unsigned letters[3] = { b, c, d };
        if (memcmp(letters, "TCGTCGTCGTCG", sizeof letters) == 0) {
            snprintf(text, SENTENCE, "QEMU's translator runs this program (CPUID says TCG)");
            return true;
        }
    }
#elif defined(__linux__) && defined(__aarch64__)
    enum { ID_REGISTERS_READABLE = 1 << 11 }; /* HWCAP_CPUID */
    unsigned long midr;
    if (getauxval(AT_HWCAP) & ID_REGISTERS_READABLE) {
        __asm__("mrs %0, midr_el1" : "=r"(midr));
        if ((midr >> 24 & 0xff) == 0) {
            snprintf(text, SENTENCE,
                     "software is this CPU (MIDR_EL1 is %#lx, its implementer 0)", midr);
            return true;
        }
    }
#endif
#if defined(__APPLE__)
    if (sysctl_number("sysctl.proc_translated") == 1) {
        snprintf(text, SENTENCE, "Rosetta runs this program (sysctl.proc_translated is 1)");
        return true;
    }
#endif
    (void)text;
    return false;
}

const char *machine_emulator(void)
{
    static char text[SENTENCE];
    return is_run_by_another_program(text) || says_cpu_is_emulated(text) ||
                   is_cpuinfo_foreign(text)
               ? text
               : NULL;
}
