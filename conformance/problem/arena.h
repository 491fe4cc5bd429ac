/*
 * Memory that lives as long as what it belongs to: taken in pieces, freed at once.
 */
#ifndef POSENC_ARENA_H
#define POSENC_ARENA_H

#include <stddef.h>

struct arena {
    struct arena_piece *last;
};

/* Zeroed, aligned for any number; NULL when there is none. */
void *arena_get(struct arena *arena, size_t bytes);
/* A copy of n characters, with a NUL after them. */
char *arena_text(struct arena *arena, const char *text, size_t n);
/* Room for one more after n elements, doubled as it fills: the array, or a copy of it; NULL
 * when there is no memory. */
void *arena_grow(struct arena *arena, void *array, size_t n, size_t *room, size_t size);
void arena_free(struct arena *arena);

#endif
