/*
 * Features of a RISC-V CPU, for cpu.c: the single-letter extensions that Linux reports.
 *
 * Reference: Linux, Documentation/arch/riscv/vector.rst and hwprobe.rst.
 */
#if defined(__linux__)
#include <sys/auxv.h>
#include <unistd.h>
#endif

struct feature_source {
    char letter; /* of a single-letter extension */
};

/* v: version 1.0 of the vector extension. Linux does not report older versions. */
#define CPU_FEATURES FEATURE("v", 1, { 'v' })

static unsigned long letters;

static bool has_feature(const struct feature_source *source)
{
    return letters >> (source->letter - 'a') & 1;
}

#if defined(__linux__)
static void read_cpu(void) { letters = getauxval(AT_HWCAP); }

/* Writes mvendorid-marchid-mimpid, from the system call riscv_hwprobe (Linux 6.4 and newer). */
static void read_key(char *key, size_t size)
{
    enum { SYS_HWPROBE = 258, VENDOR = 0, ARCHITECTURE = 1, IMPLEMENTATION = 2 };
    struct {
        int64_t key;
        uint64_t value;
    } ids[] = { { VENDOR, 0 }, { ARCHITECTURE, 0 }, { IMPLEMENTATION, 0 } };

    if (syscall(SYS_HWPROBE, ids, 3, 0, NULL, 0) == 0)
        snprintf(key, size, "riscv-%llx-%llx-%llx", (unsigned long long)ids[0].value,
                 (unsigned long long)ids[1].value, (unsigned long long)ids[2].value);
    else
        snprintf(key, size, "riscv-unknown");
}
#else
static void read_cpu(void) {}
static void read_key(char *key, size_t size) { snprintf(key, size, "riscv-unknown"); }
#endif
