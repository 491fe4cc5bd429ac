/* Mappings without swap reservation, and linked lists of pieces; see arena.h. */
#define _GNU_SOURCE
#include "arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* ---- Reserved address space ---- */

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

static void *map_pages(size_t bytes, int access)
{
    void *data = mmap(NULL, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

void *pages_reserve(size_t bytes) { return map_pages(bytes, PROT_READ | PROT_WRITE); }
void *pages_reserve_inaccessible(size_t bytes) { return map_pages(bytes, PROT_NONE); }
void pages_release(void *data, size_t bytes) { munmap(data, bytes); }

bool pages_reserve_is_quick(void)
{
    const size_t bytes = SIZE_MAX >> 29; /* 32 GiB on 64-bit systems */
    const clock_t before = clock();      /* CPU time of this process, independent of load */
    void *data = pages_reserve_inaccessible(bytes);
    if (data)
        pages_release(data, bytes);
    return clock() - before < CLOCKS_PER_SEC / 20;
}

/* ---- Arenas ---- */

struct arena_piece {
    struct arena_piece *next;
    size_t reserved; /* bytes; 0: allocated */
    double data[];   /* aligned for any number */
};

void *arena_get(struct arena *arena, size_t bytes)
{
    const size_t all = sizeof(struct arena_piece) + bytes, large = all < RESERVE_FROM ? 0 : all;
    struct arena_piece *piece = large ? pages_reserve(all) : calloc(1, all);
    if (!piece)
        return NULL;
    piece->reserved = large;
    piece->next = arena->last;
    arena->last = piece;
    return piece->data;
}

char *arena_text(struct arena *arena, const char *text, size_t n)
{
    char *copy = arena_get(arena, n + 1);
    return copy ? memcpy(copy, text, n) : NULL;
}

void *arena_grow(struct arena *arena, void *array, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return array;
    const size_t more = *room ? 2 * *room : 16;
    void *grown = arena_get(arena, more * size);
    if (!grown)
        return NULL;
    if (n)
        memcpy(grown, array, n * size);
    *room = more;
    return grown;
}

void arena_free(struct arena *arena)
{
    for (struct arena_piece *piece = arena->last, *next; piece; piece = next) {
        next = piece->next;
        if (piece->reserved)
            pages_release(piece, piece->reserved);
        else
            free(piece);
    }
    arena->last = NULL;
}
