/* The CPU, such as "AMD EPYC 9R14" under "KVM": its name, caches and memory, hypervisor, and signs that it is emulated. */
#ifndef POSENC_MACHINE_H
#define POSENC_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

/* A cache of CPU 0, or of a performance core of a Mac. */
struct machine_cache {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    size_t bytes;
};
enum { MACHINE_CACHES = 8 };

/* Lists the caches that the system reports. Returns their number. */
size_t machine_list_caches(struct machine_cache list[MACHINE_CACHES]);

/* Bytes of the data caches of one core; 0: unknown. */
struct machine_caches {
    size_t l1, l2, l3;
};
struct machine_caches machine_caches(void);

/* Returns the bytes of physical memory, or 1 GiB if unknown. */
size_t machine_memory_bytes(void);

/* Writes the common name of the CPU: "AMD EPYC", "Neoverse N1", "Apple M1". Returns false if it is unknown. */
bool machine_cpu_name(char *text, size_t bytes);

/* Writes the hypervisor's name, "unnamed", NOT_EXPOSED (sysfs.h), or "" if there is none. An x86 CPU reports it itself,
 * whatever sysfs_root is. */
void machine_hypervisor(char *name, size_t bytes);

/* Returns NULL, or a static sentence that names the emulator of this CPU and the sign by which it was detected. NULL is no
 * proof: a system emulator can imitate a real CPU. Virtual machines are not emulators, since they run on the CPU itself. */
const char *machine_emulator(void);

/* Reads a text by sysctlbyname() of macOS; returns false on other systems. */
bool machine_sysctl_text(const char *name, char *text, size_t bytes);

#endif
