/*
 * Sizes of the data caches that one core sees, and of memory.
 */
#ifndef POSENC_CACHES_H
#define POSENC_CACHES_H

#include <stddef.h>

struct bench_caches {
    size_t l1, l2, l3; /* 0: unknown */
};
struct bench_caches bench_caches(void);

/* Returns the bytes of physical memory, or 1 GiB if the system does not tell. */
size_t bench_memory_bytes(void);

#endif
