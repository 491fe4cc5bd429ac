/*
 * Buffers at different offsets within a page, see buffers.h.
 */
#define _POSIX_C_SOURCE 200809L
#include "buffers.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, LINE = 64, STEP = 39, FILL = 0x3f };

/* Steps of 39 lines go through all 64 lines of a page; the first buffers are at lines 39, 14,
 * 53, 28, 3, 42, 17, 56: nobody within 3 lines of another.  The base is kept in the line
 * before. */
static void *get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    (void)role;
    unsigned *count = user;
    size_t line = (size_t)++ * count * STEP % (PAGE / LINE);
    if (line == 0)
        line = PAGE / LINE;
    size_t start = line * LINE + (size_t)offset_bytes % LINE, size = start + bytes + LINE;
    void *base;
    if (size < bytes || posix_memalign(&base, PAGE, size) != 0)
        return NULL;
    memset(base, FILL, size);
    char *data = (char *)base + start;
    memcpy(data - (uintptr_t)data % LINE - LINE, &base, sizeof base);
    return data;
}

static void release(void *user, void *data)
{
    (void)user;
    if (!data)
        return;
    void *base;
    memcpy(&base, (char *)data - (uintptr_t)data % LINE - LINE, sizeof base);
    free(base);
}

struct memory bench_memory(unsigned *count)
{
    *count = 0;
    return (struct memory){ .get = get, .free = release, .user = count };
}
