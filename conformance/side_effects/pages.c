/* Allocates memory of calls that can be closed; see side_effects.h. */
#define _GNU_SOURCE
#include "side_effects.h"

#include "conformance/problem/arena.h"

#include <sys/mman.h>
#include <unistd.h>

/* Returns memory that ends ON_LAST_PAGE bytes into its last page, with its start rounded down to a
 * boundary of 64 bytes. So no row ends with a page. */
static void *pages_get(void *user, size_t bytes, int64_t offset_bytes, char role)
{
    enum { ON_LAST_PAGE = 832 };
    struct pages *pages = user;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (bytes + page - 1) / page + 1;
    const size_t parts = pages->parts ? (size_t)pages->parts : n;
    const bool is_output = role != 'i';
    (void)offset_bytes;
    char *begin = pages->n < LAYOUTS ? pages_reserve(n * page) : NULL;
    if (!begin)
        return NULL;
    pages->maps[pages->n++] =
        (struct closable_map){ begin, n * page, (n + parts - 1) / parts * page, is_output };
    return begin + ((n - 1) * page + ON_LAST_PAGE - bytes) / 64 * 64;
}

/* Frees nothing: pages_free() does. */
static void pages_keep(void *user, void *data) { (void)user, (void)data; }

struct memory pages_memory(struct pages *pages)
{
    return (struct memory){ .get = pages_get, .free = pages_keep, .user = pages };
}

void pages_close(const struct pages *pages, bool with_inputs)
{
    for (int i = 0; i < pages->n; i++)
        if (pages->maps[i].is_output || with_inputs)
            mprotect(pages->maps[i].begin, pages->maps[i].bytes, PROT_NONE);
}

char *pages_open(const struct pages *pages, const char *address)
{
    for (int i = 0; i < pages->n; i++) {
        const struct closable_map *map = &pages->maps[i];
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

void pages_free(struct pages *pages)
{
    for (int i = 0; i < pages->n; i++)
        pages_release(pages->maps[i].begin, pages->maps[i].bytes);
    pages->n = 0;
}
