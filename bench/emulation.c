/*
 * Signs of an emulated CPU.
 *
 *   Linux    a translator of user programs (qemu-user, valgrind) answers for /proc/self/exe itself, so
 *            that the program sees its own name; /proc/thread-self/exe names the file that really runs
 *   x86      CPUID leaf 0x40000000 names the hypervisor, QEMU's translator among them
 *   aarch64  MIDR_EL1 with implementer 0, reserved for software: QEMU's own model, -cpu max
 *   all      /proc/cpuinfo in the words of another architecture, or one that names qemu
 *   macOS    sysctl.proc_translated: Rosetta
 */
#define _GNU_SOURCE
#include "emulation.h"

#include <stdbool.h>
#include <stdio.h>
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

enum { SENTENCE = 256 };

static bool read_link(const char *path, char target[4096])
{
    const ssize_t length = readlink(path, target, 4095);
    target[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static bool run_by_another_program(char text[SENTENCE])
{
    char shown[4096], real[4096];
    if (!read_link("/proc/self/exe", shown) || !read_link("/proc/thread-self/exe", real) ||
        strcmp(shown, real) == 0)
        return false;
    const char *slash = strrchr(real, '/');
    snprintf(text, SENTENCE, "%.60s runs this program (/proc/thread-self/exe is %.120s)",
             slash ? slash + 1 : real, real);
    return true;
}

/* Words by which /proc/cpuinfo shows an architecture that is not this one. */
static const char *const foreign_words[][2] = {
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
    { "", "" },
};

static bool cpuinfo_line(const char *line, char text[SENTENCE])
{
    const size_t name = strcspn(line, "\t:");
    const char *value = line + name + strspn(line + name, "\t: ");
    if (name == 5 && strncmp(line, "uarch", 5) == 0 && strncmp(value, "qemu", 4) == 0) {
        snprintf(text, SENTENCE, "QEMU runs this program (/proc/cpuinfo: uarch is qemu)");
        return true;
    }
    for (int i = 0; *foreign_words[i][0]; i++)
        if (strlen(foreign_words[i][0]) == name &&
            strncmp(line, foreign_words[i][0], name) == 0) {
            snprintf(text, SENTENCE,
                     "a translator on an %s CPU runs this program (/proc/cpuinfo is of %s)",
                     foreign_words[i][1], foreign_words[i][1]);
            return true;
        }
    return false;
}

static bool cpuinfo_of_another(char text[SENTENCE])
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[4096];
    bool seen = false;
    while (file && !seen && fgets(line, sizeof line, file))
        seen = cpuinfo_line(line, text);
    if (file)
        fclose(file);
    return seen;
}

/* Reads what the CPU, or Rosetta, tells of itself. */
static bool told_by_cpu(char text[SENTENCE])
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & 1u << 31)) { /* there is a hypervisor */
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
    int translated = 0;
    size_t size = sizeof translated;
    if (sysctlbyname("sysctl.proc_translated", &translated, &size, NULL, 0) == 0 &&
        translated == 1) {
        snprintf(text, SENTENCE, "Rosetta runs this program (sysctl.proc_translated is 1)");
        return true;
    }
#endif
    (void)text;
    return false;
}

const char *bench_emulator(void)
{
    static char text[SENTENCE];
    return run_by_another_program(text) || told_by_cpu(text) || cpuinfo_of_another(text) ? text
                                                                                         : NULL;
}
