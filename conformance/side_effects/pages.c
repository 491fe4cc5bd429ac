/* Allocates tensors in pages that can be made to fault; see side_effects.h. */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/arena.h"

#include <sys/mman.h>
#include <unistd.h>

/* Allocates one tensor. It ends about BYTES_ON_LAST_PAGE bytes into its last page, as its start is rounded down to a
 * multiple of ALIGNMENT. So no page boundary is the end of a row of a multiple of 128 bytes, as models have. Ignores
 * the offset that a problem asks for, which would move that end. */
static void *trap_pages_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    enum { BYTES_ON_LAST_PAGE = 832, ALIGNMENT = 64 };
    struct trap_pages *pages = user;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                 n = (bytes + page - 1) / page + 1; /* one for the end of the tensor */
    const size_t parts = pages->parts_per_map ? (size_t)pages->parts_per_map : n;
    const bool is_output = role != 'i';
    (void)offset_bytes;
    char *begin = pages->n < LAYOUTS ? pages_reserve(n * page) : NULL;
    if (!begin)
        return NULL;
    pages->maps[pages->n++] =
        (struct trap_map){ begin, n * page, (n + parts - 1) / parts * page, is_output };
    return begin + ((n - 1) * page + BYTES_ON_LAST_PAGE - bytes) / ALIGNMENT * ALIGNMENT;
}

/* Keeps memory that a call frees, as trap_pages_free() releases all of it. */
static void keep_until_free(void *user, void *data) { (void)user, (void)data; }

struct tensor_allocator trap_pages_memory(struct trap_pages *pages)
{
    return (struct tensor_allocator){ .get = trap_pages_get,
                                      .free = keep_until_free,
                                      .user = pages };
}

bool trap_pages_arm(const struct trap_pages *pages, bool with_inputs)
{
    bool armed = true;
    for (int i = 0; i < pages->n; i++)
        if (pages->maps[i].is_output || with_inputs)
            armed =
                mprotect(pages->maps[i].begin, pages->maps[i].bytes, PROT_NONE) == 0 && armed;
    return armed;
}

char *trap_pages_disarm(const struct trap_pages *pages, const char *address)
{
    for (int i = 0; i < pages->n; i++) {
        const struct trap_map *map = &pages->maps[i];
        if (address < map->begin || address >= map->begin + map->bytes)
            continue;
        const size_t at = (size_t)(address - map->begin) / map->part_bytes * map->part_bytes,
                     left = map->bytes - at;
        char *part = map->begin + at;
        return mprotect(part, left < map->part_bytes ? left : map->part_bytes,
                        PROT_READ | PROT_WRITE) == 0
                   ? part
                   : NULL;
    }
    return NULL;
}

void trap_pages_free(struct trap_pages *pages)
{
    for (int i = 0; i < pages->n; i++)
        pages_release(pages->maps[i].begin, pages->maps[i].bytes);
    pages->n = 0;
}
