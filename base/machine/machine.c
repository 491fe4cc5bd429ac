/*
 * Reads the CPU's name, caches and hypervisor, and finds signs of an emulated CPU.
 *
 * Names:
 *   x86      /proc/cpuinfo has a "model name"
 *   ARM      Linux reports implementer and part of MIDR_EL1 only; the names are those of the
 *            cores' technical reference manuals
 *   RISC-V   /proc/cpuinfo has "uarch" if the device tree has one
 *   boards   the device tree's model, beside the core
 *   macOS    sysctl(3): machdep.cpu.brand_string, hw.*cachesize, kern.hv_vmm_present
 *
 * Signs of an emulator:
 *   Linux    a translator of user programs (qemu-user, valgrind) answers for /proc/self/exe itself, so
 *            that the program sees its own name; /proc/thread-self/exe names the file that really runs
 *   x86      CPUID leaf 0x40000000 names the hypervisor, QEMU's translator among them
 *   aarch64  MIDR_EL1 with implementer 0, reserved for software: QEMU's own model, -cpu max
 *   all      /proc/cpuinfo in the words of another architecture, or one that names qemu
 *   macOS    sysctl.proc_translated: Rosetta
 */
#define _GNU_SOURCE
#include "machine.h"
#include "sysfs.h"

#include <ctype.h>
#include <stdint.h>
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

/* ---- sysctl() of macOS ---- */

bool machine_sysctl_text(const char *name, char *text, size_t bytes)
{
#if defined(__APPLE__)
    size_t size = bytes;
    return sysctlbyname(name, text, &size, NULL, 0) == 0 && size > 0;
#else
    (void)name, (void)text, (void)bytes;
    return false;
#endif
}

#if defined(__APPLE__)
/* Returns a number of 32 or 64 bits, both of which are little-endian; 0: there is none. */
static size_t sysctl_number(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
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

static void write_core_name(unsigned implementer, unsigned part, char *name, size_t bytes)
{
    for (size_t i = 0; i < sizeof arm_cores / sizeof *arm_cores; i++)
        if (arm_cores[i].implementer == implementer && arm_cores[i].part == part) {
            snprintf(name, bytes, "%s", arm_cores[i].name);
            return;
        }
    snprintf(name, bytes, "ARM implementer 0x%02x, part 0x%03x", implementer, part);
}

/* Reads the number in a line such as "CPU part : 0xd0c". Returns false if it has another key. */
static bool read_hex(const char *line, const char *key, unsigned *value)
{
    if (strncmp(line, key, strlen(key)) != 0 || !strchr(line, ':'))
        return false;
    *value = (unsigned)strtoul(strchr(line, ':') + 1, NULL, 16);
    return true;
}

/* Lists each kind of core once, in the order of the CPUs: "Cortex-A55 + Cortex-A76". Returns false if there is none. */
static bool list_arm_cores(char *text, size_t bytes)
{
    FILE *file = sysfs_open("/proc/cpuinfo");
    char line[4096], name[64];
    unsigned implementer = 0, part;
    text[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        read_hex(line, "CPU implementer", &implementer);
        if (!read_hex(line, "CPU part", &part))
            continue;
        write_core_name(implementer, part, name, sizeof name);
        if (!strstr(text, name))
            text_list_add(text, bytes, " + ", name);
    }
    if (file)
        fclose(file);
    return text[0] != 0;
}

static bool find_core_name(char *text, size_t bytes)
{
    return machine_sysctl_text("machdep.cpu.brand_string", text, bytes) ||
           list_arm_cores(text, bytes) ||
           sysfs_value("/proc/cpuinfo", "model name", text, bytes) ||
           sysfs_value("/proc/cpuinfo", "uarch", text, bytes);
}

bool machine_cpu_name(char *text, size_t bytes)
{
    char board[96]; /* ends in a NUL, not in a newline */
    bool has_board = sysfs_line(board, sizeof board, "/proc/device-tree/model");
    if (!find_core_name(text, bytes)) {
        snprintf(text, bytes, "%s", board);
        return has_board;
    }
    if (has_board)
        text_list_add(text, bytes, ", ", board);
    return true;
}

/* ---- Caches and memory ---- */

#if defined(__APPLE__)

/* Prefers the sizes of performance cores, which are "perflevel0" if there are two kinds of cores. */
size_t machine_list_caches(struct machine_cache list[MACHINE_CACHES])
{
    static const struct {
        int level;
        const char *type, *name;
    } known[] = { { 1, "Data", "l1dcachesize" },
                  { 1, "Instruction", "l1icachesize" },
                  { 2, "Unified", "l2cachesize" },
                  { 3, "Unified", "l3cachesize" } };
    char name[64];
    size_t n = 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct machine_cache cache = { .level = known[i].level };
        snprintf(cache.type, sizeof cache.type, "%s", known[i].type);
        snprintf(name, sizeof name, "hw.perflevel0.%s", known[i].name);
        cache.bytes = sysctl_number(name);
        snprintf(name, sizeof name, "hw.%s", known[i].name);
        if (cache.bytes == 0)
            cache.bytes = sysctl_number(name);
        if (cache.bytes > 0)
            list[n++] = cache;
    }
    return n;
}

#else

size_t machine_list_caches(struct machine_cache list[MACHINE_CACHES])
{
    static const char prefix[] = "/sys/devices/system/cpu/cpu0/cache/index";
    char level[16], size[32], *unit;
    size_t n = 0;
    for (int i = 0; i < MACHINE_CACHES; i++) {
        struct machine_cache cache;
        if (!sysfs_line(level, sizeof level, "%s%d/level", prefix, i) ||
            !sysfs_line(cache.type, sizeof cache.type, "%s%d/type", prefix, i) ||
            !sysfs_line(size, sizeof size, "%s%d/size", prefix, i))
            continue;
        cache.level = atoi(level);
        cache.bytes = strtoul(size, &unit, 10);
        cache.bytes <<= *unit == 'M' ? 20 : *unit == 'K' ? 10 : 0;
        list[n++] = cache;
    }
    return n;
}

#endif

/* Falls back to sysconf() for L1 and L2. In a virtual machine sysconf() may return the host's whole L3. */
struct machine_caches machine_caches(void)
{
    enum { LEVELS = 3 };
    struct machine_cache list[MACHINE_CACHES];
    size_t sizes[LEVELS + 1] = { 0 };
    const size_t n = machine_list_caches(list);
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].type, "Instruction") != 0 && list[i].level >= 1 &&
            list[i].level <= LEVELS)
            sizes[list[i].level] = list[i].bytes;
#if defined(_SC_LEVEL1_DCACHE_SIZE)
    const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (sizes[1] == 0 && l1 > 0)
        sizes[1] = (size_t)l1;
    if (sizes[2] == 0 && l2 > 0)
        sizes[2] = (size_t)l2;
#endif
    return (struct machine_caches){ sizes[1], sizes[2], sizes[3] };
}

size_t machine_memory_bytes(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : (size_t)1 << 30;
}

/* ---- Hypervisor ---- */

#if defined(__x86_64__) || defined(__i386__)

/* Writes the twelve letters by which the hypervisor names itself, such as "KVMKVMKVM". Returns false if there is none. */
static bool cpuid_hypervisor(char letters[13])
{
    unsigned a, b, c, d;
    memset(letters, 0, 13);
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1u << 31))
        return false;
    __cpuid(0x40000000, a, b, c, d);
    memcpy(letters, &b, 4);
    memcpy(letters + 4, &c, 4);
    memcpy(letters + 8, &d, 4);
    return true;
}

void machine_hypervisor(char *name, size_t bytes)
{
    char letters[13];
    const bool is_guest = cpuid_hypervisor(letters);
    for (char *p = letters; *p; p++)
        if (!isprint((unsigned char)*p))
            *p = 0;
    const char *known = strncmp(letters, "KVM", 3) == 0 ? "KVM"
                        : *letters                      ? letters
                                                        : "unnamed";
    snprintf(name, bytes, "%s", is_guest ? known : "");
}

#elif defined(__APPLE__)

void machine_hypervisor(char *name, size_t bytes)
{
    snprintf(name, bytes, "%s", sysctl_number("kern.hv_vmm_present") != 0 ? "unnamed" : "");
}

#else

/* Looks for the name of a hypervisor in the device tree, then for that of a virtual machine in the tables of a PC.
 * Amazon's machines without a hypervisor have ".metal" in their name. */
void machine_hypervisor(char *name, size_t bytes)
{
    static const char *const words[] = { "Virtual", "QEMU", "Compute Engine", "VMware",
                                         "Amazon EC2" };
    char vendor[96], product[96], both[200];
    if (sysfs_line(vendor, sizeof vendor, "/proc/device-tree/hypervisor/compatible") ||
        sysfs_line(vendor, sizeof vendor, "/sys/hypervisor/type")) {
        snprintf(name, bytes, "%s", strcmp(vendor, "linux,kvm") == 0 ? "KVM" : vendor);
        return;
    }
    bool found = false;
    sysfs_line(vendor, sizeof vendor, "/sys/class/dmi/id/sys_vendor");
    sysfs_line(product, sizeof product, "/sys/class/dmi/id/product_name");
    snprintf(both, sizeof both, "%s %s", vendor, product);
    for (size_t i = 0; i < sizeof words / sizeof *words && !strstr(both, ".metal"); i++)
        found = found || strstr(both, words[i]);
    snprintf(name, bytes, "%s", found ? vendor : NOT_EXPOSED);
}

#endif

/* ---- Emulated CPUs ---- */

enum { SENTENCE = 256, PATH_BYTES = 4096 };

/* Functions that return true, and write a sentence, if there is one sign of an emulator. */

static bool read_link(const char *path, char target[PATH_BYTES])
{
    const ssize_t length = readlink(path, target, PATH_BYTES - 1);
    target[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool runs_another_file(char text[SENTENCE])
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

/* Architecture that /proc/cpuinfo should describe; NULL: unknown. */
#if defined(__x86_64__) || defined(__i386__)
#define ARCHITECTURE "x86"
#elif defined(__aarch64__) || defined(__arm__)
#define ARCHITECTURE "ARM"
#elif defined(__riscv)
#define ARCHITECTURE "RISC-V"
#else
#define ARCHITECTURE NULL
#endif

static bool is_cpuinfo_foreign(char text[SENTENCE])
{
    static const struct {
        const char *key, *architecture;
    } keys[] = { { "vendor_id", "x86" }, { "CPU implementer", "ARM" }, { "hart", "RISC-V" } };
    const char *own = ARCHITECTURE;
    char value[64];
    if (sysfs_value("/proc/cpuinfo", "uarch", value, sizeof value) &&
        strncmp(value, "qemu", strlen("qemu")) == 0) {
        snprintf(text, SENTENCE, "QEMU runs this program (/proc/cpuinfo: uarch is qemu)");
        return true;
    }
    for (size_t i = 0; own && i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].architecture, own) != 0 &&
            sysfs_value("/proc/cpuinfo", keys[i].key, value, sizeof value)) {
            snprintf(text, SENTENCE,
                     "a translator on an %s CPU runs this program (/proc/cpuinfo is of %s)",
                     keys[i].architecture, keys[i].architecture);
            return true;
        }
    return false;
}

/* Asks CPUID, MIDR_EL1 and Rosetta. */
static bool cpu_reports_emulator(char text[SENTENCE])
{
#if defined(__x86_64__) || defined(__i386__)
    char letters[13];
    if (cpuid_hypervisor(letters) && strcmp(letters, "TCGTCGTCGTCG") == 0) {
        snprintf(text, SENTENCE, "QEMU's translator runs this program (CPUID says TCG)");
        return true;
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
    return runs_another_file(text) || cpu_reports_emulator(text) || is_cpuinfo_foreign(text)
               ? text
               : NULL;
}
