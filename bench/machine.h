/* Sizes of caches and memory, and detection of emulated CPUs. */
#ifndef POSENC_BENCH_MACHINE_H
#define POSENC_BENCH_MACHINE_H

#include <stddef.h>

/* Bytes of the data caches of one core; 0: unknown. */
struct machine_caches {
    size_t l1, l2, l3;
};
struct machine_caches machine_caches(void);

/* Returns the bytes of physical memory, or 1 GiB if unknown. */
size_t machine_memory_bytes(void);

/* Returns NULL, or a static sentence that names the emulator of this CPU and the sign by which it was detected. NULL is no
 * proof: a system emulator can imitate a real CPU. Virtual machines are not emulators, since they run on the CPU itself. */
const char *machine_emulator(void);

#endif
