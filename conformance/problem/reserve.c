/*
 * Mappings without a share of the system's memory: see reserve.h.
 */
#define _GNU_SOURCE
#include "reserve.h"

#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

static void *map(size_t bytes, int access)
{
    void *data = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

void *reserve(size_t bytes) { return map(bytes, PROT_READ | PROT_WRITE); }
void *reserve_closed(size_t bytes) { return map(bytes, PROT_NONE); }
void reserve_end(void *data, size_t bytes) { munmap(data, bytes); }

bool reserve_is_quick(void)
{
    const size_t bytes = SIZE_MAX >> 29; /* 32 GiB, of 64 bits */
    const clock_t before = clock();      /* of this program, whatever others do */
    void *data = reserve_closed(bytes);
    if (data)
        reserve_end(data, bytes);
    return clock() - before < CLOCKS_PER_SEC / 20;
}
