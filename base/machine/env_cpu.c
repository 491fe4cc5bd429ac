/*
 * Reads the name, caches and hypervisor of the CPU; see env_parts.h.
 *
 *   x86      /proc/cpuinfo has a "model name"
 *   ARM      Linux reports implementer and part of MIDR_EL1 only; the names are those of the
 *            cores' technical reference manuals
 *   RISC-V   /proc/cpuinfo has "uarch" if the device tree has one
 *   boards   the device tree's model, beside the core
 *   macOS    sysctl(3): machdep.cpu.brand_string, hw.*cachesize, kern.hv_vmm_present
 */
#define _GNU_SOURCE
#include "env_parts.h"
#include "sysfs.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

/* ---- System calls of macOS ---- */

bool env_sysctl_text(const char *name, char *text, size_t bytes)
{
#if defined(__APPLE__)
    size_t size = bytes;
    return sysctlbyname(name, text, &size, NULL, 0) == 0 && size > 0;
#else
    (void)name;
    (void)text;
    (void)bytes;
    return false;
#endif
}

#if defined(__APPLE__)
/* Returns a number of 32 or 64 bits; every Mac is little-endian. */
static int64_t sysctl_number(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}
#endif

/* ---- Name ---- */

static const struct {
    unsigned implementer, part;
    const char *name;
} arm_cores[] = {
    { 0x41, 0xd03, "Cortex-A53" },
    { 0x41, 0xd05, "Cortex-A55" },
    { 0x41, 0xd07, "Cortex-A57" },
    { 0x41, 0xd08, "Cortex-A72" },
    { 0x41, 0xd09, "Cortex-A73" },
    { 0x41, 0xd0a, "Cortex-A75" },
    { 0x41, 0xd0b, "Cortex-A76" },
    { 0x41, 0xd0c, "Neoverse N1" },
    { 0x41, 0xd0d, "Cortex-A77" },
    { 0x41, 0xd40, "Neoverse V1" },
    { 0x41, 0xd41, "Cortex-A78" },
    { 0x41, 0xd42, "Cortex-A78AE" },
    { 0x41, 0xd44, "Cortex-X1" },
    { 0x41, 0xd46, "Cortex-A510" },
    { 0x41, 0xd47, "Cortex-A710" },
    { 0x41, 0xd48, "Cortex-X2" },
    { 0x41, 0xd49, "Neoverse N2" },
    { 0x41, 0xd4b, "Cortex-A78C" },
    { 0x41, 0xd4c, "Cortex-X1C" },
    { 0x41, 0xd4d, "Cortex-A715" },
    { 0x41, 0xd4e, "Cortex-X3" },
    { 0x41, 0xd4f, "Neoverse V2" },
    { 0x42, 0x516, "ThunderX2" },
    { 0x43, 0x0af, "ThunderX2" },
    { 0x46, 0x001, "A64FX" },
    { 0x48, 0xd01, "Kunpeng 920" },
    { 0x4e, 0x004, "NVIDIA Carmel" },
    { 0x61, 0x022, "Apple M1 (Icestorm)" },
    { 0x61, 0x023, "Apple M1 (Firestorm)" },
    { 0x61, 0x024, "Apple M1 Pro (Icestorm)" },
    { 0x61, 0x025, "Apple M1 Pro (Firestorm)" },
    { 0x61, 0x028, "Apple M1 Max (Icestorm)" },
    { 0x61, 0x029, "Apple M1 Max (Firestorm)" },
    { 0x61, 0x032, "Apple M2 (Blizzard)" },
    { 0x61, 0x033, "Apple M2 (Avalanche)" },
    { 0xc0, 0xac3, "Ampere-1" },
    { 0xc0, 0xac4, "Ampere-1a" },
};

static void name_core(unsigned implementer, unsigned part, char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof arm_cores / sizeof *arm_cores; i++)
        if (arm_cores[i].implementer == implementer && arm_cores[i].part == part) {
            snprintf(name, bytes, "%s", arm_cores[i].name);
            return;
        }
    snprintf(name, bytes, "ARM implementer 0x%02x, part 0x%03x", implementer, part);
}

/* Reads the number in a line such as "CPU part : 0xd0c", if it has that key. */
static bool read_hex(const char *line, const char *key, unsigned *value)
{
    if (strncmp(line, key, strlen(key)) != 0 || !strchr(line, ':'))
        return false;
    *value = (unsigned)strtoul(strchr(line, ':') + 1, NULL, 16);
    return true;
}

/* Lists each kind of core once, in the order of the CPUs: "Cortex-A55 + Cortex-A76". */
static bool arm_name(const char *root, char *text, size_t bytes)
{
    FILE *file = sysfs_open(root, "/proc/cpuinfo");
    char line[4096], name[64];
    unsigned implementer = 0, part;
    text[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        read_hex(line, "CPU implementer", &implementer);
        if (!read_hex(line, "CPU part", &part))
            continue;
        name_core(implementer, part, name, sizeof name);
        if (!strstr(text, name))
            text_list_add(text, bytes, " + ", name);
    }
    if (file)
        fclose(file);
    return text[0] != 0;
}

static bool core_name(const char *root, char *text, size_t bytes)
{
    return env_sysctl_text("machdep.cpu.brand_string", text, bytes) ||
           arm_name(root, text, bytes) ||
           sysfs_value(root, "/proc/cpuinfo", "model name", text, bytes) ||
           sysfs_value(root, "/proc/cpuinfo", "uarch", text, bytes);
}

bool env_cpu_name(const char *root, char *text, size_t bytes)
{
    char board[96]; /* ends in a NUL, not in a newline */
    bool has_board = sysfs_line(root, board, sizeof board, "/proc/device-tree/model");
    if (!core_name(root, text, bytes)) {
        snprintf(text, bytes, "%s", board);
        return has_board;
    }
    size_t n = strlen(text);
    if (has_board)
        snprintf(text + n, bytes - n, ", %s", board);
    return true;
}

/* ---- Caches ---- */

#if defined(__APPLE__)

/* Adds a cache of the performance cores, which are number 0 if there are two kinds. */
static void add_cache(json_t *array, int level, const char *type, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "hw.perflevel0.%s", name);
    int64_t bytes = sysctl_number(path);
    snprintf(path, sizeof path, "hw.%s", name);
    if (bytes == 0)
        bytes = sysctl_number(path);
    if (bytes > 0)
        json_array_append_new(array, json_pack("{s:i,s:s,s:I,s:s,s:s}", "level", level, "type",
                                               type, "bytes", (json_int_t)bytes, "shared_by",
                                               "", "source", "sysctl"));
}

json_t *env_caches(const char *root)
{
    (void)root;
    json_t *array = json_array();
    add_cache(array, 1, "Data", "l1dcachesize");
    add_cache(array, 1, "Instruction", "l1icachesize");
    add_cache(array, 2, "Unified", "l2cachesize");
    add_cache(array, 3, "Unified", "l3cachesize");
    return array;
}

#else

json_t *env_caches(const char *root)
{
    json_t *array = json_array();
    for (int i = 0; i < 8; i++) {
        char level[16], type[32], size[32], shared[64];
        const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
        if (!sysfs_line(root, level, sizeof level, "%s%d/level", folder, i))
            break;
        bool known = sysfs_line(root, type, sizeof type, "%s%d/type", folder, i) &&
                     sysfs_line(root, size, sizeof size, "%s%d/size", folder, i);
        sysfs_line(root, shared, sizeof shared, "%s%d/shared_cpu_list", folder, i);
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

#endif

/* ---- Hypervisor ---- */

#if defined(__x86_64__) || defined(__i386__)

/* Returns the name that the hypervisor reports by CPUID, such as "KVMKVMKVM". */
json_t *env_hypervisor(const char *root)
{
    (void)root;
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
}

#elif defined(__APPLE__)

json_t *env_hypervisor(const char *root)
{
    (void)root;
    return sysctl_number("kern.hv_vmm_present") != 0 ? json_string("unnamed") : json_null();
}

#else

/* Looks for the name of a hypervisor in the device tree, then for that of a virtual machine in the tables of a PC.
 * Amazon's machines without a hypervisor have ".metal" in their name. */
json_t *env_hypervisor(const char *root)
{
    static const char *const words[] = { "Virtual", "QEMU", "Compute Engine", "VMware",
                                         "Amazon EC2" };
    char name[96], product[96], both[200];
    if (sysfs_line(root, name, sizeof name, "/proc/device-tree/hypervisor/compatible") ||
        sysfs_line(root, name, sizeof name, "/sys/hypervisor/type"))
        return json_string(strcmp(name, "linux,kvm") == 0 ? "KVM" : name);
    if (!sysfs_line(root, name, sizeof name, "/sys/class/dmi/id/sys_vendor"))
        return json_string(NOT_EXPOSED);
    sysfs_line(root, product, sizeof product, "/sys/class/dmi/id/product_name");
    snprintf(both, sizeof both, "%s %s", name, product);
    for (size_t i = 0; i < sizeof words / sizeof *words && !strstr(both, ".metal"); i++)
        if (strstr(both, words[i]))
            return json_string(name);
    return json_string(NOT_EXPOSED);
}

#endif
