/*
 * The CPU as the system tells it, see env_cpu.h.
 *
 *   x86      /proc/cpuinfo has a "model name"
 *   ARM      Linux gives implementer and part of MIDR_EL1 only; the names are those of the
 *            cores' technical reference manuals
 *   RISC-V   /proc/cpuinfo has "uarch" where the device tree has one
 *   boards   the device tree's model, beside the core
 *   macOS    sysctl(3): machdep.cpu.brand_string, hw.*cachesize, kern.hv_vmm_present
 */
#define _GNU_SOURCE
#include "env_cpu.h"

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

/* ---- Asking ---- */

bool env_first_line(const char *path, char *line, int bytes)
{
    FILE *file = fopen(path, "r");
    bool read = file && fgets(line, bytes, file);
    if (file)
        fclose(file);
    if (read)
        line[strcspn(line, "\n")] = 0;
    return read;
}

/* The value in a line "key : value" or key="value"; NULL where it has another key. */
static char *value_in(char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0)
        return NULL;
    char *value = line + n + strspn(line + n, " \t:=\"");
    value[strcspn(value, "\"\n")] = 0;
    return value;
}

bool env_value_of(const char *path, const char *key, char *value, size_t bytes)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *text = value_in(line, key);
        found = text != NULL;
        if (found)
            snprintf(value, bytes, "%s", text);
    }
    if (file)
        fclose(file);
    return found;
}

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
/* Of 32 or 64 bits; both little-endian on every Mac there is. */
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

/* Every kind of core once, in the order of the CPUs: "Cortex-A55 + Cortex-A76". */
static bool arm_name(char *text, size_t bytes)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[4096], name[64];
    unsigned implementer = 0;
    size_t at = 0;
    text[0] = 0;
    while (file && at < bytes && fgets(line, sizeof line, file)) {
        const char *value = value_in(line, "CPU implementer");
        if (value)
            implementer = (unsigned)strtoul(value, NULL, 16);
        value = value_in(line, "CPU part");
        if (!value)
            continue;
        name_core(implementer, (unsigned)strtoul(value, NULL, 16), name, sizeof name);
        if (!strstr(text, name))
            at += (size_t)snprintf(text + at, bytes - at, "%s%s", at ? " + " : "", name);
    }
    if (file)
        fclose(file);
    return at > 0;
}

static bool core_name(char *text, size_t bytes)
{
    return env_sysctl_text("machdep.cpu.brand_string", text, bytes) || arm_name(text, bytes) ||
           env_value_of("/proc/cpuinfo", "model name", text, bytes) ||
           env_value_of("/proc/cpuinfo", "uarch", text, bytes);
}

bool env_cpu_name(char *text, size_t bytes)
{
    char board[96]; /* ends in a NUL, not in a newline */
    bool has_board = env_first_line("/proc/device-tree/model", board, sizeof board);
    if (!core_name(text, bytes)) {
        snprintf(text, bytes, "%s", has_board ? board : "");
        return has_board;
    }
    size_t n = strlen(text);
    if (has_board)
        snprintf(text + n, bytes - n, ", %s", board);
    return true;
}

/* ---- Caches ---- */

#if defined(__APPLE__)

/* Performance cores are number 0 where there are two kinds. */
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

json_t *env_caches(void)
{
    json_t *array = json_array();
    add_cache(array, 1, "Data", "l1dcachesize");
    add_cache(array, 1, "Instruction", "l1icachesize");
    add_cache(array, 2, "Unified", "l2cachesize");
    add_cache(array, 3, "Unified", "l3cachesize");
    return array;
}

#else

json_t *env_caches(void)
{
    json_t *array = json_array();
    for (int i = 0; i < 8; i++) {
        char path[96], level[16], type[32], size[32], shared[64] = "";
        const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%d/level", folder, i);
        if (!env_first_line(path, level, sizeof level))
            break;
        snprintf(path, sizeof path, "%s%d/type", folder, i);
        bool known = env_first_line(path, type, sizeof type);
        snprintf(path, sizeof path, "%s%d/size", folder, i);
        known = known && env_first_line(path, size, sizeof size);
        snprintf(path, sizeof path, "%s%d/shared_cpu_list", folder, i);
        env_first_line(path, shared, sizeof shared);
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

/* "KVMKVMKVM" and such: its own name where it gives one. */
json_t *env_hypervisor(void)
{
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

json_t *env_hypervisor(void)
{
    return sysctl_number("kern.hv_vmm_present") != 0 ? json_string("unnamed") : json_null();
}

#else

/* No instruction tells.  A device tree may name the hypervisor; where there are the tables of a
 * PC, a virtual machine is called one.  Amazon's machines of metal say so. */
json_t *env_hypervisor(void)
{
    static const char *const words[] = { "Virtual", "QEMU", "Compute Engine", "VMware",
                                         "Amazon EC2" };
    char name[96], product[96] = "", both[200];
    if (env_first_line("/proc/device-tree/hypervisor/compatible", name, sizeof name) ||
        env_first_line("/sys/hypervisor/type", name, sizeof name))
        return json_string(strcmp(name, "linux,kvm") == 0 ? "KVM" : name);
    if (!env_first_line("/sys/class/dmi/id/sys_vendor", name, sizeof name))
        return json_string(NOT_EXPOSED);
    env_first_line("/sys/class/dmi/id/product_name", product, sizeof product);
    snprintf(both, sizeof both, "%s %s", name, product);
    for (size_t i = 0; i < sizeof words / sizeof *words && !strstr(both, ".metal"); i++)
        if (strstr(both, words[i]))
            return json_string(name);
    return json_string(NOT_EXPOSED);
}

#endif
