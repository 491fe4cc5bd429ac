/* The machine as timings need it: sizes of caches and memory, and signs that its CPU is emulated. */
#ifndef POSENC_BENCH_MACHINE_H
#define POSENC_BENCH_MACHINE_H

#include <stddef.h>

/* Bytes of the data caches that one core sees; 0: unknown. */
struct machine_caches {
    size_t l1, l2, l3;
};
struct machine_caches machine_caches(void);

/* Returns the bytes of physical memory, or 1 GiB if the system does not tell. */
size_t machine_memory_bytes(void);

/* Returns NULL, or a sentence that lives on: what emulates this CPU, and by which sign it was detected. Nothing is
 * timed then. NULL is no proof, since a system emulator can imitate a real CPU in full. A virtual machine is no
 * emulation: its instructions run on the CPU itself. */
const char *machine_emulator(void);

#endif
