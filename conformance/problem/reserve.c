/*
 * Mappings without a share of the system's memory: see reserve.h.
 */
#define _GNU_SOURCE
#include "reserve.h"

#include <sys/mman.h>

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
